"""Inputs: numbers of a problem that are given over time, as tables (`nsjax.core.signals`), and systems that
read them.

A step reads its inputs once, at its start (`System.refresh`): a held value counts for the whole step; of
other inputs the functions of time read the polynomial of the segment. No scheme knows of inputs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from nsjax.core.arguments import check_is, mapping
from nsjax.core.errors import InputError, listed, nearest
from nsjax.core.keys import (
    Key,
    Prepared,
    child,
    dotted,
    is_group,
    names,
    parse_parameter,
    put,
    refuse_twice,
)
from nsjax.core.operators import prepared
from nsjax.core.signals import SampledSignal, Segment, constant, first_value
from nsjax.core.system import Problem, System
from nsjax.core.system_parts import part_unit
from nsjax.types import Array, Fn, PyTree, record


@record(static=("moving",))
class DrivenParams:
    """Params of a system with inputs.

    Args:
        model: params of the system itself, with the inputs at their first values.
        signals: by name, a `SampledSignal`, or a `Segment` once a step has begun.
        ready: prepared params of the system (`System.prepare`); None: not prepared yet.
        now: params of the system for the present step; None: no step has begun.
        moving: for each leaf of ``ready`` whether it depends on inputs.
    """

    model: PyTree
    signals: dict[str, Any]
    ready: PyTree = None
    now: PyTree = None
    moving: tuple[bool, ...] = ()


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Numbers of a ``system`` that are inputs, the ``keys`` of their places, and how it reads them."""

    system: System
    keys: tuple[tuple[str, Key], ...]

    def model(self, params: PyTree, values: Mapping[str, Any]) -> PyTree:
        """Params of the model with these inputs."""
        base = {"params": params}
        for name, key in self.keys:
            base = put(base, key, values[name])
        return base["params"]

    def _with_values(self, params: PyTree, values: Mapping[str, Any]) -> PyTree:
        return prepared(self.system, self.model(params, values))

    def prepare(self, p: DrivenParams) -> DrivenParams:
        """Params with the prepared params of the model, and which of their leaves inputs change."""
        first = {name: first_value(x) for name, x in p.signals.items()}
        ready = self._with_values(p.model, first)
        moving = depends(lambda values: self._with_values(p.model, values), first)
        signals = {name: x.ready() for name, x in p.signals.items()}
        return dataclasses.replace(p, signals=signals, ready=ready, moving=moving)

    def refresh(self, t: Array, q: Array, p: DrivenParams) -> DrivenParams:
        """The inputs of a step that begins at ``t``."""
        signals = {name: x.segment(t) for name, x in p.signals.items()}
        now = self._at(dataclasses.replace(p, signals=signals), t)
        if self.system.refresh is not None:
            now = self.system.refresh(t, q, now)
        return dataclasses.replace(p, signals=signals, now=now)

    def _at(self, p: DrivenParams, t: Array) -> PyTree:
        """Prepared params with the inputs at a time; leaves that depend on no input keep their values."""
        fresh = self._with_values(p.model, {name: x.at(t) for name, x in p.signals.items()})
        leaves, structure = jax.tree.flatten(fresh)
        both = zip(leaves, jax.tree.leaves(p.ready), p.moving, strict=True)
        return jax.tree.unflatten(structure, [new if moves else old for new, old, moves in both])

    def read(self, p: DrivenParams, t: Array | None) -> PyTree:
        """Params of the model for a function of the system; ``t`` is None if it is no function of time."""
        if p.now is None:
            return p.ready
        if t is None or all(x.slope is None for x in p.signals.values()):
            return p.now
        now, at = p.now, self._at(p, t)
        if self.system.refresh is None:
            return at
        # values that the step holds fixed stay; inputs, and what follows from them, change with the time
        if isinstance(now, Prepared):
            at = at if isinstance(at, Prepared) else Prepared(params=at, constants=now.constants)
            return dataclasses.replace(at, held=now.held)
        held: bool = jax.tree.structure(at) == jax.tree.structure(now)  # type: ignore[operator]
        if held:
            both = zip(jax.tree.leaves(at), jax.tree.leaves(now), p.moving, strict=True)
            return jax.tree.unflatten(
                jax.tree.structure(at), [new if moves else old for new, old, moves in both]
            )
        return {**now, **_moved(at, p.moving)} if isinstance(now, dict) else at


def _moved(params: dict[str, PyTree], moving: tuple[bool, ...]) -> dict[str, PyTree]:
    """Entries of a mapping of which a leaf depends on inputs."""
    marks = jax.tree.unflatten(jax.tree.structure(params), moving)
    return {name: x for name, x in params.items() if any(jax.tree.leaves(marks[name]))}


