"""Contacts of all shapes of a group with all others: their pairs, in the order in which they are known."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nsjax.core import InputError
from nsjax.multibody import touching
from nsjax.multibody.parts import GROUND, Part, made
from nsjax.multibody.touching import Shape

TIES = ("hinge", "slide", "ball", "universal", "cylindrical", "fixed")
"""Joints whose bodies do not touch each other, unless one of them is the ground."""


@dataclasses.dataclass(frozen=True)
class Group:
    """What `contact_group` was given: shapes, bodies that do not meet, and the law as keywords."""

    first: tuple[Shape, ...]
    second: tuple[Shape, ...] | None
    exclude: tuple[tuple[str, str], ...]
    law: dict[str, Any]


def contact_group(
    name: str, first: Iterable[Shape], second: Iterable[Shape] | None = None, *,
    exclude: Iterable[tuple[str, str]] = (), restitution: Any = 0.0, restitution_tangential: Any = 0.0,
    friction: Any = None,
) -> Part:  # fmt: skip
    """Contacts of all pairs of shapes, within a group or between two.

    `assemble` makes a `contact` of every pair of shapes on two bodies, in the order in which their kinds
    are known. Its name is those of the bodies, ``"crate_floor"``; a number follows where that is taken, by
    another shape of the same body for instance. No contacts are made between bodies that a joint ties
    (`hinge`, `slide`, `ball`, `universal`, `cylindrical`, `fixed`), nor between bodies that are fixed to
    such ones, as in model files; with the ground, and what is fixed to it, they are.

    Args:
        name: of the group; no contact has it.
        first: shapes.
        second: shapes that meet each of ``first``; None: those of ``first`` meet each other.
        exclude: pairs of bodies that do not meet, ``[("hand", "box")]`` for instance.
        restitution, restitution_tangential, friction: of each contact, see `contact`.

    Raises:
        InputError: for groups without a pair, here or in `assemble`, and kinds that do not meet.

    Limits: every pair has its rows, whether its shapes ever meet or not: groups of n shapes make about
    ``n^2 / 2`` contacts.

    Example:
        >>> from nsjax.multibody import assemble, body, box, contact_group, plane, sphere
        >>> things = [sphere("ball", 0.1), box("crate", 0.1, 0.1, 0.1), plane()]
        >>> problem = assemble(
        ...     *(body(x, mass=1.0, inertia=(0.01, 0.01, 0.01)) for x in ("ball", "crate")),
        ...     contact_group("all", things, friction=0.3), gravity=(0.0, 0.0, -9.81),
        ...     start={"ball": (0.0, 0.0, 0.1), "crate": (1.0, 0.0, 0.1)},
        ... )
        >>> [x for x in problem.params if "_" in x]
        ['ball_crate', 'ball_ground', 'crate_ground']
    """
    mine, theirs = (
        _shapes(name, "first", first),
        None if second is None else _shapes(name, "second", second),
    )
    pairs = tuple(_bodies(name, pair) for pair in exclude)
    law = {
        "restitution": restitution, "restitution_tangential": restitution_tangential, "friction": friction,
    }  # fmt: skip
    group = Group(mine, theirs, pairs, law)
    if not any(True for _ in meeting(group, set())):
        raise InputError(f"contact_group {name!r}: no two shapes on two bodies that may meet; add some")
    return made("contact_group", name, (), group)


def _shapes(name: str, which: str, given: Iterable[Shape]) -> tuple[Shape, ...]:
    """As a tuple, of at least one."""
    if isinstance(given, Shape) or not isinstance(given, Iterable):
        raise InputError(f"contact_group {name!r}: {which} = {given!r}; give a list of shapes")
    found = tuple(given)
    for shape in found:
        if not isinstance(shape, Shape):
            raise InputError(
                f"contact_group {name!r}: {shape!r} in {which} is no shape; use box, sphere, plane"
            )
    if not found:
        raise InputError(f"contact_group {name!r}: {which} is empty; give at least one shape")
    return found


def _bodies(name: str, pair: Any) -> tuple[str, str]:
    """Two names of bodies."""
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
        raise InputError(f"contact_group {name!r}: exclude holds {pair!r}; give pairs of names of bodies")
    one, other = pair
    return one, other


def meeting(group: Group, apart: set[frozenset[str]]) -> Iterator[tuple[Shape, Shape]]:
    """Pairs of a group on two bodies, but those excluded and those of the sets ``apart``."""
    apart = apart | {frozenset(pair) for pair in group.exclude}
    pairs: Iterable[tuple[Shape, Shape]] = itertools.combinations(group.first, 2)
    if group.second is not None:
        pairs = itertools.product(group.first, group.second)
    for one, other in pairs:
        if one.body != other.body and frozenset((one.body, other.body)) not in apart:
            yield one, other


def tied(parts: Iterable[Part]) -> set[frozenset[str]]:
    """Pairs of bodies that do not touch each other: tied by a joint, or fixed to such ones."""
    joints = [x for x in parts if isinstance(x, Part) and x.kind in TIES]
    whole = {name: {name} for x in joints for name in x.bodies}
    for joint in joints:
        if joint.kind == "fixed":
            one = whole[joint.bodies[0]] | whole[joint.bodies[1]]
            whole.update(dict.fromkeys(one, one))
    found = set()
    for joint in joints:
        one, other = (whole[x] for x in joint.bodies)
        if joint.kind == "fixed" or (GROUND not in one and GROUND not in other):
            found |= {frozenset((a, b)) for a in one for b in other if a != b}
    return found


def ordered(one: Shape | None, other: Shape | None) -> tuple[Shape, Shape] | None:
    """Two shapes in the order in which their kinds are known to meet; None if they are not."""
    if one is None or other is None:
        return None
    for pair in ((one, other), (other, one)):
        if (pair[0].kind, pair[1].kind) in touching.PAIRS:
            return pair
    return None


def unused(name: str, taken: set[str]) -> str:
    """The name, with a number if somebody has it; it is taken then."""
    numbered = (f"{name}_{k}" for k in range(2, len(taken) + 3))
    found = name if name not in taken else next(x for x in numbered if x not in taken)
    taken.add(found)
    return found


def with_groups(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Every group as its contacts.

    Raises:
        InputError: for groups without a pair, and kinds that do not meet.
    """
    groups = [x for x in parts if isinstance(x, Part) and x.kind == "contact_group"]
    if not groups:
        return tuple(parts)
    apart, found = tied(parts), []
    taken = {x.name for x in parts if isinstance(x, Part)} | {GROUND, "gravity"}
    for part in parts:
        found += _contacts(part, apart, taken) if part in groups else [part]
    return tuple(found)


def _contacts(part: Part, apart: set[frozenset[str]], taken: set[str]) -> list[Part]:
    """Those of a group."""
    found = []
    for pair in meeting(part.numbers, apart):
        met = ordered(*pair)
        if met is None:
            kinds, bodies = (" and ".join(x) for x in ([x.kind for x in pair], [x.body for x in pair]))
            raise InputError(
                f"contact_group {part.name!r}: a contact of {kinds} ({bodies}) is not known; take one of "
                "them out, or exclude the two bodies"
            )
        name = unused(f"{pair[0].body}_{pair[1].body}".replace(".", "_"), taken)
        found.append(touching.contact(name, *met, **part.numbers.law))
    if not found:
        raise InputError(
            f"contact_group {part.name!r}: joints tie all of its bodies, which do not meet then; leave the "
            "group out, or add shapes"
        )
    return found
