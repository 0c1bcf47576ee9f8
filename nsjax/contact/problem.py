"""The contact problem as plain data, its laws, and measures of how well an answer fulfils them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.linalg import Blocks, Paired, matmul, matvec, product_diagonal
from nsjax.linalg.dense import matmul_by_rows, unit_matrix
from nsjax.linalg.elimination import PairOrder
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


# The parameters of Newton's impact law and Coulomb's friction law, and forces that are given.


@record(static=("follow", "load_tangents"))
class ContactLaw:
    """Coefficients of all contacts, each a scalar or one number per contact (nc,).

    Args:
        restitution: ``e_N`` in [0, 1]: the gap rate after an impact is at least ``-e_N`` times the
            one before it.
        restitution_tangential: ``e_T`` in [0, 1], the same for tangential velocities.
        friction: Coulomb's ``mu >= 0``.
        load: (k,) normal forces [N] of the last k contacts, which are given instead of found: see
            `nsjax.contact.bounded`. None: none is.
        follow: for each of these, the index of the contact whose normal force it shares; -1: the force is
            that of ``load``; (): that of ``load`` for all.
        load_tangents: tangents of each of these contacts that are not empty, the first ones.

    Limits: Newton's restitution relates velocities, not energies. Where friction ends or reverses sliding
    in an oblique impact, it may add kinetic energy (Kane and Levinson 1985). With one restitution ``e`` in
    all directions and contacts it never does: ``(1 + e) dE = P.(u+ + e u-) - (1 - e)/2 P.G P``, and neither
    part is positive.

    Example:
        >>> from nsjax import ContactLaw
        >>> ContactLaw(restitution=0.4, friction=0.01).restitution_tangential
        0.0
    """

    restitution: Array | float = 0.0
    restitution_tangential: Array | float = 0.0
    friction: Array | float = 0.0
    load: Array | None = None
    follow: Any = ()
    load_tangents: int = 1

    @property
    def loads(self) -> int:
        """Contacts whose normal force is given."""
        return 0 if self.load is None else int(self.load.shape[0])

    def given(self, nc: int, duration: Array | float) -> GivenNormals | None:
        """Normal impulses [N s] by ``load`` in a time [s], zero in an impact; None if there is none."""
        if self.load is None or not nc:
            return None
        others = nc - self.loads
        impulses = jnp.concatenate([jnp.zeros(others), self.load * duration])
        leads = (-1,) * others + self.follow if self.follow else ()
        on = np.arange(nc) >= others
        return GivenNormals(on=on, normal=impulses, leads=leads, tangents=self.load_tangents)

    def row_restitution(self, nc: int, nt: int) -> Array:
        """Restitution of every contact row (nc (1 + nt),), contact by contact."""
        normal = jnp.broadcast_to(jnp.asarray(self.restitution, float), (nc,))[:, None]
        tangent = jnp.broadcast_to(jnp.asarray(self.restitution_tangential, float), (nc,))[:, None]
        return jnp.concatenate([normal] + [tangent] * nt, axis=1).reshape(-1)

    def friction_of(self, nc: int) -> Array:
        """Friction coefficient of every contact (nc,)."""
        return jnp.broadcast_to(jnp.asarray(self.friction, float), (nc,))


# Measures of how well an answer fulfils the contact laws, independent of the solver that gave it.


# Largest size of impulses to which a residual is related, in multiples of what single rows would need: an
# unsolvable problem answers with impulses as large as the regularisation allows.
LARGEST_RATIO = 1e6


def natural_residual(problem: ContactProblem, x: Array) -> Array:
    """Relative natural-map residual ``max |x - prox(x - u/G_kk)| / max(max |x|, max |F_k|/G_kk)``.

    Zero exactly at a solution, unchanged when impulses or velocities are rescaled. It judges the
    answer of any solver. It is at least as large as one scaled with a single maximum: the
    second maximum runs over normal and bilateral rows, so that a fast sliding velocity does not loosen
    the bound on normal impulses, and the first is capped, so that enormous impulses do not hide an
    unsolvable problem. The rounding of impulses beyond the cap counts as an error.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.contact import ContactProblem, natural_residual
        >>> ball = ContactProblem(
        ...     nc=1, nt=0, nb=0, delassus=jnp.array([[2.0]]), free=jnp.array([-3.0]),
        ...     friction=jnp.zeros(1), mask=jnp.array([True]),
        ... )
        >>> float(natural_residual(ball, jnp.array([1.5])))
        0.0
    """
    r = problem.scaling()
    return relative_residual(problem, x, problem.velocity(x), r, impulse_scale(problem, r))


def impulse_scale(problem: ContactProblem, r: Array) -> tuple[Array, Array]:
    """Largest impulse ``|F_k| / G_kk`` that one row alone would need: among normal rows (given impulses
    included) and bilateral rows, and among all rows. Contacts out of ``mask`` do not count, nor do tangents
    without friction, on which no impulse acts.
    """
    single = jnp.abs(r * problem.free)
    taking = problem.mask[:, None]
    if problem.nt:
        taking = taking & (problem.friction[:, None] > np.array([-1.0, *problem.nt * [0.0]]))
    contacts = jnp.where(taking, problem.contacts(single), 0.0)
    bilateral = jnp.max(problem.bilateral(single), initial=0.0)
    normal = jnp.maximum(jnp.max(contacts[:, 0], initial=0.0), bilateral)
    if problem.given is not None:
        normal = jnp.maximum(normal, jnp.max(problem.given.normal))
    return normal, jnp.maximum(jnp.max(contacts, initial=0.0), normal)


def relative_residual(
    problem: ContactProblem, x: Array, u: Array, r: Array, scale: tuple[Array, Array]
) -> Array:
    """`natural_residual` from velocity ``u``, scaling ``r`` and impulse scales that are known already."""
    normal, largest = scale
    peak, most = jnp.max(jnp.abs(x)), LARGEST_RATIO * largest
    size = jnp.minimum(jnp.maximum(peak, normal), most)
    # beside enormous impulses velocities are lost in rounding, and would count as fulfilled
    rounding = jnp.finfo(float).eps * (peak - most)
    error = jnp.maximum(jnp.max(jnp.abs(problem.prox(x, u, r))), rounding)
    return error / jnp.where(size > 0.0, size, 1.0)


def complementarity_gap(problem: ContactProblem, x: Array) -> Array:
    """``max_k |x_N u_N + x_T . u_T + mu x_N |u_T||`` over contacts [J]: no contact does work except
    by friction at its limit. Zero at a solution.
    """
    u = problem.velocity(x)
    xc, uc = problem.impulses(x), problem.contacts(u)
    sliding = jnp.sum(xc[:, 1:] * uc[:, 1:], axis=1) + problem.friction * xc[:, 0] * norm(uc[:, 1:])
    return jnp.max(jnp.abs(xc[:, 0] * uc[:, 0]) + jnp.abs(sliding), initial=0.0)


def cone_violation(problem: ContactProblem, x: Array) -> Array:
    """Largest distance by which an answer leaves the sets of the law: impulses outside the friction
    cone or at masked-out contacts [N s], and approach velocities ``-u_N`` and bilateral velocities
    multiplied by ``1/G_kk`` [N s]. Zero at a solution.
    """
    r = problem.scaling()
    xc, uc = problem.impulses(x), problem.contacts(r * problem.velocity(x))
    tangential = norm(xc[:, 1:]) - problem.friction * jnp.maximum(xc[:, 0], 0.0)
    taking = jnp.max(jnp.stack([-xc[:, 0], tangential, -uc[:, 0]]), axis=0, initial=0.0)
    outside = jnp.max(jnp.abs(xc), axis=1)
    bilateral = jnp.abs(problem.bilateral(r * problem.velocity(x)))
    worst = jnp.max(jnp.where(problem.mask, taking, outside), initial=0.0)
    return jnp.maximum(worst, jnp.max(bilateral, initial=0.0))


def worst_contact(problem: ContactProblem, x: Array, known: tuple[Array, Array] | None = None) -> Array:
    """Index of the contact that fulfils its law worst; -1 for a problem without contacts. ``known``:
    velocity and scaling, if they are known already.
    """
    if problem.nc == 0:
        return jnp.asarray(-1, int)
    error = problem.prox(x, *(known or (problem.velocity(x), problem.scaling())))
    return jnp.argmax(jnp.max(jnp.abs(problem.contacts(error)), axis=1))


# Contacts that move each other: (nc, nc) bool, or (islands, k, k) of contacts in islands.


def over_links(f: Callable[..., Array], links: Array | None, *contacts: Array) -> Any:
    """``f(links, *contacts)`` (nc,), island by island if there are any, of values per contact (nc,); False
    if ``links`` is None.
    """
    if links is None:
        return False
    if links.ndim == 2:
        return f(links, *contacts)
    return jax.vmap(f)(links, *(x.reshape(links.shape[:2]) for x in contacts)).reshape(-1)


def pairs(links: Array, struck: Array) -> Array:
    """Pairs of different ``struck`` contacts that move each other, in the shape of ``links``."""
    s = struck if links.ndim == 2 else struck.reshape(links.shape[:2])
    return links & s[..., :, None] & s[..., None, :] & ~jnp.eye(s.shape[-1], dtype=bool)


def struck_with(links: Array, struck: Array) -> Array:
    """Contacts (nc,) bool of ``struck`` that move another of them."""
    return jnp.any(pairs(links, struck), axis=-1).reshape(-1)
