"""Newton's method with proximal steps: for many contacts that are wedged and depend on each other.

A heap of spheres that comes together has many contacts that stick, slide or are about to open, and
directions in which hardly anything moves. Plain Newton steps cycle between branches there, sweeps creep,
and ways by compliant contacts (`nsjax.contact.newton.newton_by_compliance`) often end at folds. A proximal
step begins at known impulses ``a``. Contacts resist the change from them:

    u = F + G x + c / r (x - a),      r = 1 / G_kk

With ``c > 0`` the problem is regular and its answer is near ``a``: Newton's method finds it in a few steps.
The answer is the next ``a``. After an answer ``c`` becomes smaller, after a failure larger. Where ``x = a``
the laws are fulfilled, whatever ``c`` is (Rockafellar 1976, for problems without friction).
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact.newton import Iterate, ProxRows
from nsjax.contact.problem import ContactProblem
from nsjax.types import Array, record

FIRST, SMALLER, LARGER = 0.01, 0.1, 30.0
"""First resistance ``c``, relative to ``1 / r`` of rows; its factors after an answer, and after a failure.
"""

LEAST, MOST = 1e-9, 1e3
"""Bounds of ``c``: pivots stay a million times above rounding with the least, contacts hardly move each
other with the largest."""

STAGE = 12
"""Newton steps for one ``c``."""

INNER = 0.1
"""Bound on the residual of a proximal step, in parts of the tolerance."""

TRY = 400
"""Newton steps after which the iteration restarts, once, from zero, where it meets other branches."""


@record()
class _Steps:
    """Present iterate of a proximal step, the best of the whole problem, ``a``, ``c``, steps with it, and
    whether all began again.
    """

    now: Iterate
    best: Iterate
    known: Array
    resistance: Array
    since: Array
    again: Array


def proximal_newton(problem: ContactProblem, x: Array, *, tolerance: Array, cap: Array) -> Iterate:
    """Proximal steps from the impulses ``x`` (m,) until the problem is solved.

    Args:
        problem: with ``G`` as a matrix.
        x: for instance the result of sweeps.
        tolerance: of the relative natural-map residual.
        cap: most steps, those included that change ``a`` and ``c``.

    Returns:
        The best iterate, with the steps taken.

    Limits: with restitution wedged contacts may have laws that almost contradict each other: impulses along
    which nothing moves then grow from step to step, and 1e-6 may be left.
    """
    whole = ProxRows(problem)

    def near(known: Array, resistance: Array) -> tuple[ProxRows, Array]:
        each = jnp.broadcast_to(resistance, known.shape)
        free = problem.free - each / whole.r * known
        return ProxRows(dataclasses.replace(problem, free=free)), each

    def at(x: Array, steps: Array, known: Array, resistance: Array) -> Iterate:
        rows, each = near(known, resistance)
        return rows.at(x, steps, each)

    def unsolved(s: _Steps) -> Array:
        return ~(s.best.residual <= tolerance) & (s.now.steps < cap) & jnp.isfinite(whole.scale[1])

    def step(s: _Steps) -> _Steps:
        def descend(s: _Steps) -> tuple[Array, Array, Array, Array]:
            rows, each = near(s.known, s.resistance)
            x = s.now.x + rows.direction(s.now, compliance=each, rigid=False)
            return x, s.known, s.resistance, s.again

        def on(s: _Steps) -> tuple[Array, Array, Array, Array]:
            solved, again = s.now.residual <= INNER * tolerance, ~s.again & (s.now.steps >= TRY)
            known = jnp.where(again, 0.0, jnp.where(solved, s.now.x, s.known))
            resistance = jnp.clip(s.resistance * jnp.where(solved, SMALLER, LARGER), LEAST, MOST)
            return known, known, jnp.where(again, FIRST, resistance), s.again | again

        turn = (s.since >= STAGE) | ~(s.now.residual > INNER * tolerance)
        x, known, resistance, again = lax.cond(turn, on, descend, s)
        now = at(x, s.now.steps + 1, known, resistance)
        here = whole.at(x, now.steps)
        best = jax.tree.map(lambda a, b: jnp.where(here.residual < s.best.residual, a, b), here, s.best)
        since = jnp.where(turn, 0, s.since + 1)
        return _Steps(now=now, best=best, known=known, resistance=resistance, since=since, again=again)

    none, first = jnp.asarray(0, int), jnp.asarray(FIRST)
    start = _Steps(
        now=at(x, none, x, first), best=whole.at(x, none), known=x, resistance=first, since=none,
        again=jnp.asarray(False),
    )  # fmt: skip
    end = lax.while_loop(unsolved, step, start)
    return dataclasses.replace(end.best, steps=end.now.steps)
