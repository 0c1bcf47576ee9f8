"""Shared type names and the decorator that makes a frozen dataclass a pytree."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

import jax

from nsjax.short import record_repr

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
        done: type[T] = jax.tree_util.register_dataclass(made, data_fields=data, meta_fields=list(static))
        return done

    return decorate
