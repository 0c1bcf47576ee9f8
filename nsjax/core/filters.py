"""First-order actuators: a number in the force follows its command with a time constant, or integrates the
command.

``T da/dt = u - a``, or ``da/dt = u``: the activation ``a`` is a velocity without a position
(`System.retract` ignores it), with the inertia ``T`` and the force ``u - a`` (1 and ``u``). So every scheme
treats it like all other velocities: with the order of the scheme, and implicitly if the scheme is implicit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core.arguments import mapping, numbers
from nsjax.core.errors import InputError
from nsjax.core.inputs import Inputs, depends, input_places, shape_of, value_of
from nsjax.core.keys import names
from nsjax.core.operators import prepared, refreshed
from nsjax.core.slots import ContactSet, ContactSlots
from nsjax.core.step import mass_matrix
from nsjax.core.system import Problem, State, System
from nsjax.core.system_parts import part_unit
from nsjax.linalg import Dense
from nsjax.types import Array, Fn, PyTree, is_traced, record


@record()
class FilteredParams:
    """Params of a system with first-order actuators.

    Args:
        model: params of the system itself.
        time_constants: by name [s]; None: the activation is the integral of its command.
        commands: values that the activations follow, by name.
        ranges: least and largest command (2,) by name, for commands with bounds.
    """

    model: PyTree
    time_constants: dict[str, Any]
    commands: dict[str, Any]
    ranges: dict[str, Any] = dataclasses.field(default_factory=dict)

    def command(self, name: str) -> Array:
        """A command limited to its range; at an end of the range its derivative is one, as inside."""
        u, bounds = jnp.asarray(self.commands[name], float), self.ranges.get(name)
        if bounds is None:
            return u
        return jnp.where(u < bounds[0], bounds[0], jnp.where(u > bounds[1], bounds[1], u))


@dataclasses.dataclass(frozen=True)
class Filters:
    """A system and its numbers that follow commands; the methods are the functions of the new system."""

    inputs: Inputs

    @property
    def system(self) -> System:
        """The system without filters."""
        return self.inputs.system

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the filtered numbers."""
        return tuple(name for name, _ in self.inputs.keys)

    def split(self, v: Array) -> tuple[Array, Array]:
        """Velocities of the system, activations."""
        return v[: self.system.nv], v[self.system.nv :]

    def model(self, p: FilteredParams, a: Array | None) -> PyTree:
        """Params of the system with these activations."""
        if a is None:
            return p.model
        return self.inputs.model(p.model, {name: a[k] for k, name in enumerate(self.names)})

    def ready(self, p: FilteredParams, a: Array | None = None) -> PyTree:
        """Prepared params with these activations."""
        return prepared(self.system, self.model(p, a))

    def mass(self, q: Array, p: FilteredParams) -> Array:
        """Mass matrix of the system, and the time constants on the diagonal below it."""
        own, k = mass_matrix(self.system, q, self.ready(p)), len(self.names)
        constants = [p.time_constants[name] for name in self.names]
        T = jnp.stack([jnp.asarray(1.0 if _without_constant(x) else x, float) for x in constants])
        corner = jnp.zeros((own.shape[0], k))
        lower = jnp.concatenate([corner.T, T[:, None] * jnp.eye(k)], axis=1)
        return jnp.concatenate([jnp.concatenate([own, corner], axis=1), lower])

    def force(self, t: Array, q: Array, v: Array, p: FilteredParams) -> Array:
        """The force of the system at the activations, then ``u - a``, or ``u``."""
        w, a = self.split(v)
        rates = [_rate(p.time_constants[x], p.command(x), a[k]) for k, x in enumerate(self.names)]
        return jnp.concatenate([self.system.force(t, q, w, self.ready(p, a)), jnp.stack(rates)])

    def refresh(self, t: Array, q: Array, p: FilteredParams) -> FilteredParams:
        """Params with what the system holds fixed over a step."""
        return dataclasses.replace(p, model=refreshed(self.system, t, q, self.ready(p)))

    def slip(self, t: Array, q: Array, v: Array, p: FilteredParams) -> Array:
        """Tangential velocities of the system."""
        return self.system.slip(t, q, self.split(v)[0], self.ready(p))

    def velocity_constraint(self, t: Array, q: Array, v: Array, p: FilteredParams) -> Array:
        """Rates of the constraints on velocities of the system."""
        return self.system.velocity_constraint(  # type: ignore[misc]
            t, q, self.split(v)[0], self.ready(p)
        )

    def dry_friction(self, t: Array, q: Array, v: Array, p: FilteredParams) -> Array:
        """Rates of the bounded rows of the system."""
        return self.system.dry_friction(t, q, self.split(v)[0], self.ready(p))

    def switch(self, t: Array, q: Array, v: Array, p: FilteredParams) -> Array:
        """The surfaces of the system's forces."""
        w, a = self.split(v)
        found: Array = self.system.switch(t, q, w, self.ready(p, a))  # type: ignore[misc]
        return found

    def damping(self, t: Array, q: Array, v: Array, p: FilteredParams) -> Array:
        """The damping of the system; activations have none."""
        w, a = self.split(v)
        own = self.system.damping(t, q, w, self.ready(p, a))  # type: ignore[misc]
        return jnp.pad(own, [(0, len(self.names))] * own.ndim)

    def rows(self, t: Array, q: Array, p: FilteredParams) -> tuple[Array, Array]:
        """The rows of the system; activations move no contact."""
        wt, offset = self.system.rows(t, q, self.ready(p))  # type: ignore[misc]
        return jnp.concatenate([wt, jnp.zeros((*wt.shape[:2], len(self.names)))], axis=2), offset

    def observe(self, t: Array, q: Array, v: Array, output: Any, p: FilteredParams) -> dict[str, Array]:
        """The observables of the system."""
        w, a = self.split(v)
        return self.system.observe(  # type: ignore[misc]
            t, q, w, output, self.ready(p, a)
        )

    def retract(self, q: Array, xi: Array) -> Array:
        """The position of the system moved by ``xi``; activations have no position."""
        return self.system.retract(q, self.split(xi)[0])

    def difference(self, q0: Array, q1: Array) -> Array:
        """The difference of two positions of the system, zero for activations."""
        return jnp.concatenate([self.system.difference(q0, q1), jnp.zeros(len(self.names))])

    @property
    def own_laws(self) -> bool:
        """Whether loads of the system may have laws that jump."""
        return bool(getattr(self.system.parts, "own_laws", True))

    def part_names(self, kind: str) -> tuple[str, ...]:
        """Names of the parts of the system without filters."""
        return () if self.system.parts is None else self.system.parts.part_names(kind)

    def part_unit(self, name: str, field: str) -> str:
        """Unit of a quantity of a part."""
        return part_unit(self.system.parts, name, field)

    def part_row(self, kind: str, name: Any, *row: Any) -> dict[str, Array]:
        """A part of the system without filters, at the activations. ``row`` is ``t, q, v, output, p``."""
        t, q, v, output, p = row
        w, a = self.split(v)
        return self.system.parts.part_row(kind, name, t, q, w, output, self.ready(p, a))

    def input_name(self, name: str, params: Any) -> str:
        """Name of the entry of params that an input drives: for a number with a filter, its command."""
        if name in self.names:
            return f"commands.{name}"
        find = getattr(self.system.parts, "input_name", None)
        full = name if find is None else find(name, params.model)
        own = names(params)
        return full if full.split(".")[0] in own else f"model.{full}"


