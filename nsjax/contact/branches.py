"""Open, stick or slip: the branch of every row, and the linear rows on it in all their forms.

The Newton iteration and the derivative of the answer both live on these rows.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.problem import ContactProblem, DelassusFactors
from nsjax.jaxtools.control_flow import branch
from nsjax.jaxtools.storing import once
from nsjax.linalg import (
    LOOP_LIMIT,
    ROW_LIMIT,
    magnitude,
    matmul,
    matvec,
    product_diagonal,
    solve,
)
from nsjax.linalg.dense import CONSTANT_LIMIT, indices, unit_matrix
from nsjax.linalg.elimination import solve_pairs
from nsjax.math import direction, norm
from nsjax.types import Array, record

# Relative weight of the minimum-norm term on active rows (row-scaled to unit diagonal). Its limit
# zero is the pseudoinverse step; 1e-9 keeps pivots of dependent contacts a million times above
# rounding and is corrected by one further increment.
REGULARISATION = 1e-9

AT_BOUND = 1e-5
"""Relative distance to its bound below which a friction force counts as sliding in a derivative.

Where another force holds the same motion (a motor that stalls against a floor) the answer may be a friction
force at its bound with zero velocity. Rounding would then choose the branch, a different one in every
program. This number is above the few 1e-7 to which rounding over `REGULARISATION` leaves the split of
impulses undecided, and below usual distances of sticking contacts from the bound.
"""

UNDECIDED, ROUNDING = 1e-9, 1e-13
"""Bounds up to which ``x - r u`` counts as rounding: these parts of the summed magnitudes of the terms of
``u``, and of the largest free velocity. They are above the tolerance of the solvers, and above the
rounding of free velocities.

