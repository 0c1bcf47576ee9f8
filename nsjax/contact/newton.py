"""Semismooth Newton on the prox equations of the contact problem.

On the branch (open, stick, slip) of the current iterate every prox row is linear; Newton solves
that system and decides the branches anew (an active-set method). The update is written for the
increment, so that the small regularisation of the active rows, which picks one of many answers
when contacts depend on each other, does not move the fixed point.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from nsjax.contact.branches import REGULARISATION, branch_residual, branches, tangent
from nsjax.contact.certificate import impulse_scale, relative_residual
from nsjax.contact.problem import ContactProblem
from nsjax.linalg import solve as linear_solve
from nsjax.types import Array, record

# A Levenberg term in proportion to the residual: large where branches flip, gone at the answer.
LARGEST_REGULARISATION = 1e-2
STEP_LENGTHS = (1.0, 0.5, 0.25, 0.1)
# A full step is kept if it shortens the residual at least this much; otherwise the best length is.
SUFFICIENT = 0.9


@record()
class Iterate:
    """State of a contact iteration: impulses, their residual, steps taken."""

    x: Array
    residual: Array
    steps: Array


def newton(
    problem: ContactProblem, *, tolerance: Array, max_iterations: Array | int, exact: bool = True
) -> Iterate:
    """Undamped iteration from ``x = 0``: one step in most contact steps of a simulation.

    Returns the last iterate, converged or not.
    """
    r = problem.scaling()
    scale = impulse_scale(problem, r)

    def step(carry: tuple[Iterate, Array]) -> tuple[Iterate, Array]:
        now, u = carry
        x = _newton_point(problem, now.x, u, r, REGULARISATION, exact)
        u = problem.velocity(x)
        return Iterate(x=x, residual=relative_residual(problem, x, u, r, scale), steps=now.steps + 1), u

    def unsolved(carry: tuple[Iterate, Array]) -> Array:
        return (carry[0].residual > tolerance) & (carry[0].steps < max_iterations)

    start = Iterate(x=jnp.zeros_like(problem.free), residual=jnp.asarray(jnp.inf), steps=jnp.asarray(0))
    return lax.while_loop(unsolved, step, (start, problem.free))[0]


def _newton_point(
    problem: ContactProblem, x: Array, u: Array, r: Array, regularisation: Array | float, exact: bool
) -> Array:
    b = branches(problem, x, u, r)
    f = branch_residual(problem, x, u, r, b)
    a = tangent(problem, x, r, b, regularisation, exact)
    return x - linear_solve(a, f[:, None])[:, 0]


def damped_newton(
    problem: ContactProblem, x: Array, *, tolerance: Array, max_iterations: Array | int, damping: Array
) -> Iterate:
    """Newton's method for problems on which the plain iteration cycles.

    The regularisation follows the residual (``damping`` times it, a Levenberg step), and a step that
    does not shorten the residual is replaced by the best of a few shorter ones. Returns the best
    iterate seen.
    """
    r = problem.scaling()
    scale = impulse_scale(problem, r)

    def judge(x: Array) -> Array:
        size = relative_residual(problem, x, problem.velocity(x), r, scale)
        return jnp.where(jnp.isfinite(size), size, jnp.inf)

    def step(carry: tuple[Iterate, Array, Array]) -> tuple[Iterate, Array, Array]:
        best, x, residual = carry
        weight = jnp.clip(damping * residual, REGULARISATION, LARGEST_REGULARISATION)
        change = _newton_point(problem, x, problem.velocity(x), r, weight, True) - x
        lengths = jnp.asarray(STEP_LENGTHS)
        sizes = jnp.stack([judge(x + length * change) for length in STEP_LENGTHS])
        length = jnp.where(sizes[0] < SUFFICIENT * residual, 1.0, lengths[jnp.argmin(sizes)])
        x = x + length * change
        residual = judge(x)
        better = residual < best.residual
        return (
            Iterate(
                x=jnp.where(better, x, best.x),
                residual=jnp.where(better, residual, best.residual),
                steps=best.steps + 1,
            ),
            x,
            residual,
        )

    def unsolved(carry: tuple[Iterate, Array, Array]) -> Array:
        best, _, residual = carry
        return (best.residual > tolerance) & (best.steps < max_iterations) & jnp.isfinite(residual)

    first = judge(x)
    start = Iterate(x=x, residual=first, steps=jnp.asarray(0))
    return lax.while_loop(unsolved, step, (start, x, first))[0]
