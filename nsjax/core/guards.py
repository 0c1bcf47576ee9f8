"""Guards: functions of the state at whose zeros a run stops, or its state or its numbers change."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.arguments import check_is
from nsjax.core.errors import InputError, call, check_whole
from nsjax.core.inputs import DrivenParams, Inputs, input_places, value_of, with_inputs
from nsjax.core.keys import above, child
from nsjax.core.signals import Segment, first_value
from nsjax.core.system import Problem, State, System
from nsjax.types import Array, Fn, PyTree, is_traced, record

if TYPE_CHECKING:
    from nsjax.core.step import SystemState

ARMED = 1e-9
"""Part of the largest value of a guard so far, above which it counts as positive at the start of a run."""


SWITCHES = ("active", "locked")
"""Names of the numbers of parts that say whether their rows are there; turned to 1 they make impulses."""


@dataclasses.dataclass(frozen=True)
class NewNumbers:
    """Numbers of a problem that change where a guard is met.

    Args:
        names: of the numbers.
        values: what they become: numbers, rows of numbers, or functions ``(t, q, v, p)`` that return them.
    """

    names: tuple[str, ...]
    values: tuple[Any, ...]

    def read(self, at: SystemState) -> dict[str, Array]:
        """Their values at a state."""
        found = {}
        for name, x in zip(self.names, self.values, strict=True):
            if callable(x):
                x = call(f"{name} of resets", x, at.t, at.q, at.v, read(at), takes="t, q, v, p")
            found[name] = jnp.asarray(x, float)
        return found


@dataclasses.dataclass(frozen=True)
class Guards:
    """The guards of a run, functions ``(t, q, v, p) -> scalar`` that fall through zero.

    Args:
        stop: ends the run; None: nothing does.
        count: number of times it falls through zero until the run ends.
        resets: pairs of a guard and its reset map ``(t, q, v, p) -> (q, v)``, or its `NewNumbers`.
        through: ``(step, guards, memory, end) -> (carry, output, memory)``, a step that ends where a guard
            does: a function of the schemes that locate events, which other runs do not load.
    """

    stop: Fn | None
    count: int
    resets: tuple[tuple[Fn, Any], ...]
    through: Fn

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Numbers that change in a run."""
        every = [x.names for _, x in self.resets if isinstance(x, NewNumbers)]
        return tuple(dict.fromkeys(name for own in every for name in own))

    def opened(self, problem: Problem) -> Problem:
        """The problem with the numbers that change as inputs, at their values in this problem."""
        return _with_numbers(problem, None, self.names)

    @property
    def closes(self) -> bool:
        """Whether rows come and go, which makes impulses."""
        return any(name.split(".")[-1] in SWITCHES for name in self.names)

    def given(self, params: PyTree, numbers: dict[str, Array]) -> PyTree:
        """The params with the numbers that have changed so far."""
        if not self.names:
            return params
        now = {name: Segment(start=jnp.zeros(()), value=x) for name, x in numbers.items()}
        return dataclasses.replace(params, signals={**params.signals, **now})

    def values(self, at: SystemState) -> Array:
        """Values (k,) of the guards at a state: of the stop, if there is one, then of the resets."""
        found = [] if self.stop is None else [("stop", self.stop)]
        found += [(f"guard {k} of resets", guard) for k, (guard, _) in enumerate(self.resets)]
        numbers = []
        for name, function in found:
            x = call(name, function, at.t, at.q, at.v, read(at), takes="t, q, v, p")
            if x is None or jnp.shape(x) != ():
                raise InputError(f"{name} returns shape {jnp.shape(x)}; it must be one number")
            numbers.append(jnp.asarray(x, float))
        return jnp.stack(numbers)

    def after(self, at: SystemState, fired: Array) -> State:
        """The state after the resets of the guards that have ``fired`` (k,) bool, in their order."""
        first = 0 if self.stop is None else 1
        for k, (_, reset) in enumerate(self.resets):
            if isinstance(reset, NewNumbers):
                continue
            name = f"map {k} of resets"
            found = call(name, reset, at.t, at.q, at.v, read(at), takes="t, q, v, p")
            q: Any
            v: Any
            q, v = found if isinstance(found, tuple | list) and len(found) == 2 else (None, None)
            if q is None or v is None or jnp.shape(q) != at.q.shape or jnp.shape(v) != at.v.shape:
                raise InputError(
                    f"{name} returns {found!r}; return a pair (q, v) of shapes {at.q.shape} and "
                    f"{at.v.shape}"
                )
            now = fired[first + k]
            at = at.moved(q=jnp.where(now, q, at.q), v=jnp.where(now, v, at.v))
        return at.state

    def numbers_after(self, at: SystemState, fired: Array, now: dict[str, Array]) -> dict[str, Array]:
        """The numbers after the guards that have ``fired``, from those before."""
        first = 0 if self.stop is None else 1
        for k, (_, reset) in enumerate(self.resets):
            for name, x in reset.read(at).items() if isinstance(reset, NewNumbers) else ():
                if x.shape != now[name].shape:
                    raise InputError(
                        f"simulate: resets[{k}] changes the shape of {name!r} from {now[name].shape} to "
                        f"{x.shape}; it must stay"
                    )
                now = {**now, name: jnp.where(fired[first + k], x, now[name])}
        return now


