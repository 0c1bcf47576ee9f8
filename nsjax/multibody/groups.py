"""Contacts of all shapes of a group with all others: their pairs, in the order in which they are known."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.multibody import numbers, touching
from nsjax.multibody.all_pairs import KINDS
from nsjax.multibody.candidates import REACH, SOLIDS, radius_of
from nsjax.multibody.frames import ALGEBRA
from nsjax.multibody.joints import KINDS as JOINTS
from nsjax.multibody.numbers import side_by_side
from nsjax.multibody.parts import GROUND, Part, made, number
from nsjax.multibody.touching import Shape


@dataclasses.dataclass(frozen=True)
class Group:
    """What `contact_group` was given: shapes, bodies that do not meet, and the law as keywords."""

    first: tuple[Shape, ...]
    second: tuple[Shape, ...] | None
    exclude: tuple[tuple[str, str], ...]
    law: dict[str, Any]
    reach: Any = None

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """All of them."""
        return self.first + (self.second or ())

    @property
    def friction(self) -> Any:
        """Of its contacts."""
        return self.law["friction"]


def contact_group(
    name: str, first: Iterable[Shape], second: Iterable[Shape] | None = None, *,
    exclude: Iterable[tuple[str, str]] = (), restitution: Any = 0.0, restitution_tangential: Any = 0.0,
    friction: Any = None, capacity: int | None = None, reach: Any = None,
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
        capacity: None: every pair is a contact. A number: only pairs that are near each other have rows,
            found anew in every step, in so many places for each two kinds of shapes; more set the status
            bit `nsjax.status.CANDIDATES_LOST`. See Limits. A place is named ``"all.sphere_plane.0"``;
            `Trajectory.contact` takes ``"all"`` and ``"all.sphere_plane"``, too.
        reach: gap up to which a pair has a place: at least the way that a gap closes in half a step [m].
            None: a fifth of the smallest radius around a shape.

    Raises:
        InputError: for groups without a pair, here or in `assemble`, and kinds that do not meet.

    Limits: without a capacity every pair has its rows, whether its shapes ever meet or not: groups of n
    shapes make about ``n^2 / 2`` contacts, and `assemble` warns of more than 60. With one: bodies that only
    contacts join, in ``coordinates="absolute"``, shapes `sphere`, `point`, `box`, `capsule`, `cylinder` and
    `plane`, schemes with pairs (see `nsjax.System`), no derivatives, no list of impacts. What is remembered
    of a contact goes with its pair. Spheres around all shapes are compared in every step: ``n^2 / 2``
    numbers.

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
    group = Group(mine, theirs, pairs, law, number("contact_group", name, "reach", reach, 0.0))
    if capacity is not None and (not isinstance(capacity, int) or capacity < 1):
        raise InputError(
            f"contact_group {name!r}: capacity = {capacity!r}; give a number of pairs, or None"
        )
    if not any(True for _ in meeting(group, set())):
        raise InputError(f"contact_group {name!r}: no two shapes on two bodies that may meet; add some")
    on = tuple(dict.fromkeys(x.body for x in group.shapes))
    return made("contact_group", name, on, group, capacity=capacity)


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
    joints = [x for x in parts if isinstance(x, Part) and x.kind in JOINTS and JOINTS[x.kind].sizes]
    whole = {name: {name} for x in joints for name in x.bodies}
    for joint in joints:
        if JOINTS[joint.kind].rigid:
            one = whole[joint.bodies[0]] | whole[joint.bodies[1]]
            whole.update(dict.fromkeys(one, one))
    found = set()
    for joint in joints:
        one, other = (whole[x] for x in joint.bodies)
        if JOINTS[joint.kind].rigid or (GROUND not in one and GROUND not in other):
            found |= {frozenset((a, b)) for a in one for b in other if a != b}
    return found


def ordered(one: Shape | None, other: Shape | None) -> tuple[Shape, Shape] | None:
    """Two shapes in the order in which their kinds are known to meet; None if they are not."""
    if one is None or other is None:
        return None
    for pair in ((one, other), (other, one)):
        if (pair[0].kind, pair[1].kind) in KINDS:
            return pair
    return None


def unused(name: str, taken: set[str]) -> str:
    """The name, with a number if somebody has it; it is taken then."""
    numbered = (f"{name}_{k}" for k in range(2, len(taken) + 3))
    found = name if name not in taken else next(x for x in numbered if x not in taken)
    taken.add(found)
    return found


def with_groups(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Every group without a capacity as its contacts.

    Raises:
        InputError: for groups without a pair, and kinds that do not meet.
    """
    groups = [x for x in parts if isinstance(x, Part) and x.kind == "contact_group"]
    if not groups:
        return tuple(parts)
    apart, found = tied(parts), []
    taken = {x.name for x in parts if isinstance(x, Part)} | {GROUND, "gravity"}
    for part in parts:
        expand = isinstance(part, Part) and part.kind == "contact_group" and not part.option("capacity")
        found += _contacts(part, apart, taken) if expand else [part]
    return tuple(found)


