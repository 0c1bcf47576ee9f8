"""Ranges of trained numbers: coordinates without bounds, or bounds that the search respects.

The optimiser works on ``z``; the number of the model is ``x(z)``. A log or logistic map keeps the number
inside a range whose ends it never reaches; `box` has the number itself as coordinate and stops at the wall.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from nsjax.core import InputError
from nsjax.core.arguments import numbers

WALL = 12.0
"""Largest absolute logistic coordinate: the number is then within 6e-6 of the range from its end."""


@dataclasses.dataclass(frozen=True)
class Transform:
    """Range and coordinate of a trained number: `free`, `positive`, `interval`, `box` or `fixed`.

    Args:
        kind: name of the transform.
        low, high: ends of the range of the number.
        initial: number at which the search starts; None: the problem's own value.

    Example:
        >>> from nsjax import transforms
        >>> transforms.interval(0.0, 1.0).forward(0.0).item()
        0.5
    """

    kind: str
    low: float = -np.inf
    high: float = np.inf
    initial: float | None = None

    def forward(self, z: np.ndarray) -> np.ndarray:
        """The number at ``z``."""
        if self.kind == "positive":
            return self.low + np.exp(z)
        if self.kind == "interval":
            return self.low + (self.high - self.low) / (1.0 + np.exp(-z))
        return np.asarray(z, float)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        """The coordinate of a number inside the range."""
        x = np.asarray(x, float)
        if self.kind == "positive":
            return np.log(x - self.low)
        if self.kind == "interval":
            return np.clip(np.log((x - self.low) / (self.high - x)), -WALL, WALL)
        return x

    def slope(self, z: np.ndarray) -> np.ndarray:
        """Derivative ``dx/dz``."""
        if self.kind == "positive":
            return np.exp(z)
        if self.kind == "interval":
            part = 1.0 / (1.0 + np.exp(-z))
            return (self.high - self.low) * part * (1.0 - part)
        return np.ones_like(np.asarray(z, float))

    def bend(self, z: np.ndarray) -> np.ndarray:
        """Second derivative ``d2x/dz2``."""
        if self.kind == "positive":
            return np.exp(z)
        if self.kind == "interval":
            return self.slope(z) * np.tanh(-0.5 * z)
        return np.zeros_like(np.asarray(z, float))

    def walls(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the coordinate, for a search that starts at ``z``."""
        one = np.ones_like(z)
        if self.kind == "positive":
            far = 50.0  # largest distance of a logarithmic coordinate from its start
            return z - far, z + far
        if self.kind == "interval":
            return -WALL * one, WALL * one
        return self.low * one, self.high * one

    def bound(self, x: float, start: float) -> float | None:
        """The end of the range at which the number lies, None inside the range; a `positive` number is at
        its end when it has fallen to a thousandth of its start.
        """
        # distance from the end of an interval, over its length, below which a number is at its bound
        close = 1e-3
        if self.kind == "positive":
            return self.low if x - self.low <= close * (start - self.low) else None
        room = close * (self.high - self.low) if self.kind == "interval" else 0.0
        if x <= self.low + room:
            return self.low
        return self.high if x >= self.high - room else None

    def holds(self, x: np.ndarray) -> bool:
        """Whether a number is inside the range."""
        if self.kind in ("positive", "interval"):
            return bool(np.all((x > self.low) & (x < self.high)))
        return bool(np.all((x >= self.low) & (x <= self.high)))

    def sample(self, x: np.ndarray, spread: float, rng: np.random.Generator) -> np.ndarray:
        """Random start of a search: anywhere in a range with two ends; else within a factor ``1 + spread``
        of a positive number, or within ``spread`` times the size of any other number.
        """
        u = rng.uniform(-1.0, 1.0, np.shape(x))
        if np.isfinite(self.low) and np.isfinite(self.high):
            return 0.5 * (self.low + self.high) + 0.5 * (self.high - self.low) * u
        if self.kind == "positive":
            return self.low + (x - self.low) * (1.0 + spread) ** u
        size = np.where(x == 0.0, 1.0, np.abs(x))
        return np.clip(x + spread * size * u, self.low, self.high)


def _ends(what: str, low: float, high: float) -> tuple[float, float]:
    for end in (low, high):
        if numbers(what, "an end", end).ndim:
            raise InputError(f"{what}: an end = {end!r}; give one number")
    if not low < high:
        raise InputError(f"{what}({low}, {high}): the lower end must lie below the upper one")
    return float(low), float(high)


def free(initial: float | None = None) -> Transform:
    """A number without bounds.

    Args:
        initial: start of the search, in the unit of the number; None: the problem's own value.

    Example:
        >>> from nsjax import transforms
        >>> transforms.free().forward(-2.0).item()
        -2.0
    """
    return Transform("free", initial=initial)


def positive(initial: float | None = None, low: float = 0.0) -> Transform:
    """A number above ``low``: ``x = low + exp(z)``.

    Args:
        initial: as for `free`.
        low: end of the range, in the unit of the number.

    Example:
        >>> from nsjax import transforms
        >>> t = transforms.positive()
        >>> round(float(t.forward(t.inverse(0.3))), 12)
        0.3
    """
    return Transform("positive", low=float(low), initial=initial)


def interval(low: float, high: float, initial: float | None = None) -> Transform:
    """A number between two ends, which it never reaches: ``x = low + (high - low) / (1 + exp(-z))``.

    Args:
        low, high: ends of the range, in the unit of the number.
        initial: as for `free`.

    Raises:
        InputError: for ends in the wrong order.

    Example:
        >>> from nsjax import transforms
        >>> transforms.interval(0.0, 1.0).forward(0.0).item()
        0.5
    """
    return Transform("interval", *_ends("interval", low, high), initial)


def box(low: float = -np.inf, high: float = np.inf, initial: float | None = None) -> Transform:
    """A number that may lie on the ends of its range; the search slides along them.

    Args:
        low, high: ends of the range, in the unit of the number.
        initial: as for `free`.

    Raises:
        InputError: for ends in the wrong order.

    Example:
        >>> from nsjax import transforms
        >>> transforms.box(0.0, 1.0).bound(1.0, start=0.5)
        1.0
    """
    return Transform("box", *_ends("box", low, high), initial)


def fixed(value: float | None = None) -> Transform:
    """A number that is not trained.

    Args:
        value: value of the number, in its unit; None: the problem's own.

    Example:
        >>> from nsjax import transforms
        >>> transforms.fixed(9.81).initial
        9.81
    """
    return Transform("fixed", initial=value)
