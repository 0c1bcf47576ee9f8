"""Directions, rates and energies derived from the functions of a `System`.

Rows are stacked law by law, see `nsjax.core.row_groups`: contacts first, bilateral rows last.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.row_groups import RowGroups
from nsjax.core.system import State, System, is_local, positioned, row_groups, slip_of
from nsjax.jaxtools import implicit_solution
from nsjax.linalg import Blocks, Local, Paired, block_jacobian, local_jacobian, magnitude, matmul, matvec
from nsjax.types import Array, PyTree, record


def prepared(system: System, params: PyTree) -> PyTree:
    """Parameters with what `System.prepare` derives from them, once per run."""
    return params if system.prepare is None else system.prepare(params)


def refreshed(system: System, t: Array | float, q: Array, p: PyTree) -> PyTree:
    """Parameters with what `System.refresh` makes of them at ``(t, q)``."""
    return p if system.refresh is None else system.refresh(t, q, p)


def acting(system: System, t: Array | float, q: Array, p: PyTree, contacts: Array) -> Array:
    """Contacts among ``contacts`` (nc,) bool that `System.allowed` lets act."""
    return contacts if system.allowed is None else contacts & system.allowed(t, q, p)


def touching(
    system: System, t: Array | float, q: Array, p: PyTree, gap: Array, limit: Array | float
) -> Array:
    """Contacts (nc,) bool with gaps up to ``limit`` that may act."""
    return acting(system, t, q, p, gap <= limit)


@record(static=("system",))
class Joints:
    """Constraints that are eliminated with the velocities (`System.inside`), never formed."""

    system: System
    t: Array
    q: Array
    params: PyTree

    def rate(self, v: Array) -> Array:
        """Their rates (inside,) at the velocity ``v``."""
        return row_rates(self.system, self.t, self.q, v, self.params, False)[: self.system.inside]

    def force(self, x: Array) -> Array:
        """``W x`` (nv,) of their multipliers (inside,)."""
        closures = jnp.zeros(self.system.nb - self.system.inside)
        x = jnp.concatenate([x, closures])
        return row_forces(self.system, self.t, self.q, x, self.params, contacts=False)


@record(static=("groups",))
class Rows:
    """Relative velocities of contact and constraint rows, affine in v: ``u = wt v + offset``.

    Args:
        wt, offset: of the contacts, and of the constraints that are not eliminated with the velocities; an
            array, or `nsjax.linalg.Blocks` where contacts fall into islands.
        joints: the eliminated constraints; None: there are none.
        groups: their laws; of the constraints, those that are not eliminated.
    """

    wt: Any
    offset: Array
    joints: Joints | None = None
    groups: RowGroups = RowGroups(0)

    @property
    def count(self) -> int:
        """Number of rows without the joints."""
        return int(self.wt.shape[0])

    def rate(self, v: Array) -> Array:
        """``u`` (rows,) at the velocity ``v`` [m/s], without the joints."""
        return matvec(self.wt, v) + self.offset

    def rate_size(self, v: Array) -> Array:
        """Sums (rows,) of the magnitudes of the terms of which ``W' v`` is made."""
        return matvec(magnitude(self.wt), jnp.abs(v))

    def jacobian(self) -> Any:
        """``W'`` (rows, nv) without the joints, an array or a matrix of `nsjax.linalg`."""
        return self.wt

    def directions(self) -> Any:
        """``W`` (nv, rows) without the joints, as `jacobian`."""
        return self.wt.T

    def response(self, inertia: Any) -> Any:
        """``M^-1 W`` (nv, rows) without the joints, by an `nsjax.core.step.Inertia`."""
        return inertia.solve(self.wt.T)

    def delassus(self, response: Any) -> Any:
        """``W' R`` (rows, rows) of a ``response`` ``R`` (nv, rows)."""
        return matmul(self.wt, response)

    def whole(self, border: Array, joints: Array) -> Array:
        """Values of all rows: contacts, joints, other constraints."""
        split = border.shape[0] - self.groups.nb
        return jnp.concatenate([border[:split], joints, border[split:]])

    def all_rates(self, v: Array) -> Array:
        """``u`` of all rows."""
        return self.rate(v) if self.joints is None else self.whole(self.rate(v), self.joints.rate(v))

    def border_and_joints(self, x: Array) -> tuple[Array, Array]:
        """Inverse of `whole`."""
        if self.joints is None:
            return x, jnp.zeros(0)
        split, end = self.wt.shape[0] - self.groups.nb, x.shape[0] - self.groups.nb
        return jnp.concatenate([x[:split], x[end:]]), x[split:end]

    def force(self, x: Array) -> Array:
        """``W x`` (nv,) of all rows."""
        if self.joints is None:
            return matvec(self.wt.T, x)
        border, joints = self.border_and_joints(x)
        return matvec(self.wt.T, border) + self.joints.force(joints)


