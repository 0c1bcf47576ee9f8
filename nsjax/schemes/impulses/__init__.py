"""Schemes whose unknown of a step is an impulse: Moreau, theta, Gear-Gupta-Leimkuhler."""
