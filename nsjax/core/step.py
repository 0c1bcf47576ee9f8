"""One step of a scheme as one value, and a system at one state: arguments of the helpers of schemes.

A `Step` holds the system, the scheme, the start and the step size. A `SystemState` is a mechanism at one
state; `Balance` and `Formed` hold what a step has computed there once, for all functions that need it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp

from nsjax.core.errors import InputError
from nsjax.core.inertia import ConstantInertia, Inertia, inertia_at
from nsjax.core.operators import Rows, all_rows, own_rows, refreshed, row_drift, row_rates, rows_with_drift
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System, is_local
from nsjax.core.user_functions import call
from nsjax.linalg import matvec
from nsjax.types import Array, PyTree, record


@record(static=("system",))
class SystemState:
    """A system at one state, with its mass, force, gaps and rows there.

    Args:
        system: its functions.
        params: prepared and refreshed.
        state: time, position, velocity.
        added: inertia (nv,) or (nv, nv) that a step adds to ``M(q)``, ``dt D`` of damping that it takes
            implicitly; None: none.
    """

    system: System
    params: PyTree
    state: State
    added: Array | None = None

    @property
    def t(self) -> Array:
        """Time [s]."""
        return jnp.asarray(self.state.t)

    @property
    def q(self) -> Array:
        """Position (nq,)."""
        return self.state.q

    @property
    def v(self) -> Array:
        """Velocity (nv,)."""
        return self.state.v

    def moved(self, **changes: Any) -> SystemState:
        """The same system with another ``t``, ``q`` or ``v``."""
        return dataclasses.replace(self, state=dataclasses.replace(self.state, **changes))

    def gap(self) -> Array:
        """Gaps (nc,) [m]; (0,) for a system without contacts."""
        if self.system.gap is None:
            return jnp.zeros(0)
        found: Array = self.system.gap(self.t, self.q, self.params)
        return found

    def slip(self) -> Array:
        """Tangential velocities (nc, nt) [m/s]."""
        found: Array = self.system.slip(self.t, self.q, self.v, self.params)
        return found

    def force(self) -> Array:
        """``h(t, q, v)`` (nv,)."""
        found: Array = self.system.force(self.t, self.q, self.v, self.params)
        return found

    def friction(self) -> Array:
        """Coefficients (nc,) of a system with contacts."""
        found: Array = self.system.law(self.params).friction_of(self.system.nc)
        return found

    def inertia(self, kept: ConstantInertia | None = None) -> Inertia:
        """``M(q)``, and what is added to it; ``kept`` where it is constant over a run."""
        found = inertia_at(self.system, self.t, self.q, self.params, kept)
        return found if self.added is None else found.heavier(self.added)

    def damping(self) -> Array:
        """``D`` (nv,) or (nv, nv), see `System.damping`."""
        function: Any = self.system.damping
        found = call("damping", function, self.t, self.q, self.v, self.params)
        shape, n = jnp.shape(found), self.system.nv
        if shape not in ((n,), (n, n)):
            raise InputError(f"damping returns shape {shape}; the system needs ({n},) or ({n}, {n})")
        return jnp.asarray(found, float)

    def rows(self, contacts: bool = True) -> Rows:
        """Rows of contacts, unless left out, and constraints."""
        return all_rows(self.system, self.t, self.q, self.params, contacts)

    def rows_with_drift(self) -> tuple[Rows, Array]:
        """All rows, and `drift`."""
        return rows_with_drift(self.system, self.t, self.q, self.v, self.params)

    def rates(self) -> Array:
        """Velocities (rows,) of contacts and constraints, without forming their rows."""
        return row_rates(self.system, self.t, self.q, self.v, self.params)

    def drift(self) -> Array:
        """Accelerations (rows,) of contacts and constraints at constant velocity."""
        return row_drift(self.system, self.t, self.q, self.v, self.params)


@record(static=("system",))
class Step:
    """One step of a scheme: the arguments of `Scheme.step` as one value.

    Args:
        scheme: the scheme that takes it.
        system: the system, as the scheme sees it.
        params: prepared, and refreshed for this step.
        constants: result of `Scheme.prepare`.
        carry: state at its start, and memory of the scheme.
        dt: step size [s].
        added: inertia that the step adds, see `SystemState`.
    """

    scheme: Scheme
    system: System
    params: PyTree
    constants: PyTree
    carry: Carry
    dt: Array
    added: Array | None = None

    @property
    def state(self) -> State:
        """State at the start of the step."""
        return self.carry.state

    @property
    def start(self) -> SystemState:
        """The system at the start of the step."""
        return self.at(self.carry.state)

    def at(self, state: State) -> SystemState:
        """The system at another state, with the parameters of this step."""
        return SystemState(system=self.system, params=self.params, state=state, added=self.added)

    def starting(self, state: State) -> Step:
        """The same step from another state; params that a step holds fixed stay."""
        return dataclasses.replace(self, carry=dataclasses.replace(self.carry, state=state))

    def shifted(self, state: State) -> Step:
        """The same step from a state that a derivative shifts: params that a step holds fixed move, too."""
        params = refreshed(self.system, state.t, state.q, self.params)
        return dataclasses.replace(self.starting(state), params=params)

    def take(self) -> tuple[Carry, Output]:
        """Carry and output after the step, taken by its scheme."""
        scheme = self.scheme
        return scheme.step(scheme, self.system, self.params, self.constants, self.carry, self.dt)


@record()
class Balance:
    """Mass and force of a step at the state at which its contacts are looked at.

    Args:
        at: the system there, with the velocity before an impact.
        inertia: inertia there.
        push: (nv,) force of the step, without contact and constraint forces.
        free: (nv,) acceleration by the force at the velocity of ``at``.
        drift: (nv,) velocity change by ``push``.
    """

    at: SystemState
    inertia: Inertia
    push: Array
    free: Array
    drift: Array

    def formed(self, every: bool = False) -> Formed:
        """Rows and responses there. Unless ``every`` row is wanted, or responses are known already,
        contacts have only the rows that they need.
        """
        at, inertia = self.at, self.inertia
        if inertia.response is None and not every:
            law = at.system.law(at.params) if at.system.nc else None
            loads = (law.loads, law.load_tangents) if law else (0, 1)
            rows = own_rows(at.system, at.t, at.q, at.params, loads)
        else:
            rows = at.rows()
        _, response = inertia.answers(jnp.zeros_like(self.push), rows)
        return Formed(at=at, rows=rows, response=response, free=self.free, inertia=inertia)


@record()
class Formed:
    """Quantities that a step forms once at the state at which its contacts are looked at.

    Args:
        at: the system there, with the velocity before an impact.
        inertia: inertia there.
        rows: of contacts and constraints.
        response: (nv, rows) ``M^-1 W``; None where contacts are those of single nodes of one body.
        free: (nv,) acceleration without contact and constraint forces; None if it is not needed.
    """

    at: SystemState
    inertia: Inertia
    rows: Rows
    response: Any
    free: Array | None = None

    def velocity_change(self, x: Array) -> Array:
        """``M^-1 W x`` (nv,) of impulses ``x`` (rows,). With a known inverse these are two short products:
        the compiler would form the responses a second time to read them here.
        """
        inverse = self.inertia.inverse
        if inverse is None:
            return matvec(self.response, x)
        return matvec(inverse, matvec(self.rows.wt.T, x))


def formed(at: SystemState) -> Formed:
    """Rows, responses and free acceleration at a state."""
    rows, force, inertia = at.rows(), at.force(), at.inertia()
    if is_local(at.system):
        free, response = inertia.solve(force[:, None])[:, 0], None
    else:
        free, response = inertia.answers(force, rows)
    return Formed(at=at, rows=rows, response=response, free=free, inertia=inertia)
