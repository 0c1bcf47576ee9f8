"""Angles of spatial hinges over many turns in absolute coordinates.

The poses of two bodies give the angle between them up to full turns. A hinge whose angle is read therefore
has three entries of ``q`` after all others: the accumulated rotation vector of the second body relative to
the first since the start, in the axes of the first. Every increment of the position adds the rotation
vector of its own rotation, which is below half a turn; this needs no params of the mechanism. The angle is
that of the poses, plus the full turns that bring it nearest to the accumulated angle about the axis. It is
exact to rounding as long as the error of the accumulated angle stays below half a turn, and it has the
derivatives of the poses.

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
    """Names of the hinges whose angle is read: by springs, limits or laws, or because ``turns`` is given.

    A law of a force or torque sees the whole scene, and so the angle of every hinge. A prescribed motion
    gives the turns of its hinge itself.

    Args:
        parts: all parts of the mechanism.
        beyond: whether to leave out hinges whose two limits keep the angle within half a turn to either
            side, where the poses alone give it.
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
    """Names of the entries of ``q`` of counted hinges."""
    return [f"{name}.turned{k} [rad]" for name in hinges for k in (1, 2, 3)]


def _relative(turns: Array, first: np.ndarray, second: np.ndarray) -> Array:
    """Quaternions (k, 4) of second bodies relative to first bodies; the ground is body 0."""
    padded = jnp.concatenate([jnp.asarray([[1.0, 0.0, 0.0, 0.0]]), turns])
    pairs = taken(padded, first), taken(padded, second)
    made: Array = jax.vmap(lambda a, b: rotations.bilinear(rotations.RELATIVE, a, b))(*pairs)
    return made


def counted(sums: Array, before: Array, after: Array, first: np.ndarray, second: np.ndarray) -> Array:
    """Accumulated rotation vectors (k, 3) of hinges after an increment of the position.

    Args:
        sums: accumulated rotation vectors (k, 3) before the increment [rad].
        before, after: quaternions (n, 4) of all bodies before and after the increment.
        first, second: numbers of the bodies of each hinge; the ground is 0.

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
    # only full turns are read from the sums, which therefore need no derivatives
    sums, before, after = (lax.stop_gradient(x) for x in (sums, before, after))
    old, new = (rotations.conjugate(_relative(x, first, second)) for x in (before, after))
    return sums + jax.vmap(rotations.rotation_between)(new, old)


def whole(angle: Any, near: Any) -> Array:
    """An angle plus the full turns that bring it nearest to another angle ``near``."""
    gone = lax.stop_gradient(near - angle) / (2.0 * np.pi)
    made: Array = angle + 2.0 * np.pi * jnp.round(gone)
    return made
