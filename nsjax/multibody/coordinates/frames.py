"""Frames of the bodies of a mechanism, which loads, joints and contacts read; what a step holds fixed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.errors import check_known
from nsjax.core.keys import Prepared
from nsjax.math import picked
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.parts import GROUND
from nsjax.types import Array, PyTree, record

ALGEBRA: dict[int, ModuleType] = {2: plane, 3: space}
"""Modules of vector functions by dimension."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Frame:
    """Position and motion of a body at an instant, in the axes of the ground; of several bodies along a
    last axis of each value.

    Args:
        origin: of the body axes [m].
        turn: rotation of the body axes: ``(sin, cos)`` in the plane, a matrix (3, 3) in space; None: none.
        angle: in the plane [rad], with all full turns.
        velocity: of the origin [m/s]; None or zeros where motion is not needed.
        spin: angular velocity [rad/s].
    """

    origin: Any
    turn: Any = None
    angle: Any = None
    velocity: Any = None
    spin: Any = None


class Frames(Mapping[str, Frame]):
    """Frames by name, each made on first access.

    Args:
        names: of the bodies, the ground first.
        make: ``name -> Frame``.
        kept: whether a frame is stored once made. A frame that is first made within a branch or a loop
            must not be stored: its tracers are invalid outside.
        every: makes the frames of all bodies but the ground as one `Frame` with a last axis, in the order
            of the names; None: not available.
    """

    def __init__(
        self, names: tuple[str, ...], make: Callable[[str], Frame], kept: bool = True,
        every: Callable[[], Frame] | None = None,
    ) -> None:  # fmt: skip
        self._names, self._make, self._kept, self._made = names, make, kept, dict[str, Frame]()
        self.every = every

    def __getitem__(self, name: str) -> Frame:
        if name in self._made:
            return self._made[name]
        if name not in self._names:
            raise KeyError(name)
        made = self._make(name)
        if self._kept:
            self._made[name] = made
        return made

    def unstored(self) -> Frames:
        """The same frames, none of which is stored."""
        self[self._names[-1]]  # makes the values that all frames share
        return Frames(self._names, self._make, kept=False, every=self.every)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclasses.dataclass(frozen=True)
class TakenFrames(Mapping[str, Frame]):
    """Frames by name, each taken from the arrays of all bodies on access; the name of a beam gives those of
    all its nodes as one frame with vectors (3, k) and turns (k, 3, 3).
    """

    names: tuple[str, ...]
    places: Mapping[str, Any]
    taken: Any
    parts: tuple[Any, ...]

    def __getitem__(self, name: str) -> Frame:
        return self.taken(self.places[name])

    def every(self) -> Frame:
        """Frames of all bodies but the ground, along a last axis."""
        return self.at(slice(1, None))

    def at(self, numbers: Any) -> Frame:
        """Frames of bodies by their numbers, an array (k,) or a slice (ground: 0), along a last axis."""
        origin, turn, angle, velocity, spin = jax.tree.map(
            lambda x: jnp.moveaxis(x[numbers], 0, -1), self.parts
        )
        if angle is not None:
            origin, velocity = (origin[0], origin[1]), (velocity[0], velocity[1])
        return Frame(origin, turn, angle, velocity, spin)

    def __iter__(self) -> Iterator[str]:
        return iter((GROUND, *self.names))

    def __len__(self) -> int:
        return len(self.names) + 1


