"""Measured data: one `Recording` per run of the real system."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from nsjax.core import InputError, State
from nsjax.core.arguments import check_is, numbers
from nsjax.core.errors import nearest


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recording:
    """Measured values of one run.

    Args:
        times: (n,) increasing times [s], on the clock of the problem's initial state.
        values: per observable, by its label (``"x"``, ``"theta1"``, ``"energy"``), the (n,) measured values
            in the unit of the label. Entries may be not a number where they are masked.
        noise: standard deviation of the values: a number for all observables, or a mapping of observables
            to numbers or arrays (n,). None: unknown, the same for all values, estimated from the residuals
            of the fit; required for observables of different units.
        mask: (n,) bool, or a mapping of observables to masks: False where a value is missing or
            unreliable. None: all values count.
        start: the `State` in which this recording starts; None: that of the problem.
        name: name of the recording in messages and figures.

    Raises:
        InputError: for shapes that do not fit, times that do not increase, unmasked values that are not
            finite, noise that is not positive.

    Example:
        >>> from nsjax import Recording
        >>> Recording(times=[0.0, 0.1], values={"y": [1.0, 0.95]}, noise=1e-3).count
        2
    """

    times: Any
    values: Mapping[str, Any]
    noise: Any = None
    mask: Any = None
    start: State | None = None
    name: str = ""

    def __post_init__(self) -> None:
        who = f"recording {self.name!r}" if self.name else "recording"
        times = numbers(who, "times", self.times)
        if times.ndim != 1 or times.size < 1 or not np.all(np.isfinite(times)):
            raise InputError(f"{who}: times has shape {times.shape}; give (n,) finite instants")
        if np.any(np.diff(times) <= 0.0):
            late = int(np.flatnonzero(np.diff(times) <= 0.0)[0]) + 1
            raise InputError(f"{who}: times[{late}] = {times[late]:g} does not increase; sort the data")
        if not isinstance(self.values, Mapping) or not self.values:
            raise InputError(f"{who}: values = {self.values!r}; give a mapping of labels to arrays")
        strange = next((name for name in self.values if not isinstance(name, str)), None)
        if strange is not None:
            raise InputError(
                f"{who}: the label {strange!r} is no word; give that of a column, 'y' for instance"
            )
        if self.start is not None:
            check_is(who, "start", self.start, State)
        values = {name: numbers(who, name, x) for name, x in self.values.items()}
        for name, x in values.items():
            if x.shape != times.shape:
                raise InputError(f"{who}: {name} has shape {x.shape}; there are {times.size} times")
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "mask", self._mask(who))
        object.__setattr__(self, "noise", self._noise(who))
        for name, x in values.items():
            bad = self.mask[name] & ~np.isfinite(x)
            if bad.any():
                raise InputError(
                    f"{who}: {name}[{int(np.flatnonzero(bad)[0])}] is not finite; mask what is missing"
                )

    def _each(self, given: Any, what: str, who: str) -> dict[str, Any]:
        """One entry per observable."""
        if not isinstance(given, Mapping):
            return dict.fromkeys(self.values, given)
        for name in given:
            if name not in self.values:
                raise InputError(f"{who}: {what} of {name!r}; {nearest(str(name), self.values)}")
        missing = [name for name in self.values if name not in given]
        if missing and what == "noise":
            raise InputError(f"{who}: noise of {missing[0]!r} is missing; give that of all observables")
        return {name: given.get(name) for name in self.values}

    def _mask(self, who: str) -> dict[str, np.ndarray]:
        found = {}
        for name, given in self._each(self.mask, "mask", who).items():
            mask = np.ones(len(self.times), bool) if given is None else np.asarray(given)
            if mask.shape != self.times.shape or mask.dtype != bool:
                raise InputError(f"{who}: mask of {name!r} must hold {len(self.times)} booleans")
            found[name] = mask
        if not any(mask.any() for mask in found.values()):
            raise InputError(f"{who}: every value is masked; there is nothing to fit")
        return found

    def _noise(self, who: str) -> dict[str, np.ndarray] | None:
        if self.noise is None:
            return None
        found = {}
        for name, given in self._each(self.noise, "noise", who).items():
            level = numbers(who, f"noise of {name!r}", given)
            if level.shape not in ((), self.times.shape):
                raise InputError(
                    f"{who}: noise of {name!r} has shape {level.shape}; there are {len(self.times)} times"
                )
            level = np.broadcast_to(level, self.times.shape)
            if not np.all(np.isfinite(level)) or not np.all(level > 0.0):
                raise InputError(f"{who}: noise of {name!r} = {given}; it must be positive")
            found[name] = level
        return found

    def __repr__(self) -> str:
        ends = f"{len(self.times)} times from {self.times[0]:g} to {self.times[-1]:g} s"
        named = f"{self.name!r}, " if self.name else ""
        return f"Recording({named}{', '.join(self.values)}, {ends}, {self.count} values)"

    @property
    def count(self) -> int:
        """Number of values that count."""
        return int(sum(mask.sum() for mask in self.mask.values()))
