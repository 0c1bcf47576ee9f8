"""Angles of spatial hinges over many turns in absolute coordinates.

The poses of two bodies give the angle between them but for full turns. A hinge whose angle somebody reads
therefore has three entries of ``q`` behind all others: the rotation vector that the second body has turned
through against the first since the start, in the axes of the first. Every increment of the position adds
the rotation vector of its own turn, which is below half a turn; it needs no numbers of the mechanism. The
angle is that of the poses plus the full turns that bring it next to the sum along the axis: exact to
rounding whatever errors the sum has, as long as they stay below half a turn, and with the derivatives of
the poses.

Source: [GN (102)-(109)], ``theta = theta_i + theta_Delta``, committed every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.checks import is_traced
from nsjax.math import rotations, taken
from nsjax.multibody.joints import KINDS as JOINTS
from nsjax.multibody.loads import KINDS as LOADS
from nsjax.multibody.parts import Part
from nsjax.types import Array

ENTRIES = 3
"""Entries of ``q`` for a hinge whose turns are counted."""


def read_angles(parts: Sequence[Part], beyond: bool = False) -> tuple[str, ...]:
    """Names of the hinges whose angle something reads: springs, limits, laws, and who asks for its turns.

    A law of a force or torque sees the whole scene, and with it the angle of every hinge. A prescribed
    motion tells the turns of its hinge by itself.

    Args:
        beyond: those alone whose angle may leave the half turns that poses tell: not those held by limits
            within them.
    """
    loads = [(LOADS[x.kind], x) for x in parts if x.kind in LOADS]
    sees_all = any(kind.sees_scene(x) for kind, x in loads)
    driven = {x.option("joint") for kind, x in loads if kind.reads_angle(x)}
    driven |= {name for x in parts for name in x.option("joints") or ()}
    found = []
    for part in parts:
        kind = JOINTS.get(part.kind)
        if kind is None or not kind.winds or (part.option("motion") is not None and not kind.reads_angle):
            continue
        limits = [x for x in (part.numbers.lower, part.numbers.upper) if x is not None]
        if beyond and len(limits) == 2 and not is_traced(limits) and max(map(abs, limits)) < np.pi:
            continue
        if sees_all or limits or part.name in driven or part.option("turns") or kind.reads_angle:
            found.append(part.name)
    return tuple(found)


def labels(hinges: Sequence[str]) -> list[str]:
    """Names of the entries."""
    return [f"{name}.turned{k} [rad]" for name in hinges for k in (1, 2, 3)]


def _relative(turns: Array, first: np.ndarray, second: np.ndarray) -> Array:
    """Quaternions (k, 4) of second bodies against first ones; the ground is the body 0."""
    padded = jnp.concatenate([jnp.asarray([[1.0, 0.0, 0.0, 0.0]]), turns])
    pairs = taken(padded, first), taken(padded, second)
    made: Array = jax.vmap(lambda a, b: rotations.bilinear(rotations.RELATIVE, a, b))(*pairs)
    return made


def counted(sums: Array, before: Array, after: Array, first: np.ndarray, second: np.ndarray) -> Array:
    """Rotation vectors (k, 3) after an increment.

    Args:
        sums: before it (k, 3).
        before, after: quaternions of all bodies (n, 4).
        first, second: numbers of the bodies of each hinge, the ground being 0.

    Example:
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> from nsjax.math import rotations
        >>> from nsjax.multibody.coordinates.turn_counts import counted
        >>> rest = jnp.array([1.0, 0, 0, 0])
        >>> there = rotations.rotate(rest, jnp.array([0.0, 0.0, 2.0]))
        >>> gone = jnp.array([[0.0, 0.0, 5.0]])
        >>> counted(gone, rest[None], there[None], np.array([0]), np.array([1])).round(12).tolist()
        [[0.0, 0.0, 7.0]]
    """
    # full turns alone are read from the sums: they have no derivatives
    sums, before, after = (lax.stop_gradient(x) for x in (sums, before, after))
    old, new = (rotations.conjugate(_relative(x, first, second)) for x in (before, after))
    return sums + jax.vmap(rotations.rotation_between)(new, old)


def whole(angle: Any, near: Any) -> Array:
    """An angle plus the full turns that bring it next to another one."""
    gone = lax.stop_gradient(near - angle) / (2.0 * np.pi)
    made: Array = angle + 2.0 * np.pi * jnp.round(gone)
    return made
