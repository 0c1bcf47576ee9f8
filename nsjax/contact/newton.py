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

from nsjax.contact.branches import REGULARISATION, branch_residual, branches, per_contact, tangent
from nsjax.contact.certificate import LARGEST_RATIO, impulse_scale, relative_residual
from nsjax.contact.factored_rows import factored_tangent, has_rows
from nsjax.contact.problem import ContactProblem
from nsjax.core.branches import repeat
from nsjax.linalg import solve_rows, solve_some_rows
from nsjax.linalg.dense import unit_matrix
from nsjax.types import Array, record

# Plain steps decide branches at ``x - s r u`` with `SCALES` scales s = exp(-LESS k) = 1, 0.3, 0.09, 0.03 in
# turn, each for `SAME_SCALE` steps: branches that cycle with one scale do not with another. With s = 1
# alone, the best where rows hardly move each other, every seventh step of a robot on its feet with dry
# friction in all joints cycled. Random problems of that form gain little: 24 of 1,080 cycle with one scale,
# 19 with four.
SCALES, LESS, SAME_SCALE = 4, 1.2, 8

# A way is a path of answers from compliant contacts to rigid ones, see `newton_by_compliance`. `WORK`: most
# Newton steps of all ways times rows, but at least `LEAST_WORK` steps are allowed. `SOFT`: first
# compliance, relative to ``1 / r`` of rows, at which contacts hardly move each other. `RATIOS`: range of
# its ratios between contacts. Where bodies come to rest a way takes 70 to 130 steps, and one in eight ends
# at a fold.
WORK, LEAST_WORK = 1_000_000, 300
SOFT = 1e3
RATIOS = (0.01, 100.0)
# After `WAYS` ways, rigid contacts are started from drawn impulses, and one trial in `WAYS` remains a way.
# `DRAWN`: size of the draws relative to impulses of single rows, so large that they choose the branches of
# the first step; `DRAWN_STEPS`: Newton steps from each. Edges with friction near one, whose ways mostly end
# at folds, are solved from one draw in one or two hundred, by five steps.
WAYS, DRAWN, DRAWN_STEPS = 12, 10.0, 8
# Newton steps for one compliance. The next compliance is `FASTEST` times the last; where it has no answer
# the factor becomes its square root, where it has one its square; above `SLOWEST` the way is at a fold.
STAGE_STEPS = 20
FASTEST, SLOWEST = 0.1, 0.98
# Compliance below which contacts count as rigid, in parts of the tolerance.
RIGID = 0.03
# Number of ways to impulses beyond `LARGEST_RATIO` after which a problem is said to have no answer. From
# the first of them on, starts from drawn impulses are tried between ways: of 14,725 problems in the plane
# that are drawn with an answer, 3 are said to have none, 28 without such starts.
JAMS = 4
# A problem without an answer gets the impulses of the first compliance below this one, about ten: they
# still have the size of those of single rows.
GENTLE = 30.0


@record()
class Iterate:
    """State of a contact iteration: impulses, their velocity and residual, steps taken."""

    x: Array
    u: Array
    residual: Array
    steps: Array


def beginning(problem: ContactProblem, start: Array | None = None) -> Iterate:
    """First iterate: ``x = 0``, or ``start``, which may be an answer already. Its count of -1 steps says
    that its residual is computed before the first step.
    """
    x = jnp.zeros_like(problem.free) if start is None else start
    return Iterate(
        x=x, u=problem.free, residual=jnp.asarray(jnp.inf),
        steps=jnp.asarray(0 if start is None else -1, int),
    )  # fmt: skip


class ProxRows:
    """The prox rows of a problem around an iterate: certificate and Newton direction.

    With a ``compliance`` (m,) they are those of the problem with ``u = F + (G + compliance / r) x``.
    """

    def __init__(self, problem: ContactProblem) -> None:
        self.problem, self.r = problem, problem.scaling()
        self.scale = impulse_scale(problem, self.r)

    def at(self, x: Array, steps: Array, compliance: Array | None = None) -> Iterate:
        """The iterate at the impulses ``x``."""
        u, r = self.problem.velocity(x), self.r
        if compliance is not None:
            u, r = u + compliance / r * x, r / (1.0 + compliance)
        size = relative_residual(self.problem, x, u, r, self.scale)
        return Iterate(x=x, u=u, residual=size, steps=steps)

    def huge(self, x: Array) -> Array:
        """Whether impulses are beyond those of an answer."""
        return jnp.max(jnp.abs(x), initial=0.0) > LARGEST_RATIO * self.scale[1]

    def direction(
        self, now: Iterate, exact: bool = True, compliance: Array | None = None, rigid: Array | bool = True,
        steps: Array | None = None,
    ) -> Array:  # fmt: skip
        """Full Newton step on the branches of ``now``, regularised if ``rigid``; the count of plain
        ``steps`` chooses the scale of the branches.
        """
        problem, r, weight = self.problem, self.r, jnp.where(rigid, REGULARISATION, 0.0)
        soft: Any = 0.0
        if compliance is not None:
            soft, r = compliance / r, r / (1.0 + compliance)
        if steps is not None:
            r = r * _scale(steps)
        b = branches(problem, now.x, now.u, r)
        f = branch_residual(problem, now.x, now.u, r, b)
        some = has_rows(problem)
        if some:
            a = factored_tangent(problem, now.x, r, b, weight, soft)
        else:
            if compliance is not None:
                matrix = problem.matrix + soft[:, None] * unit_matrix(r.shape[0])
                problem = dataclasses.replace(problem, delassus=matrix)
            a = tangent(problem, now.x, r, b, weight, exact)
        # rows of open contacts, and of forces at their bounds, are those of the unit matrix
        closed = jnp.any(problem.contacts(b.use), axis=1)
        if problem.given is not None:
            closed = closed | (problem.given.on & (np.arange(problem.nc) < problem.rough))
        if problem.given is not None and problem.leading:  # their bounds are no constants
            closed = closed | jnp.asarray(problem.given.follows)
        rows = per_contact(problem, closed, jnp.ones(problem.nb, bool))
        return -(solve_some_rows if some else solve_rows)(a, f, rows)


