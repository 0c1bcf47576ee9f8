"""Friction of contacts against relative rotation: spinning about the normal and rolling about the tangents.

With the angular velocity ``w`` of the first body against that of the second, the normal ``n`` and the
tangents ``t1, t2`` of a contact, and its normal force ``lambda_N``::

    |m_n| <= mu_s lambda_N,   m_n = -mu_s lambda_N sign(w . n)    where w . n is not zero
    |m_t| <= mu_r lambda_N,   m_t = -mu_r lambda_N w_t / |w_t|    where w_t = (w . t1, w . t2) is not zero

and the same for impulses. The coefficients are lengths [m]. The moments are bounded rows
(`System.dry_friction`) whose bound follows the normal force of a contact (`System.dry_friction_contact`):
spinning is one row, the two of rolling share a disc (`System.dry_friction_discs`), so that a ball rolls
alike in all directions. In the plane only one row of rolling exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.forms import NumberForm
from nsjax.math import taken
from nsjax.multibody.contacts import gap_functions
from nsjax.multibody.contacts.batches import Batch
from nsjax.multibody.contacts.gap_functions import Meeting
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene, held_features
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.numbers import SPEEDS, TURNING
from nsjax.multibody.parts import GROUND, Part, number
from nsjax.types import Array, PyTree, is_traced

if TYPE_CHECKING:
    from nsjax.multibody.contacts.named_contacts import NamedContacts
    from nsjax.multibody.contacts.shape import Shape

WAYS = {
    2: (("rolling", 0, "roll"),),
    3: (("torsional", 0, "spin"), ("rolling", 1, "roll1"), ("rolling", 2, "roll2")),
}
"""Coefficient, axis (0 normal, 1 and 2 tangents; in the plane 0) and name of each row by dimension."""


def coefficients(name: str, friction: Any) -> dict[str, Any]:
    """Sliding, torsional and rolling coefficient of a contact, by the names of its numbers. ``friction``:
    the sliding coefficient, None, or ``(sliding, torsional, rolling)``; of three, a plain zero is left out.
    Raises `InputError` for values that are no numbers, and for negative numbers.
    """
    if not (isinstance(friction, tuple) and len(friction) == 3):
        return {"friction": number("contact", name, "friction", friction, 0.0)}
    given = dict(zip(("friction", "torsional", "rolling"), friction, strict=True))
    absent = {k for k, x in given.items() if isinstance(x, int | float) and not x}
    return {k: None if k in absent else number("contact", name, k, x, 0.0) for k, x in given.items()}


def along_grain(
    name: str, friction: Any, grain: Any, first: Shape, second: Shape
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Numbers and options of a contact whose friction depends on the direction; both empty without a grain.

    Args:
        friction: the coefficients along and across the grain.
        grain: a direction in the axes of the body of ``second``, or a pair of a body of the shapes, or the
            ground, and a direction in its axes.

    Raises:
        InputError: for values that are no two positive numbers and no direction along the surface, and for
            other bodies.
    """
    if grain is None:
        return {}, {}
    bodies = second.body, first.body, GROUND
    owner, way = grain if len(grain) == 2 and isinstance(grain[0], str) else (bodies[0], grain)
    if not (isinstance(friction, tuple) and len(friction) == 2) or np.shape(way) != (3,):
        raise InputError(
            f"contact {name!r}: friction = {friction} and grain = {grain}; give two coefficients, along "
            "the grain and across it, and a direction of three entries: friction=(0.2, 0.6), "
            "grain=(1.0, 0.0, 0.0)"
        )
    if owner not in bodies:
        raise InputError(
            f"contact {name!r}: a grain of {owner!r}; it belongs to one of "
            f"{', '.join(dict.fromkeys(bodies))}"
        )
    normal = getattr(second.numbers, "normal", None) if owner == second.body else None
    flat = second.kind == "plane" and owner == second.body
    if not is_traced((way, normal)):
        along = np.cross(way, np.array([0.0, 0.0, 1.0]) if normal is None else normal) if flat else way
        if not np.linalg.norm(along) > 1e-9 * np.linalg.norm(way):
            raise InputError(
                f"contact {name!r}: grain = {way} has no direction along the surface; give one across the "
                "normal"
            )
    along, across = friction
    form = NumberForm(shape="one", positive=True)
    found = {
        "friction": number("contact", name, "friction", along, 0.0, form),
        "friction_across": number("contact", name, "friction_across", across),
        "grain": number("contact", name, "grain", way),
    }
    return found, {"grain": owner}


