"""[R&S] Figure 45: articulated-free modes, pinned at the crank and free at the slider.

They fulfil the joint and the second condition of [R&S (191)]: the block ``m_theta f`` of the undeformed rod
vanishes, ``m_Rf`` does not.
"""

from __future__ import annotations

from pathlib import Path

from .. import common
from .fig44_free_free import reproduce


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 45; ``quick`` changes nothing."""
    return reproduce(__file__, "articulated_free", 0.0, "crank", folder)


if __name__ == "__main__":
    common.command(main)
