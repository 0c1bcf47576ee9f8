"""The numbers of a run that a check looks at: its last values by name, or a function of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp

from nsjax.core import InputError, nearest
from nsjax.core.system import Problem
from nsjax.sensors import ENERGIES, label_name
from nsjax.trajectory import Trajectory, label_names
from nsjax.types import Array

Outputs = Sequence[str] | Callable[[Trajectory], Array] | None
"""Labels of quantities whose last value counts, a function ``traj -> (k,)``, or None: all of q and v."""


@dataclasses.dataclass(frozen=True)
class _Last:
    """Reads the last value of labelled quantities."""

    names: tuple[str, ...]

    def __call__(self, traj: Trajectory) -> Array:
        return jnp.stack([jnp.asarray(traj[name])[-1] for name in self.names])


def _end(traj: Trajectory) -> Array:
    return jnp.concatenate([jnp.asarray(traj.q)[-1], jnp.asarray(traj.v)[-1]])


def reader(problem: Problem, outputs: Outputs) -> tuple[tuple[str, ...], Any]:
    """Names of the outputs (empty if not known yet), and the function that reads them."""
    labels = problem.system.labels
    if outputs is None:
        names = tuple(label_name(entry) for entry in (*labels.q, *labels.v))
        size = problem.system.nq + problem.system.nv
        return (names if len(names) == size else ()), _end
    if callable(outputs):
        return (), outputs
    if isinstance(outputs, str):
        raise InputError(f"outputs = {outputs!r}; give a list of names, such as [{outputs!r}]")
    known = [*label_names(problem.system), *ENERGIES]
    for name in outputs:
        if name not in known:
            raise InputError(f"outputs: unknown quantity {name!r}; {nearest(name, known)}")
    return tuple(outputs), _Last(tuple(outputs))
