"""Numbers of all bodies, joints and elements in arrays, from the numbers of the parts by name."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import ALGEBRA
from nsjax.multibody.flexible.elements import kind_of as element_kind
from nsjax.multibody.flexible.elements.pieces import Elastic, Piece, joined
from nsjax.multibody.joints import kind_of
from nsjax.multibody.numbers import side_by_side
from nsjax.multibody.parts import Part
from nsjax.multibody.topology import Topology
from nsjax.types import Array, PyTree, record


@record()
class NumberArrays:
    """Numbers of all bodies, joints and beam elements as arrays.

    Args:
        mass, inertia, com: masses (n,) [kg], inertias (n,) or (n, 3, 3) [kg m^2] and mass centres (n, 2) or
            (n, 3) [m] of the bodies.
        joints: numbers of each group of equal joints; the first axis of each number counts the joints.
        elastic: beam elements; None without beams.
        chains: numbers of elements of other kinds, beam by beam.
    """

    mass: Array
    inertia: Array
    com: Array
    joints: tuple[Any, ...]
    elastic: Elastic | None = None
    chains: tuple[Any, ...] = ()


def folded(topology: Topology, groups: tuple[tuple[Part, ...], ...], p: PyTree) -> NumberArrays:
    """Numbers of a mechanism in absolute coordinates, stacked in arrays.

    Args:
        topology: of the mechanism.
        groups: groups of equal joints.
        p: params by the names of the parts.
    """
    d, pieces, coms = topology.dimension, [], []
    for part in topology.all_of("body", "beam"):
        x = p[part.name]
        if part.kind == "beam":
            pieces.append(element_kind(part).piece(x, part))
            coms.append(jnp.zeros((part.option("nodes"), d)))
            continue
        inertia = plane.value(x.inertia) if d == 2 else jnp.asarray(space.inertia_matrix(x.inertia), float)
        mass = jnp.asarray(x.mass, float)
        pieces.append(Piece(mass=mass[None], inertia=inertia[None], elastic=None))
        coms.append(ALGEBRA[d].array(ALGEBRA[d].vector(x.com))[None])
    return NumberArrays(
        mass=jnp.concatenate([x.mass for x in pieces]),
        inertia=jnp.concatenate([x.inertia for x in pieces]),
        com=jnp.concatenate(coms),
        joints=tuple(side_by_side([_filled(p[part.name], part, d) for part in group]) for group in groups),
        elastic=joined(pieces),
        chains=tuple(x.own for x in pieces if x.own is not None),
    )


def _filled(numbers: Any, part: Part, dimension: int) -> Any:
    """Numbers of a joint with points as vectors and defaults for None, so that joints can be stacked."""
    a = ALGEBRA[dimension]
    turned = numbers.turned
    if turned is None and kind_of(part).framed:
        turned = 0.0 if dimension == 2 else jnp.zeros(3)
    axis, first = numbers.axis, kind_of(part).first_axis
    if axis is None and first is not None:
        axis = jnp.asarray(first[:dimension])
    return type(numbers)(
        at=a.array(a.vector(numbers.at)), on=a.array(a.vector(numbers.on)),
        axis=None if axis is None else jnp.asarray(axis, float), turned=turned,
        second_axis=None if numbers.second_axis is None else jnp.asarray(numbers.second_axis, float),
        length=numbers.length, own=numbers.own,
    )  # fmt: skip
