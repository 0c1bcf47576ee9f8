"""Derivatives of runs against secants wider than the teeth of the discrete map."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import check_gradient, models, schemes

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


def test_the_discrete_derivative_differs(right: nsjax.GradientCheck) -> None:
    wrong = check_gradient(BALL, schemes.moreau(), parameters=NAMES, gradient="discrete", **RUN)
    assert not wrong.agrees
    assert set(wrong.table.column("verdict")) == {"differs"}
    np.testing.assert_array_equal(wrong.table.column("secant"), right.table.column("secant"))
    # the slope of a tooth: an unmoved impact leaves a change of the height as it is
    assert wrong.table[4].derivative == pytest.approx(1.0, abs=1e-12)
    assert "differs" in str(wrong)


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


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"parameters": ["restitutoin"]}, "did you mean 'restitution'"),
        ({"parameters": ["initial_q"]}, r"name one entry: 'initial_q\[0\]'"),
        ({"parameters": ["initial_q[3]"]}, "has shape"),
        ({"parameters": ["gravity"], "outputs": ["energi"]}, "did you mean 'energy'"),
        ({"parameters": ["gravity"], "outputs": "y"}, "give a list"),
        ({"parameters": ["gravity"], "samples": 4}, "must be odd"),
        ({"parameters": ["gravity"], "gradient": "salt"}, "gradient = 'salt'"),
    ],
)
def test_refusals(options: dict, sentence: str) -> None:
    with pytest.raises(nsjax.InputError, match=sentence):
        check_gradient(BALL, schemes.moreau(), **{**RUN, **options})
