"""Contacts of many bodies: Newton's method on their velocities, with proximal steps on friction cones.

Coulomb's law is a law of cones when the normal velocity is shifted by ``s = mu |u_T|`` (De Saxce). With
known impulses ``a``, a known shift and a resistance ``c`` against the change of impulses,

    v = v_free + M^-1 W x,      x = P(a - r / c (u + s e_N)),      u = W' v + e,      r = 1 / G_kk

with the projection ``P`` on the friction cones in the metric of ``r`` (one for the normal, one for
tangents). These are the conditions for the least value of a convex function of the velocities. Newton's
method finds it: its matrix ``M + W P' r / c W'`` is symmetric and positive, so conjugate gradients solve
with it, blocks of bodies precondition, and a search along the step ends at the least value. Nothing is
factorised or stored but blocks of contacts and of bodies: cost and memory are in proportion to the
contacts.

The answer ``x`` and its shift are the next ``a`` and ``s``; where these no longer change the laws are
fulfilled, whatever ``c`` is. Anderson's mixing makes this sequence fast. A small ``c`` needs fewer of these
steps and more conjugate gradients, so that ``c`` begins large and falls.

Source: [Acary, Cadoux, Lemarechal, Malick 2011] for the shift as a fixed point; Rockafellar 1976 for the
proximal steps.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact import mixing
from nsjax.contact.certificate import impulse_scale, relative_residual
from nsjax.contact.problem import ContactProblem
from nsjax.contact.velocity_step import ConeDescent, Cones, descend
from nsjax.types import Array, record

FIRST, SMALLER, USUAL = 0.01, 0.3, 3e-3
"""First resistance ``c``, relative to ``1 / r`` of the rows; its factor after each step; its usual value,
to which it falls. With a usual value of 1e-2 hard heaps of a thousand spheres are not solved in a hundred
steps, with 1e-3 they take twice the matrix-vector products."""

LEAST = 1e-5
"""The smallest ``c``. It falls below the usual value where impulses change more than shifts: in wedged
contacts whose impulses grow with every step until one slides."""

REMEMBERED = 10
"""Number of last steps that are mixed."""

MIXES = 1e-2
"""Value of the certificate below which steps are mixed."""

ASTRAY = 2.0
"""Growth of the length of a step beyond which the steps before it are forgotten."""

INNER, CAREFUL = 1.0, 0.1
"""Bounds on what is left of the gradient by Newton's method, in parts of the change of the impulses and
shifts by the proximal step, in the first half of these steps and in the second. An end that is less exact
than its step is long is mostly exact enough: a hundred spheres that creep take 330 ms a step at 0.1, 210 at
1, 290 at 3, 520 at 10. Of 800 wedged problems 32 are left at 1 alone and 25 with both; 21 at 0.1 with
conjugate gradients to 0.1, in a third more steps."""

ROUNDS, STEPS = 4, 40
"""Most proximal steps, and most steps of Newton's method, in multiples of ``cap`` of `cone_newton`."""


@record()
class _ShiftSearch:
    """State: known impulses ``a`` and shifts ``s`` (n, 2 + nt), the descent from there, the best impulses
    with their certificate, the resistance, the number of proximal steps; changes of the ends of the last
    steps and of these steps (REMEMBERED, n, 2 + nt), the last end and step, and how many changes count.
    """

    known: Array
    at: ConeDescent
    best: Array
    residual: Array
    resistance: Array
    rounds: Array
    moves: Array
    changes: Array
    end: Array
    step: Array
    count: Array


