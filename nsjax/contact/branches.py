"""Open, stick or slip: the branch of every row, and the prox rows that are linear on it.

The Newton iteration and the derivative of the answer both live on these rows.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.problem import ContactProblem, DelassusFactors
from nsjax.linalg import magnitude, matvec
from nsjax.linalg.dense import CONSTANT_LIMIT, indices, unit_matrix
from nsjax.math import direction, norm
from nsjax.types import Array, record

# Relative weight of the minimum-norm term on active rows (row-scaled to unit diagonal). Its limit
# zero is the pseudoinverse step; 1e-9 keeps pivots of dependent contacts a million times above
# rounding and is corrected by one further increment.
REGULARISATION = 1e-9

AT_BOUND = 1e-5
"""Relative distance to its bound below which a friction force counts as sliding in a derivative.

Where another force holds the same motion (a motor that stalls against a floor) the answer of the solver
may be a friction force at its bound with zero velocity. Rounding of the velocity would then choose the
branch, and a different one in every program. With this rule the friction force stays at its bound, and the
other force goes on holding the motion. Rounding over `REGULARISATION` leaves the split of impulses among
rows that depend on each other undecided to a few 1e-7: this number is above that, and below the distances
from the bound at which sticking contacts are usually found.
"""

UNDECIDED, ROUNDING = 1e-9, 1e-13
"""Bounds up to which ``x - r u`` counts as rounding: these parts of the summed magnitudes of the terms of
``u``, and of the largest free velocity.

