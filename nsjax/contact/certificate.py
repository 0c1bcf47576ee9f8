"""Measures of how well an answer fulfils the contact laws, independent of the solver that gave it."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax.contact.problem import ContactProblem
from nsjax.math import norm
from nsjax.types import Array

# Largest size of impulses to which a residual is related, in multiples of what single rows would need: an
# unsolvable problem answers with impulses as large as the regularisation allows.
LARGEST_RATIO = 1e6


def natural_residual(problem: ContactProblem, x: Array) -> Array:
    """Relative natural-map residual ``max |x - prox(x - u/G_kk)| / max(max |x|, max |F_k|/G_kk)``.

    Zero exactly at a solution, unchanged when impulses or velocities are rescaled. It judges the
    answer of any solver. It is at least as large as one scaled with a single maximum: the
    second maximum runs over normal and bilateral rows, so that a fast sliding velocity does not loosen
    the bound on normal impulses, and the first is capped, so that enormous impulses do not hide an
    unsolvable problem. The rounding of impulses beyond the cap counts as an error.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.contact import ContactProblem, natural_residual
        >>> ball = ContactProblem(
        ...     nc=1, nt=0, nb=0, delassus=jnp.array([[2.0]]), free=jnp.array([-3.0]),
        ...     friction=jnp.zeros(1), mask=jnp.array([True]),
        ... )
        >>> float(natural_residual(ball, jnp.array([1.5])))
        0.0
    """
    r = problem.scaling()
    return relative_residual(problem, x, problem.velocity(x), r, impulse_scale(problem, r))


def impulse_scale(problem: ContactProblem, r: Array) -> tuple[Array, Array]:
    """Largest impulse ``|F_k| / G_kk`` that one row alone would need: among normal rows (given impulses
    included) and bilateral rows, and among all rows. Contacts out of ``mask`` do not count, nor do tangents
    without friction, on which no impulse acts.
    """
    single = jnp.abs(r * problem.free)
    taking = problem.mask[:, None]
    if problem.nt:
        taking = taking & (problem.friction[:, None] > np.array([-1.0, *problem.nt * [0.0]]))
    contacts = jnp.where(taking, problem.contacts(single), 0.0)
    bilateral = jnp.max(problem.bilateral(single), initial=0.0)
    normal = jnp.maximum(jnp.max(contacts[:, 0], initial=0.0), bilateral)
    if problem.given is not None:
        normal = jnp.maximum(normal, jnp.max(problem.given.normal))
    return normal, jnp.maximum(jnp.max(contacts, initial=0.0), normal)


def relative_residual(
    problem: ContactProblem, x: Array, u: Array, r: Array, scale: tuple[Array, Array]
) -> Array:
    """`natural_residual` from velocity ``u``, scaling ``r`` and impulse scales that are known already."""
    normal, largest = scale
    peak, most = jnp.max(jnp.abs(x)), LARGEST_RATIO * largest
    size = jnp.minimum(jnp.maximum(peak, normal), most)
    # beside enormous impulses velocities are lost in rounding, and would count as fulfilled
    rounding = jnp.finfo(float).eps * (peak - most)
    error = jnp.maximum(jnp.max(jnp.abs(problem.prox(x, u, r))), rounding)
    return error / jnp.where(size > 0.0, size, 1.0)


def complementarity_gap(problem: ContactProblem, x: Array) -> Array:
    """``max_k |x_N u_N + x_T . u_T + mu x_N |u_T||`` over contacts [J]: no contact does work except
    by friction at its limit. Zero at a solution.
    """
    u = problem.velocity(x)
    xc, uc = problem.impulses(x), problem.contacts(u)
    sliding = jnp.sum(xc[:, 1:] * uc[:, 1:], axis=1) + problem.friction * xc[:, 0] * norm(uc[:, 1:])
    return jnp.max(jnp.abs(xc[:, 0] * uc[:, 0]) + jnp.abs(sliding), initial=0.0)


def cone_violation(problem: ContactProblem, x: Array) -> Array:
    """Largest distance by which an answer leaves the sets of the law: impulses outside the friction
    cone or at masked-out contacts [N s], and approach velocities ``-u_N`` and bilateral velocities
    multiplied by ``1/G_kk`` [N s]. Zero at a solution.
    """
    r = problem.scaling()
    xc, uc = problem.impulses(x), problem.contacts(r * problem.velocity(x))
    tangential = norm(xc[:, 1:]) - problem.friction * jnp.maximum(xc[:, 0], 0.0)
    taking = jnp.max(jnp.stack([-xc[:, 0], tangential, -uc[:, 0]]), axis=0, initial=0.0)
    outside = jnp.max(jnp.abs(xc), axis=1)
    bilateral = jnp.abs(problem.bilateral(r * problem.velocity(x)))
    worst = jnp.max(jnp.where(problem.mask, taking, outside), initial=0.0)
    return jnp.maximum(worst, jnp.max(bilateral, initial=0.0))


def worst_contact(problem: ContactProblem, x: Array, known: tuple[Array, Array] | None = None) -> Array:
    """Index of the contact that fulfils its law worst; -1 for a problem without contacts. ``known``:
    velocity and scaling, if they are known already.
    """
    if problem.nc == 0:
        return jnp.asarray(-1, int)
    error = problem.prox(x, *(known or (problem.velocity(x), problem.scaling())))
    return jnp.argmax(jnp.max(jnp.abs(problem.contacts(error)), axis=1))
