"""The table of speed as a picture: each figure over its bound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import common
from .side_by_side import Row

MET, MISSED = "#2a7f62", "#c8501e"


def share(row: Row) -> float | None:
    """Ratio of the found to the required figure, at most one where the bound is met; None without a bound.

    Example:
        >>> from experiments.performance.drawing import share
        >>> from experiments.performance.side_by_side import Row
        >>> share(Row("a step [us]", 3.0, asked=2.0)), share(Row("steps/s", 3.0, asked=6.0, least=True))
        (1.5, 2.0)
    """
    if row.asked is None or not row.found > 0.0:
        return None
    return row.asked / row.found if row.least else row.found / row.asked


def draw(rows: Sequence[tuple[str, Row]], folder: Path) -> Path | None:
    """Saves ``table.png``: for each figure a bar from one to the ratio of found and required value.

    Args:
        rows: rows with the names of their sections.
        folder: folder of the file.

    Returns:
        The file; None if no figure has a bound.
    """
    shown = [(section, row, x) for section, row in rows if (x := share(row)) is not None]
    if not shown:
        return None

    def paint(figure: Any) -> None:
        axis = figure.subplots()
        places = range(len(shown))
        for place, (_, _, x) in zip(places, shown, strict=True):
            axis.barh(place, x - 1.0, left=1.0, color=MET if x <= 1.0 else MISSED)
        axis.axvline(1.0, color="black", linewidth=0.6)
        axis.set_xscale("log")
        axis.set_yticks(places, [f"{section}: {row.what}" for section, row, _ in shown], fontsize=5)
        axis.set_ylim(len(shown) - 0.4, -0.6)
        axis.set_xlabel("found over asked")

    common.draw(folder / "table", 16.0, 2.5 + 0.35 * len(shown), paint)
    return folder / "table.png"
