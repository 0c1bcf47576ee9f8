"""Unknowns, residual and convergence criterion of a subproblem of nonsmooth generalized-alpha."""

from __future__ import annotations

import functools

import jax.numpy as jnp
from jax import lax

from nsjax.math import norm
from nsjax.nonlinear import with_tangent
from nsjax.schemes.nsga.levels import Level
from nsjax.types import Array, PyTree, record


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
    """Acting multipliers (rows,) of an answer, forces [N] or impulses [N s], with the derivative of ``k
    x``.
    """
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
