"""Optimal control of mechanisms with impacts: gradients and curvature of located runs."""
