"""Statics: equilibria of problems, and stable positions of rest."""
