"""Implicit derivatives of solutions of equations."""

from nsjax.nonlinear.implicit import implicit_solution

__all__ = ["implicit_solution"]
