"""Paths of equilibria, and small motions about an equilibrium."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError, Problem, System
from nsjax.core.operators import prepared
from nsjax.core.step import mass_matrix
from nsjax.jaxtools.owned import compiled_for
from nsjax.statics import (
    LAST_STEP,
    LOAD_HALVINGS,
    PASSES,
    Equilibria,
    Ramp,
    check_stiff,
    collected,
    moved,
    null_space,
    ramp_of,
    residual,
    settle,
    size,
    solved,
)
from nsjax.types import Array, PyTree, as_html

# Paths of equilibria through limit points, by arc length.


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


# Small motions about an equilibrium: modes, decay and growth.
#
# With the mass ``M``, damping ``C`` and stiffness ``K`` in the directions that constraints leave free,
# follower loads and multipliers included, motions ``x exp(lambda t)`` fulfil ``(lambda^2 M + lambda C +
# K) x = 0``. Computed with numpy on dense matrices.


ROUNDING = 10.0 * float(np.finfo(float).eps)
"""Rounding error of matrix entries, relative to their size and per row."""


@dataclasses.dataclass(frozen=True)
class Modes:
    """Small motions about an equilibrium, ``exp(lambda t)``, slowest first.

    Args:
        values: ``lambda`` (k,) complex [1/s]; of a conjugate pair only the value of positive imaginary
            part; all real values: a saddle has a growing and a decaying one. A direction without stiffness
            (a body that moves freely) has the value zero once.
        shapes: increments of the position (k, nv), complex, largest entry 1.
        growth: largest real part [1/s] of all motions, not only of the first k: above zero the equilibrium
            is unstable.
        names: (nv,) of the velocities, whose increments the shapes hold.

    ``print(modes)`` is a table of frequencies, damping ratios ``-Re lambda / |lambda|``, decay rates and
    the entries that move most.
    """

    values: np.ndarray
    shapes: np.ndarray
    growth: float
    names: tuple[str, ...] = ()

    @property
    def frequencies(self) -> np.ndarray:
        """Frequencies [Hz], from the imaginary parts."""
        return self.values.imag / (2.0 * np.pi)

    @property
    def damping_ratios(self) -> np.ndarray:
        """Shares of critical damping, one without vibration, negative where the motion grows."""
        size = np.abs(self.values)
        return -self.values.real / np.where(size > 0.0, size, 1.0)

    def __str__(self) -> str:
        heads = ("mode", "frequency (Hz)", "damping ratio", "decay (1/s)", "moves")
        rows: list[tuple[str, ...]] = [heads]
        for k, value in enumerate(self.values):
            size = np.abs(self.shapes[k])
            # at most four entries, those above a twentieth of the largest
            order = [j for j in np.argsort(-size, kind="stable")[:4] if size[j] > 0.05 * size.max()]
            moves = ", ".join(f"{self._name(j)} {self.shapes[k, j].real:+.2g}" for j in order)
            numbers = self.frequencies[k], self.damping_ratios[k], -value.real
            rows.append((str(k + 1), *(f"{x + 0.0:.5g}" for x in numbers), moves))
        wide = [max(len(row[j]) for row in rows) for j in range(4)]
        lines = ["  ".join([*map(str.rjust, row[:4], wide), row[4]]) for row in rows]
        if self.growth > 0.0:
            lines.append(f"unstable: a motion grows with {self.growth:.5g} 1/s")
        return "\n".join(lines)

    def _name(self, j: int) -> str:
        return self.names[j] if self.names else f"v[{j}]"

    def _repr_html_(self) -> str:
        return as_html(self)


@compiled_for("system")
def _linearised(system: System, t: Array, q: Array, p: PyTree) -> tuple[Array, ...]:
    zero, ready = jnp.zeros(system.nv), prepared(system, p)

    def rows(xi: Array) -> Array:
        return system.constraint(t, system.retract(q, xi), ready)

    held = jax.jacfwd(rows)(zero) if system.nb else jnp.zeros((0, system.nv))
    push = system.force(t, q, zero, ready)
    x = -jnp.linalg.lstsq(held.T, push)[0] if system.nb else jnp.zeros(0)
    stiffness = -jax.jacfwd(lambda xi: residual(system, t, q, xi, x, ready)[: system.nv])(zero)
    damping = -jax.jacfwd(lambda v: system.force(t, q, v, ready))(zero)
    return mass_matrix(system, q, ready), damping, stiffness, held, push + held.T @ x


FREE = 10.0 * ROUNDING
"""Stiffness below which a direction has none, relative to the largest, of a matrix with a unit diagonal."""


def _sizes(K: np.ndarray) -> np.ndarray:
    """Factors (n,) that scale the diagonal of ``K`` to one: stiffnesses are of very different sizes."""
    sizes = np.sqrt(np.abs(np.diag(K)))
    sizes = np.where(sizes > 0.0, sizes, np.maximum(np.max(np.abs(K), axis=1, initial=0.0), 1e-300) ** 0.5)
    return np.where(sizes > 1e-150, sizes, 1.0)


def _without_stiffness(K: np.ndarray) -> np.ndarray:
    """Directions (n, k) in the null space of ``K``, found after scaling its diagonal to one."""
    sizes = _sizes(K)
    scaled = K / sizes / sizes[:, None]
    _, values, rows = np.linalg.svd(scaled)
    rank = int(np.sum(values > FREE * np.linalg.norm(np.abs(scaled), 2))) if len(K) else 0
    return rows[rank:].T / sizes[:, None]


def _eigenpairs(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, eigenvectors, and the error of each eigenvalue from rounding of the entries of ``A``."""
    values, vectors = np.linalg.eig(A)
    try:
        lefts = np.linalg.inv(vectors)
    except np.linalg.LinAlgError:  # a double root with a single eigenvector
        lefts = np.linalg.pinv(vectors)
    moved = np.sum(np.abs(lefts) * (np.abs(A) @ np.abs(vectors)).T, axis=1)
    return values.astype(complex), vectors.astype(complex), len(A) * ROUNDING * moved


