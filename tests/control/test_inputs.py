"""Inputs over time against laws of time, and their derivatives."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.core.inputs import depends
from nsjax.multibody import actuator, assemble, body, hinge
from tests.control.mechanisms import arm

TIMES, VALUES = np.array([0.0, 0.1, 0.25, 0.3]), np.array([0.0, 1.0, -2.0, 3.0])
"""Uneven times, all of them multiples of the step."""


def ramp(t: Any, angle: Any, rate: Any, own: Any) -> Any:
    return jnp.interp(t, TIMES, VALUES)


def pendulum(effort: Any = None, law: Any = None) -> nsjax.Problem:
    return assemble(
        body("rod", mass=1.0, inertia=0.1, com=0.5), hinge("pin", "ground", "rod"),
        actuator("motor", "pin", effort, law=law), gravity=9.81,
    )  # fmt: skip


@pytest.mark.parametrize("even", [False, True])
def test_a_table_reads_the_piece_in_which_a_step_begins(even: bool) -> None:
    times = np.linspace(0.0, 0.3, 4) if even else TIMES
    held, lines = (nsjax.signal(times, VALUES, kind) for kind in ("held", "linear"))
    assert held.even == even
    for t in np.arange(-5, 40) * 0.01:
        piece = held.segment(jnp.asarray(t))
        before = np.searchsorted(times, t + 1e-12, side="right") - 1
        assert float(piece.at(t + 0.005)) == VALUES[max(before, 0)]
        line = lines.segment(jnp.asarray(t))
        # in the middle of the step: it crosses no time of the table
        assert float(line.at(t + 0.005)) == pytest.approx(np.interp(t + 0.005, times, VALUES), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [schemes.moreau(), schemes.generalized_alpha()], ids=lambda x: x.name)
def test_linear_inputs_are_laws_of_time(scheme: nsjax.Scheme) -> None:
    """Corners of the law lie on steps."""
    run = {"dt": 1e-3, "steps": 400}
    given = nsjax.simulate(
        *pendulum(0.0), scheme, **run, inputs={"motor": nsjax.signal(TIMES, VALUES, "linear")}
    )
    law = nsjax.simulate(*pendulum(law=ramp), scheme, **run)
    assert np.max(np.abs(given.q - law.q)) < 1e-12


@pytest.mark.slow
def test_a_held_input_is_a_number_from_time_to_time() -> None:
    table = nsjax.signal([0.0, 0.05, 0.1], [0.0, 2.0, -1.0])
    whole = nsjax.simulate(*pendulum(0.0), schemes.moreau(), dt=1e-3, steps=150, inputs={"motor": table})
    problem, ends = pendulum(0.0), []
    for value in (0.0, 2.0, -1.0):
        part = nsjax.simulate(*problem.replace({"motor.value": value}), schemes.moreau(), dt=1e-3, steps=50)
        problem = dataclasses.replace(problem, state=nsjax.State(t=part.t[-1], q=part.q[-1], v=part.v[-1]))
        ends.append(part.q[-1])
    assert np.max(np.abs(whole.q[50::50] - np.array(ends))) < 1e-14
    # rows begin the next piece
    assert whole.load("motor").torque[[49, 50, 99, 100]].tolist() == [0.0, 2.0, 2.0, -1.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("coordinates", "dimension", "kind"), [("joint", 2, "held"), ("absolute", 3, "linear")]
)
def test_every_leaf_of_a_table_is_differentiated(kind: str, coordinates: str, dimension: int) -> None:
    problem = arm(coordinates, dimension)

    def end(values: Any) -> Any:
        table = nsjax.signal(TIMES[:3], values, kind)
        run = nsjax.simulate(
            *problem, schemes.moreau(), dt=2e-3, steps=100, every=100, inputs={"motor": table}
        )
        return jnp.sum(run.v[-1])

    values = jnp.asarray(VALUES[:3])
    forward, reverse = jax.jit(jax.jacfwd(end))(values), jax.jit(jax.grad(end))(values)
    assert np.max(np.abs(forward - reverse)) < 1e-9 * np.max(np.abs(forward))
    h, end = 1e-5, jax.jit(end)
    secants = [(end(values + h * e) - end(values - h * e)) / (2 * h) for e in np.eye(3)]
    assert np.max(np.abs(reverse - np.array(secants))) < 1e-5 * np.max(np.abs(forward))


def test_what_does_not_depend_on_inputs_is_known() -> None:
    found = depends(lambda x: {"a": 2.0 * x, "b": jnp.ones(2), "c": jnp.where(x > 0, x, 1.0)}, 1.0)
    assert found == (True, False, True)