def _without_constant(T: Any) -> bool:
    """Whether an activation has no time constant: it integrates its command, or a record gives its rate."""
    return T is None or hasattr(T, "rate")


def _rate(T: Any, u: Array, a: Array) -> Array:
    """Rate of an activation, times its inertia."""
    if _without_constant(T):
        return u if T is None else jnp.asarray(T.rate(u, a))
    return u - a


@dataclasses.dataclass(frozen=True)
class UnfilteredFunction:
    """A function of the system that sees neither activations nor velocities."""

    function: Fn
    filters: Filters

    def __call__(self, *arguments: Any) -> Any:
        """Calls the function with the params of the system without filters."""
        return self.function(*arguments[:-1], self.filters.ready(arguments[-1]))


@dataclasses.dataclass(frozen=True)
class FilteredContacts(ContactSet):
    """The contacts of a step of a system with filters."""

    without: ContactSet
    filters: Filters

    def of_step(self, system: System) -> System:
        """The system of the contacts of a step, with the same filters."""
        own = self.without.of_step(system)
        inputs = dataclasses.replace(self.filters.inputs, system=own)
        return with_filters(own, dataclasses.replace(self.filters, inputs=inputs))

    def slots(self, p: FilteredParams, stored: Array | None) -> ContactSlots:
        """Places of the contacts of a step."""
        return self.without.slots(p.model, stored)

    def overflow(self, p: FilteredParams) -> Array:
        """Whether more contacts were near than there are places."""
        return self.without.overflow(p.model)

    def near_counts(self, q: Array, p: FilteredParams) -> dict[str, Array]:
        """Largest number () of near pairs of two kinds of shapes, by the name of the group."""
        return self.without.near_counts(q, p.model)