def read(at: SystemState) -> PyTree:
    """The params of the model at a state, as its functions get them: inputs are read."""
    owner = getattr(at.system.prepare, "__self__", None)
    if isinstance(owner, Inputs) and isinstance(at.params, DrivenParams):
        return owner.read(at.params, at.t)
    return at.params


def guards_of(system: System, stop: Any, resets: Any, through: Fn) -> Guards:
    """The `Guards` of a run, checked.

    Args:
        stop: a function, or a pair of it and a count; None: nothing stops.
        resets: pairs of functions.
        through: see `Guards`.

    Raises:
        InputError: for values that are no functions, a count below one, and systems that have none.
    """
    stop, count = stop if isinstance(stop, tuple | list) and len(stop) == 2 else (stop, 1)
    check_whole("simulate: count of stop", count, 1)
    if not callable(stop) and not (stop is None and resets):
        raise InputError(
            f"simulate: stop = {stop!r}; give a function (t, q, v, p) -> number that falls through zero "
            "where the run ends, or a pair (function, 3) for the third time"
        )
    check_is("simulate", "system", system, System)
    if system.changing_contacts:
        raise InputError(
            "simulate: stop and resets do not work with a contact_group that has a capacity; leave the "
            "capacity out"
        )
    made = tuple((guard, _then(k, reset)) for k, (guard, reset) in enumerate(resets))
    return Guards(stop, count, made, through)


def _then(k: int, reset: Any) -> Any:
    """What happens at a guard: the map of the state, or the `NewNumbers` of a mapping."""
    if not isinstance(reset, Mapping):
        return reset
    values = []
    for name, x in reset.items():
        if is_traced(x):
            raise InputError(
                f"simulate: resets[{k}] makes {name!r} a traced number; give a function (t, q, v, p) that "
                "reads it from a number of the problem"
            )
        values.append(x if callable(x) else _kept(np.asarray(x, float)))
    return NewNumbers(tuple(reset), tuple(values))


def _kept(x: np.ndarray) -> Any:
    """A number, or rows of numbers as tuples, which are compared by their values."""
    return float(x) if not x.ndim else tuple(map(_kept, x))


