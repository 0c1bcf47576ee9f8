"""What the examples have in common: runs in rows of one step, and the steps that contain an impulse."""

from __future__ import annotations

from typing import Any

import numpy as np

import nsjax

ROUNDING = 1e-12
"""Impulses up to this are rounding [N s]."""


def run(problem: Any, scheme: Any, dt: float, steps: int, every: int = 1) -> nsjax.Trajectory:
    """A run in which all steps went well."""
    system, params, state = problem
    traj = nsjax.simulate(system, params, state, scheme, dt=dt, steps=steps, every=every)
    traj.raise_for_status()
    return traj


def impulse_steps(traj: nsjax.Trajectory, dt: float) -> np.ndarray:
    """Rows (every step saved) with an impulse in some contact: the papers' impact or impulse steps.

    They are more than ``traj.impacts``, which counts contacts that approach faster than forces alone
    would make them.
    """
    force, impulse = np.asarray(traj.force_normal), np.asarray(traj.impulse_normal)
    return np.flatnonzero(np.any(impulse - dt * force > ROUNDING, axis=1))
