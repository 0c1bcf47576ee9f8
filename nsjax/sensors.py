"""Quantities of a system by name, at a state or in the rows of a run, for sensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.by_name import BodyRows, JointRows, LoadRows
from nsjax.core.errors import InputError, nearest
from nsjax.core.operators import kinetic_energy, potential_energy, prepared, refreshed
from nsjax.core.quantities import NOTES, ROWS
from nsjax.core.scheme import Event, Output
from nsjax.core.system import System
from nsjax.core.user_functions import observed
from nsjax.startup.owned import compiled_for, kept
from nsjax.types import Array, PyTree

ENERGIES = {"kinetic": "J", "potential": "J", "energy": "J"}

FIELDS: dict[str, tuple[str, ...]] = {
    "body": (*(f.name for f in dataclasses.fields(BodyRows)), "acceleration"),
    "joint": tuple(f.name for f in dataclasses.fields(JointRows) if f.name != "impulse"),
    "load": tuple(f.name for f in dataclasses.fields(LoadRows)),
}
"""Quantities of parts, see `Trajectory.body`, `joint` and `load`."""

FIELD_UNITS = {
    "position": "m", "velocity": "m/s", "spin": "rad/s", "acceleration": "m/s^2", "kinetic": "J",
    "potential": "J", "force": "N", "torque": "N m", "impulse": "N s", "power": "W", "energy": "J",
    "gap": "m", "distance": "m", "mass_centre": "m",
}  # fmt: skip
"""Units of quantities of parts; those of coordinates, rates and efforts follow the part."""

OF_CONTACTS = ("gap", "force", "impulse", "impacts")
"""Quantities of contacts, see `Trajectory.contact`."""

OF_DRAGS = ("force", "impulse")
"""Quantities of bounded rows: force [N] or moment [N m], and impulse."""

FORCES = (("joint", "force"), ("joint", "torque"), ("body", "acceleration"))
"""Quantities of parts that need forces of contacts and constraints."""


@dataclasses.dataclass(frozen=True)
class QuantitySource:
    """Source of a quantity in a system.

    Args:
        kind: ``"q"``, ``"v"``, ``"observable"``, ``"energy"``, ``"body"``, ``"joint"``, ``"load"``,
            ``"contact"``, ``"drag"`` (a bounded row) or ``"sensor"``.
        of: entry of q or v, name of the part, entries of the contacts, or the sensor.
        field: name of the quantity of a part, contact or bounded row.
    """

    kind: str
    of: Any
    field: str = ""

    @property
    def needs_rows(self) -> bool:
        """Whether the quantity depends on forces, or on quantities accumulated since the row before."""
        if self.kind == "sensor":
            return bool(self.of.needs_forces)
        return self.kind in ("contact", "drag") or (self.kind, self.field) in FORCES


def label_name(entry: str) -> str:
    """Name in a label: ``"theta1"`` for ``"theta1 [rad]"``."""
    return entry.split(" [")[0]


@kept
def place_of(system: System, name: Any) -> QuantitySource:
    """Source of the quantity ``name``.

    Raises:
        InputError: for an unknown name, with the nearest known one.
    """
    if not isinstance(name, str):
        return _of_sensor(system, name)
    labels = system.labels
    for kind, entries in (("q", labels.q), ("v", labels.v)):
        for k, entry in enumerate(entries):
            if label_name(entry) == name:
                return QuantitySource(kind, k)
    if name in map(label_name, labels.observables):
        return QuantitySource("observable", name)
    if name in ENERGIES:
        return QuantitySource("energy", name)
    part, _, field = name.rpartition(".")
    for kind, fields in FIELDS.items() if system.parts is not None else ():
        if field in fields and part in system.parts.part_names(kind):
            return QuantitySource(kind, part, field)
    if field in OF_CONTACTS and (found := contacts_called(system, part)) is not None:
        return QuantitySource("contact", found, field)
    if field in OF_DRAGS and part in labels.drags:
        return QuantitySource("drag", labels.drags.index(part), field)
    raise InputError(f"sensor: unknown quantity {name!r}; {nearest(name, sensor_names(system))}")


def _of_sensor(system: System, sensor: Any) -> QuantitySource:
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
    return QuantitySource("sensor", sensor)


def contacts_called(system: System, name: str) -> int | tuple[int, ...] | None:
    """Index of a contact by its label, or indices of all contacts of a part; None for an unknown name."""
    labels = system.labels.contacts
    if name in labels:
        return labels.index(name)
    return tuple(k for k, x in enumerate(labels) if x.startswith(f"{name}.")) or None


def sensor_names(system: System) -> list[str]:
    """Names of all quantities of a system."""
    labels = system.labels
    found = [label_name(x) for x in (*labels.q, *labels.v, *labels.observables)] + list(ENERGIES)
    for kind, fields in FIELDS.items() if system.parts is not None else ():
        found += [f"{part}.{field}" for part in system.parts.part_names(kind) for field in fields]
    contacts = dict.fromkeys(x.split(".")[0] for x in labels.contacts)
    contacts |= dict.fromkeys(labels.contacts)
    found += [f"{x}.{field}" for x in contacts for field in OF_CONTACTS]
    return found + [f"{x}.{field}" for x in labels.drags for field in OF_DRAGS]


def needed_rows(system: System, names: Sequence[Any]) -> tuple[str, ...]:
    """Row quantities that a run must keep for the quantities ``names``.

    Raises:
        InputError: for an unknown name.
    """
    places = [place_of(system, name) for name in names]
    return tuple(x for x in ROWS if x not in NOTES) if any(x.needs_rows for x in places) else ()


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
    """A quantity by its name, with prepared and refreshed params.

    Args:
        name: its name, or a sensor.
        row: ``t, q, v, output, p``; ``output``, from `row_output`, holds forces and the quantities
            accumulated since the row before.
    """
    t, q, v, output, p = row
    place = place_of(system, name)
    if place.kind in ("q", "v"):
        return (q if place.kind == "q" else v)[place.of]
    if place.kind == "observable":
        return jnp.asarray(observed(system.observe, t, q, v, output, p)[place.of])  # type: ignore[arg-type]
    if place.kind == "energy":
        found = jnp.zeros(())
        if place.of != "potential":
            found = found + kinetic_energy(system, q, v, p)
        return found if place.of == "kinetic" else found + potential_energy(system, t, q, p)
    if place.needs_rows and output is None:
        raise InputError(f"sensor: {name} needs forces, which are not saved; run simulate with save=None")
    if place.kind == "contact":
        return _of_contact(output, np.array(place.of), place.field)
    if place.kind == "drag":
        return jnp.asarray(getattr(output, f"drag_{place.field}")[place.of])
    if place.kind == "sensor":
        return jnp.asarray(system.parts.part_row("sensor", place.of, t, q, v, output, p)["value"])
    if place.field == "acceleration":
        return jnp.asarray(system.parts.part_row(place.field, place.of, t, q, v, output, p)["value"])
    return jnp.asarray(system.parts.part_row(place.kind, place.of, t, q, v, output, p)[place.field])


def _of_contact(output: Any, which: np.ndarray, field: str) -> Array:
    if field in ("gap", "impacts"):
        return jnp.asarray(getattr(output, field)[which])
    normal, tangential = (getattr(output, f"{field}_{way}")[which] for way in ("normal", "tangential"))
    return jnp.concatenate([normal[..., None], tangential], axis=-1)


@compiled_for("system", "name")
def read_rows(system: System, name: Any, params: PyTree, rows: tuple[Any, ...]) -> Array:
    """A quantity in all rows ``t, q, v, output`` of a run, with params as the user gives them."""
    ready = prepared(system, params)

    def at(t: Array, q: Array, v: Array, output: Any) -> Array:
        return read(system, name, t, q, v, output, refreshed(system, t, q, ready))

    return jax.vmap(at)(*rows)
