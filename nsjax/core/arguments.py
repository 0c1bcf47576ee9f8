"""Checks of the arguments of public functions: their names and number, and their kinds, which are records,
names of files, numbers, and lists of names. Their error sentences have their only home here.
"""

from __future__ import annotations

import inspect
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core.checks import is_traced
from nsjax.core.errors import InputError, nearest


def check_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuses arguments that a function does not take; a TypeError inside the function passes."""
    signature, who = inspect.signature(function), function.__name__
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        known, reason = signature.parameters, str(error)
    else:
        return
    unknown = [name for name in kwargs if name not in known]
    if unknown:
        raise InputError(f"{who}: unknown argument {unknown[0]!r}; {nearest(unknown[0], known)}") from None
    bare = [x.replace(annotation=inspect.Parameter.empty) for x in known.values()]
    takes = signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)
    raise InputError(f"{who}: {reason}; it takes {takes}") from None


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


def check_one_run(who: str, traj: Any, problem: Any = None) -> None:
    """Refuses a batch of runs and, where a problem is given, a run of another one.

    Raises:
        InputError: names the function.
    """
    if np.ndim(traj.t) != 1:
        raise InputError(f"{who}: t has shape {np.shape(traj.t)}; pass one run, not a batch")
    if problem is not None and traj.system != problem.system:
        raise InputError(f"{who}: traj is not a run of this problem's system; pass the problem it ran")


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
