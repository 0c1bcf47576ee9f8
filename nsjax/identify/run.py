"""`identify`: parameters of a model from measured data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from nsjax import gradient_notes
from nsjax.core import InputError, Problem, Scheme
from nsjax.core.arguments import check_signs, numbers
from nsjax.core.errors import check_choice, check_whole
from nsjax.identify import intervals, losses, search
from nsjax.identify import statistics as bends
from nsjax.identify.intervals import INTERVALS, by_leaving_out, by_resampling, kind_of_intervals
from nsjax.identify.objective import CostPoint, Objective, remedy
from nsjax.identify.plan import InitialState, make_plan, with_numbers
from nsjax.identify.records import Estimate, Fit, Recording, Run
from nsjax.identify.statistics import (
    Statistics,
    describe,
    identifiability,
    noise_alone,
    quantile,
    step_error,
)
from nsjax.identify.transforms import Transform
from nsjax.renamed import renamed_options


@renamed_options(tolerance="cost_tolerance")
def identify(
    problem: Problem,
    scheme: Scheme,
    data: Recording | Sequence[Recording],
    train: Mapping[str, Transform],
    *,
    dt: float,
    method: Any = "levenberg_marquardt",
    starts: int = 1,
    spread: float = 0.5,
    seed: int = 0,
    loss: str | losses.Loss = "squares",
    gradient: str | None = None,
    cost_tolerance: float = 1e-8,
    max_runs: int = 60,
    level: float = 0.95,
    intervals: str | None = None,
    resamples: int = 200,
    curvature: str = "linear",
    holdout: Recording | Sequence[Recording] | None = None,
    stop: Any = None,
    resets: Sequence[tuple[Any, Any]] = (),
) -> Estimate:
    """Estimates numbers of a model from recordings of its motion.

    Minimises ``sum rho(((model - measured) / noise)^2) / 2`` over all unmasked values. The model runs with
    steps ``dt`` from the initial time; values between steps are interpolated linearly. Derivatives are
    those of the run, in forward mode, through impacts as ``gradient`` says. Intervals come from the problem
    linearised at the estimate and the noise level, or from the scatter between recordings, see
    ``intervals``; where the fit shows that they do not have their level, ``estimate.holds`` is False and
    the level is not printed.

    One compiled program serves all searches, iterations and seeds: numbers, data of the same shape, step
    size and times may change without compiling again. Recordings and searches are its lanes, as in
    `nsjax.sweep`.

    Args:
        problem: system, parameters (start of the search, unless a transform sets another), initial state.
        scheme: for instance ``schemes.generalized_alpha()``.
        data: a `Recording` or several, each with its own initial state.
        train: the trained numbers and their ranges, see `nsjax.transforms`. Keys: ``"friction"`` or
            ``"params.friction"``, entries ``"friction[2]"``, whole arrays; of the initial state
            ``"state.q[0]"``, ``"state.v"``, and ``"state.xi[3]"``, an increment by `System.retract` (for
            rotations), initially zero. Every recording has its own numbers of the initial state.
        dt: step size [s].
        method: ``"levenberg_marquardt"``, ``"gauss_newton"`` (undamped, with halved steps), ``"newton"``
            (exact Hessian, in a trust region), or an optimiser of optax, ``optax.adam(0.02)`` for
            instance.
        starts: number of searches: one from the problem's values, the others from random values, anywhere
            in an interval, else within a factor ``1 + spread``.
        spread, seed: spread and seed of the random values.
        loss: ``"squares"``, ``"huber"``, ``"soft_l1"``, ``"cauchy"``, or an `nsjax.losses.Loss`.
        gradient: ``"saltation"`` or ``"discrete"``, see `simulate`; None: the scheme's own.
        cost_tolerance: the search has converged when the predicted relative reduction of the cost is below
            it.
        max_runs: largest number of points that a search evaluates.
        level: probability of the confidence intervals.
        intervals: source of the intervals. ``"noise"``: the linearised model and the noise level; right if
            model and data differ by independent noise alone. ``"recordings"``: the scatter between
            recordings (each left out in turn, to first order); right under model error and robust losses
            as well. ``"profile"``: like the noise, but with ends where the cost itself, least over all
            other numbers, has risen by the amount of the level; some runs for every end. ``"bootstrap"``:
            fits to recordings drawn with replacement. None: recordings if there are at least ten, else
            noise. Numbers that belong to one recording have the intervals of the noise.
        resamples: number of fits of the bootstrap; each needs some runs of all recordings.
        curvature: second derivatives of the cost for intervals of ``"noise"`` and ``"recordings"``.
            ``"linear"``: those of the linearised model (Gauss and Newton's). ``"exact"``: with the term of
            the model's curvature times the residuals, which for squares is the observed information; the
            estimate then has both covariances.
        holdout: recordings kept from the fit; the model's error for them is reported.
        stop, resets: of every run, see `simulate`: a latch that closes, a bolt that breaks, at instants
            that trained numbers move. After a stop the model stays as it is there; leave later values out
            of the recording, unless what is measured stays as well. Define the functions once, at module
            level.

    Returns:
        An `Estimate`. ``estimate.success`` is False unless the search converged and every number is
        identifiable and possible; ``estimate.messages`` report a number at a bound, a zero gradient,
        residuals larger than the noise, and a step that moves the estimate, with one that will do.

    Raises:
        InputError: before any run, for input that cannot be fitted; after the first runs, if the model
            failed at the start of every search.

    Second derivatives, for ``method="newton"`` and ``curvature="exact"``, are taken forward over forward
    in a program of their own: ``p^2`` tangents for ``p`` numbers of a recording. Impacts must be located
    inside their step (`nsjax.schemes.localized`), or there must be none.
    Intervals with either curvature are ellipses; those of a profile are not.

    Limits: a run of a time-stepping scheme is a saw-tooth function of the parameters (an impact stays in
        its step until they move it into the next) and has a discretisation error: choose ``dt`` so small
        that both lie well below the noise. A run with half of ``dt`` at the end tells whether it is. Where
        the sequence of impacts changes, the cost has kinks or jumps; use several starts.

    Example:
        >>> import numpy as np
        >>> import nsjax
        >>> from nsjax import models, schemes, transforms
        >>> ball = models.bouncing_ball(height=1.0, restitution=0.6)
        >>> t, fall = np.linspace(0.0, 0.9, 10), np.sqrt(2.0 / 9.81)  # one bounce with e = 0.8, closed form
        >>> up = 0.8 * 9.81 * fall * (t - fall) - 9.81 / 2 * (t - fall) ** 2
        >>> y = 0.05 + np.where(t < fall, 1.0 - 9.81 / 2 * t**2, up)
        >>> found = nsjax.identify(
        ...     ball, schemes.moreau(), nsjax.Recording(times=t, values={"y": y}, noise=1e-3),
        ...     {"restitution": transforms.interval(0.0, 1.0)}, dt=1e-3,
        ... )
        >>> round(found["restitution"], 2), found.success
        (0.8, True)
    """
    kind = losses.read(loss)
    plan = make_plan(problem, scheme, data, train, dt, gradient, holdout, stop, resets)
    objective = Objective(plan, kind, starts)
    check_whole("identify: starts", starts, 1)
    check_whole("identify: max_runs", max_runs, 1)
    if not 0.0 < numbers("identify", "level", level) < 1.0:
        raise InputError(f"identify: level = {level!r}; it lies between 0 and 1, 0.95 for instance")
    if not spread > 0.0:
        raise InputError(f"identify: spread = {spread!r}; it must be positive")
    if objective.loss.kind != "squares" and not objective.plan.known:
        raise InputError(
            f"identify: loss = {objective.loss.kind!r} needs the noise level of the data; give noise= of "
            "Recording"
        )
    count, size = objective.count, len(objective.transforms)
    if count < size:
        raise InputError(f"identify: {size} numbers cannot be found from {count} values; train fewer")
    _check_intervals(objective, intervals, resamples)
    check_choice("identify: curvature", curvature, bends.KINDS)
    first = objective.to_z(objective.begin)
    rng = np.random.default_rng(seed)
    begins = [first] + [_sample(objective, spread, rng) for _ in range(starts - 1)]
    ended = search.search(objective, begins, method, cost_tolerance, max_runs)
    ended.sort(key=lambda s: np.inf if s.best is None else s.best.cost)
    best = ended[0].best
    if best is None:
        best = objective.points([first])[0]
        raise InputError(
            f"identify: no search could begin: {ended[0].why} (status {best.status.tolist()}); "
            f"{remedy(best.fault)}"
        )
    if curvature == "linear":
        best = dataclasses.replace(best, bend=None, hessian=None)
    elif best.hessian is None:
        best = objective.points([best.z], curved=True)[0]
    draw = {"resamples": resamples, "seed": seed, "tolerance": cost_tolerance, "most": max_runs}
    return _report(objective, ended, best, level, kind_of_intervals(objective, intervals), draw)


def _check_intervals(objective: Objective, intervals: str | None, resamples: int) -> None:
    if intervals is not None:
        check_choice("identify: intervals", intervals, INTERVALS)
    if intervals in INTERVALS[2:] and (objective.fitted < 2 or not objective.shared):
        raise InputError(
            f"identify: intervals = {intervals!r} needs several recordings with a number in common; there "
            f"are {objective.fitted}: give more, or intervals='noise'"
        )
    if intervals == "profile" and objective.loss.kind != "squares":
        raise InputError(
            f"identify: intervals = 'profile' with loss = {objective.loss.kind!r}, whose rise has no known "
            "distribution; take loss='squares', or intervals='noise'"
        )
    check_whole("identify: resamples", resamples, 2)


def _sample(objective: Objective, spread: float, rng: np.random.Generator) -> np.ndarray:
    pairs = zip(objective.transforms, objective.begin, strict=True)
    return objective.to_z(np.asarray([t.sample(np.asarray(x), spread, rng) for t, x in pairs], float))


def _intervals(
    objective: Objective, best: CostPoint, level: float, kind: str, draw: dict[str, Any]
) -> tuple[Statistics, np.ndarray, str, str]:
    """Statistics, intervals (p, 2), and what is to be said of their level and of the step size."""
    plan, found, why = objective.plan, describe(objective, best), ""
    ends = np.full((len(best.z), 2), np.nan)
    if best.hessian is not None:
        found, why = bends.observed(objective, best, found)
    half = quantile(level, None if plan.known else objective.freedom) * found.deviation_z
    if kind == "bootstrap":
        scatter = by_resampling(objective, best, found, level=level, **draw)
        found, ends, why = scatter.statistics, scatter.quantiles, scatter.sentence
    elif kind == "recordings":
        scatter = by_leaving_out(objective, best, found)
        found, why, shared = scatter.statistics, scatter.sentence, len(objective.shared)
        wide = quantile(level, objective.fitted - 1) * found.deviation_z
        half[:shared] = wide[:shared]
    else:
        if kind == "profile":
            effort = draw["tolerance"], draw["most"]
            ends, why = intervals.ends_of(objective, best, found, half, *effort)
        why = why or noise_alone(objective, best, found)
    low, high = objective.walls(objective.to_z(objective.begin))
    walled = np.asarray([t.kind in ("free", "box") for t in objective.transforms])
    for k, s in enumerate((-1, 1)):
        ends[:, k] = np.where(np.isnan(ends[:, k]), best.z + s * half, ends[:, k])
    step = step_error(objective, best, 0.5 * (ends[:, 1] - ends[:, 0]))
    for k, s in enumerate((-1, 1)):
        end = ends[:, k] + s * step.error
        ends[:, k] = np.where(walled, np.clip(end, low, high), end)
    with np.errstate(over="ignore"):
        return found, np.stack([objective.to_x(end) for end in ends.T], axis=1), why, step.sentence


def _report(
    objective: Objective, ended: list[search.Search], best: CostPoint, level: float, kind: str,
    draw: dict[str, Any],
) -> Estimate:  # fmt: skip
    plan = objective.plan
    found, interval, why, coarse = _intervals(objective, best, level, kind, draw)
    why = why if ended[0].converged else "the search has not converged"
    x = objective.to_x(best.z)
    unknown = identifiability(objective, found, int(best.impacts.sum()))
    messages = [_ending(ended), *_walls(objective, x), *unknown, *_quality(objective, best, found)]
    walls, linear, hessian = bool(_walls(objective, x)), None, None
    fitted = _fitted(objective, x)
    strange = _strange(fitted)
    messages += strange
    if best.hessian is not None:
        messages.append(bends.beside(objective, best))
        linear, hessian = describe(objective, best).covariance, bends.hessian(objective, best)
    messages += [coarse] if coarse else []
    if why:
        messages.append(f"the intervals are no {100 * level:g} % intervals: {why}")
    runs = tuple(
        Run(
            objective.to_x(s.best.z), s.best.cost, s.converged, s.why,
            np.asarray([c for c, _ in s.history]), np.asarray([objective.to_x(z) for _, z in s.history]),
        )
        for s in ended if s.best is not None
    )  # fmt: skip
    lost = any(sentence.startswith("not identifiable") for sentence in unknown)
    return Estimate(
        names=objective.names, values=x, interval=interval, covariance=found.covariance,
        singular_values=found.singular_values, directions=found.directions,
        success=bool(ended[0].converged and not lost and not strange and np.any(best.matrix)),
        messages=tuple(messages), chi_squared=found.variance if plan.known else None,
        noise=None if plan.known else float(np.sqrt(found.variance)), runs=runs,
        fits=_fits(objective, x), problem=fitted, calls=objective.calls, level=level,
        intervals=kind, holds=not why and not walls, linear_covariance=linear, hessian=hessian,
    )  # fmt: skip


def _ending(ended: list[search.Search]) -> str:
    first = ended[0]
    sentence = f"{first.why} ({len(first.history)} accepted steps)"
    if len(ended) > 1 and first.best is not None:
        costs = [np.inf if s.best is None else s.best.cost for s in ended]
        same = sum(c <= 1.01 * costs[0] + 1e-12 for c in costs)
        sentence += f"; {same} of {len(ended)} searches end at this cost"
    return sentence


def _walls(objective: Objective, x: np.ndarray) -> list[str]:
    """Sentences about numbers at the ends of their ranges."""
    found = []
    numbers = zip(objective.names, objective.transforms, x, objective.begin, strict=True)
    for name, transform, value, start in numbers:
        end = transform.bound(float(value), float(start))
        if end is not None:
            found.append(
                f"at a bound: {name} = {value:.6g} lies at the end {end:g} of its range; the data may want "
                "it beyond, and its interval does not hold"
            )
    return found


def _strange(fitted: Problem) -> list[str]:
    """A sentence about estimated numbers that no body has, each of them within its range."""
    try:
        check_signs(fitted.params)
    except InputError as error:
        return [f"not possible: {error}; the data hardly tell these numbers apart: fix one of them"]
    return []


def _quality(objective: Objective, best: CostPoint, found: Statistics) -> list[str]:
    """Sentences about residuals and derivatives."""
    plan, sentences = objective.plan, []
    if plan.known:
        # chi squared per degree of freedom has the standard deviation sqrt(2 / f)
        if found.variance > 1.0 + 4.0 * np.sqrt(2.0 / objective.freedom):
            sentences.append(
                f"the residuals are {np.sqrt(found.variance):.3g} times the noise level: the model does "
                "not explain the data, the search ended at another minimum (starts= tries more), or the "
                "noise is larger than given"
            )
    else:
        sentences.append(f"noise level estimated from the residuals: {np.sqrt(found.variance):.3g}")
    bits = int(np.bitwise_or.reduce(best.notes)) if best.notes.size else 0
    for kind, sentence in gradient_notes.describe(bits & gradient_notes.SERIOUS):
        sentences.append(f"derivatives are {kind} at some events: {sentence}")
    return sentences


def _fits(objective: Objective, x: np.ndarray) -> tuple[Fit, ...]:
    """Every recording with the runs of the model at the start and at the end of the search."""
    plan = objective.plan
    tracks = list(range(len(plan.recordings)))
    before = objective.run([objective.begin], tracks).values
    after = objective.run([x], tracks).values
    found = []
    for k, recording in enumerate(plan.recordings):
        n = len(recording.times)
        columns: list[dict[str, np.ndarray]] = [{}, {}, {}, {}]
        for j, name in enumerate(plan.program.names):
            if name not in recording.values:
                continue
            known = np.where(plan.mask[k, :n, j], plan.values[k, :n, j], np.nan)
            entries = known, after[k, :n, j], before[k, :n, j], plan.noise[k, :n, j]
            for column, values in zip(columns, entries, strict=True):
                column[name] = np.asarray(values)
        name = recording.name or f"recording {k}"
        measured, model, start, noise = columns
        held = k >= plan.fitted
        found.append(Fit(name, recording.times, measured, model, start, noise, held))
    return tuple(found)


def _fitted(objective: Objective, x: np.ndarray) -> Problem:
    """The problem with the estimated parameters and, for a single recording, its estimated start."""
    plan, state = objective.plan, objective.plan.problem.state
    still: Any = np.zeros(plan.problem.system.nv)
    begun: Any = state.t, InitialState(q=state.q, v=state.v, xi=still)
    if plan.fitted == 1:
        begun = jax.tree.map(lambda a: a[0], (plan.common.tracks.time, plan.common.tracks.start))
    roots = ("params", "state") if plan.fitted == 1 else ("params",)
    params, state = with_numbers(plan.program, plan.common.params, begun[0], begun[1], x, roots)
    return dataclasses.replace(plan.problem, **jax.tree.map(np.asarray, {"params": params, "state": state}))
