"""Checks of the arguments of public functions: names, kinds and signs."""

from __future__ import annotations

import inspect
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.errors import InputError, nearest
from nsjax.core.keys import Key, above, child, is_group, names
from nsjax.forms import form_of, forms_of
from nsjax.types import PyTree, is_traced

# Numbers that must not be negative: masses, lengths and coefficients whose fields say so (`nsjax.forms`);
# and moments of inertia, of which none is larger than the sum of the two others.
#
# A mass matrix may stay positive definite with a small negative mass, or with moments that no body has,
# so that no later check sees them.


LOPSIDED = "its moments violate the triangle inequality; none exceeds the sum of the two others in a body"
"""Why moments of inertia are refused that no body has."""


def negative(value: Any, axes: int = 0) -> Any:
    """Whether values have an entry below zero, bool; of symmetric matrices the diagonal counts.

    Args:
        value: array with ``axes`` leading axes, for which the result has an entry each; may be traced.
        axes: number of leading axes.
    """
    xp: Any = jnp if isinstance(value, jax.core.Tracer) else np
    x = xp.asarray(value, float)
    if x.ndim == axes + 2:
        x = xp.diagonal(x, axis1=-2, axis2=-1)
    x = x.reshape(*x.shape[:axes], -1)
    size = xp.max(xp.abs(x), axis=-1, initial=0.0) if x.shape[-1] > 1 else 0.0
    # negative values that are accepted, relative to the largest entry of their array: a moment of inertia
    # of a thin rod whose axes were turned
    rounding = 1e-9
    return xp.min(x, axis=-1, initial=0.0) < -rounding * size


def impossible(value: Any, axes: int = 0) -> Any:
    """Whether moments of inertia (3,), or of matrices (3, 3), violate the triangle inequality."""
    xp: Any = jnp if isinstance(value, jax.core.Tracer) else np
    x = xp.asarray(value, float)
    # excess of a moment of inertia that is accepted, relative to the sum of the two others: six printed
    # digits of a plate
    printed = 1e-6
    if x.shape[axes:] == (3, 3) and xp is jnp:
        # a sum of m r r' has no negative minor; eigenvalues would call a library in every lane
        trace = xp.trace(x, axis1=-2, axis2=-1)[..., None, None]
        second = (0.5 + 0.25 * printed) * trace * np.eye(3) - x
        a, b, c = (second[..., k] for k in range(3))
        minors = [a[..., 0], b[..., 1], c[..., 2], xp.sum(a * xp.cross(b, c), axis=-1)]
        minors += [xp.cross(u, v)[..., k] for u, v, k in ((a, b, 2), (b, c, 0), (c, a, 1))]
        return xp.any(xp.stack(minors) < 0.0, axis=0)
    if x.shape[axes:] == (3, 3):
        x = xp.linalg.eigvalsh(xp.where(xp.isfinite(x), x, 0.0))
    if x.shape[axes:] != (3,):
        return xp.zeros(x.shape[:axes], bool)
    most = xp.max(x, axis=-1)
    return most > (xp.sum(x, axis=-1) - most) * (1.0 + printed)


def check_signs(params: PyTree) -> None:
    """Refuses numbers below zero that must not be, and moments of inertia that no body has; traced ones
    pass.
    """
    for name, value, moments in signed(params):
        if value is None or isinstance(value, jax.core.Tracer):
            continue
        if negative(value):
            raise refusal(name, value)
        if moments and impossible(value):
            raise refusal(name, value, LOPSIDED)


def refused_values(base: Mapping[str, PyTree], key: Key, values: Any) -> dict[int, str]:
    """Sentences about the values (n, ...) of a key that are refused, by their number: of one that must not
    be negative, and of moments of inertia, whose other entries ``base`` has where the key names one.
    """
    record, name, said = above(base, key), key.path[-1], dict[int, str]()
    form = form_of(type(record), name)
    if form.least == 0.0:
        said |= {int(k): str(refusal(key.text, values[k])) for k in np.flatnonzero(negative(values, 1))}
    if form.moments:
        whole = np.asarray(values, float)
        if key.index is not None:
            whole = np.repeat(np.asarray(child(record, name), float)[None], len(values), axis=0)
            whole[:, key.index] = values
        wrong = np.flatnonzero(impossible(whole, 1))
        said = {int(k): str(refusal(key.text, values[k], LOPSIDED)) for k in wrong} | said
    return said


def refusal(name: str, value: Any, why: str = "it must not be negative") -> InputError:
    """The error for a value."""
    return InputError(f"{name} = {np.asarray(value).tolist()}; {why}")


def signed(node: PyTree, place: str = "") -> Iterator[tuple[str, Any, bool]]:
    """Names and values of numbers that must not be negative, and whether they are moments of inertia."""
    own = {name: x for name, x in forms_of(type(node)).items() if x.least == 0.0}
    # `child` looks a name up among all of a mapping: too slow for each part of a large mechanism
    below = (
        node.items() if isinstance(node, Mapping) else ((name, child(node, name)) for name in names(node))
    )
    for name, value in below:
        if name in own and own[name].members:
            each = ((f"{place}{name}[{k}]", value[..., k]) for k in range(value.shape[-1]))
            yield from ((*x, own[name].moments) for x in each)
        elif name in own:
            yield f"{place}{name}", value, own[name].moments
        elif is_group(value) or isinstance(value, list | tuple):
            yield from signed(value, f"{place}{name}.")


# Checks of the arguments of public functions: their names and number, and their kinds, which are records,
# names of files, numbers, and lists of names. Their error sentences have their only home here.


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


def check_one_run(who: str, traj: Any, problem: Any = None, *, driven: bool = False) -> None:
    """Refuses a batch of runs and, where a problem is given, a run of another one; ``driven``: a run of the
    problem with inputs is not another one.
    """
    if np.ndim(traj.t) != 1:
        raise InputError(f"{who}: t has shape {np.shape(traj.t)}; pass one run, not a batch")
    own = getattr(traj.system.prepare, "__self__", None) if driven else None
    if problem is not None and problem.system not in (traj.system, getattr(own, "system", None)):
        raise InputError(f"{who}: traj is not a run of this problem's system; pass the problem it ran")


def check_switches(who: str, **values: Any) -> None:
    """Refuses values that are not True or False: the word ``"false"`` would count as true.

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
    """An array of real numbers in 64 bits, of numpy unless the value is traced. Raises `InputError` for
    None, words, booleans, rows of several lengths and complex numbers.

    Example:
        >>> from nsjax.core.arguments import numbers
        >>> numbers("signal", "times", [0, 1])
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
    """A list of names as a tuple. Raises `InputError` for one word, and for a value that is no list."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        one = value if isinstance(value, str) else "name"
        raise InputError(f"{who}: {name} = {value!r}; give a list of names, [{one!r}]")
    return tuple(value)


def mapping(who: str, name: str, value: Any, example: str) -> Mapping[Any, Any]:
    """A mapping of names. Raises `InputError` for a value that is no mapping; ``example`` shows one."""
    if not isinstance(value, Mapping):
        raise InputError(f"{who}: {name} = {value!r}; give a mapping of names, {example}")
    return value
