"""Highest points of terrain in blocks of cells: a lower bound of the gap between terrain and a shape."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.multibody.contacts.heightfields import Heightfield
from nsjax.types import Array, record

BLOCKS = 16
"""Largest number of blocks along an edge of terrain: a bound compares with 256 numbers at most."""


@record()
class BlockedHeightfield(Heightfield):
    """Terrain with the highest points ``tops`` (k, l) of its blocks [m], their edges ``width`` (2,) and the
    smaller spacing of the grid ``spacing`` () [m].
    """

    tops: Array
    width: Array
    spacing: Array


def with_blocks(x: Any) -> Any:
    """Terrain with its blocks; other shapes as they are."""
    if not isinstance(x, Heightfield):
        return x
    heights = lax.stop_gradient(jnp.asarray(x.heights, float))
    cells = np.array(heights.shape) - 1
    size = -(-cells // BLOCKS)
    many = -(-cells // size)
    highest = jnp.maximum(heights[:-1], heights[1:])
    highest = jnp.maximum(highest[:, :-1], highest[:, 1:])
    lack = [(0, int(k)) for k in many * size - cells]
    filled = jnp.pad(highest, lack, constant_values=-jnp.inf)
    tops = jnp.max(filled.reshape(many[0], size[0], many[1], size[1]), axis=(1, 3))
    half = lax.stop_gradient(jnp.stack([jnp.asarray(k, float) for k in (x.half_length, x.half_width)]))
    spacing: Array = 2.0 * half / cells
    own = {k: getattr(x, k) for k in ("heights", "half_length", "half_width", "at", "turned")}
    return BlockedHeightfield(**own, tops=tops, width=spacing * size, spacing=jnp.min(spacing))


def above(terrain: BlockedHeightfield, centre: Array, wide: Array, radius: Array) -> Array:
    """Lower bound of the gap of a shape to terrain [m].

    Of the features of the terrain, those within ``room = radius + spacing`` of the shape, measured along
    both horizontal axes, lie below the highest top of the blocks there; all others are farther away than
    ``room``. A shape beside the grid has no contact. Hence::

        gap >= max(beside, min(room, lowest point of the shape - highest top))

    Args:
        terrain: with blocks.
        centre: of the shape (3,) in the axes of the terrain [m].
        wide: half widths (3,) of the shape along these axes [m].
        radius: of a sphere around the shape [m].
    """
    half = jnp.stack([jnp.asarray(k, float) for k in (terrain.half_length, terrain.half_width)])
    beside = jnp.max(jnp.abs(centre[:2]) - wide[:2] - half)
    room, over = radius + terrain.spacing, []
    for k, many in enumerate(terrain.tops.shape):
        low = np.arange(many) * terrain.width[k] - half[k]
        away = jnp.maximum(low - centre[k], centre[k] - low - terrain.width[k])
        over.append(away <= wide[k] + room)
    top = jnp.max(jnp.where(over[0][:, None] & over[1][None, :], terrain.tops, -jnp.inf))
    height = centre[2] - wide[2] - top
    return jnp.maximum(beside, jnp.minimum(room, height))