A contact that touches without load and without moving counts as open. Friction with a bound of zero, at a
contact that does not move, gets no direction. Else rounding would decide, differently in every program.
"""


@record()
class Branches:
    """Branch of every row: ``use`` (m,) rows with ``u = 0``, and slip data per contact; the slopes (k,)
    by impulses and by rates of forces with a `RateLaw`.
    """

    use: Array
    slip: Array
    slope: Array
    size: Array
    own: tuple[Array, Array] | None = None


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
        push = problem.rows.normal_impulses(given, push, problem.mask)
    least, slowest = _rounding(problem, x, r) if answer else (0.0, 0.0)
    on = problem.mask & (push > least)
    if given is not None:  # friction with a given bound of zero slides: the bound then has a derivative
        on = on | (problem.mask & problem.rows.given)
    size = norm(z[:, 1:])
    radius = problem.friction * push
    # A disk of radius zero has no interior: friction zero always slips.
    stick = on & (size <= (radius * (1.0 - AT_BOUND) if answer else radius)) & (radius > 0.0)
    use = jnp.concatenate([on[:, None]] + [stick[:, None]] * problem.nt, axis=1)
    slip = on & ~stick
    if answer:
        slip = slip & (size > slowest)
    slope = jnp.where(slip[:, None], problem.friction[:, None] * direction(z[:, 1:]), 0.0)
    rows = problem.stack(use, jnp.ones(problem.nb, bool))
    if problem.rows.own is None:
        return Branches(use=rows, slip=slip, slope=slope, size=size)
    at = problem.own_residual
    own = (
        jax.jvp(f, (y,), (jnp.ones_like(y),))[1]
        for f, y in ((lambda x: at(x, u, r), x), (lambda u: at(x, u, r), u))
    )
    by_impulse, by_rate = jax.lax.stop_gradient(tuple(own))
    rows = problem.with_own(rows, lambda: by_rate != 0.0)
    slip = slip & ~problem.rows.given
    return Branches(use=rows, slip=slip, slope=slope, size=size, own=(by_impulse, by_rate))


def _rounding(problem: ContactProblem, x: Array, r: Array) -> tuple[Array, Array]:
    """Bounds (nc,) of rounding of the normal part of ``x - r u`` and of its tangents, see `UNDECIDED`."""
    free, g, size = jnp.abs(problem.free), problem.delassus, jnp.abs(x)
    if isinstance(g, DelassusFactors):
        terms = free + matvec(magnitude(g.wt), matvec(magnitude(g.response), size))
    else:
        terms = free + matvec(magnitude(g), size)
    least = problem.contacts(r * (UNDECIDED * terms + ROUNDING * jnp.max(free)))
    return least[:, 0], least[:, 1] if problem.nt else least[:, 0]


def _normal_columns(problem: ContactProblem) -> Any:
    """Constant (m, m) pattern: one where a tangent row meets the normal column of its contact."""
    rows, d, m = problem.rows, 1 + problem.nt, problem.free.shape[0]
    if m > CONSTANT_LIMIT and not rows.leads:
        row = indices(m)
        tangents = (lax.rem(row, d) != 0) & (row < rows.rough * d)
        return jnp.where(tangents[:, None] & ((row - lax.rem(row, d))[:, None] == row), 1.0, 0.0)
    pattern = np.zeros((m, m))
    for k in range(rows.rough):
        pattern[k * d + 1 : (k + 1) * d, k * d] = 1.0
    for k, lead in enumerate(rows.leads[rows.nc - rows.bounded :]):
        if lead >= 0:
            own = rows.ends[1] + k * rows.tangents
            pattern[own : own + rows.tangents, rows.normal_row(lead)] = 1.0
    return pattern


def _per_row(problem: ContactProblem, slope: Array) -> Array:
    """``slope`` (nc, nt) as a row vector (m,), zero on normal and bilateral rows."""
    wide = jnp.concatenate([jnp.zeros((problem.nc, 1)), slope], axis=1)
    return problem.stack(wide, jnp.zeros(problem.nb))


def tangent(
    problem: ContactProblem, x: Array, r: Array, b: Branches,
    regularisation: Array | float = REGULARISATION,
) -> Array:  # fmt: skip
    """Generalised derivative of the prox rows on the branches ``b`` (m, m)."""
    m = problem.free.shape[0]
    scaled = r[:, None] * problem.matrix
    idle = one = unit_matrix(m)
    if problem.nt and problem.nc:
        idle = idle - _per_row(problem, b.slope)[:, None] * _normal_columns(problem)
    a = jnp.where(b.use[:, None], scaled + regularisation * one, idle)
    if turns_in_space(problem):
        a = a + _curvature(problem, x, scaled, b)
    if b.own is None:
        return a
    _, first, end = problem.rows.ends
    by_impulse, by_rate = (y[:, None] for y in b.own)
    weight = jnp.where(by_rate != 0.0, regularisation, 0.0)
    unit = (by_impulse + weight) * one[first:end]
    return problem.with_own(a, lambda: unit + by_rate * problem.matrix[first:end])


def turns_in_space(problem: ContactProblem) -> bool:
    """Whether sliding has a direction that turns: there are friction discs."""
    return problem.nt == 2 and (bool(problem.rows.rough) or problem.rows.tangents == 2)


def curvature_blocks(problem: ContactProblem, x: Array, b: Branches) -> Array:
    """Turning of the slip direction ``A = R/|z| (I - n n')`` (n, 2, 2) of contacts in space: of those with
    all rows, or of all if the contacts with tangents alone have two, too.
    """
    discs = problem.rows.tangents == 2
    nc = problem.nc if discs else problem.rows.rough  # one tangent alone does not turn
    mu = problem.friction[:nc, None]
    n = jnp.where(mu > 0.0, b.slope[:nc] / jnp.where(mu > 0.0, mu, 1.0), 0.0)
    normal = problem.impulses(x) if discs else problem.contacts(x)
    radius = problem.friction[:nc] * normal[:nc, 0]
    bent = b.slip[:nc] & (radius > 0.0)
    ratio = jnp.where(bent, jnp.minimum(radius / jnp.where(bent, b.size[:nc], 1.0), 1.0), 0.0)
    return once(ratio[:, None, None] * (np.eye(2) - n[:, :, None] * n[:, None, :]))


def _curvature(problem: ContactProblem, x: Array, scaled: Array, b: Branches) -> Array:
    """Turning of the slip direction: ``A (r G_T - E_T)`` with the blocks of `curvature_blocks`."""
    groups, m = problem.rows, problem.free.shape[0]
    nc, d = groups.rough, 1 + problem.nt
    block, (_, second, third) = curvature_blocks(problem, x, b), groups.ends
    every = scaled - unit_matrix(m)
    # the empty second tangent of a bounded row moves nothing: it keeps its unit row, so its impulse is zero
    own = problem.contacts(jnp.sum(scaled * unit_matrix(m), axis=1))[:, 1:, None] > 0.0

    def turned(rows: Array, which: Any) -> Array:
        found = jnp.sum(block[which, :, :, None] * rows[:, None, :, :], axis=2)
        return jnp.where(own[which], found, 0.0)

    full = turned(every[: nc * d].reshape(nc, d, m)[:, 1:], np.s_[:nc])
    parts = [jnp.concatenate([jnp.zeros((nc, 1, m)), full], axis=1).reshape(nc * d, m)]
    if groups.tangents == 2:
        last = np.s_[problem.nc - groups.bounded :]
        parts += [jnp.zeros((groups.frictionless, m))]
        parts += [turned(every[second:third].reshape(-1, 2, m), last).reshape(-1, m)]
    done = sum(x.shape[0] for x in parts)
    parts += [jnp.zeros((m - done, m))] if m > done else []
    return jnp.concatenate(parts) if len(parts) > 1 else parts[0]


def branch_residual(problem: ContactProblem, x: Array, u: Array, r: Array, b: Branches) -> Array:
    """Prox rows on given branches: ``r u`` where active, ``x_T - mu n x_N`` on slip, ``x`` if open."""
    normal = problem.rows.per_contact(problem.impulses(x)[:, 0], jnp.zeros(problem.nb))
    known = _per_row(problem, b.slope) * normal
    found = jnp.where(b.use, r * u, x - known)
    return problem.with_own(found, lambda: problem.own_residual(x, u, r))


# Least answer of linear contact rows of which some depend on others, without a weight on the diagonal.
#
# Where a contact sticks along a guide that sticks itself, or a box stands on its corners, the rows of
# active contacts depend on each other: their matrix is singular, and data that change may ask of them
# what they cannot fulfil together. A small weight on the diagonal makes the matrix regular, but its
# answer to such a change is as large as one over the weight, most of it rounding, which then grows from
# step to step.


LEAST_TURN = AT_BOUND
"""Pivot below which the row of friction across the sliding in space depends on the others. A contact that
slides with the velocity ``u`` resists turning by ``mu x_N / |u|``: as it stops, its row across becomes that
of a contact that sticks. Where other rows hold the contact across its sliding, the pivot is
``r |u| / (mu x_N)``, which falls from step to step, and rounding of the speed across changes forces by one
over it. Below `AT_BOUND`, the relative distance within which a force is at its bound, the direction of
sliding is taken as held by the others, and the force across is zero.
"""


def dependent_answer(
    a: Array, use: Array, f: Array, weight: Array | float = REGULARISATION, turns: Array | None = None
) -> Array:
    """Least ``x`` (m,) with ``a x = f`` in the independent rows, with derivatives of any order.

    Elimination passes over rows that depend on others, from the last row to the first: bilateral rows count
    before bounded ones, and these before contacts, whose restitution refers to the velocity before the
    step. Rows with small pivots are tried again after all others. With the independent rows ``I``, the
    others ``D`` and ``B = a_II^-1`` the changes that move nothing are the columns of ``N = (-B a_ID, 1)``,
    and ``x = (1 - N (N' N)^-1 N') B f``. No intermediate number is larger than the independent rows make
    it.

    Args:
        a: (m, m) rows, used ones with a unit diagonal.
        use: (m,) bool, rows that may depend on each other; the others are independent.
        f: (m,) right-hand side.
        weight: of the diagonal, see limits.
        turns: (m,) bool, rows of friction across the sliding: eliminated last, and with the answer zero
            where they depend on others, see `LEAST_TURN`; None: there are none.

    Limits: a row whose part beside the others is smaller than 1e-4 of it (a pivot of 1e-8) counts
    as dependent: two walls that meet at such an angle are one wall. With more rows than
    `nsjax.linalg.LOOP_LIMIT` ``weight`` is added to the diagonal instead.
    """
    m = a.shape[0]
    if m > LOOP_LIMIT:
        added = jnp.where(use if turns is None else use | turns, weight, 0.0)[:, None] * np.eye(m)
        return solve(a + added, f[:, None])[:, 0]
    inverse, free = _eliminated(a, use, turns)
    if turns is not None:
        free = free & ~turns

    def dependent(_: None) -> Array:
        # columns: changes of impulses that move nothing, one for each dependent row
        moves = jnp.where(free, matmul(inverse, a, few=True) - np.eye(m), 0.0)
        # the unit matrix in independent rows, so that the matrix is regular whatever their number
        square = matmul(moves.T, moves, few=True) + jnp.where(free, 0.0, 1.0) * np.eye(m)
        return matmul(moves, solve(square, moves.T, LOOP_LIMIT), few=True)

    x = matvec(inverse, f)
    return x - matvec(branch(jnp.any(free), dependent, lambda _: jnp.zeros((m, m)), None), x)


@jax.custom_jvp
def _eliminated(a: Array, use: Array, turns: Array | None) -> tuple[Array, Array]:
    """``B`` (m, m), zero in dependent rows and columns, and the dependent rows (m,) bool.

    The derivative is that of an inverse: it does not go through the elimination.
    """
    m = a.shape[0]
    at = functools.partial(lax.dynamic_index_in_dim, keepdims=False, allow_negative_indices=False)
    # pivot above which a row is eliminated at once; rows below it wait for all others: in its turn one
    # would leave rounding over its small pivot to another row, which would count as independent
    first, bounded = jnp.full(m, 1e-4), use
    # pivot below which a row of unit diagonal depends on others: rounding (1e-15) grows by one over it
    last = jnp.full(m, 1e-8)
    index, order = np.arange(m), lambda n: m - 1 - n
    if turns is not None:
        first, last = jnp.where(turns, jnp.inf, first), jnp.where(turns, LEAST_TURN, last)
        bounded = use | turns
        later = index + jnp.where(turns, 0, m)
        place = jnp.sum(later[None, :] > later[:, None], axis=1)
        order = lambda n: jnp.sum(jnp.where(place == n, index, 0))  # noqa: E731

    def eliminate(n: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, free, smallest = carry
        k = order(lax.rem(n, m))
        row, column = at(x, k), at(x, k, axis=1)
        pivot = at(row, k)
        # rounding of pivots; divided by the least pivot so far it is that of the pivots that follow
        least = jnp.where(n < m, at(first, k), jnp.maximum(at(last, k), 1e-14 / smallest))
        found = at(free, k) & ((jnp.abs(pivot) > least) | ~at(bounded, k))
        here, one = found & (index == k), jnp.where(found, pivot, 1.0)
        row = jnp.where(found, jnp.where(here, 1.0, row) / one, 0.0)
        x = jnp.where(here[:, None] | here, 0.0, x) - jnp.where(here, -1.0, column)[:, None] * row
        return x, free & ~here, jnp.where(found, jnp.minimum(smallest, jnp.abs(pivot)), smallest)

    # columns of eliminated rows hold those of the inverse
    start = a, jnp.ones(m, bool), jnp.ones(())
    if jax.default_backend() != "cpu":  # where loops of unknown length wait for the host
        x, free, _ = lax.fori_loop(0, 2 * m, eliminate, start)
    else:
        going = lambda c: (c[0] < m) | ((c[0] < 2 * m) & jnp.any(c[1][1]))  # noqa: E731
        onwards = lambda c: (c[0] + 1, eliminate(*c))  # noqa: E731
        _, (x, free, _) = lax.while_loop(going, onwards, (jnp.asarray(0), start))
    return jnp.where(free[:, None] | free[None, :], 0.0, x), free


@_eliminated.defjvp
def _inverse_moves(primals: Any, tangents: Any) -> Any:
    inverse, free = _eliminated(*primals)
    # dB = -B dA B; which rows depend on others is a decision
    change = -matmul(inverse, matmul(tangents[0], inverse, few=True), few=True)
    return (inverse, free), (change, np.zeros(free.shape, jax.dtypes.float0))


# Rows of Newton's method from the factors of the Delassus operator, without its matrix.


def has_rows(problem: ContactProblem) -> bool:
    """Whether the rows of a problem are formed from its factors: from arrays with few velocities, if there
    are up to `ROW_LIMIT` rows, but at most `LOOP_LIMIT` whose force always acts.
    """
    rows, g, m = problem.rows, problem.delassus, problem.free.shape[0]
    always, alone = rows.bounded * rows.tangents + rows.nb, rows.tangents == 2
    alone = alone or bool(rows.leads) or rows.own is not None
    if not isinstance(g, DelassusFactors) or alone or not always <= LOOP_LIMIT < m <= ROW_LIMIT:
        return False
    return all(isinstance(x, jax.Array) for x in (g.wt, g.response)) and g.wt.shape[1] <= LOOP_LIMIT


def factored_tangent(
    problem: ContactProblem, x: Array, r: Array, b: Branches, weight: Array, soft: Array | float
) -> Array:  # fmt: skip
    """`nsjax.contact.branches.tangent` (m, m) as ``T M^-1 W + K``, for ``G = W' M^-1 W + diag(soft)``.

    ``T`` (m, nv) mixes the rows of ``r W'`` of each contact, ``K`` couples the rows of each contact. One
    matrix is written, and none is read.

    Args:
        x, r, b: impulses (m,), scaling (m,) and branches of the rows.
        weight: regularisation of the active rows.
        soft: compliances of the rows (m,), or one number.
    """
    first, n, d = problem.rows.ends[0], problem.rows.rough, 1 + problem.nt
    g, soft = problem.delassus, r * soft
    wt = r[:, None] * g.wt
    mixed, own = rows_of_contacts(problem, x, r, b, weight, soft)
    rows = wt[:first].reshape(n, d, -1)
    rows = functools.reduce(jnp.add, (mixed[:, :, j, None] * rows[:, j, None] for j in range(d)))
    last = b.use[first:, None]
    turned = jnp.concatenate([rows.reshape(first, -1), jnp.where(last, wt[first:], 0.0)])
    alone = jnp.where(last, weight + soft[first:, None], 1.0)
    near = jnp.concatenate([own.reshape(first, d), jnp.pad(alone, ((0, 0), (0, d - 1)))])
    row = indices(near.shape[0])  # the entries of ``near`` are in the columns of each row's own contact
    start = jnp.where(row < first, row - row % d, row)[:, None]
    terms = [turned[:, k, None] * g.response[k] for k in range(turned.shape[1])]
    terms += [jnp.where(row == start + j, near[:, j, None], 0.0) for j in range(d)]
    return functools.reduce(jnp.add, terms)


def rows_of_contacts(
    problem: ContactProblem, x: Array, r: Array, b: Branches, weight: Array, soft: Array
) -> tuple[Array, Array]:
    """``T`` and ``K`` (rough, 1 + nt, 1 + nt) of the contacts with all rows: the tangent is
    ``T r W' M^-1 W + K``. See `factored_tangent`; ``soft`` (m,) are compliances times ``r``.
    """
    first, n, d = problem.rows.ends[0], problem.rows.rough, 1 + problem.nt
    g, one = problem.delassus, np.eye(1 + problem.nt)
    use = b.use[:first].reshape(n, d, 1)
    slope = jnp.concatenate([jnp.zeros((n, 1)), b.slope[:n]], axis=1)
    mixed = jnp.where(use, one, 0.0)
    own = jnp.where(use, weight * one, one - slope[:, :, None] * one[0])
    if problem.nt == 2:
        turn = jnp.pad(curvature_blocks(problem, x, b), ((0, 0), (1, 0), (1, 0)))
        # a row that nothing moves keeps its unit row
        moves = (r * product_diagonal(g.wt, g.response) + soft)[:first].reshape(n, d, 1) > 0.0
        turn = jnp.where(moves, turn, 0.0)
        mixed, own = mixed + turn, own - turn
    return mixed, own + mixed * soft[:first].reshape(n, 1, d)


# Newton steps of contacts between pairs of bodies, by elimination of the velocities of the bodies.
#
# Such a step is ``(T r W' M^-1 W + K) y = f``, with ``T`` and ``K`` contact by contact
# (`nsjax.contact.branches`). With the velocities ``w = M^-1 W y`` that it causes,
#
#     (1 + M^-1 W K^-1 T r W') w = M^-1 W K^-1 f,        y = K^-1 (f - T r W' w)
#
# Bodies are then coupled as their contacts couple them, and a heap is eliminated layer by layer.


def eliminates(problem: ContactProblem) -> bool:
    """Whether a problem has an order in which bodies are eliminated."""
    return problem.paired and problem.delassus.order is not None


def paired_answer(problem: ContactProblem, tangent: tuple[Array, Array], r: Array, f: Array) -> Array:
    """``y`` (m,) for the values ``f`` (m,).

    Rows that stick or turn their sliding are regularised as in rigid steps, with compliances too: ``K`` is
    singular where a contact begins to slide. Steps are those of increments, which this does not move.

    Args:
        problem: which `eliminates`.
        tangent: ``T`` and ``K``, see `nsjax.contact.branches.rows_of_contacts`.
        r: scaling (m,) of the rows.
        f: (m,).
    """
    g, n, d = problem.delassus, problem.nc, 1 + problem.nt
    mixed, own = tangent
    inverse = jax.vmap(solve, (0, None))(own + REGULARISATION * mixed, jnp.eye(d))
    inner = inverse @ (mixed * r.reshape(n, 1, d))
    alone = jnp.sum(inverse * f.reshape(n, 1, d), axis=2)
    w = solve_pairs(g.wt, g.response, inner, problem.mask, g.response.times(alone.reshape(-1)), g.order)
    return (alone - jnp.sum(inner * g.wt.times(w).reshape(n, 1, d), axis=2)).reshape(-1)
