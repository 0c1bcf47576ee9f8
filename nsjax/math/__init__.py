"""Rotations, norms, trigonometric functions and selections with finite and cheap derivatives."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.math import rodrigues, rotations
    from nsjax.math.safe import direction, norm
    from nsjax.math.static_entries import picked, taken
    from nsjax.math.trigonometry import sin_cos

__all__ = ["direction", "norm", "picked", "rodrigues", "rotations", "sin_cos", "taken"]

lazily(__name__)
