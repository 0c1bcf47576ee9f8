"""The contact problem as plain data, its laws, and measures of how well an answer fulfils them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.row_groups import GivenForces, RowGroups
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


@record(static=("rows",))
class ContactProblem:
    """Find impulses ``x`` and local velocities ``u = F + G x`` that fulfil every law.

    Per contact ``x = (x_N, x_T)``: ``0 <= u_N _|_ x_N >= 0`` and Coulomb's law
    ``x_T = prox_{mu x_N}(x_T - r u_T)`` where the mask is true, ``x = 0`` elsewhere.
    Per bilateral row ``u = 0``.

    Args:
        rows: the laws, and the rows (m,) that belong to each.
        delassus: ``G`` (m, m); or `DelassusFactors`, which the certificate applies as it is and the solvers
            make dense; or `Blocks`, one per island: no contact of an island moves one of another.
        free: ``F`` (m,) [m/s].
        friction: (nc,).
        mask: (nc,) bool, contacts that take part.
        given: numbers of `Bounded` forces; None: there are none.

    Source: [R&S (43)-(54)].
    """

    rows: RowGroups
    delassus: Any
    free: Array
    friction: Array
    mask: Array
    given: GivenForces | None = None

    @property
    def nc(self) -> int:
        """Contacts and bounded forces."""
        return self.rows.nc

    @property
    def nt(self) -> int:
        """Tangents of a contact with friction."""
        return self.rows.nt

    @property
    def nb(self) -> int:
        """Bilateral rows."""
        return self.rows.nb

    def contacts(self, x: Array) -> Array:
        """The contact part of a row vector as (nc, 1 + nt), zero for rows that are not there."""
        return self.rows.contacts(x)

    def bilateral(self, x: Array) -> Array:
        """The bilateral part of a row vector (nb,)."""
        return self.rows.bilateral(x)

    def stack(self, contacts: Array, bilateral: Array) -> Array:
        """Row vector from its two parts."""
        return self.rows.stack(contacts, bilateral)

    def impulses(self, x: Array) -> Array:
        """`contacts` of impulses, with the normal impulses that are given or shared."""
        return self.rows.impulses(x, self.given, self.mask)

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
        return self.delassus

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
        free, friction, mask = (jnp.reshape(x, (n, -1)) for x in (self.free, self.friction, self.mask))
        rows = RowGroups.of(self.nc // n, self.nt)
        return ContactProblem(
            rows=rows, delassus=self.delassus.values, free=free, friction=friction, mask=mask
        )

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

        The friction disk has the radius ``mu x_N`` of the answer. A `RateLaw` has its own residual.
        """
        xc = self.impulses(x)
        z = xc - self.contacts(r * u)
        normal = jnp.where(self.mask & (z[:, 0] > 0.0), z[:, 0], 0.0)
        if self.given is not None:
            normal = self.rows.normal_impulses(self.given, normal, self.mask)
        rows = [(xc[:, 0] - normal)[:, None]]
        if self.nt:
            radius = self.friction * jnp.where(self.mask & (xc[:, 0] > 0.0), xc[:, 0], 0.0)
            rows.append(xc[:, 1:] - project_disk(z[:, 1:], radius))
        found = self.stack(jnp.concatenate(rows, axis=1), self.bilateral(r * u))
        return self.with_own(found, lambda: self.own_residual(x, u, r))

    def own_residual(self, x: Array, u: Array, r: Array) -> Array:
        """Residual (k,) of the forces with a `RateLaw`."""
        _, first, end = self.rows.ends
        assert self.given is not None
        return self.rows.own_residual(self.given, x[first:end], u[first:end], r[first:end])

    def with_own(self, x: Array, own: Callable[[], Array]) -> Array:
        """Rows (m, ...) with those of the forces with a `RateLaw` replaced by ``own()``."""
        if self.rows.own is None:
            return x
        _, first, end = self.rows.ends
        return jnp.concatenate([x[:first], own(), x[end:]])


def project_disk(z: Array, radius: Array) -> Array:
    """Nearest point of the disk (interval for one tangent) of ``radius`` (nc,) to ``z`` (nc, nt)."""
    inside = (norm(z) <= radius)[:, None]
    return jnp.where(inside, z, radius[:, None] * direction(z))


# The parameters of Newton's impact law and Coulomb's friction law, and forces that are given.


