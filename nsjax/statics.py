"""Statics: equilibria of problems, contacts held closed, and stable positions of rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError, Problem, System, nearest
from nsjax.core.arguments import check_is, name_list
from nsjax.core.checks import canonical, check_precision
from nsjax.core.operators import prepared, refreshed
from nsjax.core.step import mass_matrix
from nsjax.core.system import bordered, contact_names
from nsjax.jaxtools.owned import compiled_for
from nsjax.types import Array, PyTree

# Systems with contacts held closed, whose gaps become constraints.


@dataclasses.dataclass(frozen=True)
class HeldClosed:
    """Constraints of a system, followed by the gaps of its held contacts."""

    system: System
    contacts: tuple[int, ...]

    def constraint(self, t: Array, q: Array, p: PyTree) -> Array:
        """Constraints and gaps (nb + k,)."""
        s = self.system
        gaps = s.gap(t, q, refreshed(s, t, q, p))[np.array(self.contacts)]
        return gaps if not s.nb else jnp.concatenate([s.constraint(t, q, p), gaps])


def chosen_contacts(system: System, names: Sequence[str], who: str) -> tuple[int, ...]:
    """Numbers of contacts given by name. Raises `InputError` for an unknown name, with the nearest known
    one.
    """
    known = contact_names(system) if system.nc else ()
    names = name_list(who, "contacts", names)
    for name in names:
        if name not in known:
            what = nearest(str(name), list(known)) if known else "the system has none"
            raise InputError(f"{who}: no contact {name!r}; {what}")
    return tuple(known.index(name) for name in names)


def held_closed(system: System, names: Sequence[str], who: str) -> System:
    """The system with the gaps of the named contacts as its last constraints, and without contacts."""
    contacts = chosen_contacts(system, names, who)
    if not contacts:
        return system
    system = bordered(system)
    labels, own = system.labels, system.labels.constraints
    if own or not system.nb:
        labels = dataclasses.replace(labels, constraints=(*own, *(f"{x}.closed" for x in names)))
    function = HeldClosed(system, contacts).constraint
    return dataclasses.replace(system, nb=system.nb + len(contacts), constraint=function, labels=labels)


def check_positioned(system: System, who: str) -> None:
    """Refuses systems with constraints on velocities alone."""
    if system.nh:
        names = ", ".join(system.labels.constraints[-system.nh :]) or f"the last {system.nh} constraints"
        raise InputError(
            f"{who}: {names} hold velocities alone (wheels that roll), so that positions at rest are not "
            "isolated; hold the wheel by a joint, or leave these constraints out"
        )


# Equilibria under loads that are applied in steps.
#
# An equilibrium fulfils ``h(t, q, 0) + W x = 0`` and ``g(t, q) = 0`` with multipliers ``x`` of the
# constraints. Parameters of the problem (loads, gravity, lengths, prescribed positions) go from their
# values to given values as ``p(s) = p_0 + s (p_1 - p_0)``. Newton's method with numpy on dense matrices.


LAST_STEP = 1e-9
"""Largest last Newton step relative to the coordinates (at least 1 m, 1 rad): the next one is rounding."""

PASSES = 25
"""Largest number of Newton steps; without convergence the load step is halved."""

LOAD_HALVINGS = 12
"""Largest number of halvings of a load step."""


@dataclasses.dataclass(frozen=True)
class Equilibria:
    """Sequence of equilibria.

    Args:
        problem: the problem at rest in the last position, with the last parameters.
        levels: ``s`` of every equilibrium (k,), from 0 at the start.
        positions: positions ``q`` (k, nq).
        multipliers: multipliers of the constraints (k, nb) [N, N m].
        iterations: Newton steps of each equilibrium (k,).
        limits: levels of the limit points on the path.
        limit_positions: positions of the limit points.
    """

    problem: Problem
    levels: np.ndarray
    positions: np.ndarray
    multipliers: np.ndarray
    iterations: np.ndarray
    limits: tuple[float, ...] = ()
    limit_positions: tuple[np.ndarray, ...] = ()


@dataclasses.dataclass(frozen=True)
class Ramp:
    """A problem whose parameters go linearly from ``start`` to ``end``, at the time ``t``."""

    system: System
    start: PyTree
    end: PyTree
    t: Array

    def at(self, s: float) -> PyTree:
        """Parameters at a level."""
        return jax.tree.map(lambda a, b: a + s * (b - a), self.start, self.end)

    def tangents(
        self, q: np.ndarray, x: np.ndarray, s: float, gone: np.ndarray | None = None
    ) -> tuple[np.ndarray, ...]:
        """Residuals at ``q`` moved by ``gone`` (or zero), their derivatives by ``(gone, x)`` and ``s``."""
        gone = np.zeros(self.system.nv) if gone is None else gone
        place = tuple(jnp.asarray(y) for y in (q, gone, x))
        found = _tangents(self.system, self.t, place, (self.start, self.end), s)
        return tuple(np.asarray(y) for y in found)


@compiled_for("system")
def moved(system: System, q: Array, xi: Array) -> Array:
    """Position ``q`` moved by an increment ``xi`` (nv,)."""
    return system.retract(q, xi)


def residual(system: System, t: Array, q: Array, xi: Array, x: Array, p: PyTree) -> Array:
    """Forces at rest and constraints (nv + nb,) at ``q`` moved by ``xi``, for prepared parameters."""
    here, zero = system.retract(q, xi), jnp.zeros(system.nv)
    push = system.force(t, here, zero, p)
    if not system.nb:
        return push

    def rows(step: Array) -> Array:
        return system.constraint(t, system.retract(here, step), p)

    gaps, back = jax.vjp(rows, zero)
    return jnp.concatenate([push + back(x)[0], gaps])


@compiled_for("system")
def _tangents(
    system: System, t: Array, place: tuple[Array, ...], ends: tuple[PyTree, PyTree], s: Array
) -> tuple[Array, Array, Array]:
    """Residuals and derivatives at the point ``(q, gone, x)``, for parameters at level ``s``."""
    q, gone, x = place

    def at(y: Array, s: Array) -> Array:
        p = prepared(system, jax.tree.map(lambda a, b: a + s * (b - a), *ends))
        return residual(system, t, q, y[: system.nv], y[system.nv :], p)

    here = jnp.concatenate([gone, x])
    value, slope = jax.jvp(lambda s: at(here, s), (s,), (jnp.ones(()),))
    return value, jax.jacfwd(at)(here, s), slope


def ramp_of(problem: Problem, to: Mapping[str, Any] | None) -> tuple[Ramp, np.ndarray]:
    """The ramp to the given parameters, and its initial position."""
    check_precision()
    check_is("analysis at rest", "problem", problem, Problem)
    check_positioned(problem.system, "analysis at rest")
    other = problem.replace(to) if to else problem
    start, end = (jax.tree.map(jnp.asarray, canonical(x.params, "params")) for x in (problem, other))
    state = canonical(problem.state, "state")
    made = Ramp(bordered(problem.system), start, end, jnp.asarray(state.t, float))
    return made, np.asarray(state.q, float)


def size(q: np.ndarray) -> float:
    """Largest coordinate, at least 1."""
    return max(1.0, float(np.max(np.abs(q))))


def solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solution of linear equations; nan where they are singular."""
    try:
        found: np.ndarray = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return np.full(right.shape, np.nan)
    return found


