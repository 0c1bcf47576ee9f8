"""Start of a problem after its numbers have changed: numbers that enter constraints move it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core.changes import all_changes, changed, key_of
from nsjax.core.keys import Key
from nsjax.types import PyTree


def _beyond(key: Key, nv: int) -> bool:
    """Whether a key names a velocity (or an increment) after the first ``nv``."""
    return key.path[1] in ("v", "xi") and key.index is not None and key.index >= nv


def replaced(problem: Any, numbers: Any, named: Mapping[str, Any]) -> dict[str, PyTree]:
    """``params`` and ``state`` of a problem with other numbers, for `Problem.replace`."""
    base, given = {"params": problem.params, "state": problem.state}, all_changes(numbers, named)
    after = changed(base, given, fixed=problem.system.parts is not None)
    return restarted(problem.system, base, after, [key_of(base, name) for name, _ in given])


def restarted(
    system: Any, before: dict[str, PyTree], after: dict[str, PyTree], keys: Iterable[Key]
) -> dict[str, PyTree]:
    """``params`` and ``state`` whose start fulfils the constraints again after a change of numbers, as the
    parts of the system close it: a record ``System.parts.kept`` with the method ``restarted(parts, before,
    after, keys) -> State``. Other systems, and other numbers, keep their start.

    This is the one place where a changed number moves the start: for `Problem.replace`, sweeps,
    identification and checks of derivatives, with derivatives in forward and reverse mode.

    Args:
        system: an `nsjax.System`.
        before, after: ``params`` and ``state`` before and after the change; more entries stay.
        keys: of the changed numbers.
    """
    parts = system.parts
    kept, inputs = getattr(parts, "kept", None), getattr(parts, "inputs", None)
    if kept is not None:
        return {**after, "state": kept.restarted(parts, before, after, tuple(keys))}
    if inputs is None:
        return after
    # numbers that are given over time, or that follow commands, belong to a model inside
    nv, state = inputs.system.nv, after["state"]

    def inside(base: dict[str, PyTree]) -> dict[str, PyTree]:
        return {
            "params": base["params"].model,
            "state": dataclasses.replace(base["state"], v=base["state"].v[:nv]),
        }

    own = [
        dataclasses.replace(x, path=("params", *x.path[2:])) if x.path[:2] == ("params", "model") else x
        for x in keys
        if x.path[1:2] in ((), ("model",)) or (x.path[0] == "state" and not _beyond(x, nv))
    ]
    found = restarted(inputs.system, inside(before), inside(after), own)["state"]
    if found.q is state.q:
        return after
    xp: Any = np if isinstance(found.v, np.ndarray) and isinstance(state.v, np.ndarray) else jnp
    return {**after, "state": dataclasses.replace(found, v=xp.concatenate([found.v, state.v[nv:]]))}