def _scale(steps: Array) -> Array:
    """Part of the scaling with which branches are decided, see `SCALES`."""
    return jnp.exp(-LESS * lax.rem(lax.div(steps, SAME_SCALE), SCALES))


def newton(
    problem: ContactProblem, *, tolerance: Array, max_iterations: Array | int, exact: bool = True,
    scaled: bool = True,
) -> Iterate:  # fmt: skip
    """Semismooth Newton from zero: up to ``max_iterations`` plain steps; one or two are enough in most
    contact steps of a simulation. ``scaled``: with the `SCALES` of the branches in turn.
    """
    rows, cap = ProxRows(problem), jnp.asarray(max_iterations, int)

    def step(now: Iterate) -> Iterate:
        turn = now.steps if scaled else None
        return rows.at(now.x + rows.direction(now, exact, steps=turn), now.steps + 1)

    def unsolved(now: Iterate) -> Array:
        return (now.residual > tolerance) & (now.steps < cap)

    return repeat(unsolved, step, beginning(problem))


@record()
class _Way:
    """State of a way: present compliance, last compliance with an answer and this answer ``x``, factor
    between compliances, answer ``own`` with impulses of the size of single rows, number of ways that led to
    enormous impulses, and number ``k`` of the way (0: plain steps).
    """

    compliance: Array
    last: Array
    x: Array
    factor: Array
    own: Array
    jams: Array
    k: Array


@record()
class _Search:
    """State of `newton_by_compliance`: present and best iterate, the way, and steps with its compliance."""

    now: Iterate
    best: Iterate
    way: _Way
    since: Array


