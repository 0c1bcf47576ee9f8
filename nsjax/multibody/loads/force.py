"""Forces on bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nsjax.core import InputError
from nsjax.multibody import numbers
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.loads.load_kind import Driven, End, LoadKind, end_of, with_law
from nsjax.multibody.number_checks import POINT, number
from nsjax.multibody.parts import GROUND, Part, made
from nsjax.multibody.user_laws import user_value
from nsjax.types import Fn


def force(
    name: str, body: End, value: Any = None, *, follower: bool = False, law: Fn | None = None,
    own: Any = None,
) -> Part:  # fmt: skip
    """A force on a body.

    Args:
        name: of the force.
        body: a name (its origin) or ``("rod", point)`` in body axes.
        value: constant (2,) or (3,) [N], in the axes of the ground.
        follower: in the axes of the body, with which it turns.
        law: ``(t, scene, own) -> (2,) or (3,)``; ``scene.position("rod", point)``, ``scene.velocity``,
            ``scene.rotation("rod")``, ``scene.spin``, ``scene.coordinate("pin")`` and ``scene.rate`` say
            where bodies and joints are, see `nsjax.multibody.coordinates.frames.Scene`.
        own: numbers for ``law``.

    Raises:
        InputError: for value and law at once, for neither, and for a force on the ground.

    Example:
        >>> from nsjax.multibody import force
        >>> force("push", ("rod", 0.3), (0.0, -5.0)).bodies
        ('rod',)
    """
    return on_body("force", name, end_of("force", name, body), value, follower=follower, law=law, own=own)


def given(scene: Scene, part: Part, numbers: Any, shape: tuple[int, ...]) -> Any:
    """The value of a force or moment, or what its law says, which has this shape."""
    if part.option("law") is None:
        return numbers.value
    return user_value(part, "law", "t, scene, own", scene.time, scene.given(), numbers.own, shapes=(shape,))


def refuse_ground(kind: str, name: str, body: str) -> None:
    """Refuses a load on the ground."""
    if body == GROUND:
        raise InputError(f"{kind} {name!r}: acts on the ground, which does not move; name a body")


def on_body(kind: str, name: str, end: tuple[str, Any], value: Any, **given: Any) -> Part:
    """A force or moment as a part, checked; ``follower``, ``law`` and ``own`` as given to it."""
    law, own = given["law"], given.pop("own")
    if (value is None) == (law is None):
        raise InputError(f"{kind} {name!r}: give a value or a law, one of them")
    refuse_ground(kind, name, end[0])
    kept = numbers.Load(
        value=number(kind, name, "value", value, form=POINT), at=number(kind, name, "at", end[1]), own=own
    )
    return made(kind, name, (end[0],), kept, **given)


def _pushes(scene: Scene, part: Part, numbers: Any, driven: Driven) -> Iterator[Push]:
    a, body = scene.algebra, part.bodies[0]
    value = a.vector(given(scene, part, numbers, (scene.dimension,)))
    if part.option("follower"):
        value = a.turned(scene.frame(body).turn, value)
    yield body, value, scene.point(body, numbers.at), None


FORCE = LoadKind(name="force", pushes=_pushes, sees_scene=with_law, held=True)
