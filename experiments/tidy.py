"""Last corrections of a figure: no empty panels, legends beside the curves, labels with room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

MANTISSAS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 2.0, 3.0, 5.0, 7.0), tuple(range(1, 10)))
"""Sets of labelled parts of a decade; the first set that gives two labels with room is taken, and of the
last set only the outermost two."""

DASHES = (0.0, (2.2, 1.6))
ROOM = 3.0
"""Room between a legend and curves [pixels]."""


def tidy(figure: Figure) -> None:
    """Removes panels without data, labels short logarithmic axes, makes curves that cover each other
    distinguishable, and moves legends off the curves.

    Args:
        figure: a figure with its curves.

    Limits: grids in grids are not made smaller.

    Example:
        >>> from nsjax.figures import new_figure
        >>> from experiments.tidy import tidy
        >>> figure = new_figure()
        >>> left, right = figure.subplots(1, 2)
        >>> _ = left.plot([0.0, 1.0], [0.0, 1.0])
        >>> tidy(figure)
        >>> len(figure.axes)
        1
    """
    _close_gaps(figure)
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":
                _label_logarithm(axis)
    figure.draw_without_rendering()
    for axes in figure.axes:
        _tell_apart(axes)
    for axes in figure.axes:
        legend = axes.get_legend()
        if legend is not None:
            _place(figure, axes, legend)


def has_data(axes: Axes) -> bool:
    """Whether a panel shows anything except lines that mark a value."""
    if axes.name != "rectilinear" or not axes.axison or axes.images or axes.patches or axes.texts:
        return True
    lines = [x for x in axes.lines if x.get_transform() == axes.transData]
    some = any(np.isfinite(np.asarray(x.get_xydata(), float)).all(axis=1).any() for x in lines)
    return some or any(len(x.get_paths()) > 0 for x in axes.collections)


def _close_gaps(figure: Figure) -> None:
    """Removes panels without data, and rows and columns of their grids that are empty then."""
    there = [(axes, axes.get_subplotspec()) for axes in figure.axes]
    placed = [(axes, spec) for axes, spec in there if spec is not None]
    for grid in {id(spec.get_gridspec()): spec.get_gridspec() for _, spec in placed}.values():
        _close_grid(grid, [(axes, spec) for axes, spec in placed if spec.get_gridspec() is grid])


def _close_grid(grid: Any, placed: list[tuple[Axes, Any]]) -> None:
    full = {spec.num1 for axes, spec in placed if has_data(axes)}
    if len(full) in (0, len({spec.num1 for _, spec in placed})):
        return
    rows = sorted({r for _, s in placed if s.num1 in full for r in s.rowspan})
    columns = sorted({c for _, s in placed if s.num1 in full for c in s.colspan})
    names = {(s.rowspan.start, s.colspan.start): (a.get_xlabel(), a.get_ylabel()) for a, s in placed}
    heights, widths = grid.get_height_ratios(), grid.get_width_ratios()
    whole: Any = placed[0][0].get_figure()
    fresh = whole.add_gridspec(
        len(rows), len(columns),
        height_ratios=None if heights is None else [heights[r] for r in rows],
        width_ratios=None if widths is None else [widths[c] for c in columns],
    )  # fmt: skip
    for axes, spec in placed:
        if spec.num1 not in full:
            axes.remove()
            continue
        r = [rows.index(k) for k in spec.rowspan if k in rows]
        c = [columns.index(k) for k in spec.colspan if k in columns]
        axes.set_subplotspec(fresh[r[0] : r[-1] + 1, c[0] : c[-1] + 1])
        if r[-1] == len(rows) - 1:  # a removed panel below may have had the label
            axes.xaxis.set_tick_params(labelbottom=True)
            below = [x for (_, k), (x, _) in names.items() if k == spec.colspan.start and x]
            axes.set_xlabel(axes.get_xlabel() or (below or [""])[-1])
        if c[0] == 0 and axes.yaxis.get_label_position() == "left":
            axes.yaxis.set_tick_params(labelleft=True)


def _label_logarithm(axis: Any) -> None:
    """Labels a logarithmic axis: whole powers of ten if there are two; else plain numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    if not 0.0 < low < high or not np.isfinite(high):
        return
    axis.set_minor_formatter(NullFormatter())
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    # least distance of the outermost labels of a logarithmic axis, as a share of its length: a label such
    # as ``$8\times10^{-4}$`` is up to a sixth as long as the narrowest panel
    room = 0.2
    for mantissas in MANTISSAS:
        marks = np.outer(powers, mantissas).ravel()
        marks = marks[(low <= marks * (1 + 1e-12)) & (marks <= high * (1 + 1e-12))]
        if mantissas is MANTISSAS[-1]:
            marks = marks[[0, -1]] if len(marks) else marks
        if len(marks) > 1 and np.log(marks[-1] / marks[0]) >= room * np.log(high / low):
            break
    else:
        marks = np.asarray(MaxNLocator(3).tick_values(low, high))
        marks = marks[(low <= marks) & (marks <= high)][[0, -1]]
    if len(mantissas) > 1:
        axis.set_major_locator(FixedLocator(list(marks)))
        axis.set_major_formatter(FuncFormatter(lambda x, _: printed(x)))