def _flexibility(K: np.ndarray, lower: np.ndarray, none: np.ndarray) -> np.ndarray:
    """``K^-1`` for unit mass (n, n), in the complement of the directions without stiffness, by ``K`` with
    its diagonal scaled to one: else a stiffness of 1e13 1/s^2 leaves nothing of one of 1e-3.
    """
    s, n = 1.0 / _sizes(K), len(K)
    border = s[:, None] * (lower @ none)
    border = border / np.linalg.norm(border, axis=0)
    matrix = np.block([[s[:, None] * K * s, border], [border.T, np.zeros(2 * border.shape[1:])]])
    half = lower.T * s
    return half @ np.linalg.inv(matrix)[:n, :n] @ half.T


def _slow_and_fast(
    A: np.ndarray, inverse: Callable[[], np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`_eigenpairs` of ``A``; small values that rounding of large ones hides are of its ``inverse``."""
    fast = _eigenpairs(A)
    # relative rounding error of an eigenvalue above which the slow ones are computed from the inverse
    resolved = 1e-9
    if np.all(fast[2] <= resolved * np.abs(fast[0])):
        return fast
    small, vectors, left = _eigenpairs(inverse())
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        slow = 1.0 / small, vectors, left / np.abs(small) ** 2
    # both are accurate near the middle, where the widest gap between two values divides them
    order = np.sort(np.abs(fast[0]))
    middle = np.sqrt(order[-1] * np.min(np.abs(slow[0])))
    farthest = 30.0  # the border between slow and fast motions is this factor from the middle at most
    near = order[(order > middle / farthest) & (order < middle * farthest)]
    ends = np.concatenate([[middle / farthest], near, [middle * farthest]])
    widest = np.argmax(ends[1:] / ends[:-1])
    border = np.sqrt(ends[widest] * ends[widest + 1])
    above, below = np.abs(fast[0]) > border, np.abs(slow[0]) <= border
    if np.sum(above) + np.sum(below) != len(A):
        return fast
    both = [
        np.concatenate([x[..., below], y[..., above]], axis=-1) for x, y in zip(slow, fast, strict=True)
    ]
    return both[0], both[1], both[2]


def _vibrations(
    K: np.ndarray, none: np.ndarray, symmetric: bool, flexibility: Callable[[], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Values and shapes without damping, for unit mass; a negative stiffness grows and decays."""
    rest = null_space(none.T)
    squares, shapes, left = _slow_and_fast(rest.T @ K @ rest, lambda: rest.T @ flexibility() @ rest)
    real = symmetric | (np.abs(squares.imag) <= left)
    squares = np.where(real, squares.real, squares)
    saddle = real & (squares.real < 0.0)
    rates = np.sqrt(-squares + 0j)
    rates = np.where(rates.imag < 0.0, -rates, rates)
    rates = np.where(real, np.where(saddle, np.sqrt(np.abs(squares)), 1j * np.sqrt(np.abs(squares))), rates)
    shapes = rest @ shapes
    values = np.concatenate([np.zeros(none.shape[1]), rates, -rates[saddle]])
    return values, np.concatenate([none, shapes, shapes[:, saddle]], axis=1)


def _motions(
    C: np.ndarray, K: np.ndarray, none: np.ndarray, across: np.ndarray,
    flexibility: Callable[[], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Values and shapes for any damping and stiffness and unit mass, from the equations of first order.

    A direction without stiffness has the value zero once. Without damping it has it twice, for a constant
    displacement and for one that grows in time; the second is left out. Real and imaginary parts of the
    size of rounding become zero. ``none``: directions without stiffness, ``K none = 0``, orthonormal;
    ``across``: directions without stiffness of the transposed matrix.
    """
    damped = np.linalg.svd(across.T @ C @ none)[1]
    twice = int(np.sum(damped <= len(K) * ROUNDING * np.linalg.norm(C, 2)))
    rest = null_space(none.T)
    s = max(float(np.sqrt(np.linalg.norm(K, 2))), float(np.linalg.norm(C, 2)), 1e-300)
    k = rest.shape[1]
    A = np.block([[np.zeros((k, k)), s * rest.T], [-K @ rest / s, -C]])

    def inverse() -> np.ndarray:
        f = flexibility()
        return np.block([[-f @ C, -s * f], [np.eye(k) / s, np.zeros((k, k))]])

    values, vectors, left = _eigenpairs(A) if none.size else _slow_and_fast(A, inverse)
    real, imaginary = (np.where(np.abs(x) <= left, 0.0, x) for x in (values.real, values.imag))
    values = real + 1j * imaginary
    second = np.argsort(np.abs(values))[:twice]
    pick = (imaginary >= 0.0) & ~np.isin(np.arange(len(values)), second)
    values, vectors = values[pick], vectors[:, pick]
    shapes = rest @ vectors[:k] + none @ (s * (none.T @ vectors[k:]) / values)
    return np.concatenate([np.zeros(none.shape[1]), values]), np.concatenate([none, shapes], axis=1)


def modes(problem: Problem, count: int = 6) -> Modes:
    """Modes and eigenvalues of small motions about an equilibrium, with follower loads and damping.

    Args:
        problem: problem in equilibrium, from `equilibrium` for instance, or an unloaded beam.
        count: number of modes.

    Raises:
        InputError: away from equilibrium.

    Limits: dense matrices; about rest only. Contacts are left out. Parts of eigenvalues of the size of the
    matrices' rounding are set to zero. Slow modes beside stiff ones are as accurate as the stiffness
    matrix: where its least eigenvalue, with the diagonal scaled to one, was 4e-13 of the largest,
    frequencies agreed with extended precision to 5e-6. With damping and directions without stiffness
    together, slow modes are lost in the rounding of the largest eigenvalue.

    Example:
        >>> import numpy as np
        >>> from nsjax import models
        >>> from nsjax.analysis import modes
        >>> chain = models.mass_spring_chain(gravity=0.0, support="constraint", stiffness=10.0)
        >>> (modes(chain).frequencies * 2.0 * np.pi).round(4).tolist()  # sqrt(10), sqrt(30)
        [3.1623, 5.4772]
    """
    ramp, q = ramp_of(problem, None)
    found = _linearised(ramp.system, ramp.t, jnp.asarray(q), ramp.start)
    mass, damping, stiffness, held, left = (np.asarray(x) for x in found)
    free = null_space(held)
    scale = float(np.max(np.abs(stiffness))) * 1e-9 + 1e-300
    # ratio of unbalanced forces to the largest multiplier or load above which a state is no equilibrium
    at_rest = 1e-6
    if not float(np.max(np.abs(free.T @ left), initial=0.0)) <= at_rest + scale:
        raise InputError(
            "modes: the start is no equilibrium, forces up to "
            f"{float(np.max(np.abs(left))):.3g} are unbalanced; find one with nsjax.analysis.equilibrium"
        )
    M, C, K = (free.T @ x @ free for x in (mass, damping, stiffness))
    sizes = _sizes(K)
    skew = float(np.max(np.abs(K - K.T) / sizes / sizes[:, None], initial=0.0))
    symmetric = skew <= len(K) * ROUNDING
    lower = np.linalg.cholesky(0.5 * (M + M.T))
    none, across = (np.linalg.qr(lower.T @ _without_stiffness(x))[0] for x in (K, K.T))
    back = np.linalg.inv(lower)
    flexibility = functools.partial(_flexibility, K, lower, none)
    C, K = (back @ x @ back.T for x in (C, K))
    values, shapes = (
        _motions(C, K, none, across, flexibility) if np.any(C) else
        _vibrations(K, none, symmetric, flexibility)
    )  # fmt: skip
    order = np.argsort(np.abs(values), kind="stable")[:count]
    shapes = (free @ (back.T @ shapes[:, order])).T
    largest = np.take_along_axis(shapes, np.argmax(np.abs(shapes), axis=1)[:, None], axis=1)
    growth = float(np.max(values.real, initial=-np.inf))
    names = tuple(x.split(" [")[0] for x in problem.system.labels.v)
    shapes = (shapes / largest).astype(complex)
    return Modes(values=values[order].astype(complex), shapes=shapes, growth=growth, names=names)