def no_rows(system: System) -> Rows:
    """The rows of a system without contacts and constraints."""
    return Rows(wt=jnp.zeros((0, system.nv)), offset=jnp.zeros(0))


def jacobian(f: Callable[[Array], Array], x: Array, rows: int) -> Array:
    """Jacobian by columns or by rows, whichever are fewer."""
    return (jax.jacfwd if x.shape[0] <= 2 * rows else jax.jacrev)(f)(x)


def gap_rows(system: System, function: str, t: Array, q: Array, p: PyTree, first: int = 0) -> Rows:
    """Rows of ``d/dt`` of the gap or the constraint at ``(t, q)``: derivatives with respect to an
    increment at zero, plus the explicit time derivative of moving obstacles; from row number
    ``first`` on.
    """
    if function == "gap" and system.rows is not None:
        wt, offset = system.rows(t, q, p)
        return Rows(wt=wt[:, 0], offset=offset[:, 0])

    if function == "constraint" and system.nh:
        hold: Any = system.velocity_constraint
        at, rest = lambda v: hold(t, q, v, p), jnp.zeros(system.nv, q.dtype)
        rows = [Rows(wt=jacobian(at, rest, system.nh), offset=at(rest))]
        if system.nb - system.nh > first:
            rows = [gap_rows(positioned(system), function, t, q, p, first), *rows]
        return joined_rows(rows)
    count = (system.nc if function == "gap" else system.nb) - first

    def f(t: Array, q: Array, p: PyTree) -> Array:
        return getattr(system, function)(t, q, p)[first:]

    wt = jacobian(lambda xi: f(t, system.retract(q, xi), p), jnp.zeros(system.nv, q.dtype), count)
    return Rows(wt=wt, offset=jax.jvp(lambda s: f(s, q, p), (t,), (jnp.ones_like(t),))[1])


def slip_rows(system: System, t: Array, q: Array, p: PyTree) -> Rows:
    """Rows of the tangential velocities, shape (nc, nt, nv) and (nc, nt)."""
    rest = jnp.zeros(system.nv, q.dtype)
    slip = lambda v: system.slip(t, q, v, p)  # noqa: E731
    return Rows(wt=jacobian(slip, rest, system.nc * system.nt), offset=slip(rest))


def island_rows(system: System, t: Array, q: Array, p: PyTree) -> Rows:
    """Rows of all contacts of a system of `System.islands`: those of each part over its own velocities."""
    n, rest = system.islands, jnp.zeros(system.nv, q.dtype)
    values = block_jacobian(lambda xi: system.gap(t, system.retract(q, xi), p), rest, n).values
    offset = jax.jvp(lambda s: system.gap(s, q, p), (t,), (jnp.ones_like(t),))[1]
    if system.nt:
        tangent = block_jacobian(lambda v: system.slip(t, q, v, p).reshape(-1), rest, n).values
        tangent = tangent.reshape(n, -1, system.nt, tangent.shape[2])
        values = jnp.concatenate([values[:, :, None], tangent], axis=2).reshape(n, -1, values.shape[2])
        still = system.slip(t, q, rest, p)
        offset = jnp.concatenate([offset[:, None], still], axis=1).reshape(-1)
    return Rows(wt=Blocks(values=values), offset=offset)


def node_rows(system: System, f: Callable[[Array], Array], x: Array, rows: int) -> Local:
    """Jacobian of ``f``, ``(nv,) -> (nc rows,)``, of contacts that depend on one node each."""
    nodes = system.structure.touched  # type: ignore[attr-defined]
    block = system.structure.preconditioner.block  # type: ignore[attr-defined]
    return local_jacobian(f, x, rows, nodes, block)


