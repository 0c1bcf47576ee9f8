"""The active contacts of a problem as a smaller problem of fixed size."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax.contact.problem import ContactProblem
from nsjax.linalg import matmul, matvec
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


# Selection by one-hot products transposes without scatter, at a cost that grows with all contacts.
ONE_HOT_LIMIT = 16


@record(static=("size", "nc", "nt", "nb"))
class Selection:
    """The active contacts as products with a one-hot matrix (rows of the smaller problem, all rows)."""

    size: int
    nc: int
    nt: int
    nb: int
    place: Array
    matrix: Array

    def rows(self, x: Array) -> Array:
        """Rows of the smaller problem out of a row vector."""
        return matvec(self.matrix, x)

    def spread(self, x: Array) -> Array:
        """Back, zero elsewhere."""
        return matvec(self.matrix.T, x)

    def reduce(self, problem: ContactProblem) -> ContactProblem:
        """The smaller problem; unused places are masked out."""
        return ContactProblem(
            nc=self.size,
            nt=self.nt,
            nb=self.nb,
            delassus=matmul(matmul(self.matrix, problem.matrix), self.matrix.T),
            free=self.rows(problem.free),
            friction=matvec(self.place, problem.friction),
            mask=jnp.sum(self.place, axis=1) > 0.0,
        )


def selection(problem: ContactProblem, size: int) -> Selection:
    """The first ``size`` active contacts of a problem, for small problems whose data are differentiated."""
    order = jnp.cumsum(problem.mask) - 1
    place = 1.0 * (problem.mask[None, :] & (order[None, :] == np.arange(size)[:, None]))
    d, nb = 1 + problem.nt, problem.nb
    contacts = (place[:, None, :, None] * np.eye(d)[None, :, None, :]).reshape(size * d, problem.nc * d)
    upper = jnp.concatenate([contacts, jnp.zeros((size * d, nb))], axis=1)
    lower = jnp.concatenate([jnp.zeros((nb, problem.nc * d)), jnp.eye(nb)], axis=1)
    return Selection(
        size=size, nc=problem.nc, nt=problem.nt, nb=nb, place=place, matrix=jnp.concatenate([upper, lower])
    )
