"""Drift of a run from its constraints and closed contacts, and the growth of this drift."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.analysis.rows import by_rows, check_run
from nsjax.core.errors import InputError
from nsjax.core.operators import refreshed, row_rates
from nsjax.core.system import System
from nsjax.core.velocity_rows import residuals
from nsjax.trajectory import Trajectory
from nsjax.types import Array, PyTree, record

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

    Returns:
        `Drift`.

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
        >>> traj = nsjax.simulate(*problem, schemes.newmark(), dt=1e-4, steps=500, every=10)
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
        t=np.asarray(traj.t),
        constraint=constraint,
        constraint_rate=constraint_rate,
        penetration=np.where(gap < 0.0, -gap, 0.0),
        pressed=pressed,
        gap=np.where(pressed, gap, 0.0),
        gap_rate=np.where(pressed, gap_rate, 0.0),
    )


def _residuals(
    system: System, p: PyTree, t: Array, q: Array, v: Array
) -> tuple[Array, Array, Array, Array]:
    """Gaps, gap rates, constraints and constraint rates."""
    none, p = jnp.zeros(0), refreshed(system, t, q, p)
    gap = system.gap(t, q, p) if system.gap is not None else none
    constraint = residuals(system, t, q, p) if system.nb else none
    rates = row_rates(system, t, q, v, p)
    split = system.nc * (1 + system.nt)
    # an empty slice of a computed array makes the compiler of jaxlib 0.10.2 abort
    along = rates[split:] if system.nb else none
    return gap, rates[: split : 1 + system.nt] if system.nc else none, constraint, along


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

    Returns:
        `Growth`.

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
