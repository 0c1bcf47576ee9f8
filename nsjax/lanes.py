"""One function of many lanes: independent runs or steps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.types import Array, PyTree


def map_lanes(lane: Callable[[Any], PyTree], lanes: PyTree, count: Array | None = None) -> PyTree:
    """Results of all lanes, computed on one device in the way that is fastest there.

    A CPU computes them one after the other: the loop over lanes and the time loops become one kernel, a
    lane out of contact really skips the contact problem, and a lane gives the bits of a single run. A GPU
    computes them all at once, since one lane cannot fill it.

    Args:
        lane: function of one lane.
        lanes: pytree whose leaves have the lanes as first axis.
        count: number of lanes to compute; the results of the others are zero and cost nothing on a CPU.
            None: all, and the map can be differentiated in reverse mode.
    """
    if jax.default_backend() != "cpu":
        return jax.vmap(lane)(lanes)
    if count is None:
        return lax.map(lane, lanes)
    length = jax.tree.leaves(lanes)[0].shape[0]
    at = functools.partial(lax.dynamic_index_in_dim, axis=0, keepdims=False)

    def step(k: Array, found: PyTree) -> PyTree:
        new = lane(jax.tree.map(lambda x: at(x, k), lanes))
        return jax.tree.map(lambda all_, x: lax.dynamic_update_index_in_dim(all_, x, k, 0), found, new)

    shapes = jax.eval_shape(lane, jax.tree.map(lambda x: x[0], lanes))
    empty = jax.tree.map(lambda x: jnp.zeros((length, *x.shape), x.dtype), shapes)
    return lax.fori_loop(0, count, step, empty)
