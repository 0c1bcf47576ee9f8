"""Semismooth Newton on the prox equations of the contact problem.

On the branch (open, stick, slip) of the current iterate every prox row is linear; Newton solves
that system and decides the branches anew (an active-set method). The update is written for the
increment, so that the small regularisation of the active rows, which picks one of many answers
when contacts depend on each other, does not move the fixed point.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.branches import REGULARISATION, branch_residual, branches, tangent
from nsjax.contact.certificate import LARGEST_RATIO, impulse_scale, relative_residual
from nsjax.contact.gauss_seidel import gauss_seidel
from nsjax.contact.problem import ContactProblem
from nsjax.linalg import solve_rows
from nsjax.types import Array, record

# Compliant contacts, see `newton_in_rounds`: tries, each with other compliances, their logarithmic range, and
# Newton steps for one compliance. The next is `FASTEST` of the last; a step that fails takes the root of its
# factor, one that succeeds the square, and above `SLOWEST` the way is at a fold. Measured on problems of
# bodies that come to rest: one way in eight ends at a fold, and none of 1,500 problems at all of six.
TRIES = 40
COMPLIANCES = (0.1, 10.0)
STAGE_STEPS = 15
FASTEST, SLOWEST = 0.1, 0.98
# Compliances relative to the tolerance, below which contacts are rigid.
RIGID = 0.03
# Ways on which impulses have grown beyond `LARGEST_RATIO` before a problem is called without an answer.
JAMS = 3
# Rounds of sweeps, for problems of which no compliant one is found: sweeps of Gauss-Seidel, four times as many
# each round, then damped Newton with a small and a large Levenberg weight in turn.
ROUNDS = 5
FIRST_SWEEPS = 10
MORE_SWEEPS = 4
ROUND_STEPS = 60
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

    def compliant(self, compliance: Array) -> ContactProblem:
        """The problem with ``compliance`` (m,) on the diagonal, in parts of that of the rows."""
        m = self.problem.free.shape[0]
        soft = self.problem.matrix + (compliance / self.r)[:, None] * np.eye(m)
        return dataclasses.replace(self.problem, delassus=soft)

    def at(self, x: Array, steps: Array, sweeps: Array, compliance: Array | None = None) -> Iterate:
        """The iterate at the impulses ``x``."""
        u = self.problem.velocity(x)
        if compliance is not None:
            u = u + compliance / self.r * x
        size = relative_residual(self.problem, x, u, self.r, self.scale)
        return Iterate(x=x, u=u, residual=size, steps=steps, sweeps=sweeps)

    def direction(
        self, now: Iterate, weight: Array | float = REGULARISATION, exact: bool = True,
        compliance: Array | None = None,
    ) -> Array:  # fmt: skip
        """Full Newton step on the branches of ``now``."""
        problem = self.problem if compliance is None else self.compliant(compliance)
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
class _Way:
    """How contacts become rigid: the present compliance, the last one with an answer and this, the factor
    between compliances, the first answer, and ways that have led to enormous impulses.
    """

    compliance: Array
    last: Array
    x: Array
    factor: Array
    first: Array
    jams: Array


@record()
class _Search:
    """State of `newton_in_rounds`: present and best iterate, end of the sweeps so far, the way to rigid
    contacts, phase (plain steps, tries, rounds), and steps since its last change.
    """

    now: Iterate
    best: Iterate
    swept: Array
    way: _Way
    k: Array
    since: Array


def newton_in_rounds(
    problem: ContactProblem, start: Iterate, *, tolerance: Array, max_iterations: Array | int
) -> tuple[Iterate, Array]:
    """Semismooth Newton: plain steps first, then, if those cycle, by way of compliant contacts.

    Up to ``max_iterations`` plain steps. Where contacts depend on each other (four corners of a box have
    twelve rows, the box six velocities), restitution and friction ask for velocities that no motion has:
    branches are then told apart by parts of the velocities, and impulses of any size belong to wrong ones.
    With a compliance ``c`` in every row::

        u = F + (G + c / r) x,      c -> 0

    the problem is regular. It is solved with a large ``c``, and its answer followed to a small one, at which
    it solves the rigid problem: contacts begin to slide, or open, one after the other. Where such a way ends
    at a fold, another one begins with other ratios of compliances between contacts.

    Problems (large ones) that are too hard for that at the largest compliance are left to rounds: a few
    sweeps of Gauss-Seidel, then steps with a Levenberg weight in proportion to the residual, shortened where
    they do not shorten it. One loop serves all phases, so that there is one certificate and one elimination
    to compile.

    Returns the best iterate; ``steps`` counts all Newton steps; and the tries and rounds. Where it is not
    solved and ways led to impulses beyond `LARGEST_RATIO`, the problem has no answer: laws that contradict
    each other (a body jammed between walls and a prescribed motion, friction above the jamming limit) are
    fulfilled the better, the larger the impulses. It returns those of the largest compliance instead, of
    the size of single rows, with an infinite residual.
    """
    rows, cap = _Rows(problem), jnp.asarray(max_iterations, int)
    end = TRIES + ROUNDS

    def over(s: _Search) -> Array:
        """Whether the phase has come to its end, or into nowhere."""
        most = jnp.where(s.k == 0, cap, jnp.where(s.k > TRIES, ROUND_STEPS, STAGE_STEPS))
        return (s.since >= most) | ~(s.now.residual > tolerance)

    def unsolved(s: _Search) -> Array:
        return ~(s.best.residual <= tolerance) & (s.way.jams < JAMS) & ((s.k < end) | ~over(s))

    def sweep(s: _Search) -> tuple[Array, Array, Array, Array]:
        # data that are not finite cannot be swept into order: end here
        finite = jnp.isfinite(jnp.sum(problem.matrix)) & jnp.isfinite(jnp.sum(problem.free))
        count = jnp.where(finite, FIRST_SWEEPS * MORE_SWEEPS ** (s.k - TRIES - 1), 0)
        x = gauss_seidel(problem, s.swept, count)
        return x, jnp.zeros_like(x), count, jnp.where(finite, s.k, end)

    def descend(s: _Search) -> tuple[Array, Array, Array, Array]:
        damping = _damping(s.k)
        levenberg = jnp.clip(damping * s.now.residual, REGULARISATION, LARGEST_WEIGHT)
        weight = jnp.where(damping > 0.0, levenberg, jnp.where(s.way.compliance > 0.0, 0.0, REGULARISATION))
        d = rows.direction(s.now, weight, compliance=_compliances(problem, s))
        return s.now.x, d, jnp.asarray(0, int), s.k

    def step(s: _Search) -> _Search:
        changes = over(s)
        way, k, x = _onwards(s, rows, tolerance)
        way, k = _chosen(changes, way, s.way), jnp.where(changes, k, s.k)
        now = dataclasses.replace(s.now, x=jnp.where(changes, x, s.now.x))
        s = dataclasses.replace(s, now=now, way=way, k=k)
        sweeps = changes & (k > TRIES)
        choice = jnp.where(sweeps, 2, changes.astype(int))
        rest = lambda s: (s.now.x, jnp.zeros_like(s.now.x), jnp.asarray(0, int), s.k)  # noqa: E731
        x, d, count, k = lax.switch(choice, [descend, rest, sweep], s)
        now = dataclasses.replace(s.now, x=x, steps=s.now.steps + ~changes, sweeps=s.now.sweeps + count)
        now = _along(rows, now, d, (_damping(k) > 0.0) & ~changes, _compliances(problem, s))
        better = _is_better(now, s.best) & (way.compliance == 0.0)
        since = jnp.where(changes, 0, s.since + 1)
        swept = jnp.where(sweeps, x, s.swept)
        return _Search(now=now, best=_chosen(better, now, s.best), swept=swept, way=way, k=k, since=since)

    zero, none = jnp.asarray(0, int), jnp.zeros_like(start.x)
    rigid = jnp.zeros(())
    way = _Way(compliance=rigid, last=rigid, x=none, factor=rigid, first=none, jams=zero)
    begin = _Search(now=start, best=start, swept=none, way=way, k=zero, since=start.steps)
    s = lax.while_loop(unsolved, step, begin)
    jammed = (s.way.jams > 0) & ~(s.best.residual <= tolerance)
    return Iterate(
        x=jnp.where(jammed, s.way.first, s.best.x), u=s.best.u,
        residual=jnp.where(jammed, jnp.inf, s.best.residual), steps=s.now.steps, sweeps=s.now.sweeps,
    ), s.k  # fmt: skip


def _compliances(problem: ContactProblem, s: _Search) -> Array:
    """Of all rows (m,) in a try: equal in the first."""
    draw = np.random.default_rng(0).uniform(size=(problem.nc, 1))
    low, high = np.log(COMPLIANCES)
    each = jnp.exp(low + (high - low) * (draw * (s.k - 1) % 1.0))
    each = jnp.broadcast_to(each, (problem.nc, 1 + problem.nt))
    return s.way.compliance * problem.stack(each, jnp.ones(problem.nb))


def _onwards(s: _Search, rows: _Rows, tolerance: Array) -> tuple[_Way, Array, Array]:
    """Where to go on at the end of a phase: way, phase and impulses."""
    way, trying = s.way, (s.k > 0) & (s.k <= TRIES)
    solved = trying & (s.now.residual <= tolerance)
    last, x = jnp.where(solved, way.compliance, way.last), jnp.where(solved, s.now.x, way.x)
    square, root = jnp.maximum(way.factor * way.factor, FASTEST), jnp.sqrt(way.factor)
    factor = jnp.where(solved, square, root)
    none = last > 1.0  # the largest compliance has no answer
    on = trying & (factor <= SLOWEST) & (solved | (way.compliance > 0.0)) & ~none
    huge = jnp.max(jnp.abs(x), initial=0.0) > LARGEST_RATIO * rows.scale[1]
    next_one = jnp.where(trying & none, TRIES + 1, s.k + 1)
    k = jnp.where(on, s.k, next_one)
    wanted = last * factor
    compliance = jnp.where(on, jnp.where(wanted > RIGID * tolerance, wanted, 0.0), 1.0)
    first = jnp.where(solved & (way.last > 1.0), s.now.x, way.first)
    return _Way(
        compliance=jnp.where(k > TRIES, 0.0, compliance), last=jnp.where(on, last, 2.0), x=jnp.where(on, x, 0.0),
        factor=jnp.where(on, factor, FASTEST), first=first, jams=way.jams + (trying & ~on & huge),
    ), k, jnp.where(on, x, 0.0)  # fmt: skip


def _damping(k: Array) -> Array:
    """Levenberg weight of a round in parts of the residual; zero in other phases."""
    return jnp.where(k > TRIES, jnp.where((k - TRIES) % 2 == 1, *DAMPING), 0.0)


def _along(rows: _Rows, now: Iterate, d: Array, search: Array, compliance: Array) -> Iterate:
    """The full step ``d`` from ``now``; in a ``search``, if that is not sufficient, the best of a few."""
    lengths = jnp.asarray(STEP_LENGTHS)

    def attempt(carry: tuple[Array, Array, Iterate]) -> tuple[Array, Array, Iterate]:
        k, count, best = carry
        trial = rows.at(now.x + lengths[k] * d, now.steps, now.sweeps, compliance)
        short = search & ~(trial.residual < SUFFICIENT * now.residual)
        count = jnp.where((k == 0) & short, len(STEP_LENGTHS), count)
        return k + 1, count, _chosen((k == 0) | _is_better(trial, best), trial, best)

    start = jnp.asarray(0, int), jnp.asarray(1, int), now
    return lax.while_loop(lambda carry: carry[0] < carry[1], attempt, start)[2]


def _is_better(a: Iterate, b: Iterate) -> Array:
    """Whether the residual of ``a`` is smaller."""
    return (a.residual < b.residual) | jnp.isnan(b.residual)


def _chosen(first: Array, a: Any, b: Any) -> Any:
    """``a`` if ``first``, else ``b``."""
    return jax.tree.map(lambda a, b: jnp.where(first, a, b), a, b)
