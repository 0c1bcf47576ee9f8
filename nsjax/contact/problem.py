"""The contact problem on the Delassus operator, as plain data."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax.linalg import matvec
from nsjax.math import direction, norm
from nsjax.types import Array, record


@record(static=("nc", "nt", "nb"))
class ContactProblem:
    """Find impulses ``x`` and local velocities ``u = F + G x`` that fulfil every law.

    Per contact ``x = (x_N, x_T)``: ``0 <= u_N _|_ x_N >= 0`` and Coulomb's law
    ``x_T = prox_{mu x_N}(x_T - r u_T)`` where the mask is true, ``x = 0`` elsewhere.
    Per bilateral row ``u = 0``.

    Args:
        nc, nt, nb: contacts, tangents per contact, bilateral rows; ``m = nc (1 + nt) + nb``.
        delassus: ``G`` (m, m), rows contact by contact, bilateral rows last.
        free: ``F`` (m,) [m/s].
        friction: (nc,).
        mask: (nc,) bool, contacts that take part.

    Source: `notation.md` sections 4 and 5.
    """

    nc: int
    nt: int
    nb: int
    delassus: Array
    free: Array
    friction: Array
    mask: Array

    def contacts(self, x: Array) -> Array:
        """The contact part of a row vector as (nc, 1 + nt)."""
        return x[: self.nc * (1 + self.nt)].reshape(self.nc, 1 + self.nt)

    def bilateral(self, x: Array) -> Array:
        """The bilateral part of a row vector (nb,)."""
        return x[self.nc * (1 + self.nt) :]

    def stack(self, contacts: Array, bilateral: Array) -> Array:
        """Row vector from its two parts."""
        flat = contacts.reshape(-1)
        return jnp.concatenate([flat, bilateral]) if self.nb else flat

    def velocity(self, x: Array) -> Array:
        """``u = F + G x``."""
        return self.free + matvec(self.delassus, x)

    def scaling(self) -> Array:
        """Prox parameter of every row, ``1 / G_kk``; one per contact for a pair of tangents.

        A row on which no impulse acts (``G_kk = 0``) gets zero.
        """
        m = self.free.shape[0]
        diagonal = jnp.sum(self.delassus * np.eye(m), axis=1)
        if self.nt == 2:
            block = self.contacts(diagonal)
            largest = jnp.max(block[:, 1:], axis=1, keepdims=True)
            wide = jnp.concatenate([block[:, :1], largest, largest], axis=1)
            diagonal = self.stack(wide, self.bilateral(diagonal))
        positive = diagonal > 0.0
        return jnp.where(positive, 1.0 / jnp.where(positive, diagonal, 1.0), 0.0)

    def prox(self, x: Array, u: Array, r: Array) -> Array:
        """``x - prox(x - r u)``: zero for every row exactly at a solution (`notation.md` section 6).

        The friction disk has the radius ``mu x_N`` of the answer.
        """
        xc = self.contacts(x)
        z = xc - self.contacts(r * u)
        normal = jnp.where(self.mask & (z[:, 0] > 0.0), z[:, 0], 0.0)
        rows = [(xc[:, 0] - normal)[:, None]]
        if self.nt:
            radius = self.friction * jnp.where(self.mask & (xc[:, 0] > 0.0), xc[:, 0], 0.0)
            rows.append(xc[:, 1:] - project_disk(z[:, 1:], radius))
        return self.stack(jnp.concatenate(rows, axis=1), self.bilateral(r * u))


def project_disk(z: Array, radius: Array) -> Array:
    """Nearest point of the disk (interval for one tangent) of ``radius`` (nc,) to ``z`` (nc, nt)."""
    inside = (norm(z) <= radius)[:, None]
    return jnp.where(inside, z, radius[:, None] * direction(z))
