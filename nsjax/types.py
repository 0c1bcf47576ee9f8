"""Shared type names, records as pytrees, values that are traced, and short forms of values."""

from __future__ import annotations

import dataclasses
import html
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

# Short forms of values: records in one line, and numbers with prefixed units.


WRITTEN = 6
"""Most numbers of an array, and most parts of a tuple or mapping, that are written out."""


PREFIXES = {-9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G"}


def short(value: Any) -> str:
    """A value in few words.

    Example:
        >>> import numpy as np
        >>> from nsjax.types import short
        >>> short({"q": np.zeros((501, 3)), "mass": np.asarray(2.0), "names": ("a", "b")})
        "{'q': float64(501, 3), 'mass': 2.0, 'names': ('a', 'b')}"
    """
    if isinstance(value, jax.core.Tracer):
        return f"traced {value.dtype}{value.shape}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        few = isinstance(value, np.ndarray | np.generic | jax.Array) and value.size <= WRITTEN
        return str(np.asarray(value).tolist()) if few else f"{value.dtype}{value.shape}"
    if isinstance(value, Mapping):
        return "{" + _listed([f"{k!r}: {short(x)}" for k, x in value.items()]) + "}"
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        ends = "()" if isinstance(value, tuple) else "[]"
        comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
        return f"{ends[0]}{_listed([short(x) for x in value])}{comma}{ends[1]}"
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    return repr(value)


def _listed(parts: list[str]) -> str:
    more = [f"... {len(parts) - WRITTEN} more"] if len(parts) > WRITTEN else []
    return ", ".join(parts[:WRITTEN] + more)


def scale(values: Any, unit: str) -> tuple[float, str]:
    """Factor and prefixed unit that bring the largest magnitude between 1 and 1000.

    Angles and numbers without unit keep theirs.

    Example:
        >>> from nsjax.types import scale
        >>> scale([0.0, 0.2], "s")
        (1000.0, 'ms')
    """
    values = np.abs(np.asarray(values, float))
    values = values[np.isfinite(values)]
    largest = float(values.max()) if values.size else 0.0
    if largest == 0.0 or not unit or unit.startswith("rad"):
        return 1.0, unit
    # a little below a power counts as the power: 0.9999 mm of a clearance of 1 mm stays in mm
    exponent = 3 * int(np.floor(np.log10(largest * 1.05) / 3))
    exponent = min(max(exponent, -9), 9)
    return 10.0**-exponent, PREFIXES[exponent] + unit


def record_repr(record: Any) -> str:
    """A record as ``Name(field=value, ...)``, without fields that are None."""
    fields = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
    shown = ", ".join(f"{name}={short(x)}" for name, x in fields.items() if x is not None)
    return f"{type(record).__qualname__}({shown})"


def as_html(value: Any) -> str:
    """The text that ``print`` shows, as HTML for a notebook."""
    return f"<pre>{html.escape(str(value))}</pre>"


# Shared type names and the decorator that makes a frozen dataclass a pytree.


Array = jax.Array
"""An array of JAX, traced or not."""

PyTree = Any
Fn = Callable[..., Any]
Promised = Fn | Any
"""A function, or None if a size says that it is not needed; callers that know the size need no check."""

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(*, static: tuple[str, ...] = ()) -> Callable[[type[T]], type[T]]:
    """Frozen, keyword-only dataclass registered as a pytree.

    Fields named in ``static`` become part of the tree structure (compared and hashed, never
    traced); all others are leaves or subtrees. The repr is one line, with arrays by type and shape.

    Example:
        >>> from nsjax.types import record
        >>> @record(static=("name",))
        ... class Spring:
        ...     name: str
        ...     stiffness: float
        >>> import jax
        >>> jax.tree.leaves(Spring(name="k", stiffness=2.0))
        [2.0]
    """

    def decorate(cls: type[T]) -> type[T]:
        made: Any = dataclasses.dataclass(frozen=True, kw_only=True, repr=False)(cls)
        if cls.__repr__ is object.__repr__:
            made.__repr__ = record_repr
        data = [f.name for f in dataclasses.fields(made) if f.name not in static]
        return jax.tree_util.register_dataclass(made, data_fields=data, meta_fields=list(static))

    return decorate


def identity(value: Any) -> Any:
    """Key by which a function in a record is compared: of a method, function and value of its owner."""
    return (value.__func__, value.__self__) if inspect.ismethod(value) else value


def is_traced(tree: PyTree) -> bool:
    """Whether any leaf is a tracer, as inside a JAX transformation."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(tree))


_constant = jax.jit(lambda: jnp.zeros(()))
"""A constant, from a program because that takes a tenth of the time of an operation."""


def being_compiled() -> bool:
    """Whether a program is being traced for `jax.jit`, so that even constants have no values."""
    return is_traced(_constant())


def without_values(tree: PyTree) -> bool:
    """Whether what is computed from the leaves has no values: some are tracers, or a program is traced."""
    return is_traced(tree) or being_compiled()
