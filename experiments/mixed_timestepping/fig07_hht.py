"""[R&S] Figure 7: HHT method (alpha_m = 0) for five values of alpha_f.

Up to alpha_f = 1/3 (point E of Figure 6) the spectral radius falls monotonically; beyond, the third
root takes over and the curve has a cusp.
"""

from __future__ import annotations

from pathlib import Path

from nsjax import schemes

from .. import common
from .spectral import Curve, reproduce, rise

VALUES = ((0.0, "0"), (0.1, "0.1"), (0.3, "0.3"), (1 / 3, "1/3"), (0.5, "0.5"))
CURVES = tuple(
    Curve(f"HHT {text}", rf"$\alpha_f = {text}$", schemes.hht(value), k)
    for k, (value, text) in enumerate(VALUES)
)


def _cusps() -> common.Numbers:
    return {f"rise of the radius, {curve.name}": rise(curve.scheme) for curve in CURVES[1:]}


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 7; ``quick``: a tenth of the points of a curve."""
    return reproduce(__file__, CURVES, quick, folder, more=_cusps)


if __name__ == "__main__":
    common.command(main)
