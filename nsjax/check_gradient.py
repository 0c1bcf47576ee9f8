"""Comparison of derivatives of a run with secants that are wider than the teeth of the discrete map.

The end of a time-stepping run is a saw-tooth function of the parameters: an impact stays in its step until
a change of the data moves it into the next step. The derivative with ``gradient="discrete"`` and a narrow
difference quotient both give the slope of a tooth, and agree with each other; the motion has the slope of
the line through many teeth. A tooth is as wide as the change that moves an impact by one step,
``dt |dg/dt|`` for a change of the gap.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.analysis.comparison import (
    DEGREE,
    Outputs,
    changed_impacts,
    output_names,
    reader,
    secant_slopes,
    secant_width,
    verdict_of,
)
from nsjax.analysis.events import Table
from nsjax.contact.events import criteria_of
from nsjax.core import InputError, checks
from nsjax.core.keys import Key, number_at, parse_parameter, put, restarted
from nsjax.core.scheme import Scheme, all_notes
from nsjax.core.system import Problem, contact_names
from nsjax.gradient_notes import SERIOUS, describe
from nsjax.jaxtools.owned import compiled_for
from nsjax.renamed import renamed_options
from nsjax.simulate import simulate
from nsjax.trajectory import Trajectory
from nsjax.types import Array


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One derivative and its secant.

    Args:
        output, parameter: names.
        derivative: derivative of the scheme.
        secant: slope at the middle of the cubic fitted to runs within the width.
        uncertainty: its standard error, from the residuals of the fit, which are the teeth.
        width: half the width of the secant, in the unit of the parameter.
        shift: steps by which half the width moves the impact that moves most; zero without impacts.
        verdict: ``"agrees"``; ``"open"``: agrees, but within an uncertainty that leaves the sign of the
            slope open; ``"differs"``; ``"events change"``: differs, and the sequence of impacts changes
            within the width; ``"teeth"``: differs, but the secant is too narrow for a verdict;
            ``"not finite"``: the derivative is no number.
    """

    output: str
    parameter: str
    derivative: float
    secant: float
    uncertainty: float
    width: float
    shift: float
    verdict: str


