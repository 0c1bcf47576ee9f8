"""Moments of inertia of a URDF that the package `mujoco` refuses, and that other programs accept.

CAD exports contain rounded moments, and files written by hand contain zeros. A link whose largest moment
exceeds the sum of the two others gets the nearest moments that a body can have; a link on a joint may be a
point mass.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from nsjax.multibody.files.refusals import MASSLESS

IMPOSSIBLE = r"A \+ B >= C"
"""Pattern of the package's message about moments that violate the triangle inequality."""

EMPTY = rf"{MASSLESS}|positive eigenvalues"
"""Pattern of the package's messages about links without moments."""

CORRECTED = (
    "moments of inertia of no body (one exceeds the sum of the others) are read as the nearest possible "
    "ones [kg m^2]"
)

ZERO_SHARE = 1e-12
"""Part of the largest moment of a link up to which another one is rounding of zero."""

LEAST = 1e-15
"""Moment up to which the package, too, takes one for zero [kg m^2]."""

NAMED = r"Element name '([^']+)'"


@dataclasses.dataclass(frozen=True)
class OwnMoments:
    """Moments (3,) of a link, the quaternion (4,) of their axes in the link, and the principal values (3,)
    that the file gives.
    """

    moments: np.ndarray
    turn: np.ndarray
    given: np.ndarray


def compiled_as_given(
    mujoco: ModuleType, spec: Any, error: Exception, links: bool, thin: Callable[[str], list[str] | None]
) -> tuple[Any, list[str]] | Exception:
    """The model with corrected moments of its links, and sentences; or the error that remains.

    Args:
        mujoco: the package.
        spec: `mujoco.MjSpec`, which is changed.
        error: error of its first compilation.
        links: whether moments of links are corrected.
        thin: function that corrects a mesh without volume, from a message: sentences, or None for another
            error.
    """
    own, told, balanced = dict[str, OwnMoments](), list[str](), False
    while True:
        said = str(error)
        named = re.search(NAMED, said)
        flat = thin(said)
        if flat is not None:
            told += flat
        elif not links:
            return error
        elif re.search(IMPOSSIBLE, said) and not balanced:
            spec.compiler.balanceinertia, balanced = True, True
        elif re.search(EMPTY, said) and named and named.group(1) not in own:
            if not _filled(mujoco, spec.body(named.group(1)), own):
                return error
        else:
            return error
        try:
            model = spec.compile()
        except (ValueError, RuntimeError) as next_error:
            error = next_error
            continue
        corrected = [*_emptied(model, own), *(_nearest(spec, model, own) if balanced else [])]
        points = [repr(name) for name, x in own.items() if not np.any(x.moments)]
        if points:
            told.append(f"links without moments of inertia are read as point masses: {', '.join(points)}")
        return model, [*told, *([f"{CORRECTED}: {', '.join(corrected)}"] if corrected else [])]


def _filled(mujoco: ModuleType, body: Any, own: dict[str, OwnMoments]) -> bool:
    """Give a link whose moments are not positive other ones for the compilation, and keep its own: those of
    a point mass, of a thin rod, or the nearest possible ones; False for a link without mass.
    """
    if not body.explicitinertial or not body.mass > 0.0:
        return False
    full = np.array(body.fullinertia, float)
    given = tensor(full) if np.all(np.isfinite(full)) else np.diag(np.array(body.inertia, float))
    values, axes = np.linalg.eigh(given)
    least = max(ZERO_SHARE * np.max(np.abs(values)), LEAST)
    moments = nearest_moments(np.where(np.abs(values) > least, values, 0.0))
    axes, relative, turn = axes * np.linalg.det(axes), np.zeros(4), np.zeros(4)
    mujoco.mju_mat2Quat(relative, axes.reshape(-1))
    mujoco.mju_mulQuat(turn, np.array(body.iquat, float), relative)
    own[body.name] = OwnMoments(moments=moments, turn=turn, given=values)
    body.fullinertia = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    return True


def _emptied(model: Any, own: dict[str, OwnMoments]) -> list[str]:
    """Gives links in the model their own moments; words about those that are not the given ones."""
    said = []
    for name, x in own.items():
        k = int(model.body(name).id)
        model.body_inertia[k], model.body_iquat[k] = x.moments, x.turn
        model.body_sameframe[k] = model.body_simple[k] = 0  # short cuts for the axes of the compilation
        if not np.allclose(
            x.moments, x.given, rtol=ZERO_SHARE, atol=max(ZERO_SHARE * np.max(np.abs(x.given)), LEAST)
        ):
            said.append(_change(name, x.given[::-1], x.moments[::-1]))
    return said


def nearest_moments(moments: np.ndarray) -> np.ndarray:
    """The three numbers nearest to ``moments`` (3,) of which none exceeds the sum of the two others: the
    moments of a plate or, far from what is possible, of a thin rod.

    Example:
        >>> import numpy as np
        >>> from nsjax.multibody.files.moments import nearest_moments
        >>> nearest_moments(np.array([1.0, 0.0, 0.5])).round(3).tolist()
        [0.833, 0.167, 0.667]
    """
    largest = int(np.argmax(moments))
    excess = 2.0 * moments[largest] - np.sum(moments)
    found = moments + np.where(np.arange(3) == largest, -1.0, 1.0) * max(excess, 0.0) / 3.0
    if np.min(np.sum(found) - 2.0 * found) >= -ZERO_SHARE * np.max(np.abs(found)):
        return found
    along = np.arange(3) != np.argmin(moments)
    rod: np.ndarray = np.where(along, max(float(np.mean(moments[along])), 0.0), 0.0)
    return rod


def tensor(full: Any) -> np.ndarray:
    """The matrix (3, 3) of the six moments of a body in the order of the library."""
    a, b, c, ab, ac, bc = np.array(full, float)
    return np.array([[a, ab, ac], [ab, b, bc], [ac, bc, c]])


def _nearest(spec: Any, model: Any, own: dict[str, OwnMoments]) -> list[str]:
    """Words about impossible moments, which are replaced in the model by the nearest possible ones."""
    said = []
    for body in spec.bodies:
        full = np.array(body.fullinertia, float)
        if body.name in own or not body.explicitinertial or not np.all(np.isfinite(full)):
            continue
        values = np.linalg.eigvalsh(tensor(full))[::-1]
        nearest, k = nearest_moments(values), int(model.body(body.name).id)
        if np.array_equal(nearest, values) or not model.body_mass[k]:
            continue
        model.body_inertia[k] = nearest  # the principal axes of the model are ordered by falling moments
        said.append(_change(body.name, values, nearest))
    return said


def _change(name: str, values: np.ndarray, nearest: np.ndarray) -> str:
    return f"{name!r} ({_printed(values)} to {_printed(nearest)})"


def _printed(values: np.ndarray) -> str:
    return " ".join(f"{x:.4g}" for x in values)
