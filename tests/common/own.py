"""Schemes that users wrote, by the names of the worked examples: tested as the registered ones."""

from __future__ import annotations

from experiments.examples.rho_infinity_bathe import rho_infinity_bathe
from experiments.examples.schatzman_paoli import schatzman_paoli
from nsjax.schemes import SchemeEntry

OWN = {
    "rho_infinity_bathe": SchemeEntry(
        factory=rho_infinity_bathe, order=(2, 2, 2), summary="a base scheme of the mixed framework"
    ),
    "schatzman_paoli": SchemeEntry(
        factory=schatzman_paoli, order=(1, 1, 1), stability_limit=2.0, summary="a scheme of impulses"
    ),
}
