"""Quantities by name: of a system, and of the bodies, joints, loads and contacts of a run."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.errors import InputError, NamedRows, nearest, observed
from nsjax.core.operators import kinetic_energy, potential_energy, prepared, refreshed
from nsjax.core.scheme import NOTES, ROWS, Event, Output
from nsjax.core.system import System
from nsjax.core.system_parts import forces_across, part_unit
from nsjax.jaxtools.owned import compiled_for, kept
from nsjax.types import Array, PyTree, is_traced, record

# Bodies, joints, loads and contacts of a run by name.


@record()
class BodyRows(NamedRows):
    """Motion of a body.

    Args:
        position (rows, 2) or (rows, 3): position of the origin of its axes [m].
        rotation: angle (rows,) [rad] in the plane, matrices (rows, 3, 3) in space, body to ground.
        velocity: velocity of the origin [m/s].
        spin: angular velocity (rows,) or (rows, 3) [rad/s], in the axes of the ground.
        kinetic, potential (rows,): energy of its motion, without armatures of joints, and of its weight,
            zero where its centre of mass is at the height of the ground's origin [J]. For a node of a beam:
            energies of half of the adjacent elements.
    """

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {"angle": "rotation", "omega": "spin", "energy": "kinetic"}

    position: Array
    rotation: Array
    velocity: Array
    spin: Array
    kinetic: Array
    potential: Array


@record()
class JointRows(NamedRows):
    """Loads of a joint on its second body, in the axes of the ground, and its coordinate.

    Args:
        force (rows, 2) or (rows, 3): force at the row's state, with contact forces as the scheme gave them
            [N].
        torque (rows,) or (rows, 3): torque about the joint's point on the second body, with drives, stops
            and dry friction of the joint, without springs and motors, which are parts of their own [N m].
        impulse: impulse of the force since the row before, impacts included [N s]: from the balance of
            momentum, with forces of springs and loads by the trapezoidal rule between rows; None where rows
            are not saved.
        coordinate, rate (rows,): coordinate of a hinge [rad] or slide [m] and its rate; None for others.
    """

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {
        "angle": "coordinate", "displacement": "coordinate", "position": "coordinate", "speed": "rate",
        "velocity": "rate", "moment": "torque",
    }  # fmt: skip

    force: Array
    torque: Array
    impulse: Array | None = None
    coordinate: Array | None = None
    rate: Array | None = None


@record()
class LoadRows(NamedRows):
    """Action of a spring, motor, force or torque on its second (or only) body, in the axes of the ground.

    Args:
        force (rows, 2) or (rows, 3): force [N].
        torque (rows,) or (rows, 3): torque in addition to the force, about the point where it acts [N m].
        power (rows,): power that it gives to all bodies of the mechanism [W].
        energy (rows,): energy stored in a spring [J], zero for others.
        effort (rows,): what it exerts as one number: on the coordinate of its joint [N m] or [N], on the
            length of a tendon, apart between the ends of a spring [N], or of a thruster; zero for others.
    """

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {"tension": "effort", "moment": "torque"}

    force: Array
    torque: Array
    power: Array
    energy: Array
    effort: Array


@record()
class ContactRows(NamedRows):
    """Gap and forces of a contact, or of all contacts of a part, along a further axis.

    Args:
        gap: gap [m].
        force: normal and tangential forces at the row, last axis (1 + nt) [N].
        impulse: their impulses since the row before, impacts included [N s].
        impacts: number of impacts since the row before.

    In a mechanism these are forces on the body of the first shape. The normal points from the second
    shape to the first. In the plane the tangent is the normal turned clockwise by a quarter turn, for both
    of a pair of walls that of the lower one; in space both tangents lie across the normal, along x and y
    where it points along z. Tangents of planes are fixed in the axes of their body.
    """

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {
        "distance": "gap",
        "force_normal": "force",
        "impulse_normal": "impulse",
    }

    gap: Array
    force: Array
    impulse: Array
    impacts: Array


OF_PARTS = {
    "joint": tuple(x.name for x in dataclasses.fields(JointRows) if x.name != "impulse"),
    "load": tuple(x.name for x in dataclasses.fields(LoadRows)),
}
"""Quantities of joints and loads at a row."""


class ByName:
    """The methods of `Trajectory` for bodies, joints, loads and contacts by name."""

    def body(self: Any, name: str) -> BodyRows:
        """Motion of a body of a mechanism made of parts (`nsjax.multibody`).

        Raises:
            KeyError: for an unknown name, or a system that is not made of parts.
            InputError: for a batch.

        Example:
            >>> import nsjax
            >>> from nsjax import schemes
            >>> from nsjax.multibody import assemble, body, hinge
            >>> parts = [body("rod", mass=1.0, com=0.5), hinge("pin", "ground", "rod")]
            >>> problem = assemble(*parts, gravity=9.81)
            >>> traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=100)
            >>> traj.body("rod").position.shape
            (101, 2)
        """
        return BodyRows(**_rows(self, "body", name))

    def joint(self: Any, name: str) -> JointRows:
        """Loads of a joint in any coordinates, from the balance of momentum of the bodies.

        Raises:
            KeyError: for an unknown name, or a system that is not made of parts.
            InputError: for a batch.

        Example:
            >>> import nsjax
            >>> from nsjax import schemes
            >>> from nsjax.multibody import assemble, body, hinge
            >>> parts = [body("rod", mass=2.0, inertia=0.1, com=0.5), hinge("pin", "ground", "rod")]
            >>> problem = assemble(*parts, gravity=9.81, start={"rod": -1.5707963267948966})
            >>> traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=10)
            >>> round(float(traj.joint("pin").force[-1, 1]), 6)
            19.62
        """
        found = _rows(self, "joint", name)
        impulse: Any
        terms = [found.pop(x, None) for x in ("momentum", "outer", "blow")]
        impulse = None
        if terms[0] is not None:
            momentum, outer, blow = terms
            step = jnp.diff(jnp.asarray(self.t))[:, None]
            own = jnp.diff(momentum, axis=0) - 0.5 * (outer[1:] + outer[:-1]) * step - blow[1:]
            impulse = jnp.concatenate([jnp.zeros_like(momentum[:1]), own])
            impulse = impulse if is_traced(impulse) else np.asarray(impulse)
        return JointRows(impulse=impulse, **found)

    def load(self: Any, name: str) -> LoadRows:
        """Force, torque, power and energy of a spring, motor, force or torque.

        Raises:
            KeyError: for an unknown name, or a system that is not made of parts.
            InputError: for a batch.

        Example:
            >>> import nsjax
            >>> from nsjax import schemes
            >>> from nsjax.multibody import assemble, body, spring
            >>> coil = spring("coil", "ground", "bob", stiffness=100.0, length=1.0)
            >>> problem = assemble(body("bob", mass=1.0, inertia=0.1), coil, start={"bob": (1.2, 0.0, 0.0)})
            >>> traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=10)
            >>> round(float(traj.load("coil").force[0, 0]), 9), round(float(traj.load("coil").energy[0]), 9)
            (-20.0, 2.0)
        """
        return LoadRows(**_rows(self, "load", name))

    def _of_parts(self: Any) -> dict[str, Any]:
        """Forces, torques, powers and coordinates of all joints and loads, as ``"pin.force"``; without
        joints where the rows do not hold forces.
        """
        if self.system.parts is None:
            return {}
        rows, names = (self.t, self.q, self.v, self._outputs()), self.system.parts.part_names
        kinds = ("load",) if rows[3] is None else ("joint", "load")
        parts = tuple((kind, name) for kind in kinds for name in names(kind))
        found = _evaluated(self.system, parts, False, self.params, rows)
        return {f"{name}.{k}": np.asarray(x) for name, row in found.items() for k, x in row.items()}

    def contact(self: Any, name: str, *, each: bool = False) -> ContactRows:
        """A contact by its label, or all contacts of a part: ``"guide.0"``, or ``"guide"`` of a part
        ``guide``.

        Args:
            name: of the contact or part.
            each: whether a single contact has the axis of contacts, too, which then has length one: the
                same shapes for a part with one contact and with four.

        Raises:
            KeyError: for an unknown name.

        Example:
            >>> import nsjax
            >>> from nsjax import models, schemes
            >>> traj = nsjax.simulate(*models.bouncing_ball(), schemes.moreau(), dt=1e-3, steps=10)
            >>> [traj.contact(traj.system.labels.contacts[0], each=x).gap.shape for x in (False, True)]
            [(11,), (11, 1)]
        """
        labels = self.system.labels.contacts
        group = [k for k, x in enumerate(labels) if x.startswith(f"{name}.")]
        if name not in labels and not group:
            known = dict.fromkeys([*(x.split(".")[0] for x in labels), *labels])
            raise KeyError(f"trajectory has no contact {name!r}; {nearest(name, known)}")
        which: Any = labels.index(name) if name in labels else np.array(group)
        which = np.atleast_1d(which) if each else which

        def both(normal: Array, tangential: Array) -> Any:
            along = forces_across(self.params, name, tangential[..., which, :])
            rows = [normal[..., which, None], along]
            return jnp.concatenate(rows, axis=-1) if is_traced(rows) else np.concatenate(rows, axis=-1)

        return ContactRows(
            gap=self.gap[..., which],
            force=both(self.force_normal, self.force_tangential),
            impulse=both(self.impulse_normal, self.impulse_tangential),
            impacts=self.impacts[..., which],
        )


def _rows(traj: Any, kind: str, name: str) -> dict[str, Any]:
    system = traj.system
    known = () if system.parts is None else system.parts.part_names(kind)
    if system.parts is None or not system.parts.part_names("body"):
        raise KeyError(
            f"{system!r} is not made of parts and has no {kind} {name!r}; see traj['energy'] and so on"
        )
    if name not in known:
        raise KeyError(f"trajectory has no {kind} {name!r}; {nearest(name, known)}")
    if traj.t.ndim != 1:
        raise InputError(f"{kind} {name!r} of a batch; take one run, jax.tree.map(lambda x: x[k], traj)")
    rows = traj.t, traj.q, traj.v, traj._outputs()
    found = _evaluated(system, ((kind, name),), True, traj.params, rows)[name]
    return found if is_traced(found) else {k: np.asarray(x) for k, x in found.items()}


@compiled_for("system", "parts", "whole")
def _evaluated(
    system: System, parts: tuple[tuple[str, str], ...], whole: bool, params: PyTree, rows: tuple[Any, ...]
) -> dict[str, dict[str, Array]]:
    """Quantities of ``parts`` (kinds and names) in the rows ``t, q, v, output``: those of `OF_PARTS`, or
    the ``whole`` of what the parts give.
    """
    ready = prepared(system, params)

    def at(t: Array, q: Array, v: Array, output: Any) -> dict[str, dict[str, Array]]:
        p, found = refreshed(system, t, q, ready), {}
        for kind, name in parts:
            row = system.parts.part_row(kind, name, t, q, v, output, p)
            found[name] = {k: x for k, x in row.items() if whole or k in OF_PARTS[kind]}
        return found

    return jax.vmap(at)(*rows)


# Quantities of a system by name, at a state or in the rows of a run, for sensors.


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
            ``"contact"``, ``"dry_friction"`` (a bounded row) or ``"sensor"``.
        unit: empty if the model gives none.
        read: ``(t, q, v, output, p) -> value``, see `read`.
        needs_rows: whether it depends on forces, or is accumulated since the row before.
    """

    kind: str
    unit: str
    read: Callable[..., Any]
    needs_rows: bool = False

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the components of a vector: ``"pin.force.x"``, ``"guide.force.n"`` of a contact."""
        return ("n", "t1", "t2") if self.kind == "contact" else ("x", "y", "z")

    def component(self, name: str) -> NamedQuantity:
        """The component of this name, ``"pin.force.x"``."""
        whole, _, axis = name.rpartition(".")
        k = self.axes.index(axis)

        def entry(*row: Any) -> Any:
            value = jnp.asarray(self.read(*row))
            if not value.shape or value.shape[-1] <= k:
                raise InputError(f"{name}: {whole} has shape {value.shape}, without {axis}; name {whole}")
            return value[..., k]

        return dataclasses.replace(self, read=entry)


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
            read = functools.partial(_of_contact, name, np.array(which), field)
            add(f"{name}.{field}", "contact", read, unit, True)
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
    vector = known.get(whole)
    if name in known or vector is None or last not in vector.axes:
        return known.get(name)
    return vector.component(name)


def quantity(system: System, name: Any) -> NamedQuantity:
    """The quantity ``name``, or that of a `nsjax.multibody.sensor`.

    Raises:
        InputError: for an unknown name, with the nearest known one.
    """
    if not isinstance(name, str):
        return _of_sensor(system, name)
    found = find(system, name)
    if found is None:
        raise InputError(f"sensor: unknown quantity {name!r}; {nearest(name, table(system))}")
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
    return system.parts.part_row(kind, part, *row)[field]


def _of_contact(name: str, which: np.ndarray, field: str, *row: Any) -> Array:
    output = row[3]
    if field in ("gap", "impacts"):
        return jnp.asarray(getattr(output, field)[which])
    normal, tangential = (getattr(output, f"{field}_{way}")[which] for way in ("normal", "tangential"))
    return jnp.concatenate([normal[..., None], forces_across(row[4], name, tangential)], axis=-1)


@compiled_for("system", "name")
def read_rows(system: System, name: Any, params: PyTree, rows: tuple[Any, ...]) -> Array:
    """A quantity in all rows ``t, q, v, output`` of a run, with params as the user gives them."""
    ready = prepared(system, params)

    def at(t: Array, q: Array, v: Array, output: Any) -> Array:
        return read(system, name, t, q, v, output, refreshed(system, t, q, ready))

    return jax.vmap(at)(*rows)
