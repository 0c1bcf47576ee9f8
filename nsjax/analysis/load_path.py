"""Paths of equilibria through limit points, by arc length."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nsjax.core import InputError, Problem
from nsjax.statics.equilibria import (
    LAST_STEP,
    LOAD_HALVINGS,
    PASSES,
    Equilibria,
    Ramp,
    check_stiff,
    collected,
    moved,
    ramp_of,
    settle,
    size,
    solved,
)

Point = tuple[float, np.ndarray, np.ndarray]
"""Level, position, multipliers."""


def _direction(ramp: Ramp, point: Point, before: np.ndarray | None) -> np.ndarray:
    """Tangent ``(xi, x, s)`` of the path, of length 1 in ``(xi, s)``, in the direction of ``before``."""
    s, q, x = point
    nv = ramp.system.nv
    _, matrix, slope = ramp.tangents(q, x, s)
    way = np.append(-solved(matrix, slope), 1.0)
    way = way / np.sqrt(np.sum(way[:nv] ** 2) + way[-1] ** 2)
    if before is not None and _dot(way, before, nv) < 0.0:
        way = -way
    return way


def _dot(a: np.ndarray, b: np.ndarray, nv: int) -> float:
    return float(np.sum(a[:nv] * b[:nv]) + a[-1] * b[-1])


def _arc(ramp: Ramp, point: Point, way: np.ndarray, length: float) -> tuple[Point, int] | None:
    """Point of the path on the plane normal to ``way`` at a distance, and its Newton steps; or None."""
    (s, q, x), nv = point, ramp.system.nv
    gone = np.zeros(nv)
    step = length * way
    for k in range(PASSES):
        x, s, gone = x + step[nv:-1], s + step[-1], gone + step[:nv]
        if k and float(np.max(np.abs(step[:nv]))) <= LAST_STEP * size(q):
            return (s, np.asarray(moved(ramp.system, q, gone)), x), k
        value, matrix, slope = ramp.tangents(q, x, s, gone)
        both = solved(matrix, np.stack([value, slope], axis=1))
        fixed, along = np.append(-both[:, 0], 0.0), np.append(-both[:, 1], 1.0)
        # the correction is orthogonal to the arc
        step = fixed - _dot(fixed, way, nv) / _dot(along, way, nv) * along
        if not np.isfinite(step).all() or float(np.max(np.abs(step[:nv]))) > 1e3 * size(q):
            return None
    return None


def _limit(ramp: Ramp, point: Point, way: np.ndarray, length: float) -> Point:
    """Limit point of a segment of the path, where the level has an extremum."""
    low, high = (0.0, way[-1]), (length, 0.0)
    best = point
    found = _arc(ramp, point, way, length)
    if found is not None:
        high = (length, _direction(ramp, found[0], way)[-1])
    secants = 8  # largest number of secant steps to a limit point between two points of the path
    for _ in range(secants):
        at = low[0] + (high[0] - low[0]) * low[1] / (low[1] - high[1])
        found = _arc(ramp, point, way, at)
        if found is None:
            break
        best = found[0]
        rate = _direction(ramp, best, way)[-1]
        if abs(rate) < 1e-9:
            break
        low, high = ((at, rate), high) if rate * low[1] > 0.0 else (low, (at, rate))
    return best


def load_path(
    problem: Problem, to: Mapping[str, Any], *, arc: float, longest: float | None = None, points: int = 200,
    until: Callable[[float, np.ndarray], bool] | None = None,
) -> Equilibria:  # fmt: skip
    """Equilibria along a load path that passes limit points of the load level.

    Args:
        problem: start of the path, in equilibrium or near it.
        to: parameters at level 1, see `nsjax.analysis.equilibrium`.
        arc: length of the first arc, of increments of the position and of the level together.
        longest: largest length of an arc; None: ten times the first.
        points: largest number of equilibria.
        until: ``(level, position) -> bool``, whether the path ends there; None: at the level 1.

    Returns:
        `Equilibria` with ``limits``, the levels of the limit points of the path.

    Raises:
        InputError: where the path ends or turns back on itself.

    Limits: those of `nsjax.analysis.equilibrium`; at a bifurcation the path continues straight on, or ends.
    Arcs that are long relative to the curvature radii of the path may jump to another part of it and miss
    limit points without notice.

    Example:
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> from nsjax import Problem, State, System
        >>> from nsjax.analysis import load_path
        >>> def mass(q, p):
        ...     return jnp.eye(1)
        >>> def force(t, q, v, p):  # two springs that form a shallow roof, pressed down
        ...     length = jnp.sqrt(1.0 + q**2)
        ...     return -q * (length - 1.25**0.5) / length - p["load"]
        >>> start = State(t=0.0, q=np.array([0.5]), v=np.zeros(1))
        >>> system = System(nq=1, nv=1, mass=mass, force=force)
        >>> roof = Problem(system=system, params={"load": 0.0}, state=start)
        >>> found = load_path(roof, {"load": 0.05}, arc=0.05, longest=0.05)
        >>> [round(0.05 * float(level), 4) for level in found.limits]  # it snaps through, and back
        [0.0215, -0.0215]
    """
    ramp, q = ramp_of(problem, to)
    check_stiff(ramp, q, np.zeros(ramp.system.nb))
    found = settle(ramp, q, np.zeros(ramp.system.nb), 0.0)
    if found is None:
        raise InputError("load_path: no equilibrium at the start; begin from one, see equilibrium")
    point: Point = (0.0, found[0], found[1])
    rows: list[Any] = [(*point, found[2])]
    limits: list[Point] = []
    way, length, shortest = _direction(ramp, point, None), arc, arc * 0.5**LOAD_HALVINGS
    longest = 10.0 * arc if longest is None else longest
    done = (lambda s, q: s >= 1.0) if until is None else until
    easy = 6  # largest number of Newton steps on an arc after which the next arc is longer by half
    while len(rows) <= points and not done(point[0], point[1]):
        new = _arc(ramp, point, way, length)
        ahead = None if new is None else _direction(ramp, new[0], way)
        # successive tangents turn by less than 60 degrees: more is another branch, or the way back
        if new is None or ahead is None or not _dot(ahead, way, ramp.system.nv) > 0.5:
            length *= 0.5
            if length < shortest:
                why = "finds no equilibrium" if new is None else "turns back on itself"
                raise InputError(
                    f"load_path: at the level {point[0]:.6g} an arc of {length:.2g} {why}; give a shorter "
                    "arc from the start, or an imperfection where the path forks"
                )
            continue
        if ahead[-1] * way[-1] < 0.0:
            limits.append(_limit(ramp, point, way, length))
        point, way = new[0], ahead
        rows.append((*point, new[1]))
        length = min(longest, 1.5 * length) if new[1] <= easy else length
    return collected(
        problem, ramp, rows, limits=tuple(x[0] for x in limits), limit_positions=tuple(x[1] for x in limits)
    )
