"""Contacts between pairs of bodies by Newton's method, where sweeps do not lead to an answer."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp

from nsjax.contact.certificate import LARGEST_RATIO, impulse_scale, natural_residual
from nsjax.contact.compliant_ways import newton_by_compliance
from nsjax.contact.newton import beginning
from nsjax.contact.problem import ContactProblem
from nsjax.linalg.pair_elimination import PairOrder
from nsjax.types import Array


def pair_newton(
    problem: ContactProblem, order: PairOrder, x: Array, *, tolerance: Array
) -> tuple[Array, Array, Array]:
    """Impulses (m,), Newton steps and certificate of a problem between pairs of bodies, from ``x``.

    The search begins with proximal steps: where sweeps creep, the branches of contacts are undecided. 22
    problems of a hundred spheres take a mean of 7 steps to a tolerance of 1e-3. With up to 60 plain steps
    first, and proximal steps from zero, they took 44: nine of them cycled.

    The better of ``x`` and the answer is returned. Where no impulses fulfil the laws, the ``x`` of sweeps
    may be enormous: then the bounded impulses of the compliant contacts are returned.

    Args:
        problem: whose operator is `DelassusFactors` into `Paired` rows.
        order: of elimination, a narrow one.
        x: (m,) impulses to begin with.
        tolerance: of the relative natural-map residual.
    """
    ordered = dataclasses.replace(problem, delassus=dataclasses.replace(problem.delassus, order=order))
    before, scale = natural_residual(problem, x), impulse_scale(problem, problem.scaling())[1]
    start = beginning(ordered, x)
    end, _ = newton_by_compliance(ordered, start, tolerance=tolerance, max_iterations=0, unseen=True)
    huge = jnp.max(jnp.abs(x), initial=0.0) > LARGEST_RATIO * scale
    better = (end.residual < before) | (jnp.isinf(end.residual) & huge)
    return jnp.where(better, end.x, x), end.steps, jnp.where(better, end.residual, before)
