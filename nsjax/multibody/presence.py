"""What the numbers of a mechanism decide: which contacts, limits, dry joints and motions there are."""

from __future__ import annotations

import dataclasses

from nsjax.multibody.contacts import gap_functions, turning_friction
from nsjax.multibody.contacts.batches import Batch
from nsjax.multibody.contacts.heaps import batches_of
from nsjax.multibody.contacts.named_contacts import Named, named
from nsjax.multibody.contacts.turning_friction import TurningRow
from nsjax.multibody.couplings import KINDS as COUPLINGS
from nsjax.multibody.joints import KINDS as JOINTS
from nsjax.multibody.loads import has_line
from nsjax.multibody.parts import GROUND, Part
from nsjax.multibody.topology import Topology


@dataclasses.dataclass(frozen=True)
class Presence:
    """Which numbers are there, as far as the sizes of the system follow from them.

    Args:
        contacts: names of the contacts of every part, in their order.
        touching: the body of each that touches the ground, "" for contacts between two bodies.
        limits: joints and tendons with limits, and which: ``(name, "lower")``.
        drags: joints and tendons with dry friction.
        turning: bounded rows of contacts with friction against turning, which stand behind those.
        motions: joints with a prescribed motion.
        couplings: names of the couplings of joints.
        tangents: per contact.
        smooth: contacts without friction, limits included, that stand behind all others.
        dropped: names of the rows of loops that follow from others and are left out.
        named: contacts by name.
        batches, order: contacts of free bodies, see `nsjax.multibody.contacts.heaps.Contacts`.
    """

    contacts: tuple[str, ...]
    touching: tuple[str, ...]
    limits: tuple[tuple[str, str], ...]
    drags: tuple[str, ...]
    motions: tuple[str, ...]
    tangents: int
    named: Named
    dropped: tuple[str, ...] = ()
    batches: tuple[Batch, ...] = ()
    order: tuple[int, ...] | None = None
    smooth: int = 0
    couplings: tuple[str, ...] = ()
    turning: tuple[TurningRow, ...] = ()

    @property
    def bounded(self) -> tuple[str, ...]:
        """Names of all bounded rows."""
        return (*self.drags, *(row.name for row in self.turning))

    @property
    def followed(self) -> tuple[int, ...]:
        """Contact that each bounded row follows, -1: none; () where none follows any."""
        if not self.turning:
            return ()
        return (*(-1 for _ in self.drags), *(row.contact for row in self.turning))


def presence_of(parts: tuple[Part, ...], topology: Topology) -> Presence:
    """What the numbers of the parts decide."""
    contacts: list[str] = []
    touching: list[str] = []
    limits, drags, rough, smooth = [], [], False, 0
    for part in parts:
        if part.kind == "contact":
            names = gap_functions.names(part, part.numbers, topology.dimension)
            contacts += names
            touching += [part.bodies[0] if part.bodies[1] == GROUND else ""] * len(names)
            smooth = smooth + len(names) if part.numbers.friction is None else 0
        elif has_line(part) or (part.kind in JOINTS and JOINTS[part.kind].measure is not None):
            limits += [(part.name, x) for x in ("lower", "upper") if getattr(part.numbers, x) is not None]
            drags += [part.name] if part.numbers.friction is not None else []
        if part.kind in ("contact", "contact_group"):
            rough = rough or part.numbers.friction is not None
    motions = tuple(x.name for x in parts if x.option("motion") is not None)
    tangents = topology.dimension - 1 if rough else 0
    batches, order = batches_of(parts, topology)
    alike = named(parts, topology.dimension)
    turning_friction.check_capacity(parts)
    if alike.chosen:  # which bodies those of a step join is not known
        touching = [""] * len(touching)
    for batch in batches:
        contacts += batch.slots
    return Presence(
        tuple(contacts), tuple(touching), tuple(limits), tuple(drags), motions, tangents,
        alike, batches=batches, order=order, smooth=0 if batches else smooth + len(limits),
        couplings=tuple(x.name for x in parts if x.kind in COUPLINGS),
        turning=turning_friction.rows_of(parts, topology.dimension),
    )  # fmt: skip
