"""The contact solver: cheap Newton first, fallbacks if needed, certificate and derivative always."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact.active_set import capacities, fits, gather, gathers
from nsjax.contact.branches import (
    REGULARISATION,
    Branches,
    branch_residual,
    branches,
    dependent_answer,
    has_rows,
    tangent,
    turns_in_space,
)
from nsjax.contact.newton import Iterate, beginning, newton, newton_by_compliance
from nsjax.contact.problem import ContactProblem, natural_residual
from nsjax.contact.sweeps import REFUSED_GRADIENT, split_steps
from nsjax.core.errors import check_known
from nsjax.jaxtools import implicit_solution, without_derivative
from nsjax.jaxtools.control_flow import branch
from nsjax.math import direction
from nsjax.types import Array, record

# Derivative of an answer with contacts that slide in space, by rows along and across their sliding.


def branch_answer(problem: ContactProblem, a: Array, b: Branches, f: Array) -> Array:
    """Solution ``x`` (m,) of ``a x = f``, where ``a`` is the tangent of a problem on its branches."""
    if not turns_in_space(problem):
        return dependent_answer(a, b.use, f)
    way = jnp.where(b.slip[:, None], direction(b.slope), 0.0)
    none = jnp.zeros_like(way)
    first = jnp.stack([none, way, none], axis=1)  # in the row of the first tangent
    rows = [problem.stack(first[:, :, k], jnp.zeros(problem.nb)) for k in (0, 1)]
    return turned_answer(a, b.use, f, jnp.stack(rows, axis=1))


def turned_answer(
    a: Array, use: Array, f: Array, way: Array, weight: Array | float = REGULARISATION
) -> Array:
    """`nsjax.contact.branches.dependent_answer` of rows along and across sliding.

    The law of a contact that slides in space asks for a force along the sliding, and across it for a speed
    as it stops: see `nsjax.contact.branches.LEAST_TURN`. In these directions the second row alone may
    depend on others. ``way``: (m, 2) directions of sliding, in the row of the first of the two tangents of
    each contact that slides; zero in all other rows.
    """
    before = jnp.roll(way, 1, axis=0)
    slides, across = (jnp.any(x != 0.0, axis=1) for x in (way, before))
    c = jnp.where(slides, way[:, 0], jnp.where(across, before[:, 0], 1.0))[:, None]

    def turned(x: Array, sign: float = 1.0) -> Array:
        """Rows (m, k) along and across the sliding from those of the tangents; back with ``sign = -1``."""
        more = way[:, 1:] * jnp.roll(x, -1, axis=0) - before[:, 1:] * jnp.roll(x, 1, axis=0)
        return c * x + sign * more

    y = dependent_answer(turned(turned(a).T).T, use, turned(f[:, None])[:, 0], weight, across)
    return turned(y[:, None], -1.0)[:, 0]


# One Newton step from the answer of a contact problem, which carries its derivative.


def newton_step(frozen: ContactProblem, x: Array) -> Callable[[ContactProblem], Array]:
    """One Newton step from the answer ``x`` with live data, on the branches and matrices of ``frozen``.
    Only the residual is live: products ``G x`` and never ``G``, if the live problem has `DelassusFactors`.
    """
    if frozen.islands:
        return lambda problem: in_islands(_island_step, frozen, problem, x).reshape(-1)
    r = frozen.scaling()
    at = branches(frozen, x, frozen.velocity(x), r, answer=True)

    def whole(f: Array) -> Array:
        return branch_answer(frozen, tangent(frozen.dense(), x, r, at, 0.0), at, f)

    def small(capacity: tuple[int, int], f: Array) -> Array:
        few = gather(frozen, *capacity)
        own = few.branches(at)
        a = tangent(few.problem.dense(), few.rows(x), few.rows(r), own, 0.0)
        return few.spread(branch_answer(few.problem, a, own, few.rows(f)))

    def step(problem: ContactProblem) -> Array:
        u = problem.velocity(x)
        z = problem.contacts(x - r * u)
        slope = jnp.where(at.slip[:, None], problem.friction[:, None] * direction(z[:, 1:]), 0.0)
        b = dataclasses.replace(at, slope=slope)
        f = branch_residual(problem, x, u, r, b)
        return x - smallest(frozen, small, whole)(f)

    return step


def smallest(
    problem: ContactProblem, small: Callable[..., Any], whole: Callable[..., Any], most: int | None = None
) -> Callable[..., Any]:
    """``small(capacity, ...)`` with the smallest of ``most`` capacities that suffices, else ``whole``."""
    found = whole
    for capacity in reversed(capacities(problem)[:most] if gathers(problem) else []):
        few = functools.partial(small, capacity)
        found = functools.partial(branch, fits(problem, capacity), few, found)
    return found


def in_islands(f: Callable[..., Any], problem: ContactProblem, *more: Any) -> Any:
    """``f(island, *its parts of more)`` of every island of a problem, along a leading axis: one after the
    other, on an accelerator all at once. ``more`` are problems, and rows (m,).
    """
    n = problem.islands
    parts = [x.by_island() if isinstance(x, ContactProblem) else x.reshape(n, -1) for x in more]
    arguments = problem.by_island(), *parts
    if jax.default_backend() != "cpu":
        return jax.vmap(f)(*arguments)
    return lax.map(lambda x: f(*x), arguments)


def _island_step(frozen: ContactProblem, problem: ContactProblem, x: Array) -> Array:
    """`newton_step` of an island: nothing moves where no contact takes part."""
    return branch(jnp.any(frozen.mask), lambda live: newton_step(frozen, x)(live), lambda live: x, problem)


# The contact solver: cheap Newton first, fallbacks if needed, certificate always.


@record()
class ContactSolution:
    """Impulses, work and certificate of a contact problem.

    Args:
        x: (m,) impulses, rows as in `ContactProblem` [N s].
        iterations: Newton steps or sweeps taken in all.
        rounds: ways by compliant contacts, see `nsjax.contact.newton`; 0 means that
            the plain Newton iteration was enough.
        residual: relative natural-map residual of ``x``; infinite where the problem has no answer.
    """

    x: Array
    iterations: Array
    rounds: Array
    residual: Array


@record(static=("max_iterations", "method"))
class SolverSettings:
    """Settings of the contact solver.

    Args:
        tolerance: bound on the relative natural-map residual.
        max_iterations: number of plain Newton steps, before the fallback begins.
        method: one of `METHODS`, see `solve`.
    """

    tolerance: Array | float = 1e-11
    max_iterations: int = 50
    method: str = "auto"

    def solve(self, problem: ContactProblem, start: Array | None = None) -> ContactSolution:
        """The answer of a problem, by an iteration from the impulses ``start`` (m,), if they are given."""
        return _answer(problem, self.tolerance, self.max_iterations, self.method, start)


Settings = tuple[Array, Array, Array | None]
Data = tuple[ContactProblem, Settings]


def _solution_of(end: Iterate, rounds: Array | int = 0) -> ContactSolution:
    """Iterate of the Newton family as an answer."""
    return ContactSolution(
        x=end.x, iterations=end.steps, rounds=jnp.asarray(rounds, int), residual=end.residual
    )


def _unsolved(problem: ContactProblem) -> ContactSolution:
    """Zero impulses with an infinite residual."""
    none = jnp.asarray(0, int)
    return ContactSolution(
        x=jnp.zeros_like(problem.free), iterations=none, rounds=none, residual=jnp.asarray(jnp.inf)
    )


def _newton_only(data: Data) -> ContactSolution:
    problem, (tolerance, cap, _) = data[0].dense(), data[1]
    return _solution_of(newton(problem, tolerance=tolerance, max_iterations=cap))


def _automatic(data: Data, rare: bool = False, few: bool = False) -> ContactSolution:
    """Plain Newton; where it fails, by way of compliant contacts.

    Where many contacts are possible but few active, both run on the active contacts alone, gathered to the
    smallest capacity that holds them, else on the whole problem, each in a branch of its own; with ``few``
    a problem beyond the first capacity is left unsolved instead. If at most two of a few planar contacts
    are active, these two get Newton steps of their own, unless ``rare``.
    """
    problem, (tolerance, cap, begin) = data
    if not problem.nc:
        # linear: nothing to fall back to
        return _newton_only(data)
    two = 2  # of four planar contacts are solved in four fifths of the time that all eight rows take

    def pair(problem: ContactProblem) -> Iterate:
        few = gather(problem, two, two)
        end = newton(few.problem.dense(), tolerance=tolerance, max_iterations=cap, scaled=False)
        # unsolved: plain steps on the whole problem would fail as well
        steps = jnp.where(end.residual <= tolerance, end.steps, cap)
        return Iterate(x=few.spread(end.x), u=problem.free, residual=end.residual, steps=steps)

    def solved(one: ContactProblem, begin: Array | None, asked: Array | None = None) -> ContactSolution:
        least = tolerance if asked is None else jnp.where(asked, tolerance, jnp.inf)
        start, unseen = beginning(one, begin), begin is not None
        alike = one.nc == one.rows.rough  # all contacts have friction
        if not rare and not unseen and one.nt < 2 and one.nc >= 2 * two and alike:
            start = branch(jnp.sum(one.mask) <= two, pair, lambda one: start, one)
        end = newton_by_compliance(one, start, tolerance=least, max_iterations=cap, unseen=unseen)
        return _solution_of(*end)

    def taken(problem: ContactProblem, capacity: tuple[int, int] | None) -> Array | None:
        # lanes that run side by side pass all branches; those that are not taken make no steps
        if jax.default_backend() == "cpu" or not gathers(problem):
            return None
        every = capacities(problem)
        k = len(every) if capacity is None else every.index(capacity)
        enough = jnp.asarray(True) if capacity is None else fits(problem, capacity)
        return enough if k == 0 else enough & ~fits(problem, every[k - 1])

    def small(capacity: tuple[int, int], problem: ContactProblem, begin: Array | None) -> ContactSolution:
        few = gather(problem, *capacity)
        own = None if begin is None else few.rows(begin)
        end = solved(formed(few.problem), own, taken(problem, capacity))
        return dataclasses.replace(end, x=few.spread(end.x))

    def formed(problem: ContactProblem) -> ContactProblem:
        return problem if has_rows(problem) else problem.dense()

    def whole(problem: ContactProblem, begin: Array | None) -> ContactSolution:
        if few and gathers(problem):
            return _unsolved(problem)
        return solved(formed(problem), begin, taken(problem, None))

    def search(problem: ContactProblem, begin: Array | None) -> ContactSolution:
        return smallest(problem, small, whole, most=1 if few else None)(problem, begin)

    # number of rows from which on the certificate of a start is computed before the matrix is formed: with
    # fewer rows the matrix costs less than a second certificate
    if begin is None or problem.free.shape[0] < 100:
        return search(problem, begin)
    # for bodies at rest the certificate says, without a matrix, that the last impulses are still the answer
    here, none = natural_residual(problem, begin), jnp.asarray(0, int)
    still = ContactSolution(x=begin, iterations=none, rounds=none, residual=here)
    return branch(here <= tolerance, lambda problem, begin: still, search, problem, begin)


METHODS: dict[str, Callable[[Data], ContactSolution]] = {
    "auto": _automatic, "auto_rare": functools.partial(_automatic, rare=True),
    "auto_few": functools.partial(_automatic, few=True), "newton": _newton_only,
}  # fmt: skip


def _solve_islands(problem: ContactProblem, settings: Settings, method: str) -> ContactSolution:
    """The answers of all islands, with the largest of their counts and residuals."""
    none = jnp.asarray(0, int)

    def one(island: ContactProblem) -> ContactSolution:
        still = ContactSolution(
            x=jnp.zeros_like(island.free), iterations=none, rounds=none, residual=jnp.zeros(())
        )
        return branch(
            jnp.any(island.mask), lambda data: _SOLVERS[method](data), lambda data: still,
            (island, settings),
        )  # fmt: skip

    every = in_islands(one, problem)
    return ContactSolution(
        x=every.x.reshape(-1), iterations=jnp.max(every.iterations), rounds=jnp.max(every.rounds),
        residual=jnp.max(every.residual),
    )  # fmt: skip


def _differentiable(method: Callable[[Data], ContactSolution]) -> Callable[[Data], ContactSolution]:
    def solver(data: Data) -> tuple[Array, tuple[Array, Array, Array]]:
        problem, settings = data
        end = method((problem, settings))
        return end.x, (end.iterations, end.rounds, end.residual)

    def live_step(x: Array, data: Data) -> Callable[[Data], Array]:
        step = newton_step(data[0], x)
        return lambda live: step(live[0])

    solution = implicit_solution(solver, live_step)

    def solve(data: Data) -> ContactSolution:
        x, (iterations, rounds, residual) = solution(data)
        return ContactSolution(x=x, iterations=iterations, rounds=rounds, residual=residual)

    return solve


_SOLVERS = {name: _differentiable(method) for name, method in METHODS.items()}


def solve(
    problem: ContactProblem, *, tolerance: Array | float = 1e-11, max_iterations: Array | int = 20,
    method: str = "auto", start: Array | None = None,
) -> ContactSolution:  # fmt: skip
    """Solves a contact problem: Signorini, Newton and Coulomb on ``u = F + G x``.

    The derivative with respect to ``delassus``, ``free`` and ``friction`` is that of the branches
    (open, stick, slip) of the answer, by the implicit function theorem, of any order, in both modes.

    Args:
        problem: the data.
        tolerance: bound on the relative natural-map residual.
        max_iterations: Newton steps or sweeps before giving up (``"auto"``: Newton steps before the
            fallback begins).
        method: ``"auto"``: semismooth Newton with the exact generalised derivative; if that cycles,
            by way of compliant contacts, whose compliance goes to zero. ``"auto_rare"``: the same with a
            smaller, slower program: two active contacts of four are not
            gathered. ``"auto_few"``: without an answer where more contacts are active than there are
            places (`nsjax.contact.active_set`).
            ``"newton"``: the first part alone.
        start: (m,) impulses with which the iteration begins, returned as they are if they fulfil the laws
            already. Used between changing bodies (`nsjax.contact.sweeps`), and by ``"auto"``,
            ``"auto_rare"`` and ``"auto_few"`` without islands; the others begin at zero. None: zero.

    Returns:
        The answer with its certificate; the problem is solved where ``residual <= tolerance``. The residual
        is nan where a contact that takes part, or a bilateral row, has a velocity that is no number.

    Raises:
        InputError: for an unknown method.

    Limits: where contacts depend on each other (``G`` singular) individual impulses are not unique; each
    Newton step is the smallest one, so that the answer found depends on the path of the iteration.
    Velocities are unique, but not where such contacts slide in several directions at once (a face that
    turns): the distribution of the load then decides the friction torque. For strong coupling of friction
    and normal impulses Coulomb's law itself can have several answers, or none: the residual is then
    infinite, the impulses are a compromise (``"auto"`` alone).

    Source: [R&S (43)-(54)] with the exact derivative.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.contact import ContactProblem, RowGroups, solve
        >>> c = 0.15  # one sliding contact: x_N = 1 / (1 - c mu)
        >>> answer = solve(ContactProblem(
        ...     rows=RowGroups.of(nc=1, nt=1), delassus=jnp.array([[1.0, c], [c, 1 + 4 * c * c]]),
        ...     free=jnp.array([-1.0, 3.0]), friction=jnp.array([0.5]), mask=jnp.array([True]),
        ... ))
        >>> answer.x.round(9).tolist()
        [1.081081081, -0.540540541]
    """
    found = _answer(problem, tolerance, max_iterations, method, start)
    # an iteration takes a contact without a number as open: its laws compare, and comparisons are false
    u = problem.velocity(found.x)
    rows = jnp.isnan(problem.contacts(u)) & problem.mask[:, None]
    bad = jnp.any(rows) | jnp.any(jnp.isnan(problem.bilateral(u)))
    return dataclasses.replace(found, residual=jnp.where(bad, jnp.nan, found.residual))


def _answer(
    problem: ContactProblem, tolerance: Array | float, max_iterations: Array | int, method: str,
    start: Array | None,
) -> ContactSolution:  # fmt: skip
    """`solve`, which takes a contact without a number as open; a time step finds that in its state."""
    check_known("solve: unknown method", method, _SOLVERS)
    if not problem.free.shape[0]:
        none = jnp.asarray(0, int)
        return ContactSolution(x=problem.free, iterations=none, rounds=none, residual=jnp.zeros(()))
    settings = jnp.asarray(tolerance), jnp.asarray(max_iterations), start
    if problem.paired:
        tolerance, cap, start = settings
        problem, start = without_derivative((problem, start), REFUSED_GRADIENT)
        x, steps, residual = split_steps(problem, tolerance, cap, start)
        return ContactSolution(x=x, iterations=steps, rounds=jnp.asarray(0, int), residual=residual)
    if problem.islands:
        return _solve_islands(problem, (*settings[:2], None), method)
    return _SOLVERS[method]((problem, settings))
