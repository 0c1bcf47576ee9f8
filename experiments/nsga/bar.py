"""The elastic bar of [C section 4.2] against a rigid wall.

It touches at 0.5005 s, a grid point of some step sizes: there rounding decides about the step of the
impact, and with it about single counts and velocity errors.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from nsjax import models, schemes

from .. import common
from . import published

TIME, MASS, DISTANCE = 1.5, 10.0, 5.005
STEPS = (3e-2, 1e-2, 5e-3, 2.5e-3, 1e-3, 2.5e-4, 1e-4)
TIP, NODE = 200, 191
"""The tip and the node 0.45 m behind it."""
REFERENCE_STEP, REFERENCE_EVERY = 1e-5, 5
WATCHED = {"u_tip": ("q", TIP), "u_0.45": ("q", NODE), "v_tip": ("v", TIP), "v_0.45": ("v", NODE)}


def run(name: str, dt: float) -> published.Run:
    """Run of one variant of the scheme."""
    return published.run(models.elastic_bar(), name, dt, TIME, MASS)


@functools.cache
def reference() -> dict[str, np.ndarray]:
    """Coupled scheme with a small step, as in the paper, and tight tolerances, at all of its rows."""
    scheme: Any = schemes.nsga_coupled(
        rho_inf=0.8, relative_tolerance=1e-8, force_tolerance=1e-3, mass_scale=MASS
    )
    steps = round(TIME / REFERENCE_STEP)
    traj = common.run(models.elastic_bar(), scheme, REFERENCE_STEP, steps, REFERENCE_EVERY, save=())
    return {what: np.asarray(getattr(traj, part))[:, k] for what, (part, k) in WATCHED.items()}


def errors(r: published.Run, dt: float) -> dict[str, float]:
    """Errors [C (52)] of displacements and velocities of both nodes against the sub-sampled reference."""
    every = round(dt / (REFERENCE_EVERY * REFERENCE_STEP))
    exact = reference()
    return {
        what: published.error(np.asarray(getattr(r.traj, part))[:, k], exact[what][::every])
        for what, (part, k) in WATCHED.items()
    }


def contact(r: published.Run, dt: float) -> dict[str, float]:
    """Last contact, impulse, mean force while closed, and how far the inner node passes the wall."""
    impulse = np.asarray(r.traj.impulse_normal)[:, 0]
    loaded = np.flatnonzero(impulse > 0)
    closed = impulse[loaded[0] : loaded[-1] + 1]
    v = np.asarray(r.traj.v)
    weights = np.full(TIP + 1, MASS / TIP)
    weights[[0, -1]] *= 0.5
    momentum = float(weights @ (v[0] - v[-1]))
    return {
        "last contact [s]": float(r.traj.t[loaded[-1]]),
        "impulse [N s]": float(impulse.sum()),
        "impulse minus change of momentum [N s]": float(impulse.sum()) - momentum,
        "mean force [N]": float(closed.mean() / dt),
        "node at 0.45 m past the wall [m]": float(np.asarray(r.traj.q)[:, NODE].max() - DISTANCE - 0.45),
    }
