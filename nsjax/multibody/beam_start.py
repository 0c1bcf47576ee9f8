"""Where a mechanism with beams starts: as drawn, or as given."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.core.checks import is_traced
from nsjax.math import rotations
from nsjax.multibody.beams import nodes_of
from nsjax.multibody.mechanism import Mechanism
from nsjax.multibody.start import (
    RedundantConstraintsWarning,
    _directions,
    _independent,
    _pair,
    _position,
    _rate,
    given_coordinates,
)
from nsjax.multibody.topology import Link
from nsjax.types import Array, PyTree

OPEN = 1e-9
"""Largest opening of a joint at the start [m, rad]: what ten printed digits of places leave."""


def _drawn(mechanism: Mechanism, p: PyTree, start: Mapping[str, Any]) -> dict[str, Any]:
    """Starts of all nodes: those of their beams, moved as one body, but where a node has its own."""
    found = dict(start)
    for part in mechanism.topology.all_of("beam"):
        whole, link = found.pop(part.name, None), Link(part.name, "", "free", None, False, 0, 0)
        xp = jnp if is_traced((whole, p[part.name].points)) else np
        points = xp.asarray(p[part.name].points, float)
        pose, speed = np.array([0.0, 0, 0, 1, 0, 0, 0]), np.zeros(6)
        if whole is not None:
            place, rate = _pair(whole, link)
            pose = pose if place is None else _position(link, 3, place, "start", xp)
            speed = speed if rate is None else _rate(link, 6, rate, "start", xp)
        turn = xp.asarray(rotations.matrix(jnp.asarray(pose[3:])))
        swing = xp.cross(xp.asarray(speed[3:])[None], points)
        places = pose[:3] + xp.sum(turn[None] * points[:, None, :], axis=2)
        rates = speed[:3] + xp.sum(turn[None] * swing[:, None, :], axis=2)
        for k, name in enumerate(nodes_of(part)):
            own = ((places[k], pose[3:]), xp.concatenate([rates[k], speed[3:]]))
            if name in found:
                given, rate = _pair(found[name], link)
                own = (given, own[1] if rate is None else rate)
            found[name] = own
    return found


def beam_start(mechanism: Mechanism, p: PyTree, start: Mapping[str, Any]) -> tuple[Any, Any]:
    """Poses and velocities of all bodies and nodes, at their centres of mass.

    Raises:
        InputError: naming the joint that is open, or that the velocities open.
    """
    q, v, _, _ = given_coordinates(mechanism, _drawn(mechanism, p, start), "start")
    q, v = _at_centres(mechanism, p, jnp.asarray(q), jnp.asarray(v))
    if is_traced((p, q, v)):
        return q, v
    _check_closed(mechanism, p, q, v)
    return np.asarray(q), np.asarray(v)


@functools.partial(jax.jit, static_argnames="mechanism")
def _at_centres(mechanism: Mechanism, p: PyTree, q: Array, v: Array) -> tuple[Array, Array]:
    """Poses and velocities of origins at the centres of mass."""
    com = mechanism.tree.ready(p).com
    poses, rates = q.reshape(-1, 7), v.reshape(-1, 6)
    turn = jax.vmap(rotations.matrix)(poses[:, 3:])
    swing = jnp.cross(rates[:, 3:], com)
    places = poses[:, :3] + jnp.sum(turn * com[:, None, :], axis=2)
    speeds = rates[:, :3] + jnp.sum(turn * swing[:, None, :], axis=2)
    q = jnp.concatenate([places, poses[:, 3:]], axis=1).reshape(-1)
    return q, jnp.concatenate([speeds, rates[:, 3:]], axis=1).reshape(-1)


def _check_closed(mechanism: Mechanism, p: PyTree, q: Array, v: Array) -> None:
    names = mechanism.labels().constraints
    if not names:
        return
    p = jax.tree.map(lambda x: jnp.asarray(x, float), p)
    left, rate = (np.asarray(x) for x in _openings(mechanism, p, q, v))
    worst = int(np.argmax(np.abs(left)))
    if not abs(left[worst]) <= OPEN * max(1.0, float(jnp.max(jnp.abs(q)))):
        raise InputError(
            f"assemble: the joint at {names[worst]!r} is open by {left[worst]:.3g}; draw beams where they "
            "meet, with points at= and on= in the axes of the ground as they are drawn, and give start= of "
            "rigid bodies"
        )
    worst = int(np.argmax(np.abs(rate)))
    if not abs(rate[worst]) <= OPEN * max(1.0, float(jnp.max(jnp.abs(v)))):
        raise InputError(
            f"assemble: the given velocities open the joint at {names[worst]!r} with {rate[worst]:.3g}; "
            "give velocities that fit, to all nodes of the beams that the joint holds"
        )


@functools.partial(jax.jit, static_argnames="mechanism")
def _openings(mechanism: Mechanism, p: PyTree, q: Array, v: Array) -> tuple[Array, Array]:
    """Residuals of the constraints, and their rates."""

    def rows(s: Array) -> Array:
        made: Array = mechanism.constraint(s, mechanism.tree.retract(q, s * v), p)
        return made

    made: tuple[Array, Array] = jax.jvp(rows, (jnp.zeros(()),), (jnp.ones(()),))
    return made


def dependent_beam_rows(mechanism: Mechanism, p: PyTree, q: Any) -> tuple[str, ...]:
    """Rows of joints that follow from others at the start, as of a rigid body held twice; those that
    elastic beams hold do not.
    """
    names = mechanism.labels().constraints
    if not names or is_traced((p, q)):
        return ()
    p = jax.tree.map(lambda x: jnp.asarray(x, float), p)
    kept = _independent(np.asarray(_directions(mechanism, p, jnp.asarray(q))))
    dropped = tuple(name for k, name in enumerate(names) if k not in kept)
    if dropped:
        warnings.warn(
            f"{len(dropped)} of {len(names)} constraints follow from the others at the start and are left "
            f"out ({', '.join(dropped)}); single reactions of these rows are given as zero",
            RedundantConstraintsWarning,
            stacklevel=3,
        )
    return dropped
