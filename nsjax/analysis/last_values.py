"""Outputs of a run for checks: final values of quantities by name, or a function of the run."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp

from nsjax.core import InputError, nearest
from nsjax.core.system import Problem
from nsjax.sensors import ENERGIES, label_name, table
from nsjax.trajectory import Trajectory, label_names
from nsjax.types import Array

Outputs = Sequence[str] | Callable[[Trajectory], Array] | None
"""Names of quantities, for their final values; a function ``traj -> (k,)``; or None: all of q and v."""

ENTRY = re.compile(r"(.+)\[(\d+)\]")
"""Pattern of an entry of a vector: name and index."""


@dataclasses.dataclass(frozen=True)
class _Last:
    """Final values of quantities, named by labels or as in `Trajectory.sensor`."""

    names: tuple[str, ...]
    labels: tuple[str, ...]

    def __call__(self, traj: Trajectory) -> Array:
        return jnp.stack([self._value(traj, name) for name in self.names])

    def _value(self, traj: Trajectory, name: str) -> Array:
        if name in self.labels:
            return jnp.asarray(traj[name])[-1]
        plain, index = _entry(name)
        value = jnp.asarray(traj.sensor(plain))[-1]
        if index is None and value.ndim:
            raise InputError(
                f"outputs: {name!r} is an array {value.shape}; take an entry of it, '{name}[0]'"
            )
        if index is not None and (value.ndim != 1 or index >= value.shape[0]):
            raise InputError(
                f"outputs: {name!r} lies outside the array of shape {value.shape}; name an entry inside it"
            )
        return value if index is None else value[index]


def _entry(name: str) -> tuple[str, int | None]:
    found = ENTRY.fullmatch(name)
    return (name, None) if found is None else (found[1], int(found[2]))


def _end(traj: Trajectory) -> Array:
    return jnp.concatenate([jnp.asarray(traj.q)[-1], jnp.asarray(traj.v)[-1]])


def reader(problem: Problem, outputs: Outputs) -> tuple[tuple[str, ...], Any]:
    """Names of the outputs (empty for a function, see `output_names`), and the function that reads them
    from a run.
    """
    labels, nq, nv = problem.system.labels, problem.system.nq, problem.system.nv
    if outputs is None:
        names = tuple(label_name(entry) for entry in (*labels.q, *labels.v))
        plain = (*(f"q[{k}]" for k in range(nq)), *(f"v[{k}]" for k in range(nv)))
        return (names if len(names) == nq + nv else plain), _end
    if callable(outputs):
        return (), outputs
    if isinstance(outputs, str):
        raise InputError(f"outputs = {outputs!r}; give a list of names, such as [{outputs!r}]")
    known = [*label_names(problem.system), *ENERGIES]
    every = table(problem.system)
    for name in outputs:
        if name not in known and _entry(name)[0] not in every:
            raise InputError(f"outputs: unknown quantity {name!r}; {nearest(name, every)}")
    return tuple(outputs), _Last(tuple(outputs), tuple(known))


def output_names(names: tuple[str, ...], outputs: Outputs, size: int) -> tuple[str, ...]:
    """The names of `reader`, or the name of a function with the numbers of its ``size`` values."""
    inner = getattr(outputs, "func", outputs)  # of a functools.partial
    said = getattr(inner, "__name__", type(inner).__name__).strip("<>")
    return names or ((said,) if size == 1 else tuple(f"{said}[{k}]" for k in range(size)))
