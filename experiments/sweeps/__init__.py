"""Sweeps: maps over two parameters, a bifurcation diagram, work-precision diagrams, several processes."""