def settle(ramp: Ramp, q: np.ndarray, x: np.ndarray, s: float) -> tuple[np.ndarray, np.ndarray, int] | None:
    """Equilibrium at a level by Newton's method: position, multipliers and number of steps; None if it is
    not found. It is one increment away from ``q``, so that elements with a history take one step.
    """
    nv, gone = ramp.system.nv, np.zeros(ramp.system.nv)
    for k in range(1, PASSES + 1):
        value, matrix, _ = ramp.tangents(q, x, s, gone)
        change = -solved(matrix, value)
        largest = float(np.max(np.abs(change[:nv])))
        if not np.isfinite(change).all() or largest > 1e3 * size(q):
            return None
        gone, x = gone + change[:nv], x + change[nv:]
        if largest <= LAST_STEP * size(q):
            return np.asarray(moved(ramp.system, q, gone)), x, k
    return None


def check_stiff(ramp: Ramp, q: np.ndarray, x: np.ndarray) -> None:
    """Refuses a problem that can move without force: a mechanism, or a body without support."""
    nv = ramp.system.nv
    _, matrix, _ = ramp.tangents(q, x, 0.0)
    free = null_space(matrix[nv:, :nv])
    stiff = matrix[:nv, :nv] @ free
    rows = np.sqrt(np.sum(stiff * stiff, axis=0))
    rows = np.where(rows > 0.0, rows, 1.0)
    _, values, vectors = np.linalg.svd(free.T @ (stiff / rows))
    # ratio to the largest stiffness, after scaling to unit diagonal, below which a stiffness is rounding
    mechanism = 1e-13
    if len(values) and values[-1] <= mechanism * values[0]:
        way = np.abs(free @ (vectors[-1] / rows))
        worst = int(np.argmax(way))
        labels = ramp.system.labels.v
        name = labels[worst].split(" [")[0] if labels else f"entry {worst} of v"
        raise InputError(
            f"statics: nothing holds {name}, which moves without any force; hold it by a joint or spring, "
            "or compute its motion with nsjax.simulate"
        )