def local_rows(system: System, t: Array, q: Array, p: PyTree) -> Rows:
    """Rows of contacts that depend on one node each, see `nsjax.core.system.at_nodes_alone`."""
    rest = jnp.zeros(system.nv, q.dtype)

    def along(v: Array) -> Array:
        return row_rates(system, t, q, v, p)

    return Rows(wt=node_rows(system, along, rest, 1 + system.nt), offset=along(rest))


def pair_rows(system: System, t: Array, q: Array, p: PyTree) -> Rows:
    """Rows of contacts between two bodies each, see `System.contact_set`."""
    own: Any = system.contact_set
    values, rest = own.directions(t, q, p), jnp.zeros(system.nv, q.dtype)
    wt = Paired(values=values, of=own.bodies(p), blocks=system.nv // values.shape[3])
    return Rows(wt=wt, offset=row_rates(system, t, q, rest, p))


def contact_rows(system: System, t: Array, q: Array, p: PyTree) -> Rows:
    """Rows of all contacts, law by law."""
    if is_local(system):
        return local_rows(system, t, q, p)
    if system.islands:
        return island_rows(system, t, q, p)
    if system.changing_contacts:
        return pair_rows(system, t, q, p)
    groups = row_groups(system)
    if system.rows is not None:
        wt, offset = system.rows(t, q, p)
        return Rows(wt=groups.stack(wt), offset=groups.stack(offset))
    normal = gap_rows(system, "gap", t, q, p)
    if system.nt == 0:
        return normal
    tangent = slip_rows(system, t, q, p)
    wt = jnp.concatenate([normal.wt[:, None], tangent.wt], axis=1)
    offset = jnp.concatenate([normal.offset[:, None], tangent.offset], axis=1)
    return Rows(wt=groups.stack(wt), offset=groups.stack(offset))


def gap_drift(system: System, t: Array, q: Array, v: Array, p: PyTree, function: str = "gap") -> Array:
    """Acceleration of the gaps (or the constraints) at constant velocity, ``d/ds d/ds g(t + s, q + s v)``;
    the whole acceleration is its sum with ``W' dv/dt``.
    """

    def along(s: Array) -> Array:
        return getattr(system, function)(t + s, system.retract(q, s * v), p)

    def rates(s: Array) -> Array:
        parts = [] if getattr(system, function) is None else [jax.jvp(along, (s,), (jnp.ones_like(s),))[1]]
        if function == "constraint" and system.nh:
            hold: Any = system.velocity_constraint
            parts.append(hold(t + s, system.retract(q, s * v), v, p))
        return parts[0] if len(parts) == 1 else jnp.concatenate(parts)

    zero = jnp.zeros_like(t)
    return jax.jvp(rates, (zero,), (jnp.ones_like(zero),))[1]


def joined_rows(parts: list[Rows]) -> Rows:
    """Rows of several parts, stacked one after the other, without joints."""
    if len(parts) == 1:
        return parts[0]
    wt, offset = (jnp.concatenate([getattr(r, x) for r in parts]) for x in ("wt", "offset"))
    return Rows(wt=wt, offset=offset)


def position_gradient(system: System, t: Array, q: Array, p: PyTree, contacts: bool = True) -> Rows:
    """Rows of gaps (unless ``contacts`` is false) and of all constraints, joints among them."""
    parts = []
    if system.nc and contacts:
        parts.append(gap_rows(system, "gap", t, q, p))
    if system.nb:
        parts.append(gap_rows(system, "constraint", t, q, p))
    return joined_rows(parts)


def all_rows(system: System, t: Array, q: Array, p: PyTree, contacts: bool = True) -> Rows:
    """Contact rows (unless ``contacts`` is false), then the rows of the bilateral constraints."""
    parts, closures = [], system.nb - system.inside
    if system.nc and contacts:
        parts.append(contact_rows(system, t, q, p))
    if closures:
        parts.append(gap_rows(system, "constraint", t, q, p, first=system.inside))
    if not parts:
        parts.append(no_rows(system))
    joints = Joints(system=system, t=t, q=q, params=p) if system.inside else None
    groups = row_groups(system, contacts).with_constraints(closures)
    return dataclasses.replace(joined_rows(parts), joints=joints, groups=groups)


def momentum(system: System, q: Array, w: Array, p: PyTree) -> Array:
    """``M(q) w``, by the system's inertia if it gives one: that forms no matrix.

    Args:
        system: the functions.
        q: position (nq,).
        w: velocities, or a change of them (nv,).
        p: parameters, prepared.

    Returns:
        (nv,) [kg m/s] or [kg m^2/s].

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax import models
        >>> from nsjax.schemes.building import momentum
        >>> system, p, start = models.bouncing_ball(mass=2.0)
        >>> momentum(system, start.q, jnp.array([3.0]), p).tolist()
        [6.0]
    """
    if system.inertia is not None:
        return system.inertia(q, w, p)
    return matvec(system.mass(q, p), w)


def kinetic_energy(system: System, q: Array, v: Array, p: PyTree) -> Array:
    """``v M(q) v / 2`` [J]."""
    return 0.5 * jnp.sum(v * momentum(system, q, v, p))


def potential_energy(system: System, t: Array, q: Array, p: PyTree) -> Array:
    """Potential energy [J], zero for a model that gives none."""
    return jnp.zeros(()) if system.potential is None else jnp.asarray(system.potential(t, q, p))


def row_rates(system: System, t: Array, q: Array, v: Array, p: PyTree, contacts: bool = True) -> Array:
    """Relative velocities of all rows, as `all_rows(...).rate(v)` but without forming the rows."""

    def along(function: str) -> Array:
        f = getattr(system, function)
        one = jnp.ones_like(t)
        moved = lambda s: f(t + s, system.retract(q, s * v), p)  # noqa: E731
        return jax.jvp(moved, (jnp.zeros_like(t),), (one,))[1]

    parts = []
    if system.nc and contacts:
        normal = along("gap")
        if system.nt:
            slip = system.slip(t, q, v, p)
            normal = row_groups(system).stack(jnp.concatenate([normal[:, None], slip], axis=1))
        parts.append(normal)
    if system.nb > system.nh:
        parts.append(along("constraint"))
    if system.nh:
        parts.append(system.velocity_constraint(t, q, v, p))  # type: ignore[misc]
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)


