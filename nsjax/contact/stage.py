"""The stage solver: implicit dynamics with contact laws on velocity level, solved together.

Newton on the residual of the dynamics; at each iterate the small contact problem is solved exactly on
the Delassus operator of the linearised dynamics (Josephy-Newton). A linear system converges in one
pass with any contact set.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact.bordered import StageTangent, linearised
from nsjax.contact.inside import inside_of
from nsjax.contact.problem import ContactProblem, Given
from nsjax.contact.solvers import newton_step
from nsjax.contact.solvers import solve as solve_contacts
from nsjax.core.branches import branch
from nsjax.core.operators import jacobian
from nsjax.linalg import Structure, block_jacobian, matvec
from nsjax.nonlinear import implicit_solution
from nsjax.types import Array, PyTree, record


class Equations(Protocol):
    """Dynamics and rows of a step as functions of the unknown ``z`` (n,); static and hashable.

    ``residual(data, z) - W(z) P = 0`` with row velocities ``rates(data, z)``. Rows are stacked as in
    `ContactProblem`: all contacts, then all bilateral rows.
    """

    @property
    def structure(self) -> Structure:
        """Of the tangent of the dynamics; contacts and constraints are a border of it."""

    @property
    def nc(self) -> int:
        """Contacts in the problem."""

    @property
    def nt(self) -> int:
        """Tangents per contact."""

    @property
    def nb(self) -> int:
        """Bilateral rows."""

    def __hash__(self) -> int:
        """Equal equations share one compiled solver."""

    def residual(self, data: PyTree, z: Array) -> Array:
        """Dynamics without row forces (n,)."""

    def forces(self, data: PyTree, z: Array, impulses: Array) -> Array:
        """``W(z) P`` (n,)."""

    def directions(self, data: PyTree, z: Array) -> Any:
        """``W(z)`` (n, rows); `Blocks` of equations with a number of ``islands``."""

    def rates(self, data: PyTree, z: Array) -> Array:
        """Velocities of the rows that the laws refer to, restitution included (rows,)."""

    def friction(self, data: PyTree) -> Array:
        """Coefficients (nc,)."""

    def given(self, data: PyTree) -> Given | None:
        """Normal impulses that are given instead of found, if any."""


class Freezing(Equations, Protocol):
    """Equations that can be iterated with a tangent frozen in position and velocity."""

    @property
    def tangent(self) -> str:
        """Of the iteration: ``"full"``, as that of equations without this property, or ``"mass"``."""

    def frozen(self, data: PyTree, z: Array) -> tuple[Callable[[Array], Array], bool]:
        """What the inertia at ``z`` makes of changes of ``z`` (n,) in the residual, linear; and whether the
        rates are ``W' z`` and what does not depend on ``z`` at fixed ``W``.
        """


def _speed(equations: Equations, data: PyTree, z: Array, rows: int) -> Any:
    """``du/dz`` (rows, n)."""
    islands = getattr(equations, "islands", 0)
    if islands:
        return block_jacobian(lambda z: equations.rates(data, z), z, islands)
    return jacobian(lambda z: equations.rates(data, z), z, rows)


def _freezes(equations: Equations) -> bool:
    return getattr(equations, "tangent", "full") == "mass"


@record()
class StageSettings:
    """Numbers of the stage solver: bound on the next update relative to the velocities, on the contact
    residual, and the scale of the velocities.
    """

    tolerance: Array | float
    contact_tolerance: Array | float
    scale: Array


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
    """

    z: Array
    impulses: Array
    passes: Array
    iterations: Array
    estimate: Array
    residual: Array


# A kept tangent is renewed when a pass contracts by less than this factor.
CONTRACTION = 0.1


def _tangent(equations: Equations, data: PyTree, z: Array, impulses: Array, rows: bool) -> StageTangent:
    def dynamics(z: Array) -> Array:
        f = equations.residual(data, z)
        return f - equations.forces(data, z, impulses) if rows else f

    structure, empty = equations.structure, jnp.zeros((0, z.shape[0]))
    if not rows:
        return linearised(structure, dynamics, z, empty.T, empty)
    speed = _speed(equations, data, z, impulses.shape[0])
    return linearised(structure, dynamics, z, equations.directions(data, z), speed)


