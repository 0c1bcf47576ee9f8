"""Semismooth Newton iterations of the nonsmooth generalized-alpha family, counted in linear solves.

One correction of one subproblem stands here once; the decoupled schemes iterate each subproblem on its
own, the coupled scheme all three in turn (as published) or all at once. Dynamics and laws are solved
together, as in [C], whose figures count these solves; `nsjax.contact` solves the laws on the Delassus
operator. The derivative of an answer is one more correction with live data. Source: [C (33), (39), (43),
(47)-(51), Algorithm 1].
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

from nsjax.contact.bordered import StageTangent
from nsjax.contact.criteria import Criteria
from nsjax.core.operators import jacobian
from nsjax.core.system import is_local
from nsjax.math import norm
from nsjax.nonlinear import implicit_solution
from nsjax.schemes.nsga.levels import Level
from nsjax.schemes.nsga.linear import Tangent, correction, linearised, regularisation
from nsjax.schemes.nsga.local import AtNodes, correction_at_nodes, law_blocks, left_inverse
from nsjax.types import Array, PyTree, record

# Updates below this part of the velocities are rounding: the residual cannot fall any further.
ROUNDING = 1e-14

# The same where an update is no smaller than half of the one before. Newton's updates shrink as squares
# once they are below half of the digits; those that do not are rounding of stiff forces, whose updates are
# larger than that of velocities: with waves of the speed c through elements of the length l, about
# c^2 h / l^2 times the rounding of places.
STAGNATION = 1.5e-8


@record()
class Tolerances:
    """``tol_r``, ``tol_f`` [N] of the criterion [C (51)]."""

    relative: Array | float
    force: Array | float


@record()
class Residual:
    """Dynamic rows (nv,), constraint rows ``k x - pi`` (rows,), augmented multipliers (rows,) and what of
    them acts ``pi`` (rows,), converged.
    """

    dynamic: Array
    rows: Array
    sigma: Array
    pi: Array
    converged: Array


@record()
class Unknown:
    """Increment (nv,) and scaled multipliers (rows,) of a subproblem."""

    w: Array
    x: Array


def no_unknown(level: Level) -> Unknown:
    """The start of every iteration."""
    return Unknown(w=jnp.zeros(level.system.nv), x=jnp.zeros(level.rows))


def sigma(level: Level, d: PyTree, z: Unknown) -> Array:
    """Augmented multipliers ``k x - p y`` (rows,)."""
    k, p = level.factors(d)
    return k * z.x - p * level.values(d, z.w)


def acting(level: Level, d: PyTree, z: Unknown) -> Array:
    """What of the augmented multipliers acts (rows,): forces [N] or impulses [N s] that keep their laws."""
    return level.law(d, sigma(level, d, z))


def evaluate(level: Level, d: PyTree, z: Unknown, tolerances: Tolerances) -> Residual:
    """Residual of a subproblem, and whether it meets [C (51)]."""
    k, p = level.factors(d)
    s = sigma(level, d, z)
    pi = level.law(d, s)
    terms = level.terms(d, z.w, pi)
    dynamic = functools.reduce(jnp.add, terms)
    rows = k * z.x - pi
    size = jnp.sqrt(jnp.sum(dynamic * dynamic) + jnp.sum((k / p * rows) ** 2))
    parts = functools.reduce(jnp.add, [norm(x) for x in terms])
    converged = size < tolerances.relative * (parts + tolerances.force)
    return Residual(dynamic=dynamic, rows=rows, sigma=s, pi=pi, converged=converged)


def _at_nodes(level: Level, d: PyTree, w: Array, s: Array, pi: Array) -> AtNodes:
    """Linearisation of a subproblem with contacts at single nodes."""
    nc, n, structure = level.system.nc, level.system.nv, level.system.structure
    wt = level.node_directions(d, w)
    matrix = structure.tangent(lambda w: functools.reduce(jnp.add, level.terms(d, w, pi)), w)
    # no columns: responses of contacts are never formed
    done, _ = structure.eliminate(matrix, jnp.zeros((n, 0)))
    law = law_blocks(lambda x: level.by_contact(level.law(d, level.in_rows(x))), level.by_contact(s))
    k, p = (level.by_contact(jnp.broadcast_to(x, (level.rows,))) for x in level.factors(d))
    assert law.shape[0] == nc
    return AtNodes(done=done, wt=wt, back=left_inverse(wt), law=law, k=k, p=p)


def corrected(level: Level, x: Tangent | AtNodes, dynamic: Array, rows: Array) -> tuple[Array, Array]:
    """Change of increment and multipliers, of any kind of linearisation."""
    if not isinstance(x, AtNodes):
        return correction(x, dynamic, rows)
    dw, dx = correction_at_nodes(x, dynamic, level.by_contact(rows))
    return dw, level.in_rows(dx)


def tangent(
    level: Level, d: PyTree, w: Array, s: Array, pi: Array, kept: StageTangent | None = None
) -> Any:
    """Linearisation of one subproblem at an increment (nv,) and augmented multipliers (rows,) of which
    ``pi`` acts; ``kept`` where that of the dynamics is the same everywhere.
    """
    m = level.rows
    if m and is_local(level.system):
        return _at_nodes(level, d, w, s, pi)
    k, p = (jnp.broadcast_to(x, (m,)) for x in level.factors(d))
    structure, bilateral = level.system.structure, np.arange(m) >= m - level.bilateral
    if kept is None:
        kept = linearised(
            structure, lambda w: functools.reduce(jnp.add, level.terms(d, w, pi)), w,
            *level.directions(d, w), p, bilateral,
        )  # fmt: skip
    law = jax.jacfwd(lambda s: level.law(d, s))(s)
    added, weight = bilateral & structure.dense, regularisation(level.system)
    return Tangent(linear=kept, law=law, k=k, p=p, added=added, weight=weight)


def _moved(z: Unknown, dw: Array, dx: Array) -> Unknown:
    return Unknown(w=z.w + dw, x=z.x + dx)


def correct(
    level: Level, d: PyTree, z: Unknown, r: Residual, kept: StageTangent | None = None
) -> tuple[Unknown, Array]:
    """One linear solve: the next iterate and the size of its update."""
    dw, dx = corrected(level, tangent(level, d, z.w, r.sigma, r.pi, kept), r.dynamic, r.rows)
    return _moved(z, dw, dx), jnp.max(jnp.abs(dw))


def _iterated(
    start: Any,
    residual: Callable[[Any], tuple[Any, Array]],
    corrected: Callable[[Any, Any], tuple[Any, Array]],
    scale: Array,
    max_iterations: int,
    newton: bool = True,
) -> tuple[Any, Array, Array]:
    """Corrections until the criterion is met, or an update is rounding.

    Args:
        residual: ``z -> (r, converged)``.
        corrected: ``(z, r) -> (z, size of the update)``.
        scale: of the velocities.
        newton: whether convergence is that of Newton, so that stagnation tells rounding, see `STAGNATION`.

    Returns:
        The last iterate, the number of corrections, and whether it is an answer.
    """

    def body(carry: Any) -> Any:
        z, count, small, _, before = carry
        r, converged = residual(z)
        done = converged | small
        stop = done | (count >= max_iterations)

        def more(_: None) -> tuple[Any, Array, Array]:
            z1, size = corrected(z, r)
            fine = size <= ROUNDING * scale
            if newton:
                fine = fine | ((size <= STAGNATION * scale) & (size > 0.5 * before))
            return z1, fine, size

        z, small, before = lax.cond(stop, lambda _: (z, small, before), more, None)
        return z, jnp.where(stop, count, count + 1), small, jnp.where(stop, 1 + done, 0), before

    none = jnp.asarray(0, int)
    first = start, none, jnp.asarray(False), none, jnp.full_like(scale, jnp.inf)
    z, count, _, state, _ = lax.while_loop(lambda carry: carry[3] == 0, body, first)
    return z, count, state == 2


@functools.cache
def _solver(level: Level, max_iterations: int) -> Callable[[Any], Any]:
    """Newton's iteration of one subproblem, with its derivative."""

    def iterate(arguments: Any) -> tuple[Unknown, tuple[Array, Array]]:
        d, tolerances, scale, kept = arguments

        def residual(z: Unknown) -> tuple[Residual, Array]:
            r = evaluate(level, d, z, tolerances)
            return r, r.converged

        z, count, solved = _iterated(
            no_unknown(level), residual, lambda z, r: correct(level, d, z, r, kept), scale, max_iterations
        )
        return z, (count, solved)

    def live_step(z: Unknown, arguments: Any) -> Callable[[Any], Unknown]:
        d = arguments[0]
        s = sigma(level, d, z)
        x = tangent(level, d, z.w, s, level.law(d, s), arguments[3])

        def step(live: Any) -> Unknown:
            r = evaluate(level, live[0], z, live[1])
            return _moved(z, *corrected(level, x, r.dynamic, r.rows))

        return step

    return implicit_solution(iterate, live_step)


