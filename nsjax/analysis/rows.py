"""Functions of the model at every saved row of a run, and the drift that they show."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.arguments import check_one_run
from nsjax.core.errors import InputError
from nsjax.core.operators import gap_rows, prepared, refreshed, row_rates, touching
from nsjax.core.system import System, residuals, row_groups
from nsjax.jaxtools.owned import compiled_for
from nsjax.trajectory import Trajectory
from nsjax.types import Array, Fn, PyTree, is_traced, record

CHUNK = 1024
"""Largest number of rows of a compiled call."""


def check_run(
    traj: Trajectory, who: str, needed: tuple[str, ...] = (), *, every_step: bool = False
) -> None:
    """Refuses runs that cannot be evaluated row by row.

    Args:
        who: name of the calling function, for the message.
        needed: row quantities that must have been saved.
        every_step: whether rows must be one step apart.
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
        >>> traj = nsjax.simulate(models.bouncing_ball(), schemes.bathe(), dt=1e-2, steps=100)
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
    return np.any(new & (np.asarray(traj.impulse_normal) != 0.0), axis=1)


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


# Drift of a run from its constraints and closed contacts, and the growth of this drift.


MEAN_BLOCKS = 10
"""Number of blocks of time that the jackknife of `growth` leaves out in turn."""


@record()
class Drift:
    """Residuals of constraints and contacts at every row.

    Args:
        t (rows,): time [s].
        constraint, constraint_rate (rows, nb): ``g_B`` [m] and its rate along the motion [m/s].
        penetration (rows, nc): ``max(-g_N, 0)`` [m], of closed contacts and of contacts that just close.
        pressed (rows, nc): whether the contact carried a normal force in the last step before the row and
            no impact has happened since the previous row: its gap and gap rate should then be zero.
        gap, gap_rate (rows, nc): ``g_N`` [m] and its rate [m/s] of pressed contacts, else zero.
    """

    t: np.ndarray
    constraint: np.ndarray
    constraint_rate: np.ndarray
    penetration: np.ndarray
    pressed: np.ndarray
    gap: np.ndarray
    gap_rate: np.ndarray

    def largest(self) -> dict[str, float]:
        """Largest absolute value of every residual over the run."""
        names = "constraint", "constraint_rate", "penetration", "gap", "gap_rate"
        return {name: float(np.max(np.abs(getattr(self, name)), initial=0.0)) for name in names}


def measure_drift(traj: Trajectory) -> Drift:
    """Residuals on position and velocity level of bilateral constraints and contacts along a run.

    Schemes on velocity level keep ``dg/dt = 0`` and let ``g`` drift; schemes on position level keep ``g =
    0`` instead. The residuals are evaluated from the saved states, independently of the scheme.

    Args:
        traj: one run with any ``every``; with contacts, ``force_normal`` and ``impacts`` must be saved.

    Raises:
        InputError: for a batch, a system without constraints and contacts, or quantities not saved.

    Limits: rates are taken at the configuration of the row; a scheme that fulfils its laws with directions
        at the midpoint has rates of O(dt) there. For ``every`` above 1, the last step before the row
        decides whether a contact counts as pressed.

    Source: [S&U&S section 2.2] for the drift on each level.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> from nsjax.analysis import measure_drift
        >>> problem = models.slider_crank_bilateral()
        >>> traj = nsjax.simulate(problem, schemes.newmark(), dt=1e-4, steps=500, every=10)
        >>> worst = measure_drift(traj).largest()
        >>> worst["constraint_rate"] < 1e-10 < worst["constraint"] < 1e-5
        True
    """
    check_run(traj, "measure_drift")
    if traj.system.nc:
        check_run(traj, "measure_drift", ("force_normal", "impacts"))
    elif not traj.system.nb:
        raise InputError("measure_drift: the system has no constraints and no contacts; nothing can drift")
    gap, gap_rate, constraint, constraint_rate = by_rows(_residuals, traj, traj.t, traj.q, traj.v)
    pressed = np.zeros(gap.shape, bool)
    if traj.system.nc:
        quiet = ~np.any(np.asarray(traj.impacts), axis=1)
        pressed = (np.asarray(traj.force_normal) > 0.0) & quiet[:, None]
    return Drift(
        t=np.asarray(traj.t), constraint=constraint, constraint_rate=constraint_rate,
        penetration=np.where(gap < 0.0, -gap, 0.0), pressed=pressed, gap=np.where(pressed, gap, 0.0),
        gap_rate=np.where(pressed, gap_rate, 0.0),
    )  # fmt: skip


