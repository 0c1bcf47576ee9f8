"""One exception type for bad input, the hint on near names in its sentences, and checks that many arguments
share.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import operator
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np


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


def nearest(name: object, known: Iterable[object]) -> str:
    """``"did you mean 'x'? Known: ..."`` for an unknown ``name``.

    A name of several words with dots resembles another one only if every word does: ``floor.friction`` is
    not ``rod.friction``, but it is ``floor_foot.friction``. Names that share words come first.

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
    listed = 200  # largest number of known names that an error sentence lists
    more = f" and {len(names) - listed} more" if len(names) > listed else ""
    return f"{hint}Known: {', '.join(names[:listed]) if names else 'none'}{more}"


def _resembles(word: str, known: str) -> bool:
    """Whether a word of some letters is a part of the known one, or is close to it."""
    return (len(word) > 2 and word in known) or bool(difflib.get_close_matches(word, [known]))


def check_choice(what: str, value: object, known: Iterable[object]) -> None:
    """Refuses a value that is none of ``known``; ``what`` names the function and the argument.

    Example:
        >>> from nsjax.core.errors import check_choice
        >>> check_choice("table: kind", "cubic", ("held", "linear"))
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: table: kind = 'cubic'; choose one of held, linear
    """
    choices = list(known)
    if value not in choices:
        meant = nearest(value, choices).replace("Known: ", "choose one of ")
        raise InputError(f"{what} = {value!r}; {meant}")


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
