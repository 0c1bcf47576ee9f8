"""Continuation of a saved run, also by a scheme whose memory has grown since the file was written."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from nsjax.core import Carry, InputError, Problem, Scheme, State
from nsjax.core.blocks import tree_shapes
from nsjax.io.codec import ChangedRecordError, rebuild, record_types
from nsjax.io.files import PathLike
from nsjax.loop import LoopProgram, begin_run
from nsjax.trajectory import Continuation
from nsjax.types import PyTree
from nsjax.version import __version__


def as_run(params: PyTree) -> PyTree:
    """Parameters as `simulate` holds them: numbers in 64 bits, booleans unchanged."""
    return jax.tree.map(lambda x: x if np.asarray(x).dtype.kind == "b" else np.asarray(x, float), params)


def continuation(
    path: PathLike,
    described: dict[str, Any],
    arrays: Mapping[str, np.ndarray],
    problem: Problem,
    scheme: Scheme | None,
    note: str,
) -> Continuation:
    """The saved continuation; where the saved memory does not fit, a new memory, with a warning.

    Args:
        path: path of the file, for messages.
        described, arrays: from the file.
        problem: the saved problem.
        scheme: scheme that starts a new memory; None: a memory that does not fit is refused.
        note: why there is no scheme.

    Raises:
        InputError: for a memory that does not fit, without a scheme.
        KeyError: for a missing array.

    Warns:
        RuntimeWarning: if the scheme starts a new memory.
    """
    known = record_types(problem.params)
    state: State = rebuild(described["fields"]["carry"]["fields"]["state"], arrays, known)
    numbers: dict[str, Any] = {
        name: arrays[part["array"]] for name, part in described["fields"].items() if "array" in part
    }

    def start() -> Carry:
        """The carry of a run that begins in the saved state."""
        program = LoopProgram(system=problem.system, keep=(), events=0)
        assert scheme is not None
        made: Carry = begin_run(
            program, scheme, as_run(problem.params), state, numbers["dt"], None
        ).next.carry
        return made

    try:
        saved: Continuation = rebuild(described, arrays, known)
        if not saved.scheme and scheme is not None:  # file of an earlier version
            saved = dataclasses.replace(saved, scheme=scheme.name, impulses=scheme.impulses)
        if str(arrays["nsjax_version"]) == __version__ or scheme is None:
            return saved
        if tree_shapes(jax.eval_shape(start)) == tree_shapes(saved.carry):
            return saved
        fault = "the saved memory has other shapes than this version's"
    except ChangedRecordError as error:
        fault = str(error)
    if scheme is None:
        raise InputError(
            f"{fault}. The memory can be started anew from the saved state: pass the scheme, "
            f"load(path, scheme=...); it is not in the file ({note})"
        )
    warnings.warn(
        f"{path} was written by nsjax {arrays['nsjax_version']}: {fault}. The memory of {scheme.name} "
        f"starts anew at t = {float(state.t):g} s, so that a continuation is not bit for bit",
        RuntimeWarning,
        stacklevel=3,
    )
    fresh = dataclasses.replace(start(), state=state)
    return Continuation(carry=fresh, scheme=scheme.name, impulses=scheme.impulses, **numbers)
