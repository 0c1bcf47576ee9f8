"""Contacts that move each other: (nc, nc) bool, or (islands, k, k) of contacts in islands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.types import Array


def over_links(f: Callable[..., Array], links: Array | None, *contacts: Array) -> Any:
    """``f(links, *contacts)`` (nc,), island by island if there are any, of values per contact (nc,); False
    if ``links`` is None.
    """
    if links is None:
        return False
    if links.ndim == 2:
        return f(links, *contacts)
    return jax.vmap(f)(links, *(x.reshape(links.shape[:2]) for x in contacts)).reshape(-1)


def pairs(links: Array, struck: Array) -> Array:
    """Pairs of different ``struck`` contacts that move each other, in the shape of ``links``."""
    s = struck if links.ndim == 2 else struck.reshape(links.shape[:2])
    return links & s[..., :, None] & s[..., None, :] & ~jnp.eye(s.shape[-1], dtype=bool)


def struck_with(links: Array, struck: Array) -> Array:
    """Contacts (nc,) bool of ``struck`` that move another of them."""
    return jnp.any(pairs(links, struck), axis=-1).reshape(-1)
