"""Time-stepping schemes, one file per family, and their registry.

A new base scheme of the mixed framework is a function of about thirty lines: it predicts, describes
its stages as affine maps of the velocity increments (`stages.Maps`), lets ``run`` solve them, and says
where the step ends (`mixed.BaseEnd`); `mixed.mixed_scheme` adds contact and constraint forces, impulses,
memory after a change of contacts, status and derivatives. ``experiments/examples/rho_infinity_bathe.py``
is a complete one in fifty lines, with its tests in ``tests/experiments/test_rho_bathe.py``.
"""

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