A contact that touches without load and without moving (a body that friction holds at a wall) counts as
open. Friction with a bound of zero, at a contact that does not move, gets no direction. Without these rules
rounding would decide, and differently in every program. The first is chosen above the tolerance of the
solvers, the second above the rounding of the sums that make up free velocities.
"""


@record()
class Branches:
    """Branch of every row: ``use`` (m,) rows with ``u = 0``, and slip data per contact."""

    use: Array
    slip: Array
    slope: Array
    size: Array


def branches(problem: ContactProblem, x: Array, u: Array, r: Array, answer: bool = False) -> Branches:
    """Open, stick or slip, decided at ``x - r u`` with the friction radius ``mu (x_N - r u_N)``.

    Args:
        problem, x, u, r: data, impulses (m,), their velocities and the scaling of the rows.
        answer: whether ``x`` is the answer, and the branches are those of its derivative: `AT_BOUND` and
            `UNDECIDED` then decide where rounding does not.
    """
    z = problem.contacts(x - r * u)
    push, given = z[:, 0], problem.given
    if given is not None:
        push = given.normals(push, problem.mask)
    least, slowest = _rounding(problem, x, r) if answer else (0.0, 0.0)
    on = problem.mask & (push > least)
    if given is not None:  # friction with a given bound of zero slides: the bound then has a derivative
        on = on | (problem.mask & given.on)
    size = norm(z[:, 1:])
    radius = problem.friction * push
    # A disk of radius zero has no interior: friction zero always slips.
    stick = on & (size <= (radius * (1.0 - AT_BOUND) if answer else radius)) & (radius > 0.0)
    normal = on if given is None else on & ~given.on
    use = jnp.concatenate([normal[:, None]] + [stick[:, None]] * problem.nt, axis=1)
    slip = on & ~stick
    if answer:
        slip = slip & (size > slowest)
    slope = jnp.where(slip[:, None], problem.friction[:, None] * direction(z[:, 1:]), 0.0)
    rows = problem.stack(use, jnp.ones(problem.nb, bool))
    return Branches(use=rows, slip=slip, slope=slope, size=size)


def _rounding(problem: ContactProblem, x: Array, r: Array) -> tuple[Array, Array]:
    """Bounds (nc,) up to which the normal part of ``x - r u``, and the size of its tangents, are rounding,
    see `UNDECIDED`.
    """
    free, g, size = jnp.abs(problem.free), problem.delassus, jnp.abs(x)
    if isinstance(g, DelassusFactors):
        terms = free + matvec(magnitude(g.wt), matvec(magnitude(g.response), size))
    else:
        terms = free + matvec(magnitude(g), size)
    least = problem.contacts(r * (UNDECIDED * terms + ROUNDING * jnp.max(free)))
    return least[:, 0], least[:, 1] if problem.nt else least[:, 0]


def _normal_columns(problem: ContactProblem) -> Any:
    """Constant (m, m) pattern: one where a tangent row meets the normal column of its contact; computed in
    the program if it is large, as `unit_matrix` is.
    """
    d, m = 1 + problem.nt, problem.free.shape[0]
    if m > CONSTANT_LIMIT and not problem.leading:
        row = indices(m)
        tangents = (lax.rem(row, d) != 0) & (row < problem.rough * d)
        return jnp.where(tangents[:, None] & ((row - lax.rem(row, d))[:, None] == row), 1.0, 0.0)
    pattern = np.zeros((m, m))
    for k in range(problem.rough):
        pattern[k * d + 1 : (k + 1) * d, k * d] = 1.0
    if problem.leading:
        assert problem.given is not None
        rough, (first, second, _) = problem.rough, problem.ends
        for k, lead in enumerate(problem.given.leads):
            if lead >= 0:
                n = problem.tangents
                own = k * d + 1 if k < rough else second + (k - problem.nc + problem.bounded) * n
                pattern[own : own + n] = 0.0
                pattern[own : own + n, lead * d if lead < rough else first + lead - rough] = 1.0
    return pattern


def per_contact(problem: ContactProblem, x: Array, bilateral: Array) -> Array:
    """Row vector (m,) that repeats the entry ``x`` (nc,) of each contact in all of its rows."""
    return problem.stack(jnp.broadcast_to(x[:, None], (problem.nc, 1 + problem.nt)), bilateral)


def _per_row(problem: ContactProblem, slope: Array) -> Array:
    """``slope`` (nc, nt) as a row vector (m,), zero on normal and bilateral rows."""
    wide = jnp.concatenate([jnp.zeros((problem.nc, 1)), slope], axis=1)
    return problem.stack(wide, jnp.zeros(problem.nb))


def tangent(
    problem: ContactProblem,
    x: Array,
    r: Array,
    b: Branches,
    regularisation: Array | float = REGULARISATION,
) -> Array:
    """Generalised derivative of the prox rows on the branches ``b`` (m, m)."""
    m = problem.free.shape[0]
    scaled = r[:, None] * problem.matrix
    idle = one = unit_matrix(m)
    if problem.nt and problem.nc:
        idle = idle - _per_row(problem, b.slope)[:, None] * _normal_columns(problem)
    a = jnp.where(b.use[:, None], scaled + regularisation * one, idle)
    if problem.nt == 2 and (problem.rough or problem.tangents == 2):
        a = a + _curvature(problem, x, scaled, b)
    return a


def curvature_blocks(problem: ContactProblem, x: Array, b: Branches) -> Array:
    """Turning of the slip direction ``A = R/|z| (I - n n')`` (n, 2, 2) of contacts in space: of those with
    all rows, or of all if the contacts with tangents alone have two, too.
    """
    nc = problem.nc if problem.tangents == 2 else problem.rough  # one tangent alone does not turn
    mu = problem.friction[:nc, None]
    n = jnp.where(mu > 0.0, b.slope[:nc] / jnp.where(mu > 0.0, mu, 1.0), 0.0)
    normal = problem.impulses(x) if problem.tangents == 2 else problem.contacts(x)
    radius = problem.friction[:nc] * normal[:nc, 0]
    bent = b.slip[:nc] & (radius > 0.0)
    ratio = jnp.where(bent, jnp.minimum(radius / jnp.where(bent, b.size[:nc], 1.0), 1.0), 0.0)
    return ratio[:, None, None] * (np.eye(2) - n[:, :, None] * n[:, None, :])


def _curvature(problem: ContactProblem, x: Array, scaled: Array, b: Branches) -> Array:
    """Turning of the slip direction: ``A (r G_T - E_T)`` with the blocks of `curvature_blocks`."""
    nc, d, m = problem.rough, 1 + problem.nt, problem.free.shape[0]
    block, (_, second, third) = curvature_blocks(problem, x, b), problem.ends
    every = scaled - unit_matrix(m)
    # the empty second tangent of a bounded row moves nothing: it keeps its unit row, so its impulse is zero
    own = problem.contacts(jnp.sum(scaled * unit_matrix(m), axis=1))[:, 1:, None] > 0.0

    def turned(rows: Array, which: Any) -> Array:
        found = jnp.sum(block[which, :, :, None] * rows[:, None, :, :], axis=2)
        return jnp.where(own[which], found, 0.0)

    full = turned(every[: nc * d].reshape(nc, d, m)[:, 1:], np.s_[:nc])
    parts = [jnp.concatenate([jnp.zeros((nc, 1, m)), full], axis=1).reshape(nc * d, m)]
    if problem.tangents == 2:
        last = np.s_[problem.nc - problem.bounded :]
        parts += [jnp.zeros((problem.smooth, m))]
        parts += [turned(every[second:third].reshape(-1, 2, m), last).reshape(-1, m)]
    done = sum(x.shape[0] for x in parts)
    parts += [jnp.zeros((m - done, m))] if m > done else []
    return jnp.concatenate(parts) if len(parts) > 1 else parts[0]


def branch_residual(problem: ContactProblem, x: Array, u: Array, r: Array, b: Branches) -> Array:
    """Prox rows on given branches: ``r u`` where active, ``x_T - mu n x_N`` on slip, ``x`` if open, and
    ``x_N`` minus the given normal impulse where there is one.
    """
    normal = per_contact(problem, problem.impulses(x)[:, 0], jnp.zeros(problem.nb))
    known = _per_row(problem, b.slope) * normal
    if problem.given is not None:
        wide = jnp.concatenate([problem.given.normal[:, None], jnp.zeros((problem.nc, problem.nt))], axis=1)
        known = known + problem.stack(wide, jnp.zeros(problem.nb))
    return jnp.where(b.use, r * u, x - known)