def check_resets(resets: Any) -> None:
    """Refuses resets that are no pairs of a function and a function or mapping."""
    if isinstance(resets, dict) or not isinstance(resets, tuple | list):
        raise InputError(f"simulate: resets = {resets!r}; give a list of pairs (guard, map)")
    for k, pair in enumerate(resets):
        whole = isinstance(pair, tuple | list) and len(pair) == 2
        if not whole or not callable(pair[0]) or not (callable(pair[1]) or isinstance(pair[1], Mapping)):
            raise InputError(
                f"simulate: resets[{k}] = {pair!r}; give a pair of a function (t, q, v, p) -> number and a "
                "function (t, q, v, p) -> (q, v), or the numbers that change, {'pin.locked': True}"
            )


def check_maps(resets: Any) -> None:
    """Refuses resets of a stepper, whose numbers are its inputs, that are no maps of the state."""
    check_resets(resets)
    if (then := next((x for _, x in resets if isinstance(x, Mapping)), None)) is not None:
        raise InputError(
            f"stepper: resets change {', '.join(then)}; name these in inputs=, and give them to every step"
        )


def with_changing(problem: Problem, inputs: Mapping[str, Any] | None, resets: Any) -> Problem:
    """The problem with its ``inputs``, and with the numbers that ``resets`` change as inputs of their own.

    Raises:
        InputError: see `check_resets` and `with_inputs`; for a number that is an input and changes, and for
            rows of a part that are always there.
    """
    check_resets(resets)
    names = tuple(dict.fromkeys(name for _, x in resets if isinstance(x, Mapping) for name in x))
    return _with_numbers(problem, inputs, names)


def _with_numbers(problem: Problem, inputs: Mapping[str, Any] | None, names: tuple[str, ...]) -> Problem:
    if not names:
        return with_inputs(problem, inputs) if inputs else problem
    given, owner = dict(inputs or {}), getattr(problem.system.prepare, "__self__", None)
    if not inputs and isinstance(owner, Inputs):  # a problem of `with_inputs`
        given = dict(problem.params.signals)
        problem = dataclasses.replace(problem, system=owner.system, params=problem.params.model)
    for name, key in input_places(problem, names, "simulate: resets").keys:
        value = value_of(problem, key)
        if name in given:
            raise InputError(f"simulate: {name!r} is an input, and resets change it; leave one of them out")
        if key.path[-1] in SWITCHES and child(above({"params": problem.params}, key), key.path[-1]) is None:
            raise InputError(
                f"simulate: resets change {name!r}, which is not set; give {key.path[-1]}=False where the "
                "part is made"
            )
        given[name] = Segment(start=0.0, value=jnp.asarray(value, float))
    return with_inputs(problem, given)


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
        numbers: numbers of the problem that change in a run, by name.
    """

    armed: Array
    size: Array
    count: Array
    stopped: Array
    elapsed: Array
    numbers: dict[str, Array] = dataclasses.field(default_factory=dict)

    def seen(self, values: Array) -> GuardMemory:
        """The memory after a state at which the guards have these values."""
        values = lax.stop_gradient(values)
        size = jnp.where(jnp.abs(values) > self.size, jnp.abs(values), self.size)
        return dataclasses.replace(self, armed=self.armed | (values > 0.0), size=size)


def numbers_at_start(guards: Guards, params: PyTree, known: GuardMemory | None) -> dict[str, Array]:
    """Numbers that change in a run, at its start; ``known``: memory of the run which it continues."""
    before = {} if known is None else known.numbers
    return {
        name: jnp.asarray(before.get(name, first_value(params.signals[name])), float)
        for name in guards.names
    }


def begin_guards(
    guards: Guards, at: SystemState, known: GuardMemory | None, numbers: dict[str, Array]
) -> GuardMemory:
    """Memory at the start of a run; ``known``: that of the run which it continues."""
    values = lax.stop_gradient(guards.values(at))
    size = jnp.abs(values)
    if known is not None and known.size.shape == size.shape:
        size = jnp.where(known.size > size, known.size, size)
    return GuardMemory(
        armed=values > ARMED * size, size=size, count=jnp.asarray(0, int), stopped=jnp.asarray(False),
        elapsed=jnp.zeros(()), numbers=numbers,
    )  # fmt: skip
