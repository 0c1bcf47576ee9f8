"""Loads of a mechanism that are not finite where a run failed."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import status
from nsjax.core.operators import prepared, refreshed
from nsjax.core.system import System
from nsjax.startup.owned import compiled_for
from nsjax.types import Array, PyTree

PLACES = (0.0, 0.5, 1.0, 1.5)
"""Parts of the way from the last finite row to the end of the step that failed, where forces are looked at.
Steps evaluate them up to the end, and iterations go beyond it.
"""


def failed_loads(traj: Any) -> list[str]:
    """Names of the loads that are not finite about the first failure of a run.

    They are evaluated at the last finite row, and at `PLACES` between it and the end of the step that
    failed, with the velocity and the mean acceleration of that row. So they are found if rows lie close to
    each other (``every=1``).

    Args:
        traj: a `Trajectory`, not a batch.

    Returns:
        No names for systems that are not made of parts, for a run that stayed finite, and where the loads
        are finite at these states.

    Example:
        >>> import jax.numpy as jnp
        >>> import nsjax
        >>> from nsjax import schemes
        >>> from nsjax.failed_loads import failed_loads
        >>> from nsjax.multibody import actuator, assemble, body, hinge
        >>> arm = assemble(body("arm", mass=1.0, inertia=0.1), hinge("pin", "ground", "arm"),
        ...                actuator("motor", "pin", law=lambda t, q, v, p: jnp.sqrt(v - 1.0)))
        >>> failed_loads(nsjax.simulate(*arm, schemes.moreau(), dt=1e-3, steps=2))
        ['motor']
    """
    system, first = traj.system, traj.first_failure
    names = system.parts.part_names("load") if system.parts is not None else ()
    if not names or not int(first.status) & (status.FORCE_NOT_FINITE | status.STATE_NOT_FINITE):
        return []
    finite = np.isfinite(traj.q).all(axis=-1) & np.isfinite(traj.v).all(axis=-1)
    before = finite & (np.asarray(traj.t) < float(first.time))
    last = int(np.flatnonzero(before)[-1]) if before.any() else 0
    rows = [(x[max(last - 1, 0)], x[last]) for x in (traj.t, traj.q, traj.v)]
    found = _finite(system, traj.params, rows, first.time)
    return [name for name, each in zip(names, np.asarray(found), strict=True) if not each]


@compiled_for("system")
def _finite(system: System, params: PyTree, rows: list[tuple[Array, Array]], end: Array) -> Array:
    """Whether each load is finite at the second of two rows and at all places after it."""
    ready = prepared(system, params)
    (t0, t), (_, q), (v0, v) = rows
    mean = (v - v0) / jnp.where(t > t0, t - t0, 1.0)

    def at(part: float) -> Array:
        after = part * (end - t)
        there = system.retract(q, after * (v + 0.5 * after * mean))
        row = t + after, there, v + after * mean, None, refreshed(system, t + after, there, ready)
        loads = [system.parts.part_row("load", name, *row) for name in system.parts.part_names("load")]
        return jnp.stack([jnp.all(jnp.stack([jnp.isfinite(x).all() for x in y.values()])) for y in loads])

    return jnp.all(jnp.stack([at(part) for part in PLACES]), axis=0)
