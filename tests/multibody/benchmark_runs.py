"""Runs to a time, and errors at a step and at half of it."""

from __future__ import annotations

import nsjax


def run(problem, scheme, dt, time, rows):
    """Rows at equal times after the start."""
    steps = round(time / dt)
    traj = nsjax.simulate(*problem, scheme, dt=dt, steps=steps, every=steps // rows)
    traj.raise_for_status()
    return traj


def halved(error, dt):
    """Errors at a step and at half of it."""
    return error(dt), error(dt / 2)
