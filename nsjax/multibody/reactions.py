"""Reactions of joints from the balance of momentum of the bodies, the same in all coordinates.

At an instant, with the contact forces ``f`` of the scheme, accelerations and multipliers of the constraints
solve ``M a - G' x = h + W f``, ``G a = -gamma`` (least norm where constraints follow from others). For a
prescribed motion that is a table ``gamma`` lacks the jumps of its rate: its multiplier is that of the
scheme. The reaction of a joint of the tree is the rate of momentum of the bodies behind it, less all other
forces on them. The reaction of a joint that is a constraint follows from its multipliers.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.operators import contact_rows, gap_drift, gap_rows
from nsjax.core.step import mass_matrix
from nsjax.core.system import System, bordered, row_groups
from nsjax.linalg import solve
from nsjax.multibody import loads
from nsjax.multibody.contacts import gap_functions, turning_friction
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Frame, Scene
from nsjax.multibody.couplings import kind_of as coupling_kind
from nsjax.multibody.joints import kind_of
from nsjax.multibody.joints.joint_kind import across, axis_of, components
from nsjax.multibody.parts import GROUND, Part, lacks_acceleration, prescribed
from nsjax.multibody.topology import BODIES
from nsjax.types import Array, PyTree

# Forces and moments on two bodies from the multipliers of a joint that is a constraint.


def no_moment(scene: Scene) -> Array:
    """A zero moment: a number in the plane, a vector (3,) in space."""
    return jnp.zeros(()) if scene.dimension == 2 else jnp.zeros(3)


def joint_pushes(scene: Scene, part: Part, numbers: Any, x: Array) -> Iterator[loads.Push]:
    """Forces and moments of the multipliers ``x`` of a joint, by virtual work of its second body."""

    def rows(moved: str, shift: Array, turn: Array, point: Array) -> Any:
        frame = _displaced(scene, scene.frame(moved), shift, turn, point)
        there = dataclasses.replace(scene, frames={**_both(scene, part), moved: frame})
        return kind_of(part).constraint(there, part, numbers)

    yield from _by_work(scene, part, numbers, x, rows)


def switched_rates(scene: Scene, part: Part, numbers: Any) -> list[Any]:
    """Rates that a joint or coupling holds while it is active. Those of a joint are relative velocities,
    the same wherever the bodies stand to each other: it holds them as they are when it closes.
    """
    if part.option("joints") is not None:
        places, rates = zip(*(scene.coordinates(name) for name in part.option("joints")), strict=True)
        values = [[plane.value(x) for x in y] for y in (places, rates)]
        return [jax.jvp(lambda x: coupling_kind(part).residual(numbers, x), values[:1], values[1:])[1]]
    a, kind, (one, other) = scene.algebra, kind_of(part), part.bodies
    first = scene.frame(one)
    arm = a.subtract(scene.point(other, numbers.on), first.origin)
    rate = a.subtract(scene.motion(other, scene.arm(other, numbers.on)), scene.motion(one, arm))
    found = components(scene, rate)
    if scene.dimension == 2:
        turning = plane.plus(scene.frame(other).spin, plane.minus(first.spin))
        return [*found, turning] if kind.rigid else found
    if kind.swivels:
        return found
    turning = space.subtract(scene.frame(other).spin, first.spin)
    if kind.rigid:
        return [*found, *components(scene, turning)]
    return [*found, *(space.dot(space.turned(first.turn, x), turning) for x in across(axis_of(numbers, 3)))]


def rate_pushes(scene: Scene, part: Part, numbers: Any, x: Array) -> Iterator[loads.Push]:
    """Forces and moments of the multipliers ``x`` of rows on velocities alone, by virtual power."""
    a, rates = scene.algebra, switched_rates if part.option("switched") else kind_of(part).rates
    assert rates is not None
    still = {k: dataclasses.replace(y, velocity=a.ZERO, spin=None) for k, y in _both(scene, part).items()}

    def rows(moved: str, shift: Array, turn: Array, point: Array) -> Any:
        arm = a.subtract(scene.frame(moved).origin, a.vector(point))
        along = a.add(a.vector(shift), a.swing(turn, arm))
        frame = dataclasses.replace(scene.frame(moved), velocity=along, spin=turn)
        return rates(dataclasses.replace(scene, frames={**still, moved: frame}), part, numbers)

    yield from _by_work(scene, part, numbers, x, rows)


def _by_work(scene: Scene, part: Part, numbers: Any, x: Array, rows: Any) -> Iterator[loads.Push]:
    """Forces and moments by the work of ``x`` on the ``rows`` of a body moved by a shift and a turn."""
    a, (one, other) = scene.algebra, part.bodies
    moved, rest = (one, other) if other == GROUND else (other, one)
    point = scene.position(other, numbers.on)

    def work(shift: Array, turn: Array) -> Array:
        return jnp.sum(x * jnp.stack([plane.value(r) for r in rows(moved, shift, turn, point)]))

    force, turning = jax.grad(work, argnums=(0, 1))(jnp.zeros(scene.dimension), no_moment(scene))
    yield moved, a.vector(force), a.vector(point), turning
    yield rest, a.vector(-force), a.vector(point), -turning


def _both(scene: Scene, part: Part) -> dict[str, Frame]:
    return {name: scene.frame(name) for name in part.bodies}


def _displaced(scene: Scene, frame: Frame, shift: Array, turn: Array, point: Array) -> Frame:
    """A frame after a small displacement and a small rotation about a point."""
    origin = scene.algebra.array(frame.origin)
    if scene.dimension == 2:
        s, c = (0.0, 1.0) if frame.turn is None else frame.turn
        arm = origin - point
        place = origin + shift + turn * jnp.stack([-arm[1], arm[0]])
        angle = plane.plus(frame.angle, turn)
        return dataclasses.replace(
            frame, origin=(place[0], place[1]), turn=(s + c * turn, c - s * turn), angle=angle
        )
    place = origin + shift + jnp.cross(turn, origin - point)
    body = jnp.eye(3) if frame.turn is None else frame.turn
    return dataclasses.replace(frame, origin=place, turn=body + space.skew(turn) @ body)


@dataclasses.dataclass(frozen=True)
class Loads:
    """Forces or impulses of all rows at an instant: contacts (nc,), (nc, nt), constraints, bounded rows."""

    normal: Array
    tangential: Array
    constraint: Array
    dry_friction: Array


@dataclasses.dataclass(frozen=True)
class Instant:
    """A mechanism at an instant of a run.

    Args:
        mechanism: the mechanism.
        t, q, v: time, position and velocity.
        p: prepared params.
        forces: of contacts and bounded rows, as the scheme gives them; None: none act.
    """

    mechanism: Any
    t: Array
    q: Array
    v: Array
    p: PyTree
    forces: Loads | None = None

    @functools.cached_property
    def system(self) -> System:
        """The system with all constraints in its bordered matrix."""
        return bordered(self.mechanism.system())

    @functools.cached_property
    def scene(self) -> Scene:
        """Bodies and their motion."""
        return self.mechanism.scene(self.t, self.q, self.v, self.p)

    @functools.cached_property
    def given(self) -> np.ndarray:
        """Numbers of the constraint rows whose multipliers are those of the scheme."""
        of, dimension, names = self.mechanism.topology.of, self.scene.dimension, self.mechanism.rows.present
        found: list[str] = []
        for part in of.values() if self.forces is not None else ():
            for what in (x for x in ("motion", "path") if part.option(x) is not None):
                if lacks_acceleration(functools.partial(prescribed, part, what, self.p[part.name])):
                    drives = what == "motion"
                    found += [f"{part.name}.motion"] if drives else kind_of(part).row_names(part, dimension)
        return np.flatnonzero([x in found for x in names])

    @functools.cached_property
    def balance(self) -> tuple[Array, Array]:
        """Accelerations (nv,) and multipliers of the constraints (nb,)."""
        s, t, q, v, p = self.system, self.t, self.q, self.v, self.p
        push = s.force(t, q, v, p)
        if self.forces is not None and s.nc:
            each = jnp.concatenate([self.forces.normal[:, None], self.forces.tangential], axis=1)
            push = push + contact_rows(s, t, q, p).force(row_groups(s).stack(each))
        if self.forces is not None and s.nd:
            push = push + jax.vjp(lambda v: s.dry_friction(t, q, v, p), v)[1](self.forces.dry_friction)[0]
        mass = mass_matrix(s, q, p)
        if not s.nb:
            return solve(mass, push[:, None])[:, 0], jnp.zeros(0)
        rows = gap_rows(s, "constraint", t, q, p).jacobian()
        drift = gap_drift(s, t, q, v, p, "constraint")
        known, found = self.given, np.setdiff1d(np.arange(s.nb), self.given)
        x = jnp.zeros(s.nb)
        if len(known):
            assert self.forces is not None
            x = jnp.where(np.isin(np.arange(s.nb), known), self.forces.constraint, 0.0)
            push, rows, drift = push + rows.T @ x, rows[found], drift[found]
        answers = solve(mass, jnp.concatenate([push[:, None], rows.T], axis=1))
        free = rows @ answers[:, 0] + drift
        # singular value of the Delassus operator of the constraints, relative to the largest, below which
        # rows are dependent
        rank = 1e-12
        y = -jnp.linalg.pinv(rows @ answers[:, 1:], rtol=rank) @ free
        return answers[:, 0] + answers[:, 1:] @ y, x.at[found].set(y) if len(known) else y

    @functools.cached_property
    def acting(self) -> Loads:
        """All forces of rows at the instant."""
        s, x = self.system, self.balance[1]
        x = self.mechanism.rows.all_of(x)
        if self.forces is None:
            return Loads(jnp.zeros(s.nc), jnp.zeros((s.nc, s.nt)), x, jnp.zeros(s.nd))
        return dataclasses.replace(self.forces, constraint=x)

    @functools.cached_property
    def rates(self) -> dict[str, tuple[Array, Array]]:
        """Rates of the momentum of every body, and of its angular momentum about its centre of mass."""
        a = self.balance[0]

        def momenta(s: Array) -> dict[str, tuple[Array, Array]]:
            q = self.system.retract(self.q, s * self.v)
            # the position of a motion with the acceleration a, to first order in s
            scene = self.mechanism.scene(self.t + s, q, self.v + s * a, self.p)
            return {part.name: momentum(scene, part, self.p) for part in self.bodies}

        zero = jnp.zeros(())
        return jax.jvp(momenta, (zero,), (jnp.ones(()),))[1]

    @property
    def bodies(self) -> tuple[Part, ...]:
        """Parts that are bodies."""
        return self.mechanism.topology.all_of(*BODIES)

    def pushes(self, given: Loads) -> Iterator[loads.Push]:
        """Forces and moments on bodies of contacts, constraints, limits, dry friction and drives."""
        topology, scene = self.mechanism.topology, self.scene
        yield from contact_pushes(scene, topology, self.p, given)
        mechanism, turning = self.mechanism, self.mechanism.presence.turning
        if turning:
            moments, meetings = given.dry_friction[-len(turning) :], mechanism.named.meetings(scene, self.p)
            yield from turning_friction.pushes(scene, mechanism.named, meetings, moments)
        for name in topology.closures:
            yield from self.row_pushes(name, given)
        for name, _ in self.mechanism.presence.switched:
            if topology.of[name].bodies:
                yield from self.row_pushes(name, given)
        for k, part in enumerate(mechanism.capstans):
            rub: Any = loads.line_of(scene, topology, part, self.p).rub
            yield from rub(given.tangential[k - len(mechanism.presence.limits), 0])
        for name, effort in self.efforts(given):
            if name in topology.closures:
                yield from loads.joint_effort(scene, topology.of[name], self.p[name], effort)
            elif loads.has_line(topology.of[name]):
                yield from loads.line_of(scene, topology, topology.of[name], self.p).act(effort)

    def row_pushes(self, joint: str, given: Loads) -> Iterator[loads.Push]:
        """Forces and moments on bodies of the rows of a joint that is a constraint."""
        of, closures = self.mechanism.topology.of, self.mechanism.topology.closures
        if of[joint].option("switched"):
            yield from rate_pushes(self.scene, of[joint], self.p[joint], self.switched(given)[joint])
            return
        ends = np.cumsum([0, *(len(kind_of(of[name]).rows[self.scene.dimension]) for name in closures)])
        first, last = ends[(k := closures.index(joint)) : k + 2]
        if last > first:
            yield from joint_pushes(self.scene, of[joint], self.p[joint], given.constraint[first:last])
        if kind_of(of[joint]).rates is not None:
            yield from rate_pushes(self.scene, of[joint], self.p[joint], self.slips(joint, given))

    def efforts(self, given: Loads) -> Iterator[tuple[str, Array]]:
        """Moments and forces on the coordinates of joints and tendons: drives, limits, dry friction."""
        presence, of = self.mechanism.presence, self.mechanism.topology.of
        rows = given.constraint.shape[0] - len(self.mechanism.rows.rates)
        drives = given.constraint[rows - len(presence.motions) - len(presence.couplings) : rows]
        for k, name in enumerate(presence.motions):
            yield name, drives[k]
        drive = dict(zip(presence.couplings, drives[len(presence.motions) :], strict=True))
        drive |= {name: x[0] for name, x in self.switched(given).items() if not of[name].bodies}
        for name, multiplier in drive.items():
            part = of[name]
            places = [plane.value(self.scene.coordinates(x)[0]) for x in part.option("joints")]
            slopes = jax.grad(lambda x, part=part: coupling_kind(part).residual(self.p[part.name], x))(
                places
            )
            for joint, slope in zip(part.option("joints"), slopes, strict=True):
                yield joint, slope * multiplier
        stops = given.normal[self.system.nc - len(presence.limits) :]
        for k, (name, which) in enumerate(presence.limits):
            yield name, stops[k] if which == "lower" else -stops[k]
        for k, name in enumerate(presence.dry_frictions):
            yield name, given.dry_friction[k]

    def switched(self, given: Loads) -> dict[str, Array]:
        """Multipliers of the rows of joints and couplings that come and go."""
        found, first = {}, len(self.mechanism.presence.dry_frictions)
        for name, rows in self.mechanism.presence.switched:
            found[name] = given.dry_friction[first : first + len(rows)]
            first += len(rows)
        return found

    def slips(self, joint: str, given: Loads) -> Array:
        """Multipliers of the rows of a joint on velocities alone."""
        part, names = self.mechanism.topology.of[joint], self.mechanism.rows.rates
        own = kind_of(part).rate_names(part, self.scene.dimension)
        first = given.constraint.shape[0] - len(names) + names.index(own[0])
        return given.constraint[first : first + len(own)]

    def carried(self, joint: str) -> tuple[Array, Array]:
        """Force [N] of a joint on its second body, moment about its point [N m], in ground axes."""
        topology, scene = self.mechanism.topology, self.scene
        part = topology.of[joint]
        point = scene.position(part.bodies[1], self.p[joint].on)
        link = topology.link_of_joint.get(joint)
        if link is None:
            return self.of_constraint(joint, self.acting)
        outer = self.total(self.pushes(self.acting), loads.pushes(scene, topology, self.p))
        behind = [x.body for x in topology.links if link.body in self.path(x.body)]
        force, turning, moment = jnp.zeros(scene.dimension), no_moment(scene), scene.algebra.moment
        for name in behind:
            push, about = outer[name]
            centre = scene.position(name, self.p[name].com)
            need, spin = self.rates[name]
            weight = self.p[name].mass * scene.algebra.array(self.mechanism.gravity(self.p))
            need = need - weight
            force = force + need - push
            # moments about the joint point; moments of `outer` are about the origin of the ground
            turning = turning + spin + moment(centre - point, need) - about + moment(point, push)
        return (-force, -turning) if link.reversed else (force, turning)

    def path(self, body: str) -> list[str]:
        """Names of the bodies from a body to the ground."""
        found = [body]
        while found[-1] != GROUND:
            found.append(self.mechanism.topology.link_of[found[-1]].parent)
        return found

    def of_constraint(self, joint: str, given: Loads) -> tuple[Array, Array]:
        """Force and moment of a joint that is a constraint, with the efforts on its coordinate."""
        part, numbers = self.mechanism.topology.of[joint], self.p[joint]
        found = list(self.row_pushes(joint, given))
        for name, effort in self.efforts(given):
            if name == joint:
                found += loads.joint_effort(self.scene, part, numbers, effort)
        second = part.bodies[1]
        force, about = self.total(x for x in found if x[0] == second)[second]
        return force, about - self.scene.algebra.moment(self.scene.position(second, numbers.on), force)

    def total(self, *found: Iterator[loads.Push]) -> dict[str, tuple[Array, Array]]:
        """Total force on each body, and total moment about the origin of the ground."""
        scene, a, names = self.scene, self.scene.algebra, [part.name for part in self.bodies]
        start = jnp.zeros(scene.dimension), no_moment(scene)
        result = dict.fromkeys((*names, GROUND), start)
        for body, force, point, turning in (x for source in found for x in source):
            push, about = result[body]
            if force is not None:
                push, about = push + a.array(force), about + a.moment(a.array(point), a.array(force))
            if turning is not None:
                about = about + turning
            result[body] = push, about
        return result


def momentum(scene: Scene, part: Part, p: PyTree) -> tuple[Array, Array]:
    """Momentum and angular momentum about the centre of mass of a body, in the axes of the ground."""
    numbers = p[part.name]
    linear = numbers.mass * scene.velocity(part.name, numbers.com)
    spin = scene.spin(part.name)
    if scene.dimension == 2:
        return linear, plane.value(numbers.inertia) * spin
    if numbers.inertia is None:
        return linear, jnp.zeros(3)
    turn, inertia = scene.rotation(part.name), jnp.asarray(numbers.inertia, float)
    own = turn.T @ spin
    own = inertia @ own if inertia.ndim == 2 else inertia * own
    return linear, turn @ own


def _spread(scene: Scene, x: Any, k: int, n: int) -> Array:
    """Vector k of n vectors as an array; of one vector for all, this one."""
    if scene.dimension == 2:
        return jnp.stack([jnp.broadcast_to(plane.value(c), (n,))[k] for c in x])
    x = space.array(x)
    return x if x.ndim == 1 else x[:, k]


def contact_pushes(scene: Scene, topology: Any, p: PyTree, given: Loads) -> Iterator[loads.Push]:
    """Forces of contacts on both of their bodies."""
    first = 0
    for part in topology.all_of("contact"):
        meeting = gap_functions.meetings(scene, part, p[part.name])
        n = gap_functions.count(part, p[part.name], scene.dimension)
        for k in range(n):
            force = given.normal[first + k] * _spread(scene, meeting.normal, k, n)
            for i, tangent in enumerate(meeting.tangents[: given.tangential.shape[1]]):
                force = force + given.tangential[first + k, i] * _spread(scene, tangent, k, n)
            where = _spread(scene, meeting.here, k, n)
            first_body = meeting.first if part.option("nodes") is None else f"{meeting.first}.{k}"
            yield first_body, force, where, None
            yield meeting.second, -force, where, None
        first += n


def row_loads(output: Any) -> tuple[Loads | None, Loads | None]:
    """Forces and impulses of a saved row of a trajectory; None where they were not saved."""
    if output is None:
        return None, None
    forces = Loads(
        output.force_normal, output.force_tangential, output.constraint_force, output.dry_friction_force
    )
    impulses = Loads(
        output.impulse_normal, output.impulse_tangential, output.constraint_impulse,
        output.dry_friction_impulse,
    )  # fmt: skip
    return forces, impulses


def joint_row(instant: Instant, joint: str, impulses: Loads | None) -> dict[str, Array]:
    """Quantities of a joint at a row, for `Trajectory.joint`: force, torque, and the terms of its impulse.

    Returns:
        ``force``, ``torque``; ``position`` and ``rate`` of a hinge or slide; ``momentum`` of the bodies
        behind the joint, ``outer`` force on them, and ``blow``, the impulses on them since the row before.
        The impulse of the joint is ``d momentum - int outer dt - blow``; for a joint that is a constraint,
        only ``blow`` is not zero.
    """
    topology, scene = instant.mechanism.topology, instant.scene
    force, turning = instant.carried(joint)
    found = {"force": force, "torque": turning}
    part, zero = topology.of[joint], jnp.zeros(scene.dimension)
    if kind_of(part).measure is not None:
        x, rate = scene.coordinates(joint)
        found |= {"position": plane.value(x), "rate": plane.value(rate)}
    if impulses is None:
        return found
    impulses = dataclasses.replace(impulses, constraint=instant.mechanism.rows.all_of(impulses.constraint))
    # a joint of the tree has no multiplier: its load is what the momentum of all behind it lacks
    link = topology.link_of_joint.get(joint)
    if link is None:
        own, _ = instant.of_constraint(joint, impulses)
        return found | {"momentum": zero, "outer": zero, "blow": -own}
    blows = instant.total(instant.pushes(impulses))
    pushes = instant.total(loads.pushes(scene, topology, instant.p))
    weight = scene.algebra.array(instant.mechanism.gravity(instant.p))
    momenta, outer, blow = zero, zero, zero
    for name in (x.body for x in topology.links if link.body in instant.path(x.body)):
        momenta = momenta + momentum(scene, topology.of[name], instant.p)[0]
        outer = outer + pushes[name][0] + instant.p[name].mass * weight
        blow = blow + blows[name][0]
    sign = -1.0 if link.reversed else 1.0
    return found | {"momentum": sign * momenta, "outer": sign * outer, "blow": sign * blow}
