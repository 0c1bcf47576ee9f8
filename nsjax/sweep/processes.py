"""Sweeps over several processes: each computes its share of the lanes, all get all results."""

from __future__ import annotations

import os
from typing import Any

import jax
import jaxlib
import numpy as np

from nsjax.types import PyTree
from nsjax.version import __version__


def share(lanes: np.ndarray) -> np.ndarray:
    """The lanes of this process: lanes are assigned to processes in turn."""
    return lanes[jax.process_index() :: jax.process_count()]


def owners(lanes: np.ndarray, done: np.ndarray) -> np.ndarray:
    """The process that has, or computes, each of the ``lanes``: the first that has the lane already; the
    others are assigned in turn.

    Args:
        lanes: (n,) numbers of the lanes to run.
        done: (all lanes,) mask of the lanes that this process has.
    """
    number = jax.process_count()
    has = done[None] if number == 1 else np.asarray(_collected(done))
    owner = np.where(has.any(0), np.argmax(has, axis=0), -1)[lanes]
    missing = np.flatnonzero(owner < 0)
    owner[missing] = np.arange(len(missing)) % number
    return owner


def gather(found: PyTree, lanes: np.ndarray, owner: np.ndarray | None = None) -> PyTree:
    """Results of all lanes, from arrays with the results of this process's lanes.

    Args:
        found: arrays, one entry per lane.
        lanes: (n,) numbers of the lanes that ran.
        owner: (n,) the process that has each lane; None: the assignment of `share`.
    """
    number = jax.process_count()
    if number == 1:
        return found
    owner = np.arange(len(lanes)) % number if owner is None else owner
    own = [lanes[owner == k] for k in range(number)]
    longest, mine = max(len(x) for x in own), own[jax.process_index()]
    places = np.concatenate([mine, np.repeat(lanes[:1], longest - len(mine))])

    def collect(values: np.ndarray) -> np.ndarray:
        parts = _collected(values[places])
        for k in range(number):
            values[own[k]] = np.asarray(parts[k])[: len(own[k])]
        return values

    return jax.tree.map(collect, found)


def _collected(values: np.ndarray) -> Any:
    """The arrays of all processes, one after the other."""
    from jax.experimental import multihost_utils

    return multihost_utils.process_allgather(values)


def releases() -> dict[str, str]:
    """What determines the bits of a lane beside its program and numbers: releases, the kind of device, and
    the options of the compiler in this process.
    """
    flags = [x for x in os.environ.get("XLA_FLAGS", "").split() if "device_count" not in x]
    return {
        "nsjax": __version__, "jax": jax.__version__, "jaxlib": jaxlib.__version__,
        "device": jax.local_devices()[0].device_kind, "XLA_FLAGS": " ".join(sorted(flags)),
    }  # fmt: skip
