"""Rotations, norms and projections with derivatives that stay finite."""

from nsjax.math import rotations
from nsjax.math.safe import direction, norm

__all__ = ["direction", "norm", "rotations"]
