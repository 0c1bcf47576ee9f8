"""Capacities of groups of contacts: how many candidate pairs a step evaluates, and the numbers of their
shapes in the form that batches need.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.multibody import numbers
from nsjax.multibody.contacts import gap_functions
from nsjax.multibody.contacts.all_pairs import KINDS as PAIRS
from nsjax.multibody.contacts.bounding_volumes import BOUNDED, ENDLESS, REACH, SOLIDS, radius_of
from nsjax.multibody.contacts.groups import contacts_alone, known_pair, meeting, members
from nsjax.multibody.contacts.turning_friction import coefficients
from nsjax.multibody.coordinates.frames import ALGEBRA
from nsjax.multibody.numbers import side_by_side
from nsjax.multibody.parts import GROUND, Part

MANY_ROWS = 60
"""Number of contacts of a group or file beyond which a step evaluates only those that are near, and
`assemble` warns. For a humanoid with 371 contacts Moreau's step takes 1.07 ms with all of them, 0.6 ms with
those that are near; MuJoCo's step takes 0.033 ms.
"""

MILLISECONDS = 0.2
"""Time of Moreau's step for each frictional contact of boxes that stand on each other [ms], on one core:
0.15 to 0.5 for 48 to 80 contacts (6 to 10 boxes), where Newton's steps on all rows are most of it."""

UNASKED = 16
"""Capacity for pairs of each two kinds of shapes where none is given. Of the humanoid's 98 pairs of
capsules at most two are near while it falls, and at most eleven in random poses. A smaller one does not
pay: with six a quadruped keeps 268 contacts in place of 416, and its step takes as long, some 180 times
MuJoCo's.
"""


def _settled(parts: Sequence[Part], dimension: int, coordinates: str) -> list[Part]:
    """Parts in which every group has a capacity and a reach, without the groups of which a step evaluates
    all contacts.
    """
    found: list[Part | None] = list(parts)
    all_known = coordinates == "absolute" and contacts_alone(parts)
    for part in [x for x in parts if x.kind == "selection"]:
        own = [x for x in parts if x.kind == "contact" and x.option("group") == part.name]
        capacity, count = (
            part.option("capacity"),
            sum(gap_functions.count(x, x.numbers, dimension) for x in own),
        )
        more: tuple[tuple[str, Any], ...] = ()
        # pairs of other shapes are all evaluated
        chosen = any(all(y in BOUNDED for y in x.option("shapes")) for x in own)
        if chosen and (capacity is not None or (count > MANY_ROWS and not all_known)):
            more = (
                ("group", part.name),
                ("capacity", capacity or UNASKED),
                ("asked", capacity is not None),
            )
        places = {id(x): k for k, x in enumerate(found)}
        for x in own:
            kept = tuple(y for y in x.options if y[0] not in ("group", "capacity"))
            found[places[id(x)]] = dataclasses.replace(x, options=(*kept, *more))
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
    """Parts with the shapes of every group with a capacity stacked in arrays, as params hold them.

    Raises:
        InputError: for shapes that such a group cannot hold.
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
