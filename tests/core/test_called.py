"""Whatever a user's function raises is one sentence that names it, its line and what to do."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, State, System, schemes
from tests.points import spring, unit_mass


def sine(t, q, v, p):
    return -np.asarray(np.sin(q))


def array(t, q, v, p):
    return np.array(q)


def decision(t, q, v, p):
    if q[0] > 0.0:
        return -q
    return q


def number(t, q, v, p):
    return float(q[0]) * jnp.ones(1)


def loop(t, q, v, p):
    return sum(jnp.ones(1) for _ in range(q[0]))


def three(t, q, v):
    return q


def field(t, q, v, p):
    return -p.k * q


def nothing(t, q, v, p):
    return None


def own(t, q, v, p):
    raise RuntimeError("my own words\nand more")


def refusing(t, q, v, p):
    raise InputError("as it is")


@pytest.mark.parametrize(
    ("force", "params", "sentence"),
    [
        (sine, {}, r"^force \(sine, test_called\.py line \d+\): numpy functions cannot .* jax\.numpy"),
        (array, {}, r"^force \(array, .*\): numpy functions cannot"),
        (decision, {}, r"^force \(decision, .*\): Python's if, .* use jnp\.where"),
        (number, {}, r"^force \(number, .*\): int\(\), float\(\), range\(\) and the like need a number"),
        (loop, {}, r"^force \(loop, .*\): int\(\), float\(\), range\(\) and the like need a number"),
        (three, {}, r"^force: it takes \(t, q, v\), and is called as force\(t, q, v, p\)"),
        (spring, {"m": 1.0, "c": 2.0}, r"^force \(spring, .*\): KeyError: 'k'; params has c, m$"),
        (spring, {"k": None}, r"^force \(spring, .*; params\['k'\] is None: give a number$"),
        (spring, None, r"^force \(spring, .*; params is None: give a number$"),
        (field, {"k": 1.0}, r"^force \(field, .*\): AttributeError: 'dict' object has no attribute 'k'"),
        (nothing, {}, r"^force returns NoneType; the system needs shape \(1,\)"),
        (own, {}, r"^force \(own, .*\): RuntimeError: my own words$"),
        (refusing, {}, r"^as it is"),
    ],
)
def test_forces(force, params, sentence) -> None:
    system = System(nq=1, nv=1, mass=unit_mass, force=force)
    state = State(t=0.0, q=np.ones(1), v=np.zeros(1))
    with pytest.raises(InputError, match=sentence) as caught:
        nsjax.simulate(system, params, state, schemes.moreau(), dt=1e-3, steps=1)
    if force is decision:  # the line that raised
        assert f"line {decision.__code__.co_firstlineno + 1})" in str(caught.value)
    assert "\n" not in str(caught.value)


def asks(p):
    return {"k": p["missing"]}


def not_named(t, q, v, output, p):
    return q
