"""Stages of a base scheme: affine maps of velocity increments, and their momentum balance."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from nsjax.contact.projection import Directions, chosen
from nsjax.core.operators import gap_drift, gap_rows, momentum, row_forces, row_rates
from nsjax.core.row_groups import GivenForces, RowGroups
from nsjax.core.step import SystemState, inertia_at
from nsjax.core.system import State, System, joined, row_groups, slip_of
from nsjax.linalg import Structure, matvec, solve
from nsjax.schemes.common import kinetic_metric
from nsjax.types import Array, record


@record()
class Maps:
    """Simultaneous stages as affine maps of the velocity increments ``z`` (stages, nv)::

        q_k = retract(anchor, xi_k + sum_l cq_kl z_l),  v_k = v_k + z_k,  a_k = a_k + sum_l ca_kl z_l

    Args:
        anchor: (nq,) position from which all stages move.
        xi, v, a: (stages, nv) predicted increments, velocities and accelerations.
        cq, ca: (stages, stages).
        t: (stages,) times.
        dt: scale that turns forces into impulses [s].
        friction: (nc,) coefficients of the step, where its contacts may act; filled in by the framework.
    """

    anchor: Array
    xi: Array
    v: Array
    a: Array
    cq: Array
    ca: Array
    t: Array
    dt: Array
    friction: Array | None = None

    def at(self, system: System, z: Array) -> list[tuple[Array, Array, Array, Array]]:
        """``(t, q, v, a)`` of every stage at the increments ``z`` (stages * nv,), which may be followed
        by corrections ``x`` of the positions (stages * nv,): then ``q_k`` moves by ``dt x_k`` more.
        """
        n, nv = self.v.shape
        corrections = z[n * nv :].reshape(-1, nv)
        z = z[: n * nv].reshape(n, nv)
        out = []
        for k in range(n):
            xi = self.xi[k] + jnp.sum(self.cq[k][:, None] * z, axis=0)
            if corrections.shape[0]:
                xi = xi + self.dt * corrections[k]
            a = self.a[k] + jnp.sum(self.ca[k][:, None] * z, axis=0)
            out.append((self.t[k], system.retract(self.anchor, xi), self.v[k] + z[k], a))
        return out

    def still(self, unknowns: int) -> Array:
        """Increments (unknowns,) that put all stages at the anchor. Newton's method starts there if it
        fails from the predicted increments: the strains of stiff bodies at the anchor belong to a solution.
        """
        n, nv = self.v.shape
        moves = jnp.sum(jnp.abs(self.cq)) > 0.0  # positions of explicit stages are the predicted ones
        # the last row first: its pivot does not vanish, see `ed_alpha`
        z = jnp.where(moves, -solve(jnp.where(moves, self.cq, jnp.eye(n))[::-1], self.xi[::-1]), 0.0)
        return lax.stop_gradient(jnp.concatenate([z.reshape(-1), jnp.zeros(unknowns - n * nv)]))


def single(anchor: Array, xi: Array, v: Array, a: Array, cq: Array, ca: Array, t: Array, dt: Array) -> Maps:
    """`Maps` of one stage: ``q = retract(anchor, xi + cq z)``, ``v + z``, ``a + ca z`` at the velocity
    increment ``z`` (nv,).

    Args:
        anchor: (nq,) position from which the stage moves.
        xi, v, a: (nv,) predicted increment, velocity and acceleration.
        cq, ca: numbers [s], [1/s].
        t: its time [s].
        dt: scale that turns forces into impulses [s].

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.schemes.building import single
        >>> one, rest = jnp.ones(1), jnp.zeros(1)
        >>> dt, t = jnp.asarray(0.1), jnp.asarray(0.0)
        >>> single(one, rest, rest, rest, cq=dt, ca=1 / dt, t=t, dt=dt).v.shape
        (1, 1)
    """
    one = jnp.ones((1, 1))
    return Maps(
        anchor=anchor, xi=xi[None], v=v[None], a=a[None], cq=cq * one, ca=ca * one, t=t[None], dt=dt
    )


@dataclasses.dataclass(frozen=True)
class StageEquations:
    """Momentum balance ``dt (M a - h) - W P = 0`` in all stages, for the stage solver.

    Bilateral rows of a stage by ``form``: ``"index_2"`` ``dg/dt``, ``"index_3"`` ``g / dt``,
    ``"index_1"`` ``dt d2g/dt2``, ``"ggl"`` the first two with corrections ``x = D Psi / dt`` of the
    positions as further unknowns. Source: [S&U&S section 2.2] for the levels.
    """

    system: System
    stages: int
    contacts: bool
    form: str = "index_2"
    tangent: str = "full"

    @property
    def unknowns(self) -> int:
        """Number of increments and corrections of the positions."""
        return self.stages * self.system.nv * (1 + self.corrects)

    @property
    def corrects(self) -> bool:
        """Whether positions are corrected."""
        return self.form == "ggl" and self.system.nb > 0

    @property
    def structure(self) -> Structure:
        """Structure of the tangent: increments and corrections of all stages, coupled as in the model."""
        return self.system.structure.stacked(self.unknowns // self.system.nv)

    @property
    def own(self) -> RowGroups:
        """Rows of one stage: contacts, if they take part, constraints, and position rows."""
        one = row_groups(self.system, self.contacts)
        return one.with_constraints(one.nb * (1 + self.corrects))

    @property
    def rows(self) -> RowGroups:
        """Rows of all stages, group by group."""
        return self.own.repeated(self.stages)

    @property
    def islands(self) -> int:
        """Number of islands of the model if stages are solved one by one, else 0."""
        return self.system.islands if self.stages == 1 else 0

    @property
    def _forces_end(self) -> int:
        """Number of rows of a stage that act as forces."""
        return self.own.ends[2] + self.system.nb

    def split(self, impulses: Array) -> list[Array]:
        """Impulses of every stage: contacts, then constraints."""
        return [x[: self._forces_end] for x in self.own.by_copy(impulses, self.stages)]

    def _correction(self, t: Array, q: Array, psi: Array, params: Any) -> Array:
        """Position correction ``D Psi``: ``W Psi``, or ``M^-1 W Psi`` where rotations mix units."""
        push = row_forces(self.system, t, q, psi, params, contacts=False)
        kinetic = kinetic_metric("auto", self.system, params)
        return chosen(
            kinetic, lambda: inertia_at(self.system, t, q, params).solve(push[:, None])[:, 0], push
        )

    def residual(self, data: Any, z: Array) -> Array:
        """Momentum balance and corrections, without row forces."""
        params, maps = data
        parts = []
        for t, q, v, a in maps.at(self.system, z):
            inertia = momentum(self.system, q, a, params)
            parts.append(maps.dt * (inertia - self.system.force(t, q, v, params)))
        return jnp.concatenate([*parts, z[self.stages * self.system.nv :]])

    def frozen(self, data: Any, z: Array) -> tuple[Callable[[Array], Array], bool]:
        """Linear map of increments to ``dt M a``, corrections to themselves; are rates velocities."""
        params, maps = data
        at = [q for _, q, _, _ in maps.at(self.system, z)]
        n, nv = maps.v.shape

        def along(w: Array) -> Array:
            a = jnp.sum(maps.ca[:, :, None] * w[: n * nv].reshape(1, n, nv), axis=1)
            parts = [maps.dt * momentum(self.system, q, a[k], params) for k, q in enumerate(at)]
            return jnp.concatenate([*parts, w[n * nv :]])

        return along, self.form == "index_2" or not self.system.nb

    def forces(self, data: Any, z: Array, impulses: Array) -> Array:
        """``W P`` of every stage, and ``D Psi / dt``."""
        params, maps = data
        parts, corrections = [], []
        for (t, q, _, _), x in zip(
            maps.at(self.system, z), self.own.by_copy(impulses, self.stages), strict=True
        ):
            parts.append(row_forces(self.system, t, q, x[: self._forces_end], params, self.contacts))
            if self.corrects:
                corrections.append(self._correction(t, q, x[self._forces_end :], params))
        return jnp.concatenate(parts + corrections)

    def _rates(self, params: Any, dt: Array, at: tuple[Array, ...], x: Any) -> Array:
        """Rows of a stage ``at = (t, q, v, a)`` that vanish; ``x`` is the correction of its position."""
        system, (t, q, v, a) = self.system, at
        if self.form == "index_2" or not system.nb:
            return row_rates(system, t, q, v, params, self.contacts)
        position = [] if system.constraint is None else [system.constraint(t, q, params) / dt]
        if self.corrects:
            if system.nh:
                position.append(slip_of(system, t, q, x, params))
            return jnp.concatenate([row_rates(system, t, q, v, params, self.contacts), *position])
        contacts = jnp.zeros(0)
        if self.contacts:
            contacts = row_rates(system, t, q, v, params)[: self.own.ends[2]]
        if self.form == "index_3":
            if system.nh:  # constraints on velocities alone have no position level
                position.append(system.velocity_constraint(t, q, v, params))  # type: ignore[misc]
            return jnp.concatenate([contacts, *position])
        normal = gap_rows(system, "constraint", t, q, params).jacobian()
        second = matvec(normal, a) + gap_drift(system, t, q, v, params, "constraint")
        return jnp.concatenate([contacts, dt * second])

    def rates(self, data: Any, z: Array) -> Array:
        """Rows of every stage that vanish, or to which the contact laws refer, all as velocities."""
        params, maps = data
        own: Any = [None] * self.stages
        if self.corrects and self.system.nh:
            own = z[self.stages * self.system.nv :].reshape(-1, self.system.nv)
        stages = zip(maps.at(self.system, z), own, strict=True)
        return self.own.by_group([self._rates(params, maps.dt, at, x) for at, x in stages])

    def directions(self, data: Any, z: Array) -> Any:
        """``W`` and ``D`` (unknowns, rows), block by block."""
        params, maps = data
        n, blocks = self.stages, []
        system = self.system if self.islands else joined(self.system)
        for k, (t, q, v, _) in enumerate(maps.at(system, z)):
            at = SystemState(system=system, params=params, state=State(t=t, q=q, v=v))
            rows = at.rows(self.contacts)
            if self.islands:
                return rows.directions()
            parts = [(k, rows.jacobian())]
            if self.corrects:
                kinetic = kinetic_metric("auto", self.system, params)
                along = Directions(
                    at=dataclasses.replace(at, system=self.system), contacts=False, kinetic=kinetic
                )
                parts.append((n + k, along.matrix().T))
            # rows stand over the velocities of their stage, and again over its increment of position, where
            # that is corrected
            total = self.unknowns // self.system.nv
            each = [
                jnp.concatenate([b if j == at else jnp.zeros_like(b) for j in range(total)], axis=1)
                for at, b in parts
            ]
            blocks.append(jnp.concatenate(each) if len(each) > 1 else each[0])
        return self.own.by_group(blocks).T

    def friction(self, data: Any) -> Array:
        """Coefficients of all contacts of all stages."""
        if not self.own.nc:
            return jnp.zeros(0)
        return self.own.contacts_by_group([data[1].friction] * self.stages)

    def given(self, data: Any) -> GivenForces | None:
        """Numbers of the bounded forces of all stages, if there are any."""
        params, maps = data
        one = self.system.law(params).given(maps.dt) if self.own.nc else None
        if one is None:
            return None
        normal = self.own.contacts_by_group([one.normal] * self.stages)
        return dataclasses.replace(one, normal=normal)
