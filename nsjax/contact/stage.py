"""The stage solver: implicit dynamics with contact laws on velocity level, solved together.

Newton on the residual of the dynamics; at each iterate the small contact problem is solved exactly on
the Delassus operator of the linearised dynamics (Josephy-Newton). A linear system converges in one
pass with any contact set.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.equations import (
    CarriedTangent,
    Equations,
    StageTangent,
    blank,
    followed,
    freezes,
    frozen_or_by,
    inside_of,
    mass_tangent,
    tangent_at,
)
from nsjax.contact.problem import ContactProblem
from nsjax.contact.solvers import SolverSettings, newton_step
from nsjax.jaxtools import implicit_solution
from nsjax.jaxtools.control_flow import branch, repeat, repeat_for
from nsjax.jaxtools.owned import RECENT
from nsjax.linalg import matvec
from nsjax.types import Array, PyTree, record


@record(static=("max_passes", "max_iterations"))
class StageSettings:
    """Settings of the stage solver.

    Args:
        tolerance: bound on the estimated next update relative to the velocities.
        contact_tolerance: bound on the residual of each contact problem.
        scale: size of the velocities.
        max_passes: linearisations before giving up.
        max_iterations: plain Newton steps of each contact problem.
    """

    tolerance: Array | float
    contact_tolerance: Array | float
    scale: Array | float = 1.0
    max_passes: int = 20
    max_iterations: int = 20

    def contacts(self) -> SolverSettings:
        """Settings of the contact problem of a pass; few contacts are not gathered."""
        return SolverSettings(
            tolerance=self.contact_tolerance, max_iterations=self.max_iterations, method="auto_rare"
        )


@record()
class StageStart:
    """Start of the iteration of the stage solver.

    Args:
        z: (n,) unknowns, usually zero increments from a predictor.
        kept: tangent for all steps, of `kept_tangent`: then one pass is the solution.
        carried: tangent of an earlier step, or of `no_tangent`.
        again: (n,) other unknowns, where the iteration restarts if a tangent was carried here and updates
            grow with a full tangent at ``z``, too.
    """

    z: Array
    kept: StageTangent | None = None
    carried: CarriedTangent | None = None
    again: Array | None = None


@dataclasses.dataclass(frozen=True)
class _Task:
    """Problem of a stage: equations, their data, the contacts that take part, and settings. No pytree:
    JAX's caches keep the structure of what functions take, and equations hold a system.
    """

    equations: Equations
    data: PyTree
    active: Array
    settings: StageSettings


@record()
class StageAnswer:
    """Unknown, impulses, and the work done.

    Args:
        z: (n,) solution.
        impulses: (rows,) ``P``.
        passes: linearisations solved.
        iterations: of the contact solver, in all passes.
        estimate: estimated size of the next update, relative to the velocities.
        residual: certificate of the last contact problem.
        carried: the last tangent, if one was given.
    """

    z: Array
    impulses: Array
    passes: Array
    iterations: Array
    estimate: Array
    residual: Array
    carried: CarriedTangent | None = None


# A kept tangent is renewed when a pass contracts by less than this factor.
CONTRACTION = 0.1


Values = tuple[Array, Array]
"""Residual (n,) with the forces of rows, and velocities of the rows."""


@record()
class Differences:
    """`Values` along a leading axis: with one unknown after the other moved by ``step``, then with none."""

    residual: Array
    rates: Array
    step: Array

    def quotients(self) -> tuple[Array, Array]:
        """Difference quotients by every unknown: (n, n) and (rows, n)."""
        f, u = (((x[:-1] - x[-1]) / self.step).T for x in (self.residual, self.rates))
        return f, u


def _values(task: _Task, z: Array, impulses: Array) -> Values:
    """`Values` of an iterate."""
    equations, data = task.equations, task.data
    f = equations.residual(data, z)
    if not equations.rows.count:
        return f, impulses
    return f - equations.forces(data, z, impulses), equations.rates(data, z)


def _contact_problem(
    task: _Task, now: Values, impulses: Array, tangent: StageTangent
) -> tuple[Array, ContactProblem]:
    """Update ``-x`` of ``z`` with the present impulses, and the contact problem for the next ones."""
    equations, data = task.equations, task.data
    f, rates = now
    x = tangent.dynamics.solve(f)
    problem = ContactProblem(
        rows=equations.rows, delassus=tangent.delassus,
        free=rates - matvec(tangent.speed, x) - matvec(tangent.delassus, impulses),
        friction=equations.friction(data), mask=task.active, given=equations.given(data),
    )  # fmt: skip
    return x, problem


def _pass(
    task: _Task, now: Values, impulses: Array, tangent: StageTangent, begin: Array | None = None
) -> tuple[Array, Array, Array, Array]:
    """One linearisation from the impulses ``begin`` (or zero): update, impulses, iterations, residual."""
    if not tangent.speed.shape[0]:
        return -tangent.dynamics.solve(now[0]), impulses, jnp.asarray(0, int), jnp.zeros(())
    x, problem = _contact_problem(task, now, impulses, tangent)
    answer = task.settings.contacts().solve(problem, begin)
    step = matvec(tangent.response, answer.x - impulses) - x
    return step, answer.x, answer.iterations, answer.residual


def _nearby(task: _Task, z: Array, impulses: Array, differ: Array) -> tuple[Values, Differences]:
    """`Values` at an iterate and, with ``differ``, at the points of their difference quotients.

    The equations stand in the program once, in a loop of one turn or of n + 1. Quotients serve iterations
    alone, which end by the residual: passes contract to about a millionth with them, and only those above a
    tenth renew a tangent.
    """
    # step of difference quotients relative to the scale of velocities. Rounding of a stiff force ``K q``
    # leaves a few parts in 1e6 in its quotient for ``q = 1 m`` and ``dt = 1e-4 s``
    n, step = z.shape[0], 1e-6 * jnp.asarray(task.settings.scale)
    start = jnp.zeros((n + 1, n)), jnp.zeros((n + 1, impulses.shape[0]))

    def look(k: Array, every: Values) -> Values:
        place = jnp.where(differ, k, n)
        found = _values(task, z + jnp.where(np.arange(n) == place, step, 0.0), impulses)
        write = lax.dynamic_update_index_in_dim
        return write(every[0], found[0], place, 0), write(every[1], found[1], place, 0)

    every = repeat_for(jnp.where(differ, n + 1, 1), look, start)
    return (every[0][n], every[1][n]), Differences(residual=every[0], rates=every[1], step=step)


@functools.lru_cache(maxsize=RECENT)
def _solver(equations: Equations, measured: int) -> Callable[[Any], Any]:
    """The iteration for these equations, with its derivative; ``measured`` unknowns are velocities."""
    has_rows = equations.rows.count > 0

    def live_step(answer: Any, arguments: Any) -> Callable[[Any], Any]:
        (*given, start), (z, impulses) = arguments, answer
        task = _Task(equations, *given)
        tangent = start.kept
        if tangent is None:
            tangent = tangent_at(equations, task.data, z, impulses)

        if not has_rows:
            return lambda live: (z - tangent.dynamics.solve(equations.residual(live[0], z)), impulses)

        # the impulses solve the contact problem: one step on their branches, without another search
        now = _values(task, z, impulses)
        # a derivative stays on the branches of the answer
        laws = dataclasses.replace(task, active=followed(task.equations, task.active, impulses))
        _, frozen = _contact_problem(laws, now, impulses, tangent)
        contacts = newton_step(frozen, impulses)

        def step(live: Any, z: Array = z, impulses: Array = impulses) -> tuple[Array, Array]:
            moves = dataclasses.replace(task, data=live[0])
            now = _values(moves, z, impulses)
            x, problem = _contact_problem(moves, now, impulses, tangent)
            new = contacts(problem)
            return z + matvec(tangent.response, new - impulses) - x, new

        if equations.structure.dense:
            return step
        # forces of curved constraints couple unknowns outside the promised pattern. The iteration converges
        # without these couplings; for the derivative a second step makes their error quadratic
        return lambda live: step(live, *step(live))

    def iterate(arguments: Any) -> Any:
        *given, start = arguments
        return _iterate(measured, _Task(equations, *given), start)

    return implicit_solution(iterate, live_step)


class _Tangents:
    """The tangents of an iteration, and values of the equations where one is formed."""

    def __init__(self, task: _Task) -> None:
        self.task, self.frozen = task, freezes(task.equations)
        self.quotients = self.frozen and task.equations.structure.dense
        # traced once, for its shapes and for its values
        self.formed = jax.jit(self._formed, inline=True)

    def fresh(self, z: Array, impulses: Array, first: Array, near: Any) -> StageTangent:
        """The tangent at an iterate; ``first``: in the first pass."""
        return self.formed(self.task.data, z, impulses, first, near)

    def _formed(self, data: PyTree, z: Array, impulses: Array, first: Array, near: Any) -> StageTangent:
        equations = self.task.equations
        if self.quotients:
            return frozen_or_by(equations, data, z, first, near.quotients)
        whole = lambda _: tangent_at(equations, data, z, impulses)  # noqa: E731
        if not self.frozen:
            return whole(None)
        return lax.cond(first, lambda _: mass_tangent(equations, data, z), whole, None)

    def look(self, z: Array, impulses: Array, differ: Array) -> tuple[Values, Any]:
        """`Values`, and `Differences` if tangents are made of difference quotients."""
        if self.quotients:
            return _nearby(self.task, z, impulses, differ)
        return _values(self.task, z, impulses), None

    def blank(self, z: Array, impulses: Array) -> StageTangent:
        """A tangent of zeros."""

        def made() -> StageTangent:
            _, near = self.look(z, impulses, jnp.asarray(False))
            return self.fresh(z, impulses, jnp.asarray(True), near)

        return blank(jax.eval_shape(made))


def _single_pass(task: _Task, z: Array, kept: StageTangent) -> tuple[tuple[Array, Array], tuple[Any, ...]]:
    """The result of `_iterate` for linear equations, which one pass solves."""
    none = jnp.zeros(task.equations.rows.count)
    step, impulses, iterations, residual = _pass(task, _values(task, z, none), none, kept)
    return (z + step, impulses), (jnp.asarray(1), iterations, jnp.zeros(()), residual, None)


def _iterate(
    measured: int, task: _Task, start_of: StageStart
) -> tuple[tuple[Array, Array], tuple[Any, ...]]:
    """Unknowns and impulses; passes, iterations, estimate, residual and the tangent that is carried on."""
    z, carried, again, settings = start_of.z, start_of.carried, start_of.again, task.settings
    if start_of.kept is not None:
        return _single_pass(task, z, start_of.kept)
    none, big, tangents = jnp.zeros(task.equations.rows.count), 1e3 * settings.scale, _Tangents(task)
    approximate = tangents.frozen or carried is not None
    restarts = again is not None and carried is not None
    first = tangents.blank(z, none) if carried is None else carried.tangent

    def unknown(k: Array) -> Array:
        return k == 0 if carried is None else (k == 0) & ~carried.known

    def body(carry: Any) -> Any:
        z, impulses, tangent, k, last, now, iterations, _, losses = carry
        # a full tangent shows its quality in the first pass, an approximate one in the second
        slow = (now > CONTRACTION * last) & (k > 1) if approximate else now > CONTRACTION * last
        if approximate:  # where updates grow, the iteration restarts from ``z`` with a full tangent
            lost, begin = slow & (now > last), start[0]
            if restarts:  # then from ``again`` with a tangent in every pass: the first is far from the last
                lost = lost & (losses < 2)
                losses = losses + lost
                begin = begin if again is None else jnp.where(losses == 2, again, begin)
                slow = slow | (losses == 2)
            z, impulses = jnp.where(lost, begin, z), jnp.where(lost, start[1], impulses)
        renew = unknown(k) | slow
        here, near = tangents.look(z, impulses, renew & (k > 0))
        anew = lambda _: tangents.fresh(z, impulses, k == 0, near)  # noqa: E731
        # a pass with an old tangent is a solve; a new one takes directional derivatives and an elimination
        tangent = branch(renew, anew, lambda _: tangent, None)
        # number of passes from which on the contact solver starts with the impulses of the last pass: where
        # contacts depend on each other, each start at zero changes friction forces by 1e-8, and passes no
        # longer contract. The first passes start at zero, since a far iterate leads to another answer
        begin = jnp.where(k >= 6, impulses, 0.0)
        step, impulses, more, residual = _pass(task, here, impulses, tangent, begin)
        size = jnp.max(jnp.abs(step[:measured]))
        return z + step, impulses, tangent, k + 1, now, size, iterations + more, residual, losses

    least = settings.tolerance * settings.scale

    def unsolved(carry: Any) -> Array:
        _, _, _, k, last, now, _, _, _ = carry
        # updates that contract by now / last leave one of size now * now / last
        large = now * now > least * last
        if approximate:  # converges linearly: the first update says nothing about the second
            large = jnp.where(k == 1, now > least, large)
        return large & (k < settings.max_passes)

    count = jnp.asarray(0, int)
    start = (z, none, first, count, big, big, count, jnp.zeros(()), count)
    z, impulses, tangent, k, last, now, iterations, residual, _ = repeat(unsolved, body, start)
    estimate = now * now / jnp.where(last > 0.0, last, 1.0) / settings.scale
    if carried is not None:
        carried = CarriedTangent(tangent=tangent, known=estimate <= settings.tolerance)
    return (z, impulses), (k, iterations, estimate, residual, carried)


def solve_stage(
    equations: Equations, data: PyTree, active: Array, settings: StageSettings, start: StageStart
) -> StageAnswer:
    """Solves ``residual(z) - W(z) P = 0`` with the laws on ``rates(z)``.

    The tangent is formed in the first pass and kept while passes contract by ten; the iteration stops
    when the estimated next update is below ``tolerance`` times the scale of the velocities, so that no
    pass is spent on verification. If equations are `Freezing` with ``tangent = "mass"``, the first tangent
    is frozen in position and velocity. If passes with it, or with a tangent of an earlier step, contract
    too slowly, a full tangent is formed. If updates grow with a full tangent, too, the iteration restarts
    at ``start.again`` and forms a tangent in every pass. Forward and reverse derivatives follow from the
    full tangent at the answer.

    Args:
        equations: static functions of the step.
        data: pytree of everything live that they read.
        active: (nc,) bool.
        settings: tolerances, scale, and when to give up.
        start: unknowns and tangent of the first pass.
    """
    n = start.z.shape[0]
    joints = inside_of(equations, n)
    if joints is not None:
        more = jnp.zeros(joints.inside * joints.copies)
        again = None if start.again is None else jnp.concatenate([start.again, more])
        start = dataclasses.replace(start, z=jnp.concatenate([start.z, more]), again=again)
    (z, impulses), work = _solver(joints or equations, n)((data, active, settings, start))
    passes, iterations, estimate, residual, carried = work
    if joints is not None:
        z, x = joints.split(z)
        impulses = joints.whole(impulses, x)
    return StageAnswer(
        z=z, impulses=impulses, passes=passes, iterations=iterations, estimate=estimate, residual=residual,
        carried=carried,
    )  # fmt: skip
