"""Where a mechanism with beams starts: as drawn, or as given."""

from __future__ import annotations

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
        points = jnp.asarray(p[part.name].points, float)
        pose, speed = np.array([0.0, 0, 0, 1, 0, 0, 0]), np.zeros(6)
        if whole is not None:
            place, rate = _pair(whole, link)
            xp = jnp if is_traced(whole) else np
            pose = _position(link, 3, place, "start", xp)
            speed = speed if rate is None else _rate(link, 6, rate, "start", xp)
        turn = rotations.matrix(jnp.asarray(pose[3:]))
        swing = jnp.cross(jnp.broadcast_to(jnp.asarray(speed[3:]), points.shape), points)
        places = pose[:3] + jnp.sum(turn[None] * points[:, None, :], axis=2)
        rates = speed[:3] + jnp.sum(turn[None] * swing[:, None, :], axis=2)
        for k, name in enumerate(nodes_of(part)):
            own = ((places[k], pose[3:]), jnp.concatenate([rates[k], speed[3:]]))
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
    com = mechanism.tree.ready(p).com
    poses, rates = jnp.asarray(q).reshape(-1, 7), jnp.asarray(v).reshape(-1, 6)
    turn = jax.vmap(rotations.matrix)(poses[:, 3:])
    swing = jnp.cross(rates[:, 3:], com)
    places = poses[:, :3] + jnp.sum(turn * com[:, None, :], axis=2)
    speeds = rates[:, :3] + jnp.sum(turn * swing[:, None, :], axis=2)
    q = jnp.concatenate([places, poses[:, 3:]], axis=1).reshape(-1)
    v = jnp.concatenate([speeds, rates[:, 3:]], axis=1).reshape(-1)
    if is_traced((p, q, v)):
        return q, v
    _check_closed(mechanism, p, q, v)
    return np.asarray(q), np.asarray(v)


def _check_closed(mechanism: Mechanism, p: PyTree, q: Array, v: Array) -> None:
    names = mechanism.labels().constraints
    if not names:
        return
    p = jax.tree.map(lambda x: jnp.asarray(x, float), p)

    def rows(t: Any, q: Array) -> Array:
        made: Array = mechanism.constraint(t, q, p)
        return made

    zero = jnp.zeros(())
    left = np.asarray(rows(zero, q))
    worst = int(np.argmax(np.abs(left)))
    if not abs(left[worst]) <= OPEN * max(1.0, float(jnp.max(jnp.abs(q)))):
        raise InputError(
            f"assemble: the joint at {names[worst]!r} is open by {left[worst]:.3g}; draw beams where they "
            "meet, with points at= and on= in the axes of the ground as they are drawn, and give start= of "
            "rigid bodies"
        )
    left = np.asarray(jax.jvp(rows, (zero, q), (jnp.ones(()), _moved(mechanism, q, v)))[1])
    worst = int(np.argmax(np.abs(left)))
    if not abs(left[worst]) <= OPEN * max(1.0, float(jnp.max(jnp.abs(v)))):
        raise InputError(
            f"assemble: the given velocities open the joint at {names[worst]!r} with {left[worst]:.3g}; "
            "give velocities that fit, to all nodes of the beams that the joint holds"
        )


def _moved(mechanism: Mechanism, q: Array, v: Array) -> Array:
    """Rate of ``q``."""
    made: Array = jax.jvp(lambda s: mechanism.tree.retract(q, s * v), (jnp.zeros(()),), (jnp.ones(()),))[1]
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
