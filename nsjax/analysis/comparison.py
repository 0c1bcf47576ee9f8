"""Comparison of runs: errors and their orders, final values by name, secants over a changed number."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError, nearest
from nsjax.core.system import Problem, contact_names
from nsjax.sensors import ENERGIES, label_name, table
from nsjax.trajectory import Trajectory, label_names
from nsjax.types import Array


def observed_order(steps: Any, errors: Any) -> float:
    """Order of convergence: least-squares slope of ``log(error)`` over ``log(step)``.

    Args:
        steps: (n,) step sizes [s], at least two different ones.
        errors: (n,) positive errors.

    Raises:
        ValueError: if shapes differ, fewer than two steps are given, or a value is not positive.

    Source: least squares on logarithms.

    Example:
        >>> from nsjax.analysis import observed_order
        >>> round(observed_order([0.1, 0.05, 0.025], [4e-2, 1e-2, 2.5e-3]), 6)
        2.0
    """
    h, e = np.asarray(steps, float), np.asarray(errors, float)
    if h.shape != e.shape or h.ndim != 1 or h.size < 2:
        raise ValueError(
            f"observed_order: steps and errors have shapes {h.shape} and {e.shape}; give "
            "two (n,) arrays, n >= 2"
        )
    if not (np.all(h > 0.0) and np.all(e > 0.0) and np.all(np.isfinite(e))):
        raise ValueError(
            "observed_order: steps and errors must be positive and finite; leave the other ones out"
        )
    x = np.log(h) - np.mean(np.log(h))
    return float(x @ np.log(e) / (x @ x))


def paper_error(theta: Any, reference: Any) -> float:
    """The error of [R&S (92)]: Euclidean norm over the samples of the relative error.

    ``err = || (theta - theta_ref) / theta_ref ||_2`` over the sample times. It is not divided by
    their number, so it depends on the sampling. The first sample, ``t = 0``, is excluded, because
    the reference vanishes there.

    Args:
        theta: (n,) samples of the computed motion, the first one at ``t = 0``.
        reference: (n,) the same samples of the reference.

    Raises:
        ValueError: if shapes differ.

    Source: [R&S (92)].

    Example:
        >>> from nsjax.analysis import paper_error
        >>> round(paper_error([0.0, 1.1, 2.2], [0.0, 1.0, 2.0]), 6)
        0.141421
    """
    x, y = np.asarray(theta, float), np.asarray(reference, float)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(
            f"paper_error: theta and reference have shapes {x.shape} and {y.shape}; give two (n,) arrays"
        )
    return float(np.linalg.norm(x[1:] / y[1:] - 1.0))


def _distances(points: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Distances of points (n, 2) from segments; starts and ends broadcast against the points."""
    along = end - start
    length = np.sum(along**2, axis=-1)
    share = np.sum((points - start) * along, axis=-1) / np.where(length > 0.0, length, 1.0)
    foot = start + np.clip(share, 0.0, 1.0)[..., None] * along
    return np.linalg.norm(points - foot, axis=-1)


