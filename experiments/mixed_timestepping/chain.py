"""The linear model problem of [R&S section 2.8], Figures 15 to 18: exact motion, runs, force error.

Three masses of 1 kg in a chain of soft springs under their weight, from rest; the last one is held (a) by
a spring of 1e7 N/m or (b) by a constraint. The paper prints k = 1 N/m for the soft springs, but its
highest frequency in (b), 0.8717 Hz, and dt/T = 0.0436 belong to k = 10 N/m and dt = 0.05 s
(sqrt(30) / 2 pi Hz): (a) runs with k = 1 N/m, dt = 1e-3 s, (b) with k = 10 N/m, dt = 0.05 s.

Figures 17 and 18 need the start of [R&S (25)], ``consistent_initial_acceleration=False``: the first
acceleration leaves out the force of the constraint, and schemes that remember accelerations keep the
error: see fig17_constraint.py. Both starts and both levels of the constraint are computed:
``constraint_form="index_2"`` (velocity, the default) and ``"index_1"`` (acceleration).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import nsjax
from nsjax import models, schemes

from .. import common

GRAVITY = 9.81
DURATION = 10.0
SUPPORT_STIFFNESS = 1e7
STIFF_STEP, STIFF_SPRING = 1e-3, 1.0
HELD_STEP, HELD_SPRING = 0.05, 10.0
SETTLED = 60
"""Steps after which the error of the inconsistent start has decayed below 2e-6 of its first value for
rho_inf up to 0.8; it decays with rho_inf at the slowest."""

NAMES = ("gen-alpha 1", "gen-alpha 0.8", "gen-alpha 0.5", "gen-alpha 0", "Bathe", "ED-alpha 0")


LEVELS = {"velocity": "index_2", "acceleration": "index_1"}


def scheme(name: str, consistent: bool = True, level: str = "velocity") -> Any:
    """A scheme by its name in the figures."""
    options: Any = {"consistent_initial_acceleration": consistent, "constraint_form": LEVELS[level]}
    if name.startswith("gen-alpha"):
        return schemes.generalized_alpha(float(name.split()[1]), **options)
    make = schemes.bathe if name == "Bathe" else schemes.ed_alpha
    return make(**options)


def stiffness(spring: float, held: bool) -> np.ndarray:
    """Stiffness matrix of the masses that move: three in (a), two in (b)."""
    last = spring + SUPPORT_STIFFNESS
    full = np.array([[2 * spring, -spring, 0.0], [-spring, 2 * spring, -spring], [0.0, -spring, last]])
    return full[:2, :2] if held else full


def exact(t: Any, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity and acceleration (times, masses) from rest, by modes:
    ``q = sum phi f / w^2 (1 - cos w t)``.
    """
    squares, shapes = np.linalg.eigh(matrix)
    load, w = GRAVITY * shapes.sum(axis=0), np.sqrt(squares)
    angle = w * np.asarray(t)[:, None]
    modal = load / squares * (1 - np.cos(angle)), load / w * np.sin(angle), load * np.cos(angle)
    return modal[0] @ shapes.T, modal[1] @ shapes.T, modal[2] @ shapes.T


def exact_force(t: Any) -> np.ndarray:
    """Force of the constraint of (b) [N]: it carries the weight of the third mass and its spring."""
    return -GRAVITY - HELD_SPRING * exact(t, stiffness(HELD_SPRING, held=True))[0][:, 1]


def _run(problem: Any, made: Any, dt: float, save: list[str]) -> nsjax.Trajectory:
    return common.run(problem, made, dt, round(DURATION / dt), save=save)


@functools.cache
def stiff_run(name: str) -> nsjax.Trajectory:
    """(a), the third mass on its stiff spring."""
    return _run(models.mass_spring_chain(stiffness=STIFF_SPRING), scheme(name), STIFF_STEP, [])


@functools.cache
def held_run(name: str, consistent: bool, level: str = "velocity") -> nsjax.Trajectory:
    """(b), the third mass held by a constraint, from a consistent or the paper's acceleration."""
    problem = models.mass_spring_chain(support="constraint", stiffness=HELD_SPRING)
    return _run(problem, scheme(name, consistent, level), HELD_STEP, ["constraint_force"])


def accelerations(traj: nsjax.Trajectory) -> np.ndarray:
    """Accelerations (rows, 3) from the balance of forces at the saved states, which the schemes shown
    fulfil at the end of every step; row 0 without the constraint's force.
    """
    q = np.asarray(traj.q)
    held = traj.constraint_force is not None
    spring = HELD_SPRING if held else STIFF_SPRING
    matrix = stiffness(spring, held=False)
    if held:
        matrix[2, 2] = spring
    a = GRAVITY - q @ matrix
    if held:
        a[:, 2] += np.asarray(traj.constraint_force)[:, 0]
    return np.asarray(a)


def force_error(traj: nsjax.Trajectory, first: int = 1) -> float:
    """Largest error of the constraint's force [N] from row ``first`` on."""
    off = np.asarray(traj.constraint_force)[:, 0] - exact_force(traj.t)
    return float(np.abs(off[first:]).max())
