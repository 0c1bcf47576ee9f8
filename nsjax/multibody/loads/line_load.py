"""Distributed loads along beams."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.core.errors import check_known
from nsjax.math import rotations
from nsjax.multibody.elements import kind_of, line_forces
from nsjax.multibody.loads.load_kind import LoadKind
from nsjax.multibody.numbers import Load
from nsjax.multibody.parts import Part, made, number, user_value
from nsjax.types import Array, Fn, PyTree


def line_load(
    name: str, beam: str, value: Any = None, *, follower: bool = False, law: Fn | None = None,
    own: Any = None,
) -> Part:  # fmt: skip
    """A distributed force along a beam, per undeformed length [N/m].

    Between the nodes the force per length ``f`` is interpolated linearly. An element of length ``l`` has
    the consistent nodal forces ``l/6 (2 f_1 + f_2)`` at its first node and ``l/6 (f_1 + 2 f_2)`` at its
    second. In elements of three nodes ``f`` and the shape functions are quadratic.

    Args:
        name: of the load.
        beam: name of the beam.
        value: force per length [N/m] in the axes of the ground: (3,) for the whole beam, or (n + 1, 3) at
            the nodes of its n elements.
        follower: whether the force is given in the axes of the nodes and turns with them. In the undeformed
            beam these are the axes of the ground.
        law: ``(t, own) -> (3,) or (n + 1, 3)`` [N/m], in place of ``value``.
        own: numbers for ``law``, any pytree.

    Raises:
        InputError: if value and law are both given, or neither, and for a wrong shape; by `assemble`, for
            an unknown beam or a number of values that is not that of its nodes.

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


def _of_beam(part: Part, beams: dict[str, Part]) -> Part:
    """The load with the number of nodes of its beam. Raises `InputError` for an unknown beam, and for
    another number of values than nodes.
    """
    (name,) = part.bodies
    check_known(f"line_load {part.name!r}: unknown beam", name, beams)
    nodes, given = beams[name].option("nodes"), np.shape(part.numbers.value)
    if len(given) == 2 and given[0] != nodes:
        raise InputError(
            f"line_load {part.name!r}: {given[0]} values along {name!r}, which has {nodes} nodes; give one "
            "for each, or one for all"
        )
    return dataclasses.replace(part, options=(*part.options, ("nodes", nodes)))


def _on_nodes(topology: Any, tree: Any, part: Part, t: Array, q: Array, p: PyTree) -> Array:
    """Nodal forces of the load in the array of all bodies (n, 6); the moments are zero."""
    poses, place, x = tree.poses(q), tree.places[part.bodies[0]], p[part.name]
    first, n = place.start - 1, place.stop - place.start
    given = x.value
    if part.option("law") is not None:
        given = user_value(part, "law", "t, own", t, x.own, shapes=((3,), (n, 3)))
    value = jnp.broadcast_to(jnp.asarray(given, float), (n, 3))
    if part.option("follower"):
        turns = jax.vmap(rotations.matrix)(poses[first : first + n, 3:])
        value = jnp.sum(turns * value[:, None, :], axis=2)
    line = kind_of(topology.of[part.bodies[0]]).line
    if line is not None:
        chains = dict(zip((beam.name for beam, *_ in tree.spans), tree.ready(p).chains, strict=True))
        found = line(chains[part.bodies[0]], value)
    else:
        found = line_forces(tree.ready(p).elastic.length[first : first + n - 1], value)
    return jnp.pad(found, ((first, poses.shape[0] - first - n), (0, 3)))


LINE_LOAD = LoadKind(name="line_load", along=_on_nodes, of_beam=_of_beam)
