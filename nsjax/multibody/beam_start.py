"""Start of a mechanism with beams: beams as drawn or given; other rigid bodies follow from their joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.jaxtools.owned import compiled_for
from nsjax.linalg.elimination import independent
from nsjax.math import rotations
from nsjax.multibody.beams import nodes_of
from nsjax.multibody.start import (
    closed_position,
    closing_rates,
    drop_with_warning,
    given_coordinates,
    openings,
    pair_of,
    position_of,
    rate_of,
    turned_at,
)
from nsjax.multibody.topology import ENTRIES, free_link
from nsjax.types import Array, PyTree, is_traced, without_values

if TYPE_CHECKING:
    from nsjax.multibody.mechanism import Mechanism


def _drawn(mechanism: Mechanism, p: PyTree, start: Mapping[str, Any]) -> dict[str, Any]:
    """Starts of all nodes: that of their beam, which moves as one body, unless a node has its own."""
    found = dict(start)
    for part in mechanism.topology.all_of("beam"):
        whole, link = found.pop(part.name, None), free_link(part.name)
        xp = jnp if without_values((whole, p[part.name].points)) else np
        points = xp.asarray(p[part.name].points, float)
        pose, speed = np.array([0.0, 0, 0, 1, 0, 0, 0]), np.zeros(6)
        if whole is not None:
            place, rate = pair_of(whole, link)
            pose = pose if place is None else position_of(link, place, "start", xp)
            speed = speed if rate is None else rate_of(link, rate, "start", xp)
        turn = xp.asarray(rotations.matrix(jnp.asarray(pose[3:])))
        swing = xp.cross(xp.asarray(speed[3:])[None], points)
        places = pose[:3] + xp.sum(turn[None] * points[:, None, :], axis=2)
        rates = speed[:3] + xp.sum(turn[None] * swing[:, None, :], axis=2)
        for k, name in enumerate(nodes_of(part)):
            own = ((places[k], pose[3:]), xp.concatenate([rates[k], speed[3:]]))
            if name in found:
                given, rate = pair_of(found[name], link)
                own = (given, own[1] if rate is None else rate)
            found[name] = own
    return found


def _by_nodes(mechanism: Mechanism, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given starts, with the nodes in place of the names of ends and stations of beams. Raises
    `InputError` for a node that is given by two names.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        node = mechanism.topology.other_names.get(name, name)
        if node in found:
            raise InputError(f"start: {name!r} is the node {node!r}, which is given, too; give it once")
        found[node] = value
    return found


def beam_start(
    mechanism: Mechanism, p: PyTree, start: Mapping[str, Any], guess: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Poses and velocities of all bodies and nodes, at their centres of mass. Beams start as drawn or
    given; rigid bodies without a given start follow from their joints, as do velocities that are not given.
    Raises an `InputError` that names a joint that is open, or that the velocities open.
    """
    start, guess = (_by_nodes(mechanism, x) for x in (start, guess))
    drawn = _drawn(mechanism, p, start)
    near = {name: x for name, x in guess.items() if name not in drawn}
    _, v, held, driven = given_coordinates(mechanism, drawn, "start")
    q, *_ = given_coordinates(mechanism, {**near, **drawn}, "guess" if near else "start")
    q, v = _at_centres(mechanism, p, jnp.asarray(q), jnp.asarray(v))
    if mechanism.tree.spans or mechanism.topology.counted:
        q = _with_history(mechanism, q)
    if mechanism.labels().constraints:
        q, v = _closed(mechanism, p, q, v, held, _ways(mechanism, start, driven, q))
    if mechanism.topology.counted:
        q = _with_turns(mechanism, p, q)
    if is_traced((p, q, v)):
        return q, v
    _check_closed(mechanism, p, q, v)
    return np.asarray(q), np.asarray(v)