def turns(numbers: Any) -> bool:
    """Whether the numbers of a contact or group contain friction against turning."""
    return any(getattr(numbers, key, None) is not None for key in ("torsional", "rolling"))


def check(part: Part, dimension: int) -> None:
    """Refuse friction against turning where a contact cannot have it."""
    x = part.numbers
    if not turns(x):
        return
    if dimension == 2 and x.torsional is not None:
        raise InputError(
            f"contact {part.name!r}: torsional friction {x.torsional} in the plane, where nothing turns "
            "about a normal; give friction=(sliding, 0, rolling)"
        )
    if not gap_functions.rigid(part):
        raise InputError(
            f"contact {part.name!r}: torsional and rolling friction act between rigid bodies, and one of "
            f"{' and '.join(part.option('shapes'))} is on a beam; give the sliding coefficient alone"
        )


def check_restitution(parts: Sequence[Part]) -> None:
    """Refuse Poisson's restitution beside Newton's, and beside laws that depend on the speed."""
    own = [x for x in parts if x.kind in ("contact", "contact_group")]
    by_poisson = next((x for x in own if x.option("poisson")), None)
    other = next((x for x in own if not x.option("poisson")), None)
    if by_poisson is not None and other is not None:
        raise InputError(
            f"contact {by_poisson.name!r}: Poisson's restitution, and {other.name!r} has Newton's; give "
            "all contacts of a mechanism poisson=True, or none, and leave groups with a capacity out"
        )
    if by_poisson is not None and any(getattr(by_poisson.numbers, x, None) is not None for x in SPEEDS):
        raise InputError(
            f"contact {by_poisson.name!r}: Poisson's restitution and friction or restitution that depend "
            "on the speed; leave one of them out"
        )


def check_capacity(parts: Sequence[Part]) -> None:
    """Refuse friction against turning, and laws that depend on the speed, together with groups of many free
    bodies, whose contacts have no names.
    """
    one = next((x for x in parts if turns(x.numbers)), None)
    group = next((x for x in parts if x.kind == "contact_group"), None)
    names = (*SPEEDS, "grain")
    falls = (x for x in parts if any(getattr(x.numbers, key, None) is not None for key in names))
    if group is not None and (fast := next(falls, None)) is not None:
        raise InputError(
            f"contact {fast.name!r}: friction_sliding, restitution_speed and grain do not work beside "
            f"{group.name!r}, a group of more than 2000 pairs of free bodies with a capacity; leave the "
            "capacity out, or these numbers"
        )
    if one is not None and group is not None:
        raise InputError(
            f"contact {one.name!r}: torsional and rolling friction do not work beside {group.name!r}, a "
            "group of more than 2000 pairs of free bodies with a capacity; leave the capacity out, or both "
            "coefficients"
        )


def row_names(parts: Sequence[Part], dimension: int) -> tuple[str, ...]:
    """Names of the bounded rows of all contacts, ``"floor.spin"``, in the order of the contacts."""
    return tuple(
        f"{name}.{title}"
        for part in parts
        if part.kind == "contact" and turns(part.numbers)
        for name in gap_functions.names(part, part.numbers, dimension)
        for key, _, title in WAYS[dimension]
        if getattr(part.numbers, key) is not None
    )