def _nearest(points: np.ndarray, graph: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance of every point (n, 2) from a polyline, and the index of its nearest segment."""
    order = np.argsort(points[:, 0], kind="stable")
    value, index = np.empty(len(points)), np.empty(len(points), int)
    bound = np.abs(points[:, 1] - np.interp(points[:, 0], graph[:, 0], graph[:, 1]))
    # beyond the ends of the graph, its end points bound the distance
    inside = np.clip(points[:, 0], graph[0, 0], graph[-1, 0])
    bound = np.hypot(bound, points[:, 0] - inside) * (1.0 + 1e-9) + 1e-300
    chunk = 256  # points whose distances are computed at once
    for part in np.array_split(order, max(1, -(-len(order) // chunk))):
        some = points[part]
        low = np.min(some[:, 0] - bound[part])
        high = np.max(some[:, 0] + bound[part])
        first = max(int(np.searchsorted(graph[:, 0], low, "left")) - 1, 0)
        last = min(int(np.searchsorted(graph[:, 0], high, "right")), len(graph) - 1)
        first = min(first, last - 1)
        found = _distances(some[:, None], graph[None, first:last], graph[None, first + 1 : last + 1])
        best = np.argmin(found, axis=1)
        value[part], index[part] = found[np.arange(len(part)), best], best + first
    return value, index


def _directed(one: np.ndarray, other: np.ndarray) -> float:
    """Largest distance of a point of the polyline ``one`` from the polyline ``other``.

    The vertices come first. A segment may contain a more distant point where the nearest segment of the
    other graph changes: it is bisected while its upper bound exceeds the largest distance found. The
    distance from one fixed segment is convex, so its values at both ends bound the distance in between.
    """
    value, index = _nearest(one, other)
    best = float(np.max(value))
    p, q = one[:-1], one[1:]
    fp, fq, sp, sq = value[:-1], value[1:], index[:-1], index[1:]
    refinement = 1e-9  # relative error of the distance
    for _ in range(60):
        by_first = np.maximum(fp, _distances(q, other[sp], other[sp + 1]))
        by_last = np.maximum(fq, _distances(p, other[sq], other[sq + 1]))
        bound = np.minimum(np.minimum(by_first, by_last), 0.5 * (fp + fq + np.linalg.norm(q - p, axis=1)))
        keep = bound > best * (1.0 + refinement) + 1e-15
        if not np.any(keep):
            break
        p, q, fp, fq, sp, sq = p[keep], q[keep], fp[keep], fq[keep], sp[keep], sq[keep]
        middle = 0.5 * (p + q)
        fm, sm = _nearest(middle, other)
        best = max(best, float(np.max(fm)))
        p, q = np.concatenate([p, middle]), np.concatenate([middle, q])
        fp, fq = np.concatenate([fp, fm]), np.concatenate([fm, fq])
        sp, sq = np.concatenate([sp, sm]), np.concatenate([sm, sq])
    return best


def _graph(t: Any, x: Any) -> np.ndarray:
    """Vertices (n, 2) of a filled-in graph."""
    time, values = np.asarray(t, float), np.asarray(x, float)
    if time.shape != values.shape or time.ndim != 1 or time.size < 2:
        raise ValueError(
            f"hausdorff: times and values have shapes {time.shape} and {values.shape}; give "
            "two (n,) arrays, "
            "n >= 2"
        )
    if not np.all(np.isfinite(time + values)) or np.any(np.diff(time) < 0.0):
        raise ValueError(
            "hausdorff: times must not decrease and all values must be finite; cut the run before it fails"
        )
    return np.stack([time, values], axis=1)


def hausdorff(
    t1: Any, x1: Any, t2: Any, x2: Any, *, time_scale: float | None = None, value_scale: float | None = None
) -> float:
    """Hausdorff distance of the filled-in graphs of two functions with jumps.

    The filled-in graph joins left and right limit of every jump by a vertical segment; here it is the
    polyline through the samples ``(t/time_scale, x/value_scale)``. A jump is given by two samples at
    one time, or lies between two consecutive samples of a computed motion. Unlike the largest
    difference, the distance of two velocities tends to zero if their impact times do.

    Args:
        t1, t2: (n1,), (n2,) times, not decreasing [s].
        x1, x2: (n1,), (n2,) values.
        time_scale: time that counts as one, by default the duration of the second graph.
        value_scale: value that counts as one, by default the range of the second graph, or 1 if that
            is constant.

    Returns:
        The distance [-], ``max`` over both graphs of the distance from the other one.

    Raises:
        ValueError: if shapes differ, fewer than two samples are given, times decrease, a value is not
            finite or a scale is not positive.

    Accuracy: relative 1e-9 of the polylines' distance.

    Limits: scalar functions; apply it to every component.

    Source: a scheme detects an impact up to one step late, so that the error at a fixed time varies
        irregularly with the step size; the distance of the graphs converges regularly.

    Example:
        >>> from nsjax.analysis import hausdorff
        >>> jump = [-1.0, -1.0, 1.0, 1.0]
        >>> round(hausdorff([0, 0.5, 0.5, 1], jump, [0, 0.51, 0.51, 1], jump), 6)
        0.01
    """
    graphs = [_graph(t1, x1), _graph(t2, x2)]
    span = np.where(np.ptp(graphs[1], axis=0) > 0.0, np.ptp(graphs[1], axis=0), 1.0)
    scales = np.asarray([time_scale or span[0], value_scale or span[1]])
    if not np.all(scales > 0.0):
        raise ValueError(f"hausdorff: scales must be positive, and are {scales.tolist()}; give other ones")
    one, other = (graph / scales for graph in graphs)
    return max(_directed(one, other), _directed(other, one))


# Outputs of a run for checks: final values of quantities by name, or a function of the run.


Outputs = Sequence[str] | Callable[[Trajectory], Array] | None
"""Names of quantities, for their final values; a function ``traj -> (k,)``; or None: all of q and v."""

ENTRY = re.compile(r"(.+)\[(\d+)\]")
"""Pattern of an entry of a vector: name and index."""


@dataclasses.dataclass(frozen=True)
class _Last:
    """Final values of quantities, named by labels or as in `Trajectory.sensor`."""

    names: tuple[str, ...]
    labels: tuple[str, ...]

    def __call__(self, traj: Trajectory) -> Array:
        return jnp.stack([self._value(traj, name) for name in self.names])

    def _value(self, traj: Trajectory, name: str) -> Array:
        if name in self.labels:
            return jnp.asarray(traj[name])[-1]
        plain, index = _entry(name)
        value = jnp.asarray(traj.sensor(plain))[-1]
        if index is None and value.ndim:
            raise InputError(
                f"outputs: {name!r} is an array {value.shape}; take an entry of it, '{name}[0]'"
            )
        if index is not None and (value.ndim != 1 or index >= value.shape[0]):
            raise InputError(
                f"outputs: {name!r} lies outside the array of shape {value.shape}; name an entry inside it"
            )
        return value if index is None else value[index]


def _entry(name: str) -> tuple[str, int | None]:
    found = ENTRY.fullmatch(name)
    return (name, None) if found is None else (found[1], int(found[2]))


def _end(traj: Trajectory) -> Array:
    return jnp.concatenate([jnp.asarray(traj.q)[-1], jnp.asarray(traj.v)[-1]])


def reader(problem: Problem, outputs: Outputs) -> tuple[tuple[str, ...], Any]:
    """Names of the outputs, none for a function, and the function that reads them from a run."""
    labels, nq, nv = problem.system.labels, problem.system.nq, problem.system.nv
    if outputs is None:
        names = tuple(label_name(entry) for entry in (*labels.q, *labels.v))
        plain = (*(f"q[{k}]" for k in range(nq)), *(f"v[{k}]" for k in range(nv)))
        return (names if len(names) == nq + nv else plain), _end
    if callable(outputs):
        return (), outputs
    if isinstance(outputs, str):
        raise InputError(f"outputs = {outputs!r}; give a list of names, such as [{outputs!r}]")
    known = [*label_names(problem.system), *ENERGIES]
    every = table(problem.system)
    for name in outputs:
        if name not in known and _entry(name)[0] not in every:
            raise InputError(f"outputs: unknown quantity {name!r}; {nearest(name, every)}")
    return tuple(outputs), _Last(tuple(outputs), tuple(known))


def output_names(names: tuple[str, ...], outputs: Outputs, size: int) -> tuple[str, ...]:
    """The names of `reader`, or the name of a function with the numbers of its ``size`` values."""
    inner = getattr(outputs, "func", outputs)  # of a functools.partial
    said = getattr(inner, "__name__", type(inner).__name__).strip("<>")
    return names or ((said,) if size == 1 else tuple(f"{said}[{k}]" for k in range(size)))


# Secants of runs, wider than the teeth of the discrete map, and changes of impacts within them.


NOT_FINITE = "not finite"
"""Verdict on a derivative that is not a number."""

Read = Callable[[Trajectory], Any]

TEETH = 10.0
"""Least number of steps by which half the width of a secant moves the most sensitive impact."""

DEGREE = 3
"""Degree of the polynomial fitted to the samples of a secant; its slope at the middle is the result."""


def sequence(traj: Trajectory) -> np.ndarray:
    """Contacts in the order of their impacts."""
    events: Any = traj.events
    return np.asarray(events.contact)[: min(int(events.count), len(events.contact))]


def _agreeing(one: np.ndarray, other: np.ndarray) -> int:
    """Number of entries before the first difference of two sequences."""
    same = min(len(one), len(other))
    differ = np.flatnonzero(one[:same] != other[:same])
    return int(differ[0]) if len(differ) else same


def secant_width(
    runs: Callable[[float], Trajectory], middle: Trajectory, dt: float, size: float, given: float | None
) -> tuple[float, float]:
    """Half width of a secant, and the number of steps by which it moves the most sensitive impact."""
    width = 1e-6 * size if given is None else given
    widest = 0.1  # largest half width of an automatic secant over the size of the parameter, or over one
    while True:
        shift = 0.0
        if len(sequence(middle)):
            ends = [runs(s * width) for s in (-1.0, 1.0)]
            one, other = (sequence(traj) for traj in ends)
            same = _agreeing(one, other)
            times = [np.asarray(traj.events.time)[:same] for traj in ends]
            shift = float(np.max(np.abs(times[1] - times[0]), initial=0.0) / (2.0 * dt))
        if given is not None or shift >= TEETH or 2.0 * width > widest * size:
            return width, shift
        width *= 2.0


def secant_slopes(
    runs: Callable[[float], Trajectory], middle: Trajectory, read: Read, width: float, samples: int
) -> tuple[np.ndarray, np.ndarray, list[Trajectory]]:
    """Slopes of the outputs, their standard errors, and the runs."""
    s = np.linspace(-1.0, 1.0, samples)
    found = [middle if x == 0.0 else runs(x * width) for x in s]
    values = np.array([np.ravel(read(traj)) for traj in found])
    powers = s[:, None] ** np.arange(DEGREE + 1)
    fit = np.linalg.lstsq(powers, values, rcond=None)[0]
    rest = np.sum((values - powers @ fit) ** 2, axis=0) / (samples - DEGREE - 1)
    spread = np.linalg.inv(powers.T @ powers)[1, 1]
    return fit[1] / width, np.sqrt(rest * spread) / width, found


def changed_impacts(
    problem: Problem, name: str, width: float, middle: Trajectory, found: list[Trajectory]
) -> list[str]:
    """Sentences about a sequence of impacts that changes within the width; none if it does not."""
    base = sequence(middle)
    for traj in found:
        other = sequence(traj)
        if np.array_equal(base, other):
            continue
        first = _agreeing(base, other)
        longer = traj if len(other) > first else middle
        events: Any = longer.events
        who = contact_names(problem.system)[events.contact[first]]
        return [
            f"{name} within {width:.3g}: {len(base)} and {len(other)} impacts, which first differ at "
            f"impact {first + 1} ({who}, {float(events.time[first]):.6g} s)"
        ]
    return []


def verdict_of(
    derivative: float, secant: float, error: float, tolerance: float, shift: float | None, changed: bool
) -> str:
    """Verdict on a derivative compared with its secant, see `nsjax.check_gradient.Comparison`."""
    if not np.isfinite(derivative):
        return NOT_FINITE
    size, sure = max(abs(derivative), abs(secant)), 3.0 * error
    if abs(derivative - secant) <= tolerance * size + sure:
        # a secant that leaves the sign open says nothing of a derivative that is not the same
        return "agrees" if sure < size or abs(derivative - secant) <= tolerance * size else "open"
    if changed:
        return "events change"
    return "teeth" if shift is not None and shift < TEETH else "differs"
