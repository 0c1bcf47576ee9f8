"""Quantities of a system by name, at a state or in the rows of a run."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.errors import InputError, nearest, observed
from nsjax.core.operators import kinetic_energy, potential_energy, prepared, refreshed
from nsjax.core.scheme import NOTES, ROWS, Event, Output
from nsjax.core.system import System
from nsjax.core.system_parts import forces_across, part_unit
from nsjax.jaxtools.owned import compiled_for, kept
from nsjax.part_rows import OF_PARTS, BodyRows, contact_groups
from nsjax.renamed import OLD_FIELDS, say_new_name
from nsjax.types import Array, PyTree

ENERGIES: dict[str, Callable[..., Array]] = {
    "kinetic": lambda system, t, q, v, p: kinetic_energy(system, q, v, p),
    "potential": lambda system, t, q, v, p: potential_energy(system, t, q, p),
    "energy": lambda system, t, q, v, p: (
        kinetic_energy(system, q, v, p) + potential_energy(system, t, q, p)
    ),
}

FIELDS: dict[str, tuple[str, ...]] = {
    "body": (*(f.name for f in dataclasses.fields(BodyRows)), "acceleration"),
    **OF_PARTS,
}
"""Quantities of parts, see `Trajectory.body`, `joint` and `load`."""

UNITS = {
    "position": "m", "velocity": "m/s", "spin": "rad/s", "acceleration": "m/s^2", "kinetic": "J",
    "potential": "J", "force": "N", "torque": "N m", "impulse": "N s", "power": "W", "energy": "J",
    "gap": "m", "distance": "m", "mass_centre": "m",
}  # fmt: skip
"""Units of quantities of parts; those of joints and efforts follow the part."""

FORCES = (("joint", "force"), ("joint", "torque"), ("body", "acceleration"))
"""Quantities of parts that need forces of contacts and constraints."""

OF_CONTACTS = {"gap": "gaps", "force": "forces", "impulse": "impulses", "impacts": "impact_counts"}
"""Quantities of one contact, and of all contacts of a part, along an axis even where it has only one."""


@dataclasses.dataclass(frozen=True)
class NamedQuantity:
    """A quantity that a system has in every row.

    Args:
        kind: ``"q"``, ``"v"``, ``"observable"``, ``"energy"``, ``"body"``, ``"joint"``, ``"load"``,
            ``"contact"``, ``"dry_friction"`` (a bounded row) or ``"sensor"``.
        unit: empty if the model gives none.
        read: ``(t, q, v, output, p) -> value``, see `read`.
        needs_rows: whether it depends on forces, or is accumulated since the row before.
        contacts: labels of the contacts along its first axis, if it is one of all contacts of a part.
        axes: names of the components of a vector: ``"pin.force.x"``, ``"guide.0.force.n"`` of a contact.
    """

    kind: str
    unit: str
    read: Callable[..., Any]
    needs_rows: bool = False
    contacts: tuple[str, ...] = ()
    axes: tuple[str, ...] = ("x", "y", "z")

    def component(self, name: str) -> NamedQuantity:
        """The component of this name, ``"pin.force.x"``."""
        whole, _, axis = name.rpartition(".")
        k = self.axes.index(axis)

        def entry(*row: Any) -> Any:
            value = jnp.asarray(self.read(*row))
            if not value.shape or value.shape[-1] <= k:
                raise InputError(f"{name}: {whole} has shape {value.shape}, without {axis}; name {whole}")
            return value[..., k]

        return dataclasses.replace(self, read=entry, axes=())


def part_and_singular(name: str) -> tuple[str, str]:
    """The part, and the quantity of each of its contacts, of a quantity in the plural.

    Example:
        >>> from nsjax.sensors import part_and_singular
        >>> part_and_singular("guide.forces.n")
        ('guide', 'force.n')
    """
    words = name.split(".")
    singular = {x: one for one, several in OF_CONTACTS.items() for x in (one, several)}
    k = max(k for k, word in enumerate(words) if word in singular)
    return ".".join(words[:k]), ".".join([singular[words[k]], *words[k + 1 :]])


def label_name(entry: str) -> str:
    """Name in a label: ``"theta1"`` for ``"theta1 [rad]"``."""
    return entry.split(" [")[0]


def label_unit(entry: str) -> str:
    """Unit in a label: ``"rad"`` for ``"theta1 [rad]"``."""
    return entry.split(" [")[1].rstrip("]") if " [" in entry else ""


@kept
def table(system: System) -> dict[str, NamedQuantity]:
    """All quantities of a system by name. Where two have the same name, the first one is meant."""
    labels, found = system.labels, dict[str, NamedQuantity]()

    def add(label: str, kind: str, read: Any, unit: str = "", needs_rows: bool = False) -> None:
        made = NamedQuantity(kind, unit or label_unit(label), read, needs_rows)
        found.setdefault(label_name(label), made)

    for kind, at in (("q", 1), ("v", 2)):
        for k, label in enumerate(getattr(labels, kind)):
            add(label, kind, lambda *row, at=at, k=k: row[at][..., k])
    observe: Any = system.observe
    for label in labels.observables:
        add(label, "observable", lambda *row, label=label: observed(observe, *row)[label_name(label)])
    for name, energy in ENERGIES.items():
        add(name, "energy", lambda t, q, v, _, p, energy=energy: energy(system, t, q, v, p), "J")
    for kind, fields in FIELDS.items() if system.parts is not None else ():
        for part, field in itertools.product(system.parts.part_names(kind), fields):
            unit = part_unit(system.parts, part, field) or UNITS.get(field, "")
            read = functools.partial(_of_part, system, kind, part, field)
            add(f"{part}.{field}", kind, read, unit, (kind, field) in FORCES)
    for k, name in enumerate(labels.contacts):
        gap = labels.gaps[k] if labels.gaps else "m"
        for field in OF_CONTACTS:
            found.setdefault(f"{name}.{field}", _contact_quantity(name, field, k, gap))
    for name, which in contact_groups(labels.contacts).items():
        several = tuple(labels.contacts[k] for k in which)
        for field, plural in OF_CONTACTS.items():
            gap = labels.gaps[which[0]] if labels.gaps else "m"
            made = _contact_quantity(name, field, np.array(which), gap, several)
            found.setdefault(f"{name}.{plural}", made)
    for k, name in enumerate(labels.dry_frictions):
        for field in ("force", "impulse"):
            of = operator.attrgetter(f"dry_friction_{field}")
            entry = lambda *row, of=of, k=k: of(row[3])[k]  # noqa: E731
            add(f"{name}.{field}", "dry_friction", entry, UNITS[field], True)
    for own, node in getattr(system.parts, "other_names", {}).items():  # of ends and stations of beams
        for name in [x for x in found if x.startswith(f"{node}.")]:
            found.setdefault(own + name.removeprefix(node), found[name])
    return found


def find(system: System, name: str) -> NamedQuantity | None:
    """The quantity or component of this name; None: there is none.

    Example:
        >>> from nsjax import models
        >>> from nsjax.sensors import find
        >>> find(models.bouncing_ball().system, "vy").unit
        'm/s'
    """
    known = table(system)
    whole, _, last = name.rpartition(".")
    if name in known or not whole:
        return known.get(name)
    now = f"{whole}.{OF_CONTACTS.get(last) or OLD_FIELDS['JointRows'].get(last)}"
    if now in known:
        say_new_name(name, now, 4)
        return known[now]
    vector = known.get(whole) or (find(system, whole) if "." in whole else None)
    return vector.component(name) if vector is not None and last in vector.axes else None


def quantity(system: System, name: Any) -> NamedQuantity:
    """The quantity ``name``, or that of a `nsjax.multibody.sensor`. Raises `InputError` for an unknown
    name, with the nearest known one.
    """
    if not isinstance(name, str):
        return _of_sensor(system, name)
    found = find(system, name)
    if found is None:
        raise InputError(
            f"sensor: unknown quantity {name!r}; {nearest(name, table(system), 'traj.keys()')}"
        )
    return found


def _of_sensor(system: System, sensor: Any) -> NamedQuantity:
    if not hasattr(sensor, "needs_forces"):
        raise InputError(f"sensor: {sensor!r} is no name and no nsjax.multibody.sensor")
    if system.parts is None:
        raise InputError(f"sensor: {sensor} measures parts, and {system!r} is not made of parts")
    for kind, name in sensor.looks_at:
        names = system.parts.part_names(kind) + (system.parts.part_names("line") if kind == "joint" else ())
        if name not in ("ground", *names):
            raise InputError(
                f"sensor {sensor.name!r} measures the {kind} {name!r}, which the mechanism does not have; "
                f"{nearest(name, names)}"
            )
    read = functools.partial(_of_part, system, "sensor", sensor, "value")
    return NamedQuantity("sensor", UNITS.get(sensor.kind, ""), read, bool(sensor.needs_forces))


def needed_rows(system: System, names: Sequence[Any]) -> tuple[str, ...]:
    """Row quantities that a run must keep for the quantities ``names``. Raises `InputError` for an unknown
    name.
    """
    needed = [quantity(system, name).needs_rows for name in names]
    return tuple(x for x in ROWS if x not in NOTES) if any(needed) else ()


def row_output(rows: Mapping[str, Any]) -> Output | None:
    """Row quantities as an `Output` of a scheme; None if some are not kept."""
    kept: dict[str, Any] = {name: rows.get(name) for name in ROWS}
    if any(value is None for name, value in kept.items() if name not in NOTES):
        return None
    event = Event(
        gap=kept["gap_min"],
        active=kept["closed_time"] > 0,
        impact=kept["impacts"] > 0,
        rate_before=jnp.zeros_like(kept["gap_min"]),
        rate_after=jnp.zeros_like(kept["gap_min"]),
        shift=jnp.zeros_like(kept["gap_min"]),
        timed=kept["impacts"] > 0,
    )
    shape = jnp.shape(kept["iterations"])
    return Output(**kept, event=event, status=jnp.zeros(shape, int), contact=jnp.full(shape, -1))


def read(system: System, name: Any, *row: Any) -> Array:
    """A quantity by its name, with prepared and refreshed params. ``name``: its name, or a sensor; ``row``:
    ``t, q, v, output, p``; ``output``, from `row_output`, holds forces and the quantities accumulated since
    the row before.
    """
    found = quantity(system, name)
    if found.needs_rows and row[3] is None:
        raise InputError(f"sensor: {name} needs forces, which are not saved; run simulate with save=None")
    return jnp.asarray(found.read(*row))


def _of_part(system: System, kind: str, part: Any, field: str, *row: Any) -> Array:
    if field == "acceleration":
        kind, field = field, "value"
    return system.parts.part_row(kind, part, *row)[field]


def _of_contact(name: str, which: np.ndarray, field: str, *row: Any) -> Array:
    output = row[3]
    if field in ("gap", "impacts"):
        return jnp.asarray(getattr(output, field)[which])
    normal, tangential = (getattr(output, f"{field}_{way}")[which] for way in ("normal", "tangential"))
    return jnp.concatenate([normal[..., None], forces_across(row[4], name, tangential)], axis=-1)


def _contact_quantity(
    name: str, field: str, which: Any, gap: str, contacts: tuple[str, ...] = ()
) -> NamedQuantity:
    """A quantity of the contacts with the numbers ``which``: one, or those of a part."""
    unit = {"gap": gap, "impacts": ""}.get(field, UNITS.get(field, ""))
    axes = ("n", "t1", "t2") if field in ("force", "impulse") else ()
    return NamedQuantity(
        "contact", unit, functools.partial(_of_contact, name, which, field), True, contacts, axes
    )


@compiled_for("system", "name")
def read_rows(system: System, name: Any, params: PyTree, rows: tuple[Any, ...]) -> Array:
    """A quantity in all rows ``t, q, v, output`` of a run, with params as the user gives them."""
    ready = prepared(system, params)

    def at(t: Array, q: Array, v: Array, output: Any) -> Array:
        return read(system, name, t, q, v, output, refreshed(system, t, q, ready))

    return jax.vmap(at)(*rows)