def solve_level(
    level: Level,
    d: PyTree,
    tolerances: Tolerances,
    scale: Array,
    max_iterations: int,
    kept: StageTangent | None,
) -> tuple[Unknown, Array, Array]:
    """Solves one subproblem from zero.

    Args:
        level: which subproblem.
        d: its data.
        scale: of the velocities.
        max_iterations: linear solves before giving up.
        kept: linearisation of a model where it is constant.

    Returns:
        The unknown, the number of linear solves, and whether the criterion is met.
    """
    z, (count, solved) = _solver(level, max_iterations)((d, tolerances, lax.stop_gradient(scale), kept))
    return z, count, solved


@dataclasses.dataclass(frozen=True)
class Coupled:
    """All three subproblems with each other's present answers.

    Args:
        levels: smooth, position, velocity.
        data: ``(self, step, (z_s, z_p, z_v)) -> (d_s, d_p, d_v)``, module-level.
        criteria: by which contacts are at rest.
    """

    levels: tuple[Level, Level, Level]
    data: Callable[..., tuple[PyTree, PyTree, PyTree]]
    criteria: Criteria


def _all_tangent(c: Coupled, s: PyTree, z: Any, data: Any, sigmas: Any, pis: Any) -> Tangent:
    """Linearisation of all rows with respect to all unknowns, as `tangent`, with the data at ``z``."""
    system = c.levels[0].system
    n, sizes = system.nv, [level.rows for level in c.levels]
    ends = np.cumsum(sizes)[:-1]
    x = [y.x for y in z]

    def unknowns(w: Array) -> tuple[Unknown, ...]:
        return tuple(Unknown(w=w[i * n : (i + 1) * n], x=x[i]) for i in range(3))

    def stacked(f: Callable[..., Array], w: Array, *more: Any) -> Array:
        now = unknowns(w)
        data = c.data(c, s, now)
        return jnp.concatenate([f(c.levels[i], data[i], now[i].w, *(m[i] for m in more)) for i in range(3)])

    w = jnp.concatenate([y.w for y in z])

    def dynamic(level: Level, d: PyTree, w: Array, pi: Array) -> Array:
        return functools.reduce(jnp.add, level.terms(d, w, pi))

    def law(t: Array) -> Array:
        split = jnp.split(t, ends)
        return jnp.concatenate([v.law(d, y) for v, d, y in zip(c.levels, data, split, strict=True)])

    def push(pi: Array) -> Array:
        return -stacked(dynamic, w, jnp.split(pi, ends))

    factors = [level.factors(d) for level, d in zip(c.levels, data, strict=True)]
    k, p = (
        jnp.concatenate([jnp.broadcast_to(f[i], (m,)) for m, f in zip(sizes, factors, strict=True)])
        for i in (0, 1)
    )
    structure = system.structure.stacked(3)
    bilateral = np.concatenate([np.arange(v.rows) >= v.rows - v.bilateral for v in c.levels])
    linear = linearised(
        structure, lambda w: stacked(dynamic, w, pis), w, jax.jacfwd(push)(jnp.concatenate(pis)),
        jacobian(lambda w: stacked(lambda v, d, w: v.values(d, w), w), w, sum(sizes)), p, bilateral,
    )  # fmt: skip
    slopes, added = jax.jacfwd(law)(jnp.concatenate(sigmas)), bilateral & structure.dense
    return Tangent(linear=linear, law=slopes, k=k, p=p, added=added, weight=regularisation(system))


