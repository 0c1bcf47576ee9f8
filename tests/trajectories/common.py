"""Runs and errors as all comparisons here use them."""

from __future__ import annotations

import numpy as np

import nsjax

SAME = 1e-10
"""Bound for the same scheme with the same step, relative to the range of a column: rounding and the
contact solver's tolerance are all that differs (README of the data)."""


def run(problem, scheme, dt: float, steps: int, every: int = 1) -> nsjax.Trajectory:
    """A run that ends well, with its first impacts."""
    traj = nsjax.simulate(*problem, scheme, dt=dt, steps=steps, every=every, events=40)
    traj.raise_for_status()
    return traj


def off(ours, theirs) -> float:
    """Largest difference relative to the range of the other column."""
    theirs = np.asarray(theirs)
    return float(np.max(np.abs(np.asarray(ours) - theirs)) / np.ptp(theirs))


def rows_hit(traj: nsjax.Trajectory) -> np.ndarray:
    """Times at the ends of the steps with impacts, as other programs list them."""
    return np.asarray(traj.t)[np.asarray(traj.impacts).any(axis=1)]


def impacts(traj: nsjax.Trajectory, contact: int | None = None) -> dict[str, np.ndarray]:
    """The impact list without its empty places, of one contact or of all."""
    found = {name: np.asarray(getattr(traj.events, name)) for name in ("time", "contact", "impulse_normal",
             "impulse_tangential", "rate_before", "rate_after")}  # fmt: skip
    there = found["contact"] >= 0 if contact is None else found["contact"] == contact
    return {name: value[there] for name, value in found.items()}
