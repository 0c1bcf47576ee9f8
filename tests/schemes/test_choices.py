"""Numbers and choices of schemes that have no meaning are refused before any work starts."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from nsjax import schemes
from nsjax.core import InputError

REFUSED = [
    (lambda: schemes.generalized_alpha(2.0), "generalized_alpha: rho_inf = 2.0; it must lie in [0, 1]"),
    (lambda: schemes.generalized_alpha(jnp.array([0.5, -0.1])), "rho_inf = [ 0.5 -0.1]; it must lie in"),
    (lambda: schemes.generalized_alpha(alpha_m=0.1), "alpha_m = 0.1, alpha_f = None; give both"),
    (lambda: schemes.hht(0.6), "hht: alpha_f = 0.6; it must lie in [0, 0.5]"),
    (lambda: schemes.ed_alpha(-0.5), "ed_alpha: rho_inf = -0.5"),
    (
        lambda: schemes.ed_alpha(alpha_ar=0.0),
        "alpha_ar = 0.0; it must be at least 1e-06; at 0 no",
    ),
    (lambda: schemes.ed_alpha(alpha_ar=-0.1), "alpha_ar = -0.1; it must be at least 1e-06"),
    (
        lambda: schemes.generalized_alpha(alpha_m=1.0, alpha_f=0.5),
        "alpha_m = 1.0; it must lie in [-inf, ",
    ),
    (lambda: schemes.newmark(beta=-1.0), "newmark: beta = -1.0; it must be at least 0"),
    (lambda: schemes.nsga_coupled(float("nan")), "nsga_coupled: rho_inf = nan"),
    (lambda: schemes.moreau_theta(0.0), "moreau_theta: theta = 0.0; it must lie in [0.5, 1]"),
    (lambda: schemes.bathe(max_passes=0), "bathe: max_passes = 0; it must be at least 1"),
    (lambda: schemes.moreau(max_iterations=0), "moreau: max_iterations = 0; it must be at least 1"),
    (lambda: schemes.localized(schemes.moreau(), max_roots=0), "localized: max_roots = 0"),
    (lambda: schemes.bathe(laws_at_start=True), "bathe: unknown option 'laws_at_start'; Known: stage_tol"),
    (lambda: schemes.hht(tolerence=1e-9), "hht: unknown option 'tolerence'; did you mean 'tolerance'?"),
    (lambda: schemes.ggl_unified(gap="rough"), "gap = 'rough'; choose one of nonlinear, linearised"),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED, ids=[s for _, s in REFUSED])
def test_refusals(make, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        make()
    assert sentence in str(error.value)


def test_traced_numbers_pass() -> None:
    assert jax.jit(lambda rho: schemes.generalized_alpha(rho).coef.rho_inf)(0.3) == 0.3
