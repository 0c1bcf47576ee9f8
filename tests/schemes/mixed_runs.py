"""Schemes of the mixed framework by name, and runs of them."""

from __future__ import annotations

import nsjax
from nsjax import schemes

G = 9.81
CRANK_ROWS = [
    "gap_min",
    "force_normal",
    "impulse_normal",
    "closed_time",
]  # everywhere the same: one program
MAKE = {
    "half_explicit": schemes.half_explicit,
    "generalized_alpha 1": lambda **o: schemes.generalized_alpha(1.0, **o),
    "generalized_alpha 0.8": lambda **o: schemes.generalized_alpha(0.8, **o),
    "generalized_alpha 0.5": lambda **o: schemes.generalized_alpha(0.5, **o),
    "generalized_alpha 0": lambda **o: schemes.generalized_alpha(0.0, **o),
    "hht": lambda **o: schemes.hht(0.1, **o), "newmark": schemes.newmark, "bathe": schemes.bathe,
    "ed_alpha 0": lambda **o: schemes.ed_alpha(0.0, **o),
    "ed_alpha 0.5": lambda **o: schemes.ed_alpha(0.5, **o),
    "ed_alpha 1": lambda **o: schemes.ed_alpha(1.0, **o),
    "moreau_theta": lambda **o: schemes.moreau_theta(0.5, **o),
}  # fmt: skip


def run(problem, scheme, dt, steps, **options) -> nsjax.Trajectory:
    system, params, state = problem
    traj = nsjax.simulate(system, params, state, scheme, dt=dt, steps=steps, **options)
    traj.raise_for_status()
    return traj