STILL = ("potential", "gap", "constraint", "allowed", "shapes", "law", "dry_friction_bound")
MOVING = ("slip", "velocity_constraint", "dry_friction", "rows", "observe", "damping", "switch")


def with_filters(system: System, filters: Filters) -> System:
    """The system with activations behind its velocities."""
    changes: dict[str, Any] = {}
    for name in (*STILL, *MOVING):
        function = getattr(system, name)
        if function is not None:
            changes[name] = (
                getattr(filters, name) if name in MOVING else UnfilteredFunction(function, filters)
            )
    if system.refresh is not None:
        changes["refresh"] = filters.refresh
    if system.contact_set is not None:
        changes["contact_set"] = FilteredContacts(system.contact_set, filters)
    labels = system.labels
    if labels.v:
        labels = dataclasses.replace(
            labels, v=(*labels.v, *(f"{name}.activation" for name in filters.names))
        )
    return dataclasses.replace(
        system, **changes, nv=system.nv + len(filters.names), mass=filters.mass, inertia=None,
        force=filters.force, retract=filters.retract, difference=filters.difference, prepare=None,
        structure=Dense(), labels=labels, parts=filters, name="", choices=(),
    )  # fmt: skip


def with_actuator_dynamics(
    problem: Problem, time_constants: Mapping[str, Any], start: Mapping[str, Any] | None = None, *,
    ranges: Mapping[str, Any] | None = None,
) -> Problem:  # fmt: skip
    """A problem whose motors answer with a delay: ``T da/dt = u - a``.

    Args:
        problem: with motors that follow their commands at once.
        time_constants: ``T`` [s] by the name of an actuator, force or torque (``"motor"``), or of a number
            of the force (``"drive.own.control"``); None: the number is the integral of its command,
            ``da/dt = u``. A record with numbers and the function ``rate(u, a)`` gives ``da/dt`` itself.
        start: activations at the start by the same names; None: the problem's own numbers, which are also
            the commands (zero where a command is integrated).
        ranges: least and largest command by the same names; None: no bounds.

    Returns:
        A problem whose velocities end with the activations, ``traj.v[:, -1]`` of one, and
        ``traj["motor.activation"]``. Its params are ``model``, those of the given one,
        ``time_constants``, ``commands`` and ``ranges``. As an input of `nsjax.with_inputs` and
        `nsjax.stepper` the name ``"motor"`` is the command.

    Raises:
        InputError: for an unknown name, a time constant that is not positive, an array in place of a
            number, a number that enters more than the force, a range that is no pair.

    Limits: the mass matrix is dense. An explicit scheme needs steps below 2 T. Contacts of free bodies in
    absolute coordinates beyond 2,000 pairs, and bodies that nothing joins there, take no filters.

    Example:
        >>> import nsjax
        >>> from nsjax import models
        >>> slow = nsjax.with_actuator_dynamics(models.slider_crank(), {"torque": 0.02})
        >>> slow.system.nq, slow.system.nv
        (3, 4)
    """
    named = ("time_constants", time_constants), ("start", start or {}), ("ranges", ranges or {})
    for what, given in named:
        mapping(
            "with_actuator_dynamics", what, given,
            "{'motor': 0.05}" if what != "ranges" else "{'motor': (-1.0, 1.0)}",
        )  # fmt: skip
    places = input_places(problem, tuple(time_constants), "with_actuator_dynamics")
    # names of commands and activations have no dots, since dots separate the names of a path
    keys = tuple((name.replace(".", "_"), key) for name, key in places.keys)
    places = dataclasses.replace(places, keys=keys)
    system = problem.system
    if system.islands:
        raise InputError(
            "with_actuator_dynamics: first-order actuators do not work with islands of bodies; assemble "
            'with coordinates="joint", or filter the command with nsjax.signal or in the policy instead'
        )
    bounds = _ranges(ranges or {}, tuple(time_constants))
    for (name, key), T in zip(places.keys, time_constants.values(), strict=True):
        if shape_of(problem, key):
            raise InputError(
                f"with_actuator_dynamics: {name!r} has the shape {shape_of(problem, key)}; name an entry"
            )
        if (
            not _without_constant(T)
            and not is_traced(T)
            and not np.all(numbers("with_actuator_dynamics", f"time constant of {name!r}", T) > 0.0)
        ):
            raise InputError(
                f"with_actuator_dynamics: time constant {T} s of {name!r}; it must be positive"
            )
    _check_force_alone(problem, places)
    filters = Filters(places)
    made = with_filters(system, filters)
    own = {name: value_of(problem, key) for name, key in places.keys}
    model = places.model(problem.params, {name: jnp.asarray(x, float) for name, x in own.items()})
    constants = dict(zip(filters.names, time_constants.values(), strict=True))
    params = FilteredParams(model=model, time_constants=constants, commands=own, ranges=bounds)
    rest = {name: 0.0 if constants[name] is None else own[name] for name in filters.names}
    begun = {name.replace(".", "_"): x for name, x in (start or {}).items()}
    strange = next((name for name in begun if name not in own), None)
    if strange is not None:
        raise InputError(
            f"with_actuator_dynamics: start has {strange!r}, which has no time constant; give it one"
        )
    first = jnp.stack([jnp.asarray(begun.get(name, rest[name]), float) for name in filters.names])
    v = jnp.concatenate([jnp.asarray(problem.state.v), first])
    kept: Any = v if is_traced(v) else np.asarray(v)
    state = State(t=problem.state.t, q=problem.state.q, v=kept)
    return Problem(system=made, params=params, state=state)


