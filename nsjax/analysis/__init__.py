"""Properties of schemes: amplification matrices, convergence of errors."""

from nsjax.analysis.amplification import (
    amplification_matrix,
    numerical_damping,
    oscillator,
    relative_period_error,
    spectral_radius,
)
from nsjax.analysis.convergence import hausdorff, observed_order, paper_error

__all__ = [
    "amplification_matrix",
    "hausdorff",
    "numerical_damping",
    "observed_order",
    "oscillator",
    "paper_error",
    "relative_period_error",
    "spectral_radius",
]
