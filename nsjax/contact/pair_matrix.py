"""Contacts between pairs of bodies by their matrix, where products alone do not lead to an answer."""

from __future__ import annotations

import jax.numpy as jnp

from nsjax.contact.certificate import LARGEST_RATIO, impulse_scale, natural_residual
from nsjax.contact.compliant_ways import newton_by_compliance
from nsjax.contact.newton import beginning
from nsjax.contact.problem import ContactProblem
from nsjax.types import Array

LARGEST = 1800
"""Most rows of the matrix with which the search goes on where cones do not lead to an answer: 600 contacts
in space, and 160 MB of a compiled run (280 with 2,400 rows, which then grow faster than the contacts).
Three of fifty steps of 300 spheres that come to rest (570 contacts) end at 1e-8 to 2e-6 without it. With
1,900 rows a step of Newton's method with the matrix takes 0.16 s, and such problems take 4 to 110.
"""


def by_matrix(
    problem: ContactProblem, x: Array, *, tolerance: Array, cap: Array
) -> tuple[Array, Array, Array]:
    """The better of ``x`` and the answer with the matrix, where `cone_newton` has failed. Where no impulses
    fulfil the laws, the ``x`` of sweeps may be enormous: then the bounded impulses of the compliant
    contacts are returned.
    """
    matrix = problem.dense()
    before, scale = natural_residual(problem, x), impulse_scale(problem, problem.scaling())[1]
    end, _ = newton_by_compliance(
        matrix, beginning(matrix, x), tolerance=tolerance, max_iterations=cap, unseen=True
    )
    huge = jnp.max(jnp.abs(x), initial=0.0) > LARGEST_RATIO * scale
    better = (end.residual < before) | (jnp.isinf(end.residual) & huge)
    return jnp.where(better, end.x, x), end.steps, jnp.where(better, end.residual, before)


def matrix_widths(widths: list[int], rows: int) -> list[int]:
    """Widths of a group with which the matrix has at most `LARGEST` rows; the largest of all is the last
    one where the matrix of all contacts would have more.

    Args:
        widths: widths of a group of contacts, rising.
        rows: rows of a contact, times the number of groups.
    """
    most = min(LARGEST // rows, widths[-1])
    return [*(k for k in widths if k < most), most]
