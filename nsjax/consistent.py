"""Starts that contacts and constraints allow."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.contact import ContactProblem, solve
from nsjax.contact.projection import Directions, Projection, project_position
from nsjax.contact.stage import StageSettings
from nsjax.core import Problem, State, System
from nsjax.core.arguments import check_is
from nsjax.core.checks import canonical, check_precision, check_shapes
from nsjax.core.errors import InputError, check_choice
from nsjax.core.operators import acting, position_gradient, prepared, refreshed, touching
from nsjax.core.step import SystemState
from nsjax.core.system import bordered, contact_names, gap_units, positioned, row_groups
from nsjax.jaxtools.owned import compiled_for
from nsjax.linalg import Dense, matmul, matvec
from nsjax.types import Array, PyTree, is_traced, without_values

VIOLATED = 1e-9
"""Largest relative residual of a search that has found a start; a failure names violations above it [m]."""


@dataclasses.dataclass(frozen=True)
class Consistent:
    """A problem with a consistent start, and the changes that led to it.

    Args:
        problem: the problem with the new state.
        position_change: (nv,) increment along which the position was moved.
        velocity_change: (nv,) change of the velocity.
        names: ``"name [unit]"`` of each entry of both changes, for the report.
    """

    problem: Problem
    position_change: np.ndarray
    velocity_change: np.ndarray
    names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def __str__(self) -> str:
        """One sentence: the largest changes."""
        if is_traced((self.position_change, self.velocity_change)):
            return "consistent start inside a transformation: its changes have no values yet"
        parts = []
        changes = self.position_change, self.velocity_change
        for what, change, names in zip(("position", "velocity"), changes, self.names, strict=True):
            worst = int(np.argmax(np.abs(change)))
            name, _, unit = (names[worst] if names else f"entry {worst}").partition(" [")
            size = f"{float(np.abs(change[worst])):.3g} {unit.rstrip(']')}".strip()
            parts.append(f"{what} moved by up to {size} ({name})" if change[worst] else f"{what} unchanged")
        return "consistent start: " + ", ".join(parts)


def consistent(problem: Problem, *, metric: str = "kinetic", lift: bool = True) -> Consistent:
    """Moves a start onto its constraints and out of its obstacles, then corrects its velocities.

    Mechanisms that hang freely, or on slides of the ground, are first moved as a whole out of obstacles, as
    far as that is possible: a robot is lifted out of its floor with its joints as they are.

    The position, with directions ``D`` at the given start, then becomes ``q + D Psi`` with ``g_B = 0`` and
    ``0 <= g_N _|_ Psi_N >= 0``. The velocity becomes the nearest one in the kinetic energy with
    ``W_B' v + dg_B/dt = 0`` and no closed contact that approaches, ``0 <= dg_N _|_ P_N >= 0`` (the velocity
    after an impact without restitution and friction).

    Args:
        problem: system, parameters and start.
        metric: metric of position changes, ``"kinetic"`` (``D = M^-1 W``) or ``"euclidean"`` (``D = W``).
        lift: whether mechanisms are first moved as a whole.

    Returns:
        A `Consistent`: the new ``problem``, the changes, and a sentence as its string.

    Raises:
        InputError: if no consistent start is found; inside transformations it is not a number.

    The start is differentiable, by numbers of the problem and by the given start, with contacts that are
    closed held closed: ``jax.grad(lambda x: f(nsjax.consistent(problem.replace(length=x)).problem))``.
    Mechanisms of parts need no such call: `Problem.replace` closes their loops.

    A state that a scheme has left a step deep inside a wall needs no such move: `simulate` takes it as it
    is.

    Limits: ``D`` is frozen, so that a start far away ends on the constraint, but not at its nearest
    point. Models that give `inertia` instead of `mass` are refused.

    Source: [S&U&S (32)-(35)] for the position; [R&S (11)] with no restitution for the velocity.

    Example:
        >>> import nsjax
        >>> from nsjax import models
        >>> start = models.bouncing_ball(height=0.5, radius=0.1)
        >>> sunk = start.replace(initial_q=[0.05])
        >>> found = nsjax.consistent(sunk)
        >>> round(float(found.problem.state.q[0]), 9)
        0.1
    """
    check_precision()
    check_is("consistent", "problem", problem, Problem)
    check_choice("consistent: metric", metric, ("kinetic", "euclidean"))
    system = bordered(problem.system)
    params, state = canonical(problem.params, "params"), canonical(problem.state, "state")
    check_shapes(system, params, state)
    if not system.nc and not system.nb:
        zero = np.zeros(system.nv)
        return Consistent(problem, zero, zero, _names(system))
    modes: tuple[tuple[int, ...], ...] = ()
    if lift and system.nc and not system.changing_contacts and not system.islands:
        modes = getattr(system.parts, "translations", ())
    q, v, residual = _solve(system, params, state, metric == "kinetic", modes)
    if without_values((q, v)):
        fits = residual <= VIOLATED
        q, v = jnp.where(fits, q, jnp.nan), jnp.where(fits, v, jnp.nan)
    elif not residual <= VIOLATED:
        raise InputError(
            f"consistent: no consistent start found (relative residual {float(residual):.3g}"
            f"{_violated(system, params, state, q)}); contacts or constraints may contradict each other, "
            "or the start may be too far away"
        )
    moved: Any = system.difference(state.q, q)
    new = Problem(system=system, params=problem.params, state=State(t=problem.state.t, q=q, v=v))
    if not without_values((q, v)):
        moved = np.asarray(moved)
    return Consistent(new, moved, v - state.v, _names(system))


def _names(system: System) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and units of an increment of the position, and of the velocity; of a rotation its rate."""
    labels = system.labels
    if not labels.v or system.nq == system.nv:
        return labels.q, labels.v
    known, names = {x.partition(" [")[0] for x in labels.q}, []
    for label in labels.v:
        name, _, unit = label.partition(" [")
        whole, _, last = name.rpartition(".")
        of = f"{whole}.{ {'speed': 'position', 'omega': 'angle'}.get(last, last.removeprefix('v')) }"
        names.append(f"{of if of in known else name} [{unit.replace('/s]', ']')}")
    return tuple(names), labels.v


