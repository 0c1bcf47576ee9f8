"""Inverse dynamics: efforts for wanted accelerations, of coordinates or of quantities by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.analysis.linear import OperatingPoint, closed_contacts
from nsjax.core import InputError, Problem, State
from nsjax.core.arguments import check_is, name_list
from nsjax.core.checks import canonical, check_precision, check_shapes
from nsjax.core.inputs import Inputs, input_places, shape_of, value_of
from nsjax.core.step import mass_matrix
from nsjax.core.system import bordered
from nsjax.jaxtools.owned import compiled_for
from nsjax.linalg import solve
from nsjax.linalg.elimination import independent
from nsjax.multibody.topology import is_measured
from nsjax.sensors import quantity
from nsjax.statics import check_positioned
from nsjax.types import Array, PyTree

WHO = "inverse_dynamics"


@dataclasses.dataclass(frozen=True)
class Drives(OperatingPoint):
    """A mechanism with its inputs: numbers, then efforts on the coordinates of ``driven_joints``."""

    driven_joints: tuple[str, ...] = ()

    def accelerations(self, t: Array, q: Array, v: Array, params: PyTree, u: Array) -> Array:
        """Second derivatives of the outputs, or (nv,) rates of all velocities, with inputs ``u``."""
        p = self.params(params, t, q, u)
        more: Any = 0.0
        if self.driven_joints:

            def rates(v: Array) -> Array:
                scene = self.system.parts.scene(t, q, v, p)
                return jnp.stack([jnp.asarray(scene.coordinates(x)[1], float) for x in self.driven_joints])

            more = jax.vjp(rates, v)[1](u[u.shape[0] - len(self.driven_joints) :])[0]
        a, f = self.balance(t, q, v, p, more)
        if not self.outputs:
            return a

        def rate(t: Array, q: Array, v: Array) -> Array:
            return _slope(
                lambda e: self.measured(t + e, self.system.retract(q, e * v), v, p, jnp.zeros_like(f))
            )

        return _slope(lambda e: rate(t + e, self.system.retract(q, e * v), v + e * a))

    @compiled_for("self")
    def slopes(self, params: PyTree, state: State, u: Array) -> tuple[Array, Array]:
        """Derivatives of the wanted accelerations by the inputs, and of the outputs by velocities."""
        t, q, v = jnp.asarray(state.t), jnp.asarray(state.q), jnp.asarray(state.v)
        by_inputs = jax.jacfwd(lambda u: self.accelerations(t, q, v, params, u))(u)
        p = self.params(params, t, q, u)
        f = jnp.zeros(0 if self.kept is None else len(self.kept))
        # at rest, an energy does not change with velocities
        return by_inputs, jax.jacfwd(lambda v: self.measured(t, q, v, p, f))(v + 1.0)

    @compiled_for("self")
    def efforts(self, params: PyTree, t: Array, q: Array, v: Array, a: Array, u: Array) -> Array:
        """Inputs that give the wanted accelerations, of least squares where several do."""

        def reached(u: Array) -> tuple[Array, Array]:
            found = self.accelerations(t, q, v, params, u)
            return found, found

        S, now = jax.jacfwd(reached, has_aux=True)(u)
        lacking = a - now + S @ u
        if S.shape[0] == S.shape[1]:
            return solve(S, lacking[:, None])[:, 0]
        return S.T @ solve(S @ S.T, lacking[:, None])[:, 0]

    @compiled_for("self")
    def forces(self, params: PyTree, t: Array, q: Array, v: Array, a: Array) -> Array:
        """Generalised forces (nv,)."""
        p = self.params(params, t, q, jnp.zeros(0))
        return mass_matrix(self.system, q, p) @ a - self.pushed(t, q, v, p)


def _slope(along: Any) -> Array:
    """Derivative of a function of one number at zero."""
    return jax.jvp(along, (jnp.zeros(()),), (jnp.ones(()),))[1]


@dataclasses.dataclass(frozen=True)
class InverseDynamics:
    """The function that `inverse_dynamics` returns.

    Args:
        drives: inputs and outputs of the system.
        params: of the problem.
        values: (m,) inputs of the problem, in the order of ``drives``.
        order: (m,) places in it of the inputs as they are named; None: generalised forces.
        size: number of the wanted accelerations.
    """

    drives: Drives
    params: PyTree
    values: np.ndarray
    order: np.ndarray | None
    size: int

    def __call__(self, t: Any, q: Any, v: Any, a: Any, params: PyTree = None) -> Array:
        """Efforts (m,) at a state, for accelerations ``a`` of the outputs; with other numbers ``params``.

        Raises:
            InputError: for accelerations of another shape.
        """
        given = self.params if params is None else canonical(params, "params")
        t, q, v, a = (jnp.asarray(x, float) for x in (t, q, v, a))
        if a.shape != (self.size,):
            raise InputError(f"{WHO}: a has shape {a.shape}; give ({self.size},), the wanted accelerations")
        if self.order is None:
            return self.drives.forces(given, t, q, v, a)
        return self.drives.efforts(given, t, q, v, a, jnp.asarray(self.values))[self.order]


def inverse_dynamics(
    problem: Problem, inputs: Sequence[str] | None = None, outputs: Sequence[Any] = (), *,
    contacts: Sequence[str] = (),
) -> InverseDynamics:  # fmt: skip
    """Inverse dynamics: the efforts for wanted accelerations, as a function of the state.

    With the forces ``h`` of gravity, springs, dampers, tendons and other loads, inputs ``u``, rows ``G`` of
    joints that close loops, prescribed motions and held contacts, and outputs ``y(t, q)``::

        M a = h(t, q, v, u) + G' x,   G a = -gamma,   y'' = (dy/dq a + ...) = wanted

    is solved for ``u``, which enters the forces linearly. Without outputs the wanted accelerations are all
    of ``v'`` (nv,). Where several ``u`` do, it is the one of least squares.

    Args:
        problem: system and parameters.
        inputs: names of motors, forces or numbers in which the forces are linear, as for
            `nsjax.with_inputs`, and names of joints and tendons, whose inputs are efforts on their
            coordinates in addition to all loads [N m], [N]. None: generalised forces (nv,) on all
            velocities, ``M v' - h``, for systems without constraints.
        outputs: names of quantities that follow from the position, as for `Trajectory.sensor`:
            ``"elbow.position"``, ``"hand.position"``. As many as there are inputs, or fewer.
        contacts: names of contacts that are held closed, as for `nsjax.analysis.linearise`; other contacts
            and limits exert nothing.

    Returns:
        A function ``(t, q, v, a, params=None) -> u`` (m,), pure, with derivatives, for controllers inside
        `jax.lax.scan` too: inputs in their order, those that are vectors entry by entry.

    Raises:
        InputError: for unknown names, outputs that depend on velocities, and outputs that the inputs do not
            accelerate independently in the state of the problem: of a mechanism with fewer motors than
            degrees of freedom, or of a loop, name as many outputs as there are inputs.

    Limits: dense matrices. Dry friction is that of its bound against the rates, none at rest; friction laws
    of joints and parts with ``active`` or ``locked`` are refused. Where the state is singular (a stretched
    arm with its hand as output), efforts are infinite.

    Example:
        >>> import nsjax
        >>> from nsjax.multibody import actuator, assemble, body, hinge
        >>> arm = assemble(
        ...     body("arm", mass=2.0, inertia=0.1, com=0.5), hinge("pin", "ground", "arm"),
        ...     actuator("motor", "pin", 0.0), gravity=10.0,
        ... )
        >>> torque = nsjax.analysis.inverse_dynamics(arm, ["motor"])
        >>> round(float(torque(0.0, [0.0], [0.0], [3.0])[0]), 9)  # (0.1 + 2 * 0.25) * 3 + 2 * 10 * 0.5
        11.8
    """
    check_precision()
    check_is(WHO, "problem", problem, Problem)
    named = () if inputs is None else name_list(WHO, "inputs", inputs)
    outputs = tuple(name_list(WHO, "outputs", outputs))
    check_positioned(problem.system, WHO)
    system = bordered(problem.system)
    topology = getattr(system.parts, "topology", None)
    measured = [] if topology is None else [x.name for x in topology.parts if is_measured(x)]
    joints = tuple(x for x in named if x in measured)
    numbers = tuple(x for x in named if x not in measured)
    places = input_places(problem, numbers, WHO) if numbers else Inputs(problem.system, ())
    params, state = canonical(problem.params, "params"), canonical(problem.state, "state")
    check_shapes(system, params, state)
    for name in outputs:
        quantity(problem.system, name)
    given = dataclasses.replace(problem, system=system, params=params, state=state)
    held = closed_contacts(given, contacts, WHO)
    shapes = tuple(shape_of(problem, key) for _, key in places.keys)
    u = [np.ravel(np.asarray(value_of(problem, key), float)) for _, key in places.keys]
    values = np.concatenate([*u, np.zeros(len(joints))])
    drives = Drives(system, places, shapes, outputs, held.rows, (), driven_joints=joints)
    G = np.asarray(drives.directions(params, state, values))
    drives = dataclasses.replace(drives, kept=independent(G))
    if inputs is None:
        if outputs or G.shape[0]:
            what = "outputs" if outputs else "constraints or held contacts"
            raise InputError(f"{WHO}: {what} need inputs; name motors or joints, as many as outputs")
        return InverseDynamics(drives, params, values, None, system.nv)
    ends = np.cumsum([0, *(int(np.prod(x)) for x in shapes), *(1 for _ in joints)])
    of = {name: np.arange(*ends[k : k + 2]) for k, name in enumerate((*numbers, *joints))}
    order = np.concatenate([*(of[x] for x in named), np.zeros(0, int)])
    return InverseDynamics(drives, params, values, order, _checked_size(drives, params, state, values))


def _checked_size(drives: Drives, params: PyTree, state: State, u: np.ndarray) -> int:
    """Number of the wanted accelerations; refuses outputs that read velocities or depend on others."""
    slopes, moving = map(np.asarray, drives.slopes(params, state, jnp.asarray(u)))
    outputs = drives.outputs
    if outputs and np.any(moving):
        raise InputError(
            f"{WHO}: the outputs {', '.join(map(str, outputs))} depend on velocities; name quantities of "
            "the position alone, such as 'pin.position' or 'rod.position'"
        )
    reached = len(independent(slopes))
    if reached < slopes.shape[0]:
        what = "outputs" if outputs else "velocities"
        raise InputError(
            f"{WHO}: the inputs accelerate {reached} of {slopes.shape[0]} {what} independently "
            "in the state of the problem; name as many outputs as there are inputs, each of which they can "
            "accelerate, or more inputs"
        )
    return int(slopes.shape[0])
