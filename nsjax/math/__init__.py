"""Rotations, norms, trigonometric functions and selections with finite and cheap derivatives."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.math import rodrigues, rotations
    from nsjax.math.elementary import direction, norm, picked, real_root, sin_cos, taken

__all__ = ["direction", "norm", "picked", "real_root", "rodrigues", "rotations", "sin_cos", "taken"]

lazily(__name__)