def _mass_tangent(equations: Any, data: PyTree, z: Array, rows: bool) -> StageTangent:
    """The tangent frozen in position and velocity: inertia and directions, no derivative of forces."""
    structure, empty, rest = equations.structure, jnp.zeros((0, z.shape[0])), jnp.zeros_like(z)
    inertia, velocity_rows = equations.frozen(data, z)
    if not rows:
        return linearised(structure, inertia, rest, empty.T, empty)
    directions = equations.directions(data, z)
    speed = directions.T if velocity_rows else _speed(equations, data, z, directions.shape[1])
    return linearised(structure, inertia, rest, directions, speed)


def _row_count(equations: Equations) -> int:
    return equations.nc * (1 + equations.nt) + equations.nb


def kept_tangent(equations: Equations, data: PyTree, unknowns: int) -> StageTangent:
    """The tangent of a model whose structure is constant, for all steps of a run.

    Args:
        equations, data: of any step.
        unknowns: number of them.
    """
    rows = _row_count(equations)
    return _tangent(equations, data, jnp.zeros(unknowns), jnp.zeros(rows), rows > 0)


def _contact_problem(
    equations: Equations, data: PyTree, z: Array, impulses: Array, tangent: StageTangent, active: Array
) -> tuple[Array, ContactProblem]:
    """Update ``-x`` of ``z`` with the present impulses, and the contact problem for the next ones."""
    f = equations.residual(data, z) - equations.forces(data, z, impulses)
    x = tangent.dynamics.solve(f)
    free = equations.rates(data, z) - matvec(tangent.speed, x) - matvec(tangent.delassus, impulses)
    problem = ContactProblem(
        nc=equations.nc,
        nt=equations.nt,
        nb=equations.nb,
        delassus=tangent.delassus,
        free=free,
        friction=equations.friction(data),
        mask=active,
        given=equations.given(data),
    )
    return x, problem


def _pass(
    equations: Equations,
    data: PyTree,
    z: Array,
    impulses: Array,
    tangent: StageTangent,
    active: Array,
    settings: StageSettings,
    max_iterations: int,
) -> tuple[Array, Array, Array, Array]:
    """One linearisation: update of ``z``, new impulses, iterations and residual of the contacts."""
    if not tangent.speed.shape[0]:
        step = -tangent.dynamics.solve(equations.residual(data, z))
        return step, impulses, jnp.asarray(0, int), jnp.zeros(())
    x, problem = _contact_problem(equations, data, z, impulses, tangent, active)
    # gathering two active contacts of four makes the program a tenth larger and no faster
    answer = solve_contacts(
        problem, tolerance=settings.contact_tolerance, max_iterations=max_iterations, method="auto_rare"
    )
    step = matvec(tangent.response, answer.x - impulses) - x
    return step, answer.x, answer.iterations, answer.residual


@functools.cache
def _solver(
    equations: Equations, measured: int, max_passes: int, max_iterations: int
) -> Callable[[Any], Any]:
    """The iteration for these equations, with its derivative; ``measured`` unknowns are velocities."""
    has_rows = _row_count(equations) > 0

    def live_step(answer: Any, arguments: Any) -> Callable[[Any], Any]:
        (data, _, active, _, kept), (z, impulses) = arguments, answer
        tangent = kept
        if kept is None:
            tangent = _tangent(equations, data, z, impulses, has_rows)

        if not has_rows:
            return lambda live: (z - tangent.dynamics.solve(equations.residual(live[0], z)), impulses)

        # the impulses solve the contact problem: one step on their branches, without another search
        _, frozen = _contact_problem(equations, data, z, impulses, tangent, active)
        contacts = newton_step(frozen, impulses)

        def step(live: Any, z: Array = z, impulses: Array = impulses) -> tuple[Array, Array]:
            x, problem = _contact_problem(equations, live[0], z, impulses, tangent, active)
            new = contacts(problem)
            return z + matvec(tangent.response, new - impulses) - x, new

        if equations.structure.dense:
            return step
        # forces of curved constraints couple unknowns outside the promised pattern: a tangent without
        # them is good enough to iterate with, and a second step squares what its derivative leaves out
        return lambda live: step(live, *step(live))

    iterate = functools.partial(_iterate, equations, measured, max_passes, max_iterations)
    return implicit_solution(iterate, live_step)