def printed(x: float) -> str:
    r"""Text of a number at an axis.

    Example:
        >>> from experiments.tidy import printed
        >>> printed(0.02), printed(3e-5)
        ('0.02', '$3\\times10^{-5}$')
    """
    if 1e-3 <= abs(x) < 1e4 or x == 0.0:
        return f"{x:g}"
    mantissa, power = f"{x:.3e}".split("e")
    head = "" if float(mantissa) == 1.0 else rf"{float(mantissa):g}\times"
    return rf"${head}10^{{{int(power)}}}$"


def _tell_apart(axes: Axes) -> None:
    """Dashes a curve that covers an earlier curve of the same look, and gives it larger open markers."""
    seen: list[tuple[Any, np.ndarray]] = []
    for line in axes.lines:
        points = line.get_transform().transform(np.asarray(line.get_xydata(), float))
        near = [k for k, x in seen if k.get_visible() and _covers(points, x)]
        seen.append((line, points))
        if near and line.get_linestyle() == "-" and any(k.get_linestyle() == "-" for k in near):
            line.set_linestyle(DASHES)
        if near and line.get_marker() not in ("None", None, "", ",", "."):
            line.set_markerfacecolor("none")
            line.set_markersize(line.get_markersize() + 2.2 * len(near))


def _covers(one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape or not len(one):
        return False
    apart = np.abs(one - other)
    known = np.isfinite(apart).all(axis=1)
    # distance below which two curves cannot be distinguished, if it holds everywhere [pixels of 100 dpi]
    same = 1.5
    return bool(known.any() and np.max(apart[known]) < same)


def _drawn(axes: Axes) -> Iterator[np.ndarray]:
    """Points (n, 2) [pixels] of everything drawn on a panel; curves have points close to each other."""
    for line in axes.lines:
        points = line.get_transform().transform(np.asarray(line.get_xydata(), float))
        points = points[np.isfinite(points).all(axis=1)]
        if line.get_linestyle() == "None" or len(points) < 2:
            yield points
            continue
        count = np.clip(np.hypot(*np.diff(points, axis=0).T) / ROOM, 1, 400).astype(int)
        parts = [np.linspace(a, b, n + 1) for a, b, n in zip(points[:-1], points[1:], count, strict=True)]
        yield np.concatenate(parts)
    for some in axes.collections:
        offsets = np.asarray(some.get_offsets(), float).reshape(-1, 2)
        if offsets.size and offsets.any():
            yield some.get_offset_transform().transform(offsets)


def _together(figure: Figure, axes: Axes) -> list[Axes]:
    """A panel and the panels drawn over it."""
    place = axes.get_position().bounds
    return [x for x in figure.axes if np.allclose(x.get_position().bounds, place)]


def covered(figure: Figure, axes: Axes, box: Any) -> int:
    """Number of points of the curves of a panel inside a box [pixels], after the figure has been drawn."""
    low, high = np.array([box.x0, box.y0]) - ROOM, np.array([box.x1, box.y1]) + ROOM
    inside = axes.get_window_extent()
    count = 0
    for each in _together(figure, axes):
        for points in _drawn(each):
            seen = (points >= [inside.x0, inside.y0]) & (points <= [inside.x1, inside.y1])
            count += int(
                np.count_nonzero(seen.all(axis=1) & ((points >= low) & (points <= high)).all(axis=1))
            )
    return count


def _place(figure: Figure, axes: Axes, legend: Legend) -> None:
    """Moves a legend inside its panel off the curves; extends the panel upwards if there is no room."""
    box, frame = legend.get_window_extent(), axes.get_window_extent()
    outside = box.x1 <= frame.x0 or box.x0 >= frame.x1 or box.y1 <= frame.y0 or box.y0 >= frame.y1
    if outside or not covered(figure, axes, box):
        return
    # end of matplotlib's numbers of places for a legend, which begin with 1; 2 is the upper left
    places = 10
    for place in range(1, places):
        legend.set_loc(place)
        figure.draw_without_rendering()
        if not covered(figure, axes, legend.get_window_extent()):
            return
    legend.set_loc(2)
    share = min(0.6, (legend.get_window_extent().height + 4.0 * ROOM) / frame.height)
    for each in _together(figure, axes):
        low, high = each.transScale.transform([(1.0, y) for y in each.get_ylim()])[:, 1]
        top = each.transScale.inverted().transform([(1.0, low + (high - low) / (1.0 - share))])[0, 1]
        each.set_ylim(top=float(top))
