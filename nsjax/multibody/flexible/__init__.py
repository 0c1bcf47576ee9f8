"""Flexible parts: beams, their sections, elements and surfaces."""
