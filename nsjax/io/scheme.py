"""Schemes in files: registered name, numbers and options."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from nsjax import schemes
from nsjax.contact import Criteria
from nsjax.core import InputError, Scheme, nearest
from nsjax.core.blocks import tree_shapes
from nsjax.io.codec import describe
from nsjax.types import PyTree

Description = dict[str, Any]

INSIDE = "localized("


class UnsavedSchemeError(InputError):
    """Error for a scheme that the registry cannot rebuild."""


def describe_scheme(scheme: Scheme) -> Description:
    """Name, numbers and options of a scheme in types of JSON; functions are not saved.

    Args:
        scheme: any scheme with concrete numbers.

    Returns:
        ``name``, ``numbers`` (by dotted names), ``options``, ``gradient``, ``criteria``; ``restorable``:
        whether `rebuild_scheme` returns the same scheme. The description of a user's scheme serves human
        readers only.

    Example:
        >>> from nsjax import schemes
        >>> from nsjax.io.scheme import describe_scheme
        >>> describe_scheme(schemes.hht(alpha_f=0.1))["numbers"]["alpha_f"]
        0.1
    """
    arrays: dict[str, np.ndarray] = {}
    describe("numbers", scheme.coef, arrays)
    numbers = {name.removeprefix("numbers."): array.tolist() for name, array in arrays.items()}
    criteria = None if scheme.criteria is None else dataclasses.asdict(scheme.criteria)
    made: Description = {
        "name": scheme.name, "numbers": numbers, "gradient": scheme.gradient, "criteria": criteria,
    }  # fmt: skip
    try:
        made["options"] = _plain(scheme.options, _default(scheme.name))
        again = rebuild_scheme(made)
        same = tree_shapes(again)[0] == tree_shapes(scheme)[0]
        leaves = jax.tree.leaves(again), jax.tree.leaves(scheme)
        made["restorable"] = bool(same) and all(map(np.array_equal, *leaves))
    except InputError:
        options = scheme.options
        if dataclasses.is_dataclass(options) and not isinstance(options, type):
            options = {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}
        made |= {"options": json.loads(json.dumps(options, default=repr)), "restorable": False}
    return made


def rebuild_scheme(content: Mapping[str, Any]) -> Scheme:
    """The scheme from a description that `describe_scheme` made in this version or version 0.1.

    Numbers and options that were added later take the default of the registered scheme.

    Args:
        content: description from `describe_scheme`, read from JSON.

    Raises:
        UnsavedSchemeError: for a scheme that is not one of the package, and for unknown numbers or options.

    Example:
        >>> from nsjax import schemes
        >>> from nsjax.io.scheme import describe_scheme, rebuild_scheme
        >>> rebuild_scheme(describe_scheme(schemes.bathe())).name
        'bathe'
    """
    name = content["name"]
    if not content.get("restorable", True):
        raise UnsavedSchemeError(f"the scheme {name!r} has functions of its own, which are not saved")
    default = _default(name)
    numbers = dict(content["numbers"])
    coef = _numbers("numbers", default.coef, numbers)
    if numbers:
        raise UnsavedSchemeError(f"{name} has no number {next(iter(numbers))!r} in this version")
    options = _options(default.options, content["options"], default)
    gradient = content.get("gradient", default.gradient)
    criteria = _criteria(name, content.get("criteria"))
    if name.startswith(INSIDE):
        options = dataclasses.replace(options, inner=dataclasses.replace(options.inner, criteria=criteria))
    return dataclasses.replace(default, coef=coef, options=options, gradient=gradient, criteria=criteria)


def _criteria(name: str, saved: dict[str, Any] | None) -> Criteria | None:
    if saved is None:
        return None
    known = {f.name for f in dataclasses.fields(Criteria)}
    for key in saved:
        if key not in known:
            raise UnsavedSchemeError(f"{name}: there is no criterion {key!r} in this version")
    return Criteria(**saved)


def _default(name: str) -> Scheme:
    """The registered scheme of a name, ``localized(name)`` included, with its defaults."""
    if name.startswith(INSIDE) and name.endswith(")"):
        return schemes.localized(_default(name.removeprefix(INSIDE)[:-1]))
    if name not in schemes.REGISTRY:
        raise UnsavedSchemeError(
            f"the scheme {name!r} is none of the package; {nearest(name, schemes.REGISTRY)}"
        )
    made: Scheme = schemes.REGISTRY[name].factory()
    return made


def _module(scheme: Scheme) -> Any:
    """Module of the functions in a registered scheme's options."""
    return sys.modules[schemes.REGISTRY[scheme.name].factory.__module__]


def _plain(value: Any, scheme: Scheme) -> Any:
    """Options in types of JSON; the only functions are those of the scheme's module, by their name."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Scheme):  # inside `localized`; its numbers are saved with the outer ones
        return {"scheme": _plain(value.options, _default(value.name))}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name), scheme) for f in dataclasses.fields(value)}
    name = getattr(value, "__name__", "")
    if scheme.name in schemes.REGISTRY and getattr(_module(scheme), name, None) is value:
        return {"function": name}
    raise UnsavedSchemeError(f"{scheme.name} has the option {value!r}, which cannot be saved")


def _options(default: Any, saved: Any, scheme: Scheme) -> Any:
    """Default options updated by the saved ones; text instead of a function comes from version 0.1."""
    if isinstance(saved, dict) and "function" in saved:
        return getattr(_module(scheme), saved["function"])
    if isinstance(default, Scheme):
        if not isinstance(saved, dict):
            raise UnsavedSchemeError(f"{scheme.name}: version 0.1 did not save the scheme inside; pass it")
        return dataclasses.replace(default, options=_options(default.options, saved["scheme"], default))
    if dataclasses.is_dataclass(default) and not isinstance(default, type):
        if isinstance(saved, str):  # the printed form of a record, as version 0.1 wrote it
            if saved == repr(default):
                return default
            raise UnsavedSchemeError(
                f"{scheme.name}: version 0.1 did not save the option {saved}; pass the scheme"
            )
        known = {f.name: getattr(default, f.name) for f in dataclasses.fields(default)}
        for key in saved:
            if key not in known:
                raise UnsavedSchemeError(f"{scheme.name} has no option {key!r} in this version")
        return dataclasses.replace(
            default, **{k: _options(known[k], part, scheme) for k, part in saved.items()}
        )
    if isinstance(saved, str) and saved.startswith("<function "):
        words = saved.split()[1]
        if words != getattr(default, "__qualname__", None):
            raise UnsavedSchemeError(
                f"{scheme.name}: version 0.1 did not save the function {words}; pass the scheme"
            )
        return default
    return saved


def _numbers(name: str, default: PyTree, saved: dict[str, Any]) -> PyTree:
    """Default numbers updated by the saved ones, which are removed from ``saved``."""
    if dataclasses.is_dataclass(default) and not isinstance(default, type):
        fields = {f.name: getattr(default, f.name) for f in dataclasses.fields(default)}
        parts = {key: _numbers(f"{name}.{key}", part, saved) for key, part in fields.items()}
        return dataclasses.replace(default, **parts)
    if isinstance(default, dict):
        return {key: _numbers(f"{name}.{key}", part, saved) for key, part in default.items()}
    if isinstance(default, tuple) and not hasattr(default, "_fields"):
        return tuple(_numbers(f"{name}.{i}", part, saved) for i, part in enumerate(default))
    value = saved.pop(name.removeprefix("numbers."), default)
    return np.asarray(value) if isinstance(value, list) else value
