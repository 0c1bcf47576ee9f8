"""Springs and dampers on the coordinates of joints, and on ball joints."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.forms import ANY
from nsjax.multibody import numbers
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints import kind_of
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.loads.load_kind import Driven, LoadKind, kept_numbers, on_a_coordinate, stored, tension
from nsjax.multibody.parts import Part, made
from nsjax.types import Array, Fn

BALL_SPRING = ("stiffness", "damping", "rest")
"""Numbers that a spring on a ball joint may have. All others refer to a coordinate, which it has not."""


def joint_spring(
    name: str, joint: str, *, stiffness: Any = None, damping: Any = None, rest: Any = None,
    quadratic: Any = None, cubic: Any = None, quadratic_damping: Any = None, law: Fn | None = None,
    potential: Fn | None = None, own: Any = None, switch: Fn | None = None,
) -> Part:  # fmt: skip
    """A spring and damper in a hinge, a slide or a ball joint.

    In a hinge or slide it exerts on the second body, with ``e = coordinate - rest``, the moment or force::

        -(k e + k2 |e| e + k3 e^3 + c e' + c2 |e'| e')

    The angle of a hinge counts its full turns.

    In a ball joint it exerts the moment ``-(k phi + c omega)``. There ``omega`` is the angular velocity of
    the second body relative to the first. The rotation vector ``phi`` leads from the rest orientation of
    the second body to its orientation; at rest it is turned by ``rest`` against the first body.

    Args:
        name: of the spring.
        joint: name of its joint.
        rest: coordinate without moment or force [rad] or [m]; rotation vector (3,) [rad] in a ball joint.
        stiffness, damping: k [N m/rad] or [N/m], c [N m s/rad] or [N s/m].
        quadratic, cubic, quadratic_damping: k2, k3, c2 as in `spring`, with rad in place of m and N m in
            place of N in a hinge. Not in a ball joint.
        law, potential, own, switch: as in `spring`. Not in a ball joint.

    Raises:
        InputError: for a law that is no function or is given with stiffness or damping; by `assemble`, for
            a joint without a coordinate, and for numbers that a ball joint cannot have.

    Limits: ``phi`` of a ball joint jumps at half a turn, where the moment has no direction.

    Example:
        >>> from nsjax.multibody import joint_spring
        >>> joint_spring("torsion", "bearing", stiffness=2.0, damping=0.05)
        joint_spring('torsion', 'bearing', stiffness=2.0, damping=0.05)
    """
    given = {
        "rest": rest, "stiffness": stiffness, "quadratic": quadratic, "cubic": cubic, "damping": damping,
        "quadratic_damping": quadratic_damping,
    }  # fmt: skip
    kept = numbers.Spring(**kept_numbers("joint_spring", name, law, own, given, rest=ANY))
    options = {"law": law, "potential": potential, "switch": switch, "joint": joint}
    return made("joint_spring", name, (), kept, **options)


def _fits(part: Part, joint: Part) -> None:
    """Refuses a joint without a coordinate, and on a ball joint numbers that refer to a coordinate."""
    if not kind_of(joint).swivels:
        on_a_coordinate(part, joint)
        return
    rest = part.numbers.rest
    if rest is not None and np.shape(rest) != (3,):
        raise InputError(
            f"joint_spring {part.name!r}: rest has shape {np.shape(rest)} on the ball joint "
            f"{joint.name!r}; give a rotation vector (3,)"
        )
    given = dataclasses.asdict(part.numbers) | {"law": part.option("law")}
    for name, value in given.items():
        if value is not None and name not in BALL_SPRING:
            raise InputError(
                f"joint_spring {part.name!r}: {name} on the ball joint {joint.name!r}, which has no angle; "
                "give stiffness, damping and rest alone"
            )


def rotation_vector(scene: Scene, joint: Part, rest: Any) -> Array:
    """Rotation vector (3,) [rad] of the second body of a ball joint from its rest orientation, in the axes
    of the ground. At rest it is turned by ``rest`` (3,) against the first body; None: not turned. The angle
    is less than half a turn; at half a turn the vector is zero, since the direction is not unique.
    """
    one, other = (scene.rotation(x) for x in joint.bodies)
    one = one if rest is None else space.both(one, space.rotation_of(rest))
    m = space.both(other, one.T)
    across = 0.5 * jnp.stack([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])
    cosine, square = 0.5 * (m[0, 0] + m[1, 1] + m[2, 2] - 1.0), jnp.sum(across * across)
    # square of the sine ``s`` of an angle below which ``angle / s`` equals ``1 + s^2 / 6`` to rounding
    series = 1e-8
    small = square < series
    sine = jnp.sqrt(jnp.where(small, 1.0, square))
    wide = jnp.where(small, 0.0, jnp.arctan2(sine, cosine) / sine)
    return across * jnp.where(small, jnp.where(cosine > 0.0, 1.0 + square / 6.0, 0.0), wide)


def _effort(part: Part, numbers: Any, t: Any, x: Any, rate: Any) -> Any:
    return plane.minus(tension(part, numbers, plane.plus(x, plane.minus(numbers.rest)), rate))


def _pushes(scene: Scene, part: Part, numbers: Any, driven: Driven) -> Iterator[Push]:
    """Moments on both bodies of a ball joint."""
    assert driven is not None
    first, second = driven[0].bodies
    spun = scene.algebra.subtract(scene.frame(second).spin, scene.frame(first).spin)
    pull = scene.algebra.scale(numbers.damping, spun)
    if numbers.stiffness is not None:
        pull = scene.algebra.add(pull, numbers.stiffness * rotation_vector(scene, driven[0], numbers.rest))
    yield first, None, None, pull
    yield second, None, None, scene.algebra.negative(pull)


def _energy(scene: Scene, part: Part, numbers: Any, driven: Driven) -> Any:
    assert driven is not None
    if kind_of(driven[0]).measure is None:
        turned = rotation_vector(scene, driven[0], numbers.rest)
        return plane.times(0.5, plane.times(numbers.stiffness, scene.algebra.dot(turned, turned)))
    x, _ = scene.coordinates(driven[0].name)
    return stored(part, numbers, plane.plus(x, plane.minus(numbers.rest)))


def _always(part: Part) -> bool:
    """A joint spring reads the coordinate of its joint whatever its numbers are."""
    return True


JOINT_SPRING = LoadKind(
    name="joint_spring", pushes=_pushes, effort=_effort, energy=_energy, fits=_fits,
    reads_angle=_always,
)  # fmt: skip
