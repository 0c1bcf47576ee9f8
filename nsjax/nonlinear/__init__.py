"""Derivatives that are not those of the operations carried out: implicit, and made by hand."""

from nsjax.nonlinear.implicit import SOLUTION, implicit_solution
from nsjax.nonlinear.tangents import moved, only_tangent, with_tangent

__all__ = ["SOLUTION", "implicit_solution", "moved", "only_tangent", "with_tangent"]