def row_drift(system: System, t: Array, q: Array, v: Array, p: PyTree, contacts: bool = True) -> Array:
    """Rate of all row velocities at constant ``v`` (rows,): ``gamma`` of ``W' a + gamma``."""

    def along(s: Array) -> Array:
        return row_rates(system, t + s, system.retract(q, s * v), v, p, contacts)

    zero = jnp.zeros_like(t)
    return jax.jvp(along, (zero,), (jnp.ones_like(zero),))[1]


def rows_with_drift(system: System, t: Array, q: Array, v: Array, p: PyTree) -> tuple[Rows, Array]:
    """`all_rows` and `row_drift`, which share the evaluation of rows that the system knows."""
    if system.rows is None or system.islands or system.changing_contacts or is_local(system):
        return all_rows(system, t, q, p), row_drift(system, t, q, v, p)
    one, own = jnp.ones_like(t), system.rows
    moving = jax.jvp(lambda s: system.retract(q, s * v), (jnp.zeros_like(t),), (one,))[1]
    (wt, offset), (turning, faster) = jax.jvp(lambda t, q: own(t, q, p), (t, q), (one, moving))
    groups = row_groups(system)
    wt, offset, turning, faster = (groups.stack(x) for x in (wt, offset, turning, faster))
    rows, drift = Rows(wt=wt, offset=offset, groups=groups), matvec(turning, v) + faster
    if not system.nb:
        return rows, drift
    others = all_rows(system, t, q, p, contacts=False)
    groups = groups.with_constraints(others.groups.nb)
    rows = dataclasses.replace(joined_rows([rows, others]), joints=others.joints, groups=groups)
    return rows, jnp.concatenate([drift, row_drift(system, t, q, v, p, contacts=False)])


