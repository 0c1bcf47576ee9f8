"""Bodies, joints, loads and contacts of a run by name."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.errors import InputError, NamedRows, nearest
from nsjax.core.operators import prepared, refreshed
from nsjax.core.system import System
from nsjax.core.system_parts import forces_across
from nsjax.jaxtools.owned import compiled_for
from nsjax.renamed import renamed_fields, say_new_name
from nsjax.types import Array, PyTree, is_traced, record


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


@renamed_fields
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
        position, rate (rows,): angle [rad] or displacement [m] of a joint, and its rate; None for others.
    """

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {
        "angle": "position", "displacement": "position", "speed": "rate", "velocity": "rate",
        "moment": "torque",
    }  # fmt: skip

    force: Array
    torque: Array
    impulse: Array | None = None
    position: Array | None = None
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
    """Gap and forces of a contact, or of all contacts of a part, along an axis after the rows.

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
            >>> traj = nsjax.simulate(problem, schemes.moreau(), dt=1e-3, steps=100)
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
            >>> traj = nsjax.simulate(problem, schemes.moreau(), dt=1e-3, steps=10)
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
            >>> traj = nsjax.simulate(problem, schemes.moreau(), dt=1e-3, steps=10)
            >>> round(float(traj.load("coil").force[0, 0]), 9), round(float(traj.load("coil").energy[0]), 9)
            (-20.0, 2.0)
        """
        return LoadRows(**_rows(self, "load", name))

    def _of_parts(self: Any) -> dict[str, Any]:
        """Forces, torques, powers, coordinates of joints and loads by ``"pin.force"``, if saved."""
        if self.system.parts is None:
            return {}
        rows, names = (self.t, self.q, self.v, self._outputs()), self.system.parts.part_names
        kinds = ("load",) if rows[3] is None else ("joint", "load")
        parts = tuple((kind, name) for kind in kinds for name in names(kind))
        found = _evaluated(self.system, parts, False, self.params, rows)
        return {f"{name}.{k}": np.asarray(x) for name, row in found.items() for k, x in row.items()}

    def contact(self: Any, name: str) -> ContactRows:
        """One contact by its label: ``"foot"``, or ``"guide.0"`` of a part ``guide`` with several.

        Raises:
            KeyError: for an unknown name.

        Example:
            >>> import nsjax
            >>> from nsjax import models, schemes
            >>> traj = nsjax.simulate(models.bouncing_ball(), schemes.moreau(), dt=1e-3, steps=10)
            >>> traj.contact("ball on table").gap.shape, traj.contacts("ball on table").gap.shape
            ((11,), (11, 1))
        """
        if name in self.system.labels.contacts:
            return _contacts(self, name, self.system.labels.contacts.index(name))
        found = self.contacts(name)
        say_new_name(f"traj.contact({name!r})", f"traj.contacts({name!r})", 3)
        return found

    def contacts(self: Any, name: str) -> ContactRows:
        """All contacts of a part, along an axis after the rows, which is there for a single contact, too:
        ``"guide"``; the stops of a joint by its name.

        Raises:
            KeyError: for an unknown name.

        Example:
            >>> import nsjax
            >>> from nsjax import schemes
            >>> from nsjax.multibody import assemble, body, box, contact, plane
            >>> feet = contact("feet", box("crate", 0.2, 0.1), plane())
            >>> crate = assemble(body("crate", mass=1.0, inertia=0.1), feet, start={"crate": (0, 1, 0)})
            >>> traj = nsjax.simulate(crate, schemes.moreau(), dt=1e-3, steps=10)
            >>> traj.contacts("feet").gap.shape
            (11, 4)
        """
        labels = self.system.labels.contacts
        groups = contact_groups(labels) | {x: [k] for k, x in enumerate(labels)}
        if name not in groups:
            known = dict.fromkeys([*(x.split(".")[0] for x in labels), *labels])
            raise KeyError(f"trajectory has no contact {name!r}; {nearest(name, known)}")
        return _contacts(self, name, np.array(groups[name]))


def contact_groups(labels: Sequence[str]) -> dict[str, list[int]]:
    """Numbers of the contacts of each part by its name, from the labels ``"foot"``, ``"guide.0"`` of all.

    Example:
        >>> from nsjax.part_rows import contact_groups
        >>> contact_groups(("foot", "guide.0", "guide.1"))
        {'foot': [0], 'guide': [1, 2]}
    """
    found: dict[str, list[int]] = {}
    for k, label in enumerate(labels):
        words = label.split(".")
        for name in itertools.accumulate(words[:-1] or words, "{}.{}".format):
            found.setdefault(name, []).append(k)
    return found


def _contacts(traj: Any, name: str, which: Any) -> ContactRows:
    """Rows of the contacts with the numbers ``which``, an array or one number, of a part."""

    def both(normal: Array, tangential: Array) -> Any:
        along = forces_across(traj.params, name, tangential[..., which, :])
        rows = [normal[..., which, None], along]
        return jnp.concatenate(rows, axis=-1) if is_traced(rows) else np.concatenate(rows, axis=-1)

    return ContactRows(
        gap=traj.gap[..., which],
        force=both(traj.force_normal, traj.force_tangential),
        impulse=both(traj.impulse_normal, traj.impulse_tangential),
        impacts=traj.impacts[..., which],
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
    """Quantities of ``parts`` in the rows ``t, q, v, output``: of `OF_PARTS`, or the ``whole``."""
    ready = prepared(system, params)

    def at(t: Array, q: Array, v: Array, output: Any) -> dict[str, dict[str, Array]]:
        p, found = refreshed(system, t, q, ready), {}
        for kind, name in parts:
            row = system.parts.part_row(kind, name, t, q, v, output, p)
            found[name] = {k: x for k, x in row.items() if whole or k in OF_PARTS[kind]}
        return found

    return jax.vmap(at)(*rows)
