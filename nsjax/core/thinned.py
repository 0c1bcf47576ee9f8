"""Loops of a batch whose lanes need different numbers of passes, on devices that run lanes side by side."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import jaxpr_as_fun

from nsjax.types import Array

KEPT, LEAST = 8, 32
"""A loop goes on with a batch of an eighth of the lanes when no more are left, down to this many lanes.

Contact problems of a walking robot take five passes in the mean and 74 at most. Without smaller batches,
4,096 lanes take 77 passes in every step."""


def thinned(loop: Any) -> Callable[..., list[Array]]:
    """The function of a traced ``lax.while_loop`` whose batch drops lanes that have ended.

    The results of every lane are those of the plain loop: a lane passes through the same operations, in
    whatever batch it is.

    Args:
        loop: the equation of the loop.

    Returns:
        ``(constants of the condition, constants of the body, carry) -> carry``, all of them flat.
    """
    ahead, body = loop.params["cond_nconsts"], loop.params["body_nconsts"]
    going, step = jaxpr_as_fun(loop.params["cond_jaxpr"]), jaxpr_as_fun(loop.params["body_jaxpr"])

    @jax.custom_batching.custom_vmap
    def plain(*operands: Array) -> list[Array]:
        return list(loop.primitive.bind(*operands, **loop.params))

    @plain.def_vmap
    def batch(size: int, batched: Sequence[bool], *operands: Array) -> tuple[list[Array], list[bool]]:
        axes = [0 if x else None for x in batched]
        first = ahead + body
        carry = [
            x if b else jnp.broadcast_to(x, (size, *jnp.shape(x)))
            for x, b in zip(operands[first:], batched[first:], strict=True)
        ]
        own = [0] * len(carry)
        alive = jax.vmap(lambda *x: going(*x)[0], (*axes[:ahead], *own))
        moved = jax.vmap(lambda *x: step(*x), (*axes[ahead:first], *own))
        found = _run(size, alive, moved, operands[:ahead], operands[ahead:first], axes[:first], carry)
        return found, [True] * len(found)

    return plain


def _run(
    size: int, alive: Callable[..., Array], moved: Callable[..., list[Array]], ahead: Sequence[Array],
    body: Sequence[Array], axes: Sequence[int | None], carry: list[Array],
) -> list[Array]:  # fmt: skip
    """The loop over a batch of ``size`` lanes, which ends in smaller and smaller batches."""
    few = size // KEPT if size // KEPT >= LEAST else 0

    def ahead_of(both: tuple[Array, list[Array]]) -> Array:
        return jnp.sum(both[0]) > few

    def advance(both: tuple[Array, list[Array]]) -> tuple[Array, list[Array]]:
        live, carry = both
        new = [_chosen(live, x, y) for x, y in zip(moved(*body, *carry), carry, strict=True)]
        return alive(*ahead, *new), new

    live, carry = lax.while_loop(ahead_of, advance, (alive(*ahead, *carry), carry))
    if not few:
        return carry
    places = jnp.nonzero(live, size=few, fill_value=size)[0]
    some = functools.partial(jnp.take, indices=jnp.minimum(places, size - 1), axis=0)
    parts = [x if axis is None else some(x) for x, axis in zip((*ahead, *body), axes, strict=True)]
    left = _run(few, alive, moved, parts[: len(ahead)], parts[len(ahead) :], axes, [some(x) for x in carry])
    return [x.at[places].set(y, mode="drop") for x, y in zip(carry, left, strict=True)]


def _chosen(live: Array, new: Array, old: Array) -> Array:
    """``new`` in lanes that are ``live``."""
    return jnp.where(live.reshape(-1, *(1,) * (new.ndim - 1)), new, old)
