"""The exception for bad input, its hints, and calls of the functions that users write."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import inspect
import operator
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import numpy as np

if TYPE_CHECKING:
    from nsjax.types import Fn, PyTree


class InputError(ValueError):
    """Input that cannot be simulated. The message names the thing, its value, and the remedy.

    Example:
        >>> from nsjax import InputError, models
        >>> try:
        ...     models.bouncing_ball().replace(restitutoin=0.5)
        ... except InputError as error:
        ...     print("did you mean 'restitution'?" in str(error))
        True
    """


class MissingPackageError(InputError, ImportError):
    """A package that an extra of nsjax installs is missing."""


def optional(what: str, extra: str, *packages: str) -> Any:
    """The last of the ``packages``, imported; ``what`` begins the sentence: ``"figures need"``.

    Raises:
        MissingPackageError: names the packages, and the extra that installs them.
    """
    try:
        return [importlib.import_module(name) for name in packages][-1]
    except ImportError:
        lack = ", ".join(name.partition(".")[0] for name in packages)
        raise MissingPackageError(f"{what} {lack}; install it with: pip install 'nsjax[{extra}]'") from None


def listed(names: Sequence[str], most: int = 4, everything: str = "") -> str:
    """The first ``most`` names as text; where there are more, their number, and the call that lists all.

    Example:
        >>> from nsjax.core.errors import listed
        >>> listed(["mass", "length", "friction"], 2, "problem.keys()")
        'mass, length and 1 more; problem.keys() lists all'
    """
    more = len(names) - most
    where = f"; {everything} lists all" if everything else ""
    return ", ".join(names[:most]) + (f" and {more} more{where}" if more > 0 else "")


def nearest(name: object, known: Iterable[object], everything: str = "") -> str:
    """``"did you mean 'x'? Known: ..."`` for an unknown ``name``.

    A name of several words with dots resembles another one only if every word does: ``floor.friction`` is
    not ``rod.friction``, but it is ``floor_foot.friction``. Names that share words come first. Of more than
    forty names the closest are listed, if there is a call, ``everything``, that lists all.

    Example:
        >>> from nsjax.core import nearest
        >>> nearest("fricton", ["friction", "mass"])
        "did you mean 'friction'? Known: friction, mass"
        >>> nearest("floor.friction", ["rod.friction", "floor_foot.friction"])
        "did you mean 'floor_foot.friction'? Known: rod.friction, floor_foot.friction"
    """
    words, names = str(name).split("."), [str(x) for x in known]
    same = [x for x in names if "." in x and x.count(".") == len(words) - 1]
    alike = [x for x in same if all(map(_resembles, words, x.split(".")))]
    others = set(same) - set(alike)
    match = difflib.get_close_matches(str(name), [x for x in names if x not in others], n=1) or alike[:1]
    hint = f"did you mean {match[0]!r}? " if match else ""
    if len(words) > 1:
        names.sort(key=lambda x: -sum(map(operator.eq, words, x.split("."))))
    most = 40 if everything else len(names)  # largest number of known names that an error sentence lists
    if len(names) > most:
        close = difflib.SequenceMatcher(b=str(name))

        def distance(x: str) -> tuple[int, float]:
            close.set_seq1(x)
            return -sum(map(operator.eq, words, x.split("."))), -close.ratio()

        names.sort(key=distance)
    return f"{hint}Known: {listed(names, most, everything) or 'none'}"


def _resembles(word: str, known: str) -> bool:
    """Whether a word of some letters is a part of the known one, or is close to it."""
    return (len(word) > 2 and word in known) or bool(difflib.get_close_matches(word, [known]))


def check_choice(what: str, value: object, known: Iterable[object]) -> None:
    """Refuses a value that is none of ``known``; ``what`` names the function and the argument.

    Example:
        >>> from nsjax.core.errors import check_choice
        >>> check_choice("signal: kind", "cubic", ("held", "linear"))
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: signal: kind = 'cubic'; choose one of held, linear
    """
    choices = list(known)
    if value not in choices:
        meant = nearest(value, choices).replace("Known: ", "choose one of ")
        raise InputError(f"{what} = {value!r}; {meant}")


def check_known(what: str, name: object, known: Iterable[object]) -> None:
    """Refuses a name that is none of the ``known``; ``what`` says where it stands, and what it would name.

    Example:
        >>> from nsjax.core.errors import check_known
        >>> check_known("scene: unknown body", "lag", ("leg", "trunk"))
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: scene: unknown body 'lag'; did you mean 'leg'? Known: leg, trunk
    """
    if name not in known:
        raise InputError(f"{what} {name!r}; {nearest(name, known)}")


def check_whole(what: str, value: object, least: int) -> int:
    """The value as an int; refuses one that is no whole number, or below ``least``, and True and False.

    Example:
        >>> from nsjax.core.errors import check_whole
        >>> check_whole("batch: lanes", 0, 1)
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: batch: lanes = 0; it must be a whole number, at least 1
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise InputError(f"{what} = {value!r}; it must be a whole number, at least {least}")
    return int(value)


class NamedRows:
    """Base of result classes whose errors name the nearest known field for an unknown one.

    Example:
        >>> from nsjax.core.errors import NamedRows
        >>> class Rows(NamedRows):
        ...     OTHER_NAMES = {"angle": "coordinate"}
        ...     coordinate: float = 0.0
        >>> Rows().angle
        Traceback (most recent call last):
            ...
        AttributeError: Rows has no field 'angle'; did you mean 'coordinate'?
    """

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {}
    """Names that users try, with the fields that they mean."""

    if not TYPE_CHECKING:  # so that mypy still knows the fields

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):  # names that numpy, JAX and Python look for
                raise AttributeError(name)
            whose, other = type(self).__name__, type(self).OTHER_NAMES.get(name)
            known = [x.name for x in dataclasses.fields(self)] if dataclasses.is_dataclass(self) else ()
            meant = nearest(name, known) if other is None else f"did you mean {other!r}?"
            raise AttributeError(f"{whose} has no field {name!r}; {meant}")