def newton_by_compliance(
    problem: ContactProblem, start: Iterate, *, tolerance: Array, max_iterations: Array | int,
    unseen: bool = False,
) -> tuple[Iterate, Array]:  # fmt: skip
    """Semismooth Newton: plain steps first, then, if those cycle, by way of compliant contacts.

    Up to ``max_iterations`` plain steps. Where contacts depend on each other (four corners of a box have
    twelve rows, the box six velocities), restitution and friction ask for velocities that no motion has:
    branches differ by small parts of the velocities, and most of them allow impulses of any size. With a
    compliance ``c`` in every row::

        u = F + (G + c / r) x,      r = 1 / G_kk

    the problem is regular. It is solved with a large ``c``, where contacts hardly move each other, and the
    answer is followed to a ``c`` so small that it is one of the rigid problem: contacts begin to slide, or
    open, one after the other. The first way has equal ``c`` in all rows. Where a way ends at a fold, the
    next has other ratios between contacts. After `WAYS` ways, or one to enormous impulses, rigid contacts
    with drawn impulses are tried as well. One loop serves all, so that there is one certificate and one
    elimination to compile.

    With ``unseen`` the residual of the start may have to be computed first, see `beginning`.

    Returns the best iterate, ``steps`` counting all Newton steps, and the number of ways. If the iterate is
    not solved and ways led to impulses beyond `LARGEST_RATIO`, the problem has no answer: laws that
    contradict each other (a body jammed between walls and a prescribed motion, friction above the jamming
    limit) are fulfilled the better, the larger the impulses. The impulses of a compliance of about ten are
    returned instead, which have the size of those of single rows, with an infinite residual.
    """
    rows, cap = ProxRows(problem), jnp.asarray(max_iterations, int)
    most = cap + max(WORK // problem.free.shape[0], LEAST_WORK)

    def over(s: _Search) -> Array:
        """Whether a compliance has its answer, or none is found."""
        drawn = s.way.compliance + s.way.last == 0.0
        most = jnp.where(s.way.k == 0, cap, jnp.where(drawn, DRAWN_STEPS, STAGE_STEPS))
        return (s.since >= most) | ~(s.now.residual > tolerance)

    def unsolved(s: _Search) -> Array:
        more = (s.now.steps < most) & (s.way.jams < JAMS) & jnp.isfinite(rows.scale[1])
        return ~(s.best.residual <= tolerance) & more

    def step(s: _Search) -> _Search:
        def descend(s: _Search) -> tuple[_Way, Array]:
            each, rigid = _compliances(problem, s.way), s.way.compliance == 0.0
            plain = jnp.where(s.way.k == 0, s.since, 0)
            return s.way, s.now.x + rows.direction(s.now, compliance=each, rigid=rigid, steps=plain)

        def on(s: _Search) -> tuple[_Way, Array]:
            way = _onwards(s, rows, tolerance)
            return way, way.x

        turn = over(s)
        if unseen:
            stay = lambda s: (s.way, s.now.x)  # noqa: E731
            way, x = lax.switch(turn + 2 * (s.since < 0), (descend, on, stay), s)
        else:
            way, x = lax.cond(turn, on, descend, s)
        each = _compliances(problem, way)
        now = rows.at(x, s.now.steps + ~turn, each)
        better = (now.residual < s.best.residual) & (way.compliance == 0.0)
        return _Search(
            now=now, best=_chosen(better, now, s.best), way=way, since=jnp.where(turn, 0, s.since + 1)
        )

    zero, none, rigid = jnp.asarray(0, int), jnp.zeros_like(start.x), jnp.zeros(())
    way = _Way(compliance=rigid, last=rigid, x=none, factor=rigid, own=none, jams=zero, k=zero)
    s = repeat(unsolved, step, _Search(now=start, best=start, way=way, since=start.steps))
    jammed = ((s.way.jams > 0) | rows.huge(s.best.x)) & ~(s.best.residual <= tolerance)
    end = Iterate(
        x=jnp.where(jammed, s.way.own, s.best.x), u=s.best.u,
        residual=jnp.where(jammed, jnp.inf, s.best.residual), steps=s.now.steps,
    )  # fmt: skip
    return end, s.way.k


def _compliances(problem: ContactProblem, way: _Way) -> Array:
    """Compliances of all rows (m,), equal on the first way."""
    low, high = np.log(RATIOS)
    each = jnp.exp(low + (high - low) * _drawn(problem, way.k - 1)[:, :1])
    each = jnp.broadcast_to(each, (problem.nc, 1 + problem.nt))
    return way.compliance * problem.stack(each, jnp.ones(problem.nb))


def _drawn(problem: ContactProblem, k: Array) -> Array:
    """Numbers (nc, 1 + nt) between 0 and 1, evenly spread over the numbers ``k``; zero for ``k = 0``."""
    turns = k * np.random.default_rng(0).uniform(size=(problem.nc, 1 + problem.nt))
    return turns - jnp.floor(turns)


def _onwards(s: _Search, rows: ProxRows, tolerance: Array) -> _Way:
    """Next stage: the next compliance from here, a nearer one from the last answer, or the beginning of
    another way.
    """
    way, problem = s.way, rows.problem
    solved = (way.k > 0) & (s.now.residual <= tolerance)
    last, x = jnp.where(solved, way.compliance, way.last), jnp.where(solved, s.now.x, way.x)
    factor = jnp.where(solved, jnp.maximum(way.factor * way.factor, FASTEST), jnp.sqrt(way.factor))
    # a way ends after plain steps, rigid contacts, or without a first answer; at a fold contacts become
    # rigid
    on = (last > 0.0) & (solved | (way.compliance > 0.0))
    wanted = jnp.where(factor <= SLOWEST, last * factor, 0.0)
    # drawn impulses: friction in any direction, none of contacts out of reach
    drawn = (_drawn(problem, way.k) - np.array([0.0] + [0.5] * problem.nt)) * problem.mask[:, None]
    drawn = DRAWN * rows.scale[1] * problem.stack(drawn, jnp.zeros(problem.nb))
    try_drawn = ((way.k >= WAYS) | (way.jams > 0)) & (lax.rem(way.k, WAYS) != 0)
    first, x0 = jnp.where(try_drawn, 0.0, SOFT), jnp.where(try_drawn, drawn, 0.0)
    huge = rows.huge(x)
    return _Way(
        compliance=jnp.where(on, jnp.where(wanted > RIGID * tolerance, wanted, 0.0), first),
        last=jnp.where(on, last, 0.0), x=jnp.where(on, x, x0), factor=jnp.where(on, factor, FASTEST),
        own=jnp.where(solved & (way.last > GENTLE), x, way.own), jams=way.jams + (huge & ~on),
        k=way.k + ~on,
    )  # fmt: skip


def _chosen(first: Array, a: Any, b: Any) -> Any:
    """``a`` if ``first``, else ``b``."""
    return jax.tree.map(lambda a, b: jnp.where(first, a, b), a, b)
