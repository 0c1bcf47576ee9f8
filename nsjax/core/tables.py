"""Numbers over time: tables, and the segment of a table that a step reads."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.arguments import numbers
from nsjax.core.checks import is_traced
from nsjax.core.errors import InputError, check_choice
from nsjax.types import Array, record

KINDS = ("held", "linear")
"""Interpolations between the times at which values are given."""

SLACK = 1e-9
"""Part of an interval by which a step may begin before a time of the table and still count as beginning at
it: times of steps are products, times of a table are computed by the user, and both are rounded.
"""


@record()
class Segment:
    """An input over a step: ``value + slope (t - start)``; without slope it is constant."""

    start: Array | float
    value: Array
    slope: Array | None = None

    def segment(self, t: Array) -> Segment:
        """Itself, so that a step that is evaluated again reads the same values."""
        return self

    def at(self, t: Array) -> Array:
        """Value (...) at a time."""
        return self.value if self.slope is None else self.value + self.slope * (t - self.start)


@record(static=("kind", "even"))
class SampledSignal:
    """Values over time, see `table`."""

    times: Array
    values: Array
    kind: str
    even: bool

    def segment(self, t: Array) -> Segment:
        """The segment for a step that begins at ``t``."""
        times, last = jnp.asarray(self.times), self.times.shape[0] - 1
        if last == 0:
            return Segment(start=times[0], value=self._piece(0), slope=self._still())
        if self.even:
            k = jnp.floor((t - times[0]) / (times[1] - times[0]) + SLACK).astype(int)
        else:
            slack = SLACK * (times[1:] - times[:-1])
            early = jnp.concatenate([times[1:] - slack, jnp.full(1, jnp.inf)])
            k = jnp.searchsorted(early, t, side="right", method="scan")
            k = jnp.where(t < times[0], -1, k)
        low = jnp.clip(k, 0, last)
        value = self._piece(low)
        if self.kind == "held":
            return Segment(start=t, value=value)
        start = lax.dynamic_index_in_dim(times, low, keepdims=False)
        high = jnp.clip(k + 1, 0, last)
        span = lax.dynamic_index_in_dim(times, high, keepdims=False) - start
        inside = (k >= 0) & (k < last)
        slope = (self._piece(high) - value) / jnp.where(inside, span, 1.0)
        return Segment(start=start, value=value, slope=jnp.where(inside, slope, 0.0))

    def _piece(self, k: Any) -> Array:
        found: Array = lax.dynamic_index_in_dim(jnp.asarray(self.values), k, keepdims=False)
        return found

    def _still(self) -> Array | None:
        return None if self.kind == "held" else jnp.zeros(self.values.shape[1:])


def table(times: Any, values: Any, kind: str = "held") -> SampledSignal:
    """An input over time, for ``inputs`` of `nsjax.simulate`.

    Args:
        times (n,): in ascending order [s].
        values (n, ...): of a number, or of an array of numbers, at these times.
        kind: ``"held"``: each value counts from its time to the next (zero-order hold). ``"linear"``:
            straight lines between the times. Before the first time the first value counts, after the last
            time the last value.

    Returns:
        A pytree: every value and time may be differentiated and varied.

    Raises:
        InputError: for times that do not ascend, another number of values, an unknown kind.

    Limits: a step reads the segment in which it begins. If times are no multiples of the step size, a held
    value therefore acts up to one step late, and a corner between two lines at the next step (an error of
    second order). The time of a step in reverse mode is proportional to the number of values; with inputs
    that are given step by step (`nsjax.stepper`) it is not.

    Example:
        >>> import nsjax
        >>> nsjax.table([0.0, 0.1, 0.2], [0.0, 1.0, 0.0], kind="linear").kind
        'linear'
    """
    check_choice("table: kind", kind, KINDS)
    times, values = numbers("table", "times", times), numbers("table", "values", values)
    if np.ndim(times) != 1 or not np.shape(times)[0]:
        raise InputError(f"table: times have shape {np.shape(times)}; give (n,), at least one")
    if np.shape(values)[:1] != np.shape(times):
        raise InputError(
            f"table: values have shape {np.shape(values)} for {np.shape(times)[0]} times; give one row for "
            "each time"
        )
    even = False
    if not is_traced(times):
        steps = np.diff(times)
        if not np.all(steps > 0.0):
            k = int(np.argmin(steps > 0.0))
            raise InputError(f"table: times[{k + 1}] = {times[k + 1]} after {times[k]}; they must ascend")
        even = len(steps) > 0 and bool(np.ptp(times - times[0] - steps[0] * np.arange(len(times))) <=
                                       0.1 * SLACK * steps[0])  # fmt: skip
    return SampledSignal(times=times, values=values, kind=kind, even=even)


def constant(name: str, value: Any) -> SampledSignal:
    """An input that keeps its value.

    Raises:
        InputError: for a function.
    """
    if callable(value):
        raise InputError(
            f"inputs: {name!r} is a function; give nsjax.table(times, values), or a law of the part itself"
        )
    value = numbers("inputs", repr(name), value)
    return table(np.zeros(1), value[None])


def first_value(signal: SampledSignal | Segment) -> Any:
    """The value of an input before any step."""
    return signal.value if isinstance(signal, Segment) else jnp.asarray(signal.values)[0]
