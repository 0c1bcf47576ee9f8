"""Norms and projections with derivatives that stay finite."""

from nsjax.math.safe import direction, norm

__all__ = ["direction", "norm"]
