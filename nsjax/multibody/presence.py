"""What of a mechanism takes part: contacts and their choice, limits, motions, rows of constraints."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import System
from nsjax.core.slots import ContactSet, ContactSlots, Slots
from nsjax.math import taken
from nsjax.multibody.contacts import gap_functions, turning_friction
from nsjax.multibody.contacts.batches import Batch, batched, turning_keys
from nsjax.multibody.contacts.heaps import batches_of
from nsjax.multibody.contacts.named_contacts import Choice, NamedContacts
from nsjax.multibody.coordinates.frames import held_features
from nsjax.multibody.couplings import KINDS as COUPLINGS
from nsjax.multibody.joints import kind_of
from nsjax.multibody.loads import rubs_on_drum
from nsjax.multibody.parts import GROUND, Part
from nsjax.multibody.topology import Topology, is_measured
from nsjax.types import Array, PyTree

if TYPE_CHECKING:
    from nsjax.multibody.mechanism import Mechanism


# The pieces in which named contacts are evaluated: one by one, and batches of equal pairs.


def _frictionless_last(
    contacts: list[Part], counts: list[int], of: dict[str, Batch]
) -> tuple[list[Part], list[int]]:
    """Contacts and their numbers of rows; the frictionless ones of batches with a group are at the end."""

    def frictionless(k: int) -> bool:
        piece = of.get(contacts[k].name)
        return piece is not None and piece.group is not None and piece.frictionless

    order = sorted(range(len(contacts)), key=frictionless)
    return [contacts[k] for k in order], [counts[k] for k in order]


def named(parts: Sequence[Part], dimension: int, at_once: int | None = 4) -> NamedContacts:
    """Named contacts; ``at_once`` equal pairs (or two, if searched) make a batch, whose program is then the
    shorter one; None: no batches.
    """
    contacts = [x for x in parts if x.kind == "contact"]
    counts = [gap_functions.count(x, x.numbers, dimension) for x in contacts]
    # pairs of a batch have the numbers of their shapes alone, not a grain
    rigid = [x for x in contacts if gap_functions.rigid(x) and x.option("grain") is None]
    groups = []
    if at_once is not None:  # a search is a larger program
        many = batched(rigid, dimension)
        groups = [x for x in many if len(x.names) >= (min(at_once, 2) if x.searched else at_once)]
    of = {name: x for x in groups for name in x.names}
    places = dict(zip([x.name for x in contacts], np.cumsum([0, *counts])[:-1], strict=True))
    pieces: list[Part | Batch] = []
    rows, own_numbers, turning, done = [], [], [], set()
    # frictionless contacts of a step come last, see `System.frictionless`
    contacts, counts = _frictionless_last(contacts, counts, of)
    for part, n in zip(contacts, counts, strict=True):
        if part.name in done:
            continue
        piece = of.get(part.name)
        own = (part.name,) if piece is None else piece.names
        done |= set(own)
        pieces.append(dataclasses.replace(part, numbers=None) if piece is None else piece)
        rows.append(n * len(own))
        turning.append(turning_keys(part))
        own_numbers += [int(places[name]) + k for name in own for k in range(n)]
    kept = own_numbers == sorted(own_numbers)
    order = None if kept else tuple(int(k) for k in np.argsort(own_numbers))
    return NamedContacts(dimension, tuple(pieces), tuple(rows), order, tuple(turning))


# Contacts, limits, dry friction and motions of a mechanism, as the given numbers decide.


@dataclasses.dataclass(frozen=True)
class Presence:
    """Features of a mechanism that decide the sizes of its system.

    Args:
        contacts: names of the contacts of every part, in their order.
        touching: the body of each contact with the ground; "" for a contact between two bodies.
        limits: joints and tendons with limits, as ``(name, "lower")`` or ``(name, "upper")``; those of
            ropes with capstan friction first.
        capstans: number of the limits, the first ones, that have capstan friction.
        dry_frictions: names of joints and tendons with dry friction.
        motions: names of joints with a prescribed motion.
        tangents: number of tangents of a contact.
        named: named contacts.
        dropped: names of the redundant constraint rows that are left out.
        found: candidate pairs of free bodies, see `nsjax.multibody.contacts.heaps.Contacts`.
        frictionless: number of contacts without friction, limits included, after the last one with it.
        couplings: names of the couplings of joints.
        switched: names of the joints and couplings that come and go (``active``), and of their rows, which
            come after the rows of ``dry_frictions``.
        turning: names of the bounded rows of contacts with friction against turning, which come after the
            rows of ``switched``.
        poisson: whether restitution is that of impulses.
    """

    contacts: tuple[str, ...]
    touching: tuple[str, ...]
    limits: tuple[tuple[str, str], ...]
    dry_frictions: tuple[str, ...]
    motions: tuple[str, ...]
    tangents: int
    named: NamedContacts
    dropped: tuple[str, ...] = ()
    found: tuple[Batch, ...] = ()
    frictionless: int = 0
    couplings: tuple[str, ...] = ()
    turning: tuple[str, ...] = ()
    switched: tuple[tuple[str, tuple[str, ...]], ...] = ()
    poisson: bool = False
    capstans: int = 0

    @property
    def bounded(self) -> tuple[str, ...]:
        """Names of all bounded rows."""
        return (*self.dry_frictions, *(x for _, rows in self.switched for x in rows), *self.turning)


def presence_of(parts: tuple[Part, ...], topology: Topology) -> Presence:
    """Features of a mechanism from the numbers of its parts."""
    contacts: list[str] = []
    touching: list[str] = []
    capstans, limits, dry_frictions, rough, frictionless = [], [], [], False, 0
    d = topology.dimension
    for part in parts:
        if part.kind == "contact":
            names = gap_functions.names(part, part.numbers, d)
            contacts += names
            touching += [part.bodies[0] if part.bodies[1] == GROUND else ""] * len(names)
            frictionless = frictionless + len(names) if part.numbers.friction is None else 0
        elif is_measured(part) and not part.option("switched"):
            capstans += [(part.name, "upper")] if rubs_on_drum(part) else []
            limits += [(part.name, x) for x in ("lower", "upper") if getattr(part.numbers, x) is not None]
            rubs = part.numbers.friction is not None or part.option("friction_law") is not None
            dry_frictions += [part.name] if rubs else []
        if part.kind in ("contact", "contact_group"):
            rough = rough or part.numbers.friction is not None
    motions = tuple(x.name for x in parts if x.option("motion") is not None)
    tangents = d - 1 if rough or capstans else 0
    limits = [*capstans, *(x for x in limits if x not in capstans)]
    smooth = len(limits) - len(capstans) if capstans else frictionless + len(limits)
    found = batches_of(parts, topology)
    # beside candidate pairs of free bodies all contacts with names are evaluated
    alike = named([x.without("group", "capacity") for x in parts] if found else parts, d)
    turning_friction.check_restitution(parts)
    turning_friction.check_capacity(parts)
    if alike.chosen:  # the contacts of a step may join any bodies
        touching = [""] * len(touching)
    for batch in found:
        contacts += batch.slots
    return Presence(
        tuple(contacts), tuple(touching), tuple(limits), tuple(dry_frictions), motions, tangents,
        alike, found=found, frictionless=0 if found else smooth,
        couplings=tuple(x.name for x in parts if x.kind in COUPLINGS and not x.option("switched")),
        switched=tuple(
            (x.name, (x.name,) if x.kind in COUPLINGS else tuple(kind_of(x).row_names(x, d)))
            for x in parts
            if x.option("switched")
        ),
        turning=turning_friction.row_names(parts, d),
        poisson=any(x.option("poisson") for x in parts), capstans=len(capstans),
    )  # fmt: skip


# Rows of the constraints of a mechanism: their names, and the redundant rows that are left out.


@dataclasses.dataclass(frozen=True)
class ConstraintRows:
    """Constraint rows: joints that close loops, prescribed motions, couplings, rows on velocities alone."""

    topology: Topology
    presence: Presence

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all constraint rows, including those left out."""
        of, closures, d = self.topology.of, self.topology.closures, self.topology.dimension
        found = [x for name in closures for x in kind_of(of[name]).row_names(of[name], d)]
        motions = (f"{name}.motion" for name in self.presence.motions)
        return (*found, *motions, *self.presence.couplings, *self.rates)

    @functools.cached_property
    def rates(self) -> tuple[str, ...]:
        """Names of the rows on velocities alone, which come last."""
        parts = [self.topology.of[name] for name in self.topology.closures]
        return tuple(x for part in parts for x in kind_of(part).rate_names(part, self.topology.dimension))

    @property
    def dropped(self) -> bool:
        """Whether any row is left out."""
        return bool(self.presence.dropped)

    @functools.cached_property
    def present(self) -> tuple[str, ...]:
        """Names of the rows that are not left out."""
        return tuple(x for x in self.names if x not in self.presence.dropped)

    @functools.cached_property
    def kept_numbers(self) -> tuple[list[int], list[int]]:
        """Numbers of the kept rows on positions and of those on velocities, each counted from zero."""
        first = len(self.names) - len(self.rates)
        kept = [k for k, name in enumerate(self.names) if name in self.present]
        return [k for k in kept if k < first], [k - first for k in kept if k >= first]

    def all_of(self, x: Array) -> Array:
        """Multipliers of all constraint rows, zero for rows left out, from those of the kept rows."""
        if not self.dropped:
            return x
        places = [self.present.index(x) if x in self.present else len(self.present) for x in self.names]
        return taken(jnp.concatenate([x, jnp.zeros(1)]), np.array(places))


