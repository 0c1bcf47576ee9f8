"""Groups of contacts: all pairs of shapes of a group, and how many of them a step evaluates."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.multibody import numbers
from nsjax.multibody.contacts import gap_functions, shape_parts
from nsjax.multibody.contacts.all_shapes import PAIRS
from nsjax.multibody.contacts.candidates import pair_counts, pair_template
from nsjax.multibody.contacts.gap_functions import BOUNDED, ENDLESS, REACH, SOLIDS, radius_of
from nsjax.multibody.contacts.shape_parts import Shape
from nsjax.multibody.contacts.turning_friction import coefficients
from nsjax.multibody.coordinates.frames import ALGEBRA
from nsjax.multibody.joints import KINDS as JOINTS
from nsjax.multibody.loads import KINDS as LOADS
from nsjax.multibody.numbers import side_by_side
from nsjax.multibody.parts import GROUND, Part, made, number


@dataclasses.dataclass(frozen=True)
class Group:
    """Arguments of `contact_group`: shapes, pairs of bodies that do not meet, and the law as keywords."""

    first: tuple[Shape, ...]
    second: tuple[Shape, ...] | None
    exclude: tuple[tuple[str, str], ...]
    law: dict[str, Any]
    reach: Any = None

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """All shapes of the group."""
        return self.first + (self.second or ())

    @property
    def friction(self) -> Any:
        """The friction of its contacts."""
        return self.law["friction"]


def contact_group(
    name: str, first: Iterable[Shape], second: Iterable[Shape] | None = None, *,
    exclude: Iterable[tuple[str, str]] = (), restitution: Any = 0.0, restitution_tangential: Any = 0.0,
    friction: Any = None, capacity: int | None = None, reach: Any = None,
) -> Part:  # fmt: skip
    """Contacts of all pairs of shapes, within a group or between two.

    `assemble` makes a `contact` of every pair of shapes on two different bodies, the shapes in the order of
    their entry in the table of pairs. The contact is named after both bodies, ``"crate_floor"``; a number
    follows where this name is taken, by another shape of the same body for instance. As in model files, no
    contact is made between two bodies that a joint connects (`hinge`, `slide`, `ball`, `universal`,
    `cylindrical`, `fixed`), nor between bodies that are fixed to these; contacts with the ground, and with
    bodies that are fixed to it, are made.

    Args:
        name: name of the group; no contact bears it.
        first: shapes of the group.
        second: shapes that meet each of ``first``; None: those of ``first`` meet each other.
        exclude: pairs of bodies that do not meet, ``[("hand", "box")]`` for instance.
        restitution, restitution_tangential, friction: law of each contact, see `contact`; friction
            against spinning or rolling is refused in a group that keeps no names (see Limits).
        capacity: number of candidate pairs evaluated in a step, for each two kinds of shapes (pairs with
            the ground count separately): the first pairs nearer than ``reach`` at the start of the step.
            More near pairs set the status bit `nsjax.status.CANDIDATES_LOST`. A capacity of the number of
            pairs evaluates all. None: all pairs are evaluated up to 60 contacts, and for bodies in
            absolute coordinates that only contacts join; beyond, the number that a warning of `assemble`
            gives.
        reach: gap below which a pair is a candidate [m]: at least the distance by which a gap closes in
            half a step. None: a fifth of the smallest radius around a shape.

    Raises:
        InputError: for groups without a pair, here or in `assemble`, and kinds that do not meet.

    Limits: names, parameters, impacts, notes and derivatives are those of all pairs, whatever the capacity;
    the choice of candidate pairs has no derivative. ``gap_min`` of a pair that was no candidate since the
    row before is its gap at the row. Candidates are chosen among pairs of `sphere`, `point`, `box`,
    `capsule`, `cylinder`, `hull`, `heightfield` and `plane`, where four or more pairs are of equal kinds
    (with hulls and terrain: two); other pairs are always evaluated. Pairs on terrain have a place each,
    whatever the capacity. For bodies in absolute coordinates that only contacts join, with more than 2,000
    contacts (pairs, where a shape is none of `sphere`, `box`, `capsule`, `cylinder` and `plane`, or with
    friction against turning) and a capacity, rows and parameters belong to slots, ``"all.sphere_plane.0"``;
    such models run with `schemes.moreau` alone, without derivatives and lists of impacts. Their near pairs
    are found by cells, for which sizes may be very unequal; neighbouring cells may hold up to eight times
    the capacity of pairs, or `nsjax.status.CANDIDATES_LOST` is set.

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
    mine = _shapes(name, "first", first)
    theirs = None if second is None else _shapes(name, "second", second)
    for pair in exclude:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise InputError(
                f"contact_group {name!r}: exclude holds {pair!r}; give pairs of names of bodies"
            )
    pairs = tuple((one, other) for one, other in exclude)
    law = {
        "restitution": restitution, "restitution_tangential": restitution_tangential, "friction": friction,
    }  # fmt: skip
    group = Group(mine, theirs, pairs, law, number("contact_group", name, "reach", reach, 0.0))
    if capacity is not None and (not isinstance(capacity, int) or capacity < 1):
        raise InputError(
            f"contact_group {name!r}: capacity = {capacity!r}; give a number of pairs, or None"
        )
    if not any(True for _ in meeting(group, set())):
        raise InputError(
            f"contact_group {name!r}: all pairs of shapes stand on one body or are excluded; add shapes of "
            "other bodies, or exclude fewer"
        )
    on = tuple(dict.fromkeys(x.body for x in group.shapes))
    return made("contact_group", name, on, group, capacity=capacity)


