"""Entries of an array at constant indices without a gather: its transpose is a scatter, and on a CPU a
scatter splits the one kernel of a time loop.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax.types import Array

SLICES = 64
"""Largest number of slices that replace a gather: each adds two operations to the program."""


TERMS = 150
"""Largest number of terms that `picked` sums for each entry of a matrix. Rotations with tangents in three
directions have 27 entries, and the compiler makes calls of a library, which split the one kernel of a time
loop, of sums of more than 4,096 terms.
"""


def taken(x: Array, places: np.ndarray) -> Array:
    """``x[places]`` along the first axis, as slices of neighbours and repetitions of one entry.

    Args:
        x (n, ...): the array.
        places (m,): indices of the entries, constants that are not traced.

    Returns:
        The entries (m, ...). Indices that form more than `SLICES` runs of neighbours are gathered.

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> from nsjax.math import taken
        >>> taken(jnp.arange(5.0), np.array([3, 4, 0, 0])).tolist()
        [3.0, 4.0, 0.0, 0.0]
    """
    runs = _runs([int(k) for k in places])
    if len(runs) > SLICES:
        return x[np.asarray(places)]
    found = []
    for first, step, count in runs:
        part = x[first : first + count] if step else x[first : first + 1]
        found.append(part if step or count == 1 else jnp.broadcast_to(part, (count, *x.shape[1:])))
    return jnp.concatenate(found) if found else x[:0]


def picked(x: Array, places: np.ndarray) -> Array:
    """``x[..., places]`` in two operations for any order, as sums with one nonzero term. For short axes:
    every entry of the result reads a row of ``n``. Matrices with long ones are `taken`.

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> from nsjax.math import picked
        >>> picked(jnp.arange(5.0), np.array([3, 0, 4])).tolist()
        [3.0, 0.0, 4.0]
    """
    if len(places) == 0 or np.all(np.diff(places) == 1):
        first = int(places[0]) if len(places) else 0
        return x[..., first : first + len(places)]
    if x.ndim > 2 and x.shape[-1] * len(places) > TERMS:
        return jnp.moveaxis(taken(jnp.moveaxis(x, -1, 0), places), 0, -1)
    here = np.arange(x.shape[-1])[:, None] == places
    return jnp.sum(jnp.where(here, x[..., :, None], 0.0), axis=-2)


def _runs(places: list[int]) -> list[tuple[int, int, int]]:
    """First index, step (1 or 0) and length of each run."""
    runs: list[tuple[int, int, int]] = []
    for place in places:
        if runs:
            first, step, count = runs[-1]
            if count == 1 and place - first in (0, 1):
                runs[-1] = first, place - first, 2
                continue
            if count > 1 and place == first + step * count:
                runs[-1] = first, step, count + 1
                continue
        runs.append((place, 1, 1))
    return runs
