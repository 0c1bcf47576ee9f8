"""Forces on bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nsjax.core import InputError
from nsjax.multibody import numbers
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.loads.load_kind import Driven, End, LoadKind, end_of, refuse_ground, with_law
from nsjax.multibody.parts import Part, made, record_of, user_value
from nsjax.types import Fn


def force(
    name: str, body: End, value: Any = None, *, follower: bool = False, law: Fn | None = None,
    own: Any = None, switch: Fn | None = None,
) -> Part:  # fmt: skip
    """A force on a point of a body, constant or by a law.

    Args:
        name: of the force.
        body: point of action: a body's name for its origin, or ``("rod", point)`` in body axes [m].
        value: constant force (2,) or (3,) [N] in the axes of the ground.
        follower: whether the force is given in the axes of the body and turns with it.
        law: ``(t, scene, own) -> (2,) or (3,)`` [N], in place of ``value``. The scene knows the motion of
            bodies and joints: ``scene.position("rod", point)``, ``scene.velocity("rod", point)``,
            ``scene.rotation("rod")``, ``scene.spin("rod")``, ``scene.coordinate("pin")``,
            ``scene.rate("pin")``; see `nsjax.multibody.coordinates.frames.Scene`.
        own: numbers for ``law``, any pytree.
        switch: surfaces on which ``law`` jumps, a function of the same arguments that returns one number or
            several (k,): it has one value where the number is positive and another elsewhere,
            ``jnp.where(x > 0.1, ...)`` for the surface ``x - 0.1``. It changes no value of a run; its
            derivative gets the shift of the instants at which the surfaces are crossed (see the guide,
            "Forces that jump").

    Raises:
        InputError: if value and law are both given, or neither, for a switch without law, and for a force
            on the ground.

    Example:
        >>> from nsjax.multibody import force
        >>> force("push", ("rod", 0.3), (0.0, -5.0)).bodies
        ('rod',)
    """
    end, options = end_of("force", name, body), {"follower": follower, "law": law, "switch": switch}
    return on_body("force", name, end, value, own=own, **options)


def force_value(scene: Scene, part: Part, numbers: Any, shape: tuple[int, ...]) -> Any:
    """The constant value of a force or moment, or the value of its law, which must have this shape."""
    if part.option("law") is None:
        return numbers.value
    return user_value(
        part, "law", "t, scene, own", scene.time, scene.for_user(), numbers.own, shapes=(shape,)
    )


def on_body(kind: str, name: str, end: tuple[str, Any], value: Any, **given: Any) -> Part:
    """A force or moment as a part, after checks of its numbers.

    Args:
        kind, name: ``"force"`` or ``"torque"``, and the name of the load.
        end: body, and point of action in body axes [m] or None.
        value: constant value, or None.
        given: ``follower``, ``law``, ``own`` and ``switch`` as in `force`.

    Raises:
        InputError: as `force`.
    """
    law, own = given["law"], given.pop("own")
    if (value is None) == (law is None):
        raise InputError(f"{kind} {name!r}: give a value or a law, one of them")
    refuse_ground(kind, name, end[0])
    kept = record_of(numbers.Load, kind, name, value=value, at=end[1], own=own)
    return made(kind, name, (end[0],), kept, **given)


def _pushes(scene: Scene, part: Part, numbers: Any, driven: Driven) -> Iterator[Push]:
    a, body = scene.algebra, part.bodies[0]
    value = a.vector(force_value(scene, part, numbers, (scene.dimension,)))
    if part.option("follower"):
        value = a.turned(scene.frame(body).turn, value)
    yield body, value, scene.point(body, numbers.at), None


FORCE = LoadKind(name="force", pushes=_pushes, sees_scene=with_law, held=True)
