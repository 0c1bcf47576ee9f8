"""One step of a scheme as one value, a system at one state, and its inertia there.

A `Step` holds the system, the scheme, the start and the step size. A `SystemState` is a mechanism at one
state; `Balance` and `Formed` hold what a step has computed there once, for all functions that need it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core.errors import InputError, call
from nsjax.core.operators import (
    Joints,
    Rows,
    all_rows,
    momentum,
    refreshed,
    row_drift,
    row_rates,
    rows_with_drift,
)
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System, bordered, is_local, row_groups
from nsjax.jaxtools.storing import once
from nsjax.linalg import (
    Blocks,
    Dense,
    Elimination,
    Local,
    Paired,
    eliminated,
    interleaving,
    matmul,
    matvec,
    solve_positive,
)
from nsjax.types import Array, PyTree, record

NO_RESPONSES = (
    "derivative of the motion through contacts at nodes of the structure ConjugateGradients: responses of "
    'all contacts would be formed. Take gradient="discrete", the derivative of the program, without '
    "that of the times of impacts; or a structure that eliminates (flexible_cube: "
    'solver="direct")'
)
"""Error sentence: why motions through contacts at single nodes are not differentiated."""


@record()
class ConstantInertia:
    """Inertia that is constant over a run: its factors, and ``M^-1 W`` (nv, rows) of all rows."""

    factors: Elimination
    response: Any


@record(static=("system",))
class Inertia:
    """Inertia ``M(q)`` with its product and its inverse; made by `inertia_at`.

    With constraints that are eliminated with the velocities (`System.inside`) the inverse solves
    ``M dv - W x = push``, ``W' dv = 0``.

    Args:
        system, q, params: the system, its position and its params.
        matrix: (nv, nv) for dense structures without factors, else None.
        factors: eliminated matrix, of velocities and multipliers where joints are inside; or None.
        response: ``M^-1 W`` (nv, rows) where it is known.
        inverse: (nv, nv), where it is formed: see `inverted`.
    """

    system: System
    q: Array
    params: PyTree
    matrix: Array | None
    factors: Elimination | None
    response: Any = None
    inverse: Array | None = None

    def heavier(self, added: Array) -> Inertia:
        """The same with an inertia (nv,) or (nv, nv) added to a dense matrix without factors."""
        assert self.matrix is not None
        return dataclasses.replace(self, matrix=heavier(self.matrix, added))

    def inverted(self) -> Inertia:
        """The same inertia with its inverse formed if dense: for several solutions at one position."""
        if self.matrix is None or self.factors is not None:
            return self
        inverse = solve_positive(self.matrix, jnp.eye(self.matrix.shape[0], dtype=self.matrix.dtype))
        return dataclasses.replace(self, inverse=inverse)

    def times(self, w: Array) -> Array:
        """``M w`` (nv,)."""
        if self.matrix is not None:
            return matvec(self.matrix, w)
        return momentum(self.system, self.q, w, self.params)

    def solve(self, columns: Any) -> Any:
        """``M^-1 b`` for columns (nv, k), or in `Blocks`."""
        if not columns.shape[1]:
            return columns
        if self.inverse is not None:
            return self._by_inverse((once(columns) if columns.shape[1] == 1 else columns).T)
        if self.factors is None:
            return solve_positive(self.matrix, columns)  # type: ignore[arg-type]
        inside, n = self.system.inside, columns.shape[0]
        if not inside:
            return self.factors.solve(columns)
        return self.factors.solve(jnp.concatenate([columns, jnp.zeros((inside, columns.shape[1]))]))[:n]

    def _by_inverse(self, rows: Array) -> Array:
        """``M^-1 b`` (nv, k) for ``b' = rows`` (k, nv), in an order with vector instructions."""
        return matmul(rows, self.inverse).T

    def constrained(self, push: Array, rates: Array) -> tuple[Array, Array]:
        """``dv`` (nv,) and impulses ``x`` (inside,): ``M dv = push + W x`` with ``W' dv = rates``."""
        if self.factors is None or not self.system.inside:
            return self.solve(push[:, None])[:, 0], rates
        both = self.factors.solve(jnp.concatenate([push, rates]))
        return both[: push.shape[0]], both[push.shape[0] :]

    def answers(self, push: Array, rows: Rows) -> tuple[Array, Any]:
        """``M^-1 push`` (nv,) and ``M^-1 W`` (nv, rows) for all rows of the system, or the last ones."""
        wt = rows.wt
        if isinstance(wt, Local):
            raise NotImplementedError(NO_RESPONSES)
        if isinstance(wt, Blocks | Paired):
            response = self.solve(wt.T) if self.response is None else self.response
            return self.solve(push[:, None])[:, 0], response
        if self.response is not None:
            drift = self.solve(push[:, None])[:, 0]
            if not wt.shape[0]:
                return drift, wt.T
            return drift, self.response[:, self.response.shape[1] - wt.shape[0] :]
        if self.inverse is not None:
            return matvec(self.inverse, once(push)), self._by_inverse(wt)
        x = self.solve(jnp.concatenate([push[:, None], wt.T], axis=1))
        return x[:, 0], x[:, 1:]


