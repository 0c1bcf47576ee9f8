"""One Newton step from the answer of a contact problem, which carries its derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact.branches import Branches, branch_residual, branches, tangent
from nsjax.contact.compact import fits, gather, gathers, places
from nsjax.contact.problem import ContactProblem
from nsjax.contact.turned_rows import branch_answer
from nsjax.core.branches import branch
from nsjax.math import direction
from nsjax.types import Array


def newton_step(frozen: ContactProblem, x: Array) -> Callable[[ContactProblem], Array]:
    """One Newton step from the answer ``x`` with live data, on the branches and matrices of ``frozen``.

    Only the residual is live: products ``G x`` and never ``G``, if the live problem has `DelassusFactors`.
    The matrix is that of the active contacts where they are few: the others stay at zero.
    """
    if frozen.islands:
        return lambda problem: in_islands(_island_step, frozen, problem, x).reshape(-1)
    r = frozen.scaling()
    at = branches(frozen, x, frozen.velocity(x), r, answer=True)

    def whole(f: Array) -> Array:
        return branch_answer(frozen, tangent(frozen.dense(), x, r, at, 0.0), at, f)

    def small(f: Array) -> Array:
        few = gather(frozen, *places(frozen))
        own = few.branches(at)
        a = tangent(few.problem.dense(), few.rows(x), few.rows(r), own, 0.0)
        return few.spread(branch_answer(few.problem, a, own, few.rows(f)))

    def step(problem: ContactProblem) -> Array:
        u = problem.velocity(x)
        z = problem.contacts(x - r * u)
        slope = jnp.where(at.slip[:, None], problem.friction[:, None] * direction(z[:, 1:]), 0.0)
        b = Branches(use=at.use, slip=at.slip, slope=slope, size=at.size)
        f = branch_residual(problem, x, u, r, b)
        if not gathers(frozen):
            return x - whole(f)
        return x - branch(fits(frozen), small, whole, f)

    return step


def in_islands(f: Callable[..., Any], problem: ContactProblem, *more: Any) -> Any:
    """``f(island, *its parts of more)`` of every island of a problem, along a leading axis.

    One after the other, so that each takes its own branches; on an accelerator all at once. ``more`` are
    problems, and rows (m,).
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
