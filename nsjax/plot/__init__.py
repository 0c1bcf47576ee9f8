"""Figures and animations of runs; matplotlib is imported at the first drawing."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.plot.animation import Animation, animate, animate_mode, check_animation, still
    from nsjax.plot.overview import identification, named, overview
    from nsjax.plot.sliders import Live, explore, live
    from nsjax.plot.style import check_format

__all__ = [
    "Animation", "Live", "animate", "animate_mode", "check_animation", "check_format", "explore",
    "identification", "live", "named", "overview", "still",
]  # fmt: skip

lazily(__name__)