def _violated(system: System, params: PyTree, state: State, q: Array) -> str:
    """The contacts and constraints that the last position of a search violates most, two of each."""
    q = q if np.all(np.isfinite(q)) else jnp.asarray(state.q)
    t = jnp.asarray(state.t)
    p = refreshed(system, t, q, prepared(system, params))
    words = []
    if system.nc:
        may_act = acting(system, t, q, p, jnp.ones(system.nc, bool))
        depth = np.asarray(jnp.where(may_act, -system.gap(t, q, p), 0.0))
        words += _worst(contact_names(system), depth, gap_units(system), "deep")
    if system.nb > system.nh:
        size = np.abs(np.asarray(system.constraint(t, q, p)))
        names = system.labels.constraints or tuple(f"constraint {k}" for k in range(size.size))
        words += _worst(names, size, ("",) * size.size, "off")
    return f"; where the search ended, {', '.join(words)}" if words else ""


def _worst(names: tuple[str, ...], size: np.ndarray, units: tuple[str, ...], how: str) -> list[str]:
    """Words on the two largest violations, of those that are no rounding."""
    worst = [k for k in np.argsort(-size, kind="stable")[:2] if not size[k] <= VIOLATED]
    return [" ".join(f"{names[k]} is {size[k]:.3g} {units[k]} {how}".split()) for k in worst]


SETTINGS = StageSettings(tolerance=1e-13, contact_tolerance=1e-11, max_passes=50, max_iterations=50)


@compiled_for("system", "kinetic", "modes")
def _solve(
    system: System, params: PyTree, state: State, kinetic: bool, modes: tuple[tuple[int, ...], ...]
) -> tuple[Array, Array, Array]:
    """New position and velocity, and the worst relative residual; ``modes``: motions as a whole."""
    constants, t = prepared(system, params), jnp.asarray(state.t)

    def at(q: Array) -> SystemState:
        # corrections of a start may slip: constraints on velocities alone are left out
        p = refreshed(system, t, q, constants)
        state = State(t=t, q=q, v=jnp.zeros(system.nv))
        return SystemState(system=positioned(system), params=p, state=state)

    def projected(start: SystemState, among: Array | None = None) -> Projection:
        along = Directions(at=start, contacts=system.nc > 0, kinetic=kinetic)
        return project_position(start, along, jnp.ones(()), SETTINGS, among=among)

    here = at(state.q)
    if modes:
        whole = np.stack([np.isin(np.arange(system.nv), entries) for entries in modes], axis=1).astype(
            float
        )
        rows = position_gradient(here.system, t, here.q, here.params).directions()[:, : system.nc]
        reach = matmul(jnp.asarray(whole).T, rows)
        # normals are unit vectors: other contacts are limits, or between bodies that move alike
        outside = jnp.any(jnp.abs(reach) > 1e-9, axis=0)
        inner = projected(here, ~outside)
        here = at(_lifted(at(_where_solved(inner, state.q)), outside, jnp.asarray(whole)))
    position = projected(here)
    v, residual = _velocity(dataclasses.replace(here, system=system).moved(q=position.q, v=state.v))
    return position.q, v, jnp.max(jnp.stack([position.residual, position.estimate, residual]))


def _where_solved(found: Projection, q: Array) -> Array:
    """The projected position; ``q`` where the projection has failed."""
    good = (found.residual <= VIOLATED) & (found.estimate <= VIOLATED) & jnp.all(jnp.isfinite(found.q))
    return jnp.where(good, found.q, q)


def _lifted(here: SystemState, among: Array, whole: Array) -> Array:
    """The position moved by motions ``whole`` (nv, m) out of contacts ``among`` (nc,), if possible."""
    free = dataclasses.replace(
        here.system, nb=0, nh=0, constraint=None, velocity_constraint=None, structure=Dense(),
        labels=dataclasses.replace(here.system.labels, constraints=()),
    )  # fmt: skip
    at = dataclasses.replace(here, system=free)
    along = Directions(at=at, contacts=True, kinetic=False, modes=whole)
    return _where_solved(project_position(at, along, jnp.ones(()), SETTINGS, among=among), here.q)


def _velocity(at: SystemState) -> tuple[Array, Array]:
    """The velocity after an impact without restitution and friction, and the residual of its problem."""
    system, closed, v = at.system, jnp.zeros(0, bool), at.v
    rows = position_gradient(system, at.t, at.q, at.params)
    if system.nc:
        # contacts with gaps up to this value count as closed [m]: rounding of the projection
        closed_gap = 1e-12
        closed = touching(system, at.t, at.q, at.params, at.gap(), closed_gap)
    response = rows.response(at.inertia())
    problem = ContactProblem(
        rows=row_groups(system).without_friction(), delassus=rows.delassus(response), free=rows.rate(v),
        friction=jnp.zeros(system.nc), mask=closed,
    )  # fmt: skip
    answer = solve(problem)
    return v + matvec(response, answer.x), answer.residual