def _contacts(part: Part, apart: set[frozenset[str]], taken: set[str]) -> list[Part]:
    """Those of a group."""
    found = []
    for pair in meeting(part.numbers, apart):
        met = _known(part.name, pair)
        name = unused(f"{pair[0].body}_{pair[1].body}".replace(".", "_"), taken)
        found.append(touching.contact(name, *met, **part.numbers.law))
    if not found:
        raise InputError(
            f"contact_group {part.name!r}: joints tie all of its bodies, which do not meet then; leave the "
            "group out, or add shapes"
        )
    return found


def _known(name: str, pair: tuple[Shape, Shape]) -> tuple[Shape, Shape]:
    """Two shapes of a group in the order in which they are known to meet."""
    met = ordered(*pair)
    if met is None:
        kinds, bodies = (" and ".join(x) for x in ([x.kind for x in pair], [x.body for x in pair]))
        raise InputError(
            f"contact_group {name!r}: a contact of {kinds} ({bodies}) is not known; take one of them out, "
            "or exclude the two bodies"
        )
    return met


def stand_ins(parts: Sequence[Part]) -> list[Part]:
    """Of groups with a capacity every shape as that of a contact, for checks of its numbers."""
    found = []
    for part in (x for x in parts if x.kind == "contact_group"):
        for x in part.numbers.shapes:
            both = numbers.Contact(first=x.numbers, second=numbers.Plane())
            found.append(
                Part("contact", part.name, (x.body, GROUND), both, (("shapes", (x.kind, "plane")),))
            )
    return found


def with_candidates(parts: Sequence[Part], dimension: int, coordinates: str) -> tuple[Part, ...]:
    """Groups with a capacity with numbers of their shapes side by side, as params hold them.

    Raises:
        InputError: for what such a group does not know.
    """
    return tuple(
        _as_numbers(part, dimension, coordinates) if part.kind == "contact_group" else part
        for part in parts
    )  # fmt: skip


def _as_numbers(part: Part, dimension: int, coordinates: str) -> Part:
    """A group with numbers side by side."""
    group, name = part.numbers, part.name
    if coordinates != "absolute":
        raise InputError(
            f"contact_group {name!r}: capacity = {part.option('capacity')} in joint coordinates; assemble "
            'with coordinates="absolute", or leave capacity out'
        )
    for shape in group.shapes:
        if shape.kind not in SOLIDS:
            raise InputError(
                f"contact_group {name!r}: a {shape.kind} with a capacity; take {', '.join(SOLIDS)}, or "
                "leave capacity out"
            )
    for pair in meeting(group, set()):
        _known(name, pair)
    kinds = dict.fromkeys(x.kind for x in group.shapes)
    stacks = {
        kind: side_by_side([filled(x.numbers, dimension) for x in group.shapes if x.kind == kind])
        for kind in kinds
    }
    reach = group.reach
    if reach is None:
        radii = [jnp.min(radius_of(kind, x, dimension)) for kind, x in stacks.items() if kind != "plane"]
        reach = REACH * jnp.min(jnp.stack(radii))
    made_of = numbers.ContactGroup(shapes=stacks, reach=reach, **group.law)
    options = {
        "capacity": part.option("capacity"), "members": tuple((x.kind, x.body) for x in group.shapes),
        "split": None if group.second is None else len(group.first), "apart": group.exclude,
    }  # fmt: skip
    return dataclasses.replace(part, numbers=made_of, options=tuple(options.items()))


def filled(shape: Any, dimension: int) -> Any:
    """Numbers of a shape with those that are not given, so that shapes of a kind can stand side by side."""
    a, own = ALGEBRA[dimension], {f.name: getattr(shape, f.name) for f in dataclasses.fields(shape)}
    unit = np.eye(dimension)
    instead = {
        "radius": 0.0, "half_depth": 0.0, "axis": unit[0], "normal": unit[-1],
        "turned": 0.0 if dimension == 2 else np.zeros(3),
    }  # fmt: skip
    kept = {k: instead[k] if x is None and k in instead else x for k, x in own.items()}
    return type(shape)(**kept | {"at": a.array(a.vector(own["at"]))})
