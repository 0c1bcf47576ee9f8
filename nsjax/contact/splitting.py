"""Contacts of many bodies by products alone: projected steps on all contacts at once, accelerated.

Each body is split among its contacts, as if each held its part of the mass: then every contact has a local
operator ``D_k``, and the block diagonal of them bounds the Delassus operator from above,

    D_k = c_a W_a' M_a^-1 W_a + c_b W_b' M_b^-1 W_b      (c: contacts of each of its two bodies)

so that steps of its size never overshoot where friction does not couple to the normal impulse. Anderson's
mixing of the last steps makes them as fast as a Krylov method once it is settled which contacts stick and
slide. Before it is, mixing may run in circles around a kink: where it gains too little, plain steps take
over, twice as many each time. They creep, but arrive. No contact waits for another: cost and memory are in
proportion to the contacts.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.certificate import impulse_scale, relative_residual
from nsjax.contact.problem import ContactProblem, Factored, project_disk
from nsjax.core.pairs import REFUSED_GRADIENT
from nsjax.linalg import Paired, solve
from nsjax.types import Array, record

REMEMBERED = 6
"""Steps that are mixed."""

WORSE = 2.0
"""A mixed step whose own plain step would be longer than this many of the last one's is not taken."""

DEPENDENT = 1e-12
"""Weight of the least change in the mixing, relative to that of the steps: beside rounding of their
products, which are squares.
"""

SPAN, GAIN = 50, 0.5
"""Mixed steps over so many steps must shorten the plain step to this part, or plain ones follow."""

REST = 20
"""Plain steps that follow for the first time."""

LOOK = 10
"""Steps from one look at the certificate to the next: it costs as much as a step."""


