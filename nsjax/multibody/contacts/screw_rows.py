"""Rows of contacts of a spatial tree, from the screws of its velocities.

A unit generalised velocity with the screw ``(w, u)`` gives the point ``x`` of a body that it moves the
velocity ``u + w x x``, whose component along ``n`` is ``n . u + (x x n) . w``. The rate of a gap between
closest points of rigid bodies is the relative velocity of these points along the normal, so that no gap is
differentiated through the chain of bodies. Gaps of features that a step holds fixed have another rate;
their rows are derivatives of these gaps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core.operators import jacobian
from nsjax.linalg import matmul
from nsjax.math import taken
from nsjax.multibody.contacts.gap_functions import Meeting, flat
from nsjax.multibody.contacts.named_contacts import NamedContacts
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.spatial import SpatialTree
from nsjax.multibody.parts import GROUND
from nsjax.types import Array, PyTree


def rows(
    tree: SpatialTree, named: NamedContacts, meetings: list[Meeting], tangents: int,
    screws: tuple[Array, Array], p: PyTree,
) -> Array:  # fmt: skip
    """Rows (nc, 1 + tangents, nv) of gap rates and slip velocities by the generalised velocities.

    Args:
        tree: tree of the bodies.
        named: named contacts.
        meetings: contact points and normals, piece by piece.
        tangents: number of tangents of each contact.
        screws: spins (nv, 3) and velocities (nv, 3) of all screws.
        p: refreshed params.
    """
    (spins, velocities), d = screws, 1 + tangents
    columns = jnp.concatenate([velocities, spins], axis=1).T
    if not meetings:
        return jnp.zeros((0, d, spins.shape[0]))
    return _of_meetings(tree, named, meetings, d, columns, p)


def _of_meetings(
    tree: SpatialTree, named: NamedContacts, meetings: list[Meeting], d: int, columns: Array, p: PyTree
) -> Array:
    """Rows (k, d, nv) from the columns (6, nv) of all screws."""
    counts = [jnp.size(x.gap) for x in meetings]
    both, total = list(zip(meetings, counts, strict=True)), sum(counts)
    ways = [jnp.stack([space.many(y, n) for y in (x.normal, *x.tangents)[:d]], axis=2) for x, n in both]
    way = named.in_order(ways, 1)
    made: Any = 0.0
    for side, point, sign in (("first", "here", 1.0), ("second", "there", -1.0)):
        moves = _moved(tree, named, meetings, side, p)
        if moves is None:
            continue
        places = named.in_order([space.many(getattr(x, point), n) for x, n in both], 1)
        screws = jnp.concatenate([way, space.cross(places[:, :, None], way)]).reshape(6, total * d)
        along = matmul(screws.T, columns).reshape(total, d, -1)
        made = made + sign * moves[:, None, :] * along
    return jnp.asarray(made)


def with_held_gaps(wt: Array, named: NamedContacts, moved: Callable[[Array], Scene], p: PyTree) -> Array:
    """Rows (nc, d, nv) of `rows` with the derivatives of the gaps as normal rows where the rate of a gap is
    not that of the contact points.

    Args:
        wt: rows of the named contacts.
        named: named contacts.
        moved: the bodies after an increment (nv,) of the coordinates.
        p: refreshed params.
    """
    if all(named.at_points):
        return wt
    held = [not x for x in named.at_points]
    some, count = named.some(held), sum(named.rows)
    own = jacobian(lambda x: flat(some.gaps(moved(x), p)), jnp.zeros(wt.shape[2]), sum(some.rows))
    places, parts = np.arange(count), named.numbers
    places[np.concatenate([x for x, keep in zip(parts, held, strict=True) if keep])] = count + np.arange(
        sum(some.rows)
    )
    normal = taken(jnp.concatenate([wt[:, 0], own]), places)
    return jnp.concatenate([normal[:, None], wt[:, 1:]], axis=1)


def _moved(tree: SpatialTree, named: NamedContacts, meetings: list[Meeting], side: str, p: PyTree) -> Any:
    """Mask (k, nv): whether each generalised velocity moves the body on a side of each contact; None where
    all of these bodies are the ground.
    """
    bodies = [x.bodies(side) for x in meetings]
    if all(name == GROUND for own in bodies for name in own):
        return None
    if not named.few:
        return tree.moves_of(named.sorted([name for own in bodies for name in own]))
    found = []
    for piece, own in zip(named.pieces, bodies, strict=True):
        moves: Any = tree.moves_of(own)
        choice = named.choice(piece, p)
        if choice is not None:
            at = choice.which[:, None] * piece.rows + np.arange(piece.rows)  # type: ignore[union-attr]
            moves = jnp.asarray(moves)[at.reshape(-1)]
        found.append(jnp.asarray(moves))
    return found[0] if len(found) == 1 else jnp.concatenate(found)
