"""Parts of mechanisms: the record of a part, checks of its numbers, and calls of its functions."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.flatten_util import ravel_pytree

from nsjax.core import InputError
from nsjax.core.arguments import check_switches, impossible
from nsjax.core.errors import call
from nsjax.core.keys import as_number
from nsjax.forms import ANY, SHAPES, NumberForm, forms_of
from nsjax.jaxtools.internals import dce_jaxpr
from nsjax.multibody import numbers
from nsjax.types import Array, Fn, PyTree, is_traced

# Checks of the numbers of parts against the forms of their fields.


T = TypeVar("T")

REAL = ("i", "u", "f")
"""Kinds of numpy dtypes that are real numbers."""

ONE, POINT = NumberForm("one"), NumberForm("point")
NEEDED = NumberForm("one", needed=True)
AXIS = NumberForm("vector", needed=True)
LENGTH = NumberForm("one", least=0.0, needed=True)
POSITIVE = NumberForm("one", positive=True, needed=True)

RECORDS = {
    "points": numbers.Points, "corners": numbers.Corners, "box": numbers.Corners, "point": numbers.Ball,
    "sphere": numbers.Ball, "capsule": numbers.Round, "cylinder": numbers.Round, "tube": numbers.Tube,
    "walls": numbers.Walls, "plane": numbers.Plane, "contact": numbers.Contact,
    "spheres": numbers.Contact, "contact_group": numbers.ContactGroup,
}  # fmt: skip
"""Records of the numbers of shapes and contacts."""

FORMS: Mapping[tuple[str, str], NumberForm] = {
    **{(kind, name): form for kind, x in RECORDS.items() for name, form in forms_of(x).items()},
    **{(kind, "half_length"): NEEDED for kind in ("capsule", "cylinder")},
    **{("heightfield", x): NEEDED for x in ("half_length", "half_width")}, ("heightfield", "at"): POINT,
    ("heightfield", "turned"): NumberForm("turn"), ("hull", "points"): NumberForm(needed=True),
    **{("distance_field", x): NumberForm("one", positive=True) for x in ("spacing", "margin")},
    ("distance_field", "at"): POINT, ("distance_field", "turned"): NumberForm("turn"),
}  # fmt: skip
"""Forms of numbers of shapes and contacts by kind and name; others go to `number` or `record_of`."""


def number(
    kind: str, name: str, what: str, value: Any, least: float = -math.inf, form: NumberForm | None = None
) -> Any:  # fmt: skip
    """A number or array as params hold it, checked; ``form`` defaults to that of the table.

    Raises:
        InputError: for None where a number must be given, and for a value that is not finite, is below
            ``least``, or does not have the form.
    """
    value = as_number(value)
    whole = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not whole and getattr(getattr(value, "dtype", None), "kind", "") not in REAL:
        raise InputError(f"{kind} {name!r}: {what} = {value!r}; give a number or an array of numbers")
    form = form or FORMS.get((kind, what), ANY)
    words = SHAPES[form.shape][0] if form.shape else "an array of numbers"
    if value is None:
        if form.needed:
            raise InputError(f"{kind} {name!r}: {what} = None; it must be given: {words}")
        return None
    if not form.fits(np.shape(value)):
        raise InputError(f"{kind} {name!r}: {what} has shape {np.shape(value)}; give {words}")
    if not is_traced(value):
        plain = np.asarray(value, float)
        if not np.all(np.isfinite(plain)):
            raise InputError(f"{kind} {name!r}: {what} = {plain.tolist()}; it must be finite")
        if form.positive and not np.all(plain > 0.0):
            raise InputError(f"{kind} {name!r}: {what} = {plain.tolist()}; it must be positive")
        least = max(least, -math.inf if form.moments else form.least)
        if not np.all(plain >= least):
            raise InputError(f"{kind} {name!r}: {what} = {plain.tolist()}; it must be at least {least:g}")
        if not np.all(plain <= form.most):
            raise InputError(
                f"{kind} {name!r}: {what} = {plain.tolist()}; it must be at most {form.most:g}"
            )
        return float(plain) if plain.ndim == 0 else plain
    return value


def record_of(kind: type[T], part: str, name: str, **given: Any) -> T:
    """A record of the numbers of a part, checked against the forms of its fields.

    Args:
        kind: class of the record.
        part, name: kind and name of the part, for error sentences.
        given: its fields; those without a form are taken as they are.

    Raises:
        InputError: see `number`.
    """
    forms = forms_of(kind)
    kept = {k: number(part, name, k, x, form=forms[k]) for k, x in given.items() if k in forms}
    return kind(**{**given, **kept})


def on_or_off(given: dict[str, Any]) -> dict[str, Any]:
    """Numbers with True and False as 1 and 0."""
    return {k: float(x) if isinstance(x, bool | np.bool_) else x for k, x in given.items()}


def limits_of(kind: str, name: str, limits: Any) -> tuple[Any, Any]:
    """Lower and upper limit, checked; None: no limit on that side. Raises `InputError` for a value that is
    no pair, and for limits in the wrong order.
    """
    if limits is None:
        return None, None
    pair = isinstance(limits, tuple | list) or getattr(limits, "ndim", 0) == 1
    if not pair or len(limits) != 2:
        raise InputError(
            f"{kind} {name!r}: limits = {limits!r}; give the lower and the upper one, None for none"
        )
    lower, upper = (number(kind, name, k, limits[i], form=ONE) for i, k in enumerate(("lower", "upper")))
    if not is_traced((lower, upper)) and None not in (lower, upper) and not lower < upper:
        raise InputError(f"{kind} {name!r}: limits = {limits}; the lower must be below the upper")
    return lower, upper


# Parts of mechanisms: the frozen record that functions for bodies, joints, loads and contacts return.
# `nsjax.multibody.assemble` puts parts together; a sub-mechanism is a list of parts.


class NamedRecord(Protocol):
    """A record with a name, such as a kind of joints."""

    @property
    def name(self) -> str:
        """Its name."""


K = TypeVar("K", bound=NamedRecord)

GROUND = "ground"
"""Name of the body that does not move."""

FUNCTIONS = ("motion", "path", "law", "potential", "switch")
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

    def without(self, *names: str) -> Part:
        """The part without options."""
        return dataclasses.replace(self, options=tuple(x for x in self.options if x[0] not in names))


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
                    f"{kind} {name!r}: {what} is a table, whose rates jump; give motion=nsjax.signal("
                    "times, values, kind='cubic'), a spline through its values, or a smooth function; a "
                    "law reads a table as its number, own=table with own.at(t); simulate(inputs=...) takes "
                    "other tables"
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
    """The kind of this name in a table of kinds. Raises `InputError` for a kind that is in the table under
    another name than its own.
    """
    kind = kinds[name]
    if kind.name != name:
        raise InputError(
            f"KINDS[{name!r}] is the kind {kind.name!r}; put it into the table under its own name, "
            "KINDS[kind.name] = kind"
        )
    return kind


def unit(kind: str, name: str, what: str, value: Any, form: NumberForm | None = None) -> Any:
    """A unit vector, checked, and normalised to rounding. Raises `InputError` for a vector of another
    length.
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
            take it (`box`, `capsule`, `cylinder`, `sphere`, `hull`), a `mesh`, or a list of several. It
            has no mass and meets nothing. With a mesh, shapes of the body's contacts are not drawn.

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
        # pictures show it as a part of its joints
        return made("body", name, (), kept, empty=_is_zero(mass) and (inertia is None or _is_zero(inertia)))
    shown = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    for x in shown:
        if getattr(x, "body", None) != name:
            raise InputError(
                f"body {name!r}: shape = {x!r}; give shapes of {name!r}, box({name!r}, 0.1, 0.05)"
            )
    found = tuple(x for x in shown if x.kind == "mesh")
    others = tuple(x for x in shown if x.kind != "mesh")
    kept = dataclasses.replace(kept, shape=tuple(x.numbers for x in others))
    return made("body", name, (), kept, shapes=tuple(x.kind for x in others), meshes=found or None)


