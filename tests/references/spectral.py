"""Spectral radii and period errors in closed form, without the package: the amplification matrix of the
generalized-alpha family [R&S] (95), (96) and the stability functions of Bathe's and the ED-alpha method.
"""

from __future__ import annotations

import fractions

import numpy as np


def family(omega: float, alpha_m: float, alpha_f: float) -> np.ndarray:
    """Roots for ``X = (q, dt v, dt^2 A)``, with beta and gamma of [R&S] (98), (102)."""
    w = omega**2
    b, g = 0.25 * (1 - alpha_m + alpha_f) ** 2, 0.5 - alpha_m + alpha_f
    am, af = alpha_m, alpha_f
    rows = [
        [1 - am - af * b * w, 1 - am, (0.5 - b) * (1 - am) - b * am],
        [-g * w, 1 - am - (1 - af) * (g - b) * w, (1 - g) * (1 - am) - g * am - (1 - af) * (g / 2 - b) * w],
        [-w, -(1 - af) * w, -(1 - af) * (0.5 - b) * w - am],
    ]
    return np.linalg.eigvals(np.array(rows) / (1 - am + (1 - af) * b * w))


def bathe(omega: float) -> np.ndarray:
    """Roots: trapezoidal rule, then the three-point backward formula, ``(12 + 5 z)/((3 - z)(4 - z))``."""
    z = 1j * omega
    root = (12 + 5 * z) / ((3 - z) * (4 - z))
    return np.array([root, root.conjugate()])


def ed_alpha(omega: float, rho: float, ar: float) -> np.ndarray:
    """Roots of the two stages of [R&S] (79)-(82), ``alpha = (1 - rho)/(1 + rho)``."""
    z, alpha = 1j * omega, (1 - rho) / (1 + rho)
    upper = 2 + (1 - 2 * alpha * ar) * z + ar * (1 - alpha) * z**2
    root = upper / (2 - (1 + 2 * alpha * ar) * z + ar * (1 + alpha) * z**2)
    return np.array([root, root.conjugate()])


def roots(name: str, ratio: float, figure: str = "") -> np.ndarray:
    """Roots of the curve of a figure, by the name of its numbers, at ``dt/T = ratio``."""
    omega = 2.0 * np.pi * ratio
    kind, _, text = name.rpartition(" ")
    if name in ("A", "C"):
        return family(omega, -1.0, 0.5 if name == "A" else -0.5)
    if name == "Bathe":
        return bathe(omega)
    rho = {"Newmark": 1.0, "partner of A": 1.0, "partner of C": 1.0 / 3.0}.get(name)
    value = float(fractions.Fraction(text)) if rho is None else rho
    if kind == "HHT":
        return family(omega, 0.0, value)
    if kind == "ED-alpha":
        return (
            ed_alpha(omega, 0.0, value) if figure == "fig11_ed_alpha_ar" else ed_alpha(omega, value, 1 / 6)
        )
    return family(omega, (2 * value - 1) / (value + 1), value / (value + 1))


def radius(name: str, ratio: float, figure: str = "") -> float:
    """Largest modulus of the roots."""
    return float(np.max(np.abs(roots(name, ratio, figure))))


def period_error(name: str, ratio: float, figure: str = "") -> float:
    """``omega dt / |arg lambda| - 1`` of the complex root, [R&S] (105)."""
    found = roots(name, ratio, figure)
    principal = found[np.argmax(np.abs(found.imag))]
    return float(2.0 * np.pi * ratio / np.abs(np.angle(principal)) - 1.0)
