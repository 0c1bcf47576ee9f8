"""Parts of mechanisms: the frozen record that functions for bodies, joints, loads and contacts return.
`nsjax.multibody.assemble` puts parts together; a sub-mechanism is a list of parts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import numpy as np

from nsjax.core import InputError
from nsjax.core.arguments import check_switches
from nsjax.core.checks import is_traced
from nsjax.core.signs import impossible
from nsjax.forms import NumberForm
from nsjax.multibody import numbers
from nsjax.multibody.number_checks import number, record_of
from nsjax.types import PyTree


class NamedRecord(Protocol):
    """A record with a name, such as a kind of joints."""

    @property
    def name(self) -> str:
        """Its name."""


K = TypeVar("K", bound=NamedRecord)

GROUND = "ground"
"""Name of the body that does not move."""

FUNCTIONS = ("motion", "law", "potential", "switch")
"""Names of the options that are functions of the user."""

SWITCHES = ("loop", "turns", "follower")
"""Options that are on or off."""

UNIT_TOLERANCE = 1e-6
"""Largest deviation of the length of a unit vector from 1: six printed digits."""


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a mechanism.

    Args:
        kind: name of the function that made it.
        name: unique in a mechanism; the numbers of the part are ``problem.params[name]``.
        bodies: names of the bodies that it connects or acts on, in order.
        numbers: a record of `nsjax.multibody.numbers`; None in a topology.
        options: pairs of names and values, choices or functions of the user.

    Example:
        >>> from nsjax.multibody import body
        >>> (part := body("rod", mass=0.038)).kind, part.name, part.numbers.mass
        ('body', 'rod', 0.038)
    """

    kind: str
    name: str
    bodies: tuple[str, ...] = ()
    numbers: PyTree = dataclasses.field(default=None, compare=False)
    options: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:
        joint = self.option("joint")
        joints = self.option("joints") or (() if joint is None else (joint,))
        inner = [repr(x) for x in (self.name, *self.bodies, *joints)]
        if dataclasses.is_dataclass(self.numbers):
            fields = dataclasses.fields(self.numbers)
            given = {f.name: getattr(self.numbers, f.name) for f in fields}
            inner += [f"{k}={v}" for k, v in given.items() if v is not None]
        return f"{self.kind}({', '.join(inner)})"

    def option(self, name: str) -> Any:
        """Value of an option, or None."""
        return dict(self.options).get(name)


def made(kind: str, name: str, bodies: tuple[str, ...], given: Any, **options: Any) -> Part:
    """A part, after checks of its names and functions."""
    if not isinstance(name, str) or not name.isidentifier() or name == GROUND:
        raise InputError(f"{kind}: name = {name!r}; give a word of letters, digits and _, not 'ground'")
    for body_name in bodies:
        if not isinstance(body_name, str):
            raise InputError(
                f"{kind} {name!r}: {body_name!r} is no name of a body; give 'ground' or a name"
            )
    for what in FUNCTIONS:
        if options.get(what) is not None and not callable(options[what]):
            if hasattr(options[what], "segment"):
                raise InputError(
                    f"{kind} {name!r}: {what} is a table, whose rates jump; give a smooth function, of a "
                    "spline through its values for instance; simulate(inputs=...) takes tables of numbers"
                )
            raise InputError(f"{kind} {name!r}: {what} = {options[what]!r}; it must be a function")
    if options.get("switch") is not None and options.get("law") is None:
        raise InputError(f"{kind} {name!r}: switch without law; give the law that jumps there")
    check_switches(f"{kind} {name!r}", **{x: options[x] for x in SWITCHES if options.get(x) is not None})
    for joint in (*(options.get("joints") or ()), *((options["joint"],) if "joint" in options else ())):
        if not isinstance(joint, str):
            raise InputError(f"{kind} {name!r}: {joint!r} is no name of a joint; give its name")
    chosen = tuple((k, v) for k, v in options.items() if v is not None and v is not False)
    return Part(kind, name, bodies, given, chosen)