def _ways(mechanism: Mechanism, start: Mapping[str, Any], driven: np.ndarray, q: Array) -> Array:
    """Directions (nv, k) of velocities that are not given, in which beams move like rigid bodies."""
    link, free = free_link(""), np.diag(1.0 * ~driven)[:, ~driven]
    found = [jnp.asarray(free)]
    poses = mechanism.tree.poses(q)
    turns = jax.vmap(rotations.matrix)(poses[:, 3:])
    for part in mechanism.topology.all_of("beam"):
        names = (part.name, *nodes_of(part))
        if any(x in start and pair_of(start[x], link)[1] is not None for x in names):
            continue
        first = mechanism.tree.places[part.name].start - 1
        own = np.isin(np.arange(len(poses)), np.arange(first, first + part.option("nodes")))
        swing = jnp.cross(jnp.eye(3)[None], poses[:, None, :3])  # velocities for unit spins
        moved = jnp.broadcast_to(jnp.eye(3), turns.shape)
        rigid = jnp.concatenate(
            [
                jnp.concatenate([moved, jnp.zeros_like(moved)], axis=2),
                jnp.concatenate([swing, turns], axis=2),  # columns of A' are spins in body axes
            ],
            axis=1,
        )
        found.append(jnp.swapaxes(rigid * own[:, None, None], 1, 2).reshape(-1, 6))
    return jnp.concatenate(found, axis=1)


def _closed(
    mechanism: Mechanism, p: PyTree, q: Array, v: Array, held: np.ndarray, ways: Array
) -> tuple[Array, Array]:
    """Position and velocity with the joints closed, as far as the coordinates not given can close them."""
    p = jax.tree.map(lambda x: jnp.asarray(x, float), p)
    if not held.all():
        q, _ = closed_position(mechanism, p, q, ~held)
    driven = mechanism.presence.motions or any(x.option("path") for x in mechanism.topology.parts)
    moving = driven or is_traced(v) or bool(np.any(v))
    if ways.shape[1] and moving:
        v, _ = closing_rates(mechanism, 0.0, p, q, v, ways)
    return q, v


@compiled_for("mechanism")
def _with_history(mechanism: Mechanism, q: Array) -> Array:
    """Position with the entries of the Gauss points of incremental elements, and of turn counts at zero."""
    made: Array = mechanism.tree.with_points(q)
    return jnp.concatenate([made, jnp.zeros(ENTRIES * len(mechanism.topology.counted))])


@compiled_for("mechanism")
def _with_turns(mechanism: Mechanism, p: PyTree, q: Array) -> Array:
    """Position with the turn counts of hinges set to the angles of the poses, below half a turn."""
    names = mechanism.topology.counted
    none = jnp.zeros(ENTRIES * len(names))
    bare = jnp.concatenate([q[: q.shape[0] - len(none)], none])
    scene = mechanism.scene(jnp.zeros(()), bare, None, p)
    return jnp.concatenate([bare[: q.shape[0] - len(none)], *turned_at(scene, p, names)])


@compiled_for("mechanism")
def _at_centres(mechanism: Mechanism, p: PyTree, q: Array, v: Array) -> tuple[Array, Array]:
    """Poses and velocities of the centres of mass, from those of the origins of the bodies."""
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
    left, _, rate = (np.asarray(x) for x in openings(mechanism, p, q, v))
    worst = int(np.argmax(np.abs(left)))
    # largest opening of a joint at the start [m, rad]: the error of positions with ten printed digits
    opening = 1e-9
    if not abs(left[worst]) <= opening * max(1.0, float(jnp.max(jnp.abs(q)))):
        raise InputError(
            f"assemble: the joint at {names[worst]!r} is open by {left[worst]:.3g} at the start; give "
            "nodes of beams that meet there, at= and on= in the axes of the ground, and start= or guess= "
            "of rigid bodies"
        )
    worst = int(np.argmax(np.abs(rate)))
    if not abs(rate[worst]) <= opening * max(1.0, float(jnp.max(jnp.abs(v)))):
        raise InputError(
            f"assemble: the given velocities open the joint at {names[worst]!r} with {rate[worst]:.3g}; "
            "give compatible velocities to all nodes of the beams at this joint"
        )


def dependent_beam_rows(mechanism: Mechanism, p: PyTree, q: Any) -> tuple[str, ...]:
    """Names of redundant joint rows at the start; rows on both ends of a beam are independent."""
    names = mechanism.labels().constraints
    if not names or without_values((p, q)):
        return ()
    p = jax.tree.map(lambda x: jnp.asarray(x, float), p)
    still = np.zeros(mechanism.topology.sizes[1])
    kept = independent(np.asarray(openings(mechanism, p, jnp.asarray(q), still)[1]))
    return drop_with_warning(names, kept, " at the start")
