"""Checks of the kinds of arguments of public functions: records, names of files, numbers, lists of names.
Their error sentences have their only home here.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core.checks import is_traced
from nsjax.core.errors import InputError


def check_is(who: str, name: str, value: Any, kind: type[Any]) -> None:
    """Refuses a value that is not of the class ``kind``.

    Raises:
        InputError: names the function, the argument, the value and the kind.

    Example:
        >>> from nsjax.core import Problem
        >>> from nsjax.core.arguments import check_is
        >>> check_is("stepper", "problem", None, Problem)
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: stepper: problem = None; it must be an nsjax.Problem
    """
    if not isinstance(value, kind):
        raise InputError(f"{who}: {name} = {value!r}; it must be an nsjax.{kind.__name__}")


def check_switches(who: str, **values: Any) -> None:
    """Refuses values that are not True or False: the word ``"false"`` would count as true.

    Raises:
        InputError: names the function, the argument and the value.

    Example:
        >>> from nsjax.core.arguments import check_switches
        >>> check_switches("read_urdf", free="no")
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: read_urdf: free = 'no'; give True or False
    """
    for name, value in values.items():
        if not isinstance(value, bool | np.bool_):
            raise InputError(f"{who}: {name} = {value!r}; give True or False")


def file_path(path: Any) -> pathlib.Path:
    """The name of a file as a path.

    Raises:
        InputError: for a value that is no name, and for an empty name.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path = {path!r}; give the name of a file, 'run.npz' for instance")
    if not os.fspath(path):
        raise InputError("the file name is empty; give a path")
    return pathlib.Path(path)


def numbers(who: str, name: str, value: Any) -> Any:
    """An array of real numbers in 64 bits, of numpy unless the value is traced.

    Raises:
        InputError: for None, words, booleans, rows of several lengths and complex numbers.

    Example:
        >>> from nsjax.core.arguments import numbers
        >>> numbers("table", "times", [0, 1])
        array([0., 1.])
    """
    if is_traced(value):
        return jnp.asarray(value, float)
    try:
        found = np.asarray(value)
    except ValueError:  # rows of several lengths
        found = np.asarray(None)
    if found.size and found.dtype.kind not in "iuf":
        raise InputError(f"{who}: {name} = {value!r}; give a number or an array of numbers")
    return found.astype(float)


def name_list(who: str, name: str, value: Any) -> tuple[Any, ...]:
    """A list of names as a tuple.

    Raises:
        InputError: for one word, and for a value that is no list.
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        one = value if isinstance(value, str) else "name"
        raise InputError(f"{who}: {name} = {value!r}; give a list of names, [{one!r}]")
    return tuple(value)


def mapping(who: str, name: str, value: Any, example: str) -> Mapping[Any, Any]:
    """A mapping of names.

    Raises:
        InputError: for a value that is no mapping; ``example`` shows one.
    """
    if not isinstance(value, Mapping):
        raise InputError(f"{who}: {name} = {value!r}; give a mapping of names, {example}")
    return value
