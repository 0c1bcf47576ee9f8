"""Sliders for a picture in a notebook with ipywidgets; the picture alone without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nsjax.core import InputError


def explore(draw: Callable[..., Any], **ranges: Any) -> Any:
    """Sliders for the numbers of a function that draws, in a notebook with ``ipywidgets``.

    Releasing a slider calls the function and shows its result. New numbers of a problem do not compile
    again (`Problem.replace`), so that pictures of short runs appear at once.

    Args:
        draw: function that returns the object to show, a figure for instance; its keywords are the names
            of ``ranges``.
        ranges: ``name=(low, high, start)``, one slider each, in the unit of the number.

    Returns:
        The sliders with the picture below them; without ipywidgets (extra ``notebook``) the picture of the
        starting values alone, so that a notebook still runs.

    Raises:
        InputError: for an invalid range.

    Example:
        >>> from nsjax.plot import explore
        >>> def draw(restitution):
        ...     return f"a picture for {restitution}"
        >>> shown = explore(draw, restitution=(0.0, 1.0, 0.4))
    """
    if not callable(draw):
        raise InputError(f"explore: draw = {draw!r}; give a function of the numbers that returns a figure")
    for name, given in ranges.items():
        if np.shape(given) != (3,) or not given[0] <= given[2] <= given[1] or not given[0] < given[1]:
            raise InputError(
                f"explore: {name} = {given!r}; give (low, high, start), the start between them"
            )
    try:
        import ipywidgets
        from IPython.display import display
    except ImportError:
        return draw(**{name: float(start) for name, (_, _, start) in ranges.items()})
    steps = 50  # number of intervals of a slider
    sliders = {
        name: ipywidgets.FloatSlider(
            value=start, min=low, max=high, step=(high - low) / steps, description=name,
            continuous_update=False, readout_format=".3g",
        )
        for name, (low, high, start) in ranges.items()
    }  # fmt: skip
    shown = ipywidgets.Output()

    def show(change: Any = None) -> None:
        with shown:
            shown.clear_output(wait=True)
            display(draw(**{name: x.value for name, x in sliders.items()}))

    for x in sliders.values():
        x.observe(show, names="value")
    show()
    return ipywidgets.VBox([*sliders.values(), shown])