def _iterate(
    equations: Equations, measured: int, max_passes: int, max_iterations: int, arguments: Any
) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
    data, z, active, settings, kept = arguments
    m = _row_count(equations)
    if kept is not None:
        # linear: one pass is the solution
        step, impulses, iterations, residual = _pass(
            equations, data, z, jnp.zeros(m), kept, active, settings, max_iterations
        )
        return (z + step, impulses), (jnp.asarray(1), iterations, jnp.zeros(()), residual)
    big, frozen = 1e3 * settings.scale, _freezes(equations)

    @functools.partial(jax.jit, inline=True)  # traced once, for its shapes and for its values
    def fresh(data: PyTree, z: Array, impulses: Array, first: Array) -> StageTangent:
        whole = lambda _: _tangent(equations, data, z, impulses, m > 0)  # noqa: E731
        if not frozen:
            return whole(None)
        return lax.cond(first, lambda _: _mass_tangent(equations, data, z, m > 0), whole, None)

    shapes = jax.eval_shape(fresh, data, z, jnp.zeros(m), jnp.asarray(True))
    blank = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)

    def body(carry: Any) -> Any:
        z, impulses, tangent, k, last, now, iterations, _ = carry
        # the first pass tells how good a full tangent is; a frozen one shows it in the second
        slow = (now > CONTRACTION * last) & (k > 1) if frozen else now > CONTRACTION * last
        if frozen:  # a full tangent begins where the frozen one has not led astray
            lost = slow & (now > last)
            z, impulses = jnp.where(lost, start[0], z), jnp.where(lost, start[1], impulses)
        tangent = branch(
            (k == 0) | slow, lambda _: fresh(data, z, impulses, k == 0), lambda _: tangent, None
        )
        step, impulses, more, residual = _pass(
            equations, data, z, impulses, tangent, active, settings, max_iterations
        )
        size = jnp.max(jnp.abs(step[:measured]))
        return z + step, impulses, tangent, k + 1, now, size, iterations + more, residual

    def unsolved(carry: Any) -> Array:
        _, _, _, k, last, now, _, _ = carry
        least = settings.tolerance * settings.scale
        large = now * now > least * last
        if frozen:  # converges linearly: the first update says nothing about the second
            large = jnp.where(k == 1, now > least, large)
        return large & (k < max_passes)

    count = jnp.asarray(0, int)
    start = (z, jnp.zeros(m), blank, count, big, big, count, jnp.zeros(()))
    z, impulses, _, k, last, now, iterations, residual = lax.while_loop(unsolved, body, start)
    estimate = now * now / jnp.where(last > 0.0, last, 1.0) / settings.scale
    return (z, impulses), (k, iterations, estimate, residual)


def solve_stage(
    equations: Equations,
    data: PyTree,
    z: Array,
    active: Array,
    settings: StageSettings,
    *,
    max_passes: int = 20,
    max_iterations: int = 20,
    kept: StageTangent | None = None,
) -> StageAnswer:
    """Solves ``residual(z) - W(z) P = 0`` with the laws on ``rates(z)``, from the start ``z``.

    The tangent is formed in the first pass and kept while passes contract by ten; the iteration stops
    when the estimated next update is below ``tolerance`` times the scale of the velocities, so that no
    pass is spent on verification. Where equations are `Freezing` and say ``"mass"``, the first tangent is
    frozen in position and velocity, and a full one follows where that contracts too slowly. Forward and
    reverse derivatives of first order, by the full tangent at the answer.

    Args:
        equations: static functions of the step.
        data: pytree of everything live that they read.
        z: start (n,), usually zero increments from a predictor.
        active: (nc,) bool.
        settings: tolerances and scale.
        max_passes: linearisations before giving up.
        max_iterations: plain Newton steps of each contact problem.
        kept: tangent for all steps, of `kept_tangent`: then one pass is the solution.
    """
    n, joints = z.shape[0], inside_of(equations, z.shape[0])
    if joints is not None:
        z = jnp.concatenate([z, jnp.zeros(joints.inside * joints.copies)])
    solver = _solver(joints or equations, n, max_passes, max_iterations)
    (z, impulses), (passes, iterations, estimate, residual) = solver((data, z, active, settings, kept))
    if joints is not None:
        z, x = joints.split(z)
        impulses = joints.whole(impulses, x)
    return StageAnswer(
        z=z,
        impulses=impulses,
        passes=passes,
        iterations=iterations,
        estimate=estimate,
        residual=residual,
    )