def _residuals(
    system: System, p: PyTree, t: Array, q: Array, v: Array
) -> tuple[Array, Array, Array, Array]:
    """Gaps, gap rates, constraints and constraint rates."""
    none, p = jnp.zeros(0), refreshed(system, t, q, p)
    gap = system.gap(t, q, p) if system.gap is not None else none
    constraint = residuals(system, t, q, p) if system.nb else none
    rates = row_rates(system, t, q, v, p)
    groups = row_groups(system)
    # an empty slice of a computed array makes the compiler of jaxlib 0.10.2 abort
    along = groups.bilateral(rates) if system.nb else none
    return gap, groups.normals(rates) if system.nc else none, constraint, along


@record()
class Growth:
    """Growth of a residual with time since the start of the run.

    Args:
        rate, rate_error: slope of the straight line through the residual, its standard error [unit/s].
        power, power_error: exponent ``p`` of ``t^p`` for the running maximum of the residual's absolute
            value, its standard error; not-a-number where the residual is zero.
        largest: largest absolute value of the residual.
    """

    rate: float
    rate_error: float
    power: float
    power_error: float
    largest: float


def growth(t: Any, residual: Any) -> Growth:
    """Linear rate and power of the growth of a residual, with uncertainties.

    The rate is the least-squares slope of ``residual = a + b t``. The power is the least-squares slope
    of ``log max_(s <= t) |residual(s)|`` over ``log t``: about 0 for a bounded, 1 for a linear, 2 for a
    parabolic drift. With rows evenly spaced in time, the late part has the largest weight. Errors are those
    of a jackknife that leaves out each tenth of the time in turn; they are valid for residuals that are
    correlated over shorter times, such as the oscillation of a mechanism. An oscillation hides slow
    growth at first: with the length of the run the power then rises towards that of the growth.

    Args:
        t: (rows,) increasing times [s].
        residual: (rows,) one column of a `Drift`.

    Raises:
        InputError: for other shapes, fewer than 20 rows, or values that are not finite.

    Source: delete-one-group jackknife, B. Efron, *The Jackknife, the Bootstrap and Other Resampling
        Plans*, 1982.

    Example:
        >>> import numpy as np
        >>> from nsjax.analysis import growth
        >>> t = np.linspace(0.0, 2.0, 201)
        >>> found = growth(t, 3e-6 * t)
        >>> round(found.rate * 1e6, 9), round(found.power, 9)
        (3.0, 1.0)
    """
    time, x = np.asarray(t, float), np.asarray(residual, float)
    if time.ndim != 1 or time.shape != x.shape:
        raise InputError(f"growth: t and residual have shapes {time.shape} and {x.shape}; pass two columns")
    if time.size < 2 * MEAN_BLOCKS:
        raise InputError(f"growth: {time.size} rows; at least {2 * MEAN_BLOCKS} are needed: save more")
    if not (np.all(np.isfinite(time)) and np.all(np.isfinite(x))):
        raise InputError("growth: t and residual must be finite; look at raise_for_status of the run")
    time = time - time[0]
    reached = np.maximum.accumulate(np.abs(x))
    seen = (time > 0.0) & (reached > 0.0)
    power = power_error = np.nan
    if np.count_nonzero(seen) >= 2 * MEAN_BLOCKS:
        power, power_error = _slope(np.log(time[seen]), np.log(reached[seen]), time[seen])
    rate, rate_error = _slope(time, x, time)
    return Growth(
        rate=rate, rate_error=rate_error, power=power, power_error=power_error, largest=float(reached[-1])
    )


def _slope(x: np.ndarray, y: np.ndarray, time: np.ndarray) -> tuple[float, float]:
    """Least-squares slope and its jackknife error over blocks of time."""

    def fit(kept: np.ndarray) -> float:
        centred = x[kept] - np.mean(x[kept])
        return float(centred @ y[kept] / (centred @ centred))

    edges = np.quantile(time, np.arange(1, MEAN_BLOCKS) / MEAN_BLOCKS)
    block = np.searchsorted(edges, time, side="right")
    slopes = np.array([fit(block != k) for k in range(MEAN_BLOCKS)])
    spread = np.sum((slopes - np.mean(slopes)) ** 2)
    return fit(np.ones(len(x), bool)), float(np.sqrt((MEAN_BLOCKS - 1) / MEAN_BLOCKS * spread))
