"""Numerical experiments of Rezaei and Schindler on mixed time-stepping schemes."""
