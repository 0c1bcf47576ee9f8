"""Time-stepping schemes, one file per family, and their registry."""

from nsjax.schemes.bathe import bathe
from nsjax.schemes.ed_alpha import ed_alpha
from nsjax.schemes.generalized_alpha import generalized_alpha, hht, newmark
from nsjax.schemes.half_explicit import half_explicit
from nsjax.schemes.moreau import moreau
from nsjax.schemes.moreau_theta import moreau_theta
from nsjax.schemes.registry import REGISTRY, SchemeEntry

__all__ = [
    "REGISTRY",
    "SchemeEntry",
    "bathe",
    "ed_alpha",
    "generalized_alpha",
    "half_explicit",
    "hht",
    "moreau",
    "moreau_theta",
    "newmark",
]
