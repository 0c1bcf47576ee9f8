"""Time-stepping schemes, one folder per family (`mixed`, `impulses`, `nsga`), and their registry.

A scheme of your own is made of what `nsjax.schemes.building` exports: a base scheme of the mixed framework
in forty lines (``experiments/examples/rho_infinity_bathe.py``), a scheme of impulses in sixty
(``experiments/examples/schatzman_paoli.py``); ``notebooks/10_your_own_scheme.ipynb`` shows both.
"""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.schemes import building
    from nsjax.schemes.impulses.ggl_unified import ggl_unified
    from nsjax.schemes.impulses.moreau import ggl_decoupled, moreau
    from nsjax.schemes.impulses.moreau_theta import moreau_theta
    from nsjax.schemes.locating.localized import localized
    from nsjax.schemes.mixed.bathe import bathe
    from nsjax.schemes.mixed.ed_alpha import ed_alpha
    from nsjax.schemes.mixed.generalized_alpha import generalized_alpha, hht, newmark
    from nsjax.schemes.mixed.half_explicit import half_explicit
    from nsjax.schemes.nsga.variants import nsga_coupled, nsga_decoupled, nsga_neglected
    from nsjax.schemes.registry import REGISTRY, SchemeEntry

__all__ = [
    "REGISTRY", "SchemeEntry", "bathe", "building", "ed_alpha", "generalized_alpha", "ggl_decoupled",
    "ggl_unified", "half_explicit", "hht", "localized", "moreau", "moreau_theta", "newmark", "nsga_coupled",
    "nsga_decoupled", "nsga_neglected",
]  # fmt: skip

lazily(__name__)
