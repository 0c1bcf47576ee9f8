"""Tendons whose length is a sum of coordinates of joints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nsjax.core import InputError
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints import kind_of
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.loads.lines import Line, line_effort, line_energy, line_numbers
from nsjax.multibody.loads.load_kind import LoadKind
from nsjax.multibody.parts import Part, made, number


def joint_tendon(
    name: str, factors: Mapping[str, Any], *, stiffness: Any = None, damping: Any = None,
    length: Any = None, limits: Any = None, restitution: Any = 0.0, friction: Any = None,
) -> Part:  # fmt: skip
    """A tendon over drums of constant radius in joints: ``L = sum_j c_j x_j`` of their coordinates x_j.

    It pulls with ``T = k (L - length) + c L'``, and exerts ``-c_j T`` on the coordinate of each joint.

    Args:
        name: of the tendon. Laws and sensors read its length as the coordinate of that name, and an
            `actuator` in place of a joint: its effort lengthens where it is positive.
        factors: c_j by the names of hinges and slides: radii of the drums [m] in hinges.
        stiffness, damping: k, c.
        length: free length, or a pair between which the stiffness exerts nothing; None: zero.
        limits, restitution, friction: as of `tendon`.

    Raises:
        InputError: without joints, for limits in the wrong order; by `assemble`, for joints that are
            unknown or have no coordinate.

    Limits: as of `tendon`; angles count their turns as those of `gear` do.

    Example:
        >>> from nsjax.multibody import joint_tendon
        >>> joint_tendon("curl", {"proximal": 0.01, "distal": 0.008}, stiffness=300.0).option("joints")
        ('proximal', 'distal')
    """
    if not isinstance(factors, Mapping) or not factors:
        raise InputError(
            f"joint_tendon {name!r}: factors = {factors!r}; give a dict of joints with their factors, one "
            "or more"
        )
    ratios = tuple(number("joint_tendon", name, f"factor of {k!r}", v) for k, v in factors.items())
    given = {
        "rest": length, "stiffness": stiffness, "damping": damping, "limits": limits,
        "restitution": restitution, "friction": friction,
    }  # fmt: skip
    kept = line_numbers("joint_tendon", name, (), ratios, given)
    return made("joint_tendon", name, (), kept, joints=tuple(factors))


def _line(scene: Scene, topology: Any, part: Part, p: Any) -> Line:
    joints, length, rate = part.option("joints"), None, None
    ratios = p[part.name].ratios
    for name, factor in zip(joints, ratios, strict=True):
        x, speed = scene.coordinates(name)
        length = plane.plus(length, plane.times(factor, x))
        rate = plane.plus(rate, plane.times(factor, speed))

    def act(effort: Any) -> Iterator[Push]:
        for name, factor in zip(joints, ratios, strict=True):
            joint = topology.of[name]
            drive: Any = kind_of(joint).effort
            yield from drive(scene, joint, p[name], factor * effort)

    return Line(length, rate, act)


JOINT_TENDON = LoadKind(name="joint_tendon", effort=line_effort, energy=line_energy, line=_line)
