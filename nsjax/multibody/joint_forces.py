"""What acts in the joints of a tree: springs, motors, servos, limits, dry friction and damping."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.core.operators import jacobian
from nsjax.forms import quantity
from nsjax.math import dealt, picked, taken
from nsjax.multibody.contacts import gap_functions
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene, constants
from nsjax.multibody.loads import actuator
from nsjax.multibody.loads import kind_of as load_kind
from nsjax.multibody.numbers import side_by_side
from nsjax.multibody.parts import GROUND, Part, number, record_of
from nsjax.multibody.topology import Link, Topology
from nsjax.types import Array, PyTree, is_traced, record

# Springs, motors, limits and dry friction of joints of a spatial tree with coordinates in ``q``.
#
# They act directly on the velocities of their joints. Equal loads are stacked in arrays and evaluated as
# a batch, so that a program does not grow with their number.


class AtOnce:
    """Base class of motor laws without branches, which are evaluated for many joints as a batch."""

    def __call__(self, t: Array, x: Array, rate: Array, own: Any) -> Array:
        """Effort at a joint's coordinate and rate."""
        raise NotImplementedError


@record()
class JointNumbers:
    """Numbers of equal loads, group by group (None for a law of a user), and bounds (k,) of the limits."""

    efforts: tuple[Any, ...]
    bounds: Any


