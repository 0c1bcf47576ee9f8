"""The active contacts of a problem as a smaller problem of fixed size."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax.contact.problem import ContactProblem
from nsjax.types import Array, record


@record()
class Compact:
    """A smaller problem and the way back.

    Args:
        problem: the gathered contacts; unused places are masked out.
        place: (size, nc) bool, one-hot: which contact stands where.
    """

    problem: ContactProblem
    place: Array

    def spread(self, x: Array) -> Array:
        """Impulses of the smaller problem as impulses of the whole one, zero elsewhere."""
        contacts = self.problem.contacts(x)
        whole = jnp.sum(self.place[:, :, None] * contacts[:, None, :], axis=0)
        return jnp.concatenate([whole.reshape(-1), self.problem.bilateral(x)])


def gather(problem: ContactProblem, size: int) -> Compact:
    """The first ``size`` active contacts of a problem (all of them, if there are no more)."""
    d = 1 + problem.nt
    order = jnp.cumsum(problem.mask) - 1
    place = problem.mask[None, :] & (order[None, :] == np.arange(size)[:, None])
    contact = jnp.sum(place * np.arange(problem.nc), axis=1)
    rows = (contact[:, None] * d + np.arange(d)).reshape(-1)
    rows = jnp.concatenate([rows, problem.nc * d + np.arange(problem.nb)])
    small = ContactProblem(
        nc=size,
        nt=problem.nt,
        nb=problem.nb,
        delassus=problem.matrix[rows][:, rows],
        free=problem.free[rows],
        friction=problem.friction[contact],
        mask=jnp.any(place, axis=1),
    )
    return Compact(problem=small, place=place)