def null_space(rows: np.ndarray) -> np.ndarray:
    """Orthonormal basis (nv, k) of the null space of rows (nb, nv), which may be linearly dependent.

    Singular values below 1e-12 of the largest one count as zero: rounding of the rows gives some 1e-15.
    Velocities that no row has stay apart: their stiffnesses may be of very different sizes, and sums of
    them would lose the small ones.
    """
    held = np.any(rows != 0.0, axis=0)
    if not held.any():
        return np.eye(rows.shape[1])
    _, sizes, directions = np.linalg.svd(rows[:, held])
    own = directions[int(np.sum(sizes > 1e-12 * np.max(sizes))) :].T
    found = np.zeros((len(held), own.shape[1]))
    found[held] = own
    return np.concatenate([found, np.eye(len(held))[:, ~held]], axis=1)


def equilibrium(
    problem: Problem, to: Mapping[str, Any] | None = None, *, steps: int = 1, contacts: Sequence[str] = ()
) -> Equilibria:  # fmt: skip
    """Equilibrium of a problem, optionally for other parameters, which are reached in steps.

    Args:
        problem: problem with the initial position; its velocity is ignored.
        to: parameters by name, as for `Problem.replace`: ``{"tip.value": (0, 0, 600.0)}``. None: those of
            the problem.
        steps: number of equal steps. A step is halved where Newton's method does not converge, and
            enlarged again afterwards. A follower load turns with its body in every step.
        contacts: names of contacts that are closed in the equilibrium, without friction; their forces are
            the last multipliers.

    Returns:
        `Equilibria`; the last one is that of the given parameters.

    Raises:
        InputError: for a mechanism, whose equilibrium is not determined, and if the steps do not converge.

    Limits: dense matrices: some hundred bodies. Other contacts are left out. Loads are taken at the initial
    time.

    Example:
        >>> from nsjax.analysis import equilibrium
        >>> from nsjax.multibody import assemble, beam, fixed, section, torque
        >>> soft = section(EA=1e4, GA=5e3, EI=100.0, GJ=100.0)
        >>> problem = assemble(
        ...     beam("arm", (0, 0, 0), (10, 0, 0), elements=2, section=soft),
        ...     fixed("clamp", "ground", "arm.start"), torque("bend", "arm.end", (0.0, 0.0, 0.0)),
        ... )
        >>> found = equilibrium(problem, {"bend.value": (0.0, 0.0, 1.0)})
        >>> float(found.positions[-1, -6].round(2))
        0.5
    """
    check_is("equilibrium", "problem", problem, Problem)
    check_positioned(problem.system, "equilibrium")
    system = held_closed(problem.system, contacts, "equilibrium")
    ramp, q = ramp_of(dataclasses.replace(problem, system=system), to)
    x, base = np.zeros(ramp.system.nb), 1.0 / steps
    check_stiff(ramp, q, x)
    first = settle(ramp, q, x, 0.0) if to else None
    if to and first is not None:
        q, x, _ = first
    rows, s, step = [(0.0, q, x, 0 if first is None else first[2])], 0.0, base
    while s < 1.0:
        wanted = 1.0 if s + 1.001 * step >= 1.0 else s + step
        found = settle(ramp, q, x, wanted)
        if found is None:
            # what Newton does not reach in one step of the load it may reach in two
            step *= 0.5
            if step < base * 0.5**LOAD_HALVINGS:
                raise InputError(
                    f"statics: no equilibrium is found beyond {s:.6g} of the loads, with load steps down "
                    f"to {step:.2g}; the structure may snap or buckle there: follow its path with "
                    "nsjax.analysis.load_path"
                )
            continue
        (q, x, k), s = found, wanted
        rows.append((s, q, x, k))
        step = min(base, 2.0 * step)
    _check_pressed(contacts, x[len(x) - len(contacts) :])
    return collected(problem, ramp, rows)


def _check_pressed(contacts: Sequence[str], forces: np.ndarray) -> None:
    """Refuses closed contacts with a pulling force."""
    for name, x in zip(contacts, forces, strict=True):
        if x < -LAST_STEP * max(1.0, float(np.max(np.abs(forces)))):
            raise InputError(
                f"equilibrium: contact {name!r} would have to pull with {-x:.3g} N; leave it out of "
                "contacts"
            )