# Calls of the functions that users write; their exceptions become sentences that name the function.


_NUMPY = "numpy functions cannot take the values of a compiled program; use those of jax.numpy (jnp)"
_DECISION = (
    "Python's if, and, or, while cannot decide on values of a compiled program; use jnp.where, jnp.minimum "
    "or jnp.clip"
)
_NUMBER = (
    "int(), float(), range() and the like need a number, and a compiled program has none yet; keep arrays, "
    "and let sizes come from shapes"
)


def _hint(error: Exception) -> str | None:
    """Advice on exceptions of JAX that newcomers meet; None for other exceptions."""
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return _NUMPY
    if isinstance(error, jax.errors.TracerBoolConversionError):
        return _DECISION
    whole = isinstance(error, TypeError) and "integer scalar arrays can be converted" in str(error)
    return _NUMBER if whole or isinstance(error, jax.errors.ConcretizationTypeError) else None


def call(name: str, function: Fn, *arguments: Any, takes: str | None = None) -> Any:
    """``function(*arguments)``, a function of a user.

    Args:
        name: its field in `nsjax.System`, or another name for error sentences.
        function: the function of the user.
        arguments: arguments with which the package calls it.
        takes: names of the arguments; None: those of the field.

    Raises:
        InputError: in place of whatever the function raises, with its line and a hint; the exception itself
            is the cause.

    Example:
        >>> from nsjax.core.errors import call
        >>> def force(t, q, v):
        ...     return -q
        >>> call("force", force, 0.0, 1.0, 2.0, {})
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: force: it takes (t, q, v), and is called as force(t, q, v, p)
    """
    return _guarded(function, name, function, arguments, takes)


def observed(function: Fn, *arguments: Any) -> dict[str, Any]:
    """Result of `System.observe`, a mapping of names to numbers. Raises `InputError` for anything else."""
    found = call("observe", function, *arguments)
    if not isinstance(found, Mapping):
        raise InputError(
            f"observe returns {type(found).__name__}; it must return a dict of named quantities"
        )
    return dict(found)


def shapes_of(name: str, function: Fn, *arguments: Any) -> Any:
    """Shapes and types of the result of `call` for arguments of these shapes."""
    return _guarded(functools.partial(jax.eval_shape, function), name, function, arguments)


def _guarded(run: Fn, name: str, function: Fn, arguments: tuple[Any, ...], takes: str | None = None) -> Any:
    _check_arguments(name, function, len(arguments), takes)
    try:
        return run(*arguments)
    except InputError:
        raise
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        what = _hint(error) or f"{type(error).__name__}: {first}"
        raise InputError(f"{name}{_place(function, error)}: {what}{_about(error, arguments)}") from error


_CALLS = {
    "mass": "q, p", "inertia": "q, w, p", "force": "t, q, v, p", "potential": "t, q, p", "gap": "t, q, p",
    "slip": "t, q, v, p", "constraint": "t, q, p", "velocity_constraint": "t, q, v, p",
    "law": "p", "dry_friction": "t, q, v, p", "dry_friction_bound": "p",
    "retract": "q, xi", "difference": "q0, q1", "prepare": "p", "refresh": "t, q, p", "allowed": "t, q, p",
    "observe": "t, q, v, output, p", "shapes": "t, q, p", "damping": "t, q, v, p",
    "switch": "t, q, v, p",
}  # fmt: skip
"""Names of the arguments with which the functions of a system are called."""


def _check_arguments(name: str, function: Fn, count: int, takes: str | None) -> None:
    try:
        known = inspect.signature(function)
    except (TypeError, ValueError):  # functions without a signature
        return
    try:
        known.bind(*range(count))
    except TypeError:
        own = ", ".join(known.parameters)
        given = f"{name}({_CALLS[name]})" if takes is None else f"({takes})"
        raise InputError(f"{name}: it takes ({own}), and is called as {given}") from None


def _place(function: Fn, error: Exception) -> str:
    """`` (my_force, model.py line 12)`` of the last line in the function's own file."""
    inner = inspect.unwrap(function)
    code = getattr(getattr(inner, "__func__", inner), "__code__", None)
    called = getattr(inner, "__qualname__", type(inner).__name__)
    if code is None:
        return f" ({called})"
    lines = [x.lineno for x in traceback.extract_tb(error.__traceback__) if x.filename == code.co_filename]
    file = code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f" ({called}, {file} line {lines[-1] if lines else code.co_firstlineno})"


def _about(error: Exception, arguments: tuple[Any, ...]) -> str:
    """Hint about the parameters, the last argument, where they can be the cause."""
    params = arguments[-1] if arguments else None
    if isinstance(error, KeyError) and isinstance(params, dict):
        return f"; params has {', '.join(map(str, params)) or 'no entries'}"
    none = nones(params) if "None" in str(error) else []
    if none:
        most = 6  # largest number of parameters that a message lists
        return f"; {listed([f'params{x}' for x in none], most)} is None: give a number"
    return ""


def nones(params: PyTree) -> list[str]:
    """Names of the parameters that are None, ``"['k']"`` or ``".k"``; ``""`` for the whole."""
    leaves = jax.tree_util.tree_flatten_with_path(params, is_leaf=lambda x: x is None)[0]
    return [jax.tree_util.keystr(path) for path, leaf in leaves if leaf is None]
