"""Contacts of many bodies by products alone: accelerated projected sweeps over groups of contacts."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.newton import pair_newton
from nsjax.contact.problem import (
    ContactProblem,
    DelassusFactors,
    impulse_scale,
    project_disk,
    relative_residual,
)
from nsjax.core.row_groups import RowGroups
from nsjax.linalg import Paired, solve
from nsjax.linalg.elimination import pair_order
from nsjax.types import Array, record

# Anderson's mixing of the last steps of an iteration, for sequences of impulses of many contacts.
#
# The changes ``dx_k`` and ``df_k`` of the last places ``x_k`` and steps ``f_k`` are stored. The next
# place is ``x + f - sum_k w_k (dx_k + df_k)`` with the weights that make ``|f - sum_k w_k df_k|`` least.
#
# Source: Anderson 1965.


REFUSED_GRADIENT = (
    "runs with contacts between changing bodies have no derivatives; take differences of runs, or a system "
    "without them"
)
"""Error sentence for runs that are solved by sweeps and differentiated."""


def added(a: Array, x: Array) -> Array:
    """Sum of ``a_i x_i`` over the first axis, term by term, which is faster than a reduction here."""
    return functools.reduce(jnp.add, (a[i] * x[i] for i in range(a.shape[0])))


def products(a: Array, x: Array) -> Array:
    """Scalar products of ``x`` with each ``a_i``."""
    return a.reshape(a.shape[0], -1) @ x.reshape(-1)


def weights(square: Array, along: Array) -> Array:
    """Weights (k,) with which changes cancel a step best.

    Args:
        square: products (k, k) of the changes; zeros for changes that do not count.
        along: products (k,) of the changes with the step.
    """
    size = square.shape[0]
    diagonal = jnp.sum(square * np.eye(size), axis=1)
    on = diagonal > 0.0
    scale = jnp.where(on, 1.0 / jnp.sqrt(jnp.where(on, diagonal, 1.0)), 0.0)
    # regularisation of the weights of mixing, relative to the squares of the changes: above rounding of
    # their products
    unit = scale[:, None] * square * scale + jnp.where(on, 1e-12, 1.0)[:, None] * np.eye(size)
    return scale * solve(unit, (scale * along)[:, None])[:, 0]


# Contacts of many bodies by products alone: projected sweeps over a few groups of contacts, accelerated.
#
# The contacts that take part are dealt out to `GROUPS` groups like cards, so that few of a group meet at
# one body. The groups are stepped one after the other, as in the method of Gauss and Seidel, and the
# contacts of a group at once: each body is split among the contacts of the group, as if each had its part
# of the mass. Then every contact has a local operator ``D_k``, and the block diagonal of them bounds the
# Delassus operator of the group from above,
#
#     D_k = c_a W_a' M_a^-1 W_a + c_b W_b' M_b^-1 W_b     (c: contacts of the group of each of its two
# bodies)
#
# so that steps of its size never overshoot where friction does not couple to the normal impulse. Such a
# sweep brings nearly as much as one from contact to contact, by a few operations on long arrays.
#
# Anderson's mixing of the last sweeps makes them as fast as a Krylov method once it is settled which
# contacts stick and slide. Before that, a mixed step may cross kinks, or cycle around one: then a smaller
# share of it is taken, and where mixing gains too little, plain sweeps follow, twice as many each time.
# These converge slowly, but reliably. Cost and memory of a sweep are in proportion to the contacts.


REMEMBERED = 6
"""Number of last steps that are mixed."""

WORSE, LEAST = 2.0, 0.01
"""A mixed step is not taken if the plain step from its end is longer than ``WORSE`` times the last plain
step; half of the mixing is tried then, since across a kink only the way up to it helps. Below the share
``LEAST`` of the mixing plain steps follow.
"""

SPAN, GAIN = 50, 0.5
"""``SPAN`` mixed steps must shorten the plain step to the part ``GAIN``, or plain steps follow."""


GROUPS = 8
"""Number of groups of contacts, stepped one after the other."""

SHARES, FEW = (16, 4, 2, 1), 32
"""A problem is solved on one over ``SHARES`` of all contact slots: on the smallest part that holds the
contacts that take part and gives a group at least ``FEW`` slots.
"""

PATIENCE = 2500
"""Largest number of further sweeps. Every `SPAN` sweeps, from the second time on, the number that is still
needed is extrapolated from the fall of the certificate; if it is larger, Newton's method takes over.
"""


@record()
class _Mixing:
    """State of the iteration: impulses (groups, d, n), plain step ``f`` there and its square, certificate;
    sums of the last changes of both (REMEMBERED, ...), the changes of plain steps, products of these, how
    many of them count, index of the next, steps taken, share of the mixing that is taken; plain steps still
    to come, their number the next time, the square of the plain step that mixing must reach, steps since
    this goal was set; the certificate when its rate was last estimated, and whether it falls fast enough.
    """

    x: Array
    f: Array
    size: Array
    residual: Array
    moves: Array
    changes: Array
    products: Array
    known: Array
    place: Array
    steps: Array
    share: Array
    rest: Array
    patience: Array
    goal: Array
    since: Array
    before: Array
    falls: Array


@record(static=("blocks",))
class _Group:
    """Contacts of a group, which are stepped at once; they are the last axis of its arrays."""

    of: Array
    wt: Array
    response: Array
    free: Array
    mask: Array
    friction: Array
    length: Array
    blocks: int

    def pushed(self, x: Array) -> Array:
        """Velocities (blocks + 1, c) of all bodies by the impulses ``x``."""
        pushed = jnp.concatenate([added(a, x) for a in self.response], axis=1)
        return jax.ops.segment_sum(pushed.T, self.of, num_segments=self.blocks + 1)

    def change(self, x: Array, moved: Array) -> Array:
        """Change of ``x`` by a projected step: normal impulses, then friction in their new disks."""
        sides = jnp.split(moved[self.of].T, 2, axis=1)
        pulls = (added(jnp.swapaxes(a, 0, 1), v) for a, v in zip(self.wt, sides, strict=True))
        # a step of every contact by the velocity that all impulses so far give it
        z = x - self.length * functools.reduce(jnp.add, pulls, self.free)
        normal = jnp.where(self.mask & (z[0] > 0.0), z[0], 0.0)
        new = normal[None]
        if x.shape[0] > 1:
            new = jnp.concatenate([new, project_disk(z[1:].T, self.friction * normal).T])
        return new - x


def _group(problem: ContactProblem) -> _Group:
    """All contacts of a problem as one group."""
    g: DelassusFactors = problem.delassus
    of, blocks = g.wt.of, g.wt.blocks
    held = jnp.where((of < blocks)[:, :, None, None], g.response.values, 0.0)
    # step lengths (n, 1 + nt) of the contacts of a group: one over the row sums of their local operators,
    # which bound coupled rows; one length for all tangents; zero where no impulse moves anything
    on = jnp.broadcast_to(problem.mask[:, None], of.shape).reshape(-1).astype(float)
    count = jax.ops.segment_sum(on, of.reshape(-1), num_segments=blocks + 1)
    d = jnp.sum(g.wt.values[:, :, :, None] * (held * count[of][:, :, None, None])[:, :, None], axis=(1, 4))
    sums = jnp.sum(jnp.abs(d), axis=2)
    normal, tangent = sums[:, :1], jnp.max(sums[:, 1:], axis=1, keepdims=True, initial=0.0)
    size = jnp.concatenate([normal] + [tangent] * (g.wt.values.shape[2] - 1), axis=1)
    return _Group(
        of=of.T.reshape(-1), wt=jnp.transpose(g.wt.values, (1, 2, 3, 0)),
        response=jnp.transpose(held, (1, 2, 3, 0)), free=problem.contacts(problem.free).T,
        mask=problem.mask, friction=problem.friction,
        length=jnp.where(size > 0.0, 1.0 / jnp.where(size > 0.0, size, 1.0), 0.0).T, blocks=blocks,
    )  # fmt: skip


class _Sweeps:
    """The sweep over the groups of a problem whose contacts are dealt out: impulses (groups, 1 + nt, n)."""

    def __init__(self, problem: ContactProblem) -> None:
        self.problem = problem
        self.all = _group(problem)
        self.groups = jax.vmap(_group)(_parts(problem))
        self.r = problem.scaling()
        self.scale = impulse_scale(problem, self.r)

    def plain(self, x: Array) -> Array:
        """``T(x) - x`` of a sweep ``T``."""

        def step(moved: Array, own: tuple[_Group, Array]) -> tuple[Array, Array]:
            group, y = own
            change = group.change(y, moved)
            return moved + group.pushed(change), change

        # velocities of bodies are kept from group to group: each adds what its changes push
        moved = self.all.pushed(jnp.concatenate(list(x), axis=1))
        return lax.scan(step, moved, (self.groups, x))[1]

    def certificate(self, x: Array) -> Array:
        """Relative natural-map residual."""
        flat = jnp.swapaxes(x, 1, 2).reshape(-1)
        return relative_residual(self.problem, flat, self.problem.velocity(flat), self.r, self.scale)


def _parts(problem: ContactProblem) -> ContactProblem:
    """The problems of all groups, along a leading axis."""
    n, g = problem.nc // GROUPS, problem.delassus

    def apart(x: Array) -> Array:
        return jnp.reshape(x, (GROUPS, n, *x.shape[1:]))

    wt, response = (
        Paired(values=apart(a.values), of=apart(a.of), blocks=a.blocks, across=a.across)
        for a in (g.wt, g.response)
    )
    return ContactProblem(
        rows=RowGroups.of(n, problem.nt), delassus=DelassusFactors(wt=wt, response=response),
        free=problem.free.reshape(GROUPS, -1), friction=apart(problem.friction), mask=apart(problem.mask),
    )  # fmt: skip


@record()
class _GroupedProblem:
    """A problem dealt out to groups; ``which``: contact of every slot; ``place``: slot (nc,) of each."""

    problem: ContactProblem
    which: Array
    place: Array

    def rows(self, x: Array) -> Array:
        """Impulses (groups, 1 + nt, n) from those of all rows (m,)."""
        few = self.problem
        block = jnp.where(few.mask[:, None], x.reshape(-1, 1 + few.nt)[self.which], 0.0)
        return jnp.swapaxes(block.reshape(GROUPS, -1, 1 + few.nt), 1, 2)

    def spread(self, x: Array, mask: Array) -> Array:
        """Impulses of all rows (m,) from those of the slots; ``mask`` (nc,) is that of all contacts."""
        block = x.reshape(self.problem.nc, -1)[self.place]
        return jnp.where(mask[:, None], block, 0.0).reshape(-1)


def _dealt(problem: ContactProblem, width: int) -> _GroupedProblem:
    """The contacts that take part, dealt in turn to the groups, up to ``width`` to each."""
    g, nc, order = problem.delassus, problem.nc, jnp.argsort(~problem.mask)
    # contacts in order of their numbers, like cards: neighbours come into different groups
    rank = np.arange(GROUPS * width).reshape(width, GROUPS).T.reshape(-1)
    which = order[np.minimum(rank, nc - 1)]
    few = ContactProblem(
        rows=RowGroups.of(GROUPS * width, problem.nt),
        delassus=DelassusFactors(wt=g.wt.taken(which), response=g.response.taken(which)),
        free=problem.contacts(problem.free)[which].reshape(-1), friction=problem.friction[which],
        mask=problem.mask[which] & (rank < nc),
    )  # fmt: skip
    back = jnp.argsort(order)
    place = back % GROUPS * width + back // GROUPS
    return _GroupedProblem(problem=few, which=which, place=jnp.where(problem.mask, place, 0))


def split_steps(
    problem: ContactProblem, tolerance: Array, cap: Array, start: Array | None = None
) -> tuple[Array, Array, Array]:
    """Impulses (m,), sweeps and Newton steps taken, and certificate of a problem between pairs of bodies.

    Args:
        problem: whose operator is `DelassusFactors` into `Paired` rows.
        tolerance: of the relative natural-map residual.
        cap: () int, the sweeps end after ``200 cap``.
        start: (m,) impulses to begin with; None: zeros.

    Limits: sweeps converge linearly; where wedged contacts slide slowly along directions in which hardly
    anything moves (a heap that comes together), or bodies differ by orders of magnitude, they creep. If
    more than `PATIENCE` are missing `nsjax.contact.newton` goes on from there. It needs an order of
    the bodies in which those that touch are near each other, as heaps have one; where there is none, the
    end of the sweeps is returned, and the certificate exceeds the tolerance.
    """
    first = jnp.zeros_like(problem.free) if start is None else start
    count, most = jnp.sum(problem.mask), 200 * cap
    # widths of a group, for each share of all contacts, at least `FEW`; the last holds all of them
    every = [-(-problem.nc // (share * GROUPS)) for share in SHARES]
    widths = [k for k in every[:-1] if k >= FEW] + every[-1:]
    which = jnp.sum(count > GROUPS * np.array(widths[:-1], int))

    def among(width: int) -> tuple[Array, Array, Array]:
        dealt = _dealt(problem, width)
        end = _mixed_sweeps(dealt.problem, tolerance, most, dealt.rows(first))
        # Newton's program is a large one: it is there for the smallest part, and for all contacts
        x, steps, residual = _to_end(dealt.problem, tolerance, end) if width == widths[0] else end
        return dealt.spread(x, problem.mask), steps, residual

    end = lax.switch(which, [functools.partial(among, width) for width in widths])
    return end if len(widths) == 1 else _to_end(problem, tolerance, end, which > 0)


def _to_end(
    problem: ContactProblem, tolerance: Array, end: tuple[Array, Array, Array], asked: Array | bool = True
) -> tuple[Array, Array, Array]:
    """Impulses (m,), steps, certificate: of the ``end``, or by Newton's method if ``asked`` and needed."""

    def more(end: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        order = pair_order(problem.delassus.wt, problem.mask)
        newton = functools.partial(pair_newton, problem, order, tolerance=tolerance)
        none = jnp.asarray(0, int)
        x, steps, residual = lax.cond(order.narrow, newton, lambda x: (x, none, end[2]), end[0])
        return x, end[1] + steps, residual

    return lax.cond((end[2] <= tolerance) | ~jnp.asarray(asked), lambda end: end, more, end)


def _first_mixing(rows: _Sweeps, x: Array) -> _Mixing:
    """The state at impulses ``x``."""
    zero = jnp.asarray(0, int)
    f, none = rows.plain(x), jnp.zeros((REMEMBERED, *x.shape))
    # number of plain steps that follow the first time; it doubles each time
    return _Mixing(
        x=x, f=f, size=jnp.sum(f * f), residual=rows.certificate(x), moves=none, changes=none,
        products=jnp.zeros((REMEMBERED, REMEMBERED)), known=zero, place=zero, steps=zero,
        share=jnp.ones(()), rest=zero, patience=jnp.asarray(20, int), goal=jnp.asarray(jnp.inf),
        since=zero, before=jnp.asarray(jnp.inf), falls=jnp.asarray(True),
    )  # fmt: skip


def _creeps(steps: Array, before: Array, residual: Array, tolerance: Array) -> Array:
    """Whether more than `PATIENCE` sweeps are missing, at the rate of the last `SPAN`."""
    fast = residual / tolerance <= (before / residual) ** (PATIENCE / SPAN)  # false for nan
    return (steps % SPAN == 0) & (steps > SPAN) & ~fast


def _mixed_sweeps(
    problem: ContactProblem, tolerance: Array, cap: Array, x: Array
) -> tuple[Array, Array, Array]:
    """Impulses (m,), sweeps and certificate of a problem that is dealt out, from ``x``, group by group."""
    rows = _Sweeps(problem)

    def step(s: _Mixing) -> _Mixing:
        # the plain step, less the share of it that the last changes would have taken
        x = s.x + s.f - s.share * added(s.moves, _weights(s))
        f = rows.plain(x)
        size = jnp.sum(f * f)
        # a mixed step that is rejected leaves no entry in the history
        bad = ~(size <= WORSE * WORSE * s.size) & (s.known > 0)
        change, here = f - s.f, np.arange(REMEMBERED) == s.place
        moves, changes = (
            lax.dynamic_update_slice_in_dim(old, new[None], s.place, 0)
            for old, new in ((s.moves, x - s.x + change), (s.changes, change))
        )
        row = products(changes, change)
        steps, place = s.steps + 1, jnp.where(bad, s.place, (s.place + 1) % REMEMBERED)
        known = jnp.where(bad, jnp.minimum(s.known, REMEMBERED - 1), jnp.minimum(s.known + 1, REMEMBERED))
        # rejected across a kink: half of the mixing is tried; it grows again with each that is taken
        share = jnp.where(bad, 0.5 * s.share, jnp.minimum(1.0, 2.0 * s.share))
        x, f, size = (jnp.where(bad, a, b) for a, b in ((s.x, x), (s.f, f), (s.size, size)))
        over = (s.since >= SPAN) & (s.rest == 0)
        stop = (share < LEAST) | (over & ~(size <= s.goal))
        # where mixing does not pay, plain steps follow and the history is forgotten
        rest = jnp.where(stop, s.patience, jnp.where(s.rest > 0, s.rest - 1, 0))
        anew = over | stop | (s.rest > 0)
        # steps from one certificate to the next: a certificate costs as much as a step
        residual = lax.cond(
            (steps % 5 == 0) | (steps >= cap), rows.certificate, lambda x: jnp.asarray(jnp.inf), x
        )
        return _Mixing(
            x=x, f=f, size=size, residual=residual, moves=moves, changes=changes,
            products=jnp.where(here[:, None], row, jnp.where(here, row[:, None], s.products)),
            known=jnp.where(rest > 0, 0, known), place=place, steps=steps,
            share=jnp.where(rest > 0, 1.0, share), rest=rest,
            patience=jnp.where(stop, 2 * s.patience, s.patience),
            goal=jnp.where(anew, GAIN * GAIN * size, s.goal), since=jnp.where(anew, 0, s.since + 1),
            before=jnp.where(steps % SPAN == 0, residual, s.before),
            falls=~_creeps(steps, s.before, residual, tolerance),
        )  # fmt: skip

    def unsolved(s: _Mixing) -> Array:
        return ~(s.residual <= tolerance) & (s.steps < cap) & s.falls

    end = lax.while_loop(unsolved, step, _first_mixing(rows, x))
    return jnp.swapaxes(end.x, 1, 2).reshape(-1), end.steps, end.residual


def _weights(s: _Mixing) -> Array:
    """Weights (REMEMBERED,) with which the last changes cancel the plain step best."""
    known = (s.place - 1 - np.arange(REMEMBERED)) % REMEMBERED < s.known
    square = jnp.where(known[:, None] & known, s.products, 0.0)
    return weights(square, products(s.changes, s.f))
