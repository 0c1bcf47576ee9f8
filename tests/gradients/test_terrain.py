"""Notes on terrain: a ball has a contact with the nearest feature and two with further faces, which change
from face to face while it flies; their gaps jump, and that is no graze.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nsjax
from nsjax import Problem, gradient_notes, schemes
from nsjax.multibody import assemble, body, contact, heightfield, sphere

RADIUS, SERIOUS = 0.1, gradient_notes.GRAZING | gradient_notes.NEAR


def ball(heights: np.ndarray, place: Any, velocity: Any) -> Problem:
    """A ball above terrain of 3.2 m times 3.2 m."""
    return assemble(
        body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004)),
        contact(
            "floor", sphere("ball", RADIUS), heightfield("ground", heights, 1.6, 1.6), restitution=0.6,
            friction=0.3,
        ),
        gravity=9.81, start={"ball": (tuple(place), (*velocity, 0.0, 0.0, 0.0))},
    )  # fmt: skip


def flight(problem: Problem, scheme: str, dt: float = 1e-3, time: float = 0.7) -> Any:
    made = schemes.REGISTRY[scheme].factory()
    return nsjax.simulate(*problem, made, dt=dt, steps=round(time / dt), every=round(time / dt), notes=True)


OTHERS = ("generalized_alpha", "ggl_decoupled")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["moreau", *OTHERS])
def test_faces_that_change_are_no_graze(scheme: str) -> None:
    """Drawn terrains, over which a ball flies and bounces."""
    impacts = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        heights = 0.15 * rng.normal(size=(9, 9))
        place, velocity = (*rng.uniform(-0.3, 0.3, 2), 0.9), (*rng.uniform(-1.0, 1.0, 2), 0.0)
        run = flight(ball(heights, place, velocity), scheme)
        assert not np.any(run.notes & SERIOUS), (seed, run.notes)
        impacts += int(np.sum(run.impacts))
    assert impacts > 1.25 * 20


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["moreau", *OTHERS])
def test_a_summit_that_is_grazed(scheme: str) -> None:
    """The ball flies over the summit in the middle, by a clearance that is drawn; the nearest feature goes
    from a face over an edge to the summit and on.
    """
    heights = np.zeros((9, 9))
    heights[4, 4] = 0.4
    for seed in range(6):
        rng = np.random.default_rng(seed)
        aside, speed = rng.uniform(-0.02, 0.02), rng.uniform(2.4, 3.0)
        turn = rng.uniform(-0.03, 0.03)

        def thrown(top: float, speed=speed, aside=aside, turn=turn) -> Any:
            rise = 9.81 * 0.6 / speed
            place = (-0.6, aside, top - rise**2 / (2.0 * 9.81))
            return flight(
                ball(heights, place, (speed, turn * speed, rise)), scheme, time=0.6 / speed + 0.05
            )

        low, high, wanted = 0.45, 0.6, 10.0 ** rng.uniform(-6, -5)
        for _ in range(25):
            middle = 0.5 * (low + high)
            clear = np.min(thrown(middle).gap_min) > wanted
            low, high = (low, middle) if clear else (middle, high)
        near = thrown(high)
        assert 0.0 < float(np.min(near.gap_min)) < 1e-4
        assert np.any(near.notes & gradient_notes.GRAZING), seed
        assert not np.any(thrown(high + 0.02).notes & SERIOUS), seed
