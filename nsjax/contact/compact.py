"""The active contacts of a problem as a smaller problem of fixed size."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax.contact.branches import Branches
from nsjax.contact.problem import ContactProblem, Given
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
        """Rows of the smaller problem as rows of the whole one, zero elsewhere."""
        contacts = self.problem.contacts(x)
        whole = jnp.sum(self.place[:, :, None] * contacts[:, None, :], axis=0)
        return jnp.concatenate([whole.reshape(-1), self.problem.bilateral(x)])

    def rows(self, x: Array) -> Array:
        """Rows of the smaller problem out of those of the whole one, zero in unused places. A sum and no
        gather, whose transpose would be a scatter.
        """
        d, nc = 1 + self.problem.nt, self.place.shape[1]
        contacts = jnp.sum(self.place[:, :, None] * x[: nc * d].reshape(1, nc, d), axis=1)
        return self.problem.stack(contacts, x[nc * d :])

    def branches(self, b: Branches) -> Branches:
        """Branches of the smaller problem out of those of the whole one, all open in unused places."""

        def pick(x: Array) -> Array:
            return jnp.sum(self.place.reshape(self.place.shape + (1,) * (x.ndim - 1)) * x[None], axis=1)

        return Branches(
            use=self.rows(b.use) > 0.0, slip=pick(b.slip) > 0.0, slope=pick(b.slope), size=pick(b.size)
        )


def gather(problem: ContactProblem, size: int) -> Compact:
    """The first ``size`` active contacts of a problem (all of them, if there are no more)."""
    d = 1 + problem.nt
    order = jnp.cumsum(problem.mask) - 1
    place = problem.mask[None, :] & (order[None, :] == np.arange(size)[:, None])
    contact = jnp.sum(place * np.arange(problem.nc), axis=1)
    rows = (contact[:, None] * d + np.arange(d)).reshape(-1)
    rows = jnp.concatenate([rows, problem.nc * d + np.arange(problem.nb)])
    given = None
    if problem.given is not None:
        here = jnp.any(place, axis=1)
        normal = jnp.where(here, problem.given.normal[contact], 0.0)
        given = Given(on=here & jnp.asarray(problem.given.on)[contact], normal=normal)
    small = ContactProblem(
        nc=size,
        nt=problem.nt,
        nb=problem.nb,
        delassus=problem.matrix[rows][:, rows],
        free=problem.free[rows],
        friction=problem.friction[contact],
        mask=jnp.any(place, axis=1),
        given=given,
    )
    return Compact(problem=small, place=place)
