"""Parameters of linear methods that several families use."""

from __future__ import annotations

from typing import Any


def chung_hulbert(rho_inf: Any) -> tuple[Any, Any, Any, Any]:
    """``alpha_m, alpha_f, beta, gamma`` of the spectral radius at infinite frequency, [R&S (26)]."""
    alpha_m, alpha_f = (2 * rho_inf - 1) / (rho_inf + 1), rho_inf / (rho_inf + 1)
    return alpha_m, alpha_f, 1 / (1 + rho_inf) ** 2, (3 - rho_inf) / (2 * (1 + rho_inf))
