"""Rows of contacts and joint limits of a spatial tree, from the screws of its velocities.

A velocity with the screw ``(w, u)`` moves the point ``x`` of a body behind it by ``u + w x x``: along the
direction ``n`` by ``n . u + (x x n) . w``. The rate of a gap between closest points of rigid bodies is the
velocity of one point against the other along the normal, so that no gap is differentiated through the
chain of bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from nsjax.linalg import matmul
from nsjax.multibody import spatial_vectors as space
from nsjax.multibody.frames import Scene
from nsjax.multibody.meetings import Meeting
from nsjax.multibody.parts import GROUND
from nsjax.multibody.spatial import Tree
from nsjax.types import Array, PyTree

if TYPE_CHECKING:
    from nsjax.multibody.mechanism import Mechanism


def has_rows(mechanism: Mechanism) -> bool:
    """Whether rows of all contacts are known: of a tree in space, without features that a step holds fixed
    (rates of their gaps are those of closest points where they touch only), and limits of joints whose
    coordinates stand in ``q``.
    """
    own, presence = mechanism.own, mechanism.presence
    found = bool(presence.contacts or presence.limits) and own.hold_limits
    return found and isinstance(mechanism.tree, Tree) and not mechanism.searched


def rows(mechanism: Mechanism, t: Array, q: Array, p: PyTree) -> tuple[Array, Array]:
    """Rows (nc, 1 + nt, nv) of all contacts and limits, and what they are at rest, see `System.rows`."""
    tree, d = mechanism.tree, 1 + mechanism.presence.tangents
    frames, spins, velocities = tree.seen(q, None, p)
    scene = mechanism.scene_of(t, q, None, p, frames)
    nv, found = spins.shape[0], []
    met = mechanism.met(scene, p)
    if met:
        found.append(_of_meetings(tree, scene, met, d, spins, velocities))
    limits = np.zeros((len(mechanism.presence.limits), d, nv))
    for k, (name, which) in enumerate(mechanism.presence.limits):
        limits[k, 0, mechanism.own.links[name].v] = 1.0 if which == "lower" else -1.0
    if len(limits):
        found.append(jnp.asarray(limits))
    wt = found[0] if len(found) == 1 else jnp.concatenate(found)
    return wt, jnp.zeros(wt.shape[:2])


def _of_meetings(
    tree: Tree, scene: Scene, met: list[Meeting], d: int, spins: Array, velocities: Array
) -> Array:
    """Rows (k, d, nv) of meetings."""
    counts = [jnp.size(x.gap) for x in met]
    both = list(zip(met, counts, strict=True))
    ways = [jnp.stack([_wide(y, n) for y in (x.normal, *x.tangents)[:d]], axis=2) for x, n in both]
    way, total = _side_by_side(ways), sum(counts)
    made: Any = None
    for side, sign in (("first", 1.0), ("second", -1.0)):
        bodies = [getattr(x, side) for x, n in both for _ in range(n)]
        if all(name == GROUND for name in bodies):
            continue
        point = "here" if side == "first" else "there"
        places = _side_by_side([_wide(getattr(x, point), n) for x, n in both])
        levers = space.cross(places[:, :, None], way)
        screws = jnp.concatenate([way, levers]).reshape(6, total * d)
        along = matmul(screws.T, jnp.concatenate([velocities, spins], axis=1).T).reshape(total, d, -1)
        moved = sign * tree.moves_of(bodies)[:, None, :] * along
        made = moved if made is None else made + moved
    return made if made is not None else jnp.zeros((total, d, spins.shape[0]))


def _wide(x: Any, n: int) -> Array:
    """As (3, n)."""
    x = space.array(x)
    return jnp.broadcast_to(x[:, None] if x.ndim == 1 else x, (3, n))


def _side_by_side(found: list[Array]) -> Array:
    return found[0] if len(found) == 1 else jnp.concatenate(found, axis=1)
