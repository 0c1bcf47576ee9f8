"""Derivatives where the motion has none, or an unbounded one: finite, bounded, and said so in the notes."""

from __future__ import annotations

import numpy as np
import pytest

from nsjax.gradient_notes import ACCUMULATION, COUPLED, GRAZING
from tests.design import each_family
from tests.gradients import particle
from tests.gradients.cases import DEG, case
from tests.gradients.convergence import SCHEMES, answer
from tests.gradients.program import Answer

STEPS = np.unique(np.round(np.geomspace(60, 6000, 50)).astype(int))


def runs(motion: particle.Case, scheme: str) -> list[Answer]:
    found = [answer(motion, SCHEMES[scheme], n) for n in STEPS]
    assert len(found) == 50
    assert all(np.all(np.isfinite(a.jacobian)) for a in found)
    return found


@each_family("scheme")
def test_a_resting_block_stays_where_it_is(scheme: str) -> None:
    """It sticks: only its place moves with its place at the start. A velocity at the start is stopped
    within the first step, which it moves by at most one step.
    """
    block = case("resting block", 0.5, "", slope=20 * DEG, friction=0.7, z=0.0,
                 columns="x friction gravity slope vx")  # fmt: skip
    for n, found in zip(STEPS, runs(block, scheme), strict=True):
        exact = np.zeros((4, 5))
        exact[0, 0] = 1.0
        exact_within = np.full((4, 5), 1e-8)  # the contact solver's regularisation is 1e-9
        exact_within[0, 4] = 0.5 / n + 1e-8
        if scheme.startswith("nsga"):
            # creeps by g sin(slope) dt^2 / 2 in the first step, which knows no friction of a step before
            exact_within[0, 1:4] += 0.5 * 9.81 * (0.5 / n) ** 2
        assert np.all(np.abs(found.jacobian - exact) <= exact_within)
        assert found.notes == 0


@pytest.mark.slow
@each_family("scheme", "moreau")
@pytest.mark.parametrize("slope", [0.0, pytest.param(30 * DEG, marks=pytest.mark.slow)])
def test_at_the_end_of_a_bounce_sequence(scheme: str, slope: float) -> None:
    """The rest after infinitely many bounces: on the floor, whatever the data."""
    zeno = case("accumulation", 1.37, "", slope=slope, friction=0.2 if slope else 0.0, vx=2.5, z=0.5,
                restitution=0.5)  # fmt: skip
    seen = 0
    for n, found in zip(STEPS, runs(zeno, scheme), strict=True):
        # the tail that is cut off at two steps of acceleration leaves an error of the order of the
        # step: dz/dp of a few steps times speeds of the approach (3 m/s) over restitutions
        assert np.max(np.abs(found.jacobian[1])) <= 100.0 / n
        # Gear-Gupta-Leimkuhler schemes keep a contact at rest at a velocity of up to a step of gravity,
        # one way or the other, which hangs on restitution and gravity like any other
        hovers = 0.6 * 9.81 * zeno.time / n if scheme.startswith("ggl") else 0.0
        assert np.max(np.abs(found.jacobian[3])) <= 1e-3 + hovers
        # along the slope the exact entries are at most g t^2/2 + ... = 13.4
        assert np.max(np.abs(found.jacobian)) <= 15.0
        seen |= found.notes
    assert seen & ACCUMULATION
    assert not seen & (COUPLED | GRAZING)


@each_family("scheme", "moreau")
def test_grazing(scheme: str) -> None:
    """Thrown up against a ceiling at 1 m, reached at a speed down to zero, exactly zero, or not at all.

    The derivative of the motion is 17.7 over the speed; none is larger than at the gate of two steps of
    acceleration, where it gives way to that of the motion without impact.
    """
    count = 0
    for speed in (0.1, 0.01, 1e-3, 0.0, -1e-2):
        v = float(np.sqrt(2 * 9.81 + np.sign(speed) * speed**2))
        throw = case("ceiling", 0.6, "", slope=-90 * DEG, vx=v, z=5.0, wall=1.0)
        for n, found in zip(STEPS, runs(throw, scheme), strict=True):
            gate = 2 * 9.81 * throw.time / n
            largest = np.max(np.abs(found.jacobian))
            # the speed of the scheme at the impact is off by a step of acceleration
            assert largest <= 2.0 * 17.7 / max(abs(speed), gate)
            if found.notes & GRAZING:
                assert largest < 6.0  # g t and t^2/2: the motion without impact
                count += 1
            assert not found.notes & COUPLED
            # tangency is seen at every step size, a clear impact at none
            assert found.notes & GRAZING or speed != 0.0
            assert not found.notes & GRAZING or abs(speed) < 2.0 * gate
    assert count > 10