def row_forces(system: System, t: Array, q: Array, x: Array, p: PyTree, contacts: bool = True) -> Array:
    """``W x`` (nv,): the generalised force of row forces ``x``, without forming the rows."""
    groups, rest = row_groups(system, contacts), jnp.zeros(system.nv, q.dtype)
    nc, nt, block = groups.nc, groups.nt, groups.contacts(x)

    def work(xi: Array, v: Array) -> Array:
        moved = system.retract(q, xi)
        total = jnp.zeros(())
        if nc:
            total = total + jnp.sum(block[:, 0] * system.gap(t, moved, p))
        if nc and nt:
            total = total + jnp.sum(block[:, 1:] * system.slip(t, q, v, p))
        first, last = groups.ends[2], x.shape[0] - system.nh
        if system.nb > system.nh:
            total = total + jnp.sum(x[first:last] * system.constraint(t, moved, p))
        if system.nh:
            total = total + jnp.sum(x[last:] * system.velocity_constraint(t, q, v, p))  # type: ignore[misc]
        return total

    by_position, by_velocity = jax.grad(work, argnums=(0, 1))(rest, rest)
    return by_position + by_velocity


def position_rows(system: System, t: Array, moved: tuple[Array, Array | None], p: PyTree, nc: int) -> Array:
    """Gaps, if ``nc > 0``, and constraint residuals (nc + nb,) [m] at ``q`` moved along ``xi``, with
    ``moved`` as ``(q, xi)``. Constraints on velocities alone require that ``xi`` does not slip.
    """
    (q, xi), parts = moved, []
    end = q if xi is None else system.retract(q, xi)
    if nc:
        parts.append(system.gap(t, end, p))
    if system.nb > system.nh:
        parts.append(system.constraint(t, end, p))
    if system.nh:
        parts.append(jnp.zeros(system.nh) if xi is None else slip_of(system, t, q, xi, p))
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)


# Derivative of the start of a run: a number that enters a constraint moves the start.
#
# Where numbers are replaced by name, `nsjax.core.keys` has moved the start already, and this
# derivative changes nothing. It is for numbers that are varied in ``params`` themselves, and for starts
# that are varied off their constraints.


def open_directions(system: System) -> tuple[np.ndarray, np.ndarray]:
    """Directions (nv,), 1 or 0, in which constraints move a start: all but those of given coordinates."""
    kept, inputs = (getattr(system.parts, x, None) for x in ("kept", "inputs"))
    if kept is not None:
        found = kept.open_directions(system.parts)
    elif inputs is not None:
        found = open_directions(inputs.system)
    else:
        found = np.ones(system.nv), np.ones(system.nv)
    q, v = (np.concatenate([x, np.zeros(system.nv - len(x))]) for x in found)
    return q, v


def on_constraints(system: System, params: PyTree, state: State) -> State:
    """The same start, with the derivative of a start that is kept on its constraints: the coordinates that
    are not given change by the least increment with ``d(g_B) = 0`` and ``d(dg_B/dt) = 0``.
    """
    if not system.nb:
        return state
    free_q, free_v = open_directions(system)
    rest = np.zeros(system.nv)

    def ready(t: Array, q: Array, p: PyTree) -> PyTree:
        return refreshed(system, t, q, prepared(system, p))

    def live_step(x: tuple[Array, Array], data: Any) -> Callable[[Any], tuple[Array, Array]]:
        t, p, q, _ = data

        def back(of: System, free: np.ndarray) -> Array:
            rows = gap_rows(of, "constraint", t, q, ready(t, q, p)).jacobian()
            return jnp.asarray(free)[:, None] * jnp.linalg.pinv(rows * free, rtol=1e-10)

        slow, known = back(system, free_v), positioned(system)
        near = back(known, free_q) if known.nb else jnp.zeros((system.nv, 0))

        def step(data: Any) -> tuple[Array, Array]:
            t, p, q, v = data
            if system.constraint is not None:
                q = system.retract(q, rest - near @ system.constraint(t, q, ready(t, q, p)))
            rates = gap_rows(system, "constraint", t, q, ready(t, q, p))
            return q, v - slow @ rates.rate(v)

        return step

    data = jnp.asarray(state.t, float), params, state.q, state.v
    (q, v), _ = implicit_solution(lambda x: ((x[2], x[3]), ()), live_step)(data)
    return dataclasses.replace(state, q=q, v=v)
