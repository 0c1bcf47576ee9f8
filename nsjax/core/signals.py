"""Numbers over time: tables, straight or as splines, and the segment that a step reads."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.arguments import numbers
from nsjax.core.errors import InputError, check_choice
from nsjax.types import Array, PyTree, is_traced, record

KINDS = ("held", "linear")
"""Interpolations between the times at which values are given, one step after the other."""

SLACK = 1e-9
"""Part of an interval by which a step may begin before a time of the table: both times are rounded."""


@record()
class Segment:
    """An input over a step: with ``s = t - start``, ``value + slope s + bend s^2 + twist s^3``; terms that
    are None are left out, and without slope it is constant.
    """

    start: Array | float
    value: Array
    slope: Array | None = None
    bend: Array | None = None
    twist: Array | None = None

    def segment(self, t: Array) -> Segment:
        """Itself, so that a step that is evaluated again reads the same values."""
        return self

    def ready(self) -> Segment:
        """Itself, see `SampledSignal.ready`."""
        return self

    def at(self, t: Array) -> Array:
        """Value (...) at a time."""
        s, total = t - self.start, self.value
        for k, factor in enumerate((self.slope, self.bend, self.twist), 1):
            total = total if factor is None else total + factor * s**k
        return total


@record(static=("kind", "even"))
class SampledSignal:
    """Values over time, see `signal`.

    Args:
        times, values, kind: as they were given.
        even: whether the times are evenly apart.
        ends: rates (2, ...) of a spline at its ends; None: its second derivatives vanish there.
        bends: second derivatives (n, ...) of a spline at its times, derived from the values by `ready`.
    """

    times: Array
    values: Array
    kind: str
    even: bool
    ends: Array | None = None
    bends: Array | None = None

    def ready(self) -> SampledSignal:
        """The same with what follows from its values once for a run: the second derivatives of a spline."""
        if self.kind != "cubic":
            return self
        return dataclasses.replace(self, bends=_bends(self.times, self.values, self.ends))

    def segment(self, t: Array) -> Segment:
        """The segment for a step that begins at ``t``."""
        times, last = jnp.asarray(self.times), self.times.shape[0] - 1
        if last == 0:
            return Segment(start=times[0], value=self._piece(0), slope=self._still())
        k = self._place(t)
        low = jnp.clip(k, 0, last)
        value = self._piece(low)
        if self.kind == "held":
            return Segment(start=t, value=value)
        high = jnp.clip(k + 1, 0, last)
        start, end = (lax.dynamic_index_in_dim(times, x, keepdims=False) for x in (low, high))
        inside = (k >= 0) & (k < last)
        span = jnp.where(inside, end - start, 1.0)
        slope = (self._piece(high) - value) / span
        if self.kind == "linear":
            return Segment(start=start, value=value, slope=jnp.where(inside, slope, 0.0))
        bends = jnp.asarray(self.bends if self.bends is not None else self.ready().bends)
        one, other = (lax.dynamic_index_in_dim(bends, x, keepdims=False) for x in (low, high))
        slope = slope - span * (2.0 * one + other) / 6.0
        terms = (jnp.where(inside, x, 0.0) for x in (slope, 0.5 * one, (other - one) / (6.0 * span)))
        return Segment(
            start=start, value=value, **dict(zip(("slope", "bend", "twist"), terms, strict=True))
        )

    def at(self, t: Array) -> Array:
        """Value (...) at a time, with derivatives by the time: those of the curve between its times.

        Example:
            >>> import jax, nsjax
            >>> hump = nsjax.signal([0.0, 1.0, 2.0], [0.0, 1.0, 0.0], kind="cubic")
            >>> [round(float(f(0.5)), 6) for f in (hump.at, jax.grad(hump.at))]
            [0.6875, 1.125]
        """
        return self.segment(lax.stop_gradient(jnp.asarray(t, float))).at(t)

    def _place(self, t: Array) -> Array:
        """Number of the last time that is not after ``t``, -1 before the first."""
        times = jnp.asarray(self.times)
        if self.even:
            return jnp.floor((t - times[0]) / (times[1] - times[0]) + SLACK).astype(int)
        slack = SLACK * (times[1:] - times[:-1])
        early = jnp.concatenate([times[1:] - slack, jnp.full(1, jnp.inf)])
        k = jnp.searchsorted(early, t, side="right", method="scan")
        return jnp.where(t < times[0], -1, k)

    def _piece(self, k: Any) -> Array:
        return lax.dynamic_index_in_dim(jnp.asarray(self.values), k, keepdims=False)

    def _still(self) -> Array | None:
        return None if self.kind == "held" else jnp.zeros(self.values.shape[1:])


def _bends(times: Any, values: Any, ends: Any) -> Array:
    """Second derivatives (n, ...) of a C2 spline: Gauss' elimination of its tridiagonal equations."""
    times, values = jnp.asarray(times, float), jnp.asarray(values, float)
    if times.shape[0] < 2:
        return jnp.zeros_like(values)
    span = (times[1:] - times[:-1]).reshape(-1, *[1] * (values.ndim - 1))
    slope, none = (values[1:] - values[:-1]) / span, jnp.zeros_like(span[:1])
    if ends is None:
        outer = jnp.zeros_like(slope[:1])
        right = jnp.concatenate([outer, slope[1:] - slope[:-1], outer])
        before = jnp.concatenate([none, span[:-1], none])
        diagonal = jnp.concatenate([none + 1.0, 2.0 * (span[1:] + span[:-1]), none + 1.0])
        after = jnp.concatenate([none, span[1:], none])
    else:
        first, last = jnp.asarray(ends, float)
        right = jnp.concatenate([slope[:1] - first, slope[1:] - slope[:-1], last - slope[-1:]])
        before, after = jnp.concatenate([none, span]), jnp.concatenate([span, none])
        diagonal = 2.0 * (before + after)

    def down(known: tuple[Array, Array], row: tuple[Array, ...]) -> tuple[Any, Any]:
        low, middle, high, b = row
        pivot = middle - low * known[0]
        found = high / pivot, (b - low * known[1]) / pivot
        return found, found

    def up(later: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        found = row[1] - row[0] * later
        return found, found

    start = jnp.zeros_like(span[0]), jnp.zeros_like(right[0])
    _, rows = lax.scan(down, start, (before, diagonal, after, 6.0 * right))
    return lax.scan(up, jnp.zeros_like(right[0]), rows, reverse=True)[1]


def ready(tree: PyTree) -> PyTree:
    """The tree with all its tables ready to be read many times, see `SampledSignal.ready`."""
    return jax.tree.map(
        lambda x: x.ready() if isinstance(x, SampledSignal) else x, tree,
        is_leaf=lambda x: isinstance(x, SampledSignal),
    )  # fmt: skip


def signal(times: Any, values: Any, kind: str = "held", *, ends: Any = "natural") -> SampledSignal:
    """An input over time, for ``inputs`` of `nsjax.simulate`; of kind ``"cubic"`` also a prescribed motion
    (``motion=`` of joints) or a number of a law of one's own, which reads it by ``own.at(t)``.

    Args:
        times (n,): in ascending order [s].
        values (n, ...): of a number, or of an array of numbers, at these times.
        kind: ``"held"``: each value counts from its time to the next (zero-order hold). ``"linear"``:
            straight lines between the times. ``"cubic"``: the cubic spline through the values, whose rate
            and second derivative are continuous. Before the first time the first value counts, after the
            last time the last value.
        ends: of a spline. ``"natural"``: its second derivative vanishes at both ends. ``"clamped"``: its
            rate vanishes there, so that a motion begins and ends at rest without an impact. A pair of rates
            (2, ...): those at the first and at the last time.

    Returns:
        A pytree: every value and time may be differentiated and varied. ``.at(t)`` is its value, whose
        derivatives by ``t`` (`jax.grad`) are rate and second derivative.

    Raises:
        InputError: for times that do not ascend, another number of values, an unknown kind, or ends that do
            not fit.

    Limits: as an input, a step reads the segment in which it begins. If times are no multiples of the step
    size, a held value therefore acts up to one step late, and a corner between two lines at the next step
    (an error of second order; of a spline, whose third derivative jumps, of fourth). Prescribed motions
    read the segment of the instant. The time of a step in reverse mode is proportional to the number of
    values; with inputs that are given step by step (`nsjax.stepper`) it is not. A spline overshoots where
    values jump: measure often enough, or filter.

    Source: C. de Boor, A Practical Guide to Splines, chapter IV.

    Example:
        >>> import nsjax
        >>> nsjax.signal([0.0, 0.1, 0.2], [0.0, 1.0, 0.0], kind="linear").kind
        'linear'
    """
    check_choice("signal: kind", kind, (*KINDS, "cubic"))
    times, values = numbers("signal", "times", times), numbers("signal", "values", values)
    if np.ndim(times) != 1 or not np.shape(times)[0]:
        raise InputError(f"signal: times have shape {np.shape(times)}; give (n,), at least one")
    if np.shape(values)[:1] != np.shape(times):
        raise InputError(
            f"signal: values have shape {np.shape(values)} for {np.shape(times)[0]} times; give one row "
            "for each time"
        )
    even = False
    if not is_traced(times):
        steps = np.diff(times)
        if not np.all(steps > 0.0):
            k = int(np.argmin(steps > 0.0))
            raise InputError(f"signal: times[{k + 1}] = {times[k + 1]} after {times[k]}; they must ascend")
        even = len(steps) > 0 and bool(np.ptp(times - times[0] - steps[0] * np.arange(len(times))) <=
                                       0.1 * SLACK * steps[0])  # fmt: skip
    return SampledSignal(times=times, values=values, kind=kind, even=even, ends=_ends(kind, values, ends))


def _ends(kind: str, values: Any, ends: Any) -> Any:
    """Rates (2, ...) of a spline at its ends; None: it is natural, or no spline."""
    if isinstance(ends, str):
        check_choice("signal: ends", ends, ("natural", "clamped"))
        wanted = None if ends == "natural" else np.zeros((2, *np.shape(values)[1:]))
    else:
        wanted = numbers("signal", "ends", ends)
        if np.shape(wanted) != (2, *np.shape(values)[1:]):
            raise InputError(
                f"signal: ends have shape {np.shape(wanted)}; give 'natural', 'clamped', or the rates at "
                f"both ends, {(2, *np.shape(values)[1:])}"
            )
    if wanted is not None and kind != "cubic":
        raise InputError(
            f"signal: ends = {ends!r} with kind = {kind!r}; a spline alone has ends, kind='cubic'"
        )
    return wanted


def constant(name: str, value: Any) -> SampledSignal:
    """An input that keeps its value. Raises `InputError` for a function."""
    if callable(value):
        raise InputError(
            f"inputs: {name!r} is a function; give nsjax.signal(times, values), or a law of the part itself"
        )
    value = numbers("inputs", repr(name), value)
    return signal(np.zeros(1), value[None])


def first_value(signal: SampledSignal | Segment) -> Any:
    """The value of an input before any step."""
    return signal.value if isinstance(signal, Segment) else jnp.asarray(signal.values)[0]
