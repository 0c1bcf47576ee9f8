"""A bob on a stiff spring by the formulas of ED-alpha as printed, without the package: numpy alone."""

from __future__ import annotations

import numpy as np

MASS, LENGTH, STIFFNESS, GRAVITY = 1.0, 1.0, 1e6, 9.81


def energy(q: np.ndarray, v: np.ndarray) -> float:
    """Kinetic energy, and potential energy of spring and weight [J]."""
    strain = np.hypot(*q) - LENGTH
    return float(0.5 * MASS * v @ v + 0.5 * STIFFNESS * strain**2 + MASS * GRAVITY * q[1])


def _acceleration(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Acceleration (2,) and its derivative (2, 2) with respect to the position."""
    r = np.hypot(*q)
    n = q / r
    along = np.outer(n, n)
    slope = -STIFFNESS * (along + (1.0 - LENGTH / r) * (np.eye(2) - along)) / MASS
    return -STIFFNESS * (r - LENGTH) * n / MASS - np.array([0.0, GRAVITY]), slope


def largest_energy_of_ed_alpha(omega_dt: float, time: float, q: np.ndarray, v: np.ndarray) -> float:
    """Largest total energy [J] of a run by [R&S (77)-(82)] with alpha = 1 (rho_inf = 0), alpha_AR = 1/6.

    The unknowns are both accelerations; Newton's method ends where an update is at the level of rounding.
    """
    dt, ar = omega_dt / np.sqrt(STIFFNESS / MASS), 1.0 / 6.0
    a, top = _acceleration(q)[0], energy(q, v)
    # rows j and end of (79), (80): velocities over accelerations
    moves = dt * np.array([[ar, -ar], [0.5, 0.5]])
    for _ in range(round(time / dt)):
        x = np.stack([a, a])
        for _ in range(100):
            w = v + moves @ x
            # the terms of a_i and v_i in (79), (81) cancel for alpha = 1
            p = q + moves @ w
            (aj, kj), (ae, ke) = _acceleration(p[0]), _acceleration(p[1])
            slope = np.eye(4) - np.block(
                [[kj * (moves @ moves)[0, 0], kj * (moves @ moves)[0, 1]],
                 [ke * (moves @ moves)[1, 0], ke * (moves @ moves)[1, 1]]]
            )  # fmt: skip
            step = np.linalg.solve(slope, (x - np.stack([aj, ae])).ravel()).reshape(2, 2)
            x = x - step
            if np.max(np.abs(step)) <= 1e-12 * (1.0 + np.max(np.abs(x))):
                break
        w = v + moves @ x
        q, v, a = q + (moves @ w)[1], w[1], x[1]
        top = max(top, energy(q, v))
    return top
