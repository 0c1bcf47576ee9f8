"""The flexible pendulum of [C section 4.3] against its wall."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from nsjax import models

from .. import common
from . import published

TIME, MASS = 0.35, 0.78
STEPS = (2.5e-3, 1e-3, 5e-4, 2.5e-4, 1e-4, 2.5e-5)
REFERENCE_STEP, REFERENCE_EVERY = 1e-6, 25
TIP_X, TIP_Y = -3, -2
"""Indices of the tip in ``q`` and ``v``."""


def run(name: str, dt: float) -> published.Run:
    """Run of one variant of the scheme."""
    return published.run(models.flexible_pendulum(), name, dt, TIME, MASS)


@functools.cache
def reference(name: str = "CS") -> dict[str, Any]:
    """A small step of the coupled scheme, as in the paper, or of another: rows of the tip, impulses, end.

    As tight as rounding of the stiff forces (1e-7 N) allows.
    """
    numbers: Any = {"rho_inf": 0.8, "relative_tolerance": 1e-7, "force_tolerance": 1e-3, "mass_scale": MASS}
    scheme: Any = published.VARIANTS[name](**numbers)
    traj = common.run(
        models.flexible_pendulum(), scheme, REFERENCE_STEP, round(TIME / REFERENCE_STEP), REFERENCE_EVERY,
        save=("impulse_normal",), events=4,
    )  # fmt: skip
    q, v, energy = np.asarray(traj.q), np.asarray(traj.v), np.asarray(traj["energy"])
    return {
        "y": q[:, TIP_Y],
        "dy": v[:, TIP_Y],
        "first contact": float(np.asarray(traj.events.time)[0]),
        "impulse": float(np.asarray(traj.impulse_normal).sum()),
        "tip": (float(q[-1, TIP_X]), float(q[-1, TIP_Y])),
        "energy": float(energy[-1] - energy[0]),
    }


def errors(r: published.Run, dt: float) -> tuple[float, float]:
    """Errors [C (52)] of the tip's ``y`` and its rate against the sub-sampled reference."""
    every = round(dt / (REFERENCE_EVERY * REFERENCE_STEP))
    exact = reference()
    found = np.asarray(r.traj.q)[:, TIP_Y], np.asarray(r.traj.v)[:, TIP_Y]
    return (
        published.error(found[0], exact["y"][::every]),
        published.error(found[1], exact["dy"][::every]),
    )


def contact(r: published.Run) -> dict[str, float]:
    """First contact, impulse, and largest penetration of the tip."""
    impulse = np.asarray(r.traj.impulse_normal)[:, 0]
    loaded = np.flatnonzero(impulse > 0)
    return {
        "first contact [s]": float(r.traj.t[loaded[0]]),
        "impulse [N s]": float(impulse.sum()),
        "least gap [m]": float(np.asarray(r.traj.gap).min()),
    }