def collected(problem: Problem, ramp: Ramp, rows: list[Any], **limits: Any) -> Equilibria:
    """`Equilibria` from rows ``(level, position, multipliers, iterations)``."""
    levels, positions, multipliers, iterations = (np.array(x) for x in zip(*rows, strict=True))
    done = dataclasses.replace(problem, params=ramp.at(float(levels[-1])))
    done = done.replace(initial_q=positions[-1], initial_v=np.zeros(ramp.system.nv))
    return Equilibria(done, levels, positions, multipliers, iterations, **limits)


# Stable positions of rest, which a strongly damped mechanism reaches when it is released.
#
# The steps solve ``(a M - K) xi - J' dx = h + J' x``, ``J xi = -g`` with ``K = dh/dq``: each is an
# implicit time step of length ``1 / sqrt(a)`` from rest. The energy of conservative forces falls as long
# as ``a`` is above the largest eigenvalue of ``K`` relative to the mass; for decreasing ``a`` the steps
# become Newton's.


@compiled_for("system")
def _mass(system: System, q: Array, p: PyTree) -> Array:
    return mass_matrix(system, q, prepared(system, p))


@dataclasses.dataclass
class _RestSearch:
    """State of the search: position, multipliers, and ``a``."""

    ramp: Ramp
    q: np.ndarray
    x: np.ndarray
    a: float = 0.0

    def step(self) -> tuple[np.ndarray, float, np.ndarray | None]:
        """Takes a step; its increment, largest acceleration at its start, unstable direction or None."""
        nv = self.ramp.system.nv
        value, matrix, _ = self.ramp.tangents(self.q, self.x, 0.0)
        mass = np.asarray(_mass(self.ramp.system, jnp.asarray(self.q), self.ramp.start))
        free = null_space(matrix[nv:, :nv])
        inner = free.T @ mass @ free
        stiff = free.T @ (matrix[:nv, :nv] + matrix[:nv, :nv].T) @ free / 2.0
        rates = solved(inner, free.T @ value[:nv])
        values, vectors = np.linalg.eig(solved(inner, stiff))
        worst = int(np.argmax(values.real)) if len(values) else 0
        most = float(values.real[worst]) if len(values) else 0.0
        largest = float(np.max(np.abs(free @ rates), initial=0.0))
        longest = 0.3  # length of the first steps [m, rad]
        self.a = max(self.a or largest / longest, 2.0 * most, 1e-12)
        matrix = np.array(matrix)
        matrix[:nv, :nv] -= self.a * mass
        change = -solved(matrix, value)
        xi = change[:nv] * min(1.0, longest / max(float(np.max(np.abs(change[:nv]))), 1e-300))
        self.q = np.asarray(moved(self.ramp.system, jnp.asarray(self.q), jnp.asarray(xi)))
        self.x = self.x + change[nv:]
        scale = float(np.max(np.abs(values))) if len(values) else 0.0
        unstable = most > 1e-9 * scale
        return xi, largest, free @ vectors.real[:, worst] if unstable else None

    def leave(self, way: np.ndarray) -> None:
        """Moves away from an unstable position along ``way``."""
        aside = 1e-3  # length of the step away from an unstable position of rest [m, rad]
        xi = jnp.asarray(aside * way / np.max(np.abs(way)))
        self.q = np.asarray(moved(self.ramp.system, jnp.asarray(self.q), xi))


def rest(problem: Problem, who: str) -> Problem:
    """The problem at the stable position of rest that a damped motion reaches, without contacts and limits.
    ``problem``: problem with the initial position; its velocity is ignored. Raises `InputError` if the
    mechanism does not come to rest.
    """
    ramp, q = ramp_of(problem, None)
    search, before = _RestSearch(ramp, q, np.zeros(ramp.system.nb)), 0.0
    steps = 300  # number of steps after which the mechanism counts as one without a position of rest
    for _ in range(steps):
        xi, rate, unstable = search.step()
        if not np.all(np.isfinite(search.q)):
            break
        if float(np.max(np.abs(xi))) <= LAST_STEP * size(search.q):
            if unstable is None:
                return problem.replace(initial_q=search.q, initial_v=np.zeros(ramp.system.nv))
            search.leave(unstable)
        falling = rate / before if before > 0.0 else 1.0
        search.a, before = search.a * min(max(falling, 0.1), 2.0), rate
    labels, worst = ramp.system.labels.v, int(np.argmax(np.abs(np.nan_to_num(xi, nan=np.inf))))
    name = labels[worst].split(" [")[0] if labels else f"entry {worst} of v"
    raise InputError(
        f"{who}: no position of rest is found in {steps} steps, {name} goes on moving; hold it by a joint "
        "or spring, give another guess, or name the contacts that hold it to nsjax.analysis.equilibrium"
    )
