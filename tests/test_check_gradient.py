"""Derivatives of runs against secants wider than the teeth of the discrete map."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import check_gradient, models, schemes
from nsjax.analysis.comparison import verdict_of
from tests.gradients.root import ROOT

BALL = models.bouncing_ball(height=1.0, restitution=0.8)
RUN = {"dt": 3.1e-4, "steps": 4000}
NAMES = ["restitution", "gravity", "initial_q[0]"]


def closed_form(x: jax.Array) -> jax.Array:
    """Height and velocity between the second and the third impact."""
    e, g, height = x[0], x[1], x[2] - 0.05
    first = jnp.sqrt(2.0 * height / g)
    speed = e * g * first
    second, speed2 = first + 2.0 * speed / g, e * speed
    rest = RUN["dt"] * RUN["steps"] - second
    return jnp.stack([0.05 + speed2 * rest - 0.5 * g * rest**2, speed2 - g * rest])


EXACT = np.asarray(jax.jacfwd(closed_form)(jnp.array([0.8, 9.81, 1.05])))


@pytest.fixture(scope="module")
def right() -> nsjax.GradientCheck:
    return check_gradient(BALL, schemes.moreau(), parameters=NAMES, **RUN)


@pytest.mark.slow
def test_secants_are_those_of_the_motion(right: nsjax.GradientCheck) -> None:
    secants = right.table.column("secant").reshape(3, 2).T
    errors = right.table.column("uncertainty").reshape(3, 2).T
    # four standard errors: teeth are not noise, but as irregular
    assert np.all(np.abs(secants - EXACT) < 4.0 * errors)
    assert np.all(errors < 0.05 * np.abs(EXACT))
    assert np.all(right.table.column("shift") >= 10.0)
    assert np.all(right.table.column("shift") < 25.0)  # no wider than needed
    assert right.agrees
    assert right.impacts == 2
    assert right.crossed == right.notes == ()


@pytest.mark.slow
def test_the_discrete_derivative_differs(right: nsjax.GradientCheck) -> None:
    wrong = check_gradient(BALL, schemes.moreau(), parameters=NAMES, gradient="discrete", **RUN)
    assert not wrong.agrees
    assert set(wrong.table.column("verdict")) == {"differs"}
    np.testing.assert_array_equal(wrong.table.column("secant"), right.table.column("secant"))
    # the slope of a tooth: an unmoved impact leaves a change of the height as it is
    assert wrong.table[4].derivative == pytest.approx(1.0, abs=1e-12)
    assert "differs" in str(wrong)


@pytest.mark.slow
def test_a_secant_within_a_tooth_is_named() -> None:
    """A tooth is dt |dg/dt| wide; the narrow difference quotient repeats the error of the discrete map."""
    narrow = check_gradient(
        BALL, schemes.moreau(), parameters=NAMES, widths={name: 1e-6 for name in NAMES}, **RUN
    )
    assert set(narrow.table.column("verdict")) == {"teeth"}
    # instants inside their steps move by 1e-6 times their derivatives, a thousandth of a step
    assert np.max(narrow.table.column("shift")) < 0.01
    # differences of 1e-6 of numbers of order one, with a standard error of rounding over the width
    assert narrow.table[4].secant == pytest.approx(1.0, abs=1e-8)


def test_events_crossed_are_named() -> None:
    """The third impact is at 1.3587 s: just after the end of a run of 1.35842 s."""
    end = float(np.sqrt(2.0 / 9.81) * (1 + 2 * 0.8 + 2 * 0.64))
    steps = int(end / RUN["dt"]) - 1
    found = check_gradient(
        BALL, schemes.moreau(), parameters=NAMES[2:], dt=RUN["dt"], steps=steps, outputs=["vy"]
    )
    assert len(found.crossed) == 1
    assert "impacts, which first differ at impact 3 (ball on table" in found.crossed[0]
    assert found.crossed[0] in str(found)


def slack(traj: nsjax.Trajectory) -> jax.Array:
    """An output that has no derivative at zero, of a motion that has one."""
    return jnp.sqrt(jnp.maximum(-traj.v[-1], -1.0) * 0.0)


@pytest.mark.parametrize("steps", [1501, pytest.param(100, marks=pytest.mark.slow)])
def test_a_derivative_that_is_not_finite_is_named(steps: int) -> None:
    """With its parameter, and the step after the one that first ends where the spring is slack: the next
    one takes the force there. Rows of long runs hold several steps.
    """
    dt = 1.0 / steps
    found = check_gradient(ROOT, schemes.moreau(), parameters=["k", "idle"], dt=dt, steps=steps, samples=7)
    assert not found.agrees
    assert set(found.table.column("verdict")) == {"not finite"}
    q = np.asarray(nsjax.simulate(*ROOT, schemes.moreau(), dt=dt, steps=steps).q)[:, 0]
    # forces act at the midpoint
    v = np.asarray(nsjax.simulate(*ROOT, schemes.moreau(), dt=dt, steps=steps).v)[:, 0]
    at = 1 + int(np.argmax(q + 0.5 * dt * v < 0.0))
    every = -(-steps // 1000)
    last = every * -(-at // every)
    where = f"step {at}" if every == 1 else f"a step between {last - every + 1} and {last}"
    for name, sentence in zip(("k", "idle"), found.lost, strict=True):
        assert f"motion by {name} from {where} (t = {2.0 + last * dt:.6g} s) on" in sentence
        assert sentence in str(found)


def test_an_output_without_a_derivative_is_named() -> None:
    run = {"parameters": ["initial_v[0]"], "dt": 1e-2, "steps": 20, "samples": 7}
    found = check_gradient(ROOT, schemes.moreau(), outputs=slack, **run)
    assert found.lost[0].startswith("derivatives of outputs by initial_v[0], while that of the motion is")


@pytest.mark.parametrize(
    ("derivative", "secant", "error", "verdict"),
    [
        (0.0022, 0.0086, 0.0031, "open"), (-0.001, 0.004, 0.002, "open"), (1.0, 1.1, 0.04, "agrees"),
        (0.0, 0.0, 0.0, "agrees"), (1.0, -1.0, 0.1, "differs"),
    ],
)  # fmt: skip
def test_a_slope_whose_sign_is_open_is_not_confirmed(
    derivative: float, secant: float, error: float, verdict: str
) -> None:
    assert verdict_of(derivative, secant, error, 0.02, 15.0, False) == verdict
