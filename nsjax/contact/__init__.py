"""Contact laws and the contact problem: law, problem, solver and certificate stand apart."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.contact.events import Criteria
    from nsjax.contact.jump import Jump, StepForces, forced_jump, no_jump, velocity_jump
    from nsjax.contact.poisson import PoissonLaw
    from nsjax.contact.problem import (
        ContactLaw,
        ContactProblem,
        DelassusFactors,
        SpeedLaw,
        complementarity_gap,
        cone_violation,
        natural_residual,
        worst_contact,
    )
    from nsjax.contact.solvers import METHODS, ContactSolution, SolverSettings, solve
    from nsjax.core.row_groups import (
        Bounded,
        Coulomb,
        GivenForces,
        RateLaw,
        RowGroup,
        RowGroups,
        Unilateral,
    )

__all__ = [
    "METHODS", "Bounded", "ContactLaw", "ContactProblem", "ContactSolution", "Coulomb", "Criteria",
    "DelassusFactors", "GivenForces", "Jump", "PoissonLaw", "RateLaw", "RowGroup", "RowGroups",
    "SolverSettings", "SpeedLaw", "StepForces", "Unilateral", "complementarity_gap", "cone_violation",
    "forced_jump", "natural_residual", "no_jump", "solve", "velocity_jump", "worst_contact",
]  # fmt: skip

lazily(__name__)