@record()
class ContactLaw:
    """Coefficients of all contacts, each a scalar or one number per contact (nc,).

    Args:
        restitution: ``e_N`` in [0, 1]: the gap rate after an impact is at least ``-e_N`` times the
            one before it.
        restitution_tangential: ``e_T`` in [0, 1], the same for tangential velocities.
        friction: Coulomb's ``mu >= 0``.

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

    @property
    def by_speed(self) -> bool:
        """Whether the law depends on the speed, so that every step asks `at_speed`."""
        return False

    def at_speed(self, rates: Array) -> ContactLaw:
        """The law of contacts whose rows have the velocities ``rates`` (nc, 1 + nt) [m/s] before a step or
        an impact: for laws that inherit from this one and depend on the speed, see `SpeedLaw`.
        """
        return self

    def given(self, duration: Array | float) -> GivenForces | None:
        """Numbers of the forces that always act, in a time [s], zero in an impact; None: there are none."""
        return None

    def rebound(self, rows: RowGroups, before: Array, settling: Array | None = None) -> Array:
        """Velocities (count,) that are added to those after an impact before the laws of unilateral contact
        and friction are asked: ``e u^-``, zero for constraints. All schemes and reports take restitution
        from here: a law that inherits from this one may make it depend on the speed.

        Args:
            before: (count,) velocities of the rows before the impact.
            settling: (nc,) bool, contacts whose gaps do not rebound; None: none.
        """
        normal, tangent = (
            jnp.broadcast_to(jnp.asarray(e, float), (rows.nc,))[:, None]
            for e in (self.restitution, self.restitution_tangential)
        )
        if settling is not None:
            normal = jnp.where(settling[:, None], 0.0, normal)
        each = jnp.concatenate([normal] + [tangent] * rows.nt, axis=1)
        return rows.stack(each, jnp.zeros(rows.nb)) * before

    def friction_of(self, nc: int) -> Array:
        """Friction coefficient of every contact (nc,)."""
        return jnp.broadcast_to(jnp.asarray(self.friction, float), (nc,))


@record()
class SpeedLaw(ContactLaw):
    """Friction that falls with the sliding speed, and restitution that falls with the speed of impact.

    With the speeds ``s = |u_T|`` and ``u_N`` at the start of the step, or just before an impact::

        mu(s) = mu_slide + (friction - mu_slide) exp(-(s / friction_speed)^2)      (Stribeck)
        e(u_N) = restitution (1 + |u_N| / restitution_speed)^(-1/4)

    Args:
        restitution: ``e_N`` of slow impacts, in [0, 1].
        restitution_tangential: ``e_T`` in [0, 1].
        friction: coefficient at rest, by which a contact sticks.
        friction_sliding: coefficient ``mu_slide`` of fast sliding; None: that at rest.
        friction_speed: speed of the fall [m/s], above zero. A small one, below the speeds that matter,
            tells static from dynamic friction.
        restitution_speed: speed from which restitution falls [m/s]; None: it does not.

    Order: the coefficients are those of the start of a step, so that their change enters with an error of
    first order in the step. In a step the law is Coulomb's, with its certificate.

    Limits: where friction falls with the speed, steady sliding may be unstable (stick and slip). Torsional
    and rolling friction do not change with the speed.

    Source: friction as in `nsjax.multibody.Stribeck`; restitution of plastic impacts falls with the fourth
    root of the speed, K. L. Johnson: Contact Mechanics, Cambridge 1985, section 11.5.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.contact import SpeedLaw
        >>> law = SpeedLaw(friction=0.3, friction_sliding=0.2, friction_speed=0.01)
        >>> rest, fast = (law.at_speed(jnp.array([[0.0, s]])).friction_of(1)[0] for s in (0.0, 1.0))
        >>> round(float(rest), 6), round(float(fast), 6)
        (0.3, 0.2)
    """

    friction_sliding: Array | float | None = None
    friction_speed: Array | float = 1.0
    restitution_speed: Array | float | None = None

    @property
    def by_speed(self) -> bool:
        """True."""
        return True

    def at_speed(self, rates: Array) -> ContactLaw:
        """Coefficients at the speeds ``rates`` (nc, 1 + nt) [m/s]."""
        friction, restitution = self.friction, self.restitution
        if self.friction_sliding is not None:
            # squares, since the norm has no derivative at rest
            squares = jnp.sum(rates[:, 1:] ** 2, axis=1) / jnp.asarray(self.friction_speed) ** 2
            slow = jnp.exp(-squares)
            friction = self.friction_sliding + (self.friction - jnp.asarray(self.friction_sliding)) * slow
        if self.restitution_speed is not None:
            excess = jnp.where(rates[:, 0] < 0.0, -rates[:, 0], 0.0) / self.restitution_speed
            restitution = restitution * (1.0 + excess) ** -0.25
        return ContactLaw(
            restitution=restitution, restitution_tangential=self.restitution_tangential, friction=friction
        )


def with_reserve(rows: RowGroups, given: GivenForces | None, contacts: Array, rates: Array) -> Array:
    """Impulses (nc, 1 + nt) with a normal impulse of each force with a `RateLaw`: its size, and twice as
    much where the law holds its rate, so that it sticks as friction inside its bound does. ``given``:
    numbers of these forces; ``rates``: (m,) of all rows, to which the law refers.
    """
    if rows.own is None or given is None:
        return contacts
    _, first, end = rows.ends
    last, u = rows.nc - rows.bounded, rates[first:end]
    x, one = contacts[last:, 1], jnp.ones(rows.bounded)
    holds = jax.jvp(lambda x: rows.own_residual(given, x, u, one), (x,), (one,))[1] == 0.0
    normal = jnp.where(holds, 2.0, 1.0) * jnp.abs(x)
    forces = jnp.concatenate([normal[:, None], contacts[last:, 1:]], axis=1)
    return jnp.concatenate([contacts[:last], forces])


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
        >>> from nsjax.contact import ContactProblem, RowGroups, natural_residual
        >>> ball = ContactProblem(
        ...     rows=RowGroups.of(nc=1, nt=0), delassus=jnp.array([[2.0]]), free=jnp.array([-3.0]),
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
    """Index of the contact that fulfils its law worst, else -1; ``known``: velocity and scaling."""
    if problem.nc == 0:
        return jnp.asarray(-1, int)
    error = problem.prox(x, *(known or (problem.velocity(x), problem.scaling())))
    return jnp.argmax(jnp.max(jnp.abs(problem.contacts(error)), axis=1))


# Contacts that move each other: (nc, nc) bool, or (islands, k, k) of contacts in islands.


def over_links(f: Callable[..., Array], links: Array | None, *contacts: Array) -> Any:
    """``f(links, *contacts)`` (nc,), island by island if there are any; False if ``links`` is None."""
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
