"""Linearisation about a motion or rest, for control: ``dx/dt = A x + B u``, ``y = C x + D u``.

Constraints, and contacts that are held closed, leave the directions ``D`` free: ``G D = 0`` with the rows
``G`` of their rates. The state is ``x = (D' xi, D' dv)`` with the increment ``xi`` of the position and the
change ``dv`` of the velocity; its rate follows from

    ``M a - W f = h(t, q, v, u),   G a = -gamma,   q = retract(q_0, D y),   G v = -g_t``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError, Problem, State, System
from nsjax.core.arguments import check_is, name_list, numbers
from nsjax.core.checks import canonical, check_precision, check_shapes, check_state, concrete_number
from nsjax.core.inputs import Inputs, input_places, shape_of, value_of
from nsjax.core.operators import prepared, refreshed, row_rates
from nsjax.core.scheme import NOTES, QUANTITIES, ROWS
from nsjax.core.step import mass_matrix
from nsjax.core.system import bordered, contact_names, row_groups
from nsjax.jaxtools.owned import compiled_for
from nsjax.linalg.elimination import independent
from nsjax.sensors import quantity, read, row_output
from nsjax.statics import check_positioned, chosen_contacts, null_space
from nsjax.types import Array, PyTree

TOUCHING = 1e-6
"""Largest gap [m] of a contact that counts as closed, and largest rate [m/s], [rad/s] of one at rest."""


@dataclasses.dataclass(frozen=True)
class Linearised:
    """``dx/dt = A x + B u``, ``y = C x + D u`` of small changes; unpacks as ``A, B, C, D``.

    Args:
        A (n, n), B (n, m), C (k, n), D (k, m): inputs in the given order, outputs one below the other.
        positions, velocities: (nv, r) and (nv, n - r), orthonormal columns: ``x = (y, w)`` moves the
            position along ``positions @ y`` and changes the velocity by ``velocities @ w``, plus a part
            that keeps the constraints. Both are equal except for activations
            (`nsjax.with_actuator_dynamics`), which have no position.
        state: state about which the problem is linearised.
        inputs: values (m,) of the inputs in this state.
        outputs: values (k,) of the outputs in this state.
        held: names of the contacts that are held closed.
        rate: rate of ``x`` (n,) in this state; zero at rest.
        system: system of the problem.
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    positions: np.ndarray
    velocities: np.ndarray
    state: State
    inputs: np.ndarray
    outputs: np.ndarray
    held: tuple[str, ...]
    rate: np.ndarray
    system: System

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.A, self.B, self.C, self.D))

    def deviation(self, q: Array, v: Array) -> Array:
        """State (..., n) of positions (..., nq) and velocities (..., nv), for a controller; may be traced.

        Raises:
            InputError: for other shapes.
        """
        q, v = numbers("deviation", "q", q), numbers("deviation", "v", v)
        wanted = np.shape(self.state.q), np.shape(self.state.v)
        if (np.shape(q)[-1:], np.shape(v)[-1:]) != wanted or np.ndim(q) != np.ndim(v):
            raise InputError(
                f"deviation: q and v have the shapes {np.shape(q)} and {np.shape(v)}; give {wanted[0]} and "
                f"{wanted[1]}, or lanes of them"
            )

        def one(q: Array, v: Array) -> Array:
            xi = self.system.difference(jnp.asarray(self.state.q), q)
            return jnp.concatenate([self.positions.T @ xi, self.velocities.T @ (v - self.state.v)])

        return jnp.vectorize(one, signature="(q),(v)->(n)")(q, v)

    def discrete(self, dt: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Exact ``A, B, C, D`` of ``x_(i+1) = A x_i + B u_i`` for steps ``dt`` [s] with constant inputs."""
        from scipy.linalg import expm

        dt = concrete_number(dt, "dt")
        n, m = self.B.shape
        whole = expm(dt * np.block([[self.A, self.B], [np.zeros((m, n + m))]]))
        return whole[:n, :n], whole[:n, n:], self.C, self.D


def linearise(
    problem: Problem, *, at: State | None = None, inputs: Sequence[str] = (), outputs: Sequence[Any] = (),
    contacts: Sequence[str] | None = None,
) -> Linearised:  # fmt: skip
    """Linearisation of a problem about a state.

    Args:
        problem: system and parameters.
        at: the state; None: that of the problem. It fulfils the constraints; it need not be at rest.
        inputs: names of numbers, as for `nsjax.with_inputs`: ``"motor"``, ``"push.value[0]"``.
        outputs: names of quantities, as for `Trajectory.sensor`; none: the state ``x``.
        contacts: names of contacts that are held closed; None: those that touch at rest. With friction they
            stick, without friction they slide; held contacts stay closed in all linear motions.

    Returns:
        A `Linearised`, which unpacks as ``A, B, C, D``.

    Raises:
        InputError: for an unknown input, output or contact; a held contact that would pull, or that slides
            with friction; inputs of prescribed motions.

    Limits: dense matrices. Joints with dry friction stick where they are at rest; where they move, their
    friction is constant at its bound. Outputs of forces are those of the held contacts. Rolling contacts
    are treated like fixed points: they remove the same directions from positions as from velocities.

    Example:
        >>> import nsjax
        >>> from nsjax.multibody import assemble, body, joint_spring, slide
        >>> sledge = assemble(
        ...     body("sledge", mass=1.0, inertia=1.0), slide("rail", "ground", "sledge"),
        ...     joint_spring("spring", "rail", stiffness=4.0),
        ... )
        >>> A, B, C, D = nsjax.analysis.linearise(sledge)
        >>> (A.round(9) + 0.0).tolist()
        [[0.0, 1.0], [-4.0, 0.0]]
    """
    check_precision()
    check_is("linearise", "problem", problem, Problem)
    check_state(problem.state if at is None else at)
    inputs, outputs = name_list("linearise", "inputs", inputs), name_list("linearise", "outputs", outputs)
    check_positioned(problem.system, "linearise")
    system = bordered(problem.system)
    wanted = input_places(problem, tuple(inputs)) if inputs else Inputs(problem.system, ())
    state = canonical(problem.state if at is None else at, "state")
    params = canonical(problem.params, "params")
    check_shapes(system, params, state)
    for name in outputs:
        quantity(problem.system, name)
    given = dataclasses.replace(problem, system=system, params=params, state=state)
    u = [np.ravel(np.asarray(value_of(problem, key), float)) for _, key in wanted.keys]
    whole = np.concatenate([*u, np.zeros(0)])
    shapes = tuple(shape_of(problem, key) for _, key in wanted.keys)
    held = closed_contacts(given, contacts, "linearise")
    point = OperatingPoint(system, wanted, shapes, tuple(outputs), held.rows, held.dry_frictions)
    G = np.asarray(point.directions(params, state, whole))
    kept = independent(G)
    point = dataclasses.replace(point, kept=kept)
    free = null_space(G[list(kept)])
    live = np.asarray(point.live(state))
    places = null_space(np.concatenate([G[list(kept)], null_space(live).T]))
    found = jax.tree.map(np.asarray, point.matrices(params, state, whole, places, free))
    # refuses held contacts with a pulling force
    normal = found["normal"]
    names = contact_names(system)
    for k in (names.index(x) for x in held.names):
        if normal[k] < -1e-9 * max(1.0, float(np.max(np.abs(normal)))):
            raise InputError(
                f"linearise: contact {names[k]!r} would have to pull with {-normal[k]:.3g} N to stay "
                "closed; leave it out of contacts, or give the loads that press it"
            )
    n = places.shape[1] + free.shape[1]
    C = found["C"] if outputs else np.eye(n)
    D = found["D"] if outputs else np.zeros((n, len(whole)))
    return Linearised(
        A=found["A"], B=found["B"], C=C, D=D, positions=places, velocities=free, state=state, inputs=whole,
        outputs=found["y"] if outputs else np.zeros(n), held=held.names, rate=found["f"],
        system=problem.system,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class HeldContacts:
    """Held contacts and bounded rows at rest: names and numbers of the contacts, numbers of the rows."""

    names: tuple[str, ...]
    rows: tuple[int, ...]
    dry_frictions: tuple[int, ...]


def closed_contacts(problem: Problem, wanted: Sequence[str] | None, who: str) -> HeldContacts:
    """Contacts that are held closed, and bounded rows at rest. Raises `InputError`, see `linearise`;
    ``who`` is the caller that sentences name.
    """
    system, state, d = problem.system, problem.state, 1 + problem.system.nt
    t = jnp.asarray(state.t)
    p = refreshed(system, t, jnp.asarray(state.q), prepared(system, problem.params))
    if not system.nc:
        chosen_contacts(system, wanted or (), who)
        return HeldContacts((), (), _bounded_at_rest(problem, p, [], who))
    names = contact_names(system)
    gap = np.asarray(system.gap(t, state.q, p))
    rates = np.asarray(row_rates(system, t, jnp.asarray(state.q), jnp.asarray(state.v), p))
    rates = np.asarray(row_groups(system).contacts(rates))
    if wanted is None:
        chosen = [k for k in range(system.nc) if gap[k] <= TOUCHING and abs(rates[k, 0]) <= TOUCHING]
    else:
        chosen = list(chosen_contacts(system, wanted, who))
    friction = np.asarray(system.law(p).friction_of(system.nc))
    rows: list[int] = []
    for k in chosen:
        if abs(gap[k]) > 1e3 * TOUCHING or abs(rates[k, 0]) > TOUCHING:
            raise InputError(
                f"{who}: contact {names[k]!r} is not closed at rest: its gap is {gap[k]:.3g} m, its "
                f"gap rate {rates[k, 0]:.3g} m/s; give a state in which it is closed, or leave it out of "
                "contacts"
            )
        if friction[k] > 0.0 and np.any(np.abs(rates[k, 1:]) > TOUCHING):
            raise InputError(
                f"{who}: contact {names[k]!r} slides with friction {friction[k]:.3g}; sliding "
                "contacts must have none: give a state in which it rests, set its friction to zero, or "
                "leave it out of contacts"
            )
        rows += [k * d + i for i in range(d if friction[k] > 0.0 else 1)]
    dry_frictions = _bounded_at_rest(problem, p, chosen, who)
    return HeldContacts(tuple(names[k] for k in chosen), tuple(rows), dry_frictions)


def _bounded_at_rest(problem: Problem, p: PyTree, held: Sequence[int], who: str) -> tuple[int, ...]:
    """Bounded rows at rest; rows that belong to a contact only if this contact is held."""
    system, state = problem.system, problem.state
    if not system.nd:
        return ()
    if system.dry_friction_law is not None:
        raise InputError(
            f"{who}: which forces of dry_friction_law = {system.dry_friction_law!r} hold their rates "
            "is not known; write those that hold as constraints, and leave out the others"
        )
    rates = np.asarray(system.dry_friction(jnp.asarray(state.t), state.q, state.v, p))
    bounds = np.broadcast_to(np.asarray(system.dry_friction_bound(p)), rates.shape)
    leads = system.dry_friction_contact or (-1,) * system.nd
    names = system.labels.dry_frictions or tuple(f"{k}" for k in range(system.nd))
    found = []
    for k, lead in enumerate(leads):
        still = abs(rates[k]) <= TOUCHING
        if lead >= 0 and (lead not in held or not bounds[k] > 0.0):
            continue  # without pressure or friction the contact has no moment
        if lead >= 0 and not still:
            raise InputError(
                f"{who}: bounded row {names[k]!r} of contact {contact_names(system)[lead]!r} moves at "
                f"{rates[k]:.3g}, and its bound {bounds[k]:.3g} depends on the normal force; give a state "
                "in which it rests, set its coefficient to zero, or leave the contact out of contacts"
            )
        found += [k] if still else []
    return tuple(found)


@dataclasses.dataclass(frozen=True)
class OperatingPoint:
    """Equations of motion with held contacts, to be differentiated.

    Args:
        system: system with all constraints in the border.
        inputs: paths of the inputs.
        shapes: shapes of the inputs.
        outputs: names of the outputs.
        rows: numbers of the entries (nc, 1 + nt) of contacts that are held.
        dry_frictions: bounded rows at rest.
        kept: independent rows among held contacts, constraints and bounded rows; None: all rows.
    """

    system: System
    inputs: Inputs
    shapes: tuple[tuple[int, ...], ...]
    outputs: tuple[Any, ...]
    rows: tuple[int, ...]
    dry_frictions: tuple[int, ...]
    kept: tuple[int, ...] | None = None

    def params(self, params: PyTree, t: Array, q: Array, u: Array) -> PyTree:
        """Parameters with the inputs ``u``."""
        values: dict[str, Array] = {}
        first = 0
        for (name, _), shape in zip(self.inputs.keys, self.shapes, strict=True):
            count = int(np.prod(shape))
            values[name] = u[first : first + count].reshape(shape)
            first += count
        given = self.inputs.model(params, values) if values else params
        return refreshed(self.system, t, q, prepared(self.system, given))

    def rates(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """Rates of the held contacts, constraints and bounded rows, affine in ``v``."""
        s, parts = self.system, [jnp.zeros(0)]
        if s.nb or self.rows:
            every = row_rates(s, t, q, v, p)
            groups = row_groups(s)
            contacts = groups.contacts(every).reshape(-1)
            parts += [contacts[np.array(self.rows, int)], groups.bilateral(every)]
        if self.dry_frictions:
            parts.append(s.dry_friction(t, q, v, p)[np.array(self.dry_frictions)])
        found = jnp.concatenate(parts)
        return found if self.kept is None else found[np.array(self.kept, int)]

    @compiled_for("self")
    def directions(self, params: PyTree, state: State, u: Array) -> Array:
        """Rows ``G`` (k, nv) of the held rates."""
        t, q, v = jnp.asarray(state.t), jnp.asarray(state.q), jnp.asarray(state.v)
        p = self.params(params, t, q, u)
        return jax.jacfwd(lambda v: self.rates(t, q, v, p))(v)

    @compiled_for("self")
    def live(self, state: State) -> Array:
        """Derivative of the position by increments (nv, nv): identity, zero for rates without position."""
        s, q = self.system, jnp.asarray(state.q)
        return jax.jacfwd(lambda xi: s.difference(q, s.retract(q, xi)))(jnp.zeros(s.nv))

    def pushed(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """Forces (nv,) of the system, with the dry friction of what moves."""
        s = self.system
        push = s.force(t, q, v, p)
        if s.nd:
            leads = s.dry_friction_contact or (-1,) * s.nd
            moving = np.array([k not in self.dry_frictions and leads[k] < 0 for k in range(s.nd)])
            rate, back = jax.vjp(lambda v: s.dry_friction(t, q, v, p), v)
            push = push - back(jnp.where(moving, s.dry_friction_bound(p) * jnp.sign(rate), 0.0))[0]
        return push

    def balance(self, t: Array, q: Array, v: Array, p: PyTree, more: Any = 0.0) -> tuple[Array, Array]:
        """Accelerations (nv,) with further forces ``more``, and forces of the rows (k,)."""
        s, push = self.system, self.pushed(t, q, v, p) + more
        mass = mass_matrix(s, q, p)
        G = jax.jacfwd(lambda v: self.rates(t, q, v, p))(v)
        if not G.shape[0]:
            return jnp.linalg.solve(mass, push), jnp.zeros(0)

        def along(e: Array) -> Array:
            return self.rates(t + e, s.retract(q, e * v), v, p)

        gamma = jax.jvp(along, (jnp.zeros(()),), (jnp.ones(()),))[1]
        answers = jnp.linalg.solve(mass, jnp.concatenate([push[:, None], G.T], axis=1))
        x = -jnp.linalg.solve(G @ answers[:, 1:], G @ answers[:, 0] + gamma)
        return answers[:, 0] + answers[:, 1:] @ x, x

    @compiled_for("self")
    def matrices(
        self, params: PyTree, state: State, u: Array, places: Array, free: Array
    ) -> Mapping[str, Array]:
        """Matrices A, B, C, D, rate of the state, outputs and normal forces."""
        s, t, q0, v0 = self.system, *(jnp.asarray(x) for x in (state.t, state.q, state.v))
        r = places.shape[1]

        def at(x: Array, u: Array) -> tuple[Array, Array, Array]:
            q = s.retract(q0, places @ x[:r])
            p = self.params(params, t, q, u)
            v = free @ x[r:]
            G = jax.jacfwd(lambda v: self.rates(t, q, v, p))(v)
            # velocities that open constraints are no states: each is moved to the nearest that is one
            if G.shape[0]:
                v = v - G.T @ jnp.linalg.solve(G @ G.T, self.rates(t, q, v, p))
            a, f = self.balance(t, q, v, p)
            moved = lambda e: s.difference(q0, s.retract(q, e * v))  # noqa: E731
            rate = jax.jvp(moved, (jnp.zeros(()),), (jnp.ones(()),))[1]
            y = self.measured(t, q, v, p, f)
            return jnp.concatenate([places.T @ rate, free.T @ a]), y, f

        x0 = jnp.concatenate([jnp.zeros(r), free.T @ v0])
        (A, B), (C, D), _ = jax.jacfwd(at, argnums=(0, 1))(x0, u)
        f, y, forces = at(x0, u)
        return {
            "A": A, "B": B, "C": C, "D": D, "f": f, "y": y, "normal": self.loads(forces)["force_normal"],
        }  # fmt: skip

    def measured(self, t: Array, q: Array, v: Array, p: PyTree, f: Array) -> Array:
        """Outputs one below the other."""
        if not self.outputs:
            return jnp.zeros(0)
        s = self.system
        loads = self.loads(f)
        zero = {name: jnp.zeros(x.shape(s), x.kind) for name, x in QUANTITIES.items() if name not in NOTES}
        rows = {name: loads.get(name, zero.get(name)) for name in ROWS}
        rows["gap"] = s.gap(t, q, p) if s.nc else jnp.zeros(0)
        output = row_output(rows)
        return jnp.concatenate([jnp.ravel(read(s, x, t, q, v, output, p)) for x in self.outputs])

    def loads(self, f: Array) -> dict[str, Array]:
        """Forces of contacts, constraints and bounded rows."""
        s, d = self.system, 1 + self.system.nt
        every = [*self.rows, *(s.nc * d + k for k in range(s.nb))]
        every += [s.nc * d + s.nb + k for k in self.dry_frictions]
        chosen = np.array(every, int)[np.array(self.kept, int)]
        here = np.arange(s.nc * d + s.nb + s.nd)[:, None] == chosen
        whole = jnp.sum(jnp.where(here, f, 0.0), axis=1)
        split = s.nc * d
        contact = whole[:split].reshape(s.nc, d)
        return {
            "force_normal": contact[:, 0], "force_tangential": contact[:, 1:],
            "constraint_force": whole[split : split + s.nb], "dry_friction_force": whole[split + s.nb :],
        }  # fmt: skip
