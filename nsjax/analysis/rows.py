"""Functions of the model evaluated at every saved row of a run."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.arguments import check_one_run
from nsjax.core.checks import is_traced
from nsjax.core.errors import InputError
from nsjax.core.operators import gap_rows, prepared, refreshed, touching
from nsjax.core.system import System
from nsjax.startup.owned import compiled_for
from nsjax.trajectory import Trajectory
from nsjax.types import Array, Fn, PyTree

CHUNK = 1024


def check_run(
    traj: Trajectory, who: str, needed: tuple[str, ...] = (), *, every_step: bool = False
) -> None:
    """Refuses runs that cannot be evaluated row by row.

    Args:
        traj: the run.
        who: name of the calling function, for the message.
        needed: row quantities that must have been saved.
        every_step: whether rows must be one step apart.

    Raises:
        InputError: for a batch, traced numbers, fewer than two rows, rows more than one step apart, or
            quantities that were not saved.
    """
    if not isinstance(traj, Trajectory):
        raise InputError(f"{who}: got {type(traj).__name__}; pass the Trajectory of one run")
    if is_traced(traj):
        raise InputError(f"{who}: works on the numbers of a finished run; call it outside transformations")
    check_one_run(who, traj)
    if len(traj.t) < 2:
        raise InputError(f"{who}: the run has {len(traj.t)} row; at least one step is needed")
    missing = [name for name in needed if getattr(traj, name) is None]
    if missing:
        raise InputError(f"{who}: {', '.join(missing)} not saved; run simulate with save=None")
    if every_step:
        steps = row_distance(traj)
        if steps != 1:
            raise InputError(f"{who}: rows are {steps} steps apart; run simulate with every=1")


def row_distance(traj: Trajectory) -> int:
    """Steps between saved rows."""
    return round((float(traj.t[-1]) - float(traj.t[0])) / (len(traj.t) - 1) / float(traj.carry.dt))


def impulse_steps(traj: Trajectory) -> np.ndarray:
    """Mask (rows,) of the steps that end with an impulse, because a contact has closed and carries it.

    The mask contains more steps than ``traj.impacts``, which counts only contacts whose approach velocity
    exceeds the effect of forces. In all other steps the impulses of the mixed framework are time integrals
    of forces.

    Args:
        traj: one run saved with ``every=1``; ``impulse_normal`` and ``closed_time`` are needed.

    Raises:
        InputError: see `check_run`.

    Limits: at the start of a run that continues another run, a contact that does not approach counts as
    closed before.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> from nsjax.analysis import impulse_steps
        >>> traj = nsjax.simulate(*models.bouncing_ball(), schemes.bathe(), dt=1e-2, steps=100)
        >>> int(impulse_steps(traj).sum()), int(traj.impacts.sum())
        (1, 1)
    """
    check_run(traj, "impulse_steps", ("impulse_normal", "closed_time"), every_step=True)
    if not traj.system.nc:
        return np.zeros(len(traj.t), bool)
    closed = np.asarray(traj.closed_time) > 0.0
    closed[0] = by_rows(_closed, traj, *(np.asarray(x)[:1] for x in (traj.t, traj.q, traj.v)))[0]
    new = closed & ~np.roll(closed, 1, axis=0)
    new[0] = False
    struck: np.ndarray = np.any(new & (np.asarray(traj.impulse_normal) != 0.0), axis=1)
    return struck


def _closed(system: System, p: PyTree, t: Array, q: Array, v: Array) -> Array:
    """Mask (nc,) of the contacts that are closed and do not approach."""
    p = refreshed(system, t, q, p)
    rates = gap_rows(system, "gap", t, q, p).rate(v)
    # largest gap [m] and approach rate, relative to 1 + |v|, of a contact that is closed at the start of a
    # run: the tolerances of the schemes plus rounding
    tolerance = 1e-11
    limit = tolerance * (1.0 + jnp.max(jnp.abs(v)))
    closed = touching(system, t, q, p, system.gap(t, q, p), tolerance)
    return closed & (rates >= -limit)


def by_rows(kernel: Fn, traj: Trajectory, *columns: Any) -> PyTree:
    """``kernel(system, p, *row)`` for every row of the columns, as numpy arrays.

    Args:
        kernel: module-level function or frozen record with ``__call__``; compiled once per system,
            whatever the number of rows.
        traj: run with the system and its parameters.
        columns: arrays with the rows as first axis.
    """
    arrays = [np.asarray(x) for x in columns]
    count = arrays[0].shape[0]
    size = max(1, traj.system.nv**2, (traj.system.nc + traj.system.nb) * traj.system.nv)
    # bound on the numbers in the matrices of all rows of a compiled call, which limits its rows
    chunk_numbers = 2**22
    length = max(1, min(CHUNK, chunk_numbers // size))
    parts = []
    for start in range(0, count, length):
        part = [x[start : start + length] for x in arrays]
        fresh = part[0].shape[0]
        # padding with the last row, whose evaluation cannot fail where the others do not
        full = [np.concatenate([x, np.repeat(x[-1:], length - fresh, axis=0)]) for x in part]
        found = _evaluate(kernel, traj.system, traj.params, full)
        parts.append(jax.tree.map(lambda x, n=fresh: np.asarray(x)[:n], found))
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


@compiled_for("kernel", "system", of="system")
def _evaluate(kernel: Fn, system: System, params: PyTree, columns: list[Any]) -> PyTree:
    p = prepared(system, params)
    return jax.vmap(lambda *row: kernel(system, p, *row))(*columns)
