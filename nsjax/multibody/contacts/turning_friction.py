"""Friction of contacts against relative rotation: spinning about the normal and rolling about the tangents.

With the angular velocity ``w`` of the first body against that of the second, the normal ``n`` and the
tangents ``t1, t2`` of a contact, and its normal force ``lambda_N``::

    |m_n| <= mu_s lambda_N,   m_n  = -mu_s lambda_N sign(w . n)      where w . n  is not zero
    |m_ti| <= mu_r lambda_N,  m_ti = -mu_r lambda_N sign(w . t_i)    where w . t_i is not zero

and the same for impulses. The coefficients are lengths [m]. The moments are bounded rows (`System.drag`)
whose bound follows the normal force of a contact (`System.drag_contact`). Each row has a bound of its own,
so that the solver, its certificate and its derivatives are those of dry friction. In the plane only the row
of rolling exists.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.math import picked
from nsjax.multibody.contacts import gap_functions
from nsjax.multibody.contacts.gap_functions import Meeting
from nsjax.multibody.contacts.named_contacts import NamedContacts
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.parts import Part, number
from nsjax.types import Array, PyTree

WAYS = {
    2: (("rolling", 0, "roll"),),
    3: (("torsional", 0, "spin"), ("rolling", 1, "roll1"), ("rolling", 2, "roll2")),
}
"""Coefficient, axis (0 normal, 1 and 2 tangents; in the plane 0) and name of each row by dimension."""


@dataclasses.dataclass(frozen=True)
class TurningRow:
    """A bounded row of a contact.

    Args:
        name: of the row, ``"floor.spin"``.
        part: name of the part; point: number of the contact within the part.
        contact: number of the contact among all contacts of the mechanism.
        key: ``"torsional"`` or ``"rolling"``.
        axis: axis of rotation: 0 the normal, 1 and 2 the tangents.
    """

    name: str
    part: str
    point: int
    contact: int
    key: str
    axis: int


def coefficients(name: str, friction: Any) -> dict[str, Any]:
    """Sliding, torsional and rolling coefficient of a contact, by the names of its numbers.

    Args:
        name: of the contact.
        friction: the sliding coefficient, None, or ``(sliding, torsional, rolling)``; of three, a plain
            zero is left out.

    Raises:
        InputError: for values that are no numbers, and for negative numbers.
    """
    if not (isinstance(friction, tuple) and len(friction) == 3):
        return {"friction": number("contact", name, "friction", friction, 0.0)}
    given = dict(zip(("friction", "torsional", "rolling"), friction, strict=True))
    absent = {k for k, x in given.items() if isinstance(x, int | float) and not x}
    return {k: None if k in absent else number("contact", name, k, x, 0.0) for k, x in given.items()}


def turns(numbers: Any) -> bool:
    """Whether the numbers of a contact or group contain friction against turning."""
    return any(getattr(numbers, key, None) is not None for key in ("torsional", "rolling"))


def check(part: Part, dimension: int) -> None:
    """Refuse friction against turning where a contact cannot have it.

    Raises:
        InputError: with what is given, and the remedy.
    """
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


def check_capacity(parts: Sequence[Part]) -> None:
    """Refuse friction against turning together with groups with a capacity.

    Raises:
        InputError: naming both.
    """
    one = next((x for x in parts if turns(x.numbers)), None)
    group = next((x for x in parts if x.kind in ("selection", "contact_group")), None)
    if one is not None and group is not None:
        raise InputError(
            f"contact {one.name!r}: torsional and rolling friction do not work beside a capacity, that of "
            f"{group.name!r}; leave the capacity out, or both coefficients"
        )


def rows_of(parts: Sequence[Part], dimension: int) -> tuple[TurningRow, ...]:
    """The bounded rows of all contacts, in their order."""
    found, first = [], 0
    for part in (x for x in parts if x.kind == "contact"):
        names = gap_functions.names(part, part.numbers, dimension)
        for k, name in enumerate(names if turns(part.numbers) else ()):
            found += [
                TurningRow(f"{name}.{title}", part.name, k, first + k, key, axis)
                for key, axis, title in WAYS[dimension]
                if getattr(part.numbers, key) is not None
            ]
        first += len(names)
    return tuple(found)


def bounds(rows: Sequence[TurningRow], p: PyTree) -> list[Array]:
    """Coefficients of the rows [m]."""
    given = [jnp.asarray(getattr(p[row.part], row.key), float) for row in rows]
    return [x[row.point] if x.ndim else x for row, x in zip(rows, given, strict=True)]


def rates(rows: Sequence[TurningRow], scene: Scene, named: NamedContacts, met: list[Meeting]) -> Array:
    """Angular velocities of the first bodies against the second about the axes of the rows [rad/s].

    Args:
        rows: the bounded rows.
        scene: the bodies, with their velocities.
        named: named contacts.
        met: contact points and normals, piece by piece.
    """
    bodies = list(scene.frames)
    spins = jnp.stack([scene.spin(x) for x in bodies], axis=-1)
    ends = [named.sorted(_bodies(named, met, side)) for side in ("first", "second")]
    one, other = (picked(spins, np.array([bodies.index(own[x.contact]) for x in rows])) for own in ends)
    if scene.dimension == 2:
        return one - other
    return jnp.sum(_axes(rows, named, met) * (one - other), axis=0)


def _bodies(named: NamedContacts, met: list[Meeting], side: str) -> list[str]:
    """Names of the bodies on a side of all contacts, piece by piece."""
    found: list[str] = []
    for x, n in zip(met, named.rows, strict=True):
        own = getattr(x, side)
        found += [own] * n if isinstance(own, str) else list(own)
    return found


def _axes(rows: Sequence[TurningRow], named: NamedContacts, met: list[Meeting]) -> Array:
    """Axes (3, n) of the rows."""
    both = list(zip(met, named.rows, strict=True))
    ways = [
        named.in_order([space.many((x.normal, *x.tangents)[axis], n) for x, n in both], 1)
        for axis in range(3)
    ]
    count = sum(named.rows)
    places = np.array([row.axis * count + row.contact for row in rows])
    return picked(jnp.concatenate(ways, axis=1), places)


def pushes(
    rows: Sequence[TurningRow], scene: Scene, named: NamedContacts, met: list[Meeting], moments: Array
) -> Iterator[Push]:
    """Moments (n,) of the rows on both of their bodies [N m]."""
    ends = [named.sorted(_bodies(named, met, side)) for side in ("first", "second")]
    axes = None if scene.dimension == 2 else _axes(rows, named, met)
    for k, row in enumerate(rows):
        turning = moments[k] if axes is None else moments[k] * axes[:, k]
        yield ends[0][row.contact], None, None, turning
        yield ends[1][row.contact], None, None, plane.minus(turning)
