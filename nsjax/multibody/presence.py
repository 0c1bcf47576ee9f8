"""Contacts, limits, dry friction and motions of a mechanism, as the given numbers decide."""

from __future__ import annotations

import dataclasses

from nsjax.multibody.contacts import gap_functions, turning_friction
from nsjax.multibody.contacts.batches import Batch
from nsjax.multibody.contacts.heaps import batches_of
from nsjax.multibody.contacts.named_contacts import NamedContacts
from nsjax.multibody.contacts.pieces import named
from nsjax.multibody.couplings import KINDS as COUPLINGS
from nsjax.multibody.parts import GROUND, Part
from nsjax.multibody.topology import Topology, is_measured


@dataclasses.dataclass(frozen=True)
class Presence:
    """Features of a mechanism that decide the sizes of its system.

    Args:
        contacts: names of the contacts of every part, in their order.
        touching: the body of each contact with the ground; "" for a contact between two bodies.
        limits: joints and tendons with limits, as ``(name, "lower")`` or ``(name, "upper")``.
        drags: names of joints and tendons with dry friction.
        motions: names of joints with a prescribed motion.
        tangents: number of tangents of a contact.
        named: named contacts.
        dropped: names of the redundant constraint rows that are left out.
        batches, order: contacts of free bodies, see `nsjax.multibody.contacts.heaps.Contacts`.
        smooth: number of frictionless contacts, limits included, after the last contact with friction.
        couplings: names of the couplings of joints.
        turning: names of the bounded rows of contacts with friction against turning, which come after the
            rows of ``drags``.
    """

    contacts: tuple[str, ...]
    touching: tuple[str, ...]
    limits: tuple[tuple[str, str], ...]
    drags: tuple[str, ...]
    motions: tuple[str, ...]
    tangents: int
    named: NamedContacts
    dropped: tuple[str, ...] = ()
    batches: tuple[Batch, ...] = ()
    order: tuple[int, ...] | None = None
    smooth: int = 0
    couplings: tuple[str, ...] = ()
    turning: tuple[str, ...] = ()

    @property
    def bounded(self) -> tuple[str, ...]:
        """Names of all bounded rows."""
        return (*self.drags, *self.turning)


def presence_of(parts: tuple[Part, ...], topology: Topology) -> Presence:
    """Features of a mechanism from the numbers of its parts."""
    contacts: list[str] = []
    touching: list[str] = []
    limits, drags, rough, smooth = [], [], False, 0
    for part in parts:
        if part.kind == "contact":
            names = gap_functions.names(part, part.numbers, topology.dimension)
            contacts += names
            touching += [part.bodies[0] if part.bodies[1] == GROUND else ""] * len(names)
            smooth = smooth + len(names) if part.numbers.friction is None else 0
        elif is_measured(part):
            limits += [(part.name, x) for x in ("lower", "upper") if getattr(part.numbers, x) is not None]
            drags += [part.name] if part.numbers.friction is not None else []
        if part.kind in ("contact", "contact_group"):
            rough = rough or part.numbers.friction is not None
    motions = tuple(x.name for x in parts if x.option("motion") is not None)
    tangents = topology.dimension - 1 if rough else 0
    batches, order = batches_of(parts, topology)
    alike = named(parts, topology.dimension)
    turning_friction.check_capacity(parts)
    if alike.chosen:  # the contacts of a step may join any bodies
        touching = [""] * len(touching)
    for batch in batches:
        contacts += batch.slots
    return Presence(
        tuple(contacts), tuple(touching), tuple(limits), tuple(drags), motions, tangents,
        alike, batches=batches, order=order, smooth=0 if batches else smooth + len(limits),
        couplings=tuple(x.name for x in parts if x.kind in COUPLINGS),
        turning=turning_friction.row_names(parts, topology.dimension),
    )  # fmt: skip