@dataclasses.dataclass(frozen=True)
class Scene:
    """All bodies at an instant, and the coordinates of joints.

    Args:
        dimension: 2 or 3.
        time: [s].
        frames: of the bodies by name, the ground among them.
        measure: function ``(scene, name) -> (value, rate)`` of the coordinate of a joint.
    """

    dimension: int
    time: Any
    frames: Mapping[str, Frame]
    measure: Any = None

    @property
    def algebra(self) -> Any:
        """Functions of vectors, see `nsjax.multibody.coordinates.planar_vectors`."""
        return ALGEBRA[self.dimension]

    def for_user(self) -> Scene:
        """The same scene for a function of a user, which may contain branches and loops."""
        one = self.frames
        return dataclasses.replace(self, frames=one.unstored()) if isinstance(one, Frames) else self

    def coordinates(self, joint: str) -> tuple[Any, Any]:
        """Coordinate of a hinge or slide, and its rate."""
        return self.measure(self, joint)

    def frame(self, body: str) -> Frame:
        """The frame of a body.

        Raises:
            InputError: for an unknown name.
        """
        check_known("scene: unknown body", body, self.frames)
        return self.frames[body]

    def arm(self, body: str, at: Any = None) -> Any:
        """Vector, in the axes of the ground, from a body's origin to a point ``at`` in body axes."""
        a = self.algebra
        return a.turned(self.frame(body).turn, a.vector(at))

    def point(self, body: str, at: Any = None) -> Any:
        """Position of a point ``at`` of a body, as a vector of the algebra."""
        return self.algebra.add(self.frame(body).origin, self.arm(body, at))

    def motion(self, body: str, arm: Any) -> Any:
        """Velocity of the point of a body at ``arm`` from its origin, as a vector of the algebra."""
        a, frame = self.algebra, self.frame(body)
        return a.add(frame.velocity, a.swing(frame.spin, arm))

    def moved(self, body: str, screw: Array) -> Scene:
        """The scene with a body moved by a small ``screw`` (3,) or (6,) at the ground's origin."""
        a, d, frame = self.algebra, self.dimension, self.frame(body)
        spin = screw[d] if d == 2 else screw[d:]
        push = a.add(a.vector(screw[:d]), a.swing(spin, frame.origin))
        if d == 2:
            s, c = (0.0, 1.0) if frame.turn is None else frame.turn
            turn: Any = (s + c * spin, c - s * spin)
        else:
            turn = jnp.eye(3) if frame.turn is None else frame.turn
            turn = turn + space.skew(spin) @ turn
        new = dataclasses.replace(
            frame, origin=a.add(frame.origin, push), turn=turn,
            angle=None if frame.angle is None else frame.angle + spin,
        )  # fmt: skip
        make = lambda name: new if name == body else self.frame(name)  # noqa: E731
        return dataclasses.replace(self, frames=Frames(tuple(self.frames), make, kept=False))

    def position(self, body: str, at: Any = None) -> Array:
        """Position (2,) or (3,) of a point ``at`` in body axes [m]."""
        return self.algebra.array(self.point(body, at))

    def velocity(self, body: str, at: Any = None) -> Array:
        """Velocity of a point of a body (2,) or (3,) [m/s]."""
        return self.algebra.array(self.motion(body, self.arm(body, at)))

    def rotation(self, body: str) -> Array:
        """Rotation from body to ground axes: angle [rad] in the plane, matrix (3, 3) in space."""
        frame = self.frame(body)
        if self.dimension == 2:
            return plane.value(frame.angle)
        return jnp.eye(3) if frame.turn is None else frame.turn

    def spin(self, body: str) -> Array:
        """Angular velocity [rad/s], a number in the plane, (3,) in space in the axes of the ground."""
        spin = self.frame(body).spin
        return plane.value(spin) if self.dimension == 2 else space.array(spin)

    def coordinate(self, joint: str) -> Array:
        """Angle [rad] or displacement [m] of a hinge or slide."""
        return self.coordinates(joint)[0]

    def rate(self, joint: str) -> Array:
        """Rate of the coordinate of a hinge or slide."""
        return self.coordinates(joint)[1]


def _beside(frames: Sequence[Frame]) -> Frame:
    """Planar frames as one frame with a last axis."""

    def stack(values: list[Any]) -> Any:
        if all(x is None for x in values):
            return None
        return jnp.stack([jnp.asarray(0.0 if x is None else x, float) for x in values])

    def vectors(values: list[Any]) -> Any:
        return tuple(stack([None if x is None else x[k] for x in values]) for k in (0, 1))

    turns = [x.turn for x in frames]
    turn = None
    if any(x is not None for x in turns):
        turn = (
            stack([0.0 if x is None else x[0] for x in turns]),
            stack([1.0 if x is None else x[1] for x in turns]),
        )
    return Frame(vectors([x.origin for x in frames]), turn, stack([x.angle for x in frames]),
                 vectors([x.velocity for x in frames]), stack([x.spin for x in frames]))  # fmt: skip