def cone_newton(
    problem: ContactProblem, x: Array, *, tolerance: Array, cap: Array
) -> tuple[Array, Array, Array]:
    """Impulses (m,), Newton steps and certificate of a problem between pairs of bodies, from ``x``.

    Args:
        problem: whose operator is `DelassusFactors` into `Paired` rows.
        tolerance: of the relative natural-map residual.
        cap: () int, the iteration ends after ``STEPS * cap`` Newton or ``ROUNDS * cap`` proximal steps.

    Limits: the sequence of shifts converges linearly, and not always where friction is large; the
    certificate then exceeds the tolerance.
    """
    r, d = problem.scaling(), 1 + problem.nt
    scale, cones = impulse_scale(problem, r), Cones(problem, r)

    def certificate(x: Array) -> Array:
        flat = x.reshape(-1)
        return relative_residual(problem, flat, problem.velocity(flat), r, scale)

    def unsolved(s: _ShiftSearch) -> Array:
        return ~(s.residual <= tolerance) & (s.rounds < ROUNDS * cap) & (s.at.steps < STEPS * cap)

    def step(s: _ShiftSearch) -> _ShiftSearch:
        c = s.resistance
        size = jnp.maximum(jnp.max(jnp.abs(s.best)), scale[0])
        inner = jnp.where(s.rounds < ROUNDS * cap // 2, INNER, CAREFUL)
        at = descend(cones, s.at, cones.law(s.known, c), (inner, 0.1 * tolerance * size), STEPS * cap)
        end = jnp.concatenate([at.x, cones.shift(at.u)[:, None]], axis=1)
        new = certificate(at.x)
        better = new < s.residual
        s = dataclasses.replace(
            s, at=at, rounds=s.rounds + 1, best=jnp.where(better, at.x, s.best),
            residual=jnp.where(better, new, s.residual),
        )  # fmt: skip
        return _onwards(s, end, cones.weights(c), new)

    none, zero = jnp.zeros((REMEMBERED, problem.nc, 1 + d)), jnp.asarray(0, int)
    first = jnp.where(problem.mask[:, None], problem.contacts(x), 0.0)
    begin = cones.begin(first)
    known = jnp.concatenate([first, cones.shift(begin.u)[:, None]], axis=1)
    start = _ShiftSearch(
        known=known, at=begin, best=first, residual=certificate(first), resistance=jnp.asarray(FIRST),
        rounds=zero, moves=none, changes=none, end=known, step=jnp.zeros_like(known), count=zero,
    )  # fmt: skip
    end = lax.while_loop(unsolved, step, start)
    return end.best.reshape(-1), end.at.steps, end.residual


def _onwards(s: _ShiftSearch, end: Array, weights: Array, residual: Array) -> _ShiftSearch:
    """The search with its next known impulses and shifts, after a step from ``s.known`` to ``end``."""
    step = end - s.known
    sized = jnp.max(jnp.abs(weights * step), axis=0)
    impulses, shifts = jnp.max(sized[:-1]), sized[-1]
    above = s.resistance > USUAL
    stuck = ~above & (impulses > shifts) & (residual < MIXES) & (s.resistance > LEAST)
    c = jnp.where(above, jnp.maximum(SMALLER * s.resistance, USUAL), s.resistance)
    c = jnp.where(stuck, jnp.maximum(SMALLER * s.resistance, LEAST), c)
    length, before = (jnp.sum(jnp.square(weights * y)) for y in (step, s.step))
    astray = (s.count > 0) & (length > ASTRAY * ASTRAY * before)
    plain = above | stuck | (residual > MIXES)
    count = jnp.where(plain | astray, 0, s.count)
    place = lax.rem(jnp.maximum(count - 1, 0), REMEMBERED)
    moves, changes = (
        lax.dynamic_update_slice_in_dim(old, new[None], place, 0)
        for old, new in ((s.moves, end - s.end), (s.changes, step - s.step))
    )
    used = np.arange(REMEMBERED)[:, None, None] < count
    known = end - mixing.added(moves, _weights(jnp.where(used, weights * changes, 0.0), weights * step))
    known = jnp.concatenate([known[:, :-1], jnp.where(known[:, -1:] > 0.0, known[:, -1:], 0.0)], axis=1)
    return dataclasses.replace(
        s, known=jnp.where(plain, end, known), resistance=c, moves=moves, changes=changes, end=end,
        step=step, count=jnp.where(plain, 0, count + 1),
    )  # fmt: skip


def _weights(changes: Array, step: Array) -> Array:
    """Weights (REMEMBERED,) with which the changes cancel the step best."""
    square = jnp.stack([mixing.products(changes, x) for x in changes])
    return mixing.weights(square, mixing.products(changes, step))
