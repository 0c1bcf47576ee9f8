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
from nsjax.contact.certificate import impulse_scale, relative_residual
from nsjax.contact.gauss_seidel import gauss_seidel
from nsjax.contact.problem import ContactProblem
from nsjax.linalg import solve as linear_solve
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
STEP_LENGTHS = (0.5, 0.25, 0.1)
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


def newton(
    problem: ContactProblem,
    start: Iterate,
    *,
    tolerance: Array,
    max_iterations: Array | int,
    exact: bool = True,
    fallback: bool = True,
) -> Iterate:
    """Semismooth Newton: plain steps first, then, if those cycle, rounds of the fallback.

    Up to ``max_iterations`` plain steps; one or two are enough in most contact steps of a simulation.
    With ``fallback``, each following round starts from a few sweeps of Gauss-Seidel, adds a Levenberg
    weight in proportion to the residual, and shortens steps that do not shorten the residual. At the
    very end, near an answer, come `LAST_STEPS` plain steps from the best. The same loop serves all
    phases, so that the fallback costs little to compile.

    Returns the best end of a round; ``steps`` counts all Newton steps, plain ones first.
    """
    r = problem.scaling()
    scale = impulse_scale(problem, r)
    cap = jnp.asarray(max_iterations, int)

    def at(x: Array, steps: Array, sweeps: Array) -> Iterate:
        u = problem.velocity(x)
        size = relative_residual(problem, x, u, r, scale)
        return Iterate(x=x, u=u, residual=size, steps=steps, sweeps=sweeps)

    def shorten(now: Iterate, full: Iterate) -> Iterate:
        """The best of a few lengths of the step from ``now`` to ``full``."""
        lengths = jnp.asarray(STEP_LENGTHS)

        def attempt(k: Array, best: Iterate) -> Iterate:
            trial = at(now.x + lengths[k] * (full.x - now.x), full.steps, jnp.zeros_like(full.sweeps))
            return _better(trial, best)

        enough = full.residual < SUFFICIENT * now.residual
        return lax.fori_loop(0, jnp.where(enough, 0, len(STEP_LENGTHS)), attempt, full)

    def descend(start: Iterate, last: Array, damping: Array) -> Iterate:
        """Newton steps until solved, until ``last`` steps in all, or into nowhere."""

        def step(now: Iterate) -> Iterate:
            levenberg = jnp.clip(damping * now.residual, REGULARISATION, LARGEST_WEIGHT)
            weight = jnp.where(damping > 0.0, levenberg, REGULARISATION)
            b = branches(problem, now.x, now.u, r)
            f = branch_residual(problem, now.x, now.u, r, b)
            a = tangent(problem, now.x, r, b, weight if fallback else REGULARISATION, exact)
            full = at(now.x - linear_solve(a, f[:, None])[:, 0], now.steps + 1, now.sweeps)
            if not fallback:
                return full
            return lax.cond(damping > 0.0, shorten, lambda now, full: full, now, full)

        return lax.while_loop(lambda z: (z.residual > tolerance) & (z.steps < last), step, start)

    if not fallback:
        return descend(start, cap, jnp.zeros(()))

    def sweep(swept: Array, k: Array) -> tuple[Iterate, Array, Array]:
        # data that are not finite cannot be swept into order: end here
        finite = jnp.isfinite(jnp.sum(problem.matrix)) & jnp.isfinite(jnp.sum(problem.free))
        sweeps = jnp.where(finite, FIRST_SWEEPS * MORE_SWEEPS ** (k - 1), 0)
        x = gauss_seidel(problem, swept, sweeps)
        return at(x, cap + (k - 1) * ROUND_STEPS, sweeps), x, jnp.where(finite, k, ROUNDS)

    def round_(carry: tuple[Iterate, Array, Array]) -> tuple[Iterate, Array, Array]:
        best, swept, k = carry
        plain, last = (k == 0) | (k > ROUNDS), cap + k * ROUND_STEPS
        again = dataclasses.replace(best, steps=cap + ROUNDS * ROUND_STEPS, sweeps=jnp.zeros_like(k))
        first = jax.tree.map(lambda a, b: jnp.where(k == 0, a, b), start, again)
        begin, swept, k = lax.cond(plain, lambda s, k: (first, s, k), sweep, swept, k)
        damping = jnp.where(plain, 0.0, jnp.where(k % 2 == 1, *DAMPING))
        end = descend(begin, jnp.where(k > ROUNDS, last - ROUND_STEPS + LAST_STEPS, last), damping)
        return _better(end, best), swept, k + 1

    def unsolved(carry: tuple[Iterate, Array, Array]) -> Array:
        # the last plain steps only where shifts of impulses are what is missing
        near = (carry[2] == ROUNDS + 1) & (carry[0].residual <= 10.0 * REGULARISATION)
        return ~(carry[0].residual <= tolerance) & ((carry[2] <= ROUNDS) | near)

    return lax.while_loop(unsolved, round_, (start, jnp.zeros_like(start.x), jnp.asarray(0, int)))[0]


def _better(a: Iterate, b: Iterate) -> Iterate:
    """The iterate with the smaller residual, with the work of the first."""
    first = (a.residual < b.residual) | jnp.isnan(b.residual)
    return Iterate(
        x=jnp.where(first, a.x, b.x),
        u=jnp.where(first, a.u, b.u),
        residual=jnp.where(first, a.residual, b.residual),
        steps=a.steps,
        sweeps=a.sweeps + b.sweeps,
    )
