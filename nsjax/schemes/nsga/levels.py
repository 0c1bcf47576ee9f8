"""The subproblems of the nonsmooth generalized-alpha family, and their data.

Each is a set of dynamic rows (a sum of terms, the directions of the row multipliers among them) and
of constraint rows, with augmented multipliers ``sigma = k x - p y``. The variants differ in the state at
which the operators are taken, and in the forces that couple the subproblems.
Source: [C (33), (37), (40)-(43)].
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.branches import AT_BOUND
from nsjax.core.operators import (
    Rows,
    acting,
    all_rows,
    jacobian,
    momentum,
    no_rows,
    node_rows,
    position_rows,
    slip_rows,
)
from nsjax.core.row_groups import GivenForces, RowGroups
from nsjax.core.system import System, add, row_groups
from nsjax.linalg import Local
from nsjax.math import direction, norm
from nsjax.types import Array, PyTree, record

# Data of the subproblems of the nonsmooth generalized-alpha family: the step, the smooth motion, the
# total state, and the forces there.


@record()
class Prediction:
    """Data of a step before its subproblems are solved.

    Args:
        params, dt: params of the model, and step size [s].
        t: end of the step.
        q: (nq,) position at its start.
        xi, v: (nv,) predicted increment of the position and velocity, without the unknown.
        c1, c2: ``dv/dt = c1 delta`` and position increment ``xi + c2 delta`` of the unknown ``delta``.
        scale: characteristic mass [kg].
        creep: (nc, nt) see `PositionLevel` [N s^2].
        restitution: (rows,) ``e G(q_n) v_n`` of contact and bilateral rows.
        friction: (nc,).
        given: normal impulses of bounded forces; None: there are none.
        held: (2, nc) impulses of contacts on position [N s^2] and velocity [N s] that the accelerations in
            memory contain, if contacts act on accelerations (`Smooth.contacts`).
    """

    params: PyTree
    dt: Array
    t: Array
    q: Array
    xi: Array
    v: Array
    c1: Array
    c2: Array
    scale: Array
    creep: Array
    restitution: Array
    friction: Array
    given: GivenForces | None = None
    held: Array | None = None


@record()
class Smooth:
    """The smooth motion at the end of the step: position, velocity, acceleration, and the whole force
    there, including that of the bilateral multipliers ``lam`` [N]. If contacts act on accelerations: their
    forces ``push`` (nc,) [N], and their impulses ``contacts`` (2, nc) on position and velocity that the
    smooth motion contains.
    """

    q: Array
    v: Array
    a: Array
    lam: Array
    force: Array
    push: Array | None = None
    contacts: Array | None = None


@record()
class Total:
    """A total state, its rows, contacts (nc,) that may push, masses (rows,) or () of multipliers [kg]."""

    q: Array
    rows: Rows
    active: Array
    masses: Array


def smooth_motion(system: System, s: Prediction, delta: Array) -> tuple[Array, Array, Array]:
    """Smooth position, velocity and acceleration for the unknown ``delta``, [C (44)]."""
    return system.retract(s.q, s.xi + s.c2 * delta), s.v + delta, s.c1 * delta


def bilateral_forces(system: System, s: Prediction, q: Array, x: Array, nc: int = 0) -> Array:
    """``G(q)' x`` (nv,) of the gaps (if ``nc``) and the constraints."""
    if not nc and not system.nb:
        return jnp.zeros(system.nv)
    rest = jnp.zeros(system.nv)
    # rows times numbers are the gradient of their sum: one reverse pass in place of a matrix
    work = lambda xi: jnp.sum(x * position_rows(system, s.t, (q, xi), s.params, nc))  # noqa: E731
    return jax.grad(work)(rest)


def whole_force(system: System, s: Prediction, q: Array, v: Array, lam: Array) -> Array:
    """``f(q, v) + G_b(q)' lam``."""
    return system.force(s.t, q, v, s.params) + bilateral_forces(system, s, q, lam)


def decided(on: Array) -> Array:
    """A decision, without derivative."""
    return lax.stop_gradient(on)


def smooth_state(system: System, s: Prediction, delta: Array, lam: Array) -> Smooth:
    """The `Smooth` motion for the other subproblems, with the bilateral multipliers ``lam`` (nb,) [N]."""
    q, v, a = smooth_motion(system, s, delta)
    return Smooth(q=q, v=v, a=a, lam=lam, force=whole_force(system, s, q, v, lam))


def rows_at(system: System, s: Prediction, q: Array) -> Rows:
    """All rows at a position at the end of the step."""
    if not system.nc and not system.nb:
        return no_rows(system)
    return all_rows(system, s.t, q, s.params)


def total_state(system: System, s: Prediction, q: Array, active: Array) -> Total:
    """`Total` at the corrected position, with the characteristic mass for all multipliers."""
    return Total(q=q, rows=rows_at(system, s, q), active=active, masses=s.scale)