def _is_zero(value: Any) -> bool:
    return not is_traced(value) and not np.any(np.asarray(value))


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


# Calls of the functions that users give to parts: laws, potentials and motions.


def user_value(
    part: Part, what: str, takes: str, *arguments: Any, shapes: tuple[tuple[int, ...], ...]
) -> Array:
    """Value of a function of the user.

    Args:
        part: the part with this function.
        what: name of the option, ``"law"``.
        takes: names of the documented arguments, ``"t, scene, own"``.
        arguments: their values in this order.
        shapes: shapes that the value may have.

    Raises:
        InputError: for a wrong number of arguments, for an exception of the function, with its line, and
            for a value of another shape.

    Example:
        >>> from nsjax.multibody import actuator
        >>> from nsjax.multibody.parts import user_value
        >>> motor = actuator("motor", "pin", law=lambda t, x, rate, own: None)
        >>> user_value(motor, "law", "t, coordinate, rate, own", 0.0, 0.0, 0.0, None, shapes=((),))
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: law of actuator 'motor' returns None, and must return one number
    """
    name = f"{what} of {part.kind} {part.name!r}"
    found = call(name, part.option(what), *arguments, takes=takes)
    try:
        made = None if found is None else jnp.asarray(found, float)
    except (TypeError, ValueError):
        made = None
    if made is None or np.shape(made) not in shapes:
        what = repr(found) if made is None else f"shape {np.shape(made)}"
        wanted = " or ".join(f"an array of shape {x}" if x else "one number" for x in shapes)
        raise InputError(f"{name} returns {what}, and must return {wanted}")
    return made


