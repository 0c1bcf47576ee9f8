"""`sweep_time_step`: errors, orders and cost of schemes over the step size."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
import time as clock
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from nsjax import schemes as families
from nsjax import status
from nsjax.analysis.comparison import observed_order
from nsjax.core.arguments import numbers
from nsjax.core.errors import InputError, nearest
from nsjax.core.scheme import Scheme
from nsjax.core.system import Problem
from nsjax.figures import new_figure, require_matplotlib
from nsjax.renamed import renamed_options
from nsjax.sweep import reductions
from nsjax.sweep.program import Plan, make_plan, refusals
from nsjax.sweep.run import deal
from nsjax.trajectory import RunError, Trajectory, failure_sentence
from nsjax.types import as_html

KEPT = {
    "t": reductions.samples("t"),
    "q": reductions.samples("q"),
    "v": reductions.samples("v"),
    "impacts": reductions.total("impacts"),
    "iterations": reductions.total("iterations"),
}
RESTING = 1e-9
"""Ratio of an entry's largest magnitude to that of all entries below which the entry counts as constant."""

LOST = 10.0
"""Relative error above which a run counts as diverged and is not drawn."""

COLUMNS = (
    "scheme", "dt", "steps", "error_q", "error_v", "order_q", "order_v", "impacts", "iterations",
    "seconds", "status",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkPrecision:
    """Table of `sweep_time_step`: one row per scheme and step size, columns as arrays of equal length.

    Args:
        scheme: names of the schemes.
        dt: step size [s].
        steps: number of steps.
        error_q, error_v: mean over rows and entries of the distance from the reference, every entry
            relative to its largest magnitude in the reference (to that of all entries where it is
            constant); infinite for a failed run.
        order_q, order_v: observed order between this step size and the next larger one of the same
            scheme; nan for the largest, and next to runs that failed or diverged.
        impacts: number of impacts.
        iterations: number of iterations of the contact solver, in all steps.
        seconds: CPU time of the run [s], without compilation; the least of a few runs. It includes the
            fixed cost of a call, which `cost` separates from that of the steps.
        status: (rows,) bits of `nsjax.status`, 0 for a good run; `nsjax.status.DIVERGED` where an error is
            above `LOST`.
        failures: sentences of the failed runs.
    """

    scheme: tuple[str, ...]
    dt: np.ndarray
    steps: np.ndarray
    error_q: np.ndarray
    error_v: np.ndarray
    order_q: np.ndarray
    order_v: np.ndarray
    impacts: np.ndarray
    iterations: np.ndarray
    seconds: np.ndarray
    status: np.ndarray
    failures: tuple[str, ...]

    def of(self, scheme: str) -> WorkPrecision:
        """The rows of one scheme.

        Raises:
            InputError: for a name that is not in the table.
        """
        if scheme not in self.scheme:
            raise InputError(f"no scheme {scheme!r} in the table; {nearest(scheme, set(self.scheme))}")
        here = np.asarray([name == scheme for name in self.scheme])
        columns = {name: getattr(self, name)[here] for name in COLUMNS if name != "scheme"}
        return WorkPrecision(scheme=(scheme,) * int(here.sum()), failures=self.failures, **columns)

    def slope(self, scheme: str, of: str = "error_q", largest: float = np.inf, least: float = 0.0) -> float:
        """Least-squares order of a scheme over all step sizes with errors between ``least`` (above the
        error of the reference and rounding) and ``largest``; nan with fewer than two such step sizes.
        """
        rows = self.of(scheme)
        error = getattr(rows, of)
        fit = np.isfinite(error) & (error < largest) & (error > least)
        return observed_order(rows.dt[fit], error[fit]) if np.count_nonzero(fit) > 1 else float("nan")

    def cost(self, scheme: str) -> tuple[float, float]:
        """Fixed cost of a call and cost of a step [s], neither negative: least-squares line through the CPU
        times over the numbers of steps, with relative deviations; nan with fewer than two good runs.

        Limits: all steps count as equally expensive; shorter steps with fewer iterations lie below the
        line.
        """
        rows = self.of(scheme)
        good = (rows.status == 0) & (rows.seconds > 0.0)
        if np.count_nonzero(good) < 2:
            return float("nan"), float("nan")
        time, steps = rows.seconds[good], rows.steps[good].astype(float)
        matrix = np.stack([np.ones_like(steps), steps], axis=1) / time[:, None]
        fixed, each = np.linalg.lstsq(matrix, np.ones_like(time), rcond=None)[0]
        # a negative cost is set to zero, and the other cost fitted alone
        if fixed < 0.0:
            return 0.0, float(np.sum(steps / time) / np.sum((steps / time) ** 2))
        if each < 0.0:
            return float(np.sum(1.0 / time) / np.sum(1.0 / time**2)), 0.0
        return float(fixed), float(each)

    def csv(self) -> str:
        """The table as comma-separated values with a heading."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(COLUMNS)
        for k, name in enumerate(self.scheme):
            row = [getattr(self, column)[k] for column in COLUMNS[1:]]
            writer.writerow([name, *(f"{float(x):.9g}" for x in row)])
        return buffer.getvalue()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the table to a ``.csv`` file, or its figure to a ``.png``, ``.pdf`` or ``.svg`` file."""
        if os.fspath(path).endswith(".csv"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.csv())
        else:
            self.figure().savefig(path, dpi=200)

    def __str__(self) -> str:
        width = max(len(name) for name in self.scheme)
        lines = [
            f"{'scheme':{width}} {'dt':>9} {'steps':>9} {'error q':>9} {'error v':>9} {'order q':>7} "
            f"{'order v':>7} {'impacts':>7} {'seconds':>9}"
        ]
        for k, name in enumerate(self.scheme):
            lines.append(
                f"{name:{width}} {self.dt[k]:9.3g} {self.steps[k]:9d} {self.error_q[k]:9.2e} "
                f"{self.error_v[k]:9.2e} {self.order_q[k]:7.2f} {self.order_v[k]:7.2f} "
                f"{self.impacts[k]:7d} {self.seconds[k]:9.2e}{self._mark(k)}"
            )
        for name in dict.fromkeys(self.scheme):
            fixed, each = self.cost(name)
            if np.isfinite(fixed):
                lines.append(f"{name:{width}} CPU time: {fixed:.2e} s a call and {each:.2e} s a step")
            slopes = [self.slope(name, of, largest=LOST) for of in ("error_q", "error_v")]
            if np.any(np.isfinite(slopes)):
                lines.append(f"{name:{width}} fitted slopes: q {slopes[0]:.2f}, v {slopes[1]:.2f}")
        return "\n".join(lines)

    def _mark(self, k: int) -> str:
        bits = int(self.status[k])
        return "" if bits == 0 else "  DIVERGED" if bits == status.DIVERGED else "  FAILED"

    def _repr_html_(self) -> str:
        return as_html(self)

    def figure(self, of: str = "error_q") -> Any:
        """Error over step size and error over CPU time as a matplotlib figure without a window; failed and
        diverged runs (`LOST`) are left out.

        Raises:
            InputError: if matplotlib is missing (extra ``plot``).
        """
        require_matplotlib()
        from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

        figure = new_figure(figsize=(7.0, 3.2), layout="constrained")
        by_step, by_cost = figure.subplots(1, 2, sharey=True)
        for k, name in enumerate(dict.fromkeys(self.scheme)):
            rows = self.of(name)
            error = np.where(getattr(rows, of) < LOST, getattr(rows, of), np.nan)
            style: Any = {
                "marker": "osD^v<>PX*hpd"[k % 13],
                "linestyle": "--" if k >= 10 else "-",
                "markersize": 3.5,
                "linewidth": 1.0,
                "color": f"C{k % 10}",
            }
            by_step.loglog(rows.dt, error, label=name, **style)
            by_cost.loglog(rows.seconds, error, **style)
        by_step.set(xlabel="step size [s]", ylabel=f"{of.replace('error_', 'error of ')} [-]")
        by_cost.set(xlabel="CPU time [s]")
        by_step.legend(fontsize="x-small", frameon=False)
        for axis in (by_step.xaxis, by_step.yaxis, by_cost.xaxis):  # a decade and less has labels, too
            decades = np.ptp(np.log10(axis.get_view_interval()))
            subs = (1.0, 3.0) if decades < 3.0 else (1.0,)
            few: Any = MaxNLocator(2) if decades < 1.0 else LogLocator(subs=subs, numticks=6)
            axis.set_major_locator(few)
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
        return figure


@renamed_options(rows="samples")
def sweep_time_step(
    problem: Problem,
    schemes: Scheme | Sequence[Scheme] | Mapping[str, Scheme],
    dts: Sequence[float],
    *,
    time: float,
    samples: int,
    reference: Any = None,
    repeats: int = 3,
) -> WorkPrecision:
    """Runs schemes with several step sizes to common output times and compares them with a reference.

    Each scheme is one compiled program for all step sizes. The error of an entry is averaged in time
    (an L1 norm): at a jump of the velocity a computed motion is wrong by a finite amount, but only for
    a time that shrinks with the step size, so that order 1 shows as order 1.

    Args:
        problem: system, parameters and initial state.
        schemes: one scheme, several, or a mapping of names to schemes.
        dts: step sizes [s]; ``time / samples`` must be a whole number of each step size.
        time: duration [s].
        samples: number of equidistant output times after the start.
        reference: a `Trajectory` with them, a pair of arrays ``q (samples + 1, nq)``, ``v (samples + 1,
            nv)`` or a function ``t -> (q, v)`` of one time; None: the scheme of highest order among the
            given ones at an eighth of the shortest step. Such a reference can show that schemes agree, not
            that they are right, and favours its scheme.
        repeats: number of timed repetitions of each run.

    Returns:
        A `WorkPrecision` table; ``print`` shows it, ``save`` writes it as CSV or figure.

    Raises:
        InputError: for step sizes that do not fit, a reference of another shape, a start that cannot run.
        RunError: if the run that makes the reference fails.

    Example:
        >>> import nsjax
        >>> import numpy as np
        >>> from nsjax import models, schemes
        >>> chain = models.mass_spring_chain(support="constraint")
        >>> table = nsjax.sweep_time_step(
        ...     chain, schemes.newmark(), [0.05, 0.025, 0.0125], time=1.0, samples=4, repeats=1
        ... )
        >>> round(table.slope("newmark"), 1)
        2.0
    """
    if isinstance(schemes, Mapping):
        named = dict(schemes)
    else:
        several = [schemes] if isinstance(schemes, Scheme) else list(schemes)
        named = {getattr(scheme, "name", repr(scheme)): scheme for scheme in several}
        if len(named) < len(several):
            raise InputError(
                "sweep_time_step: two schemes have the same name; give a mapping of names to them"
            )
    if not named or not all(isinstance(scheme, Scheme) for scheme in named.values()):
        raise InputError(
            f"sweep_time_step: schemes = {schemes!r}; give schemes, schemes.moreau() for instance"
        )
    sizes = numbers("sweep_time_step", "dts", dts).reshape(-1)
    if sizes.size == 0 or len(set(sizes.tolist())) < sizes.size:
        raise InputError(f"sweep_time_step: dts = {sizes.tolist()}; give different step sizes")
    sizes = np.sort(sizes)[::-1]
    plans = {name: _plan(problem, scheme, sizes, time, samples) for name, scheme in named.items()}
    q, v = _reference(reference, problem, named, sizes, time, samples)
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    failures: list[str] = []
    for name, plan in plans.items():
        _fill(columns, failures, name, plan, q, v, repeats)
    arrays = {name: np.asarray(x) for name, x in columns.items() if name != "scheme"}
    return WorkPrecision(scheme=tuple(columns["scheme"]), failures=tuple(failures), **arrays)


def _plan(problem: Problem, scheme: Scheme, sizes: np.ndarray, time: float, samples: int) -> Plan:
    plan = make_plan(problem, scheme, {"dt": sizes}, "zip", KEPT, None, None, time, None, samples, 0)
    refusals(plan)  # raises: the start is common to all lanes
    return plan.undifferentiated


def _one(plan: Plan, lane: int) -> Any:
    """Results of one lane, after waiting for them."""
    found, order = deal(plan, np.asarray([lane]), (jax.local_devices()[0],), 1)
    return jax.tree.map(lambda x: np.asarray(x)[order[0]], jax.block_until_ready(found))


def _reference(
    given: Any, problem: Problem, named: Mapping[str, Scheme], sizes: np.ndarray, time: float, samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities at the output times."""
    system = problem.system
    times = float(problem.state.t) + np.arange(samples + 1) * (time / samples)
    if given is None:
        orders = {
            name: getattr(families.REGISTRY.get(x.name), "order", (0,))[0] for name, x in named.items()
        }
        best = max(orders, key=lambda name: orders[name])
        finer = 8  # ratio of the shortest step size of the table to that of a computed reference
        plan = _plan(problem, named[best], sizes[-1:] / finer, time, samples)
        found = _one(plan, 0)
        if int(found.status):
            raise RunError(
                f"sweep_time_step: the reference failed: {failure_sentence(system, found.first_failure)}"
            )
        return found.values["q"], found.values["v"]
    if isinstance(given, Trajectory):
        at = np.asarray(given.t)
        if at.shape != times.shape or np.max(np.abs(at - times)) > 1e-9 * time:
            raise InputError(
                f"sweep_time_step: the reference has {at.size} rows until t = {at[-1]:g}; give one with "
                f"{samples + 1} at equal distances until t = {times[-1]:g}"
            )
        given = given.q, given.v
    elif callable(given):
        both = [given(float(t)) for t in times]
        given = [x[0] for x in both], [x[1] for x in both]
    q, v = (np.asarray(x, float) for x in given)
    if q.shape != (samples + 1, system.nq) or v.shape != (samples + 1, system.nv):
        raise InputError(
            f"sweep_time_step: the reference has shapes {q.shape} and {v.shape}; it needs "
            f"{(samples + 1, system.nq)} and {(samples + 1, system.nv)}"
        )
    return q, v


def _error(found: np.ndarray, reference: np.ndarray) -> float:
    size = np.max(np.abs(reference), axis=0)
    largest = np.max(size) or 1.0
    # a constant entry, of a constrained coordinate for instance, changes by rounding and drift only
    error = np.mean(np.abs(found - reference) / np.where(size > RESTING * largest, size, largest))
    return float(error) if np.isfinite(error) else float("inf")


def _order(error: float, before: float | None, ratio: float) -> float:
    good = before is not None and 0.0 < error < LOST and 0.0 < before < LOST
    return float(np.log(before / error) / np.log(ratio)) if good and before is not None else float("nan")


def _fill(
    columns: dict[str, list[Any]], failures: list[str], name: str, plan: Plan, q: np.ndarray,
    v: np.ndarray, repeats: int,
) -> None:  # fmt: skip
    """The rows of one scheme, step sizes from the largest to the smallest."""
    _one(plan, 0)  # compiles
    before: dict[str, float] = {}
    for lane, dt in enumerate(plan.lengths.dt):
        seconds = []
        for _ in range(max(1, repeats)):
            begin = clock.process_time()
            found = _one(plan, lane)
            seconds.append(clock.process_time() - begin)
        good = int(found.status) == 0
        errors = {k: _error(found.values[k], x) if good else float("inf") for k, x in (("q", q), ("v", v))}
        ratio = plan.lengths.dt[lane - 1] / dt if lane else 1.0
        if not good:
            failures.append(
                f"{name}, dt = {dt:g}: {failure_sentence(plan.one.system, found.first_failure)}"
            )
        bits, far = int(found.status), max(errors.values())
        if good and far > LOST:
            bits = status.DIVERGED
            failures.append(
                f"{name}, dt = {dt:g}: it leaves the reference by {far:.2g} of its size; take a smaller dt"
            )
        row = {
            "scheme": name, "dt": float(dt), "steps": int(plan.lengths.every[lane]) * plan.lengths.rows,
            "impacts": int(np.sum(found.values["impacts"])), "iterations": int(found.values["iterations"]),
            "seconds": min(seconds), "status": bits,
        }  # fmt: skip
        for k, error in errors.items():
            row |= {f"error_{k}": error, f"order_{k}": _order(error, before.get(k), ratio)}
        before = errors
        for column, value in row.items():
            columns[column].append(value)
