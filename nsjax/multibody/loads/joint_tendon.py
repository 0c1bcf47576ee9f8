"""Tendons whose length is a weighted sum of joint coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nsjax.core import InputError
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints import kind_of
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.loads.load_kind import Line, LoadKind, line_effort, line_energy, line_numbers
from nsjax.multibody.parts import Part, made, number


def joint_tendon(
    name: str, factors: Mapping[str, Any], *, stiffness: Any = None, damping: Any = None,
    length: Any = None, limits: Any = None, restitution: Any = 0.0, friction: Any = None,
) -> Part:  # fmt: skip
    """A tendon over drums of constant radius in joints.

    Its length is ``L = sum_j c_j x_j`` with the coordinates x_j of the joints, up to a constant. It pulls
    with the tension ``T = k (L - length) + c L'``, and so exerts ``-c_j T`` on the coordinate of joint j.

    Args:
        name: of the tendon. Laws and sensors read its length as the coordinate of this name. An
            `actuator` may name it in place of a joint: a positive effort lengthens the tendon.
        factors: c_j by the names of hinges and slides; in a hinge, the radius of the drum [m].
        stiffness, damping: k [N/m], c [N s/m].
        length: free length [m]; or a pair of lengths between which the stiffness exerts no force. None:
            zero.
        limits, restitution, friction: as in `tendon`.

    Raises:
        InputError: without joints, and for limits in the wrong order; by `assemble`, for joints that are
            unknown or have no coordinate.

    Limits: the tendon has no mass. Angles count their full turns, as in `gear`.

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
