"""Check of all starts of a batch at once, without a loop over its lanes."""

from __future__ import annotations

import numpy as np

from nsjax.core import promises
from nsjax.core.checks import CONSTRAINT_TOLERANCE, PENETRATION_TOLERANCE, RATE_TOLERANCE, SKEW_TOLERANCE


def sound_lanes(found: dict[str, np.ndarray]) -> np.ndarray:
    """Lanes (n,) bool that `nsjax.core.checks.check_found` accepts; it may refuse the others.

    Args:
        found: results of `nsjax.core.probe.probe` in all lanes, each with a leading axis (n, ...), and
            those of `nsjax.core.overshoot`, if it was called.
    """
    lanes = len(next(iter(found.values()))) if found else 0
    fine = np.ones(lanes, bool)
    for name, x in found.items():
        what = name.partition(":")[0]
        if what in ("constraint_rows", "rate_size") or what.startswith("beyond "):
            continue
        fine &= _mass(x) if what == "mass" else _within(what, x, found).reshape(lanes, -1).all(axis=1)
    return fine


def _within(what: str, x: np.ndarray, found: dict[str, np.ndarray]) -> np.ndarray:
    """Whether entries are in their range; nan is in no range."""
    beyond = found.get(f"beyond {what}", 0.0)
    if what in ("restitution", "restitution_tangential"):
        return (x >= 0) & (x <= 1)
    if what in ("friction", "drag_bound"):
        return x >= 0
    if what in ("slip", "drag", "velocity_constraint"):
        return x <= RATE_TOLERANCE
    if what in ("outside", "changes", "skew"):
        return x <= promises.TOLERANCE
    if what == "energy":
        return x > 0
    if what == "gap":
        return -x - beyond <= PENETRATION_TOLERANCE
    if what == "constraint":
        return np.abs(x) - beyond <= CONSTRAINT_TOLERANCE
    if what == "rate":
        return np.abs(x) - beyond <= RATE_TOLERANCE * found["rate_size"]
    return np.zeros(x.shape, bool)


def _mass(m: np.ndarray) -> np.ndarray:
    """Whether each of the matrices (n, nv, nv) is finite, symmetric and positive definite."""
    finite = np.isfinite(m).all(axis=(1, 2))
    m = np.where(finite[:, None, None], m, 0.0)
    size = np.abs(m).max(axis=(1, 2))
    skew = np.abs(m - m.transpose(0, 2, 1)).max(axis=(1, 2))
    return finite & (skew <= SKEW_TOLERANCE * size) & (np.linalg.eigvalsh(m)[:, 0] > 0)
