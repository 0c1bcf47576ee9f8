"""Loops of a batch whose lanes need different numbers of passes, on devices that run lanes side by side."""

from __future__ import annotations

import dataclasses
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
    def together(size: int, batched: Sequence[bool], *operands: Array) -> tuple[list[Array], list[bool]]:
        axes = [0 if x else None for x in batched]
        first = ahead + body
        carry = [
            x if b else jnp.broadcast_to(x, (size, *jnp.shape(x)))
            for x, b in zip(operands[first:], batched[first:], strict=True)
        ]
        own = [0] * len(carry)
        batch = _Batch(
            alive=jax.vmap(lambda *x: going(*x)[0], (*axes[:ahead], *own)),
            moved=jax.vmap(lambda *x: step(*x), (*axes[ahead:first], *own)),
            constants=(operands[:ahead], operands[ahead:first]),
            axes=(axes[:ahead], axes[ahead:first]),
        )
        found = _run(batch, size, carry)
        return found, [True] * len(found)

    return plain


@dataclasses.dataclass(frozen=True)
class _Batch:
    """Functions of a batch of loops.

    Args:
        alive: ``(constants, carry) -> (lanes,) bool``, lanes that go on.
        moved: ``(constants, carry) -> carry`` after a pass.
        constants: those of both functions.
        axes: their axes of lanes, None where all lanes share a value.
    """

    alive: Callable[..., Array]
    moved: Callable[..., list[Array]]
    constants: tuple[Sequence[Array], Sequence[Array]]
    axes: tuple[Sequence[int | None], Sequence[int | None]]


def _run(batch: _Batch, size: int, carry: list[Array]) -> list[Array]:
    """The loop over a batch of ``size`` lanes, which ends in smaller and smaller batches."""
    few = size // KEPT if size // KEPT >= LEAST else 0
    ahead, body = batch.constants

    def more(both: tuple[Array, list[Array]]) -> Array:
        return jnp.sum(both[0]) > few

    def advance(both: tuple[Array, list[Array]]) -> tuple[Array, list[Array]]:
        live, carry = both
        new = [_chosen(live, x, y) for x, y in zip(batch.moved(*body, *carry), carry, strict=True)]
        return batch.alive(*ahead, *new), new

    live, carry = lax.while_loop(more, advance, (batch.alive(*ahead, *carry), carry))
    if not few:
        return carry
    places = jnp.nonzero(live, size=few, fill_value=size)[0]
    some = functools.partial(jnp.take, indices=jnp.minimum(places, size - 1), axis=0)
    held = [
        [x if axis is None else some(x) for x, axis in zip(own, axes, strict=True)]
        for own, axes in zip(batch.constants, batch.axes, strict=True)
    ]
    left = _run(dataclasses.replace(batch, constants=(held[0], held[1])), few, [some(x) for x in carry])
    return [x.at[places].set(y, mode="drop") for x, y in zip(carry, left, strict=True)]


def _chosen(live: Array, new: Array, old: Array) -> Array:
    """``new`` in lanes that are ``live``."""
    return jnp.where(live.reshape(-1, *(1,) * (new.ndim - 1)), new, old)
