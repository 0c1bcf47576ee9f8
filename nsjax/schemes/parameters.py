"""Parameters of integration methods that several families of schemes use."""

from __future__ import annotations

from typing import Any


def chung_hulbert(rho_inf: Any) -> tuple[Any, Any, Any, Any]:
    """Parameters ``alpha_m, alpha_f, beta, gamma`` of Chung and Hulbert's generalized-alpha method with the
    spectral radius ``rho_inf`` at infinite frequency, [R&S (26)].
    """
    alpha_m, alpha_f = (2 * rho_inf - 1) / (rho_inf + 1), rho_inf / (rho_inf + 1)
    return alpha_m, alpha_f, 1 / (1 + rho_inf) ** 2, (3 - rho_inf) / (2 * (1 + rho_inf))
