"""Several processes: each computes its share of the lanes, all get all results."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from nsjax.types import PyTree


def share(lanes: np.ndarray) -> np.ndarray:
    """The lanes of this process, dealt like cards."""
    return lanes[jax.process_index() :: jax.process_count()]


def gather(found: PyTree, lanes: np.ndarray) -> PyTree:
    """Results of all lanes, from arrays that hold those of this process's lanes."""
    number = jax.process_count()
    if number == 1:
        return found
    from jax.experimental import multihost_utils

    longest = -(-len(lanes) // number)
    mine = share(lanes)
    places = np.concatenate([mine, np.repeat(lanes[:1], longest - len(mine))])

    def collect(values: np.ndarray) -> np.ndarray:
        parts: Any = multihost_utils.process_allgather(values[places])
        for k in range(number):
            own = lanes[k::number]
            values[own] = np.asarray(parts[k])[: len(own)]
        return values

    return jax.tree.map(collect, found)
