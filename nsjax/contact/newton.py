"""Semismooth Newton on the prox equations, and its fallback by way of compliant contacts.

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

from nsjax.contact.branches import (
    REGULARISATION,
    branch_residual,
    branches,
    eliminates,
    factored_tangent,
    has_rows,
    paired_answer,
    rows_of_contacts,
    tangent,
)
from nsjax.contact.problem import (
    LARGEST_RATIO,
    ContactProblem,
    impulse_scale,
    natural_residual,
    relative_residual,
)
from nsjax.jaxtools.control_flow import repeat
from nsjax.linalg import solve_rows, solve_some_rows
from nsjax.linalg.dense import unit_matrix
from nsjax.linalg.elimination import PairOrder
from nsjax.types import Array, record

# Plain steps decide branches at ``x - s r u`` with `SCALES` scales s = exp(-LESS k) = 1, 0.3, 0.09, 0.03 in
# turn, each for `SAME_SCALE` steps: branches that cycle with one scale do not with another, as those of a
# robot on its feet with dry friction in all joints. s = 1 is best where rows hardly move each other.
SCALES, LESS, SAME_SCALE = 4, 1.2, 8


@record()
class Iterate:
    """State of a contact iteration: impulses, their velocity and residual, steps taken."""

    x: Array
    u: Array
    residual: Array
    steps: Array


def beginning(problem: ContactProblem, start: Array | None = None) -> Iterate:
    """First iterate: ``x = 0``, or a ``start``, whose residual is computed first (-1 steps)."""
    x = jnp.zeros_like(problem.free) if start is None else start
    return Iterate(
        x=x, u=problem.free, residual=jnp.asarray(jnp.inf),
        steps=jnp.asarray(0 if start is None else -1, int),
    )  # fmt: skip


class ProxRows:
    """The prox rows of a problem around an iterate: certificate and Newton direction.

    With a ``compliance`` (m,) they are those of ``u = F + G x + compliance / r (x - known)``.
    """

    def __init__(self, problem: ContactProblem) -> None:
        self.problem, self.r = problem, problem.scaling()
        self.scale = impulse_scale(problem, self.r)

    def at(
        self, x: Array, steps: Array, compliance: Array | None = None, known: Array | float = 0.0
    ) -> Iterate:
        """The iterate at the impulses ``x``."""
        u, r = self.problem.velocity(x), self.r
        if compliance is not None:
            u, r = u + compliance / r * (x - known), r / (1.0 + compliance)
        # with a compliance: the certificate of the compliant problem
        size = relative_residual(self.problem, x, u, r, self.scale)
        return Iterate(x=x, u=u, residual=size, steps=steps)

    def huge(self, x: Array) -> Array:
        """Whether impulses are beyond those of an answer."""
        return jnp.max(jnp.abs(x), initial=0.0) > LARGEST_RATIO * self.scale[1]

    def direction(
        self, now: Iterate, compliance: Array | None = None, rigid: Array | bool = True,
        steps: Array | None = None,
    ) -> Array:  # fmt: skip
        """Newton step on the branches of ``now``, regularised if ``rigid``; ``steps`` choose the scale."""
        problem, r, weight = self.problem, self.r, jnp.where(rigid, REGULARISATION, 0.0)
        soft: Any = 0.0
        if compliance is not None:
            soft, r = compliance / r, r / (1.0 + compliance)
        if steps is not None:
            r = r * jnp.exp(-LESS * lax.rem(lax.div(steps, SAME_SCALE), SCALES))
        b = branches(problem, now.x, now.u, r)
        # on their branches rows are linear: one step solves them, and the next looks at the branches
        f = branch_residual(problem, now.x, now.u, r, b)
        if eliminates(problem):
            blocks = rows_of_contacts(problem, now.x, r, b, weight, r * soft)
            return -paired_answer(problem, blocks, r, f)
        some = has_rows(problem)
        if some:
            a = factored_tangent(problem, now.x, r, b, weight, soft)
        else:
            if compliance is not None:
                matrix = problem.matrix + soft[:, None] * unit_matrix(r.shape[0])
                problem = dataclasses.replace(problem, delassus=matrix)
            a = tangent(problem, now.x, r, b, weight)
        # rows of open contacts, and of forces at their bounds, are those of the unit matrix
        closed = jnp.any(problem.contacts(b.use), axis=1)
        groups = problem.rows
        if groups.own is not None or groups.tangents == 2:  # at its bound a disc turns
            closed = closed | groups.given
        elif groups.leads:  # a bound that follows a contact is no constant
            closed = closed | (np.array(groups.leads) >= 0)
        rows = groups.per_contact(closed, jnp.ones(problem.nb, bool))
        return -(solve_some_rows if some else solve_rows)(a, f, rows)


def newton(
    problem: ContactProblem, *, tolerance: Array, max_iterations: Array | int, scaled: bool = True
) -> Iterate:
    """Semismooth Newton from zero: up to ``max_iterations`` plain steps; ``scaled``: by `SCALES`."""
    rows, cap = ProxRows(problem), jnp.asarray(max_iterations, int)

    def step(now: Iterate) -> Iterate:
        turn = now.steps if scaled else None
        return rows.at(now.x + rows.direction(now, steps=turn), now.steps + 1)

    def unsolved(now: Iterate) -> Array:
        return (now.residual > tolerance) & (now.steps < cap)

    return repeat(unsolved, step, beginning(problem), uneven=True)


# Contact problems whose plain Newton steps cycle, by way of compliant contacts.
#
# Where contacts depend on each other (four corners of a box have twelve rows, the box six velocities),
# restitution and friction ask for velocities that no motion has: branches differ by small parts of the
# velocities, and most of them allow impulses of any size. With a compliance ``c`` in every row, which
# resists the change from known impulses ``a``::
#
#     u = F + G x + c / r (x - a),      r = 1 / G_kk
#
# the problem is regular, and Newton's method finds its answer in a few steps.
#
# *Proximal steps*, the first way: the first ``a`` are the impulses of a given start, unless these are
# enormous, or else zero; each answer is the next ``a``. After an answer ``c`` becomes smaller, after a
# failure larger. Where ``x = a`` the laws are fulfilled, whatever ``c`` is (Rockafellar 1976, for problems
# without friction).
#
# *Paths* from compliant contacts to rigid ones, with ``a = 0``, are the ways after it: the answer for a
# large ``c``, where contacts hardly move each other, is followed to a ``c`` so small that it is one of the
# rigid problem. Contacts begin to slide, or open, one after the other. The first path has equal ``c`` in
# all contacts. Where one ends at a fold, the next has other ratios between contacts. After `WAYS` ways, or
# one to enormous impulses, rigid contacts with drawn impulses are tried as well.


WORK, LEAST_WORK, MOST_WORK = 1_000_000, 300, 25_000
"""Bound on the product of Newton steps and unknowns (rows, or velocities of eliminated bodies) of the
proximal way and of all paths together; `LEAST_WORK` steps are allowed in any case, at most `MOST_WORK`.
"""

FIRST, SMALLER, LARGER, SMALLEST = 0.01, 0.5, 10.0, 1e-10
"""First ``c`` of proximal steps; its factors after an answer and after a failure; the smallest, with which
pivots are still far above rounding.
"""


STAGE_STEPS, FASTEST, SLOWEST = 20, 0.1, 0.98
"""Newton steps for one ``c``. The first reduction of ``c`` on a path is by the factor `FASTEST`. If the
problem with the new ``c`` has no answer, the factor becomes its square root; if it has one, its square. A
factor above `SLOWEST` means that the path has come to a fold."""


WAYS, DRAWN, DRAWN_STEPS = 12, 10.0, 8
"""After `WAYS` ways random impulses are tried as starts; every `WAYS`-th way remains a path. They are
`DRAWN` times as large as the impulses of single rows, so that they decide the branches of the first step,
and get `DRAWN_STEPS` Newton steps each.
"""

JAMS = 5
"""A problem counts as one without an answer if so many ways, the proximal one among them, lead to impulses
beyond `nsjax.contact.problem.LARGEST_RATIO`. After the first, random starts are tried between the paths.
"""


@record()
class _Way:
    """State of a way: present compliance, in parts of which rows have the compliances ``each`` (m,), last
    compliance with an answer, known impulses ``x`` (the answer before), factor between compliances, answer
    ``own`` with impulses of the size of single rows, number of ways that led to enormous impulses, and
    number ``k`` of the way (0: plain steps, 1: proximal steps).
    """

    compliance: Array
    each: Array
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
    """Semismooth Newton: up to ``max_iterations`` plain steps first, then, if those cycle, the ways.

    Returns the best iterate, ``steps`` counting all Newton steps, and the number of ways. One loop serves
    all, so that there is one certificate and one elimination to compile. With ``unseen`` the residual of
    the start may have to be computed first, see `nsjax.contact.newton.beginning`.

    If the iterate is not solved and ways led to impulses beyond `nsjax.contact.problem.LARGEST_RATIO`, laws
    contradict each other (a body jammed between walls and a prescribed motion), and are fulfilled the
    better, the larger the impulses. Those of a compliance of about ten, which have the size of those of
    single rows, are returned instead, with an infinite residual.
    """
    rows, cap = ProxRows(problem), jnp.asarray(max_iterations, int)
    unknowns = problem.delassus.wt.shape[1] if eliminates(problem) else problem.free.shape[0]
    work = min(max(WORK // unknowns, LEAST_WORK), MOST_WORK)

    def over(s: _Search) -> Array:
        """Whether a compliance has its answer, or none is found."""
        drawn = s.way.compliance + s.way.last == 0.0
        most = jnp.where(s.way.k == 0, cap, jnp.where(drawn, DRAWN_STEPS, STAGE_STEPS))
        return (s.since >= most) | ~(s.now.residual > tolerance)

    def unsolved(s: _Search) -> Array:
        more = (s.now.steps < cap + 2 * work) & (s.way.jams < JAMS)
        # without a residual at the begin of a stage the problem has numbers that are none; stages without
        # steps would follow each other for ever. In a batch, branches that a lane does not take have them.
        none = (s.since == 0) & jnp.isnan(s.now.residual)
        return ~(s.best.residual <= tolerance) & more & ~none

    def step(s: _Search) -> _Search:
        def descend(s: _Search) -> tuple[_Way, Array]:
            rigid, plain = s.way.compliance == 0.0, jnp.where(s.way.k == 0, s.since, 0)
            step = rows.direction(s.now, compliance=s.way.each, rigid=rigid, steps=plain)
            return s.way, s.now.x + step

        def on(s: _Search) -> tuple[_Way, Array]:
            way = _onwards(s, rows, tolerance, s.now.steps < cap + work)
            return way, way.x

        turn = over(s)
        if unseen:
            stay = lambda s: (s.way, s.now.x)  # noqa: E731
            way, x = lax.switch(turn + 2 * (s.since < 0), (descend, on, stay), s)
        else:
            way, x = lax.cond(turn, on, descend, s)
        proximal, rigid = way.k == 1, way.compliance == 0.0
        steps = s.now.steps + (~turn | (s.since == 0))  # a stage without steps counts as one
        now = rows.at(x, steps, way.each, jnp.where(proximal, way.x, 0.0))
        # nothing resists at known impulses; the certificate grows by at most this factor with the scaling
        whole = now.residual * (1.0 + way.compliance)
        better = (whole < s.best.residual) & (rigid | (proximal & turn))
        judged = dataclasses.replace(now, residual=whole)
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), judged, s.best)
        return _Search(now=now, best=best, way=way, since=jnp.where(turn, 0, s.since + 1))

    zero, rigid, none = jnp.asarray(0, int), jnp.zeros(()), jnp.zeros_like(start.x)
    known = start.x if unseen else none
    jams = jnp.where(jnp.isfinite(rows.scale[1]), 0, JAMS)  # without a size there is no answer
    way = _Way(
        compliance=rigid, each=none, last=rigid, x=known, factor=rigid, own=none, jams=jams, k=zero
    )  # fmt: skip
    s = repeat(unsolved, step, _Search(now=start, best=start, way=way, since=start.steps), uneven=True)
    jammed = ((s.way.jams > 0) | rows.huge(s.best.x)) & ~(s.best.residual <= tolerance)
    end = Iterate(
        x=jnp.where(jammed, s.way.own, s.best.x), u=s.best.u,
        residual=jnp.where(jammed, jnp.inf, s.best.residual), steps=s.now.steps,
    )  # fmt: skip
    return end, s.way.k


def _drawn(problem: ContactProblem, k: Array) -> Array:
    """Numbers (nc, 1 + nt) between 0 and 1, evenly spread over the numbers ``k``; a half for ``k = 0``."""
    turns = 0.5 + k * np.random.default_rng(0).uniform(size=(problem.nc, 1 + problem.nt))
    return turns - jnp.floor(turns)


def _onwards(s: _Search, rows: ProxRows, tolerance: Array, early: Array) -> _Way:
    """Next stage: of this way, or the first of another one; proximal steps go on while it is ``early``."""
    way, plain, proximal = s.way, s.way.k == 0, s.way.k == 1
    solved = ~plain & (s.now.residual <= tolerance)
    last, x = jnp.where(solved, way.compliance, way.last), jnp.where(solved, s.now.x, way.x)
    huge = rows.huge(x)
    # a path ends after rigid contacts, or without a first answer; at a fold contacts become rigid
    path = (last > 0.0) & (solved | (way.compliance > 0.0))
    on = jnp.where(proximal, early & ~huge, path)
    factor = jnp.where(solved, jnp.maximum(way.factor * way.factor, FASTEST), jnp.sqrt(way.factor))
    nearer = last * factor
    # compliance below which contacts count as rigid, relative to the tolerance
    nearer = jnp.where((factor <= SLOWEST) & (nearer > 0.03 * tolerance), nearer, 0.0)
    resisting = jnp.maximum(way.compliance * jnp.where(solved, SMALLER, LARGER), SMALLEST)
    k = way.k + ~on
    drawn = _drawn(rows.problem, jnp.maximum(k - 2, 0))
    rigid = ((way.k >= WAYS) | (way.jams > 0)) & (lax.rem(way.k, WAYS) != 1)
    # first ``c`` of a path: contacts hardly move each other. Where bodies come to rest a path takes 70 to
    # 130 steps, and one in eight ends at a fold
    first = jnp.where(plain, FIRST, jnp.where(rigid, 0.0, 1e3))
    compliance = jnp.where(on, jnp.where(proximal, resisting, nearer), first)
    # drawn impulses: friction in any direction, none of contacts out of reach
    each = (drawn - np.array([0.0] + [0.5] * rows.problem.nt)) * rows.problem.mask[:, None]
    impulses = DRAWN * rows.scale[1] * rows.problem.stack(each, jnp.zeros(rows.problem.nb))
    known = jnp.where(rigid, impulses, jnp.where(plain & ~huge, x, 0.0))
    # A problem without an answer returns the impulses for the first compliance below this one, about ten:
    # these are still about as large as the impulses of single rows
    return _Way(
        compliance=compliance, each=compliance * _ratios(rows.problem, drawn),
        last=jnp.where(on, last, 0.0), x=jnp.where(on, x, known),
        factor=jnp.where(on, factor, FASTEST), own=jnp.where(solved & (way.last > 30.0), x, way.own),
        jams=way.jams + (huge & ~on & ~plain), k=k,
    )  # fmt: skip


def _ratios(problem: ContactProblem, drawn: Array) -> Array:
    """Compliances of rows (m,) in parts of that of the way: equal, except on paths after the first one."""
    # range of the ratios of ``c`` between contacts
    low, high = np.log((0.01, 100.0))
    each = jnp.exp(low + (high - low) * drawn[:, :1])
    each = jnp.broadcast_to(each, (problem.nc, 1 + problem.nt))
    return problem.stack(each, jnp.ones(problem.nb))


def pair_newton(
    problem: ContactProblem, order: PairOrder, x: Array, *, tolerance: Array
) -> tuple[Array, Array, Array]:
    """Impulses (m,), Newton steps and certificate of a problem between pairs of bodies, from ``x``.

    The search begins with proximal steps: where sweeps creep, the branches of contacts are undecided. The
    better of ``x`` and the answer is returned. Where no impulses fulfil the laws, the ``x`` of sweeps may
    be enormous: then the bounded impulses of the compliant contacts are returned.
    """
    ordered = dataclasses.replace(problem, delassus=dataclasses.replace(problem.delassus, order=order))
    before, scale = natural_residual(problem, x), impulse_scale(problem, problem.scaling())[1]
    start = beginning(ordered, x)
    end, _ = newton_by_compliance(ordered, start, tolerance=tolerance, max_iterations=0, unseen=True)
    huge = jnp.max(jnp.abs(x), initial=0.0) > LARGEST_RATIO * scale
    better = (end.residual < before) | (jnp.isinf(end.residual) & huge)
    return jnp.where(better, end.x, x), end.steps, jnp.where(better, end.residual, before)
