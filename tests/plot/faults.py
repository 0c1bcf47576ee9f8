"""What is wrong with a drawn figure: what a reader would stumble over."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

from experiments.tidy import covered, has_data

ZERO = re.compile(r"^\$?(\\mathdefault\{)?[-\u2212]0(\.0*)?\}?\$?( |$)")
ROOM = 0.5
"""Two texts may touch by half a pixel."""


def _overlap(one: Any, other: Any) -> bool:
    return (
        min(one.x1, other.x1) - max(one.x0, other.x0) > ROOM
        and min(one.y1, other.y1) - max(one.y0, other.y0) > ROOM
    )


def _labels(axis: Any) -> list[Any]:
    low, high = sorted(axis.get_view_interval())
    room = 1e-9 * (high - low)
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    inside = [x for x in ticks if low - room <= x.get_loc() <= high + room]
    return [x.label1 for x in inside if x.label1.get_visible() and x.label1.get_text()]


def faults(figure: Any) -> Iterator[str]:
    """Sentences; none for a good figure."""
    figure.draw_without_rendering()
    frame = figure.bbox
    for one, other in itertools.combinations([*figure.texts, *figure.legends], 2):
        if _overlap(one.get_window_extent(), other.get_window_extent()):
            yield "two texts or legends of the figure over each other"
    for k, axes in enumerate(figure.axes):
        if axes.get_subplotspec() is not None and not has_data(axes):
            yield f"panel {k} is empty"
        if axes.name != "rectilinear" or not axes.axison:
            continue
        legend = axes.get_legend()
        if legend is not None and covered(figure, axes, legend.get_window_extent()):
            yield f"panel {k}: curves under the legend"
        for axis in (axes.xaxis, axes.yaxis):
            labels = _labels(axis)
            for one, other in itertools.combinations(labels, 2):
                if _overlap(one.get_window_extent(), other.get_window_extent()) and not one.get_rotation():
                    yield f"panel {k}: {one.get_text()} over {other.get_text()}"
            for x in labels:
                if ZERO.search(x.get_text()):
                    yield f"panel {k}: {x.get_text()}"
            note = axis.get_offset_text()
            if (
                legend is not None
                and note.get_text()
                and _overlap(note.get_window_extent(), legend.get_window_extent())
            ):
                yield f"panel {k}: {note.get_text()} over the legend"
        for x in (axes.title, *axes.texts):
            if ZERO.search(x.get_text()):
                yield f"panel {k}: {x.get_text()}"
        box = axes.get_tightbbox()
        if box is not None and (box.x0 < frame.x0 - 2 or box.x1 > frame.x1 + 2 or box.y1 > frame.y1 + 2):
            yield f"panel {k} leaves the figure"
