"""First-order actuators: a number of the force that follows its command with a time constant.

``T da/dt = u - a``: the activation ``a`` is a velocity without a position (`System.retract` does not look
at it), with the inertia ``T`` and the force ``u - a``. So it is an unknown like all others in every scheme,
of its order, and implicit where the scheme is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core.checks import is_traced
from nsjax.core.errors import InputError
from nsjax.core.inertia import mass_matrix
from nsjax.core.inputs import Inputs, depends, input_places, shape_of, value_of
from nsjax.core.keys import names
from nsjax.core.system import Problem, State, System
from nsjax.linalg import Dense
from nsjax.types import Array, Fn, PyTree, record


@record()
class FilteredParams:
    """Params of a system with first-order actuators.

    Args:
        model: of the system itself.
        time_constants: by name [s].
        commands: what the activations go to, by name.
    """

    model: PyTree
    time_constants: dict[str, Any]
    commands: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Filters:
    """A system and the numbers of it that follow commands; methods are functions of the whole system."""

    inputs: Inputs

    @property
    def system(self) -> System:
        """Without filters."""
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
        model = self.model(p, a)
        return model if self.system.prepare is None else self.system.prepare(model)

    def mass(self, q: Array, p: FilteredParams) -> Array:
        """Mass matrix beside the time constants."""
        own, k = mass_matrix(self.system, q, self.ready(p)), len(self.names)
        T = jnp.stack([jnp.asarray(p.time_constants[name], float) for name in self.names])
        corner = jnp.zeros((own.shape[0], k))
        lower = jnp.concatenate([corner.T, T[:, None] * jnp.eye(k)], axis=1)
        return jnp.concatenate([jnp.concatenate([own, corner], axis=1), lower])

    def force(self, t: Array, q: Array, v: Array, p: FilteredParams) -> Array:
        """The force of the system at the activations, then ``u - a``."""
        w, a = self.split(v)
        u = jnp.stack([jnp.asarray(p.commands[name], float) for name in self.names])
        return jnp.concatenate([self.system.force(t, q, w, self.ready(p, a)), u - a])

    def slip(self, t: Array, q: Array, v: Array, p: FilteredParams) -> Array:
        """The slip of the system."""
        found: Array = self.system.slip(t, q, self.split(v)[0], self.ready(p))
        return found

    def velocity_constraint(self, t: Array, q: Array, v: Array, p: FilteredParams) -> Array:
        """The rates of the system that vanish."""
        found: Array = self.system.velocity_constraint(  # type: ignore[misc]
            t, q, self.split(v)[0], self.ready(p)
        )
        return found

    def drag(self, t: Array, q: Array, v: Array, p: FilteredParams) -> Array:
        """The drag of the system."""
        found: Array = self.system.drag(t, q, self.split(v)[0], self.ready(p))
        return found

    def rows(self, t: Array, q: Array, p: FilteredParams) -> tuple[Array, Array]:
        """The rows of the system; activations move no contact."""
        wt, offset = self.system.rows(t, q, self.ready(p))  # type: ignore[misc]
        return jnp.concatenate([wt, jnp.zeros((*wt.shape[:2], len(self.names)))], axis=2), offset

    def observe(self, t: Array, q: Array, v: Array, output: Any, p: FilteredParams) -> dict[str, Array]:
        """What the system observes."""
        w, a = self.split(v)
        found: dict[str, Array] = self.system.observe(  # type: ignore[misc]
            t, q, w, output, self.ready(p, a)
        )
        return found

    def retract(self, q: Array, xi: Array) -> Array:
        """The position of the system moved by ``xi``; activations have no position."""
        return self.system.retract(q, self.split(xi)[0])

    def difference(self, q0: Array, q1: Array) -> Array:
        """The difference of two positions of the system, zero for activations."""
        return jnp.concatenate([self.system.difference(q0, q1), jnp.zeros(len(self.names))])

    def part_names(self, kind: str) -> tuple[str, ...]:
        """Those of the system."""
        found: tuple[str, ...] = () if self.system.parts is None else self.system.parts.part_names(kind)
        return found

    def part_row(self, kind: str, name: Any, *row: Any) -> dict[str, Array]:
        """Those of the system at the activations. ``row`` is ``t, q, v, output, p``."""
        t, q, v, output, p = row
        w, a = self.split(v)
        found: dict[str, Array] = self.system.parts.part_row(kind, name, t, q, w, output, self.ready(p, a))
        return found

    def input_name(self, name: str, params: Any) -> str:
        """A number that follows is driven by its command."""
        if name in self.names:
            return f"commands.{name}"
        find = getattr(self.system.parts, "input_name", None)
        full = name if find is None else find(name, params.model)
        own = names(params)
        return full if full.split(".")[0] in own else f"model.{full}"


@dataclasses.dataclass(frozen=True)
class Inner:
    """A function of the system that sees neither activations nor velocities."""

    function: Fn
    filters: Filters

    def __call__(self, *arguments: Any) -> Any:
        """With the params of the system."""
        return self.function(*arguments[:-1], self.filters.ready(arguments[-1]))


STILL = ("potential", "gap", "constraint", "allowed", "shapes", "law", "drag_bound")
MOVING = ("slip", "velocity_constraint", "drag", "rows", "observe")


def filtered(
    problem: Problem, time_constants: Mapping[str, Any], start: Mapping[str, Any] | None = None
) -> Problem:
    """A problem whose motors answer with a delay: ``T da/dt = u - a``.

    Args:
        problem: with motors that answer at once.
        time_constants: ``T`` [s] by the name of an actuator, force or torque (``"motor"``), or of a number
            of the force (``"drive.own.control"``).
        start: activations at the start by the same names; None: the problem's own numbers, which are also
            the commands.

    Returns:
        A problem whose velocities end with the activations, ``traj.v[:, -1]`` of one, and
        ``traj["motor.activation"]``. Its params are ``model``, those of the given one,
        ``time_constants`` and ``commands``. As an input of `nsjax.driven` and `nsjax.stepper` the name
        ``"motor"`` is the command.

    Raises:
        InputError: for an unknown name, a time constant that is not positive, a number that is no single
            one or enters more than the force.

    Limits: the mass matrix is dense. An explicit scheme needs steps below 2 T.

    Example:
        >>> import nsjax
        >>> from nsjax import models
        >>> slow = nsjax.filtered(models.slider_crank(), {"torque": 0.02})
        >>> slow.system.nq, slow.system.nv
        (3, 4)
    """
    places = input_places(problem, tuple(time_constants), "filtered")
    # names of commands and activations are words
    keys = tuple((name.replace(".", "_"), key) for name, key in places.keys)
    places = dataclasses.replace(places, keys=keys)
    system, k = problem.system, len(keys)
    if problem.system.refresh is not None or system.islands:
        raise InputError(
            "filtered: the system holds features fixed over a step, or falls into islands, which "
            "first-order actuators do not take yet; filter the command with nsjax.table or in the policy "
            "instead"
        )
    for (name, key), T in zip(places.keys, time_constants.values(), strict=True):
        if shape_of(problem, key):
            raise InputError(f"filtered: {name!r} has the shape {shape_of(problem, key)}; name an entry")
        if not is_traced(T) and not float(T) > 0.0:
            raise InputError(f"filtered: time constant {T} s of {name!r}; it must be positive")
        _check_force_alone(problem, places, name)
    filters = Filters(places)
    changes: dict[str, Any] = {}
    for name in (*STILL, *MOVING):
        function = getattr(system, name)
        if function is not None:
            changes[name] = getattr(filters, name) if name in MOVING else Inner(function, filters)
    labels = system.labels
    if labels.v:
        labels = dataclasses.replace(
            labels, v=(*labels.v, *(f"{name}.activation" for name in filters.names))
        )
    made = dataclasses.replace(
        system, **changes, nv=system.nv + k, mass=filters.mass, inertia=None, force=filters.force,
        retract=filters.retract, difference=filters.difference, prepare=None, structure=Dense(),
        labels=labels, parts=filters, name="", choices=(),
    )  # fmt: skip
    own = {name: value_of(problem, key) for name, key in places.keys}
    model = places.model(problem.params, {name: jnp.asarray(x, float) for name, x in own.items()})
    constants = dict(zip(filters.names, time_constants.values(), strict=True))
    params = FilteredParams(model=model, time_constants=constants, commands=own)
    begun = {name.replace(".", "_"): x for name, x in (start or {}).items()}
    strange = next((name for name in begun if name not in own), None)
    if strange is not None:
        raise InputError(f"filtered: start of {strange!r}, which has no time constant; give it one")
    first = jnp.stack([jnp.asarray(begun.get(name, own[name]), float) for name in filters.names])
    v = jnp.concatenate([jnp.asarray(problem.state.v), first])
    kept: Any = v if is_traced(v) else np.asarray(v)
    state = State(t=problem.state.t, q=problem.state.q, v=kept)
    return Problem(system=made, params=params, state=state)


def _check_force_alone(problem: Problem, places: Inputs, name: str) -> None:
    """Refuses numbers that enter more than the force."""
    system, state = problem.system, problem.state
    t, q, v = (jnp.asarray(x, float) for x in (state.t, state.q, state.v))
    own = {n: jnp.asarray(value_of(problem, key), float) for n, key in places.keys}

    def others(x: Array) -> PyTree:
        model = places.model(problem.params, own | {name: x})
        p = model if system.prepare is None else system.prepare(model)
        found = {"mass": mass_matrix(system, q, p)}
        for function, arguments in (
            ("gap", (t, q)), ("constraint", (t, q)), ("slip", (t, q, v)), ("drag", (t, q, v)), ("law", ()),
            ("drag_bound", ()),
        ):  # fmt: skip
            if getattr(system, function) is not None:
                found[function] = getattr(system, function)(*arguments, p)
        return found

    if any(depends(others, own[name])):
        raise InputError(
            f"filtered: {name!r} enters more than the force (mass, contacts or constraints); give it over "
            "time with nsjax.driven"
        )