def _evaluate_all(c: Coupled, s: PyTree, z: Any, tolerances: Tolerances) -> tuple[Any, list[Residual]]:
    """Data and residuals of all subproblems."""
    data = c.data(c, s, z)
    return data, [evaluate(v, d, y, tolerances) for v, d, y in zip(c.levels, data, z, strict=True)]


def _apply_all(c: Coupled, x: Tangent, z: Any, r: list[Residual]) -> tuple[Any, Array]:
    """One correction of everything, and its size."""
    n, ends = c.levels[0].system.nv, np.cumsum([v.rows for v in c.levels])[:-1]
    dw, dx = correction(x, *(jnp.concatenate([getattr(y, f) for y in r]) for f in ("dynamic", "rows")))
    rows = jnp.split(dx, ends)
    moved = tuple(_moved(z[i], dw[i * n : (i + 1) * n], rows[i]) for i in range(3))
    return moved, jnp.max(jnp.abs(dw))


@functools.cache
def _coupled_solver(c: Coupled, monolithic: bool, max_iterations: int) -> Callable[[Any], Any]:
    """Iteration of the coupled scheme, with its derivative."""

    def block(s: PyTree, z: Any, tolerances: Tolerances) -> tuple[Any, Array]:
        """One correction of each subproblem in turn; their sizes together."""
        now, sizes = list(z), []
        for i, level in enumerate(c.levels):
            d = c.data(c, s, tuple(now))[i]
            now[i], size = correct(level, d, now[i], evaluate(level, d, now[i], tolerances))
            sizes.append(size)
        return tuple(now), jnp.max(jnp.stack(sizes))

    def iterate(arguments: Any) -> tuple[Any, tuple[Array, Array]]:
        s, tolerances, scale = arguments

        def residual(z: Any) -> tuple[tuple[Any, list[Residual]], Array]:
            data, r = _evaluate_all(c, s, z, tolerances)
            return (data, r), r[0].converged & r[1].converged & r[2].converged

        def corrected(z: Any, known: tuple[Any, list[Residual]]) -> tuple[Any, Array]:
            data, r = known
            if not monolithic:
                return block(s, z, tolerances)
            return _apply_all(c, _all_tangent(c, s, z, data, [y.sigma for y in r], [y.pi for y in r]), z, r)

        start = tuple(no_unknown(v) for v in c.levels)
        z, count, solved = _iterated(start, residual, corrected, scale, max_iterations, monolithic)
        return z, ((1 if monolithic else 3) * count, solved)

    def live_step(z: Any, arguments: Any) -> Callable[[Any], Any]:
        data = c.data(c, arguments[0], z)
        sigmas = [sigma(level, d, y) for level, d, y in zip(c.levels, data, z, strict=True)]
        pis = [level.law(d, x) for level, d, x in zip(c.levels, data, sigmas, strict=True)]
        x = _all_tangent(c, arguments[0], z, data, sigmas, pis)

        def step(live: Any) -> Any:
            return _apply_all(c, x, z, _evaluate_all(c, live[0], z, live[1])[1])[0]

        return step

    return implicit_solution(iterate, live_step)


def solve_coupled(
    c: Coupled, s: PyTree, tolerances: Tolerances, scale: Array, monolithic: bool, max_iterations: int
) -> tuple[tuple[Unknown, Unknown, Unknown], Array, Array]:
    """Solves all subproblems together; unknowns, linear solves, converged.

    Args:
        monolithic: one Newton iteration on all rows, instead of one correction of each subproblem in
            turn, which counts three solves.
        max_iterations: of either.
    """
    solver = _coupled_solver(c, monolithic, max_iterations)
    z, (count, solved) = solver((s, tolerances, lax.stop_gradient(scale)))
    return z, count, solved