def followed(named: NamedContacts, others: int = 0) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Number of the contact that bounds each bounded row, after ``others`` rows with a bound of their own
    (-1), and numbers of the rows that share a disc with the next one; () without friction against turning.
    """
    found: list[tuple[int, int]] = []
    for own, keys in zip(named.numbers, named.turning, strict=True):
        found += [(int(k), axis) for k in own for _, axis in _ways(named, keys)]
    found.sort()
    discs = tuple(others + k for k, (_, axis) in enumerate(found) if axis == 1)
    return (*(-1 for _ in range(others)), *(k for k, _ in found)) if found else (), discs


def laws(named: NamedContacts) -> int:
    """Number of laws: one for every coefficient of every contact."""
    return sum(n * len(keys) for n, keys in zip(named.rows, named.turning, strict=True))


def bounds(named: NamedContacts, p: PyTree) -> Array:
    """Coefficients (n,) of the rows [m]."""
    columns = dict(zip(TURNING, named.columns(p, TURNING, ordered=False), strict=True))
    found, first = [], 0
    for n, keys in zip(named.rows, named.turning, strict=True):
        own = [columns[key][first : first + n] for key, _ in _ways(named, keys)]
        found += [jnp.stack(own, axis=1).reshape(-1)] if own else []
        first += n
    return _in_order(named, found)


def rates(scene: Scene, named: NamedContacts, p: PyTree) -> Array:
    """Angular velocities (n,) of the first bodies against the second about the axes of the rows [rad/s].

    Args:
        scene: the bodies, with their velocities.
        named: named contacts: all, or those of a step.
    """
    some = named.some([bool(keys) for keys in named.turning])
    of = dict(zip(some.names, some.turning, strict=True))

    def turned(scene: Scene, part: Part, keys: Sequence[str], n: int, both: Any, near: Any) -> Array:
        first, second = (scene.spin(x) for x in part.bodies)
        if scene.dimension == 2:
            return jnp.broadcast_to(first - second, (n,))
        axes = _axes(named, gap_functions.meetings(scene, part, both, near), n, keys)
        return jnp.sum(axes * (first - second)[:, None, None], axis=0).reshape(-1)

    def one(scene: Scene, part: Part, both: Any, near: Any) -> Array:
        n = gap_functions.count(part, both, scene.dimension)
        return turned(scene, part, of[part.name], n, both, near)

    def fit(scene: Scene, piece: Batch, both: Any, near: Any) -> Array:
        return turned(scene, piece.part, of[piece.names[0]], piece.rows, both, near)

    found = some.each(scene, p, one, fit, held_features(p).features)
    return _in_order(named, [x.T.reshape(-1) for x in found])


def _ways(named: NamedContacts, keys: Sequence[str]) -> list[tuple[str, int]]:
    """Coefficient and axis of each row of a contact with these coefficients."""
    return [(key, axis) for key, axis, _ in WAYS[named.dimension] if key in keys]


def _axes(named: NamedContacts, meeting: Meeting, n: int, keys: Sequence[str]) -> Array:
    """Axes (3, n, rows of a contact) of the rows of a piece."""
    own = [(meeting.normal, *meeting.tangents)[axis] for _, axis in _ways(named, keys)]
    return jnp.stack([space.many(x, n) for x in own], axis=2)


def _in_order(named: NamedContacts, found: list[Array]) -> Array:
    """Values of the rows (..., n), given piece by piece, in the order of the rows."""
    x = found[0] if len(found) == 1 else jnp.concatenate(found, axis=-1)
    places = _order_of_rows(named)
    return x if places is None else jnp.moveaxis(taken(jnp.moveaxis(x, -1, 0), places), 0, -1)


def _order_of_rows(named: NamedContacts) -> np.ndarray | None:
    """`order_of` the rows."""
    return order_of(named, [len(_ways(named, keys)) for keys in named.turning])


def order_of(named: NamedContacts, each: Sequence[int]) -> np.ndarray | None:
    """Index of each feature of the contacts of a piece in the concatenated pieces; None: the same order."""
    if named.order is None:
        return None
    contacts = [np.repeat(own, n) for own, n in zip(named.numbers, each, strict=True)]
    return np.argsort(np.concatenate(contacts), kind="stable")


def pushes(scene: Scene, named: NamedContacts, meetings: list[Meeting], moments: Array) -> Iterator[Push]:
    """Moments (n,) of the rows on both of their bodies [N m], of all contacts."""
    ends: list[tuple[str, str]] = []
    axes = []
    for x, n, keys in zip(meetings, named.rows, named.turning, strict=True):
        many = len(_ways(named, keys))
        both = zip(x.bodies("first"), x.bodies("second"), strict=True)
        ends += [pair for pair in both for _ in range(many)]
        if keys and scene.dimension == 3:
            axes.append(_axes(named, x, n, keys).reshape(3, -1))
    places = _order_of_rows(named)
    along = None if scene.dimension == 2 else _in_order(named, axes)
    for k in range(len(ends)):
        first, second = ends[k if places is None else int(places[k])]
        turning = moments[k] if along is None else moments[k] * along[:, k]
        yield first, None, None, turning
        yield second, None, None, plane.minus(turning)
