"""Moments of inertia of a URDF that the package `mujoco` refuses, and that other programs accept.

CAD exports contain rounded moments, and files written by hand contain zeros. A link whose largest moment
exceeds the sum of the two others gets the nearest moments that a body can have; a link on a joint may be a
point mass.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from nsjax.multibody.files.refusals import MASSLESS

IMPOSSIBLE = r"A \+ B >= C"
"""Pattern of the package's message about moments that violate the triangle inequality."""

EMPTY = rf"{MASSLESS}|positive eigenvalues"
"""Pattern of the package's messages about links without moments."""

NAMED = r"Element name '([^']+)'"


def compiled_as_given(spec: Any, error: Exception) -> tuple[Any, list[str]] | Exception:
    """The model with corrected moments of its links, and sentences; or the error that remains.

    Args:
        spec: `mujoco.MjSpec`, which is changed.
        error: error of its first compilation.
    """
    points: list[str] = []
    balanced = False
    while True:
        said = str(error)
        named = re.search(NAMED, said)
        if re.search(IMPOSSIBLE, said) and not balanced:
            spec.compiler.balanceinertia, balanced = True, True
        elif re.search(EMPTY, said) and named and named.group(1) not in points:
            if not _filled(spec.body(named.group(1)), points):
                return error
        else:
            return error
        try:
            model = spec.compile()
        except (ValueError, RuntimeError) as next_error:
            error = next_error
            continue
        return model, [*_emptied(model, points), *(_nearest(spec, model) if balanced else [])]


def _filled(body: Any, points: list[str]) -> bool:
    """Give a point mass moments for the compilation; False for a body that is no point mass."""
    full = np.array(body.fullinertia, float)
    moments = full if np.all(np.isfinite(full)) else np.array(body.inertia, float)
    if not body.explicitinertial or not body.mass > 0.0 or np.any(moments):
        return False
    points.append(body.name)
    body.fullinertia = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    return True


def _emptied(model: Any, points: list[str]) -> list[str]:
    """Sentences about point masses, whose moments in the model are set back to zero."""
    for name in points:
        model.body_inertia[int(model.body(name).id)] = 0.0
    if not points:
        return []
    return [f"links without moments of inertia are read as point masses: {', '.join(map(repr, points))}"]


def nearest_moments(moments: np.ndarray) -> np.ndarray:
    """The three numbers nearest to ``moments`` (3,) of which none exceeds the sum of the two others."""
    largest = int(np.argmax(moments))
    excess = 2.0 * moments[largest] - np.sum(moments)
    return moments + np.where(np.arange(3) == largest, -1.0, 1.0) * max(excess, 0.0) / 3.0


def _nearest(spec: Any, model: Any) -> list[str]:
    """Sentences about impossible moments, which are replaced in the model by the nearest possible ones."""
    said = []
    for body in spec.bodies:
        full = np.array(body.fullinertia, float)
        if not body.explicitinertial or not np.all(np.isfinite(full)):
            continue
        a, b, c, ab, ac, bc = full
        values = np.linalg.eigvalsh(np.array([[a, ab, ac], [ab, b, bc], [ac, bc, c]]))[::-1]
        nearest, k = nearest_moments(values), int(model.body(body.name).id)
        if np.array_equal(nearest, values) or not model.body_mass[k]:
            continue
        model.body_inertia[k] = nearest  # the principal axes of the model are ordered by falling moments
        said.append(f"{body.name!r} ({_printed(values)} to {_printed(nearest)})")
    if not said:
        return []
    return [
        "moments of inertia of no body (one exceeds the sum of the others) are read as the nearest "
        f"possible ones [kg m^2]: {', '.join(said)}"
    ]


def _printed(values: np.ndarray) -> str:
    return " ".join(f"{x:.4g}" for x in values)
