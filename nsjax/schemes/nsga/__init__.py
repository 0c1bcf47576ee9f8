"""Nonsmooth generalized-alpha: its levels, their solver, the step, and the three variants."""
