"""The contact problem on the Delassus operator, as plain data."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.linalg import Blocks, Paired, matmul, matvec, product_diagonal
from nsjax.linalg.dense import matmul_by_rows, unit_matrix
from nsjax.linalg.pair_elimination import PairOrder
from nsjax.math import direction, norm
from nsjax.types import Array, record


@record()
class DelassusFactors:
    """A Delassus operator ``G = wt response`` that is applied without being formed.

    Args:
        wt: ``W'`` (m, nv), an array, `Blocks` or `Paired`.
        response: ``M^-1 W`` (nv, m), likewise.
        order: of `Paired` factors, the order in which Newton's method eliminates the bodies; else None.
    """

    wt: Any
    response: Any
    order: PairOrder | None = None

    def dense(self) -> Any:
        """``G`` (m, m), an array or `Blocks` as the factors are."""
        if isinstance(self.response, Blocks):
            return matmul(self.wt, self.response)
        return matmul_by_rows(self.wt, self.response.T)

    @property
    def values(self) -> DelassusFactors:
        """The factors of all blocks, along a leading axis."""
        return DelassusFactors(wt=self.wt.values, response=self.response.values)


SUMMED = 64
"""Number of contacts up to which entries of others are taken by masked sums, which keep a small loop one
kernel and whose transposes are no scatters.
"""


@record(static=("leads", "tangents"))
class GivenNormals:
    """Normal impulses that are given instead of found: ``x_N = normal`` whatever ``u_N``.

    Args:
        on: (nc,) bool, contacts with a given impulse; an array of numpy where it is known without data.
        normal: (nc,) [N s], zero elsewhere.
        leads: per contact, the index of the contact whose normal impulse it shares; -1: none; (): none at
            all.
        tangents: tangents of each of these contacts that are not empty, the first ones: one, or both.
    """

    on: Any
    normal: Array
    leads: tuple[int, ...] = ()
    tangents: int = 1

    @property
    def follows(self) -> np.ndarray:
        """Contacts (nc,) bool whose normal impulse is that of another one."""
        return np.array(self.leads) >= 0

    def normals(self, found: Array, mask: Array) -> Array:
        """Normal impulses (nc,): given ones, those shared with another contact (zero if that one is not in
        ``mask`` (nc,) bool), and ``found`` elsewhere.
        """
        normal = self.where(self.normal, found)
        if not self.leads:
            return normal
        own, leads = jnp.where(mask, found, 0.0), np.array(self.leads)
        if len(leads) > SUMMED:
            others = own[np.where(leads < 0, 0, leads)]
        else:
            others = jnp.sum(jnp.where(leads[:, None] == np.arange(len(leads)), own, 0.0), axis=1)
        return jnp.where(self.follows, others, normal)

    def where(self, given: Array | float, found: Array) -> Array:
        """``given`` at contacts with a given normal impulse, ``found`` elsewhere."""
        return jnp.where(self.on, given, found)


@record(static=("nc", "nt", "nb", "smooth", "bounded"))
class ContactProblem:
    """Find impulses ``x`` and local velocities ``u = F + G x`` that fulfil every law.

    Per contact ``x = (x_N, x_T)``: ``0 <= u_N _|_ x_N >= 0`` and Coulomb's law
    ``x_T = prox_{mu x_N}(x_T - r u_T)`` where the mask is true, ``x = 0`` elsewhere.
    Per bilateral row ``u = 0``.

    Contacts with friction have ``1 + nt`` rows and come first; then come ``smooth`` contacts with a normal
    alone, at last ``bounded`` contacts with tangents alone, as many as `GivenNormals.tangents`.

    Args:
        nc, nt, nb: contacts, tangents per contact, bilateral rows;
            ``m = (nc - smooth - bounded) (1 + nt) + smooth + bounded tangents + nb``.
        delassus: ``G`` (m, m), rows contact by contact, bilateral rows last; or `DelassusFactors`, which
            the certificate applies as it is and the solvers make dense; or `Blocks`, one per island:
            no contact of an island moves one of another.
        free: ``F`` (m,) [m/s].
        friction: (nc,).
        mask: (nc,) bool, contacts that take part.
        given: contacts whose normal impulse is known; None: there are none.
        smooth: number of contacts without friction, which come after those with friction.
        bounded: number of contacts, the last ones, with a given normal impulse that moves nothing.

    Source: [R&S (43)-(54)].
    """

    nc: int
    nt: int
    nb: int
    delassus: Any
    free: Array
    friction: Array
    mask: Array
    given: GivenNormals | None = None
    smooth: int = 0
    bounded: int = 0

    @property
    def rough(self) -> int:
        """Contacts with all rows, the first ones."""
        return self.nc - self.smooth - self.bounded

    @property
    def ends(self) -> tuple[int, int, int]:
        """Ends of the rows of contacts with all rows, with a normal alone, and with tangents alone."""
        first = self.rough * (1 + self.nt)
        return first, first + self.smooth, first + self.smooth + self.bounded * self.tangents

    @property
    def tangents(self) -> int:
        """Tangents of each of the `bounded` contacts."""
        return 1 if self.given is None else self.given.tangents

    def contacts(self, x: Array) -> Array:
        """The contact part of a row vector as (nc, 1 + nt), zero for rows that are not there."""
        d, (first, second, third) = 1 + self.nt, self.ends
        parts = [x[:first].reshape(self.rough, d)]
        if self.smooth:
            parts.append(in_place(x[first:second], 0, d))
        if self.bounded:
            parts.append(tangents_in_place(x[second:third], self.tangents, d))
        return jnp.concatenate(parts) if len(parts) > 1 else parts[0]

    def impulses(self, x: Array) -> Array:
        """`contacts` of impulses, with the given normal impulses of contacts without a normal row."""
        found = self.contacts(x)
        if self.leading:
            assert self.given is not None
            normal = self.given.normals(found[:, 0], self.mask)
            return jnp.concatenate([normal[:, None], found[:, 1:]], axis=1)
        if not self.bounded:
            return found
        assert self.given is not None
        normal = jnp.where(np.arange(self.nc) < self.nc - self.bounded, found[:, 0], self.given.normal)
        return jnp.concatenate([normal[:, None], found[:, 1:]], axis=1)

    @property
    def leading(self) -> bool:
        """Whether normal impulses of some contacts are those of others."""
        return self.given is not None and bool(self.given.leads)

    def bilateral(self, x: Array) -> Array:
        """The bilateral part of a row vector (nb,)."""
        return x[self.ends[2] :]

    def stack(self, contacts: Array, bilateral: Array) -> Array:
        """Row vector from its two parts."""
        last = self.nc - self.bounded
        parts = [contacts[: self.rough].reshape(-1)]
        parts += [contacts[self.rough : last, 0]] if self.smooth else []
        parts += [contacts[last:, 1 : 1 + self.tangents].reshape(-1)] if self.bounded else []
        parts += [bilateral] if self.nb else []
        return jnp.concatenate(parts) if len(parts) > 1 else parts[0]

    def velocity(self, x: Array) -> Array:
        """``u = F + G x``."""
        g = self.delassus
        if isinstance(g, DelassusFactors):
            return self.free + matvec(g.wt, matvec(g.response, x))
        return self.free + matvec(g, x)

    def dense(self) -> ContactProblem:
        """The same problem with ``G`` as a matrix."""
        if not isinstance(self.delassus, DelassusFactors):
            return self
        return dataclasses.replace(self, delassus=self.delassus.dense())

    @property
    def matrix(self) -> Array:
        """``G`` (m, m) of a dense problem."""
        assert not isinstance(self.delassus, DelassusFactors), "call dense() first"
        matrix: Array = self.delassus
        return matrix

    @property
    def paired(self) -> bool:
        """Whether rows are those of contacts between two bodies each (`nsjax.linalg.Paired`)."""
        return isinstance(self.delassus, DelassusFactors) and isinstance(self.delassus.wt, Paired)

    @property
    def islands(self) -> int:
        """Number of blocks of ``G``; 0 for an array."""
        g = self.delassus.wt if isinstance(self.delassus, DelassusFactors) else self.delassus
        return g.values.shape[0] if isinstance(g, Blocks) else 0

    def by_island(self) -> ContactProblem:
        """The problems of all islands, along a leading axis."""
        n = self.islands
        free, friction, mask, given = jax.tree.map(
            lambda x: jnp.reshape(x, (n, -1)), (self.free, self.friction, self.mask, self.given)
        )
        return ContactProblem(
            nc=self.nc // n, nt=self.nt, nb=0, delassus=self.delassus.values, free=free, friction=friction,
            mask=mask, given=given,
        )  # fmt: skip

    def scaling(self) -> Array:
        """Prox parameter of every row, ``1 / G_kk``; one per contact for a pair of tangents.

        A row that no impulse moves (``G_kk = 0``) gets the least of the others.
        """
        g = self.delassus
        if isinstance(g, DelassusFactors):
            diagonal = product_diagonal(g.wt, g.response)
        elif isinstance(g, Blocks):
            diagonal = g.diagonal()
        else:
            diagonal = jnp.sum(g * unit_matrix(self.free.shape[0]), axis=1)
        if self.nt == 2:
            block = self.contacts(diagonal)
            largest = jnp.max(block[:, 1:], axis=1, keepdims=True)
            wide = jnp.concatenate([block[:, :1], largest, largest], axis=1)
            diagonal = self.stack(wide, self.bilateral(diagonal))
        largest = jnp.max(diagonal)
        fallback = jnp.where(largest > 0.0, largest, 1.0)
        return 1.0 / jnp.where(diagonal > 0.0, diagonal, fallback)

    def prox(self, x: Array, u: Array, r: Array) -> Array:
        """``x - prox(x - r u)``: zero for every row exactly at a solution.

        The friction disk has the radius ``mu x_N`` of the answer.
        """
        xc = self.impulses(x)
        z = xc - self.contacts(r * u)
        normal = jnp.where(self.mask & (z[:, 0] > 0.0), z[:, 0], 0.0)
        if self.given is not None:
            normal = self.given.normals(normal, self.mask)
        rows = [(xc[:, 0] - normal)[:, None]]
        if self.nt:
            radius = self.friction * jnp.where(self.mask & (xc[:, 0] > 0.0), xc[:, 0], 0.0)
            rows.append(xc[:, 1:] - project_disk(z[:, 1:], radius))
        return self.stack(jnp.concatenate(rows, axis=1), self.bilateral(r * u))


def in_place(x: Array, place: int, width: int) -> Array:
    """Array (n, width, ...) with the entries (n, ...) at the index ``place`` of each contact, else zero."""
    return jnp.stack([x if k == place else jnp.zeros_like(x) for k in range(width)], axis=1)


def tangents_in_place(x: Array, tangents: int, width: int) -> Array:
    """Rows (n tangents, ...) of contacts with tangents alone as (n, width, ...), zero for other rows."""
    block = x.reshape(-1, tangents, *x.shape[1:])
    return jnp.pad(block, [(0, 0), (1, width - 1 - tangents), *[(0, 0)] * (x.ndim - 1)])


def project_disk(z: Array, radius: Array) -> Array:
    """Nearest point of the disk (interval for one tangent) of ``radius`` (nc,) to ``z`` (nc, nt)."""
    inside = (norm(z) <= radius)[:, None]
    return jnp.where(inside, z, radius[:, None] * direction(z))