def depends(function: Fn, values: PyTree) -> tuple[bool, ...]:
    """For each leaf of ``function(values)`` whether it depends on the values, by tracing its operations."""
    found: list[bool] = []

    @custom_vmap
    def look(*leaves: Array) -> tuple[Array, ...]:
        return leaves

    @look.def_vmap
    def _(size: int, batched: list[bool], *leaves: Array) -> tuple[tuple[Array, ...], tuple[bool, ...]]:
        found.extend(batched)
        return leaves, tuple(batched)

    def seen(values: PyTree) -> Array:
        leaves = jax.tree.leaves(function(values))
        look(*map(jnp.asarray, leaves))
        return jnp.zeros(())

    several = jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * 2), values)
    jax.eval_shape(jax.vmap(seen), several)
    return tuple(found)


TIMED = (
    "force", "potential", "gap", "slip", "rows", "constraint", "velocity_constraint", "dry_friction",
    "allowed", "observe", "shapes", "damping", "switch",
)  # fmt: skip
STILL = ("mass", "inertia", "law", "dry_friction_bound")
"""Functions of a system that take params last: those whose first argument is the time, and the others."""


@dataclasses.dataclass(frozen=True)
class DrivenFunction:
    """A function of the system that is called with the params of a system with inputs."""

    function: Fn
    inputs: Inputs
    timed: bool

    def __call__(self, *arguments: Any) -> Any:
        """Calls the function with the params of the model at the time."""
        *others, p = arguments
        return self.function(*others, self.inputs.read(p, others[0] if self.timed else None))


@dataclasses.dataclass(frozen=True)
class DrivenParts:
    """`System.parts` of a system with inputs."""

    parts: Any
    inputs: Inputs

    @property
    def own_laws(self) -> bool:
        """Whether loads of the system may have laws that jump."""
        return bool(getattr(self.parts, "own_laws", True))

    def part_names(self, kind: str) -> tuple[str, ...]:
        """Names of the parts of the system without inputs."""
        return self.parts.part_names(kind)

    def part_unit(self, name: str, field: str) -> str:
        """Unit of a quantity of a part."""
        return part_unit(self.parts, name, field)

    def part_row(self, kind: str, name: Any, *row: Any) -> dict[str, Array]:
        """A part of the system, its inputs read at the time. ``row`` is ``t, q, v, output, p``."""
        t, q, v, output, p = row
        return self.parts.part_row(kind, name, t, q, v, output, self.inputs.read(p, t))


def driven_system(inputs: Inputs) -> System:
    """The system that reads its inputs; its params are `DrivenParams`."""
    system = inputs.system
    wrapped: dict[str, Any] = {}
    for name in (*TIMED, *STILL):
        function = getattr(system, name)
        if function is not None:
            wrapped[name] = DrivenFunction(function, inputs, name in TIMED)
    parts = None if system.parts is None else DrivenParts(system.parts, inputs)
    return dataclasses.replace(
        system, **wrapped, prepare=inputs.prepare, refresh=inputs.refresh, parts=parts, name="", choices=()
    )


def with_inputs(problem: Problem, inputs: Mapping[str, Any]) -> Problem:
    """A problem some numbers of which are given over time.

    Args:
        problem: with constant numbers.
        inputs: a `signal` by the name of a number (``"motor.value"``, ``"params.friction"``,
            ``"push.value[1]"``), or by the name of an actuator, force or torque of a mechanism
            (``"motor"``), whose effort or control it then is; a number or array is constant.

    Returns:
        A problem for `nsjax.simulate`, sweeps and identification; its params are
        ``model``, the params of the given problem, and ``signals``, the tables by name.

    Raises:
        InputError: for an unknown name, a number given twice, values of another shape, and systems that
            cannot have inputs.

    Limits: systems whose structure promises to be constant, and contacts that change from step to step
    (`System.contact_set`), take none. The run refuses an input on which constants depend that its
    scheme computes once. Everything that inputs change is computed in every step.
    A held input that jumps acts late in schemes whose steps begin with the acceleration of the step before
    (generalized-alpha, HHT, Newmark, Bathe, nonsmooth generalized-alpha): where the acceleration jumps by
    ``da``, the velocity stays behind by ``dt da / 2`` (Bathe: ``dt da / 3``) from then on. Linear inputs
    have no jumps, and the other schemes no delay.

    Example:
        >>> import nsjax
        >>> from nsjax import models
        >>> torque = nsjax.signal([0.0, 1.0], [0.0, 0.2])
        >>> crank = nsjax.with_inputs(models.slider_crank(), {"torque": torque})
        >>> crank.params.signals["torque"].values.tolist()
        [0.0, 0.2]
    """
    given = mapping("with_inputs", "inputs", inputs, "{'motor': nsjax.signal(times, values)}")
    places = input_places(problem, tuple(given))
    signals = {}
    for (name, key), value in zip(places.keys, inputs.values(), strict=True):
        signals[name] = value if isinstance(value, SampledSignal | Segment) else constant(name, value)
        shape = np.shape(first_value(signals[name]))
        wanted = shape_of(problem, key)
        if shape != wanted:
            raise InputError(
                f"inputs: {name!r} has values of shape {shape}; the number has the shape {wanted}, give "
                "that"
            )
    model = places.model(problem.params, {name: first_value(x) for name, x in signals.items()})
    return dataclasses.replace(
        problem, system=driven_system(places), params=DrivenParams(model=model, signals=signals)
    )


