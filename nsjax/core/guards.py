"""Guards: functions of the state at whose zeros a run stops, or its state is reset."""

from __future__ import annotations

import dataclasses
import importlib
import warnings
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import lax

from nsjax.core.arguments import check_is
from nsjax.core.errors import InputError, call, check_whole
from nsjax.core.inputs import DrivenParams, Inputs
from nsjax.core.system import State, System
from nsjax.types import Array, Fn, PyTree, record

if TYPE_CHECKING:
    from nsjax.core.step import SystemState

ARMED = 1e-9
"""Part of the largest value of a guard so far, above which it counts as positive at the start of a run: at
a stop it is zero up to rounding, and the run goes on from there."""


@dataclasses.dataclass(frozen=True)
class Guards:
    """The guards of a run, functions ``(t, q, v, p) -> scalar`` that fall through zero.

    Args:
        stop: ends the run; None: nothing does.
        count: number of times it falls through zero until the run ends.
        resets: pairs of a guard and its reset map ``(t, q, v, p) -> (q, v)``.
        through: ``(step, guards, memory, end) -> (carry, output, memory)``, a step that ends where a guard
            does: a function of the schemes that locate events, which other runs do not load.
    """

    stop: Fn | None
    count: int
    resets: tuple[tuple[Fn, Fn], ...]
    through: Fn

    def values(self, at: SystemState) -> Array:
        """Values (k,) of the guards at a state: of the stop, if there is one, then of the resets."""
        found = [] if self.stop is None else [("stop", self.stop)]
        found += [(f"guard {k} of resets", guard) for k, (guard, _) in enumerate(self.resets)]
        return jnp.stack([_number(name, f, at) for name, f in found])

    def after(self, at: SystemState, fired: Array) -> State:
        """The state after the resets of the guards that have ``fired`` (k,) bool, in their order."""
        first = 0 if self.stop is None else 1
        for k, (_, reset) in enumerate(self.resets):
            name = f"map {k} of resets"
            found = call(name, reset, at.t, at.q, at.v, read(at), takes="t, q, v, p")
            q: Any
            v: Any
            q, v = found if isinstance(found, tuple | list) and len(found) == 2 else (None, None)
            if jnp.shape(q) != at.q.shape or jnp.shape(v) != at.v.shape or q is None:
                raise InputError(
                    f"{name} returns {found!r}; return a pair (q, v) of shapes {at.q.shape} and "
                    f"{at.v.shape}"
                )
            now = fired[first + k]
            at = at.moved(q=jnp.where(now, q, at.q), v=jnp.where(now, v, at.v))
        return at.state


def _number(name: str, function: Fn, at: SystemState) -> Array:
    found = call(name, function, at.t, at.q, at.v, read(at), takes="t, q, v, p")
    if found is None or jnp.shape(found) != ():
        raise InputError(f"{name} returns shape {jnp.shape(found)}; it must be one number")
    return jnp.asarray(found, float)


def read(at: SystemState) -> PyTree:
    """The params of the model at a state, as its functions get them: inputs are read."""
    owner = getattr(at.system.prepare, "__self__", None)
    if isinstance(owner, Inputs) and isinstance(at.params, DrivenParams):
        return owner.read(at.params, at.t)
    return at.params


def guards_of(system: System, stop: Any, resets: Any) -> Guards | None:
    """The `Guards` of a run, checked; None without any.

    Args:
        stop: a function, or a pair of it and a count; None: nothing stops.
        resets: pairs of functions.

    Raises:
        InputError: for values that are no functions, a count below one, and systems that have none.
    """
    stop, count = stop if isinstance(stop, tuple | list) and len(stop) == 2 else (stop, 1)
    if stop is None and not resets:
        return None
    check_whole("simulate: count of stop", count, 1)
    if stop is not None and not callable(stop):
        raise InputError(
            f"simulate: stop = {stop!r}; give a function (t, q, v, p) -> number that falls through zero "
            "where the run ends, or a pair (function, 3) for the third time"
        )
    if isinstance(resets, dict) or not isinstance(resets, tuple | list):
        raise InputError(f"simulate: resets = {resets!r}; give a list of pairs (guard, map)")
    for k, pair in enumerate(resets):
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(map(callable, pair)):
            raise InputError(
                f"simulate: resets[{k}] = {pair!r}; give a pair of functions (t, q, v, p) -> number and "
                "(t, q, v, p) -> (q, v)"
            )
    check_is("simulate", "system", system, System)
    if system.changing_contacts:
        raise InputError(
            "simulate: stop and resets do not work with a contact_group that has a capacity; leave the "
            "capacity out"
        )
    locating = importlib.import_module("nsjax.schemes.locating.localized")
    return Guards(stop, count, tuple((guard, reset) for guard, reset in resets), locating.through_guards)


def warn_of_guards(memory: GuardMemory | None, guards: Guards | None) -> None:
    """Says of a run that its stop could not come, because its function was never positive.

    Warns:
        UserWarning: with the remedy.
    """
    if memory is None or guards is None or guards.stop is None:
        return
    if not bool(memory.armed[0]) and not int(memory.count):
        warnings.warn(
            "simulate: stop was negative from the start to the end, and a run stops where it falls through "
            "zero; change its sign, or start before it",
            stacklevel=3,
        )


@record()
class GuardMemory:
    """Memory of the guards between steps.

    Args:
        armed: (k,) bool, whether each guard was positive since it fired last.
        size: (k,) largest magnitude of its values so far.
        count: () int, number of times the stop was met.
        stopped: () bool.
        elapsed: () part of the last step that was taken [s].
    """

    armed: Array
    size: Array
    count: Array
    stopped: Array
    elapsed: Array

    def seen(self, values: Array) -> GuardMemory:
        """The memory after a state at which the guards have these values."""
        values = lax.stop_gradient(values)
        size = jnp.where(jnp.abs(values) > self.size, jnp.abs(values), self.size)
        return dataclasses.replace(self, armed=self.armed | (values > 0.0), size=size)


def begin_guards(guards: Guards, at: SystemState, known: GuardMemory | None) -> GuardMemory:
    """Memory at the start of a run; ``known``: that of the run which it continues."""
    values = lax.stop_gradient(guards.values(at))
    size = jnp.abs(values)
    if known is not None and known.size.shape == size.shape:
        size = jnp.where(known.size > size, known.size, size)
    return GuardMemory(
        armed=values > ARMED * size, size=size, count=jnp.asarray(0, int), stopped=jnp.asarray(False),
        elapsed=jnp.zeros(()),
    )  # fmt: skip