def mass_matrix(system: System, q: Array, p: PyTree) -> Array:
    """``M(q)`` (nv, nv), also of a system that gives inertia only."""
    if system.mass is not None:
        return system.mass(q, p)
    return Dense().tangent(lambda w: momentum(system, q, w, p), jnp.zeros(system.nv, q.dtype))


def heavier(mass: Array, added: Array) -> Array:
    """A mass matrix with an inertia (nv,) on its diagonal, or (nv, nv), added to it."""
    return mass + (added if added.ndim == 2 else added[:, None] * np.eye(added.shape[0]))


def added_momentum(added: Array, v: Array) -> Array:
    """Momentum (nv,) of such an inertia."""
    return matvec(added, v) if added.ndim == 2 else added * v


def saddle(system: System, t: Array, q: Array, p: PyTree) -> Callable[[Array], Array]:
    """Affine function ``(w, x) -> (M w - W x, W' w)`` (nv + inside,) for constraints inside."""
    joints = Joints(system=system, t=t, q=q, params=p)

    def along(y: Array) -> Array:
        w, x = y[: system.nv], y[system.nv :]
        return jnp.concatenate([momentum(system, q, w, p) - joints.force(x), joints.rate(w)])

    return along


def factored_inertia(system: System, t: Array, q: Array, p: PyTree) -> Elimination:
    """``M(q)`` eliminated, for any structure, with the constraints inside it."""
    structure, rest = system.structure, jnp.zeros(system.nv + system.inside, q.dtype)
    if system.inside:
        return eliminated(interleaving(structure).saddle, saddle(system, t, q, p), rest)
    return eliminated(structure, lambda w: momentum(system, q, w, p), rest)


def inertia_at(
    system: System, t: Array | float, q: Array, p: PyTree, kept: ConstantInertia | None = None, *,
    joints: bool = True,
) -> Inertia:  # fmt: skip
    """Inertia at ``(t, q)``. ``kept``: result of `constant_inertia`, where it is known; ``joints``: whether
    joints inside the structure constrain the motion, see `Inertia`.
    """
    matrix, factors, response = None, None, None
    if not joints:
        system = bordered(system)
    if kept is not None:
        factors, response = kept.factors, kept.response
    elif system.structure.dense:
        matrix = mass_matrix(system, q, p)
    else:
        factors = factored_inertia(system, jnp.asarray(t), q, p)
    return Inertia(system=system, q=q, params=p, matrix=matrix, factors=factors, response=response)


def constant_inertia(system: System, p: PyTree) -> ConstantInertia | None:
    """Factors that hold for a whole run if the structure is constant, else None."""
    if not system.structure.constant:
        return None
    rest = jnp.zeros(system.nq)
    factors = factored_inertia(system, jnp.zeros(()), rest, p)
    if not system.nc and not system.nb:
        return ConstantInertia(factors=factors, response=jnp.zeros((system.nv, 0)))
    rows = all_rows(system, jnp.zeros(()), rest, p)
    return ConstantInertia(factors=factors, response=factors.solve(rows.wt.T))


# One step of a scheme as one value, and a system at one state: arguments of the helpers of schemes.


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
        return self.system.gap(self.t, self.q, self.params)

    def slip(self) -> Array:
        """Tangential velocities (nc, nt) [m/s]."""
        return self.system.slip(self.t, self.q, self.v, self.params)

    def force(self) -> Array:
        """``h(t, q, v)`` (nv,)."""
        return self.system.force(self.t, self.q, self.v, self.params)

    def law(self) -> Any:
        """The law of a system with contacts (`nsjax.ContactLaw`), at the speeds of this state."""
        found: Any = self.system.law(self.params)
        return found.at_speed(row_groups(self.system).contacts(self.rates())) if found.by_speed else found

    def friction(self) -> Array:
        """Coefficients (nc,) of a system with contacts, at the speeds of this state."""
        return self.law().friction_of(self.system.nc)

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

    def formed(self) -> Formed:
        """Rows and responses there."""
        at, inertia = self.at, self.inertia
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