def user_laws(parts: Iterable[Part]) -> bool:
    """Whether any of the parts has a law of a user."""
    laws = (part.option("law") for part in parts)
    homes = (str(getattr(x, "__module__", "")) for x in laws if x is not None)
    return any(not home.startswith("nsjax.") for home in homes)


@dataclasses.dataclass(frozen=True)
class SplineMotion:
    """A joint's motion or path by a spline, with the structure and shapes by which joints are grouped."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]

    def __call__(self, t: Any, table: Any) -> Any:
        """Values of the table at a time."""
        return table.at(t)


def follow(table: Any) -> SplineMotion:
    """What a joint follows that has this table as its motion."""
    leaves, structure = jax.tree.flatten(table)
    return SplineMotion(structure, tuple(np.shape(x) for x in leaves))


def prescribed(part: Part, what: str, numbers: Any, t: Any) -> Any:
    """What a user prescribes at a time: a function ``(t)`` or ``(t, own)``, or a spline. ``part``: a joint
    with the option ``what``; ``what``: ``"motion"`` or ``"path"``; ``t``: time [s]. Raises `InputError` as
    `user_value`.
    """
    function = part.option(what)
    if isinstance(function, SplineMotion):
        found = function(t, numbers.motion)
        if what == "motion":
            return found
        return (found[:2], found[2]) if found.shape[0] == 3 else (found[:3], found[3:])
    given = {"t": t, "own": numbers.own} if takes_numbers(function) else {"t": t}
    if what == "path":
        name = f"path of {part.kind} {part.name!r}"
        return call(name, function, *given.values(), takes=", ".join(given))
    return user_value(part, what, ", ".join(given), *given.values(), shapes=((),))


def takes_numbers(motion: Fn) -> bool:
    """Whether a motion reads numbers of its joint: a spline, or a function of two, ``(t, own)``."""
    if isinstance(motion, SplineMotion):
        return True
    try:
        given = inspect.signature(motion).parameters.values()
    except (TypeError, ValueError):  # a function of another language
        return False
    named = [x for x in given if x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)]
    return len([x for x in named if x.default is x.empty]) == 2


def lacks_acceleration(motion: Fn) -> bool:
    """Whether the rate of a motion ``(t) -> numbers`` changes in time while its derivative is zero by
    construction: a table between whose points it is straight, or a ramp with a kink. Velocities then jump,
    and the force of that is known to the scheme alone.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.multibody.parts import lacks_acceleration
        >>> table = lambda t: jnp.interp(t, jnp.arange(3.0), jnp.array([0.0, 1.0, 4.0]))
        >>> lacks_acceleration(table), lacks_acceleration(jnp.sin), lacks_acceleration(lambda t: 2.0 * t)
        (True, False, False)
    """
    at, moves = jnp.zeros(()), []

    def rate(t: Array) -> Array:
        return jax.jvp(lambda t: ravel_pytree(motion(t))[0], (t,), (jnp.ones(()),))[1]

    @jax.custom_jvp
    def seen(x: Array) -> Array:
        return x

    def noted(primals: Any, tangents: Any) -> Any:
        moves.append(not isinstance(tangents[0], SymbolicZero))
        return primals[0], jnp.zeros_like(primals[0])

    seen.defjvp(noted, symbolic_zeros=True)
    jax.eval_shape(lambda t: jax.jvp(lambda t: seen(rate(t)), (t,), (jnp.ones(()),)), at)
    _, used = dce_jaxpr(jax.make_jaxpr(rate)(at).jaxpr, [True])
    return used[0] and not any(moves)


def with_surfaces(part: Part, found: list[Array]) -> Part:
    """``part`` with a law that appends the values (k,) of its surfaces to ``found`` wherever it is called.
    ``part``: a part with the options ``law`` and ``switch``, functions of the same arguments; ``found``: a
    list. Raises `InputError` in a call of the law, for surfaces that are no numbers.
    """
    law, name = part.option("law"), f"switch of {part.kind} {part.name!r}"

    def seen(*given: Any) -> Any:
        value = call(name, part.option("switch"), *given, takes="the arguments of its law")
        try:
            made = None if value is None else jnp.asarray(value, float)
        except (TypeError, ValueError):
            made = None
        if made is None or made.ndim > 1:
            raise InputError(f"{name} gives {value!r}; its values are one number or several, (k,)")
        found.append(jnp.ravel(made))
        return law(*given)

    return dataclasses.replace(part, options=tuple((dict(part.options) | {"law": seen}).items()))
