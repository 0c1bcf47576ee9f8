"""What the examples have in common: runs in rows of one step, and the steps that contain an impulse."""

from __future__ import annotations

import numpy as np

import nsjax
from nsjax import analysis


def impulse_steps(traj: nsjax.Trajectory) -> np.ndarray:
    """Rows (every step saved) with an impulse in some contact: the papers' impact or impulse steps.

    They are more than ``traj.impacts``, which counts contacts that approach faster than forces alone
    would make them.
    """
    return np.flatnonzero(analysis.impulse_steps(traj))