def _ranges(ranges: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Bounds of commands by the names of numbers, checked."""
    found = {}
    for name, bounds in ranges.items():
        if name not in names:
            raise InputError(
                f"with_actuator_dynamics: ranges has {name!r}, which has no time constant; give it one"
            )
        if bounds is None:
            continue
        if not is_traced(bounds) and not (np.shape(bounds) == (2,) and bounds[0] <= bounds[1]):
            raise InputError(
                f"with_actuator_dynamics: range {bounds} of {name!r}; give a pair of the least and the "
                "largest command"
            )
        kept: Any = jnp.asarray(bounds, float) if is_traced(bounds) else np.array(bounds, float)
        found[name.replace(".", "_")] = kept
    return found


def _check_force_alone(problem: Problem, places: Inputs) -> None:
    """Refuses numbers that enter more than the force."""
    system, state = problem.system, problem.state
    t, q, v = (jnp.asarray(x, float) for x in (state.t, state.q, state.v))
    own = {n: jnp.asarray(value_of(problem, key), float) for n, key in places.keys}

    def others(values: dict[str, Array]) -> PyTree:
        p = prepared(system, places.model(problem.params, own | values))
        p = refreshed(system, t, q, p)
        found = {"mass": mass_matrix(system, q, p)}
        for function, arguments in (
            ("gap", (t, q)), ("constraint", (t, q)), ("slip", (t, q, v)), ("dry_friction", (t, q, v)),
            ("law", ()), ("dry_friction_bound", ()),
        ):  # fmt: skip
            if getattr(system, function) is not None:
                found[function] = getattr(system, function)(*arguments, p)
        return found

    if not own or not any(depends(others, own)):  # one look at all of them, for a file with many
        return
    for name in own:
        if not any(depends(others, {name: own[name]})):
            continue
        raise InputError(
            f"with_actuator_dynamics: {name!r} enters more than the force (mass, contacts or constraints); "
            "give it over time with nsjax.with_inputs"
        )
