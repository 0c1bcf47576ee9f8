"""Choices of coordinates: how positions and velocities of bodies follow from ``q`` and ``v``."""
