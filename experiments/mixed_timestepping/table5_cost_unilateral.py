"""[R&S] Table 5: relative CPU time per step, slider-crank with clearance and friction, dt = 1e-5 s."""

from __future__ import annotations

from pathlib import Path

from .. import common
from .costs import reproduce
from .rigid import ROWS, table1


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Measures Table 5; ``quick``: half of the steps and of the rounds."""
    return reproduce(__file__, table1(), ROWS, quick, folder)


if __name__ == "__main__":
    common.command(main)
