"""One correction of the nonsmooth generalized-alpha family: residual, bordered dynamics, and a fallback."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact import ContactProblem, SolverSettings, equations
from nsjax.contact.at_nodes import without_responses
from nsjax.contact.branches import REGULARISATION, dependent_answer
from nsjax.contact.equations import StageTangent
from nsjax.contact.solvers import turned_answer
from nsjax.core.system import System, row_groups
from nsjax.jaxtools import with_tangent
from nsjax.linalg import Structure, matmul, matvec, solve
from nsjax.math import norm
from nsjax.schemes.nsga.levels import Level, VelocityLevel
from nsjax.types import Array, PyTree, record

# Unknowns, residual and convergence criterion of a subproblem of nonsmooth generalized-alpha.


@record(static=("max_iterations",))
class IterationBounds:
    """Bounds that end iterations.

    Args:
        relative, force: ``tol_r``, ``tol_f`` [N] of the criterion [C (51)].
        scale: size of the velocities.
        max_iterations: most corrections, before an iteration has failed.
    """

    relative: Array | float
    force: Array | float
    scale: Array
    max_iterations: int


@record()
class Residual:
    """Residual of the dynamics (nv,), constraint rows ``k x - pi`` (rows,), augmented multipliers (rows,),
    multipliers ``k x`` (rows,) of the iterate, and whether it has converged.
    """

    dynamic: Array
    rows: Array
    sigma: Array
    held: Array
    converged: Array


@record()
class LevelUnknowns:
    """Increment (nv,) and scaled multipliers (rows,) of a subproblem."""

    w: Array
    x: Array


def no_unknown(level: Level) -> LevelUnknowns:
    """Zero unknowns, the start of every iteration."""
    return LevelUnknowns(w=jnp.zeros(level.system.nv), x=jnp.zeros(level.rows))


def sigma(level: Level, d: PyTree, z: LevelUnknowns) -> Array:
    """Augmented multipliers ``k x - p y`` (rows,)."""
    k, p = level.factors(d)
    return k * z.x - p * level.values(d, z.w)


def acting(level: Level, d: PyTree, z: LevelUnknowns) -> Array:
    """Acting multipliers (rows,) of an answer [N] or [N s], with the derivative of ``k x``."""
    k, _ = level.factors(d)
    return with_tangent(lax.stop_gradient(level.law(d, sigma(level, d, z))), k * z.x)


def evaluate(level: Level, d: PyTree, z: LevelUnknowns, tolerances: IterationBounds) -> Residual:
    """Residual of a subproblem, and whether it meets [C (51)]."""
    k, p = level.factors(d)
    s = sigma(level, d, z)
    pi = level.law(d, s)
    terms = level.terms(d, z.w, pi)
    dynamic = functools.reduce(jnp.add, terms)
    held = k * z.x
    rows = held - pi
    size = jnp.sqrt(jnp.sum(dynamic * dynamic) + jnp.sum((k / p * rows) ** 2))
    parts = functools.reduce(jnp.add, [norm(x) for x in terms])
    converged = size < tolerances.relative * (parts + tolerances.force)
    return Residual(dynamic=dynamic, rows=rows, sigma=s, held=held, converged=converged)


# One correction of the nonsmooth generalized-alpha family: linearised dynamics, bordered by the laws.
#
# Source: [C (33), (39), (43), (47)-(50)].


# Relative weight that is added to the diagonal for dependent rows; corrections are increments. Rows with
# friction depend on each other wherever a body sticks on two points, and have the weight of the contact
# solver. Without friction a thousandth of it is enough, with which one correction solves a linear problem,
# as in the counts of [C].
SMOOTH_REGULARISATION = 1e-12


def linearised(
    structure: Structure, dynamics: Callable[[Array], Array], w: Array, rows: tuple[Array, Array],
    stiff: tuple[Array, Any],
) -> StageTangent:  # fmt: skip
    """`StageTangent` of ``J dw - W dpi`` and ``dy/dw``.

    A dense tangent contains its bilateral rows, ``J + W p Y``, and is thus regular for a singular mass.

    Args:
        structure: of the tangent of the dynamics.
        dynamics: residual (nv,) as a function of ``w`` (nv,).
        rows: ``W`` (nv, rows) and ``Y = dy/dw`` (rows, nv).
        stiff: ``p`` (rows,), and which rows (rows,) bool are bilateral.
    """
    (directions, values), (p, bilateral) = rows, stiff
    stiffer: Any = 0.0
    if structure.dense and np.any(bilateral):
        stiffer = matmul(directions, jnp.where(bilateral, p, 0.0)[:, None] * values)
    return equations.linearised(structure, dynamics, w, directions, values, stiffer)


def linear_of(level: Level, d: PyTree, w: Array, held: Array) -> StageTangent:
    """`StageTangent` of a subproblem at an increment ``w`` (nv,), with the multipliers ``held`` (rows,)."""
    p = jnp.broadcast_to(level.factors(d)[1], (level.rows,))
    return linearised(
        level.system.structure, lambda w: functools.reduce(jnp.add, level.terms(d, w, held)), w,
        level.directions(d, w), (p, level.always),
    )  # fmt: skip


@record(static=("first",))
class Tangent:
    """Linearised subproblem: its dynamics, ``D = dpi/dsigma`` (rows, rows), factors of the rows (rows,),
    rows ``added`` (rows,) bool that the dynamics contain, the relative regularisation, directions
    (rows, 2) of sliding in space or None, see `Level.slides`, and the number of rows before these.
    """

    linear: StageTangent
    law: Array
    k: Array
    p: Array
    added: Any
    weight: Array | float = SMOOTH_REGULARISATION
    way: Array | None = None
    first: int = 0


def regularisation(system: System) -> float:
    """Relative weight on the diagonal for dependent rows of the model."""
    return REGULARISATION if system.nt else SMOOTH_REGULARISATION


def correction(x: Tangent, dynamic: Array, rows: Array, derivative: bool = False) -> tuple[Array, Array]:
    """Increments ``dw`` (nv,) and ``dx`` (rows,) that solve the linearised subproblem::

        J dw - W dpi = -r,     k dx - dpi = -(k x - pi),     dpi = D (k dx - p Y dw)

    by elimination of ``dw``; the unknowns of the border are ``dsigma``, or ``k dx`` for the rows that the
    matrix contains.

    Args:
        x: linearisation.
        dynamic: ``r`` (nv,).
        rows: ``k x - pi`` (rows,).
        derivative: whether this is the derivative of an answer. In an iteration later corrections remove
            the error by the weight of dependent rows; a derivative is not corrected, and would carry
            rounding, multiplied by one over the weight, to the next step. It leaves out dependent rows
            instead.
    """
    a, m = x.linear, x.law.shape[0]
    free = -a.dynamics.solve(dynamic)
    if not m:
        return free, jnp.zeros(0)
    known = -rows - x.p * matvec(a.speed, free)
    if derivative:
        u = _least(x, known)
    else:
        border = x.p[:, None] * matmul(a.delassus, x.law)
        border = jnp.eye(m) - x.law + border * (1.0 + x.weight * np.eye(m))
        # a row that moves nothing, as the second tangent of a planar motion, gets a unit row
        border = border + jnp.where(border == 0.0, np.eye(m), 0.0)
        u = solve(border, known[:, None])[:, 0]
    dw = free + matvec(a.response, matvec(x.law, u))
    change = jnp.where(x.added, u, u + x.p * matvec(a.speed, dw))
    return dw, change / x.k


def _least(x: Tangent, known: Array) -> Array:
    """Unknowns (rows,) of the border without a weight: the least ones if rows depend on each other.

    Only rows that hold, with ``D = 1``, can do so: they require a velocity, all other rows a force.
    """
    one = np.eye(x.law.shape[0])
    border = one - x.law + x.p[:, None] * matmul(x.linear.delassus, x.law)
    holds = jnp.all(x.law == one, axis=1)
    own = jnp.sum(border * one, axis=1)
    own = jnp.where(holds & (own != 0.0), own, 1.0)
    border, known = border / own[:, None], known / own
    if x.way is None:
        return dependent_answer(border, holds, known, x.weight)
    way = jnp.pad(x.way, [(x.first, 0), (0, 0)])
    return turned_answer(border, holds, known, way, x.weight)


# Velocity jumps with friction as contact problems: dynamics linearised, laws by the contact solver.


def is_contact_problem(level: Level) -> bool:
    """Whether a subproblem is a jump with friction, whose joint corrections may cycle."""
    s = level.system
    return isinstance(level, VelocityLevel) and bool(s.nc and s.nt) and not without_responses(s)


def velocity_jump(level: Level, d: PyTree, w: Array, a: StageTangent) -> LevelUnknowns:
    """Unknowns that fulfil all laws with the dynamics ``a`` linearised at ``w`` (nv,)::

        J dw - W pi = -r,     u = y + Y dw = F + G pi,     G = Y J^-1 W

    which is the answer itself if the dynamics are linear. The contact problem is solved by way of compliant
    contacts if Newton's iteration fails on it.
    """
    data: Any = d
    system, k = level.system, level.factors(d)[0]
    y, r = level.values(d, w), functools.reduce(jnp.add, level.terms(d, w, jnp.zeros(level.rows)))
    if system.structure.dense:  # the tangent holds the bilateral rows, whose speeds vanish
        p = jnp.broadcast_to(level.factors(d)[1], (level.rows,))
        r = r + matvec(level.directions(d, w)[0], jnp.where(level.always, p * y, 0.0))
    free = a.dynamics.solve(r)
    problem = ContactProblem(
        rows=row_groups(system), delassus=a.delassus,
        free=y - matvec(a.speed, free), friction=data[0].friction, mask=data[2].active,
        given=data[0].given,
    )  # fmt: skip
    pi = SolverSettings().solve(problem).x
    return LevelUnknowns(w=w + matvec(a.response, pi) - free, x=pi / k)