@record()
class _Mixed:
    """State of the iteration, rows by rows of a contact: impulses (d, nc), plain step ``f`` there and its
    square, certificate, sums of the last changes of both (REMEMBERED, d, nc), the changes of plain steps,
    products of these, how many count, place of the next, steps taken; plain steps still to come, how many
    the next time, the square of the plain step below which mixing must come, and steps since that was set.
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
    rest: Array
    patience: Array
    goal: Array
    since: Array


def _added(a: Array, x: Array) -> Array:
    """Sum of ``a_i x_i`` over the first axis, written out: as a reduction in front of others XLA takes
    twenty times as long.
    """
    return functools.reduce(jnp.add, (a[i] * x[i] for i in range(a.shape[0])))


def _products(a: Array, x: Array) -> Array:
    """Of ``x`` with each ``a_i``."""
    made: Array = a.reshape(a.shape[0], -1) @ x.reshape(-1)
    return made


class _Steps:
    """The projected step of a problem, on arrays whose last axis are the contacts."""

    def __init__(self, problem: ContactProblem) -> None:
        self.problem = problem
        g: Factored = problem.delassus
        self.of, self.blocks = g.wt.of.T.reshape(-1), g.wt.blocks
        self.wt, self.response = (jnp.transpose(a.values, (1, 2, 3, 0)) for a in (g.wt, g.response))
        self.free, self.length = problem.contacts(problem.free).T, _lengths(problem).T
        self.r = problem.scaling()
        self.scale = impulse_scale(problem, self.r)

    def rates(self, x: Array) -> Array:
        """``F + G x``."""
        pushed = jnp.concatenate([_added(a, x) for a in self.response], axis=1)
        moved = jax.ops.segment_sum(pushed.T, self.of, num_segments=self.blocks + 1)
        moved = jnp.where(np.arange(self.blocks + 1)[:, None] < self.blocks, moved, 0.0)
        sides = jnp.split(moved[self.of].T, 2, axis=1)
        pulls = (_added(jnp.swapaxes(a, 0, 1), v) for a, v in zip(self.wt, sides, strict=True))
        return functools.reduce(jnp.add, pulls, self.free)

    def plain(self, x: Array) -> Array:
        """``T(x) - x``: normal impulses first, then friction in the disks of the new ones."""
        problem, z = self.problem, x - self.length * self.rates(x)
        normal = jnp.where(problem.mask & (z[0] > 0.0), z[0], 0.0)
        new = normal[None]
        if problem.nt:
            new = jnp.concatenate([new, project_disk(z[1:].T, problem.friction * normal).T])
        return new - x

    def certificate(self, x: Array) -> Array:
        """Relative natural-map residual."""
        flat = x.T.reshape(-1)
        return relative_residual(self.problem, flat, self.problem.velocity(flat), self.r, self.scale)


def _lengths(problem: ContactProblem) -> Array:
    """Steps (nc, 1 + nt) by the local operators: the normal's own, one for the tangents, zero where no
    impulse moves anything. Rows of a contact that couple share their row sums.
    """
    g: Factored = problem.delassus
    wt: Paired = g.wt
    count = wt.gathered(jnp.broadcast_to(problem.mask[:, None], wt.of.shape).astype(float))
    held = g.response.values * count[wt.of][:, :, None, None]
    d = jnp.sum(wt.values[:, :, :, None] * held[:, :, None], axis=(1, 4))
    sums = jnp.sum(jnp.abs(d), axis=2)
    normal, tangent = sums[:, :1], jnp.max(sums[:, 1:], axis=1, keepdims=True, initial=0.0)
    size = jnp.concatenate([normal] + [tangent] * problem.nt, axis=1)
    return jnp.where(size > 0.0, 1.0 / jnp.where(size > 0.0, size, 1.0), 0.0)


def split_steps(problem: ContactProblem, tolerance: Array, cap: Array) -> tuple[Array, Array, Array]:
    """Impulses (m,), steps taken and certificate of a problem between pairs of bodies.

    Args:
        problem: whose operator is `Factored` into `Paired` rows.
        tolerance: of the relative natural-map residual.
        cap: most steps.

    Limits: linear convergence; where wedged contacts slide slowly along directions in which hardly anything
    moves (a heap that comes together), or bodies differ by orders of magnitude, the cap may come first: the
    certificate says so.
    """
    rows = _Steps(problem)

    def step(s: _Mixed) -> _Mixed:
        x = s.x + s.f - _added(s.moves, _weights(s))
        f = rows.plain(x)
        size = jnp.sum(f * f)
        # a mixed step that leads astray is forgotten, with all that led to it
        bad = ~(size <= WORSE * WORSE * s.size) & (s.known > 0)
        change, here = f - s.f, np.arange(REMEMBERED) == s.place
        moves, changes = (
            lax.dynamic_update_slice_in_dim(old, new[None], s.place, 0)
            for old, new in ((s.moves, x - s.x + change), (s.changes, change))
        )
        row = _products(changes, change)
        steps, place = s.steps + 1, (s.place + 1) % REMEMBERED
        x, f, size = (jnp.where(bad, a, b) for a, b in ((s.x, x), (s.f, f), (s.size, size)))
        over = (s.since >= SPAN) & (s.rest == 0)
        stop = bad | (over & ~(size <= s.goal))
        rest = jnp.where(stop, s.patience, jnp.where(s.rest > 0, s.rest - 1, 0))
        anew = over | stop | (s.rest > 0)
        residual = lax.cond(
            (steps % LOOK == 0) | (steps >= cap), rows.certificate, lambda x: jnp.asarray(jnp.inf), x
        )
        return _Mixed(
            x=x, f=f, size=size, residual=residual, moves=moves, changes=changes,
            products=jnp.where(here[:, None], row, jnp.where(here, row[:, None], s.products)),
            known=jnp.where(rest > 0, 0, jnp.minimum(s.known + 1, REMEMBERED)), place=place, steps=steps,
            rest=rest, patience=jnp.where(stop, 2 * s.patience, s.patience),
            goal=jnp.where(anew, GAIN * GAIN * size, s.goal), since=jnp.where(anew, 0, s.since + 1),
        )  # fmt: skip

    def unsolved(s: _Mixed) -> Array:
        return ~(s.residual <= tolerance) & (s.steps < cap)

    x, zero = jnp.zeros_like(rows.free), jnp.asarray(0, int)
    f, none = rows.plain(x), jnp.zeros((REMEMBERED, *x.shape))
    start = _Mixed(
        x=x, f=f, size=jnp.sum(f * f), residual=rows.certificate(x), moves=none, changes=none,
        products=jnp.zeros((REMEMBERED, REMEMBERED)), known=zero, place=zero, steps=zero,
        rest=zero, patience=jnp.asarray(REST, int), goal=jnp.asarray(jnp.inf), since=zero,
    )  # fmt: skip
    end = lax.while_loop(unsolved, step, start)
    return end.x.T.reshape(-1), end.steps, end.residual


def _weights(s: _Mixed) -> Array:
    """Of the last changes, with which they cancel the plain step best (REMEMBERED,)."""
    known = (s.place - 1 - np.arange(REMEMBERED)) % REMEMBERED < s.known
    square = jnp.where(known[:, None] & known, s.products, 0.0)
    diagonal = jnp.sum(square * np.eye(REMEMBERED), axis=1)
    on = diagonal > 0.0
    scale = jnp.where(on, 1.0 / jnp.sqrt(jnp.where(on, diagonal, 1.0)), 0.0)
    unit = scale[:, None] * square * scale + jnp.where(on, DEPENDENT, 1.0)[:, None] * np.eye(REMEMBERED)
    return scale * solve(unit, (scale * _products(s.changes, s.f))[:, None])[:, 0]


@jax.custom_jvp
def without_derivative(x: Any) -> Any:
    """``x``, of which a derivative is refused."""
    return x


@without_derivative.defjvp
def _refused(primals: Any, tangents: Any) -> Any:
    raise NotImplementedError(REFUSED_GRADIENT)
