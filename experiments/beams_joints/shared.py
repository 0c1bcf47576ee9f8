"""Shared functions of the mechanisms: runs, poses, orders, and saving of figures."""

from __future__ import annotations

from typing import Any

import numpy as np

import nsjax

from .. import common

Z = (0.0, 0.0, 1.0)


def run(problem: Any, scheme: Any, dt: float, time: float, every: int = 1) -> nsjax.Trajectory:
    """`common.run` for so many seconds."""
    return common.run(problem, scheme, dt, round(time / dt), every)


def poses(traj: nsjax.Trajectory) -> np.ndarray:
    """Poses of all bodies and nodes (rows, n, 7), in the order of the parts; other entries of ``q``, such
    as turns of hinges, come after the poses and are left out.
    """
    bodies = traj.v.shape[1] // 6
    return np.asarray(traj.q)[:, : 7 * bodies].reshape(len(traj.t), bodies, 7)


def order(values: list[np.ndarray]) -> float:
    """Order of convergence from values at a step, at its half and at its quarter."""
    coarse, fine = (float(np.linalg.norm(values[k + 1] - values[k])) for k in (0, 1))
    return float(np.log2(coarse / fine))


def work_of_drive(traj: nsjax.Trajectory, rate: np.ndarray) -> np.ndarray:
    """Work of the hinge ``drive`` about z at every row, by the trapezoidal rule [J]."""
    power = np.asarray(traj.joint("drive").torque)[:, 2] * rate
    steps = np.diff(np.asarray(traj.t))
    return np.concatenate([[0.0], np.cumsum(0.5 * steps * (power[1:] + power[:-1]))])


def imbalance(traj: nsjax.Trajectory, work: np.ndarray) -> float:
    """Largest difference between change of energy and work, over the largest energy exchanged."""
    energy = np.asarray(traj["energy"])
    gained = energy - energy[1]  # the first row has no multipliers
    given = work - work[1]
    return float(np.max(np.abs(gained - given)[1:]) / np.max(np.abs(np.asarray(traj["kinetic"]))))