# The subproblems of the nonsmooth generalized-alpha family: position correction and velocity jump, and
# what they have in common with the smooth motion (`nsjax.schemes.nsga.solve`).


@dataclasses.dataclass(frozen=True)
class Level:
    """A subproblem, whose unknowns are an increment ``w`` (nv,) and multipliers ``x`` (rows,).

    Args:
        system: the model.
        coupled: operators at the total state (the original scheme), else at the smooth one.
        exchange: keep the forces ``f^p`` and ``f^*`` of the corrections (decoupled scheme).
        answer: whether laws are those of the derivative of an answer: `AT_BOUND` then decides where
            rounding would.
    """

    system: System
    coupled: bool
    exchange: bool
    answer: bool = dataclasses.field(default=False, kw_only=True)

    @property
    def rows(self) -> int:
        """Number of constraint rows; the last `bilateral` ones always act."""
        raise NotImplementedError

    @property
    def bilateral(self) -> int:
        """Bilateral rows."""
        return self.system.nb

    @property
    def always(self) -> np.ndarray:
        """Rows (rows,) bool that are bilateral."""
        return np.arange(self.rows) >= self.rows - self.bilateral

    def inner(self, radius: Array) -> Array:
        """Radius within which friction sticks; in a derivative, friction near its bound slides."""
        return radius * (1.0 - AT_BOUND) if self.answer else radius

    def factors(self, d: Any) -> tuple[Array, Array]:
        """Factors ``k`` and ``p`` of the augmented multipliers: a mass, [C after (50)]."""
        return d[0].scale, d[0].scale

    def terms(self, d: Any, w: Array, pi: Array) -> tuple[Array, ...]:
        """Terms (nv,) whose sum is the residual of the dynamics."""
        raise NotImplementedError

    def values(self, d: Any, w: Array) -> Array:
        """Values ``y`` (rows,) that the laws require to vanish, or not to be negative."""
        raise NotImplementedError

    def law(self, d: Any, sigma: Array) -> Array:
        """The part of ``sigma`` (rows,) that acts by the law."""
        return sigma

    def slides(self, d: Any, sigma: Array) -> Array | None:
        """Directions (rows, 2) of sliding in space, in the row of the first tangent, else zero; or None."""
        return None

    def directions(self, d: Any, w: Array) -> tuple[Array, Array]:
        """``W`` (nv, rows) and ``dy/dw`` (rows, nv)."""
        raise NotImplementedError

    def node_directions(self, d: Any, w: Array) -> Local:
        """``W'`` of contacts at single nodes."""
        raise NotImplementedError

    def by_contact(self, x: Array) -> Array:
        """Rows of contacts (nc, m)."""
        return x.reshape(self.system.nc, -1)

    def in_rows(self, x: Array) -> Array:
        """Inverse of `by_contact`."""
        return x.reshape(-1)