@dataclasses.dataclass(frozen=True)
class OwnJoints:
    """Loads, limits and dry friction of the hinges and slides of a spatial tree.

    Args:
        topology: of the tree.
        limits: all limits ``(joint, "lower" or "upper")`` of the mechanism, in their order.
        dry_frictions: names of all joints with dry friction, in their order.
    """

    topology: Topology
    limits: tuple[tuple[str, str], ...]
    dry_frictions: tuple[str, ...]

    @functools.cached_property
    def links(self) -> dict[str, Link]:
        """Links by joint; empty in the plane and in absolute coordinates."""
        if self.topology.dimension == 2 or self.topology.coordinates == "absolute":
            return {}
        every = self.topology.link_of_joint.items()
        return {name: link for name, link in every if link.kind.measure is not None}

    @functools.cached_property
    def limits_held(self) -> tuple[tuple[str, str], ...]:
        """Limits of these joints."""
        return tuple(x for x in self.limits if x[0] in self.links)

    @functools.cached_property
    def limits_apart(self) -> tuple[tuple[str, str], ...]:
        """Limits of other joints, and of tendons."""
        return tuple(x for x in self.limits if x[0] not in self.links)

    @functools.cached_property
    def order(self) -> np.ndarray | None:
        """Index of every limit in `limits_held` and then `limits_apart`; None if the order is the same."""
        both = [*self.limits_held, *self.limits_apart]
        found = np.array([both.index(x) for x in self.limits], int)
        return None if np.array_equal(found, np.arange(len(both))) else found

    @property
    def hold_dry_frictions(self) -> bool:
        """Whether all dry friction belongs to these joints."""
        return all(name in self.links for name in self.dry_frictions)

    @functools.cached_property
    def loads(self) -> tuple[Part, ...]:
        """Springs and motors of these joints."""
        return tuple(x for x in self.topology.loads if x.option("joint") in self.links)

    @functools.cached_property
    def others(self) -> tuple[Part, ...]:
        """All other loads."""
        own = {x.name for x in self.loads}
        return tuple(x for x in self.topology.loads if x.name not in own)

    def _groups(self, p: PyTree) -> list[list[Part]]:
        """Groups of loads of one kind with the same numbers, in the order of the velocities on which they
        act; a load with a user's law is one of its own.
        """
        groups: dict[Any, list[Part]] = {}
        for part in self.loads:
            law = part.option("law")
            leaves, structure = jax.tree.flatten(p[part.name])
            alike = (structure, tuple(np.shape(x) for x in leaves)) if _at_once(part) else part.name
            groups.setdefault((part.kind, law, alike), []).append(part)
        place = lambda part: self.links[part.option("joint")].v  # noqa: E731
        return [sorted(x, key=place) for x in groups.values()]

    def stacked(self, p: PyTree) -> JointNumbers:
        """Numbers of loads and limits, stacked in arrays."""
        efforts = []
        for alike in self._groups(p):
            efforts.append(side_by_side([p[x.name] for x in alike]) if _at_once(alike[0]) else None)
        bounds = [jnp.asarray(getattr(p[name], which), float) for name, which in self.limits_held]
        return JointNumbers(efforts=tuple(efforts), bounds=jnp.stack(bounds) if bounds else None)

    def ready(self, p: PyTree) -> JointNumbers:
        """Stacked numbers, from prepared params, or made from plain ones."""
        found: JointNumbers | None = constants(p).joints
        return self.stacked(p) if found is None else found

    def efforts(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """Forces (nv,) of springs and motors on the velocities of their joints."""
        total = jnp.zeros_like(v)
        for alike, own in zip(self._groups(p), self.ready(p).efforts, strict=True):
            links, part = [self.links[x.option("joint")] for x in alike], alike[0]
            x, rate = picked(q, np.array([s.q for s in links])), picked(v, np.array([s.v for s in links]))
            effort = load_kind(part).effort or _none
            if own is None:
                made = effort(part, p[part.name], t, x[0], rate[0])
            else:
                made = jax.vmap(functools.partial(effort, part), (0, None, 0, 0))(own, t, x, rate)
            if made is not None:
                places = np.array([s.v for s in links])
                total = total + dealt(jnp.broadcast_to(made, x.shape), places, v.shape[0])
        return total

    # Limits of joints and stops of tendons as contacts. The gap of a limit on an entry of ``q`` is the
    # difference of this entry and a bound; its row is constant. The coordinate of a joint that closes a
    # loop, and the length of a tendon, are functions of the position: the row of their limit is the
    # derivative of this function.

    def gaps(self, scene: Scene, q: Array, p: PyTree) -> list[Any]:
        """Gaps of all limits in their order, as scalars or arrays [m or rad]."""
        others = self._gaps_apart(scene, p)
        if not self.limits_held:
            return others
        sides = np.array([1.0 if which == "lower" else -1.0 for _, which in self.limits_held])
        x = picked(q, np.array([self.links[name].q for name, _ in self.limits_held]))
        found = [sides * (x - self.ready(p).bounds), *others]
        return found if self.order is None else [taken(gap_functions.flat(found), self.order)]

    def _gaps_apart(self, scene: Scene, p: PyTree) -> list[Any]:
        """Gaps of `limits_apart`."""
        found = []
        for name, which in self.limits_apart:
            x, bound = scene.coordinates(name)[0], getattr(p[name], which)
            lower = which == "lower"
            found.append(plane.plus(x, -bound) if lower else plane.plus(bound, plane.minus(x)))
        return found

    def rows(
        self, place: Callable[[Array, Array], Scene], retract: Any, at: tuple[Array, Array], p: PyTree,
        width: int,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Rows (k, width, nv) of all limits in their order, and their rates (k, width) at zero generalised
        velocity; the tangential rows are zero. ``place``: bodies at a time and position; ``at``: time and
        position; ``width``: rows of a contact.
        """
        (t, q), nv, count = at, self.topology.sizes[1], len(self.limits_apart)
        held = np.zeros((len(self.limits_held), nv))
        for k, (name, which) in enumerate(self.limits_held):
            held[k, self.links[name].v] = 1.0 if which == "lower" else -1.0
        wt, offset = _placed(held, width), np.zeros((len(held), width))
        if not count:
            return wt, offset

        def apart(t: Array, q: Array) -> Array:
            return gap_functions.flat(self._gaps_apart(place(t, q), p))

        moved = jacobian(lambda xi: apart(t, retract(q, xi)), jnp.zeros(nv, q.dtype), count)
        rest = jax.jvp(lambda s: apart(s, q), (t,), (jnp.ones_like(t),))[1]
        found = (jnp.concatenate(x) for x in ((wt, _placed(moved, width)), (offset, _placed(rest, width))))
        made = tuple(x if self.order is None else taken(x, self.order) for x in found)
        return made[0], made[1]

    def rates(self, v: Array) -> Array:
        """Rates (k,) of the joints with dry friction [m/s or rad/s]."""
        return picked(v, np.array([self.links[name].v for name in self.dry_frictions]))


def _placed(x: Any, width: int) -> Any:
    """Rows (k, ...) as the normal rows of contacts (k, width, ...); the tangential rows are zero."""
    pad = np.pad if isinstance(x, np.ndarray) else jnp.pad
    return pad(x[:, None], [(0, 0), (0, width - 1), *[(0, 0)] * (x.ndim - 1)])


def _none(part: Part, numbers: Any, t: Any, x: Any, rate: Any) -> None:
    """Effort of a load that exerts none on a coordinate: None."""


def _at_once(part: Part) -> bool:
    """Whether the law of a spring or motor is one of the package."""
    law = part.option("law")
    return law is None or isinstance(law, AtOnce)


# Damping of joints over the velocities of a tree: what schemes may take implicitly.


@dataclasses.dataclass(frozen=True)
class JointDamping:
    """``D`` of the loads in joints of a tree, ``-d effort / d rate`` of each: of springs with dampers,
    servos and motors with a law; and of free bodies that files damp.

    What pushes in the direction of the rate, and joints that close loops, count nothing: they stay
    explicit. Beyond a limit an effort does not change with the rate, and its part is zero. ``topology``: of
    the tree; ``own``: its joints in space.
    """

    topology: Topology
    own: OwnJoints

    def of_space(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """``D`` (nv,): every joint has velocities of its own."""
        found = jnp.zeros_like(v)
        if self.own.loads:
            found = _resisting(lambda v: self.own.efforts(t, q, v, p), v)
        for part, places in self._balls:
            if p[part.name].damping is not None:
                found = found + p[part.name].damping * places
        for part, places in self._free:
            found = found + p[part.name].own * places
        return found

    @functools.cached_property
    def _free(self) -> tuple[tuple[Part, np.ndarray], ...]:
        """Loads whose law names the velocities of a free body that it damps, and a mask (nv,) of these."""
        every, found = np.arange(self.topology.sizes[1]), []
        for part in self.own.others:
            body, which = getattr(part.option("law"), "damps", ("", slice(0)))
            link = self.topology.link_of.get(body)
            if link is not None and link.free:
                found.append((part, 1.0 * np.isin(every, every[link.rates][which])))
        return tuple(found)

    @functools.cached_property
    def _balls(self) -> tuple[tuple[Part, np.ndarray], ...]:
        """Springs on balls of the tree, and a mask (nv,) of the velocities of these balls."""
        links, every = self.topology.link_of_joint, np.arange(self.topology.sizes[1])
        found = [(x, links.get(x.option("joint"))) for x in self.own.others]
        return tuple(
            (part, 1.0 * ((every >= link.rates.start) & (every < link.rates.stop)))
            for part, link in found
            if link is not None and link.kind.swivels
        )

    def of_plane(self, scene: Scene, turns: dict[str, int], group: dict[str, str], p: PyTree) -> Array:
        """``D`` (nv, nv) of hinges, from their ``turns`` in ``q`` by group and the group of every body."""
        links, n = self.topology.link_of_joint, self.topology.sizes[1]
        found = jnp.zeros((n, n))
        for part in self.topology.loads:
            link, effort = links.get(part.option("joint")), load_kind(part).effort
            if link is None or link.kind.measure is None or effort is None:
                continue
            row = np.zeros(n)
            row[link.v] = 1.0
            if link.kind.turns and group[link.parent] != GROUND:
                row[turns[group[link.parent]]] -= 1.0
            x, rate = scene.coordinates(part.option("joint"))
            law = functools.partial(_effort, effort, part, p[part.name], scene.time, x)
            found = found + _resisting(law, rate) * np.outer(row, row)
        return found


def _effort(effort: Callable[..., Any], *given: Any) -> Array:
    """An effort as an array, zero for none."""
    made = effort(*given)
    return jnp.zeros(()) if made is None else jnp.asarray(made, float)


def _resisting(effort: Callable[[Array], Array], rate: Array) -> Array:
    """``-d effort / d rate`` of efforts that depend on their own rates alone, where it is positive."""
    slope = -jax.jvp(effort, (rate,), (jnp.ones_like(rate),))[1]
    return jnp.where(slope > 0.0, slope, 0.0)


# Position and velocity servos in hinges and slides.


def within(x: Array, bounds: Any) -> Array:
    """``x`` limited to ``bounds`` (2,), at a bound with the derivative one; None: not limited."""
    if bounds is None:
        return x
    return jnp.where(x < bounds[0], bounds[0], jnp.where(x > bounds[1], bounds[1], x))


@record()
class Controlled:
    """Numbers that every actuator of a model file has.

    Args:
        control: ``u``, constant; clipped to ``control_range``.
        gear: ratio of the actuator's length to the coordinate.
        control_range: bounds (2,) of the control; None: none.
        force_range: bounds (2,) of the force before the gear; None: none.
        joint_range: bounds (2,) of the effort, after the gear; None: none.
    """

    control: Array | float
    gear: Array | float
    control_range: Any = None
    force_range: Any = None
    joint_range: Any = None

    @property
    def target(self) -> str:
        """Name of the number that a controller sets."""
        return "control"

    @property
    def command(self) -> Array:
        """The control inside its bounds."""
        return within(jnp.asarray(self.control, float), self.control_range)

    def effort(self, force: Array) -> Array:
        """Effort on the coordinate by a force before the gear."""
        return within(self.gear * within(force, self.force_range), self.joint_range)


@record()
class ServoNumbers:
    """``effort = stiffness (position - x) + damping (velocity - x')``, inside ``limits`` (2,)."""

    stiffness: Any = quantity(default=None, shape="one", least=0.0)
    position: Any = quantity(default=None, shape="one")
    damping: Any = quantity(default=None, shape="one", least=0.0)
    velocity: Any = quantity(default=None, shape="one")
    limits: Any = None

    @property
    def target(self) -> str:
        """Name of the number that an input of the servo sets."""
        return "position" if self.stiffness is not None else "velocity"


@dataclasses.dataclass(frozen=True)
class Follow(AtOnce):
    """The law of a servo: proportional-derivative control with limits of the effort."""

    def __call__(self, t: Array, x: Array, rate: Array, own: ServoNumbers) -> Array:
        """Effort at a joint's coordinate and rate."""
        effort = jnp.zeros(jnp.shape(x))
        if own.stiffness is not None:
            effort = effort + own.stiffness * (own.position - x)
        if own.damping is not None:
            effort = effort + own.damping * (own.velocity - rate)
        return within(effort, own.limits)


def servo(
    name: str, joint: str, *, position: Any = None, velocity: Any = None, stiffness: Any = None,
    damping: Any = None, limit: Any = None,
) -> Part:  # fmt: skip
    """A position or velocity servo in a hinge or slide.

    Its effort is ``k (x_d - x) + d (x_d' - x')``, cut off at its limits.

    Args:
        name: of the servo.
        joint: name of its joint.
        position: desired coordinate ``x_d`` [rad] or [m], with ``stiffness``; 0 if not given.
        velocity: desired rate ``x_d'`` [rad/s] or [m/s], with ``damping``; 0 if not given.
        stiffness: ``k`` [N m/rad] or [N/m]; None: a velocity servo.
        damping: ``d`` [N m s/rad] or [N s/m].
        limit: largest effort [N m] or [N] in both directions, or a pair of the least and the largest.

    Inputs of `nsjax.with_inputs` and `nsjax.stepper` set the desired coordinate by the name of the servo;
    for a servo without stiffness they set the desired rate. ``"name.own.velocity"`` and the like set its
    other numbers.

    Raises:
        InputError: if neither stiffness nor damping is given, for a desired value without its gain, and for
            limits in the wrong order.

    Limits: the effort has a kink where it reaches a limit. A stiff servo needs an implicit scheme, or steps
    well below ``sqrt(m / k)``. A damping above ``2 m / dt`` makes explicit schemes unstable; use
    ``schemes.moreau(joint_damping="implicit")``. Efforts at a limit stay explicit under that scheme, too.

    Example:
        >>> from nsjax.multibody import servo
        >>> servo("knee_motor", "knee", position=0.3, stiffness=50.0, damping=2.0, limit=20.0).kind
        'actuator'
    """
    if stiffness is None and damping is None:
        raise InputError(f"servo {name!r}: neither stiffness nor damping; give one of them")
    for target, value, gain, factor in (
        ("position", position, "stiffness", stiffness), ("velocity", velocity, "damping", damping),
    ):  # fmt: skip
        if value is not None and factor is None:
            raise InputError(f"servo {name!r}: {target} = {value} has no gain; give {gain} with it")
    own = record_of(
        ServoNumbers, "servo", name, stiffness=stiffness, damping=damping, limits=_limits(name, limit),
        position=None if stiffness is None else position or 0.0,
        velocity=None if damping is None else velocity or 0.0,
    )  # fmt: skip
    return actuator(name, joint, law=Follow(), own=own)


def _limits(name: str, limit: Any) -> Any:
    if limit is None:
        return None
    if is_traced(limit):
        return jnp.stack([-limit, limit]) if jnp.ndim(limit) == 0 else limit
    limit = number("servo", name, "limit", limit)
    bounds = np.array([-limit, limit]) if np.ndim(limit) == 0 else limit
    if bounds.shape != (2,) or not bounds[0] < bounds[1]:
        raise InputError(
            f"servo {name!r}: limit = {limit}; give a positive number, or the least and the largest effort"
        )
    return bounds
