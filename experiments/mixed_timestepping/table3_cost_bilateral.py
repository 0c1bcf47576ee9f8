"""[R&S] Table 3: relative CPU time per step, slider-crank with an ideal guide, dt = 1e-5 s."""

from __future__ import annotations

from pathlib import Path

from nsjax import models

from .. import common
from .costs import reproduce


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Measures Table 3; ``quick``: half of the steps and of the rounds."""
    problem = models.slider_crank_bilateral()
    return reproduce(__file__, problem, ["constraint_force"], quick, folder)


if __name__ == "__main__":
    common.command(main)