@dataclasses.dataclass(frozen=True)
class GradientCheck:
    """Result of `check_gradient`; prints as a table with the events below it.

    Args:
        table: `Comparison` rows, parameter by parameter.
        impacts: number of impacts of the run itself.
        crossed: sentences about sequences of impacts that change within the width of a secant.
        notes: sentences about steps whose derivative is one-sided or undefined, and about the approach
            that is nearest to grazing (`Trajectory.margin` below `Criteria.near`).
        lost: sentences about derivatives that are not finite, with the parameter and the first such step.
    """

    table: Table[Comparison]
    impacts: int
    crossed: tuple[str, ...]
    notes: tuple[str, ...]
    lost: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether no derivative contradicts its secant."""
        return all(row.verdict in ("agrees", "open") for row in self.table)

    def __str__(self) -> str:
        lines = [str(self.table), f"{self.impacts} impacts"]
        lines += [f"not finite: {sentence}" for sentence in self.lost]
        lines += [f"crossed: {sentence}" for sentence in self.crossed]
        lines += [f"note: {sentence}" for sentence in self.notes]
        return "\n".join(lines)


@renamed_options(tolerance="secant_tolerance")
def check_gradient(
    problem: Problem, scheme: Scheme, *, parameters: Sequence[str], dt: float, steps: int | None = None,
    time: float | None = None, outputs: Outputs = None, gradient: str | None = None,
    widths: Mapping[str, float] | None = None, samples: int = 31, secant_tolerance: float = 0.05,
    every: int | None = None, events: int = 100,
) -> GradientCheck:  # fmt: skip
    """Compares ``d output / d parameter`` of a run with secants wider than the teeth of its map.

    Derivatives of a run with ``gradient="saltation"``, event by event:

    ===================================== ===========================================================
    event                                 derivative
    ===================================== ===========================================================
    none; opening; rate and stiffness     exact for the discrete map, which converges to that of the
    kinks; slip to stick; stick to slip   motion with the order of the scheme (the motion continues
                                          with the same acceleration)
    impact, also frictional               converges with order 1 in dt (with `schemes.localized` with
                                          the order of the scheme); ``"discrete"``: wrong at every dt
    plastic impact, landing               the same; positions keep an error of one step
    reversal of sliding, planar           the same: the friction force jumps
    reversal of sliding, spatial          the same: along the change of sliding, whether the step resolves
                                          the turn or not
    force that jumps on a surface that    the same: the acceleration jumps; also where the force drives
    its law declares (``switch=``)        the motion back and it stays on the surface; across no such
                                          surface wrong at every dt, `notes.JUMP`
    several impacts in one step that do   the same as for a single one; each has a shift of its own
    not move each other
    coupled simultaneous impacts, also    undefined: it depends on the order in which they happen; one
    through joints, contacts at rest or   selection (exact where they happen together whatever the data,
    friction, touching without load       as for both corners of a wall, `notes.TOGETHER`),
                                          `notes.COUPLED`
    grazing                               one-sided and unbounded (``1 / |dg/dt|``); below two steps of
                                          acceleration that of the motion without the impact, finite,
                                          `notes.GRAZING`; up to a margin of 20 steps with a relative error
                                          of one over `Trajectory.margin`, `notes.NEAR`; for schemes with
                                          impulses at the end of a step two over it, up to 40
    impact at the border of sticking and  one-sided; noted where it is nearer than a step resolves,
    sliding                               `notes.KINK`; by bounces of one contact: not always where
                                          another corner of the body strikes after a turn
    accumulation of impacts               converges with order 0.8 to 1; its end is cut off where bounces
                                          are below two steps of acceleration, `notes.ACCUMULATION`
    impact that appears or vanishes       undefined: the motion itself has a kink or a jump there
    ===================================== ===========================================================

    Args:
        problem: a `Problem`.
        scheme: for instance ``schemes.moreau()``.
        parameters: names of scalars as `Problem.replace` takes them: ``"friction"``; entries of
            vectors with their index: ``"initial_v[0]"``.
        dt, steps, time, every: see `simulate`; ``every`` is all steps unless given.
        outputs: numbers whose last value is compared, by their names as of `Trajectory.sensor`
            (``"theta1"``, ``"energy"``, ``"rod.position[0]"``, ``"foot.force[0]"``), or a module-level
            function ``traj -> (k,)``; None: all of ``q`` and ``v`` at the end.
        gradient: ``"saltation"`` or ``"discrete"``, as in `simulate`.
        widths: half widths of secants by parameter. If not given, the width is doubled until the impact
            that moves most moves by `TEETH` steps, up to `WIDEST` of the parameter (or of one, if it is
            zero), both of `nsjax.analysis.comparison`.
        samples: runs per secant; their least-squares cubic averages over the teeth.
        secant_tolerance: relative difference up to which derivative and secant agree, in addition to three
            standard errors of the secant.
        events: number of impacts to compare.

    Raises:
        InputError: for an unknown parameter or output, or a whole vector; RunError: if a run fails.

    Limits: within the width of a secant the sequence of impacts must not change (see ``crossed``), and a
        cubic should fit the motion. Changes of sticking and sliding are not listed.

    Example:
        >>> from nsjax import check_gradient, models, schemes
        >>> problem = models.bouncing_ball(height=1.0, restitution=0.8)
        >>> run = dict(parameters=["gravity"], outputs=["y"], dt=1e-3, time=0.7)
        >>> check_gradient(problem, schemes.moreau(), **run).agrees
        True
        >>> print(check_gradient(problem, schemes.moreau(), gradient="discrete", **run).table[0].verdict)
        differs
    """
    steps = checks.check_lengths(dt, steps, time, 1, events)
    checks.check_gradient(scheme, gradient)
    if samples < 2 * DEGREE or samples % 2 == 0:
        raise InputError(f"samples = {samples}; it must be odd and at least {2 * DEGREE + 1}")
    keys = tuple(parse_parameter(name, "check_gradient") for name in parameters)
    base = _base(problem)
    named = zip(keys, parameters, strict=True)
    at = np.array([number_at(base, key, "check_gradient", name) for key, name in named])
    names, read = reader(problem, outputs)
    plan = _Plan(
        keys=keys, read=read, steps=steps, every=every or steps, events=events,
        gradient=gradient,
    )  # fmt: skip
    middle = _run(plan, problem, scheme, at, dt)
    derivative, notes = (np.asarray(x) for x in _derivative(plan, problem, scheme, at, np.float64(dt)))
    names = output_names(names, outputs, len(derivative))
    impacts = int(middle.events.count)
    rows: list[Comparison] = []
    crossed: list[str] = []
    for k, name in enumerate(parameters):
        runs = functools.partial(_shifted, plan, problem, scheme, at, dt, k)
        given = (widths or {}).get(name)
        width, shift = secant_width(runs, middle, dt, abs(at[k]) or 1.0, given)
        slopes, errors, found = secant_slopes(runs, middle, plan.read, width, samples)
        changes = changed_impacts(problem, name, width, middle, found)
        crossed += changes
        for i, output in enumerate(names):
            numbers = float(derivative[i, k]), float(slopes[i]), float(errors[i])
            verdict = verdict_of(*numbers, secant_tolerance, shift if impacts else None, bool(changes))
            rows.append(Comparison(output, name, *numbers, width, shift, verdict))
    table = Table(records=tuple(rows), note="", kind=Comparison)
    sentences = [f"{kind}: {sentence}" for kind, sentence in describe(int(notes) & SERIOUS)]
    said = (*sentences, *_nearness(problem, scheme, middle))
    lost = _lost(plan, problem, scheme, at, dt, parameters, derivative)
    return GradientCheck(table, impacts, tuple(crossed), said, lost)


@dataclasses.dataclass(frozen=True)
class _Plan:
    """Static arguments of the runs that are compared."""

    keys: tuple[Key, ...]
    read: Any
    steps: int
    every: int
    events: int
    gradient: str | None


def _base(problem: Problem) -> dict[str, Any]:
    """The numbers of a problem by the roots of their names."""
    return {"params": problem.params, "state": problem.state}


def _changed(problem: Problem, keys: tuple[Key, ...], x: Any) -> Problem:
    """The problem with the numbers ``x``."""
    before = base = _base(problem)
    for k, key in enumerate(keys):
        base = put(base, key, x[k])
    return dataclasses.replace(problem, **restarted(problem.system, before, base, keys))


def _simulate(
    plan: _Plan, problem: Problem, scheme: Scheme, x: Any, dt: Any, gradient: str | None, events: int
) -> Trajectory:
    """The run with the numbers ``x``."""
    system, params, state = _changed(problem, plan.keys, x)
    lengths: Any = {"steps": plan.steps, "every": plan.every, "events": events, "notes": True}
    return simulate(system, params, state, scheme, dt=dt, gradient=gradient, **lengths)


def _run(plan: _Plan, problem: Problem, scheme: Scheme, x: np.ndarray, dt: float) -> Trajectory:
    """One plain run."""
    traj = _simulate(plan, problem, scheme, x, dt, None, plan.events)
    traj.raise_for_status()
    return traj


def _shifted(
    plan: _Plan, problem: Problem, scheme: Scheme, at: np.ndarray, dt: float, k: int, change: float
) -> Trajectory:
    """The run with parameter ``k`` changed."""
    return _run(plan, problem, scheme, at + change * (np.arange(len(at)) == k), dt)


@compiled_for("plan", of="problem")
def _derivative(plan: _Plan, problem: Problem, scheme: Scheme, x: Array, dt: Array) -> tuple[Array, Array]:
    """Jacobian (outputs, parameters) in forward mode, and the notes of all rows."""

    def run(x: Array) -> tuple[Array, Array]:
        traj = _simulate(plan, problem, scheme, x, dt, plan.gradient, 0)
        return jnp.ravel(plan.read(traj)), all_notes(vars(traj))

    return jax.jacfwd(run, has_aux=True)(x)


def _lost(
    plan: _Plan, problem: Problem, scheme: Scheme, at: np.ndarray, dt: float, parameters: Sequence[str],
    derivative: np.ndarray,
) -> tuple[str, ...]:  # fmt: skip
    """Sentences on derivatives that are not finite, one for each parameter that has one."""
    spoiled = np.flatnonzero(~np.all(np.isfinite(derivative), axis=0))
    if not len(spoiled):
        return ()
    finest = 1000  # most rows in which the first derivative that is not finite is searched
    every = -(-plan.steps // finest)
    found = []
    for k in map(int, spoiled):
        along = (np.arange(len(at)) == k).astype(float)
        sound = np.asarray(_sound_rows(plan, problem, scheme, at, along, np.float64(dt), every))
        rest, row = plan.steps % every, int(np.argmin(sound))
        if sound.all() and not rest:
            found.append(
                f"derivatives of outputs by {parameters[k]}, while that of the motion is finite: look in "
                "the outputs for a root, quotient or norm at zero"
            )
            continue
        last = plan.steps if sound.all() else row * every
        first = last + 1 - rest if sound.all() else max(last + 1 - every, 0)
        where = f"step {last}" if first == last else f"a step between {first} and {last}"
        time = float(problem.state.t) + last * dt
        found.append(
            f"the derivative of the motion by {parameters[k]} from {where} (t = {time:.6g} s) on, while "
            "the motion itself is finite: look in the model for a root, quotient, norm or power at zero, "
            "also inside jnp.where"
        )
    return tuple(found)


@compiled_for("plan", "every", of="problem")
def _sound_rows(
    plan: _Plan, problem: Problem, scheme: Scheme, x: Array, along: Array, dt: Array, every: int
) -> Array:
    """Whether the derivative along a change of the numbers is finite, row by row from the start."""
    lengths: Any = {"steps": plan.steps - plan.steps % every, "every": every, "save": ()}

    def rows(x: Array) -> Array:
        system, params, state = _changed(problem, plan.keys, x)
        traj = simulate(system, params, state, scheme, dt=dt, gradient=plan.gradient, **lengths)
        return jnp.concatenate([jnp.asarray(traj.q), jnp.asarray(traj.v)], axis=1)

    return jnp.all(jnp.isfinite(jax.jvp(rows, (x,), (along,))[1]), axis=1)


def _nearness(problem: Problem, scheme: Scheme, traj: Trajectory) -> tuple[str, ...]:
    """A sentence on the approach of the run that is nearest to grazing, if one is near."""
    margin: Any = traj.margin
    if not margin.size or np.min(margin) >= criteria_of(scheme).near:
        return ()
    row, contact = np.unravel_index(np.argmin(margin), margin.shape)
    who = contact_names(problem.system)[contact]
    return (
        f"one-sided: {who} is grazed within {margin[row, contact]:.2g} steps of its acceleration until "
        f"{float(traj.t[row]):.6g} s: small changes of the data or of dt gain or lose this impact, and "
        "derivatives after it hold on this side only",
    )
