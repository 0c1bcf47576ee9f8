"""Figures of a run and of an identification."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nsjax.core import InputError, Problem
from nsjax.core.arguments import check_is, check_one_run
from nsjax.figures import new_figure
from nsjax.identify import Estimate, Fit
from nsjax.plot import panels, style
from nsjax.plot.panels import Panel
from nsjax.sensors import part_and_singular, quantity
from nsjax.trajectory import Trajectory, quantity_unit

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text


# Figure of an identification: fit, residuals, intervals, correlation.


def identification(
    estimate: Estimate, path: str | os.PathLike[str] | None = None, recording: int = 0
) -> Figure:
    """Figure of an identification: the model through the data of one recording, residuals of all fitted
    ones, intervals relative to the estimates, correlations.

    Args:
        estimate: result of `nsjax.identify`.
        path: path of the figure's file; its suffix chooses the format (png, pdf, svg, ...).
        recording: number of the recording in panel (a), held-out ones after the fitted ones.

    Returns:
        The figure, on matplotlib's Agg canvas.

    Raises:
        InputError: if matplotlib is missing, the format is unknown, or there is no such recording.
        OSError: if the file cannot be written.

    Example:
        >>> import nsjax
        >>> from nsjax import plot
        >>> plot.identification.__name__
        'identification'
    """
    check_is("identification", "estimate", estimate, Estimate)
    style.require_matplotlib()
    if path is not None:
        style.check_format(path)
    if not 0 <= recording < len(estimate.fits):
        last = len(estimate.fits) - 1
        raise InputError(f"identification: recording = {recording}; give a number from 0 to {last}")
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with rc_context(style.RC):
        dpi = 200
        figure = new_figure(figsize=(7.0, 5.0), dpi=dpi, layout="constrained")
        FigureCanvasAgg(figure)
        shown = 3  # largest number of observables drawn; `Estimate.fits` has all of them
        names = list(estimate.fits[recording].measured)[:shown]
        parts: Any = figure.subfigures(1, 2, width_ratios=[1.25, 1.0])
        left = parts[0].subplots(len(names) + 1, 1, sharex=False, squeeze=False)[:, 0]
        for ax, name in zip(left[:-1], names, strict=True):
            _fit(ax, estimate, estimate.fits[recording], name)
        left[0].set_title(f"(a) {estimate.fits[recording].name}", loc="left")
        _residuals(left[-1], estimate, names)
        intervals, correlation = parts[1].subplots(2, 1)
        _intervals(intervals, estimate)
        _correlation(correlation, estimate)
        if path is not None:
            style.save_figure(figure, path)
    return figure


def _fit(ax: Any, estimate: Estimate, fit: Fit, name: str) -> None:
    factor, unit = style.scale(fit.measured[name], quantity_unit(estimate.problem.system, name))
    ax.plot(fit.times, factor * fit.start[name], color="#BBBBBB", label="start of the search")
    ax.plot(fit.times, factor * fit.model[name], color=style.QUANTITIES[0], label="model")
    ax.plot(fit.times, factor * fit.measured[name], ".", color="k", markersize=2.5, label="measured")
    ax.set(xlabel="time (s)", ylabel=style.math_label(name) + style.print_unit(unit))
    if ax.get_subplotspec().is_first_row():
        ax.legend(loc="best")


def _residuals(ax: Any, estimate: Estimate, names: list[str]) -> None:
    ax.axhspan(-2.0, 2.0, color="#EEEEEE", linewidth=0.0)
    for fit in estimate.fits:
        if fit.held_out:
            continue
        for k, name in enumerate(n for n in names if n in fit.measured):
            size = 1.0 if estimate.noise is None else estimate.noise
            ax.plot(fit.times, fit.residual(name) / size, ".", markersize=2.5, color=style.QUANTITIES[k])
    ax.set(xlabel="time (s)", ylabel="residual / noise")
    ax.set_title("(b) measured minus model", loc="left")


def _intervals(ax: Any, estimate: Estimate) -> None:
    """Draws intervals relative to the estimates, or to their own size where the estimate is zero."""
    size = np.where(estimate.values == 0.0, np.maximum(estimate.deviation, 1e-300), np.abs(estimate.values))
    size = np.where(np.isfinite(size), size, 1.0)
    y = np.arange(len(size))[::-1]
    low, high = ((estimate.interval[:, k] - estimate.values) / size for k in (0, 1))
    known = np.isfinite(low) & np.isfinite(high) & np.isfinite(estimate.deviation)
    ax.errorbar(
        np.zeros(known.sum()), y[known], xerr=np.stack([-low[known], high[known]]), fmt="o", capsize=2.5,
        color=style.QUANTITIES[0], markersize=3,
    )  # fmt: skip
    for place in y[~known]:
        ax.text(0.0, place, "not known", ha="center", va="center", color=style.QUANTITIES[1])
    labels = [f"{n} = {v:.4g}" for n, v in zip(estimate.names, estimate.values, strict=True)]
    ax.set(yticks=y, yticklabels=labels, xlabel=f"{100 * estimate.level:g} % interval, relative")
    ax.set_title("(c) intervals", loc="left")
    ax.margins(y=0.2)


def _correlation(ax: Any, estimate: Estimate) -> None:
    shown = estimate.correlation
    ax.imshow(shown, vmin=-1.0, vmax=1.0, cmap="RdBu_r")
    ticks = np.arange(len(shown))
    ax.set(xticks=ticks, yticks=ticks, yticklabels=estimate.names)
    ax.set_xticklabels(estimate.names, rotation=30, ha="right")
    ax.grid(False)
    if len(shown) <= 6:
        for i in ticks:
            for j in ticks:
                dark = abs(shown[i, j]) > 0.6
                ax.text(j, i, f"{shown[i, j]:.2f}", ha="center", va="center", fontsize=6.5,
                        color="w" if dark else "k")  # fmt: skip
    ax.set_title("(d) correlation", loc="left")


# Figure of a run: path, velocities, contacts, energy.


def overview(problem: Problem, traj: Trajectory, path: str | os.PathLike[str] | None = None) -> Figure:
    """Figure of a run: path within its limits, positions, velocities, gaps, contact forces and impact
    impulses, forces of constraints, energies. Panels without content are left out.

    Contact forces are means over intervals between saved rows, impulse over duration, merged into at
    most 400 intervals. Intervals with an impact of the contact, or with an impact of another contact that
    gives it an impulse of the same order, are left out there; the panel of the impacts shows them with
    their whole normal impulse.

    Args:
        problem: problem of the run.
        traj: one run of it (not a batch).
        path: path of the figure's file; its suffix chooses the format (png, pdf, svg, ...).

    Returns:
        The figure, on matplotlib's Agg canvas; matplotlib's own settings and backend do not change.

    Raises:
        InputError: if matplotlib is missing, the format is unknown, or traj is a batch or the run of
            another system.
        OSError: if the file cannot be written.

    Example:
        >>> import nsjax
        >>> from nsjax import models, plot, schemes
        >>> problem = models.bouncing_ball()
        >>> traj = nsjax.simulate(problem, schemes.moreau(), dt=1e-3, steps=500)
        >>> [axes.get_title(loc="left") for axes in plot.overview(problem, traj).axes]
        ['(a) positions', '(b) velocities', '(c) gaps', '(d) normal impulses of impacts', '(e) energy']
    """
    style.require_matplotlib()
    if path is not None:
        style.check_format(path)
    check_one_run("overview", traj, problem, driven=True)
    from matplotlib import rc_context

    with rc_context(style.RC):
        figure = _arrange(traj, _choose(traj))
        if path is not None:
            style.save_figure(figure, path)
    return figure


def named(traj: Trajectory, names: Sequence[str], x: str | None = None) -> Figure:
    """Figure of the quantities ``traj[name]`` over time or another quantity, one panel for each unit.

    Args:
        traj: one run (not a batch).
        names: labels, observables, energies, and quantities of parts as for `nsjax.Trajectory.sensor`; a
            vector is drawn by its components, ``"pin.force"`` as ``"pin.force.x"``, ``"pin.force.y"``.
        x: quantity of the horizontal axis, ``"crank.angle"`` for instance, or the position beside a
            velocity in a phase portrait; None: time.

    Raises:
        InputError: if matplotlib is missing, for a batch, and for a quantity with more than one axis, or
            on the horizontal axis with more than one number.
        KeyError: for an unknown name.

    Example:
        >>> import nsjax
        >>> from nsjax import models, plot, schemes
        >>> traj = nsjax.simulate(models.bouncing_ball(), schemes.moreau(), dt=1e-3, steps=500)
        >>> [axes.get_ylabel() for axes in plot.named(traj, ["y", "energy"]).axes]
        ['$y$ (m)', 'energy (J)']
    """
    style.require_matplotlib()
    check_one_run("plot", traj)
    columns = [(name, traj.unit(whole), y) for whole in names for name, y in _components(traj, whole)]
    across = None
    if x is not None:
        along = np.asarray(traj[x])
        if along.ndim != 1:
            raise InputError(f"plot: x = {x!r} has {along.shape[1:]} numbers a row; name one number")
        across = panels.Across(x, traj.unit(x), style.finite(along))
    chosen = []
    for unit in dict.fromkeys(of for _, of, _ in columns):
        some = [(name, style.finite(y)) for name, of, y in columns if of == unit]
        chosen.append(
            panels.curves(
                traj, [name for name, _ in some], unit, np.stack([y for _, y in some], axis=1), across
            )
        )
    from matplotlib import rc_context

    with rc_context(style.RC):
        return _arrange(traj, chosen)


def _components(traj: Trajectory, name: str) -> list[tuple[str, np.ndarray]]:
    """Columns of a quantity by name: a scalar, components of a vector, or of the contacts of a part."""
    values, known = np.asarray(traj[name]), quantity(traj.system, name)
    if known.contacts:
        _, one = part_and_singular(name)
        return [column for x in known.contacts for column in _components(traj, f"{x}.{one}")]
    if values.ndim == 1:
        return [(name, values)]
    letters = known.axes
    if values.ndim != 2 or values.shape[1] > len(letters):
        raise InputError(f"plot: {name} has {values.shape[1:]} numbers a row; plot its entries yourself")
    return [(f"{name}.{letters[k]}", values[:, k]) for k in range(values.shape[1])]


def _choose(traj: Trajectory) -> list[Panel]:
    """The panels with content in the order motion, contacts, energy, so that related ones share a row."""
    labels = traj.system.labels
    motion = panels.path(traj) + panels.beams(traj)
    bent = tuple(f"{x.name}." for x in panels.beam_parts(traj))

    def others(entries: Sequence[str], values: Any) -> tuple[Sequence[str], np.ndarray]:
        """Coordinates of all bodies but the nodes of beams."""
        kept = [k for k in range(np.shape(values)[1]) if not (bent and entries[k].startswith(bent))]
        return [entries[k] for k in kept] if entries else (), np.asarray(values)[:, kept]

    if not labels.path_limits:
        motion += panels.quantities(traj, "positions", *others(labels.q, traj.q), "q")
    motion += panels.quantities(traj, "velocities", *others(labels.v, traj.v), "v")
    forces = panels.gaps(traj) + panels.contacts(traj) + panels.constraints(traj)
    energy = panels.energy(traj)
    return motion + energy + forces if len(motion) % 2 else motion + forces + energy


def _arrange(traj: Trajectory, chosen: list[Panel]) -> Figure:
    """Figure with two panels per row; a single last panel takes the whole row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.05, h_pad=0.04, wspace=0.04, hspace=0.03)
    rows = (len(chosen) + 1) // 2
    width, row_height, beside = 7.0, 1.75, 0.7  # of the figure, of panels, for labels beside a panel [in]
    dpi = 200  # dots per inch of the figure, enough for print
    figure = new_figure(figsize=(width, row_height * rows + 0.25), dpi=dpi, layout=layout)
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(rows, 2)
    # number of rows above which vector formats contain curves as bitmaps, since such files open slowly
    many_rows = 20_000
    for row in range(rows):
        pair = chosen[2 * row : 2 * row + 2]
        heads = []
        for k, panel in enumerate(pair):
            axes = figure.add_subplot(grid[row, :] if len(pair) == 1 else grid[row, k])
            panel.draw(axes)
            # set on the axes, the sizes and the number of ticks hold when the figure is written later
            axes.tick_params(labelsize=style.RC["xtick.labelsize"])
            if panel.over_time:
                panels.label_time(axes, traj)
            title = axes.set_title(f"({chr(ord('a') + 2 * row + k)}) {panel.title}", loc="left")
            for line in axes.lines:
                line.set_rasterized(np.shape(traj.t)[0] > many_rows)
            names = axes.get_legend_handles_labels()[1] if panel.legend else []
            heads.append(_Head(axes, title, len(names)))
        _place_legends(heads, width / len(pair) - beside)
    return figure