# The near contacts of a mechanism, which a step evaluates.


@dataclasses.dataclass(frozen=True)
class Selection(ContactSet):
    """Maps between the few contacts that a step evaluates and all contacts of a mechanism."""

    mechanism: Mechanism

    @functools.cached_property
    def _few(self) -> System:
        return dataclasses.replace(self.mechanism, few=True).system()

    def of_step(self, system: System) -> System:
        """The system of the chosen contacts."""
        return self._few

    def promises(self) -> dict[str, Any]:
        """Arguments of the system, for all contacts or for the few."""
        if self.mechanism.few:
            return {"allowed": self.allowed}
        return {"contact_set": self} if self.mechanism.chooses else {}

    def allowed(self, t: Array, q: Array, p: PyTree) -> Array:
        """Mask (nc,) of the slots of the few that hold a contact; true for joint limits."""
        used = [
            np.ones(len(own_numbers), bool) if x is None else jnp.repeat(x.slots.used, piece.rows)
            for piece, own_numbers, x in self._pieces(p)
        ]
        return jnp.concatenate([*used, np.ones(len(self.mechanism.presence.limits), bool)])

    def _pieces(self, p: PyTree) -> Iterator[tuple[Any, np.ndarray, Choice | None]]:
        """Every piece, the numbers of its contacts, and its choice; None: all pairs are evaluated."""
        named = self.mechanism.presence.named
        few = named.of_step
        for piece, own_numbers in zip(named.pieces, named.numbers, strict=True):
            yield piece, own_numbers, few.choice(piece, p)

    def slots(self, p: PyTree, stored: Array | None) -> ContactSlots:
        """Places of the contacts, and of the laws of friction against turning, among those of a step."""
        named = self.mechanism.presence.named
        pieces, each = list(self._pieces(p)), [len(keys) for keys in named.turning]
        contacts = [(own_numbers, choice, _rows(piece)) for piece, own_numbers, choice in pieces]
        order, count = turning_friction.order_of(named, each), turning_friction.laws(named)
        numbers = np.arange(count) if order is None else np.argsort(order)
        laws, first = [], 0
        for (piece, own_numbers, choice), n in zip(pieces, each, strict=True):
            if n:
                laws.append((numbers[first : first + n * len(own_numbers)], choice, n * _rows(piece)))
                first += n * len(own_numbers)
        return ContactSlots(
            contacts=_joined(contacts, named.order), laws=_joined(laws, order) if laws else None,
            common=len(self.mechanism.presence.limits),
        )  # fmt: skip

    def overflow(self, p: PyTree) -> Array:
        """Whether more pairs of a batch were near than it has slots."""
        chosen = self.mechanism.presence.named.chosen
        return jnp.any(jnp.stack([held_features(p).chosen[x.names[0]].near > x.places for x in chosen]))

    def near_counts(self, q: Array, p: PyTree) -> dict[str, Array]:
        """Largest number () of near pairs of a batch, by the name of the group."""
        found: dict[str, Array] = {}
        for piece in self.mechanism.presence.named.chosen:
            near, group = held_features(p).chosen[piece.names[0]].near, str(piece.group)
            found[group] = jnp.maximum(found[group], near) if group in found else near
        return found


def _rows(piece: Part | Batch) -> int:
    """Number of contacts of each pair of a piece."""
    return piece.rows if isinstance(piece, Batch) else 1


def _joined(parts: list[tuple[np.ndarray, Choice | None, int]], order: Any) -> Slots:
    """Places of features of several pieces, one piece after the other.

    Args:
        parts: of each piece numbers of features, its choice (None: all have a place), features of a pair.
        order: index of each feature in the concatenated pieces; None if the order is the same.
    """
    own = [Slots.every(len(x)) if choice is None else choice.slots.rows(n) for x, choice, n in parts]
    total, first = sum(x.places for x in own), 0
    which, place = [], []
    for (numbers, choice, _), slots in zip(parts, own, strict=True):
        which.append(numbers if choice is None else jnp.asarray(numbers)[slots.which])
        there = (
            slots.place if slots.all else jnp.where(slots.place < slots.places, first + slots.place, total)
        )
        place.append(first + there if slots.all else there)
        first += slots.places
    found = jnp.concatenate(place)
    return Slots(
        which=jnp.concatenate(which), used=jnp.concatenate([x.used for x in own]),
        place=found if order is None else taken(found, np.array(order)),
    )  # fmt: skip
