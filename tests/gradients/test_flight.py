"""Derivatives of mechanisms, whose flights pass through the program of contacts with no contact active."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from nsjax import schemes
from tests.gradients import box
from tests.gradients.program import off, sensitivity


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_drawn_motions_have_the_derivative_of_a_program_with_flights(seed: int) -> None:
    """A box that flies, strikes, slides, sticks and rocks: the derivatives and notes of a program of its
    own for flight, to rounding, and those of the motion between its events to the order of the step.
    """
    p, end, events = box.draw(seed)
    assert len(events) >= 4
    mechanism = dataclasses.replace(box.SYSTEM, tangent_hint="mass")
    exact, own = box.reference(p, end), box.columns(p)
    for steps in (1511, 6043):
        found, other = (
            sensitivity(x, box.build, schemes.moreau(), p, end, steps) for x in (mechanism, box.SYSTEM)
        )
        np.testing.assert_allclose(found.x, other.x, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(found.jacobian, other.jacobian, rtol=1e-9, atol=1e-10)
        assert found.notes == other.notes
    # steps of 4e-5 to 7e-5 s; the error is a saw tooth in the step size, of the four draws at most 0.012
    assert off(found.jacobian[:, own], exact) < 0.03
