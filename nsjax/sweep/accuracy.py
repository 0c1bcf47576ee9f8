"""`check_accuracy`: errors of a run and of its derivatives, estimated from runs with shorter steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.analysis.comparison import Outputs, output_names, reader
from nsjax.analysis.events import Table
from nsjax.core import checks
from nsjax.core.errors import InputError
from nsjax.core.keys import Key, number_at, parse_parameter
from nsjax.core.scheme import Scheme
from nsjax.core.system import Problem
from nsjax.jaxtools.owned import compiled_for
from nsjax.sweep import program
from nsjax.sweep.program import Plan, make_plan, refusals
from nsjax.sweep.work_precision import RESTING
from nsjax.trajectory import RunError, Trajectory, failure_sentence
from nsjax.types import Array

RUNS = (1.0, 1.3, 1.618, 2.0)
"""Numbers of steps of the runs relative to the checked run. With dt and dt/2 alone an impact may lie at the
same fraction of a step in both runs, whose difference then says nothing; ratios that are not simple
fractions avoid that."""


@dataclasses.dataclass(frozen=True)
class Accuracy:
    """One output of a run, or its derivative, with an estimate of the error.

    Args:
        output: name of the output.
        parameter: name of the parameter of the derivative, empty for the output itself.
        value: value with the checked step size.
        error: estimated distance from the motion; infinite where the value of a run is not finite.
        relative: ``error`` over the largest value in the runs, or over that of all outputs where this
            output is constant.
    """

    output: str
    parameter: str
    value: float
    error: float
    relative: float


@dataclasses.dataclass(frozen=True)
class AccuracyCheck:
    """Result of `check_accuracy`; prints as a table.

    Args:
        table: rows of `Accuracy`: outputs first, then their derivatives.
        steps: (4,) numbers of steps of the runs.
        impacts: (4,) numbers of impacts of the runs.
        values: (4, rows) values of the table's rows in all runs.
    """

    table: Table[Accuracy]
    steps: tuple[int, ...]
    impacts: tuple[int, ...]
    values: np.ndarray = dataclasses.field(repr=False, compare=False)

    @property
    def worst(self) -> float:
        """The largest relative error."""
        return float(np.max(self.table.column("relative")))

    def limits(self, order: float) -> np.ndarray:
        """Values of the table (rows,) extrapolated to step size zero: ``x_0`` of the least-squares fit
        ``x_0 + c dt^order`` to the four runs.

        Args:
            order: order of the runs, which the caller must know: 2 for smooth motions, and for runs of
                second order with `schemes.localized`.

        Returns:
            Values (rows,), not finite where a run is not.

        Raises:
            InputError: for an order that is not a positive number.

        Limits: errors of runs of first order depend on where impacts lie within their steps, and have no
        limit of this form. In smooth motion the remaining error is of order three; with located impacts as
        well, but with scatter.

        Source: Richardson, Phil. Trans. A 226 (1927); none of the papers.

        Example:
            >>> import nsjax
            >>> from nsjax import models, schemes
            >>> chain = models.mass_spring_chain()
            >>> check = nsjax.check_accuracy(chain, schemes.moreau_theta(), dt=1e-3, time=0.1)
            >>> check.limits(order=2).shape == (len(check.table),)
            True
        """
        if not (np.ndim(order) == 0 and 0.0 < order < np.inf):
            raise InputError(f"limits: order = {order!r}; give a positive number, such as 2")
        lengths = (self.steps[0] / np.asarray(self.steps)) ** order
        away = lengths - np.mean(lengths)
        rates = away @ self.values / (away @ away)
        return np.asarray(np.mean(self.values, axis=0) - np.mean(lengths) * rates)

    def __str__(self) -> str:
        steps, impacts = (", ".join(map(str, x)) for x in (self.steps, self.impacts))
        said = f"runs of {steps} steps have {impacts} impacts"
        if len(set(self.impacts)) > 1:
            said += ": shorter steps meet impacts that longer ones miss, or resolve an accumulation"
        # relative error above which an estimate says only that the run does not approximate the motion
        unresolved = 1.0
        if not self.worst < unresolved:
            said += (
                ".\nAn error is as large as its value, or a value is not finite: steps of this size do "
                "not resolve the motion, or a mode is faster than they allow. Take smaller ones, or a "
                "scheme that damps fast modes"
            )
        return f"{self.table}\n{said}"


def check_accuracy(
    problem: Problem, scheme: Scheme, *, dt: float, steps: int | None = None, time: float | None = None,
    outputs: Outputs = None, parameters: Sequence[str] = (), gradient: str | None = None,
) -> AccuracyCheck:  # fmt: skip
    """Estimates how far a run, and its derivatives, are from the motion that it approximates.

    The run is repeated with steps down to ``dt / 2``. Where errors are of first order, as after impacts,
    the error of the run is ``2 (x(dt) - x(dt/2))``. The estimate takes the largest difference between four
    runs, since an impact lies at a random place of its step and a single difference may vanish. All runs
    share one program, with derivatives in forward mode.

    Args:
        problem: a `Problem`.
        scheme: for instance ``schemes.moreau()``.
        dt: the step size whose accuracy is asked for [s].
        steps, time: number of steps or duration [s] of the run with dt, see `simulate`.
        outputs: names of quantities whose final values are checked, as in `Trajectory.sensor`
            (``"theta1"``, ``"energy"``, ``"rod.position[0]"``, ``"foot.force[0]"``), or a module-level
            function ``traj -> (k,)`` of the first and last row; None: all of ``q`` and ``v``.
        parameters: names of scalars, as in `check_gradient`, by which the outputs are differentiated.
        gradient: ``"saltation"`` or ``"discrete"``, as in `simulate`.

    Returns:
        An `AccuracyCheck`. Its ``limits(order)`` are the values extrapolated to step size zero.

    Raises:
        InputError: for an unknown parameter or output, or a whole vector; RunError: if a run fails.

    Limits: an estimate, not a bound: in one of forty runs of a bouncing ball the error was six times as
    large; the mean error is a third smaller. In smooth motion of order two the estimate is one and a half
    times the error. It is meaningless once the motion is chaotic, and for a derivative that does not
    converge: `check_gradient` compares with secants.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> ball = models.bouncing_ball(height=1.0, restitution=0.8)
        >>> run = dict(time=0.8, outputs=["y"], parameters=["restitution"])
        >>> coarse = nsjax.check_accuracy(ball, schemes.moreau(), dt=1e-3, **run)
        >>> fine = nsjax.check_accuracy(ball, schemes.moreau(), dt=1e-4, **run)
        >>> 5 < coarse.worst / fine.worst < 20
        True
    """
    count = checks.check_lengths(dt, steps, time, 1, 0)
    checks.check_gradient(scheme, gradient)
    if count < 2:
        raise InputError(f"check_accuracy: steps = {count}; give a run of at least 2 steps")
    keys = tuple(_key(problem, name) for name in parameters)
    names, read = reader(problem, outputs)
    counts = tuple(round(count * x) for x in RUNS)
    # the runs as lanes of a sweep, with equal parameters and different step sizes
    sizes = np.asarray([dt * count / n for n in counts])
    base = {"params": problem.params, "state": problem.state}
    over: dict[str, Any] = {"dt": sizes}
    for key in keys:
        over[key.text] = np.full(len(sizes), number_at(base, key, "check_accuracy", key.text))
    length = float(sizes[0]) * counts[0]
    plan = make_plan(
        problem, scheme, over, "zip", _RunOutputs(read), None, None, length, None, 1, 0
    )  # fmt: skip
    wrong = refusals(plan)
    if wrong:
        raise InputError(next(iter(wrong.values())))
    wanted = gradient or scheme.gradient if keys else "discrete"
    made = dataclasses.replace(plan.common.scheme, gradient=wanted)
    plan = dataclasses.replace(plan, common=dataclasses.replace(plan.common, scheme=made))
    found = [_one(plan, k, len(keys)) for k in range(len(counts))]
    values, slopes, impacts = (np.stack([np.asarray(x[k]) for x in found]) for k in range(3))
    names = output_names(names, outputs, values.shape[1])
    rows = _rows(names, "", values)
    for j, parameter in enumerate(parameters):
        rows += _rows(names, parameter, slopes[:, :, j])
    table = Table(records=tuple(rows), note="", kind=Accuracy)
    numbers = [values, *np.moveaxis(slopes, 2, 0)]
    return AccuracyCheck(table, counts, tuple(int(x) for x in impacts), np.concatenate(numbers, axis=1))


def _rows(names: Sequence[str], parameter: str, values: np.ndarray) -> list[Accuracy]:
    """Rows of the table from the values of the runs; the first run has the longest step."""
    # ratio of the error with the longest step to its difference from the shortest: two for order one
    factor = 2.0
    errors = factor * np.ptp(values, axis=0)
    sizes = np.max(np.abs(values), axis=0)
    largest = np.max(sizes, initial=0.0, where=np.isfinite(sizes))
    sizes = np.where(sizes < RESTING * largest, largest, sizes)
    lost = ~np.all(np.isfinite(values), axis=0)
    errors = np.where(lost, np.inf, errors)
    relative = np.divide(errors, sizes, out=np.zeros_like(errors), where=(sizes > 0.0) & ~lost)
    relative = np.where(lost, np.inf, relative)
    return [
        Accuracy(name, parameter, *map(float, numbers))
        for name, *numbers in zip(names, values[0], errors, relative, strict=True)
    ]


def _key(problem: Problem, name: str) -> Key:
    """Key of a scalar parameter."""
    key = parse_parameter(name, "check_accuracy")
    number_at({"params": problem.params, "state": problem.state}, key, "check_accuracy", name)
    return dataclasses.replace(
        key, text=".".join(key.path) + ("" if key.index is None else f"[{key.index}]")
    )


@dataclasses.dataclass(frozen=True)
class _RunOutputs:
    """Outputs and number of impacts of a run."""

    read: Any

    def __call__(self, traj: Trajectory) -> tuple[Array, Array]:
        impacts = jnp.zeros((), int) if traj.impacts is None else jnp.sum(traj.impacts)
        return jnp.ravel(self.read(traj)), impacts


def _one(plan: Plan, k: int, parameters: int) -> tuple[Array, Array, Array]:
    """Outputs, their derivatives and the number of impacts of one run."""
    lane = jax.tree.map(lambda x: jnp.asarray(x[k]), plan.lanes(np.arange(len(RUNS))))
    values, slopes, impacts, found = _differentiated(plan.one, plan.common, lane, parameters)
    if int(found.status):
        first = jax.tree.map(np.asarray, found.first_failure)
        raise RunError(failure_sentence(plan.one.system, first))
    return values, slopes, impacts


@compiled_for("one", "parameters")
def _differentiated(
    one: program.LaneProgram, common: program.SharedData, lane: program.Lane, parameters: int
) -> tuple[Array, Array, Array, program.LaneResults]:
    """Outputs and their derivatives, in forward mode, by the varied numbers after the step size."""

    def run(x: tuple[Array, ...]) -> tuple[Array, tuple[Array, Array, program.LaneResults]]:
        found = program.run_lane(one, common, dataclasses.replace(lane, values=(lane.values[0], *x)))
        values, impacts = found.values
        return values, (values, impacts, dataclasses.replace(found, values=None))

    if not parameters:
        _, (values, impacts, found) = run(())
        return values, jnp.zeros((values.shape[0], 0)), impacts, found
    slopes, (values, impacts, found) = jax.jacfwd(run, has_aux=True)(lane.values[1:])
    return values, jnp.stack(slopes, axis=1), impacts, found
