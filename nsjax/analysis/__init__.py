"""Properties of schemes and of runs: amplification, convergence, energy, drift, contact events, chaos."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.analysis.comparison import hausdorff, observed_order, paper_error
    from nsjax.analysis.energy import EnergyBalance, energy_balance
    from nsjax.analysis.equilibria import Modes, load_path, modes
    from nsjax.analysis.events import Impact, Phase, Table, contact_phases, impact_table
    from nsjax.analysis.inverse import InverseDynamics, inverse_dynamics
    from nsjax.analysis.linear import Linearised, linearise
    from nsjax.analysis.lyapunov import lyapunov_exponent
    from nsjax.analysis.rows import Drift, Growth, growth, impulse_steps, measure_drift
    from nsjax.schemes.amplification import (
        amplification_matrix,
        numerical_damping,
        oscillator,
        relative_period_error,
        spectral_radius,
    )
    from nsjax.statics import Equilibria, equilibrium

__all__ = [
    "Drift", "EnergyBalance", "Equilibria", "Growth", "Impact", "InverseDynamics", "Linearised",
    "Modes", "Phase", "Table", "amplification_matrix", "contact_phases", "energy_balance",
    "equilibrium", "growth", "hausdorff", "impact_table", "impulse_steps", "inverse_dynamics",
    "linearise", "load_path", "lyapunov_exponent", "measure_drift", "modes", "numerical_damping",
    "observed_order", "oscillator", "paper_error", "relative_period_error", "spectral_radius",
]  # fmt: skip

lazily(__name__)
