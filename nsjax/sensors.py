"""Quantities of a system by name, at a state or in the rows of a run, for sensors."""

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

from nsjax.by_name import OF_PARTS, BodyRows
from nsjax.core.errors import InputError, nearest
from nsjax.core.operators import kinetic_energy, potential_energy, prepared, refreshed
from nsjax.core.parts import part_unit
from nsjax.core.quantities import NOTES, ROWS
from nsjax.core.scheme import Event, Output
from nsjax.core.system import System
from nsjax.core.user_functions import observed
from nsjax.startup.owned import compiled_for, kept
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
"""Units of quantities of parts; those of coordinates, rates and efforts follow the part."""

FORCES = (("joint", "force"), ("joint", "torque"), ("body", "acceleration"))
"""Quantities of parts that need forces of contacts and constraints."""


@dataclasses.dataclass(frozen=True)
class NamedQuantity:
    """A quantity that a system has in every row.

    Args:
        kind: ``"q"``, ``"v"``, ``"observable"``, ``"energy"``, ``"body"``, ``"joint"``, ``"load"``,
            ``"contact"``, ``"drag"`` (a bounded row) or ``"sensor"``.
        unit: empty if the model gives none.
        read: ``(t, q, v, output, p) -> value``, see `read`.
        needs_rows: whether it depends on forces, or is accumulated since the row before.
    """

    kind: str
    unit: str
    read: Callable[..., Any]
    needs_rows: bool = False


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
            unit = UNITS.get(field) or part_unit(system.parts, part, field)
            read = functools.partial(_of_part, system, kind, part, field)
            add(f"{part}.{field}", kind, read, unit, (kind, field) in FORCES)
    groups: dict[str, list[int]] = {}
    for k, name in enumerate(labels.contacts):
        for group in itertools.accumulate(name.split(".")[:-1], "{}.{}".format):
            groups.setdefault(group, []).append(k)
    for name, which in (groups | {x: k for k, x in enumerate(labels.contacts)}).items():
        gap = labels.gaps[which] if labels.gaps and isinstance(which, int) else "m"
        for field, unit in (("gap", gap), ("force", "N"), ("impulse", "N s"), ("impacts", "")):
            read = functools.partial(_of_contact, np.array(which), field)
            add(f"{name}.{field}", "contact", read, unit, True)
    for k, name in enumerate(labels.drags):
        for field in ("force", "impulse"):
            row_of = operator.attrgetter(f"drag_{field}")
            add(f"{name}.{field}", "drag", lambda *row, f=row_of, k=k: f(row[3])[k], UNITS[field], True)
    return found


def quantity(system: System, name: Any) -> NamedQuantity:
    """The quantity ``name``, or that of a `nsjax.multibody.sensor`.

    Raises:
        InputError: for an unknown name, with the nearest known one.
    """
    if not isinstance(name, str):
        return _of_sensor(system, name)
    known = table(system)
    if name not in known:
        raise InputError(f"sensor: unknown quantity {name!r}; {nearest(name, known)}")
    return known[name]


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
    """Row quantities that a run must keep for the quantities ``names``.

    Raises:
        InputError: for an unknown name.
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
    """A quantity by its name, with prepared and refreshed params.

    Args:
        name: its name, or a sensor.
        row: ``t, q, v, output, p``; ``output``, from `row_output`, holds forces and the quantities
            accumulated since the row before.
    """
    found = quantity(system, name)
    if found.needs_rows and row[3] is None:
        raise InputError(f"sensor: {name} needs forces, which are not saved; run simulate with save=None")
    return jnp.asarray(found.read(*row))


def _of_part(system: System, kind: str, part: Any, field: str, *row: Any) -> Array:
    if field == "acceleration":
        kind, field = field, "value"
    found: Array = system.parts.part_row(kind, part, *row)[field]
    return found


def _of_contact(which: np.ndarray, field: str, *row: Any) -> Array:
    output = row[3]
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
