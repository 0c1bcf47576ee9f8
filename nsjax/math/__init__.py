"""Rotations, norms and trigonometric functions with derivatives that are finite and cheap."""

from nsjax.math import rodrigues, rotations
from nsjax.math.safe import direction, norm
from nsjax.math.trigonometry import sin_cos

__all__ = ["direction", "norm", "rodrigues", "rotations", "sin_cos"]
