"""Losses of residuals: squares, and robust ones that limit the influence of outliers.

With the residual ``r`` divided by its noise level and ``z = r^2`` the cost is half the sum of ``rho(z)``.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from nsjax.core import InputError
from nsjax.core.errors import check_choice

SCALES = {"squares": 1.0, "huber": 1.345, "soft_l1": 1.0, "cauchy": 2.385}
"""Residuals over the noise above which a loss is smaller than squares (95 % efficiency for normal noise
with Huber's and Cauchy's losses; Holland & Welsch 1977)."""


@dataclasses.dataclass(frozen=True)
class Loss:
    """Loss function of the residuals: `squares`, `huber`, `soft_l1` or `cauchy`.

    Args:
        kind: name of the loss.
        scale: residual over the noise above which the loss is smaller than squares.

    Example:
        >>> import numpy as np
        >>> from nsjax.identify.losses import Loss
        >>> Loss("huber", 1.0).rho(np.array([0.5, 3.0])).tolist()
        [0.25, 5.0]
    """

    kind: str
    scale: float = 1.0

    def rho(self, r: np.ndarray) -> np.ndarray:
        """Loss ``rho(r^2)`` of residuals over their noise."""
        z, c = r * r, self.scale
        if self.kind == "huber":
            return np.where(z <= c * c, z, 2.0 * c * np.abs(r) - c * c)
        if self.kind == "soft_l1":
            return 2.0 * c * c * (np.sqrt(1.0 + z / (c * c)) - 1.0)
        if self.kind == "cauchy":
            return c * c * np.log1p(z / (c * c))
        return z

    def weight(self, r: np.ndarray) -> np.ndarray:
        """Weight ``rho'(z)`` of residuals, between 0 and 1."""
        z, c = r * r, self.scale
        if self.kind == "huber":
            return np.where(z <= c * c, 1.0, c / np.maximum(np.abs(r), c))
        if self.kind == "soft_l1":
            return 1.0 / np.sqrt(1.0 + z / (c * c))
        if self.kind == "cauchy":
            return 1.0 / (1.0 + z / (c * c))
        return np.ones_like(r)

    def slope_of_pull(self, r: np.ndarray) -> np.ndarray:
        """Derivative ``d(r rho'(r^2))/dr``, for the covariance."""
        z, c = r * r, self.scale
        if self.kind == "huber":
            return (z <= c * c).astype(float)
        if self.kind == "soft_l1":
            return (1.0 + z / (c * c)) ** -1.5
        if self.kind == "cauchy":
            return (1.0 - z / (c * c)) / (1.0 + z / (c * c)) ** 2
        return np.ones_like(r)


def read(loss: str | Loss) -> Loss:
    """A loss by its name.

    Raises:
        InputError: for an unknown loss, or a scale that is not positive.

    Example:
        >>> from nsjax.identify.losses import read
        >>> read("huber").scale
        1.345
    """
    if isinstance(loss, Loss):
        if loss.kind not in SCALES or not loss.scale > 0.0:
            raise InputError(f"loss = {loss}; choose {', '.join(SCALES)} with a positive scale")
        return loss
    check_choice("loss", loss, SCALES)
    return Loss(loss, SCALES[loss])
