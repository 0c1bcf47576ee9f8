"""Identification: slider-crank from a noisy path, cube from measured tosses."""
