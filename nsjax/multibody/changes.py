"""Mechanisms that change: joints break, open or lock; the end of a mechanism as the start of another."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.bounded import bounded_as_contacts, by_row
from nsjax.contact.event_motion import EXACT
from nsjax.contact.events import DEFAULT
from nsjax.contact.friction import SlidingRule, consistent_forces
from nsjax.core import InputError, Problem, State, System
from nsjax.core.operators import gap_rows, prepared
from nsjax.core.step import SystemState, mass_matrix
from nsjax.core.system import bordered, row_groups
from nsjax.linalg import solve
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.mechanism import Mechanism
from nsjax.multibody.reactions import Instant, Loads, momentum
from nsjax.multibody.start import root
from nsjax.types import Array, Fn, PyTree, is_traced


@dataclasses.dataclass(frozen=True)
class Change:
    """Result of `change`.

    Args:
        problem: the second mechanism at the instant of the change.
        impulses: by body, the impulse [N s] and the angular impulse about its centre of mass [N m s] that
            it got: zero where joints open, those of the reactions where they lock.
        loss: kinetic energy that the change took [J].
    """

    problem: Problem
    impulses: dict[str, tuple[Array, Array]]
    loss: Array


def change(traj: Any, then: Problem) -> Change:
    """Goes on with another mechanism where a run has ended: a bolt has broken, a gripper has closed, a
    clutch has locked.

    Bodies of both mechanisms are the same by their names. Those of the second stand where those of the
    first have ended. Their velocities are those that its joints allow, nearest in kinetic energy: joints
    that lock exert the impulses of a plastic impact ``M dv = W P``, ``W' v + w = 0``, and joints that open
    exert none.

    Args:
        traj: a run of the first mechanism; its last row counts, with ``stop`` of `nsjax.simulate` the
            instant of the stop, and its derivatives.
        then: the second mechanism, in any coordinates. Its start is where the search for the position
            begins. Numbers may follow from the run, such as ``turned`` of a joint that locks at the angle
            of the moment.

    Returns:
        A `Change`, whose ``problem`` is the start of `nsjax.simulate` for the second mechanism. Both runs
        and the change are one program, with derivatives, inside `jax.jit`.

    Raises:
        InputError: for systems that are no mechanisms of rigid bodies, a body that the first mechanism does
            not have, and joints of the second that do not allow the places of the bodies. Inside
            transformations such a start is not a number.

    Limits: armatures take part in the velocities of the second mechanism alone. Angles of spatial joints
    are found within half a turn of the start of ``then``. Contacts begin anew.

    Example:
        >>> import jax.numpy as jnp
        >>> import nsjax
        >>> from nsjax import multibody as mb, schemes
        >>> discs = [mb.body("one", mass=1.0, inertia=2.0), mb.body("other", mass=1.0, inertia=1.0)]
        >>> pins = [mb.hinge("a", "ground", "one"), mb.hinge("b", "ground", "other")]
        >>> apart = mb.assemble(*discs, *pins, start={"a": (0.0, 6.0)})
        >>> end = nsjax.simulate(apart, schemes.moreau(), dt=1e-2, steps=10)
        >>> locked = mb.assemble(*discs, pins[0], mb.fixed("dog", "one", "other", turned=-end.q[-1, 0]))
        >>> found = mb.change(end, locked)
        >>> float(found.problem.state.v[0]), float(found.loss)  # (2 * 6) / 3, 2 / 3 * 6**2 / 2
        (4.0, 12.0)
    """
    first, second = _mechanism(getattr(traj, "system", None)), _mechanism(then.system)
    if first.dimension != second.dimension:
        raise InputError(
            f"change: the mechanisms have {first.dimension} and {second.dimension} dimensions; give two of "
            "the plane, or two of space"
        )
    bodies = [x.name for x in second.topology.all_of("body")]
    known = [x.name for x in first.topology.all_of("body")]
    lost = next((x for x in bodies if x not in known), None)
    if lost is not None:
        raise InputError(
            f"change: the run has no body {lost!r}; bodies go on by their names: {', '.join(known)}"
        )
    t = jnp.asarray(traj.t[-1])
    given, p = prepared(traj.system, traj.params), prepared(then.system, then.params)
    before = first.scene(t, jnp.asarray(traj.q[-1]), jnp.asarray(traj.v[-1]), given)
    q = _placed(second, then, (t, p), _places(before, bodies))
    parts = second.topology.all_of("body")
    had = [momentum(before, part, given) for part in parts]
    v = _velocity(second, then, (t, q, p), had)
    after = second.scene(t, q, v, p)
    has = [momentum(after, part, p) for part in parts]
    impulses = {x: (new[0] - old[0], new[1] - old[1]) for x, new, old in zip(bodies, has, had, strict=True)}
    loss = _energy(before, bodies, given, had) - _energy(after, bodies, p, has)
    problem = Problem(system=then.system, params=then.params, state=State(t=t, q=q, v=v))
    return Change(problem=problem, impulses=impulses, loss=loss)


def _mechanism(system: Any) -> Mechanism:
    found = getattr(system, "parts", None)
    if not isinstance(found, Mechanism):
        raise InputError(
            "change: it takes a run and a problem of multibody.assemble, without inputs; give these"
        )
    if len(found.topology.all_of("beam")):
        raise InputError("change: the mechanism has beams; only rigid bodies can go on")
    return found


def _places(scene: Scene, bodies: list[str]) -> Array:
    """Origins and rotations of bodies, in one array; in the plane angles with their full turns."""
    found = []
    for name in bodies:
        found += [scene.position(name), jnp.reshape(scene.rotation(name), -1)]
    return jnp.concatenate(found)


@dataclasses.dataclass(frozen=True)
class Placement:
    """Equations (`root`) of the position at which bodies have given places; data: time, params, places."""

    mechanism: Mechanism

    @property
    def system(self) -> System:
        """The system whose positions are searched."""
        return self.mechanism.system()

    def residual(self, q: Array, data: tuple[Array, PyTree, Array]) -> Array:
        """How far the bodies are from their places [m], and in the entries of their rotations."""
        t, p, wanted = data
        bodies = [x.name for x in self.mechanism.topology.all_of("body")]
        return _places(self.mechanism.scene(t, q, None, p), bodies) - wanted


def _placed(mechanism: Mechanism, then: Problem, at: tuple[Array, PyTree], wanted: Array) -> Array:
    """Position at which the bodies have the places ``wanted``."""
    start = lax.stop_gradient(jnp.asarray(then.state.q, float))
    q, misfit = root(Placement(mechanism), (*at, wanted), start, np.ones(then.system.nv))
    left = jnp.max(jnp.abs(lax.stop_gradient(misfit)))
    # bodies of a run may have drifted off their joints
    near = 1e-7 * (1.0 + jnp.max(jnp.abs(lax.stop_gradient(wanted))))
    if not is_traced(left) and not left <= near:
        raise InputError(
            f"change: bodies are {float(left):.3g} (m or rad) from where the joints of the second "
            "mechanism allow them; give its joints the numbers of the moment, at=, on= and turned="
        )
    return jnp.where(left <= near, q, jnp.nan)


def _velocity(mechanism: Mechanism, then: Problem, at: tuple[Array, Array, PyTree], had: Any) -> Array:
    """Velocity of the mechanism that takes the momenta of its bodies, its constraints fulfilled."""
    (t, q, p), system = at, then.system
    bodies = [x.name for x in mechanism.topology.all_of("body")]

    def motions(v: Array) -> list[tuple[Array, Array]]:
        scene = mechanism.scene(t, q, v, p)
        return [(scene.velocity(x, p[x].com), scene.spin(x)) for x in bodies]

    none = jnp.zeros(system.nv)
    push = jax.vjp(motions, none)[1](had)[0]
    mass = mass_matrix(system, q, p)
    if not system.nb:
        return solve(mass, push[:, None])[:, 0]

    found = gap_rows(system, "constraint", t, q, p)
    rows, offset = found.jacobian(), found.offset
    answers = solve(mass, jnp.concatenate([push[:, None], rows.T], axis=1))
    x = jnp.linalg.pinv(rows @ answers[:, 1:], rtol=1e-12) @ (rows @ answers[:, 0] + offset)
    return answers[:, 0] - answers[:, 1:] @ x


def _energy(scene: Scene, bodies: list[str], p: PyTree, momenta: Any) -> Array:
    """Kinetic energy of bodies [J] by their momenta."""
    each = [
        jnp.sum(linear * scene.velocity(x, p[x].com)) + jnp.sum(turning * scene.spin(x))
        for x, (linear, turning) in zip(bodies, momenta, strict=True)
    ]
    return 0.5 * jnp.sum(jnp.stack(each))


def reaction(problem: Problem, joint: str) -> Fn:
    """The force of a joint as a function of the state, ``(t, q, v, p) -> (2,) or (3,)`` [N], for ``stop``
    and ``resets`` of `nsjax.simulate`: a bolt, weld or joint that breaks at its force, also by contacts.

    Forces of contacts, limits, dry friction and parts with ``active`` or ``locked`` are those of the laws
    on acceleration level at this state, with the accelerations ``a``::

        M a = h + W lambda,      0 <= d^2 g / dt^2  _|_  lambda_N >= 0        of contacts that are closed
        |lambda_T| <= mu lambda_N where they stick, and against the sliding where they slide

    A contact is closed if its gap is at most ``1e-6 (1 + |q|)`` and its rate at most ``1e-3 (1 + |v|)`` in
    magnitude, and it sticks, or is about to, if it slides no faster. Schemes leave rates of the order of
    the step in closed contacts.

    Args:
        problem: of `assemble`.
        joint: its name.

    Raises:
        InputError: for another problem, an unknown joint, and for contacts of which a step chooses a few.

    Order: instant and derivative are those of the scheme. The force is that of an instant, so that a
    joint breaks where its force grows steadily; impulses of impacts have no force, and break nothing.

    Limits: slides below 1e-3 m/s are taken as their end: for the time in which they stop, the friction is
    that of the motion to come. Where sticking contacts or dependent joints leave forces open, so is this.

    Example:
        >>> import jax.numpy as jnp
        >>> import nsjax
        >>> from nsjax import multibody as mb, schemes
        >>> weight = mb.assemble(
        ...     mb.body("bob", mass=1.0, com=1.0), mb.hinge("pin", "ground", "bob"), gravity=9.81
        ... )
        >>> force = mb.reaction(weight, "pin")
        >>> stop = lambda t, q, v, p: 20.0 - jnp.linalg.norm(force(t, q, v, p))
        >>> traj = nsjax.simulate(weight, schemes.half_explicit(), dt=1e-3, steps=2000, stop=stop)
        >>> round(-3 * 9.81 * float(jnp.sin(traj.q[-1, 0])), 3)  # 3 m g sin(angle) along the rod
        20.0
    """
    mechanism = _mechanism(problem.system)
    if problem.system.changing_contacts or problem.system.contact_set is not None:
        raise InputError(
            "reaction: the mechanism has contacts of which every step chooses a few; name those that act "
            "beside the joint, with contact(...), and leave the group out"
        )
    known = mechanism.part_names("joint")
    if joint not in known:
        raise InputError(f"reaction: unknown joint {joint!r}; choose one of {', '.join(known)}")
    return Reaction(mechanism, joint)


@dataclasses.dataclass(frozen=True)
class Reaction:
    """The function that `reaction` returns."""

    mechanism: Mechanism
    joint: str

    def __call__(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """The force at a state."""
        forces = self._forces(SystemState(system=self._system, params=p, state=State(t=t, q=q, v=v)))
        return Instant(self.mechanism, t, q, v, p, forces).carried(self.joint)[0]

    @property
    def _system(self) -> System:
        return bounded_as_contacts(bordered(self.mechanism.system()))

    def _forces(self, at: SystemState) -> Loads | None:
        """Forces of contacts and bounded rows by the laws on acceleration level; None: there are none."""
        own, system = self.mechanism.system(), at.system
        if not system.nc:
            return None
        slow = 1e-3  # part of ``1 + |v|`` that is zero
        size = slow * (1.0 + jnp.max(jnp.abs(at.v)))
        near = at.gap() <= 1e-6 * (1.0 + jnp.max(jnp.abs(at.q)))
        resting = near & (jnp.abs(row_groups(system).contacts(at.rates())[:, 0]) <= size)
        held = np.zeros(system.nc, bool)  # rows that come and go stay wherever they act
        first = own.nc + len(self.mechanism.presence.dry_frictions)
        held[first : first + sum(len(rows) for _, rows in self.mechanism.presence.switched)] = True
        rule = SlidingRule(criteria=dataclasses.replace(DEFAULT, slide=slow), stuck=jnp.asarray(held))
        x = consistent_forces(at, lax.stop_gradient(resting), EXACT, rule)[1]
        rows = row_groups(system)
        each, tangents = rows.contacts(x), 2 if own.dry_friction_discs else 1
        friction = by_row(own, each[own.nc :, 1 : 1 + tangents]) if own.nd else jnp.zeros(0)
        return Loads(each[: own.nc, 0], each[: own.nc, 1 : 1 + own.nt], rows.bilateral(x), friction)
