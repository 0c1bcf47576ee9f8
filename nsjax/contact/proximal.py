"""Newton's method with proximal steps: for many contacts that are wedged and depend on each other.

A heap of spheres that comes together has hundreds of contacts that stick, slide or are about to open, and
directions in which hardly anything moves. Plain Newton steps cycle between branches there, sweeps creep, and
the way by compliant contacts (`nsjax.contact.newton.newton_by_compliance`) ends at folds. A proximal step
takes impulses ``a`` that are known to those of contacts that resist the change from them,

    u = F + G x + c / r (x - a),      r = 1 / G_kk

which for a ``c > 0`` is a regular problem whose answer is near ``a``: Newton's method finds it in a few
steps. With ``a`` at the answer the next ``c`` is smaller, after a failure larger. A fixed point fulfils the
laws whatever ``c`` is.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact.certificate import impulse_scale
from nsjax.contact.newton import Iterate, Rows
from nsjax.contact.problem import ContactProblem
from nsjax.types import Array, record

FIRST, SMALLER, LARGER = 0.01, 0.1, 30.0
"""Of the resistance ``c`` in parts of those of rows, and by which it changes after an answer and a failure."""

LEAST, MOST = 1e-9, 1e3
"""Bounds of ``c``: pivots stay a million times above rounding; contacts hardly move each other."""

STAGE = 12
"""Newton steps for one ``c``."""

INNER = 0.1
"""Bound on the residual of a proximal step, in parts of the tolerance."""


@record()
class _Steps:
    """Present iterate of a proximal step, the best of the whole problem, ``a``, ``c``, and steps with it."""

    now: Iterate
    best: Iterate
    known: Array
    resistance: Array
    since: Array


def proximal_newton(problem: ContactProblem, x: Array, *, tolerance: Array, cap: Array) -> Iterate:
    """The best iterate, from the impulses ``x`` (m,), after up to ``cap`` Newton steps."""
    whole = Rows(problem)

    def near(known: Array, resistance: Array) -> tuple[Rows, Array]:
        each = jnp.broadcast_to(resistance, known.shape)
        free = problem.free - each / whole.r * known
        return Rows(dataclasses.replace(problem, free=free)), each

    def at(x: Array, steps: Array, known: Array, resistance: Array) -> Iterate:
        rows, each = near(known, resistance)
        return rows.at(x, steps, each)

    def unsolved(s: _Steps) -> Array:
        return ~(s.best.residual <= tolerance) & (s.now.steps < cap) & jnp.isfinite(whole.scale[1])

    def step(s: _Steps) -> _Steps:
        def descend(s: _Steps) -> tuple[Array, Array, Array]:
            rows, each = near(s.known, s.resistance)
            return s.now.x + rows.direction(s.now, compliance=each, rigid=False), s.known, s.resistance

        def on(s: _Steps) -> tuple[Array, Array, Array]:
            solved = s.now.residual <= INNER * tolerance
            known = jnp.where(solved, s.now.x, s.known)
            factor = jnp.where(solved, SMALLER, LARGER)
            return known, known, jnp.clip(s.resistance * factor, LEAST, MOST)

        turn = (s.since >= STAGE) | ~(s.now.residual > INNER * tolerance)
        x, known, resistance = lax.cond(turn, on, descend, s)
        now = at(x, s.now.steps + ~turn, known, resistance)
        here = whole.at(x, now.steps)
        best = jax.tree.map(lambda a, b: jnp.where(here.residual < s.best.residual, a, b), here, s.best)
        return _Steps(
            now=now, best=best, known=known, resistance=resistance, since=jnp.where(turn, 0, s.since + 1)
        )

    none, first = jnp.asarray(0, int), jnp.asarray(FIRST)
    start = _Steps(
        now=at(x, none, x, first), best=whole.at(x, none), known=x, resistance=first, since=none
    )
    end = lax.while_loop(unsolved, step, start)
    return dataclasses.replace(end.best, steps=end.now.steps)
