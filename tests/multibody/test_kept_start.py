"""Starts whose numbers change: the given coordinates stay, and the loops close anew, with derivatives.

The reference is `assemble` inside the differentiated function, whose derivatives `test_start.py` compares
with the law of cosines; here the rod of a four-bar is compared with that law as well.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, schemes, transforms
from nsjax.multibody import assemble, beam, body, gear, hinge, rectangular
from nsjax.multibody.kept_start import KeptStart
from nsjax.multibody.start import RedundantConstraintsWarning
from nsjax.types import is_traced
from tests.multibody.test_start import CRANK, GROUND, ROCKER, exact

SMALL, Z = (1e-3, 1e-3, 2e-3), (0.0, 0.0, 1.0)


def four_bar(x: dict[str, Any], **given: Any) -> nsjax.Problem:
    return assemble(
        body("crank", mass=0.1, inertia=1e-3, com=x["crank.com"]),
        body("coupler", mass=0.4, inertia=5e-3, com=(0.15, 0.02)),
        body("rocker", mass=0.3, inertia=2e-3, com=(0.1, 0.0)), hinge("o", "ground", "crank", at=x["o.at"]),
        hinge("a", "crank", "coupler", at=x["a.at"]), hinge("c", "ground", "rocker", at=x["c.at"]),
        hinge("b", "coupler", "rocker", at=x["b.at"], on=x["b.on"]), gravity=9.81,
        start={"crank": (0.3, 5.0)}, guess={"rocker": 1.5, "coupler": 0.5}, **given,
    )  # fmt: skip


def geared(x: dict[str, Any], **given: Any) -> nsjax.Problem:
    return assemble(
        body("one", mass=1.0, inertia=1e-2, com=(0.05, 0.0)),
        body("two", mass=2.0, inertia=3e-2, com=(0.02, 0.0)), hinge("a", "ground", "one"),
        hinge("b", "ground", "two", at=(0.5, 0.0)),
        gear("g", "b", "a", ratio=x["g.ratio"], offset=x["g.offset"]), start={"one": (0.7, 2.0)}, **given,
    )  # fmt: skip


def hinges(x: dict[str, Any], **given: Any) -> nsjax.Problem:
    """A four-bar in space, three of whose rows follow from the others."""
    with pytest.warns(RedundantConstraintsWarning) if not is_traced(x) else contextlib.nullcontext():
        return assemble(
            body("crank", mass=1.0, inertia=SMALL, com=(0.05, 0.0, 0.0)),
            body("rod", mass=1.0, inertia=SMALL, com=(0.15, 0.0, 0.0)),
            body("rocker", mass=1.0, inertia=SMALL, com=(0.1, 0.0, 0.0)),
            hinge("a", "ground", "crank", at=x["a.at"], axis=Z),
            hinge("b", "crank", "rod", at=x["b.at"], axis=Z),
            hinge("c", "ground", "rocker", at=x["c.at"], axis=Z),
            hinge("d", "rod", "rocker", at=x["d.at"], on=x["d.on"], axis=Z), start={"crank": (1.0, 3.0)},
            guess={"rocker": 1.5, "rod": -0.6}, **given,
        )  # fmt: skip


def numbers(**given: Any) -> dict[str, Any]:
    return {k.replace("_", "."): np.asarray(x, float) for k, x in given.items()}


BARS = numbers(
    crank_com=(0.05, 0.0), o_at=(0.0, 0.0), a_at=(CRANK, 0.0), c_at=(GROUND, 0.0), b_at=(0.4, 0.0),
    b_on=(ROCKER, 0.0),
)  # fmt: skip
CASES: dict[str, tuple[Callable[..., nsjax.Problem], dict[str, Any]]] = {
    "four-bar": (four_bar, BARS),
    "gear": (geared, numbers(g_ratio=-0.5, g_offset=0.1)),
    "hinges": (
        hinges,
        numbers(a_at=(0, 0, 0), b_at=(0.1, 0, 0), c_at=(0.3, 0, 0), d_at=(0.3, 0, 0), d_on=(0.2, 0, 0)),
    ),
}


def start(problem: nsjax.Problem) -> jax.Array:
    return jnp.concatenate([jnp.asarray(problem.state.q), jnp.asarray(problem.state.v)])


def compare(case: str, coordinates: str) -> None:
    """Start and derivatives by all numbers, forward and reverse; and the start with other numbers."""
    make, x = CASES[case]
    problem = make(x, coordinates=coordinates)
    wanted = jax.jacfwd(lambda x: start(make(x, coordinates=coordinates)))(x)
    replaced = lambda x: start(problem.replace(x))  # noqa: E731
    for found in (jax.jacfwd(replaced)(x), jax.jacrev(replaced)(x)):
        for name, there in wanted.items():
            size = max(1.0, float(jnp.max(jnp.abs(there))))
            np.testing.assert_allclose(found[name], there, rtol=0, atol=1e-8 * size, err_msg=name)
    rng = np.random.default_rng(len(case))
    plane = np.array([1.0, 1.0, float(case != "hinges")])  # redundant hinges turn in one plane only
    other = {
        k: y + 0.004 * rng.uniform(-1, 1, y.shape) * (plane if y.shape == (3,) else 1.0)
        for k, y in x.items()
    }
    np.testing.assert_allclose(replaced(other), start(make(other, coordinates=coordinates)), atol=1e-10)


COMPARED = [("four-bar", "joint")]
COMPARED += [pytest.param(*x, marks=pytest.mark.slow) for x in (("gear", "absolute"), ("hinges", "joint"))]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "coordinates"), COMPARED)
def test_replaced_starts_are_assembled_ones(case: str, coordinates: str) -> None:
    compare(case, coordinates)


PROBLEM = four_bar(BARS)
SCHEME = schemes.moreau()
RUN: dict[str, Any] = {"dt": 1e-3, "steps": 20, "every": 20}


def rod(length: Any) -> Any:
    return jnp.stack([jnp.asarray(length, float), jnp.zeros(())])


@pytest.mark.slow
def test_the_start_follows_the_law_of_cosines() -> None:
    """Value and derivative at another length than that of the problem."""
    found = jax.jvp(lambda x: start(PROBLEM.replace({"b.at": rod(x)})), (0.41,), (1.0,))
    wanted = jax.jvp(lambda x: exact(x, 0.3), (0.41,), (1.0,))
    np.testing.assert_allclose(np.stack(found), np.stack(wanted), rtol=0, atol=1e-9)


def end(problem: nsjax.Problem) -> jax.Array:
    return jnp.asarray(nsjax.simulate(*problem, SCHEME, **RUN).q[-1])


@pytest.mark.slow
def test_runs_sweeps_and_their_derivatives() -> None:
    """By `replace`, by params themselves and by a sweep, against a mechanism that is assembled inside."""
    wanted = jax.jacfwd(lambda x: end(four_bar(BARS | {"b.at": x})))(BARS["b.at"])
    inside = lambda x: dataclasses.replace(  # noqa: E731
        PROBLEM, params=PROBLEM.params | {"b": dataclasses.replace(PROBLEM.params["b"], at=x)}
    )
    by_name = lambda x: PROBLEM.replace({"b.at": x})  # noqa: E731
    for made, transform in ((by_name, jax.jacfwd), (inside, jax.jacrev)):
        found = transform(lambda x, made=made: end(made(x)))(BARS["b.at"])
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8)
    lengths = np.array([[0.4, 0.0], [0.41, 0.0], [0.9, 0.0]])
    swept = nsjax.sweep(PROBLEM, SCHEME, {"params.b.at": lengths}, **RUN)
    for k in (0, 1):
        there = end(four_bar(BARS | {"b.at": lengths[k]}))
        np.testing.assert_allclose(swept["q"][k], there, rtol=0, atol=1e-9)
    assert not swept.ok[2]
    assert "no position near that of the problem closes the loops" in dict(swept.refused)[2]


def test_numbers_that_no_start_fits_are_refused() -> None:
    """A rod that cannot reach leaves the start, which a run then refuses; traced, it is not a number."""
    far = PROBLEM.replace({"b.at": np.array([0.9, 0.0])})
    np.testing.assert_array_equal(far.state.q, PROBLEM.state.q)
    with pytest.raises(InputError, match="residual of constraint 0"):
        nsjax.simulate(*far, SCHEME, **RUN)
    assert np.all(np.isnan(jax.jit(lambda x: start(PROBLEM.replace({"b.at": rod(x)})))(0.9)))


def test_other_numbers_leave_the_start_alone() -> None:
    """Bit by bit, and their programs are those of before: nothing is solved."""
    heavy = PROBLEM.replace({"crank.mass": 0.2, "gravity": 1.6})
    assert heavy.state is PROBLEM.state or heavy.state.q is PROBLEM.state.q
    lines = str(jax.make_jaxpr(lambda x: start(PROBLEM.replace({"crank.mass": x})))(0.2))
    assert "while" not in lines
    assert "svd" not in lines
    assert isinstance(PROBLEM.system.parts.kept, KeptStart)


def test_entries_of_the_start_are_kept() -> None:
    """Another crank angle closes the loop anew; so does another rocker, in place of the crank."""
    turned = PROBLEM.replace({"state.q[0]": 0.35, "state.v[0]": 4.0})
    np.testing.assert_allclose(turned.state.q, exact(0.4, 0.35)[:3], atol=1e-10)
    np.testing.assert_allclose(turned.state.v, exact(0.4, 0.35)[3:] * 0.8, atol=1e-9)
    again = PROBLEM.replace({"state.q[2]": turned.state.q[2]})
    np.testing.assert_allclose(again.state.q, turned.state.q, atol=1e-9)
    whole = PROBLEM.replace(initial_q=np.zeros(3))
    np.testing.assert_array_equal(whole.state.q, np.zeros(3))


@pytest.mark.slow
def test_identified_length_lies_in_its_interval() -> None:
    """Angles with a noise of a milliradian; the estimated problem starts closed."""
    times = np.arange(1, 41) * 5e-3
    run = nsjax.simulate(*PROBLEM, SCHEME, dt=1e-3, steps=200, every=5)
    rng = np.random.default_rng(3)
    names = ("crank.angle", "rocker.angle")
    data = {x: np.asarray(run[x][1:]) + 1e-3 * rng.standard_normal(40) for x in names}
    found = nsjax.identify(
        PROBLEM.replace({"b.at": np.array([0.39, 0.0])}), SCHEME,
        nsjax.Recording(times=times, values=data, noise=1e-3),
        {"b.at[0]": transforms.interval(0.2, 0.6)}, dt=1e-3,
    )  # fmt: skip
    low, high = found.interval[0]
    assert found.success
    assert low < 0.4 < high
    assert high - low < 2e-3
    np.testing.assert_allclose(start(found.problem), exact(found["b.at[0]"], 0.3), rtol=0, atol=1e-8)


@pytest.mark.slow
def test_beams_are_assembled_inside() -> None:
    """The start of a beam stays as drawn: a moved clamp is refused, in a run and inside transformations."""
    problem = assemble(
        beam("arm", (0, 0, 0), (1, 0, 0), elements=2, section=rectangular(0.02, 0.01, E=1e9, rho=1e3)),
        hinge("root", "ground", "arm.start", at=(0.0, 0.0, 0.0), axis=Z),
    )
    with pytest.raises(InputError, match=r"root\.at enters a constraint of a mechanism with beams"):
        jax.make_jaxpr(lambda x: problem.replace({"root.at": x}).state.q)(np.zeros(3))
    moved = problem.replace({"root.at": np.array([0.1, 0.0, 0.0])})
    np.testing.assert_array_equal(moved.state.q, problem.state.q)
