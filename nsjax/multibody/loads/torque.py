"""Moments on bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.loads.force import force_value, on_body
from nsjax.multibody.loads.load_kind import Driven, LoadKind, with_law
from nsjax.multibody.parts import Part
from nsjax.types import Fn


def torque(
    name: str, body: str, value: Any = None, *, follower: bool = False, law: Fn | None = None,
    own: Any = None, switch: Fn | None = None,
) -> Part:  # fmt: skip
    """A moment on a body, constant or by a law.

    Args:
        name: of the moment.
        body: name of the body.
        value: constant moment [N m]: a number in the plane; in space (3,), in the axes of the ground.
        follower: whether the moment is given in the axes of the body and turns with it.
        law: ``(t, scene, own) -> () or (3,)`` [N m], in place of ``value``; see `force`.
        own: numbers for ``law``, any pytree.
        switch: surfaces of ``law``, a function of the same arguments; see `force`.

    Raises:
        InputError: as `force`.

    Example:
        >>> from nsjax.multibody import torque
        >>> torque("drive", "crank", 0.1)
        torque('drive', 'crank', value=0.1)
    """
    return on_body("torque", name, (body, None), value, follower=follower, law=law, own=own, switch=switch)


def _pushes(scene: Scene, part: Part, numbers: Any, driven: Driven) -> Iterator[Push]:
    a, body, space = scene.algebra, part.bodies[0], scene.dimension == 3
    value = force_value(scene, part, numbers, (3,) if space else ())
    if space:
        value = a.vector(value)
        if part.option("follower"):
            value = a.turned(scene.frame(body).turn, value)
    yield body, None, None, value


TORQUE = LoadKind(name="torque", pushes=_pushes, sees_scene=with_law)