def _shapes(name: str, which: str, given: Iterable[Shape]) -> tuple[Shape, ...]:
    """The given shapes as a tuple of at least one, checked."""
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


def meeting(group: Group, excluded: set[frozenset[str]]) -> Iterator[tuple[Shape, Shape]]:
    """Pairs of shapes of a group on two bodies, without those that are excluded."""
    excluded = excluded | {frozenset(pair) for pair in group.exclude}
    pairs: Iterable[tuple[Shape, Shape]] = itertools.combinations(group.first, 2)
    if group.second is not None:
        pairs = itertools.product(group.first, group.second)
    for one, other in pairs:
        if one.body != other.body and frozenset((one.body, other.body)) not in excluded:
            yield one, other


def joined_pairs(parts: Iterable[Part]) -> set[frozenset[str]]:
    """Pairs of bodies that make no contact: connected by a joint, or fixed to bodies that are."""
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
    """Two shapes in the order of the entry of their kinds in the table of pairs; None without an entry."""
    if one is None or other is None:
        return None
    for pair in ((one, other), (other, one)):
        if (pair[0].kind, pair[1].kind) in PAIRS:
            return pair
    return None


def unused(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken already; the result is added to ``taken``."""
    numbered = (f"{name}_{k}" for k in range(2, len(taken) + 3))
    found = name if name not in taken else next(x for x in numbered if x not in taken)
    taken.add(found)
    return found


LISTED = 2000
"""Number of contacts of free bodies in absolute coordinates up to which a group with a capacity makes named
contacts. Beyond, contacts are known by their slots alone, and nothing is stored of a pair that is not near.
"""


def counted(group: Group) -> int:
    """Number of pairs of shapes of a group, including pairs on one body."""
    n = len(group.first)
    return n * (n - 1) // 2 if group.second is None else n * len(group.second)


def members(group: Group) -> tuple[tuple[str, str], ...]:
    """Kind and body of each shape of a group."""
    return tuple((x.kind, x.body) for x in group.shapes)


def without_names(group: Group, dimension: int) -> bool:
    """Whether a group of free bodies with a capacity has too many contacts for names (`LISTED`)."""
    if counted(group) > LISTED:
        return True
    if isinstance(group.friction, tuple) or any(x.kind not in SOLIDS for x in group.shapes):
        return False
    pairs = pair_counts(members(group), None if group.second is None else len(group.first), group.exclude)
    known = ((kinds, n) for kinds, n in pairs.items() if kinds in PAIRS)
    return (
        sum(n * gap_functions.count(pair_template(kinds), None, dimension) for kinds, n in known) > LISTED
    )


def contacts_alone(parts: Iterable[Part]) -> bool:
    """Whether only contacts join two bodies, and no joint, beam or load does."""
    parts = [x for x in parts if isinstance(x, Part)]
    loads = [x for x in parts if x.kind in LOADS]
    alone = all((len(x.bodies) == 1 or GROUND in x.bodies) and not x.option("law") for x in loads)
    lines = any(LOADS[x.kind].line is not None for x in loads)
    return alone and not lines and not any(x.kind in (*JOINTS, "beam") for x in parts)


def with_groups(parts: Sequence[Part], coordinates: str, dimension: int) -> tuple[Part, ...]:
    """Parts with every group replaced by its contacts, except groups with a capacity of very many free
    bodies (`LISTED`), which stay. Raises `InputError` for groups without a pair, and kinds that do not
    meet.
    """
    groups = [x for x in parts if isinstance(x, Part) and x.kind == "contact_group"]
    if not groups:
        return tuple(parts)
    excluded, found, heap = joined_pairs(parts), [], coordinates == "absolute" and contacts_alone(parts)
    taken = {x.name for x in parts if isinstance(x, Part)} | {GROUND, "gravity"}
    for part in parts:
        if not isinstance(part, Part) or part.kind != "contact_group":
            found.append(part)
        elif heap and part.option("capacity") is None:
            found += _contacts(part, excluded, taken)
        elif heap and without_names(part.numbers, dimension):
            found.append(part)
        else:
            capacity, reach = part.option("capacity"), part.numbers.reach
            found += with_selection(part.name, capacity, reach, _contacts(part, excluded, taken))
    return tuple(found)


def with_selection(name: str, capacity: int | None, reach: Any, contacts: list[Part]) -> list[Part]:
    """Contacts of a group, of which a step evaluates those that are near, and the part with their reach."""
    of = (("group", name), ("capacity", capacity))
    own = [dataclasses.replace(x, options=(*x.options, *of)) for x in contacts]
    return [*own, Part("selection", name, (), numbers.GroupReach(reach=reach), of)]


def _contacts(part: Part, excluded: set[frozenset[str]], taken: set[str]) -> list[Part]:
    """The contacts of a group."""
    found = []
    for pair in meeting(part.numbers, excluded):
        shapes = known_pair(part.name, pair)
        name = unused(f"{pair[0].body}_{pair[1].body}".replace(".", "_"), taken)
        found.append(shape_parts.contact(name, *shapes, **part.numbers.law))
    if not found:
        raise InputError(
            f"contact_group {part.name!r}: each pair of its bodies is joined by a joint, and such bodies "
            "do not touch; add shapes of other bodies, or leave the group out"
        )
    return found


def known_pair(name: str, pair: tuple[Shape, Shape]) -> tuple[Shape, Shape]:
    """Two shapes of a group in the order of their entry in the table of pairs; an error without one."""
    shapes = ordered(*pair)
    if shapes is None:
        kinds, bodies = (" and ".join(x) for x in ([x.kind for x in pair], [x.body for x in pair]))
        raise InputError(
            f"contact_group {name!r}: no pair of {kinds} ({bodies}); replace one of these shapes, or "
            "exclude the two bodies"
        )
    return shapes


# Capacities of groups of contacts: how many candidate pairs a step evaluates, and the numbers of their
# shapes in the form that batches need.


MANY_CONTACTS = 60
"""Number of contacts beyond which a step evaluates only those that are near, and `assemble` warns."""

UNASKED = 16
"""Capacity for pairs of each two kinds of shapes where none is given: of a humanoid's 98 pairs of capsules
at most eleven are near in random poses. A smaller one does not make steps shorter.
"""


def _settled(parts: Sequence[Part], dimension: int, coordinates: str) -> list[Part]:
    """Parts with a capacity and a reach in every group that remains one."""
    found: list[Part | None] = list(parts)
    all_known = coordinates == "absolute" and contacts_alone(parts)
    for part in [x for x in parts if x.kind == "selection"]:
        own = [x for x in parts if x.kind == "contact" and x.option("group") == part.name]
        capacity = part.option("capacity")
        count = sum(gap_functions.count(x, x.numbers, dimension) for x in own)
        more: tuple[tuple[str, Any], ...] = ()
        # pairs of other shapes are all evaluated
        chosen = any(all(y in BOUNDED for y in x.option("shapes")) for x in own)
        if chosen and (capacity is not None or (count > MANY_CONTACTS and not all_known)):
            more = (
                ("group", part.name),
                ("capacity", capacity or UNASKED),
                ("asked", capacity is not None),
            )
        places = {id(x): k for k, x in enumerate(found)}
        for x in own:
            bare = x.without("group", "capacity")
            found[places[id(x)]] = dataclasses.replace(bare, options=(*bare.options, *more))
        reach = part.numbers.reach
        if more and reach is None:
            ends = ((x.option("shapes"), (x.numbers.first, x.numbers.second)) for x in own)
            reach = _reach([y for pair in ends for y in zip(*pair, strict=True)], part.name)
        kept_part = dataclasses.replace(part, numbers=numbers.GroupReach(reach=reach))
        found[places[id(part)]] = kept_part if more else None
    return [x for x in found if x is not None]


def stand_ins(parts: Sequence[Part]) -> list[Part]:
    """A contact for every shape of the groups with a capacity, by which the shape's numbers are checked."""
    found = []
    for part in (x for x in parts if x.kind == "contact_group"):
        for x in part.numbers.shapes:
            both = numbers.Contact(first=x.numbers, second=numbers.Plane())
            found.append(
                Part("contact", part.name, (x.body, GROUND), both, (("shapes", (x.kind, "plane")),))
            )
    return found


def with_candidates(parts: Sequence[Part], dimension: int, coordinates: str) -> tuple[Part, ...]:
    """Parts with the shapes of every group with a capacity stacked in arrays, as params hold them. Raises
    `InputError` for shapes that such a group cannot hold.
    """
    return tuple(
        _as_numbers(part, dimension)
        if part.kind == "contact_group"
        else _alike(part, dimension)
        if part.kind == "contact" and part.option("group")
        else part
        for part in _settled(parts, dimension, coordinates)
    )  # fmt: skip


def _alike(part: Part, dimension: int) -> Part:
    """A contact of a group with a capacity, with defaults for absent numbers, as batches need them."""
    if not all(x in BOUNDED for x in part.option("shapes")):
        return part
    own = part.numbers
    first, second = (filled(x, dimension) for x in (own.first, own.second))
    return dataclasses.replace(part, numbers=dataclasses.replace(own, first=first, second=second))


def _reach(shapes: list[tuple[str, Any]], name: str) -> Any:
    """Default reach: a fraction `REACH` of the smallest radius around a shape; points do not count."""
    once = {id(x): (kind, x) for kind, x in shapes}  # a shape has many contacts
    radii = [
        jnp.asarray(radius_of(kind, x, 2 if getattr(x, "half_depth", None) is None else 3), float)
        for kind, x in once.values()
        if kind in BOUNDED and kind not in ENDLESS and not (kind == "sphere" and x.radius is None)
    ]
    if not radii:
        raise InputError(
            f"contact_group {name!r}: points have no size, from which a default of reach follows; give one"
        )
    return REACH * jnp.min(jnp.stack(radii))


def _as_numbers(part: Part, dimension: int) -> Part:
    """A group whose shapes of each kind are stacked in arrays."""
    group, name = part.numbers, part.name
    for shape in group.shapes:
        if shape.kind not in SOLIDS:
            raise InputError(
                f"contact_group {name!r}: a {shape.kind} does not work with a capacity; give "
                f"{', '.join(SOLIDS)}, or leave capacity out"
            )
    kinds = dict.fromkeys(x.kind for x in group.shapes)
    both = itertools.combinations_with_replacement(kinds, 2)
    odd = {x for pair in both if pair not in PAIRS and pair[::-1] not in PAIRS for x in pair}
    # only shapes of these kinds are paired, since a group may have very many pairs
    one, other = (
        None if x is None else tuple(y for y in x if y.kind in odd) for x in (group.first, group.second)
    )
    for pair in meeting(dataclasses.replace(group, first=one or (), second=other), set()):
        known_pair(name, pair)
    stacks = {
        kind: side_by_side([filled(x.numbers, dimension) for x in group.shapes if x.kind == kind])
        for kind in kinds
    }
    reach = group.reach
    if reach is None:
        reach = _reach([(x.kind, x.numbers) for x in group.shapes], name)
    law = group.law | coefficients(name, group.friction)
    made_of = numbers.ContactGroup(shapes=stacks, reach=reach, **law)
    options = {
        "capacity": part.option("capacity"), "members": members(group),
        "split": None if group.second is None else len(group.first), "apart": group.exclude,
    }  # fmt: skip
    return dataclasses.replace(part, numbers=made_of, options=tuple(options.items()))


def filled(shape: Any, dimension: int) -> Any:
    """A shape with defaults in place of None, so that shapes of a kind can be stacked in arrays."""
    if isinstance(shape, numbers.Hull):
        return shape
    a, own = ALGEBRA[dimension], {f.name: getattr(shape, f.name) for f in dataclasses.fields(shape)}
    unit = np.eye(dimension)
    instead = {
        "radius": 0.0, "half_depth": 0.0, "axis": unit[0], "normal": unit[-1],
        "turned": 0.0 if dimension == 2 else np.zeros(3),
    }  # fmt: skip
    kept = {k: instead[k] if x is None and k in instead else x for k, x in own.items()}
    return type(shape)(**kept | {"at": a.array(a.vector(own["at"]))})
