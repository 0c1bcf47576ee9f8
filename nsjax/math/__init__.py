"""Rotations, norms, trigonometric functions and selections with finite and cheap derivatives."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.math import rodrigues, rotations
    from nsjax.math.elementary import dealt, direction, norm, picked, real_root, sin_cos, taken

__all__ = [
    "dealt",
    "direction",
    "norm",
    "picked",
    "real_root",
    "rodrigues",
    "rotations",
    "sin_cos",
    "taken",
]

lazily(__name__)
