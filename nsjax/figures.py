"""Figures of matplotlib that belong to no window and that notebooks show."""

from __future__ import annotations

import functools
import io
from typing import Any

from nsjax.core.errors import optional


def require_matplotlib() -> None:
    """Refuses to go on if matplotlib is missing."""
    optional("figures need", "plot", "matplotlib")


@functools.cache
def _shown_figure() -> Any:
    """A figure that notebooks show, whatever backend is set and without pyplot."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        """Figure with a picture for notebooks."""

        def _repr_png_(self) -> bytes:
            drawn = io.BytesIO()
            # dots per inch of figures in notebooks
            self.savefig(drawn, format="png", dpi=110)
            return drawn.getvalue()

    return ShownFigure


def new_figure(**options: Any) -> Any:
    """An empty `matplotlib.figure.Figure` of ``options`` that belongs to no window, for notebooks."""
    return _shown_figure()(**options)
