"""What an identification takes and returns: recordings of the real system, and the estimate."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from nsjax.core import InputError, Problem, State
from nsjax.core.arguments import check_is, numbers
from nsjax.core.errors import check_known
from nsjax.types import as_html


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recording:
    """Measured values of one run.

    Args:
        times: (n,) increasing times [s], on the clock of the problem's initial state.
        values: per observable, by its name in ``traj[name]`` (``"x"``, ``"theta1"``, ``"energy"``, of
            mechanisms also ``"pin.position"``, ``"pin.force.x"``, ``"rod.acceleration.y"``), the (n,)
            measured values in its unit, see ``traj.unit(name)``. Entries may be not a number where they
            are masked.
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
            check_known(f"{who}: {what} of", name, self.values)
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


# The result of an identification.


@dataclasses.dataclass(frozen=True)
class Fit:
    """One recording and the corresponding run of the model.

    Args:
        name, times: name and times (n,) [s] of the recording.
        measured, model, noise: values (n,) per observable; nan where masked.
        start: values of the model with the numbers at which the search started.
        held_out: whether the recording was kept from the fit.
    """

    name: str
    times: np.ndarray
    measured: dict[str, np.ndarray]
    model: dict[str, np.ndarray]
    start: dict[str, np.ndarray]
    noise: dict[str, np.ndarray]
    held_out: bool

    def rms(self, which: str = "model") -> dict[str, float]:
        """Root mean square of measured minus model, per observable; ``which``: ``model`` or ``start``."""
        found = getattr(self, which)
        return {k: float(np.sqrt(np.nanmean((x - found[k]) ** 2))) for k, x in self.measured.items()}

    def residual(self, name: str) -> np.ndarray:
        """Measured minus model over the noise level (n,)."""
        return np.asarray((self.measured[name] - self.model[name]) / self.noise[name])


@dataclasses.dataclass(frozen=True)
class Run:
    """One search: final numbers and cost, convergence, why it ended, costs and numbers of its steps."""

    values: np.ndarray
    cost: float
    converged: bool
    why: str
    costs: np.ndarray
    path: np.ndarray


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Result of `identify`; prints as a table with the messages below it.

    Args:
        names: names of the trained numbers.
        values: (p,) the estimates; ``estimate["friction"]`` gives the one of that name.
        interval: (p, 2) confidence intervals of ``level``, inside the ranges of the transforms.
        covariance: (p, p); `deviation` holds the roots of its diagonal, `correlation` its normalised form.
        singular_values, directions: of the sensitivity matrix for relative changes of the numbers,
            largest first; the inverse of a singular value is the relative standard deviation along its
            direction. With several recordings: for the common numbers, those of single recordings
            eliminated.
        success: whether the search converged, all numbers are identifiable, and the gradient is not zero.
        messages: sentences: how the search ended, which numbers are not identifiable or at a bound, how
            well the residuals agree with the noise.
        chi_squared: sum of squared residuals over the noise per degree of freedom; one is expected. None
            for an unknown noise level, to which nothing can be compared.
        noise: estimate of an unknown noise level, None if it was given.
        runs: the searches, best first; ``runs[0].costs`` is the history of the best.
        fits: every recording with its run of the model, those held out included.
        problem: the problem with the estimated parameters (and, for one recording, its estimated start).
        calls: number of calls of the compiled program.
        level: probability of the intervals.
        intervals: their source: ``"noise"``, ``"profile"``, ``"recordings"`` or ``"bootstrap"``.
        holds: whether the intervals contain the true numbers with the probability ``level``, as far as the
            fit can tell; if not, a message says why, and the level is not printed.
        hessian: (p, p) exact second derivatives of the cost with respect to the numbers, with
            ``curvature="exact"``: the observed information in units of the noise. None with ``"linear"``.
        linear_covariance: (p, p) from the noise and the linearised model, with ``curvature="exact"``; else
            None.
    """

    names: tuple[str, ...]
    values: np.ndarray
    interval: np.ndarray
    covariance: np.ndarray
    singular_values: np.ndarray
    directions: np.ndarray
    success: bool
    messages: tuple[str, ...]
    chi_squared: float | None
    noise: float | None
    runs: tuple[Run, ...]
    fits: tuple[Fit, ...]
    problem: Problem
    calls: int
    level: float
    intervals: str = "noise"
    holds: bool = True
    hessian: np.ndarray | None = None
    linear_covariance: np.ndarray | None = None

    def __getitem__(self, name: str) -> float:
        try:
            return float(self.values[self.names.index(name.removeprefix("params."))])
        except ValueError:
            raise KeyError(f"no estimate {name!r}; known: {', '.join(self.names)}") from None

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviations (p,); infinite where the data say nothing, nan for a number at a bound."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def correlation(self) -> np.ndarray:
        """Correlations (p, p); zero for numbers without a finite deviation."""
        d = np.where(np.isfinite(self.deviation) & (self.deviation > 0.0), self.deviation, 1.0)
        inner = np.where(np.isfinite(self.covariance), self.covariance, 0.0) / np.outer(d, d)
        eye = np.eye(len(d), dtype=bool)
        return np.asarray(np.where(eye, 1.0, inner))

    @property
    def held_out(self) -> tuple[Fit, ...]:
        """Recordings kept from the fit, with their runs of the model: the predictive check."""
        return tuple(fit for fit in self.fits if fit.held_out)

    def _repr_html_(self) -> str:
        return as_html(self)

    def __str__(self) -> str:
        # largest number of rows of a printed table; numbers common to all recordings come first
        listed = 30
        width = max(len(name) for name in self.names[:listed])
        head = f"{100 * self.level:g} % interval" if self.holds else "interval, of no known level"
        lines = [f"{'':{width}} {'estimate':>13} {'std. dev.':>10}   {head}"]
        rows = zip(self.names, self.values, self.deviation, self.interval, strict=True)
        for name, x, s, (a, b) in itertools.islice(rows, listed):
            lines.append(f"{name:{width}} {x:13.6g} {s:10.2g}   [{a:.6g}, {b:.6g}]")
        if len(self.names) > listed:
            lines.append(f"and {len(self.names) - listed} more; all of them: names, values, interval")
        lines += list(self.messages)
        for fit in self.held_out:
            before, after = fit.rms("start"), fit.rms()
            parts = ", ".join(f"{k} {before[k]:.3g} -> {after[k]:.3g}" for k in after)
            lines.append(f"held out {fit.name}: rms error with the start values -> the estimate: {parts}")
        return "\n".join(lines)


def as_dict(estimate: Estimate) -> dict[str, Any]:
    """Results and messages of an estimate for a JSON file."""

    def plain(x: np.ndarray) -> list[float | None]:
        return [float(v) if np.isfinite(v) else None for v in x]

    return {
        "success": estimate.success,
        "messages": list(estimate.messages),
        "names": list(estimate.names),
        "values": plain(estimate.values),
        "deviation": plain(estimate.deviation),
        "interval": [plain(row) for row in estimate.interval],
        "level": estimate.level if estimate.holds else None,
        "intervals": estimate.intervals,
        "covariance": [plain(row) for row in estimate.covariance],
        "singular_values": plain(estimate.singular_values),
        "chi_squared": estimate.chi_squared,
        "noise": estimate.noise,
        "history": plain(estimate.runs[0].costs),
        "held_out": {fit.name: fit.rms() for fit in estimate.held_out},
    }
