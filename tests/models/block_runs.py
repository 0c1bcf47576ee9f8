"""Runs of the block, and the block in space, as its tests use them."""

from __future__ import annotations

import numpy as np

import nsjax
from nsjax import models, schemes

SIZE = np.array([0.1, 0.2, 0.3])


def run(problem, dt: float, steps: int, every: int = 1, scheme=None) -> nsjax.Trajectory:
    """Always the same signature, so that each dimension compiles once.

    A block that stands on the plane does so to rounding: with `gap_tolerance` it counts as standing.
    """
    scheme = schemes.moreau(gap_tolerance=1e-12) if scheme is None else scheme
    traj = nsjax.simulate(*problem, scheme, dt=dt, steps=steps, every=every, events=1)
    traj.raise_for_status()
    return traj


def cuboid(**numbers):
    """A block in space; always the same parameters given, as another choice would compile again."""
    return models.block(**{"size": SIZE, **numbers})