def registered(kinds: Mapping[str, K], name: str) -> K:
    """The kind of this name in a table of kinds.

    Raises:
        InputError: for a kind that is in the table under another name than its own.
    """
    kind = kinds[name]
    if kind.name != name:
        raise InputError(
            f"KINDS[{name!r}] is the kind {kind.name!r}; put it into the table under its own name, "
            "KINDS[kind.name] = kind"
        )
    return kind


def unit(kind: str, name: str, what: str, value: Any, form: NumberForm | None = None) -> Any:
    """A unit vector, checked, and normalised to rounding.

    Raises:
        InputError: for a vector of another length.
    """
    value = number(kind, name, what, value, form=form)
    if value is None or is_traced(value):
        return value
    length = float(np.linalg.norm(value))
    if np.ndim(value) > 1 or abs(length - 1.0) > UNIT_TOLERANCE:
        remedy = f"; {(value / length).tolist()} is" if np.ndim(value) == 1 and length > 0 else ""
        raise InputError(
            f"{kind} {name!r}: {what} = {np.asarray(value).tolist()} is no unit vector{remedy}"
        )
    return value / length


def body(
    name: str, *, mass: Any, inertia: Any = None, com: Any = None, armature: Any = None, shape: Any = None
) -> Part:
    """A rigid body.

    Args:
        name: a word of letters, digits and _.
        mass: [kg].
        inertia: about the centre of mass [kg m^2]: in the plane a number; in space (3,) about body axes, or
            a symmetric matrix (3, 3). None: a point mass.
        com: centre of mass in body axes [m]: a number on the x axis, or a vector. None: the origin.
        armature: inertia without weight that each coordinate of a free body drives: against the
            acceleration of its origin [kg], and against its angular acceleration [kg m^2]; in joint
            coordinates alone.
        shape: what pictures show in place of a link through its joints: a shape of this body as contacts
            take it (`box`, `capsule`, `cylinder`, `sphere`, `hull`), or a list of several. It has no mass
            and meets nothing.

    Raises:
        InputError: for an invalid name, a negative mass or armature, moments of inertia that no body has,
            and a shape that is none of this body.

    Example:
        >>> from nsjax.multibody import body
        >>> body("rod", mass=0.038, inertia=5.9e-4, com=0.153)
        body('rod', mass=0.038, inertia=0.00059, com=0.153)
    """
    kept = record_of(numbers.Body, "body", name, mass=mass, inertia=inertia, com=com, armature=armature)
    if inertia is not None and not is_traced(kept.inertia):
        _check_inertia(name, np.asarray(kept.inertia, float))
    if shape is None:
        return made("body", name, (), kept)
    shown = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    for x in shown:
        if getattr(x, "body", None) != name:
            raise InputError(
                f"body {name!r}: shape = {x!r}; give shapes of {name!r}, box({name!r}, 0.1, 0.05)"
            )
    kept = dataclasses.replace(kept, shape=tuple(x.numbers for x in shown))
    return made("body", name, (), kept, shapes=tuple(x.kind for x in shown))


def _check_inertia(name: str, inertia: np.ndarray) -> None:
    if inertia.shape not in ((), (3,), (3, 3)):
        raise InputError(f"body {name!r}: inertia has shape {inertia.shape}; give (), (3,) or (3, 3)")
    if inertia.ndim == 2 and np.max(np.abs(inertia - inertia.T)) > 1e-9 * np.max(np.abs(inertia)):
        raise InputError(f"body {name!r}: inertia is not symmetric; give a symmetric matrix")
    moments = np.linalg.eigvalsh(inertia) if inertia.ndim == 2 else np.sort(inertia.reshape(-1))
    if moments[0] < -UNIT_TOLERANCE * abs(moments[-1]):  # a thin rod that is turned has rounding
        raise InputError(f"body {name!r}: inertia = {inertia.tolist()}; it must not be negative")
    if impossible(inertia):
        raise InputError(
            f"body {name!r}: moments of inertia {moments.tolist()} violate the triangle inequality; no "
            "body has a moment larger than the sum of the two others"
        )
