"""Cost of a step: `nsjax` beside other ways to compute the same motion."""