def several(frames: Mapping[str, Frame], bodies: Sequence[str], which: Array | None = None) -> Frame | None:
    """Frames of bodies, or of a selection ``which``, along a last axis; None: all are the ground."""
    if all(name == GROUND for name in bodies):
        return None
    names = [name for name in frames if name != GROUND]
    every = getattr(frames, "every", None)
    whole = _beside([frames[name] for name in names]) if every is None else every()
    places = np.array([names.index(name) for name in bodies])
    # product of bodies and pairs up to which frames are selected by sums, whose derivatives are sums: small
    # loops stay one kernel. Beyond, gathers are faster
    summed = 512
    if which is not None:
        there = jnp.asarray(places)[which]
        if len(names) * which.shape[0] > summed:
            return jax.tree.map(lambda x: x.at[..., there].get(mode="promise_in_bounds"), whole)
        here = np.arange(len(names))[:, None] == there
        return jax.tree.map(lambda x: jnp.sum(jnp.where(here, x[..., :, None], 0.0), axis=-2), whole)
    few = len(names) * len(places) <= summed or bool(np.all(np.diff(places) == 1))
    return jax.tree.map(lambda x: picked(x, places) if few else x[..., places], whole)


def ground(dimension: int) -> Frame:
    """The frame of the ground."""
    zero = ALGEBRA[dimension].ZERO
    return Frame(origin=zero, velocity=zero)


def downwards(gravity: Any, dimension: int) -> Any:
    """Gravity as a vector of the algebra, from a vector or a number (along -y or -z); None: none."""
    if gravity is None:
        return ALGEBRA[dimension].ZERO
    if jnp.ndim(gravity) == 1:
        return ALGEBRA[dimension].vector(gravity)
    if dimension == 2:
        return None, -gravity
    return jnp.stack([jnp.zeros(()), jnp.zeros(()), -jnp.asarray(gravity, float)])


def still_frames(scene: Scene) -> Frames:
    """The frames of a scene with all bodies at rest."""
    zero = scene.algebra.ZERO

    def still(name: str) -> Frame:
        return dataclasses.replace(scene.frame(name), velocity=zero, spin=None)

    return Frames(tuple(scene.frames), still, kept=False)


# Constants of a mechanism in a run, and the features of its contacts that a step holds fixed.


@record()
class MechanismConstants:
    """Numbers of the parts in arrays, derived once for a run; None: read from the params where needed.

    Args:
        tree: of bodies and joints.
        joints: of loads, limits and dry friction on coordinates, `coordinates.tree_joints.JointNumbers`.
        contacts: of batches of contacts.
    """

    tree: Any = None
    joints: Any = None
    contacts: Any = None


@record()
class HeldFeatures:
    """What a step holds fixed of its contacts; None: nothing.

    Args:
        chosen: pairs that the step evaluates (`contacts.named_contacts.Choice`, or for free bodies
            `contacts.candidates.CandidatePairs`), by the title of a batch.
        features: closest points and features, by the name of a contact or the title of a batch.
    """

    chosen: Any = None
    features: Any = None


def constants(p: PyTree) -> MechanismConstants:
    """Derived constants of params; none of params that are not prepared."""
    return p.constants if isinstance(p, Prepared) else MechanismConstants()


def held_features(p: PyTree) -> HeldFeatures:
    """What the step holds fixed; nothing of params that are not refreshed."""
    found = p.held if isinstance(p, Prepared) else None
    return HeldFeatures() if found is None else found


def holding(p: PyTree, **features: Any) -> Prepared:
    """Params with features that the step holds fixed."""
    ready = p if isinstance(p, Prepared) else Prepared(params=p, constants=MechanismConstants())
    return dataclasses.replace(ready, held=dataclasses.replace(held_features(p), **features))