@dataclasses.dataclass(frozen=True)
class _Head:
    """Head of a panel: its title, and the number of entries of its legend."""

    axes: Axes
    title: Text
    entries: int


def _place_legends(row: list[_Head], room: float) -> None:
    """Places legends beside the titles of a row if all fit into ``room`` [in], else below them."""
    with_legend = [head for head in row if head.entries]
    taken = 0.0
    for head in with_legend:
        legend = head.axes.legend(ncols=head.entries, loc="lower right", bbox_to_anchor=(1.0, 1.0))
        taken = max(taken, _size(legend)[0] + _size(head.title)[0])
    if taken + 0.1 <= room:
        return
    height = max(_legend_below(head, room) for head in with_legend)
    for head in row:
        head.axes.set_title(head.title.get_text(), loc="left", pad=72.0 * height + 3.0)


def _legend_below(head: _Head, room: float) -> float:
    """Places a legend between title and data in as few lines as fit and returns its height [in]."""
    for lines in range(1, head.entries + 1):
        columns = -(-head.entries // lines)
        legend = head.axes.legend(ncols=columns, loc="lower left", bbox_to_anchor=(-0.02, 1.0))
        width, height = _size(legend)
        if width <= room:
            break
    return height


def _size(artist: Artist) -> tuple[float, float]:
    """Width and height [in]."""
    box = artist.get_window_extent()
    dpi = artist.figure.dpi if artist.figure is not None else 72.0
    return box.width / dpi, box.height / dpi
