"""Lists of impacts of second-order schemes beside the event-driven slider-crank: all approaches are in."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from tests.references.slider_crank import Data, event_driven

DT = 1e-5
FASTER = 1e-2
"""Approaches [m/s] that every scheme has to see: far above what a step at 1e-5 s resolves near the ends of
accumulations."""

SECOND = ["generalized_alpha", "hht", "newmark", "bathe", "ed_alpha", "half_explicit"]
OTHERS = ["nsga_decoupled", "nsga_coupled", "nsga_neglected"]


@functools.cache
def instants() -> list[tuple[float, int, float]]:
    """Time, wall and rate of the approaches of the motion."""
    events = event_driven(Data(), (0.0, 0.05)).events
    return [(e.time, e.wall, e.before) for e in events if e.kind == "impact" and -e.before > FASTER]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SECOND[:2], *OTHERS[:1]])
def test_every_approach_is_listed(name: str) -> None:
    """By both corners; the first at a wall within two steps, those of nonsmooth generalized-alpha within
    their first order.
    """
    traj = nsjax.simulate(
        *models.slider_crank(), getattr(schemes, name)(), dt=DT, time=0.05, every=5000, events=60
    )
    count = int(traj.events.count)
    assert count < 60
    times, contacts = np.asarray(traj.events.time)[:count], np.asarray(traj.events.contact)[:count]
    expected = instants()
    assert len(expected) == 14
    labels = nsjax.models.slider_crank().system.labels.contacts
    for k, (time, wall, rate) in enumerate(expected):
        walls = [w for _, w, _ in expected[: k + 1]][::-1]
        before = next((n for n, w in enumerate(walls) if w != wall), len(walls)) - 1
        # an impact is caught up to a step late, with a rate that is off by a step of acceleration, which
        # shifts the next bounce by up to two steps: three more for each one before it at this wall
        most = (2.0 if name in SECOND else 8.0) + 3.0 * before
        side = "upper" if wall > 0 else "lower"
        corners = [k for k, text in enumerate(labels) if side in text]
        assert len(corners) == 2
        for corner in corners:
            near = np.min(np.abs(times[contacts == corner] - time))
            assert near <= most * DT, (time, wall, rate, near / DT)
    # nothing is invented: approaches of the accumulations that are slower, and no more
    # (both corners strike within a step)
    assert len(np.unique(np.ceil(times / DT))) <= len(expected) + 8
    assert np.all(np.isnan(np.asarray(traj.events.time)[count:]))
