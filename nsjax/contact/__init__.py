"""Contact laws and the contact problem: law, problem, solver and certificate stand apart."""

from nsjax.contact.certificate import natural_residual, worst_contact
from nsjax.contact.jump import Jump, no_jump, velocity_jump
from nsjax.contact.law import ContactLaw
from nsjax.contact.newton import ContactSolution, solve
from nsjax.contact.problem import ContactProblem

__all__ = [
    "ContactLaw",
    "ContactProblem",
    "ContactSolution",
    "Jump",
    "natural_residual",
    "no_jump",
    "solve",
    "velocity_jump",
    "worst_contact",
]
