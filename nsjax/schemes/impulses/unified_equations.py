"""The nonlinear equations of a step of `nsjax.schemes.ggl_unified`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact import GivenNormals
from nsjax.contact.projection import Directions, position_rows
from nsjax.contact.row_choice import smooth_contacts
from nsjax.core.inertia import Inertia
from nsjax.core.operators import row_forces, row_rates
from nsjax.core.step import SystemState
from nsjax.core.system import State, System
from nsjax.core.velocity_rows import slip_of
from nsjax.linalg import Structure
from nsjax.types import Array, PyTree, record


@record()
class UnifiedData:
    """Data of the equations that derivatives may move; ``mass`` is that of the predicted midpoint."""

    params: PyTree
    state: State
    mass: Inertia
    dt: Array


@dataclasses.dataclass(frozen=True)
class UnifiedEquations:
    """Implicit midpoint rule with velocity and position rows. The unknowns are ``z = (w, x)``::

        w = v_{i+1} - v_i,   q_{i+1} = q_i + dt (v_bar + x),   x = D(q_bar) Psi / dt

    The rows are, in this order: velocity laws of all contacts, position laws of all contacts (with tangents
    that are zero), velocity rows of the constraints, position rows of the constraints. Without position
    rows the unknown is ``w`` alone.

    Args:
        system: system of the problem.
        contacts: whether contacts may act in the step.
        position: whether there are position rows.
        linearised: whether the position law has the linearised gap, see `nsjax.schemes.ggl_unified`.
        metric: ``"euclidean"``, ``"kinetic"`` or ``"implicit"``, see `nsjax.schemes.ggl_unified`.
        tangent: tangent of the iteration, see `nsjax.schemes.mixed.framework.mixed_scheme`.
        explicit: whether forces are those of the predicted midpoint at the velocity of the start.
    """

    system: System
    contacts: bool
    position: bool
    linearised: bool
    metric: str
    tangent: str = "full"
    explicit: bool = False

    @property
    def kinetic(self) -> bool:
        """Whether positions are corrected along ``M^-1 W``."""
        return self.metric == "kinetic"

    @property
    def structure(self) -> Structure:
        """Structure of the tangent matrix: one block for ``w``, and one for ``x`` with position rows."""
        return self.system.structure.stacked(1 + self.position)

    @property
    def nt(self) -> int:
        """Number of tangents per contact."""
        return self.system.nt

    @property
    def nc(self) -> int:
        """Number of contact laws: one per contact, two with position rows; 0 if no contact may act."""
        return (1 + self.position) * self.system.nc if self.contacts else 0

    @property
    def nb(self) -> int:
        """Number of bilateral rows, twice those of the system with position rows."""
        return (1 + self.position) * self.system.nb

    def frozen(self, d: Any, z: Array) -> tuple[Callable[[Array], Array], bool]:
        """``z -> (M w, x)``, and whether rates are ``W' z`` plus a constant: only without position rows."""
        n = self.system.nv
        heavy = lambda z: jnp.concatenate([d.mass.times(z[:n]), self.shifted(d, z[n:])])  # noqa: E731
        return heavy, not self.position

    def motion(self, d: Any, z: Array) -> tuple[Array, Array, Array]:
        """Increment of the position (nv,), position at the midpoint (nq,), velocity increment (nv,)."""
        n = self.system.nv
        xi = d.dt * (d.state.v + 0.5 * z[:n])
        if self.position:
            xi = xi + d.dt * z[n:]
        return xi, self.system.retract(d.state.q, 0.5 * xi), z[:n]

    def middle(self, d: Any) -> Array:
        """Time of the midpoint [s]."""
        return d.state.t + 0.5 * d.dt

    def residual(self, d: Any, z: Array) -> Array:
        """Momentum balance, and ``x`` (or ``S x``), both without row forces."""
        _, middle, w = self.motion(d, z)
        v = d.state.v + 0.5 * w
        if self.explicit:
            middle, v = self.system.retract(d.state.q, 0.5 * d.dt * d.state.v), d.state.v
        force = self.system.force(self.middle(d), middle, v, d.params)
        balance = d.mass.times(w) - d.dt * force
        return jnp.concatenate([balance, self.shifted(d, z[self.system.nv :])])

    def shifted(self, d: Any, x: Array) -> Array:
        """``x``; in the implicit metric ``S x``: the change of the momentum balance at the predicted
        midpoint by a velocity increment ``x``.
        """
        if self.metric != "implicit" or not x.shape[0]:
            return x
        t, q, v, half = self.middle(d), d.state.q, d.state.v, 0.5 * d.dt

        def force(w: Array) -> Array:
            middle = self.system.retract(q, half * (v + 0.5 * w))
            pushed: Array = self.system.force(t, middle, v + 0.5 * w, d.params)
            return pushed

        return d.mass.times(x) - d.dt * jax.jvp(force, (jnp.zeros_like(x),), (x,))[1]

    def split(self, x: Array) -> tuple[Array, Array]:
        """Splits rows into velocity rows and position rows, contacts first in each. The position rows have
        no tangents.
        """
        nc, nb, d = (self.system.nc if self.contacts else 0), self.system.nb, 1 + self.nt
        if not self.position:
            return x, x[:0]
        velocity = [x[: nc * d], x[2 * nc * d : 2 * nc * d + nb]]
        return jnp.concatenate(velocity), jnp.concatenate(
            [x[nc * d : 2 * nc * d : d], x[2 * nc * d + nb :]]
        )

    def join(self, velocity: Array, position: Array) -> Array:
        """Inverse of `split` along the first axis; tangents of position rows are zero."""
        if not self.position:
            return velocity
        count = self.system.nc * (1 + self.nt) if self.contacts else 0
        position = self._padded(position)
        parts = [velocity[:count], position[:count], velocity[count:], position[count:]]
        return jnp.concatenate(parts)

    def followed(self, active: Array, impulses: Array) -> Array:
        """Contacts whose laws a derivative follows: position laws only of contacts that carry an impulse.

        A contact that has let go may be pushed back below its surface by the position correction of another
        one. What takes it out again moves positions by as little as their error, of first order, but would
        annul the whole derivative of the gap.
        """
        nc = self.system.nc if self.contacts else 0
        if not self.position or not nc:
            return active
        loaded = impulses[: nc * (1 + self.nt) : 1 + self.nt] > 0.0
        return jnp.concatenate([active[:nc], active[nc:] & loaded])

    def _padded(self, position: Array) -> Array:
        """Position rows with tangents added, which are zero."""
        nc, shape = (self.system.nc if self.contacts else 0), position.shape[1:]
        empty = jnp.zeros((nc, self.nt, *shape))
        normal = jnp.concatenate([position[:nc, None], empty], axis=1).reshape(nc * (1 + self.nt), *shape)
        return jnp.concatenate([normal, position[nc:]])

    def forces(self, d: Any, z: Array, impulses: Array) -> Array:
        """``(W Lambda, D Psi / dt)`` at the midpoint; in the implicit metric ``(W Lambda, W Psi / dt)``."""
        _, q, _ = self.motion(d, z)
        velocity, position = self.split(impulses)
        push = row_forces(self.system, self.middle(d), q, velocity, d.params, self.contacts)
        if not self.position:
            return push
        x = row_forces(self.system, self.middle(d), q, self._padded(position), d.params, self.contacts)
        return jnp.concatenate([push, d.mass.solve(x[:, None])[:, 0] if self.kinetic else x])

    def directions(self, d: Any, z: Array) -> Array:
        """Directions of the row forces: the block diagonal matrix ``(W, D)`` (unknowns, rows)."""
        _, q, _ = self.motion(d, z)
        at = SystemState(
            system=self.system, params=d.params, state=State(t=self.middle(d), q=q, v=d.state.v)
        )
        rows = at.rows(self.contacts)
        if not self.position:
            return rows.directions()
        wt, along = rows.jacobian(), Directions(at=at, contacts=self.contacts, kinetic=self.kinetic)
        dt = along.matrix().T
        upper = self.join(wt, jnp.zeros_like(dt))
        lower = self.join(jnp.zeros_like(wt), dt)
        return jnp.concatenate([upper, lower], axis=1).T

    def rates(self, d: Any, z: Array) -> Array:
        """Velocity rows: ``u^+ + e u^-`` at the midpoint. Position rows: gaps at the end divided by ``dt``.
        Both in [m/s].
        """
        xi, q, w = self.motion(d, z)
        system, t, v = self.system, self.middle(d), d.state.v
        nc = system.nc if self.contacts else 0

        def rate(v: Array) -> Array:
            return row_rates(system, t, q, v, d.params, self.contacts)

        velocity = rate(v + w)
        if nc:
            e = system.law(d.params).row_restitution(nc, self.nt)
            velocity = velocity + jnp.concatenate([e, jnp.zeros(system.nb)]) * rate(v)
        if not self.position:
            return velocity
        if self.linearised:
            start = position_rows(system, d.state.t, (d.state.q, None), d.params, nc) / d.dt
            along = rate(xi / d.dt)
            count = nc * (1 + self.nt)
            position = start + jnp.concatenate([along[: count : 1 + self.nt], along[count:]])
        else:
            position = position_rows(system, d.state.t + d.dt, (d.state.q, xi), d.params, nc) / d.dt
        if system.nh:
            own = slip_of(system, t, q, z[system.nv :], d.params)
            position = jnp.concatenate([position[: -system.nh], own])
        return self.join(velocity, position)

    def friction(self, d: Any) -> Array:
        """Coefficients of friction of all contact laws; zero for position laws."""
        nc = self.system.nc if self.contacts else 0
        if not nc:
            return jnp.zeros(0)
        mu = self.system.law(d.params).friction_of(nc)
        return jnp.concatenate([mu, jnp.zeros(nc)]) if self.position else mu

    def given(self, d: Any) -> GivenNormals | None:
        """Normal impulses that the contact law prescribes; None if none. Position laws have none."""
        nc = self.system.nc if self.contacts else 0
        one = self.system.law(d.params).given(nc, d.dt) if nc else None
        if one is None or not self.position:
            return one
        normal = jnp.concatenate([one.normal, jnp.zeros(nc)])
        leads = one.leads + (-1,) * nc if one.leads else ()
        return dataclasses.replace(
            one, on=np.concatenate([one.on, np.zeros(nc, bool)]), normal=normal, leads=leads
        )

    def smooth(self, d: Any) -> np.ndarray:
        """Laws (bool) without friction: those of contacts without friction, and all position laws."""
        if not self.contacts or not self.system.nc:
            return np.zeros(0, bool)
        own = smooth_contacts(self.system, self.system.law(d.params).loads)
        return np.concatenate([own, np.ones(self.system.nc, bool)]) if self.position else own
