"""Loads along beams."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.math import rotations
from nsjax.multibody.elastic import line_forces
from nsjax.multibody.incremental import quadratic_forces
from nsjax.multibody.numbers import Load
from nsjax.multibody.parts import Part, made, number
from nsjax.multibody.topology import Topology
from nsjax.types import Array, Fn, PyTree


def line_load(
    name: str, beam: str, value: Any = None, *, follower: bool = False, law: Fn | None = None,
    own: Any = None,
) -> Part:  # fmt: skip
    """A force along a beam, per length as it is drawn [N/m].

    Linear between the nodes, and carried by them with the linear shapes of the element: ``l/6 (2 f_1 +
    f_2)`` at the first, ``l/6 (f_1 + 2 f_2)`` at the second; of elements of three nodes quadratic, with
    theirs.

    Args:
        beam: its name.
        value: (3,) of the whole beam, or (n + 1, 3) at its nodes, in the axes of the ground.
        follower: in the axes of the nodes, which are those of the ground where the beam is drawn, and turn
            with them.
        law: ``(t, own) -> (3,) or (n + 1, 3)`` in place of a value.
        own: numbers for ``law``.

    Raises:
        InputError: for value and law at once, and for a shape that is neither.

    Example:
        >>> from nsjax.multibody import line_load
        >>> line_load("snow", "arm", (0.0, 0.0, -2.0)).bodies
        ('arm',)
    """
    if (value is None) == (law is None):
        raise InputError(f"line_load {name!r}: give a value or a law, one of them")
    value = number("line_load", name, "value", value)
    if value is not None and not (np.shape(value) == (3,) or np.shape(value)[1:] == (3,)):
        raise InputError(
            f"line_load {name!r}: value has shape {np.shape(value)}; give (3,), or (n + 1, 3) at all nodes"
        )
    kept = Load(value=value, own=own)
    return made("line_load", name, (beam,), kept, follower=follower, law=law)


def _of_elements(topology: Topology, tree: Any, beam: str, p: PyTree) -> Array:
    """Lengths of the elements of an incremental beam."""
    chains = dict(zip((part.name for part, *_ in tree.spans), tree.ready(p).chains, strict=True))
    return jnp.sum(chains[beam].drawn.weight, axis=1)


def line_wrenches(topology: Topology, tree: Any, t: Array, q: Array, p: PyTree) -> Array:
    """Of all loads along beams, on all bodies (nv,)."""
    poses = tree.poses(q)
    total = jnp.zeros((poses.shape[0], 6))
    for part in topology.all_of("line_load"):
        place, x, law = tree.places[part.bodies[0]], p[part.name], part.option("law")
        first, n = place.start - 1, place.stop - place.start
        given = x.value if law is None else law(t, x.own)
        value = jnp.broadcast_to(jnp.asarray(given, float), (n, 3))
        if part.option("follower"):
            turns = jax.vmap(rotations.matrix)(poses[first : first + n, 3:])
            value = jnp.sum(turns * value[:, None, :], axis=2)
        if topology.of[part.bodies[0]].option("incremental") == 3:
            found = quadratic_forces(_of_elements(topology, tree, part.bodies[0], p), value)
        else:
            found = line_forces(tree.ready(p).elastic.length[first : first + n - 1], value)
        total = total + jnp.pad(found, ((first, poses.shape[0] - first - n), (0, 3)))
    return total.reshape(-1)
