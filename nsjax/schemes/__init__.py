"""Time-stepping schemes, one file per family, and their registry.

A scheme of your own is made of what `nsjax.schemes.building` exports: a base scheme of the mixed framework
in forty lines (``experiments/examples/rho_infinity_bathe.py``), a scheme of impulses in sixty
(``experiments/examples/schatzman_paoli.py``); ``notebooks/10_your_own_scheme.ipynb`` shows both.
"""

from nsjax.schemes import building
from nsjax.schemes.bathe import bathe
from nsjax.schemes.ed_alpha import ed_alpha
from nsjax.schemes.generalized_alpha import generalized_alpha, hht, newmark
from nsjax.schemes.ggl import ggl_decoupled, ggl_unified
from nsjax.schemes.half_explicit import half_explicit
from nsjax.schemes.localized import localized
from nsjax.schemes.moreau import moreau
from nsjax.schemes.moreau_theta import moreau_theta
from nsjax.schemes.nsga import nsga_coupled, nsga_decoupled, nsga_neglected
from nsjax.schemes.registry import REGISTRY, SchemeEntry

__all__ = [
    "REGISTRY",
    "SchemeEntry",
    "bathe",
    "building",
    "ed_alpha",
    "generalized_alpha",
    "ggl_decoupled",
    "ggl_unified",
    "half_explicit",
    "hht",
    "localized",
    "moreau",
    "moreau_theta",
    "newmark",
    "nsga_coupled",
    "nsga_decoupled",
    "nsga_neglected",
]