@dataclasses.dataclass(frozen=True)
class PositionLevel(Level):
    """Correction ``q = q_smooth + u`` onto gaps and constraints; data ``(Prediction, Smooth)``.

    ``Prediction.creep`` is half the tangential impulse of the last step without an impact, times its
    length: without it a body that sticks on a slope creeps, because its smooth motion falls without
    friction for a step. It acts as friction does: at contacts that the position holds, up to ``mu nu``.

    Args:
        creep: whether this correction acts; its rows then are between those of gaps and constraints.
        share: part of the tangential impulse; one where the smooth motion does not fall at all.
    """

    creep: bool = False
    share: float = 0.5

    @property
    def tangents(self) -> int:
        """Number of rows of the tangential impulses."""
        return self.system.nc * self.system.nt if self.creep else 0

    @property
    def rows(self) -> int:
        """Number of rows: gaps, tangents, then constraints."""
        return self.system.nc + self.tangents + self.system.nb

    def total(self, d: Any, w: Array) -> Array:
        """The corrected position."""
        return self.system.retract(d[1].q, w)

    def terms(self, d: Any, w: Array, pi: Array) -> tuple[Array, ...]:
        """``M u - h^2 f^p - G' pi``."""
        s, smooth = d
        q = self.total(d, w)
        inertia = momentum(self.system, q if self.coupled else smooth.q, w, s.params)
        nc, count = self.system.nc, self.tangents
        push = -bilateral_forces(self.system, s, q, jnp.concatenate([pi[:nc], pi[nc + count :]]), nc)
        if count:
            push = push - self._creep(s, pi[nc : nc + count])
        if not self.exchange:
            return inertia, push
        change = whole_force(self.system, s, q, smooth.v, smooth.lam) - smooth.force
        return inertia, -s.dt * s.dt * change, push

    def _creep(self, s: Prediction, tangential: Array) -> Array:
        """Tangential forces ``G_T' x`` (nv,) with the directions at the start of the step."""
        x = tangential.reshape(self.system.nc, self.system.nt)
        work = lambda v: jnp.sum(x * self.system.slip(s.t - s.dt, s.q, v, s.params))  # noqa: E731
        return jax.grad(work)(jnp.zeros(self.system.nv))

    def _with_tangents(self, x: Array, tangents: Array) -> Array:
        """Rows ``x`` of gaps and constraints, with the rows ``tangents`` between them."""
        nc = self.system.nc
        return jnp.concatenate([x[:nc], tangents, x[nc:]]) if self.tangents else x

    def values(self, d: Any, w: Array) -> Array:
        """``g``; the tangents obey no law of their own."""
        if not self.rows:
            return jnp.zeros(0)
        s = d[0]
        g = position_rows(self.system, s.t, (d[1].q, w), s.params, self.system.nc)
        return self._with_tangents(g, jnp.zeros(self.tangents))

    def on(self, d: Any, sigma: Array) -> Array:
        """Contacts (nc,) bool that the multipliers hold."""
        s, smooth = d
        whole = sigma[: self.system.nc]
        if smooth.contacts is not None:
            whole = whole + smooth.contacts[0]
        return acting(self.system, s.t - s.dt, s.q, s.params, decided(whole >= 0.0))

    def law(self, d: Any, sigma: Array) -> Array:
        """Acting part of ``sigma``: gaps only push, the creep correction is bounded by friction."""
        nc, (s, smooth) = self.system.nc, d
        none = 0.0 if smooth.contacts is None else -smooth.contacts[0]
        normal = jnp.where(self.on(d, sigma), sigma[:nc], none)
        push = normal
        if s.given is not None:
            forces = row_groups(self.system).given
            push = jnp.where(forces, self.share * s.dt * s.given.normal, normal)
            normal = jnp.where(forces, 0.0, normal)
        parts = [normal]
        if self.tangents:
            radius = s.friction * push
            inside = decided(norm(s.creep) <= self.inner(radius))
            bounded = jnp.where(inside[:, None], s.creep, radius[:, None] * direction(s.creep))
            parts.append(bounded.reshape(-1))
        return jnp.concatenate([*parts, sigma[nc + self.tangents :]])

    def directions(self, d: Any, w: Array) -> tuple[Array, Array]:
        """``G'`` and the tangent of `values`."""
        s, q, n = d[0], self.total(d, w), self.system.nv
        if not self.rows:
            return jnp.zeros((n, 0)), jnp.zeros((0, n))
        rest = jnp.zeros(n)
        f = lambda xi: position_rows(self.system, s.t, (q, xi), s.params, self.system.nc)  # noqa: E731
        count = self.rows - self.tangents
        wt = y = jacobian(f, rest, count)
        if self.system.retract is not add or self.system.nh:
            nc = self.system.nc
            y = jacobian(lambda w: position_rows(self.system, s.t, (d[1].q, w), s.params, nc), w, count)
        slip = jnp.zeros((0, n))
        if self.tangents:
            slip = slip_rows(self.system, s.t - s.dt, s.q, s.params).jacobian().reshape(-1, n)
        return self._with_tangents(wt, slip).T, self._with_tangents(y, jnp.zeros_like(slip))

    def node_directions(self, d: Any, w: Array) -> Local:
        """``G'`` and, for the creep correction, the tangents where the step starts."""
        s, nc, system = d[0], self.system.nc, self.system
        q = self.total(d, w)
        normal = node_rows(system, lambda xi: system.gap(s.t, q + xi, s.params), jnp.zeros_like(w), 1)
        if not self.tangents:
            return normal
        slip = lambda v: system.slip(s.t - s.dt, s.q, v, s.params).reshape(-1)  # noqa: E731
        tangent = node_rows(system, slip, jnp.zeros_like(w), self.tangents // nc)
        return dataclasses.replace(normal, values=jnp.concatenate([normal.values, tangent.values], axis=1))

    def by_contact(self, x: Array) -> Array:
        """Gaps and tangents of a contact together."""
        nc = self.system.nc
        return jnp.concatenate([x[:nc, None], x[nc:].reshape(nc, -1)], axis=1)

    def in_rows(self, x: Array) -> Array:
        """Inverse of `by_contact`."""
        return jnp.concatenate([x[:, 0], x[:, 1:].reshape(-1)])


@dataclasses.dataclass(frozen=True)
class VelocityLevel(Level):
    """Jump ``v = v_smooth + w`` with the laws of impact and friction; data ``(Prediction, Smooth, Total)``.
    With friction ``k_v = p_v`` are effective masses of the rows: with one mass for all, corrections cycle.
    """

    def factors(self, d: Any) -> tuple[Array, Array]:
        """``k_v = p_v``: a mass, or one per row."""
        return d[2].masses, d[2].masses

    @property
    def groups(self) -> RowGroups:
        """Rows of contacts and constraints by their laws."""
        return row_groups(self.system)

    @property
    def rows(self) -> int:
        """Number of rows: contacts, then constraints."""
        return self.groups.count

    def terms(self, d: Any, w: Array, pi: Array) -> tuple[Array, ...]:
        """``M w - h f^* - G' pi``."""
        s, smooth, at = d
        system, p = self.system, s.params
        inertia, push = momentum(system, at.q, w, p), -at.rows.force(pi)
        if not self.exchange:
            return inertia, push
        change = whole_force(system, s, at.q, smooth.v + w, smooth.lam) - smooth.force
        inert = momentum(system, at.q, smooth.a, p) - momentum(system, smooth.q, smooth.a, p)
        return inertia, -s.dt * (change - inert), push

    def values(self, d: Any, w: Array) -> Array:
        """``G v + e G(q_n) v_n``."""
        s, smooth, at = d
        return at.rows.rate(smooth.v + w) + s.restitution

    def on(self, d: Any, sigma: Array) -> Array:
        """Contacts (nc,) bool, closed on position level, with an impulse or a smooth force."""
        whole = self.groups.normals(sigma)
        if d[1].contacts is not None:
            whole = whole + d[1].contacts[1]
        return d[2].active & decided(whole >= 0.0)

    def law(self, d: Any, sigma: Array) -> Array:
        """Acting part of ``sigma``: held normals only push; tangents stay in the friction disk."""
        block = self.by_contact(sigma)
        normal, on = self._normals(d, sigma)
        parts = [normal[:, None]]
        if self.system.nt:
            stick, radius = self._sticks(d, block, normal)
            slip = radius[:, None] * self._sliding(d, block)
            tangents = jnp.where(stick[:, None], block[:, 1:], slip)
            parts.append(jnp.where(on[:, None], tangents, 0.0))
        return self.groups.stack(jnp.concatenate(parts, axis=1), self.groups.bilateral(sigma))

    def by_contact(self, x: Array) -> Array:
        """Rows of contacts (nc, 1 + nt)."""
        return self.groups.contacts(x)

    def _normals(self, d: Any, sigma: Array) -> tuple[Array, Array]:
        """Normal impulses (nc,), and contacts (nc,) bool that take one."""
        s, smooth, _ = d
        on, block = self.on(d, sigma), self.by_contact(sigma)
        normal = jnp.where(on, block[:, 0], 0.0 if smooth.contacts is None else -smooth.contacts[1])
        if s.given is not None:
            forces = self.groups.given
            normal, on = jnp.where(forces, s.given.normal, normal), on | forces
        return normal, on

    def _sticks(self, d: Any, block: Array, normal: Array) -> tuple[Array, Array]:
        """Contacts (nc,) bool that stick, and the radii (nc,) of their friction disks."""
        radius = d[0].friction * normal
        stick = decided(norm(block[:, 1:]) <= self.inner(radius))
        if d[0].given is not None:
            stick = stick & (radius > 0.0)  # tangents of contacts without friction may be empty
        return stick, radius

    def slides(self, d: Any, sigma: Array) -> Array | None:
        """Directions (rows, 2) of sliding of contacts that take an impulse and do not stick, else zero."""
        if self.system.nt < 2:
            return None
        block = self.by_contact(sigma)
        normal, on = self._normals(d, sigma)
        stick, _ = self._sticks(d, block, normal)
        way = jnp.where((on & ~stick)[:, None], self._sliding(d, block), 0.0)
        first = jnp.pad(way[:, None], [(0, 0), (1, 1), (0, 0)])
        return self.groups.stack(first, jnp.zeros((self.groups.nb, 2)))

    def _sliding(self, d: Any, block: Array) -> Array:
        """Directions (nc, nt) of sliding. Friction with a bound of zero has no direction where nothing
        moves: rounding would decide the sign of its derivative with respect to the bound.
        """
        way = direction(block[:, 1:])
        if d[0].given is None:
            return way
        masses = self.by_contact(d[2].masses)[:, 1]
        # velocity up to which a bounded row does not move, relative to ``1 + |v|``: above the rounding of
        # the sums of which the velocity is made
        moves = norm(block[:, 1:]) > 1e-13 * masses * (1.0 + jnp.max(jnp.abs(d[1].v)))
        return jnp.where(decided(moves)[:, None], way, 0.0)

    def directions(self, d: Any, w: Array) -> tuple[Array, Array]:
        """``G'`` and ``G``."""
        rows = d[2].rows
        return rows.directions(), rows.jacobian()

    def node_directions(self, d: Any, w: Array) -> Local:
        """``G``."""
        return d[2].rows.jacobian()
