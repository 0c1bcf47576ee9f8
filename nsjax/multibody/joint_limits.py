"""Limits of joints and stops of tendons as contacts: their gaps, and their rows in joint coordinates.

The gap of a limit on an entry of ``q`` is the difference of this entry and a bound; its row is constant.
The coordinate of a joint that closes a loop, and the length of a tendon, are functions of the position: the
row of their limit is the derivative of this function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.operators import jacobian
from nsjax.math import taken
from nsjax.multibody.contacts import gap_functions
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.types import Array, PyTree

if TYPE_CHECKING:
    from nsjax.multibody.mechanism import Mechanism


def gaps(mechanism: Mechanism, scene: Scene, q: Array, p: PyTree) -> list[Any]:
    """Gaps of all limits in their order, as scalars or arrays [m or rad]."""
    own = mechanism.own
    others = [_gap(scene, name, which, p) for name, which in own.limits_apart]
    if not own.limits_held:
        return others
    found = [own.gaps(q, mechanism.own_numbers(p)), *others]
    return found if own.order is None else [taken(gap_functions.flat(found), own.order)]


def _gap(scene: Scene, name: str, which: str, p: PyTree) -> Any:
    x, bound = scene.coordinates(name)[0], getattr(p[name], which)
    return plane.plus(x, -bound) if which == "lower" else plane.plus(bound, plane.minus(x))


def rows(mechanism: Mechanism, t: Array, q: Array, p: PyTree, width: int) -> tuple[Any, Any]:
    """Rows (k, width, nv) of all limits in their order, and their rates (k, width) at zero generalised
    velocity; the tangential rows are zero.
    """
    own, tree = mechanism.own, mechanism.tree
    nv, count = mechanism.topology.sizes[1], len(own.limits_apart)
    held = np.zeros((len(own.limits_held), nv))
    for k, (name, which) in enumerate(own.limits_held):
        held[k, own.links[name].v] = 1.0 if which == "lower" else -1.0
    wt, offset = _placed(held, width), np.zeros((len(held), width))
    if not count:
        return wt, offset

    def apart(t: Array, q: Array) -> Array:
        scene = mechanism.scene(t, q, None, p)
        return gap_functions.flat([_gap(scene, name, which, p) for name, which in own.limits_apart])

    moved = jacobian(lambda xi: apart(t, tree.retract(q, xi)), jnp.zeros(nv, q.dtype), count)
    rest = jax.jvp(lambda s: apart(s, q), (t,), (jnp.ones_like(t),))[1]
    found = (jnp.concatenate(x) for x in ((wt, _placed(moved, width)), (offset, _placed(rest, width))))
    made = tuple(x if own.order is None else taken(x, own.order) for x in found)
    return made[0], made[1]


def _placed(x: Any, width: int) -> Any:
    """Rows (k, ...) as the normal rows of contacts (k, width, ...); the tangential rows are zero."""
    pad = np.pad if isinstance(x, np.ndarray) else jnp.pad
    return pad(x[:, None], [(0, 0), (0, width - 1), *[(0, 0)] * (x.ndim - 1)])