def input_places(problem: Problem, wanted: tuple[str, ...], who: str = "inputs") -> Inputs:
    """`Inputs` with the places of the numbers ``wanted``; ``who`` is the caller that error sentences name.
    Raises `InputError`, see `with_inputs`.
    """
    check_is(who, "problem", problem, Problem)
    system = problem.system
    if isinstance(getattr(system.prepare, "__self__", None), Inputs):
        raise InputError(f"{who}: the problem has inputs already; give all of them at once")
    if system.structure.constant:
        raise InputError(
            f"{who}: the structure {type(system.structure).__name__} promises to be constant over a run; "
            "drop constant=True of it"
        )
    if system.changing_contacts:
        raise InputError(
            f"{who}: inputs do not work with a contact_group that has a capacity; leave the capacity out"
        )
    seen: list[Key] = []
    found = []
    for name in wanted:
        key = _key(problem, name, who)
        refuse_twice(key, seen, who, "give it once")
        found.append((name, key))
    return Inputs(system, tuple(found))


def _key(problem: Problem, name: str, who: str) -> Key:
    find: Any = getattr(problem.system.parts, "input_name", None)
    full = name if find is None else find(name, problem.params)
    key = parse_parameter(full, who)
    if key.path[0] != "params":
        raise InputError(f"{who}: {name!r} is no number of params; give one of those")
    node: Any = problem.params
    for step in key.path[1:]:
        if step not in names(node):
            raise InputError(
                f"{who}: unknown number {name!r}; {nearest(name, dotted(problem.params), 'problem.keys()')}"
            )
        node = child(node, step)
    below = dotted(node)
    if is_group(node) and not below:
        raise InputError(
            f"{who}: {name!r} has no number that varies over time; a prescribed motion is a function "
            "of time or a spline, hinge(..., motion=nsjax.signal(times, values, 'cubic')); a table can "
            "be the effort of an actuator, or another number"
        )
    if below:
        shown, loads = [f"{name}.{x}" for x in below], getattr(problem.system.parts, "part_names", None)
        driven = () if loads is None else tuple(x for x in loads("load") if find(x, problem.params) != x)
        more = f", or a motor or load: {', '.join(driven)}" if driven else ""
        raise InputError(
            f"{who}: {name!r} is no number; choose one of {listed(shown, 6, 'problem.keys()')}{more}"
        )
    if key.index is not None and not (np.ndim(node) == 1 and key.index < np.shape(node)[0]):
        raise InputError(f"{who}: {name!r}: the array has shape {np.shape(node)}; there is no such entry")
    return dataclasses.replace(key, text=name)


def value_of(problem: Problem, key: Key) -> Any:
    """The number that an input replaces; zero if it is None."""
    node: Any = {"params": problem.params}
    for step in key.path:
        node = child(node, step)
    if node is None:
        return np.zeros(())
    return node if key.index is None else node[key.index]


def shape_of(problem: Problem, key: Key) -> tuple[int, ...]:
    """Shape of an input."""
    return np.shape(value_of(problem, key))


def check_constants(params: PyTree, constants: Fn) -> None:
    """Refuses inputs on which constants of a run depend.

    Args:
        params: of a run; all but `DrivenParams` pass.
        constants: ``params -> constants`` of the scheme.
    """
    for name, signal in params.signals.items() if isinstance(params, DrivenParams) else ():

        def made(value: Any, name: str = name) -> Any:
            changed = params.signals | {name: Segment(start=0.0, value=value)}
            return constants(dataclasses.replace(params, signals=changed))

        if any(depends(made, first_value(signal))):
            raise InputError(
                f"inputs: {name!r} enters what the scheme computes once for a run (the mass, for "
                "instance); keep it constant, or take another scheme"
            )
