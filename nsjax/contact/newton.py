"""Semismooth Newton on the prox equations of the contact problem.

On the branch (open, stick, slip) of the current iterate every prox row is linear; Newton solves
that system and decides the branches anew (an active-set method). The update is written for the
increment, so that the small regularisation of the active rows, which picks one of many answers
when contacts depend on each other, does not move the fixed point.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact.branches import REGULARISATION, branch_residual, branches, tangent
from nsjax.contact.certificate import LARGEST_RATIO, impulse_scale, relative_residual
from nsjax.contact.gauss_seidel import gauss_seidel
from nsjax.contact.problem import ContactProblem
from nsjax.linalg import solve_rows
from nsjax.types import Array, record

# Rounds of the fallback: sweeps of Gauss-Seidel, four times as many each round, then damped Newton
# with a small and a large Levenberg weight in turn. Measured on the FCLIB problems: nearly all need one.
ROUNDS = 5
FIRST_SWEEPS = 10
MORE_SWEEPS = 4
ROUND_STEPS = 60
# Dependent rows that contradict each other by little (a constraint between two sticking bodies) have no
# answer on that branch, only on the edge of a friction cone. There the residual is flat, which brings the
# damped steps to a halt, while a plain one shifts impulses by residual / REGULARISATION of their size: by a
# hundredth of it at a tolerance of 1e-11. These many cross any cone.
LAST_STEPS = 200
# The Levenberg weight follows the residual: large where branches flip, gone at the answer.
DAMPING = (1e-2, 1.0)
LARGEST_WEIGHT = 1e-2
# A full step is kept if it shortens the residual at least this much; otherwise the best length is.
STEP_LENGTHS = (1.0, 0.5, 0.25, 0.1)
SUFFICIENT = 0.9


@record()
class Iterate:
    """State of a contact iteration: impulses, their velocity and residual, steps and sweeps taken."""

    x: Array
    u: Array
    residual: Array
    steps: Array
    sweeps: Array


def beginning(problem: ContactProblem) -> Iterate:
    """The start ``x = 0``, its residual not yet looked at."""
    zero = jnp.asarray(0, int)
    return Iterate(
        x=jnp.zeros_like(problem.free),
        u=problem.free,
        residual=jnp.asarray(jnp.inf),
        steps=zero,
        sweeps=zero,
    )


class _Rows:
    """The prox rows of a problem around an iterate: certificate and Newton direction."""

    def __init__(self, problem: ContactProblem) -> None:
        self.problem, self.r = problem, problem.scaling()
        self.scale = impulse_scale(problem, self.r)

    def at(self, x: Array, steps: Array, sweeps: Array) -> Iterate:
        """The iterate at the impulses ``x``."""
        u = self.problem.velocity(x)
        size = relative_residual(self.problem, x, u, self.r, self.scale)
        return Iterate(x=x, u=u, residual=size, steps=steps, sweeps=sweeps)

    def direction(self, now: Iterate, weight: Array | float = REGULARISATION, exact: bool = True) -> Array:
        """Full Newton step on the branches of ``now``."""
        problem = self.problem
        b = branches(problem, now.x, now.u, self.r)
        f = branch_residual(problem, now.x, now.u, self.r, b)
        a = tangent(problem, now.x, self.r, b, weight, exact)
        # an open contact without an impulse stays without: its rows are those of the unit matrix
        closed = problem.contacts(b.use)[:, 0]
        if problem.given is not None:
            closed = closed | problem.given.on
        closed = jnp.repeat(closed, 1 + problem.nt)
        closed = problem.stack(closed, jnp.ones(problem.nb, bool))
        return -solve_rows(a, f, closed | (f != 0.0))


def newton(
    problem: ContactProblem, *, tolerance: Array, max_iterations: Array | int, exact: bool = True
) -> Iterate:
    """Semismooth Newton from zero: up to ``max_iterations`` plain steps; one or two are enough in most
    contact steps of a simulation.
    """
    rows, cap = _Rows(problem), jnp.asarray(max_iterations, int)

    def step(now: Iterate) -> Iterate:
        return rows.at(now.x + rows.direction(now, exact=exact), now.steps + 1, now.sweeps)

    def unsolved(now: Iterate) -> Array:
        return (now.residual > tolerance) & (now.steps < cap)

    return lax.while_loop(unsolved, step, beginning(problem))


@record()
class _Search:
    """State of `newton_in_rounds`: present and best iterate, end of the sweeps so far and of the first
    round's, round.
    """

    now: Iterate
    best: Iterate
    swept: Array
    first: Array
    k: Array


def newton_in_rounds(
    problem: ContactProblem, start: Iterate, *, tolerance: Array, max_iterations: Array | int
) -> Iterate:
    """Semismooth Newton: plain steps first, then, if those cycle, rounds of the fallback.

    Up to ``max_iterations`` plain steps. Each following round starts from a few sweeps of Gauss-Seidel,
    adds a Levenberg weight in proportion to the residual, and shortens steps that do not shorten the
    residual. At the very end, near an answer, come `LAST_STEPS` plain steps from the best. One loop serves
    all phases, sweeps included, so that there is one certificate and one elimination to compile.

    Returns the best iterate; ``steps`` counts all Newton steps, plain ones first. Where that is not solved
    and holds impulses beyond `LARGEST_RATIO`, the problem has no answer: laws that contradict each other (a
    body jammed between walls and a prescribed motion, friction above the jamming limit) are fulfilled the
    better, the larger the impulses. It returns those of the first sweeps instead, a compromise of the size
    of single rows, with an infinite residual.
    """
    rows, cap = _Rows(problem), jnp.asarray(max_iterations, int)
    last_plain = cap + ROUNDS * ROUND_STEPS

    def over(s: _Search) -> Array:
        """Whether the round has come to its end, or into nowhere."""
        last = jnp.where(s.k > ROUNDS, last_plain + LAST_STEPS, cap + s.k * ROUND_STEPS)
        return (s.now.steps >= last) | ~(s.now.residual > tolerance)

    def unsolved(s: _Search) -> Array:
        # the last plain steps only where shifts of impulses are what is missing
        near = (s.k == ROUNDS) & (s.best.residual <= 10.0 * REGULARISATION)
        return ~(s.best.residual <= tolerance) & ((s.k < ROUNDS) | near | ~over(s))

    def sweep(s: _Search) -> tuple[Array, Iterate, Array, Array]:
        # data that are not finite cannot be swept into order: end here
        finite = jnp.isfinite(jnp.sum(problem.matrix)) & jnp.isfinite(jnp.sum(problem.free))
        count = jnp.where(finite, FIRST_SWEEPS * MORE_SWEEPS ** (s.k - 1), 0)
        x = gauss_seidel(problem, s.swept, count)
        steps = cap + (s.k - 1) * ROUND_STEPS
        now = dataclasses.replace(s.now, steps=steps, sweeps=s.now.sweeps + count)
        return x - s.now.x, now, x, jnp.where(finite, s.k, ROUNDS)

    def descend(s: _Search) -> tuple[Array, Iterate, Array, Array]:
        damping = _damping(s.k)
        levenberg = jnp.clip(damping * s.now.residual, REGULARISATION, LARGEST_WEIGHT)
        d = rows.direction(s.now, jnp.where(damping > 0.0, levenberg, REGULARISATION))
        return d, dataclasses.replace(s.now, steps=s.now.steps + 1), s.swept, s.k

    def step(s: _Search) -> _Search:
        begins = over(s)
        k = s.k + begins
        again = begins & (k > ROUNDS)
        first = dataclasses.replace(s.best, steps=last_plain, sweeps=s.now.sweeps)
        s = _Search(now=_choose(again, first, s.now), best=s.best, swept=s.swept, first=s.first, k=k)
        d, now, swept, k = lax.cond(begins & ~again, sweep, descend, s)
        now = _along(rows, now, d, (_damping(k) > 0.0) & ~begins)
        early = jnp.where(s.k <= 1, swept, s.first)
        best = _choose(_is_better(now, s.best), now, s.best)
        return _Search(now=now, best=best, swept=swept, first=early, k=k)

    zero = jnp.asarray(0, int)
    none = jnp.zeros_like(start.x)
    begin = _Search(now=start, best=start, swept=none, first=none, k=zero)
    return _answer(lax.while_loop(unsolved, step, begin), rows, tolerance)


def _answer(end: _Search, rows: _Rows, tolerance: Array) -> Iterate:
    """The best iterate; of a problem without an answer the first sweeps."""
    enormous = jnp.max(jnp.abs(end.best.x), initial=0.0) > LARGEST_RATIO * rows.scale[1]
    jammed = enormous & ~(end.best.residual <= tolerance)
    return Iterate(
        x=jnp.where(jammed, end.first, end.best.x), u=end.best.u,
        residual=jnp.where(jammed, jnp.inf, end.best.residual), steps=end.now.steps, sweeps=end.now.sweeps,
    )  # fmt: skip


def _damping(k: Array) -> Array:
    """Levenberg weight of a round in parts of the residual; zero in those of plain steps."""
    damped = jnp.where(k % 2 == 1, *DAMPING)
    return jnp.where((k == 0) | (k > ROUNDS), 0.0, damped)


def _along(rows: _Rows, now: Iterate, d: Array, search: Array) -> Iterate:
    """The full step ``d`` from ``now``; in a ``search``, if that is not sufficient, the best of a few."""
    lengths = jnp.asarray(STEP_LENGTHS)

    def attempt(carry: tuple[Array, Array, Iterate]) -> tuple[Array, Array, Iterate]:
        k, count, best = carry
        trial = rows.at(now.x + lengths[k] * d, now.steps, now.sweeps)
        short = search & ~(trial.residual < SUFFICIENT * now.residual)
        count = jnp.where((k == 0) & short, len(STEP_LENGTHS), count)
        return k + 1, count, _choose((k == 0) | _is_better(trial, best), trial, best)

    start = jnp.asarray(0, int), jnp.asarray(1, int), now
    return lax.while_loop(lambda carry: carry[0] < carry[1], attempt, start)[2]


def _is_better(a: Iterate, b: Iterate) -> Array:
    """Whether the residual of ``a`` is smaller."""
    return (a.residual < b.residual) | jnp.isnan(b.residual)


def _choose(first: Array, a: Iterate, b: Iterate) -> Iterate:
    """``a`` if ``first``, else ``b``."""
    return jax.tree.map(lambda a, b: jnp.where(first, a, b), a, b)
