"""Where a mechanism starts: given coordinates are kept, loops are closed by the others."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core import InputError, nearest
from nsjax.core.checks import is_traced
from nsjax.math import rotations
from nsjax.multibody.mechanism import Mechanism
from nsjax.multibody.topology import SIZES, Link
from nsjax.nonlinear import implicit_solution
from nsjax.types import Array, PyTree

CLOSED = 1e-11
"""Residual of a closed loop [m, rad]: rounding of positions of the size of a metre, a thousand times."""

TRIALS = 24
"""Searches for a closed position, the first from the guess, the others from random ones (fixed seed)."""

PASSES = 60
"""Newton steps of a search."""

SAMPLES, ASIDE = 4, 0.3
"""Closed positions in which dependent rows are looked for, and how far from the start they are sought [rad,
m].
"""

RANK = 1e-8
"""What is left of a dependent row beside the others: rounding of closed positions (`CLOSED`), and of the
rows.
"""


class RedundantConstraintsWarning(UserWarning):
    """Constraints that follow from others: motions are right, single reactions are not unique."""


Start = Mapping[str, Any]
Data = tuple[PyTree, Array, Array]


def given_coordinates(mechanism: Mechanism, start: Start, who: str) -> tuple[Any, Any, Any, Any]:
    """``q, v`` of what is given, zero else, and masks (nv,) of the velocities and positions given.

    Raises:
        InputError: for unknown names and shapes that do not fit.
    """
    topology = mechanism.topology
    nv = topology.sizes[1]
    table, xp = SIZES[topology.dimension], jnp if is_traced(dict(start)) else np
    q, v = [xp.zeros(0)] * len(topology.links), [xp.zeros(0)] * len(topology.links)
    held, driven = np.zeros(nv, bool), np.zeros(nv, bool)
    links = sorted(topology.links, key=lambda x: (x.q, x.v))
    known = {x.body: k for k, x in enumerate(links)} | {x.joint: k for k, x in enumerate(links) if x.joint}
    for k, link in enumerate(links):
        q[k], v[k] = _rest(link, table), np.zeros(table[link.kind][1])
    for name, value in start.items():
        if name not in known:
            loop = name in topology.of and name in topology.closures
            why = "it closes a loop; give bodies or other joints" if loop else nearest(name, list(known))
            raise InputError(f"{who}: {name!r} has no coordinates; {why}")
        k = known[name]
        link, own = links[k], slice(links[k].v, links[k].v + table[links[k].kind][1])
        if held[own].any():
            raise InputError(f"{who}: {link.body!r} is given twice, as body and as joint; give it once")
        position, rate = _pair(value, link)
        q[k], held[own] = _position(link, topology.dimension, position, who, xp), True
        if rate is not None:
            v[k], driven[own] = _rate(link, table[link.kind][1], rate, who, xp), True
    return xp.concatenate([*q, np.zeros(0)]), xp.concatenate([*v, np.zeros(0)]), held, driven


def _rest(link: Link, table: Mapping[str, Any]) -> np.ndarray:
    if link.kind in ("ball", "free") and table[link.kind][0] > 3:
        return np.array([1.0, 0, 0, 0]) if link.kind == "ball" else np.array([0.0, 0, 0, 1, 0, 0, 0])
    return np.zeros(table[link.kind][0])


def _pair(value: Any, link: Link) -> tuple[Any, Any]:
    """Position and velocity; a single value is a position."""
    two = isinstance(value, tuple | list) and len(value) == 2
    scalars = two and not any(map(_wide, value))
    if two and (not scalars or link.kind in ("hinge", "slide")):
        return value[0], value[1]
    return value, None


def _wide(x: Any) -> bool:
    """Whether it is no scalar; a pose may be a ragged pair, which numpy does not look at."""
    return isinstance(x, tuple | list) or np.ndim(x) > 0


def _position(link: Link, dimension: int, value: Any, who: str, xp: Any) -> Any:
    parts = value if isinstance(value, tuple | list) and any(map(_wide, value)) else [value]
    flat = xp.concatenate([xp.asarray(x, float).reshape(-1) for x in parts])
    size = SIZES[dimension][link.kind][0]
    if dimension == 3 and link.kind in ("ball", "free"):
        first = 3 if link.kind == "free" else 0
        place, turn = flat[:first], flat[first:]
        if flat.shape[0] not in ((3, 6, 7) if first else (3, 4)):
            turning = "a rotation vector or quaternion"
            raise InputError(
                f"{who}: position of {link.body!r} has {flat.shape[0]} entries; give "
                + (f"(x, y, z) and {turning}" if first else turning)
            )
        if turn.shape[0] == 3:
            turn = rotations.exponential(jnp.asarray(turn))
        if turn.shape[0] == 0:
            turn = np.array([1.0, 0, 0, 0])
        turn = turn / xp.sqrt(xp.sum(turn * turn))
        return xp.concatenate([place, xp.asarray(turn)])
    if flat.shape[0] != size:
        raise InputError(f"{who}: position of {link.body!r} has {flat.shape[0]} entries; it needs {size}")
    return flat


def _rate(link: Link, size: int, value: Any, who: str, xp: Any) -> Any:
    parts = value if isinstance(value, tuple | list) and any(map(_wide, value)) else [value]
    flat = xp.concatenate([xp.asarray(x, float).reshape(-1) for x in parts])
    if link.kind == "free" and size == 6 and flat.shape[0] == 3:
        flat = xp.concatenate([flat, np.zeros(3)])
    if flat.shape[0] != size:
        raise InputError(f"{who}: velocity of {link.body!r} has {flat.shape[0]} entries; it needs {size}")
    return flat


@functools.partial(jax.jit, static_argnames=("mechanism",))
def _search(mechanism: Mechanism, p: PyTree, q: Array, free: Array) -> tuple[Array, Array]:
    """Closes the loops by Newton steps of least norm in the free directions: position and residuals.

    The answer moves with the numbers and with the coordinates that are kept.
    """
    system = mechanism.system()
    rest = np.zeros(system.nv)  # a constant: rules for derivatives may not hold traced values

    def residual(q: Array, p: PyTree) -> Array:
        return mechanism.constraint(jnp.zeros(()), q, p)

    def change(q: Array, p: PyTree, free: Array) -> Callable[[Array], Array]:
        rows = jax.jacfwd(lambda xi: residual(system.retract(q, xi), p))(rest) * free
        inverse = jnp.linalg.pinv(rows, rtol=1e-10)
        return lambda found: -inverse @ found

    def solver(data: Data) -> tuple[Array, Array]:
        p, q, free = data

        def step(carry: tuple[Array, Array]) -> tuple[Array, Array]:
            q, k = carry
            xi = change(q, p, free)(residual(q, p))
            largest = jnp.max(jnp.abs(xi))
            return system.retract(q, xi * jnp.where(largest > 0.5, 0.5 / largest, 1.0)), k + 1

        def unfinished(carry: tuple[Array, Array]) -> Array:
            q, k = carry
            return (k < PASSES) & ~(jnp.max(jnp.abs(residual(q, p))) <= CLOSED / 10.0)

        return lax.while_loop(unfinished, step, (q, jnp.zeros((), int)))

    def live_step(closed: Array, data: Data) -> Callable[[Data], Array]:
        p, before, free = data
        back = change(closed, p, free)

        def step(data: Data) -> Array:
            p, q, free = data
            moved = system.retract(closed, system.difference(before, q) * (1.0 - free))
            made: Array = system.retract(moved, back(residual(moved, p)))
            return made

        return step

    closed, _ = implicit_solution(solver, live_step)((p, q, jnp.asarray(free, float)))
    return closed, residual(closed, p)


@functools.partial(jax.jit, static_argnames=("mechanism",))
def _rates(mechanism: Mechanism, p: PyTree, q: Array, v: Array, free: Array) -> tuple[Array, Array]:
    """Velocities that keep the loops closed, the free ones by least squares, and what is left."""
    system = mechanism.system()
    rest, zero = jnp.zeros(system.nv), jnp.zeros(())
    rows = jax.jacfwd(lambda xi: mechanism.constraint(zero, system.retract(q, xi), p))(rest)
    offset = jax.jvp(lambda t: mechanism.constraint(t, q, p), (zero,), (jnp.ones(()),))[1]
    moved = v - jnp.linalg.pinv(rows * free, rtol=1e-10) @ (rows @ v + offset)
    return moved, rows @ moved + offset


def close(mechanism: Mechanism, p: PyTree, start: Start, guess: Start) -> tuple[Any, Any]:
    """Start in joint coordinates.

    Raises:
        InputError: if the loops do not close with what is given.
    """
    q, v, held, driven = given_coordinates(mechanism, start, "start")
    if not mechanism.topology.closures and not mechanism.presence.motions:
        return q, v
    near = given_coordinates(mechanism, {**guess, **start}, "guess")[0]
    free, names = ~held, mechanism.labels().constraints
    p = jax.tree.map(lambda x: jnp.asarray(x, float), p)
    seeded, system = np.random.default_rng(0), mechanism.system()
    for trial in range(TRIALS):
        xi = seeded.uniform(-1.5, 1.5, len(free)) * free * (trial > 0)
        closed, left = _search(
            mechanism, p, jnp.asarray(system.retract(jnp.asarray(near), jnp.asarray(xi))), free
        )
        if is_traced((closed, left)) or float(jnp.max(jnp.abs(left))) <= CLOSED:
            break
    else:
        worst = int(np.argmax(np.abs(left)))
        raise InputError(
            f"assemble: the loop at {names[worst]!r} does not close, {float(left[worst]):.3g} is left; "
            "check lengths, leave the start of one more body open, or give guess= for those that are open"
        )
    v, miss = _rates(mechanism, p, closed, jnp.asarray(v), ~driven)
    if is_traced((v, miss)):
        return closed, v
    if not float(jnp.max(jnp.abs(miss))) <= 1e-9 * max(1.0, float(jnp.max(jnp.abs(v)))):
        worst = int(np.argmax(np.abs(miss)))
        raise InputError(
            f"assemble: the given velocities open the loop at {names[worst]!r} with "
            f"{float(miss[worst]):.3g}; leave the velocity of one of its bodies out"
        )
    return np.asarray(closed), np.asarray(v)


def dependent_rows(mechanism: Mechanism, p: PyTree, q: Any) -> tuple[str, ...]:
    """Rows of the loops that follow from the others wherever the loops are closed, to be left out. A
    position in which more of them depend (a dead centre) is none of it: others near the start are looked
    at, too.
    """
    bare = dataclasses.replace(mechanism.presence, motions=(), dropped=())
    loops, still = dataclasses.replace(mechanism, presence=bare), jnp.zeros(mechanism.topology.sizes[1])
    if not mechanism.topology.closures or is_traced((p, q)):
        return ()
    p = jax.tree.map(lambda x: jnp.asarray(x, float), p)
    seeded, system = np.random.default_rng(1), loops.system()
    kept: tuple[int, ...] = ()
    for trial in range(SAMPLES):
        xi = seeded.uniform(-ASIDE, ASIDE, still.shape[0]) * (trial > 0)
        moved, left = _search(
            loops, p, system.retract(jnp.asarray(q), jnp.asarray(xi)), np.ones(still.shape[0])
        )
        if trial and not float(jnp.max(jnp.abs(left))) <= CLOSED:
            continue
        found = _independent(np.asarray(_directions(loops, p, moved)))
        kept = max(kept, found, key=len)
    names = loops.labels().constraints
    dropped = tuple(name for k, name in enumerate(names) if k not in kept)
    if dropped:
        warnings.warn(
            f"{len(dropped)} of {len(names)} constraints follow from the others and are left out "
            f"({', '.join(dropped)}); the motion is right, but single reactions are not unique: those of "
            "these rows "
            "are given as zero",
            RedundantConstraintsWarning,
            stacklevel=3,
        )
    return dropped


@functools.partial(jax.jit, static_argnames=("mechanism",))
def _directions(mechanism: Mechanism, p: PyTree, q: Array) -> Array:
    """Directions of the constraints (nb, nv)."""
    system = mechanism.system()
    still = jnp.zeros(system.nv)
    made: Array = jax.jacfwd(lambda xi: mechanism.constraint(jnp.zeros(()), system.retract(q, xi), p))(
        still
    )
    return made


def _independent(rows: np.ndarray) -> tuple[int, ...]:
    """The first rows that depend on none before them."""
    kept: list[int] = []
    basis: list[np.ndarray] = []
    for k, row in enumerate(rows):
        rest = row.copy()
        for _ in range(2):  # twice, for rounding
            for one in basis:
                rest = rest - one * (one @ rest)
        if np.linalg.norm(rest) > RANK * (1.0 + float(np.linalg.norm(row))):
            kept.append(k)
            basis.append(rest / np.linalg.norm(rest))
    return tuple(kept)


def poses(mechanism: Mechanism, p: PyTree, q: Any, v: Any, names: tuple[str, ...]) -> tuple[Any, Any]:
    """Poses and velocities of the centres of mass, from joint coordinates."""
    scene = mechanism.scene(jnp.zeros(()), jnp.asarray(q), jnp.asarray(v), p)
    places, rates = [], []
    for name in names:
        com = p[name].com
        places.append(scene.position(name, com))
        rates.append(scene.velocity(name, com))
        if mechanism.dimension == 2:
            places.append(scene.rotation(name)[None])
            rates.append(scene.spin(name)[None])
        else:
            turn = scene.rotation(name)
            places.append(quaternion(turn))
            rates.append(jnp.sum(turn * scene.spin(name)[:, None], axis=0))
    q, v = jnp.concatenate(places), jnp.concatenate(rates)
    return (q, v) if is_traced((q, v)) else (np.asarray(q), np.asarray(v))


def quaternion(turn: Array) -> Array:
    """Unit quaternion (4,) of a rotation matrix (3, 3), by its largest component."""
    m, trace = turn, jnp.trace(turn)
    size = jnp.stack([trace, m[0, 0], m[1, 1], m[2, 2]])
    candidates = jnp.stack([
        jnp.stack([1 + trace, m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]]),
        jnp.stack([m[2, 1] - m[1, 2], 1 + 2 * m[0, 0] - trace, m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]]),
        jnp.stack([m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], 1 + 2 * m[1, 1] - trace, m[1, 2] + m[2, 1]]),
        jnp.stack([m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], 1 + 2 * m[2, 2] - trace]),
    ])  # fmt: skip
    best = candidates[jnp.argmax(size)]
    return best / jnp.sqrt(jnp.sum(best * best))
