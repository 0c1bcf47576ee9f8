"""The panels of an overview of a run."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nsjax.core.system import contact_names, gap_units
from nsjax.plot import style
from nsjax.sensors import label_name, label_unit
from nsjax.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 6
"""Largest number of curves in one panel, one colour each."""

BESIDE, ABOVE = 20, 36
"""Most letters of a label beside a panel and of the title above one, by its height and width."""

SINGULAR = {"velocities": "velocity", "angular velocities": "angular velocity"}

DASHES = (0.0, (2.2, 1.6))


@dataclasses.dataclass(frozen=True)
class Panel:
    """Title and drawing function of a panel, whether its x axis is time, and whether it has a legend."""

    title: str
    draw: Callable[[Axes], None]
    over_time: bool = True
    legend: bool = True


def times(traj: Trajectory) -> np.ndarray:
    """Times of the rows in the unit of the axis."""
    return np.asarray(traj.t) * style.scale(traj.t, "s")[0]


def label_time(axes: Axes, traj: Trajectory) -> None:
    """Labels and limits the time axis, from the first to the last row."""
    t = times(traj)
    axes.set_xlim(t[0], t[-1])
    axes.set_xlabel(f"time ({style.scale(traj.t, 's')[1]})")


def _curves(
    axes: Axes, x: np.ndarray, values: np.ndarray, names: Sequence[str], colors: Sequence[str]
) -> None:
    """Draws one curve per column; curves that cover an earlier one are dashed, so that both are visible."""
    reach = np.nanmax(values) - np.nanmin(values)
    for k, name in enumerate(names):
        # a hundredth of the panel's height is about the width of a curve
        covers = any(np.nanmax(np.abs(values[:, k] - values[:, j])) <= 0.01 * reach for j in range(k))
        axes.plot(x, values[:, k], color=colors[k], label=name, linestyle=DASHES if covers else "-")


def quantities(
    traj: Trajectory, title: str, entries: Sequence[str], values: Any, letter: str
) -> list[Panel]:
    """Panels of coordinates or velocities, one per unit: angles and lengths do not share an axis."""
    values = style.finite(values)
    entries = entries or tuple(f"{letter}{k + 1}" for k in range(values.shape[1]))
    units = list(dict.fromkeys(label_unit(entry) for entry in entries))
    panels = []
    nothing = 1e-12  # largest value [SI] of a quantity that gets no panel
    for unit in units:
        columns = np.array([k for k, entry in enumerate(entries) if label_unit(entry) == unit])
        size = np.nanmax(np.abs(values[:, columns]), axis=0)
        if np.all(size < nothing):
            continue
        shown = np.sort(columns[np.argsort(-size, kind="stable")[:SHOWN]])
        name = {"rad": "angles", "rad/s": "angular velocities"}.get(unit, title)
        if not unit and len(units) > 1:  # quaternions, beside lengths
            name = "coordinates" if title == "positions" else "rates"
        some = "" if len(shown) == len(columns) else f" ({len(shown)} largest of {len(columns)})"
        names = [label_name(entries[k]) for k in shown]
        one = SINGULAR.get(name, name[:-1])
        draw = _quantity(traj, one, names, unit, values[:, shown])
        panels.append(Panel(name + some, draw, legend=len(shown) > 1))
    return panels


def beam_parts(traj: Trajectory) -> list[Any]:
    """Beams of a mechanism."""
    topology = getattr(traj.system.parts, "topology", None)
    return [] if topology is None else list(topology.all_of("beam"))


def beams(traj: Trajectory) -> list[Panel]:
    """Panels of beams: how far nodes have moved, and curvatures by the rotation between nodes."""
    labels, q = [label_name(x) for x in traj.system.labels.q], np.asarray(traj.q)
    moved, bent = dict[str, np.ndarray](), dict[str, np.ndarray]()
    for part in beam_parts(traj):
        points = np.asarray(traj.params[part.name].points)
        nodes = [labels.index(f"{part.name}.{k}.x") for k in range(len(points))]
        for k, at in enumerate(nodes):
            moved |= {f"{part.name}.{k}.{x} [m]": q[:, at + j] - q[0, at + j] for j, x in enumerate("xyz")}
        arc = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
        turns = [q[:, at + 3 : at + 7] for at in nodes]
        for k, (one, two) in enumerate(itertools.pairwise(turns)):
            sine = one[:, :1] * two[:, 1:] - two[:, :1] * one[:, 1:] - np.cross(one[:, 1:], two[:, 1:])
            angle = 2.0 * np.arcsin(np.minimum(np.linalg.norm(sine, axis=1), 1.0))
            middle, length = 0.5 * (arc[k] + arc[k + 1]), arc[k + 1] - arc[k]
            bent[f"{part.name} at {middle:.3g} m [rad/m]"] = angle / length
    found = []
    for title, of in (("deflections", moved), ("curvatures", bent)):
        found += quantities(traj, title, tuple(of), np.stack(list(of.values()), axis=1), "q") if of else []
    return found


@dataclasses.dataclass(frozen=True)
class Across:
    """What the horizontal axis of a panel shows in place of time: name, unit and values (rows,)."""

    name: str
    unit: str
    values: np.ndarray


def curves(
    traj: Trajectory, names: Sequence[str], unit: str, values: np.ndarray, across: Across | None = None
) -> Panel:
    """One panel with these curves (rows, n) of one unit, over time or another quantity."""
    words = [name.split(".") for name in names]
    shared = [word for word in words[0] if all(word in others for others in words)]
    title = ", ".join(names)
    if len(title) > ABOVE and len(names) > 1:
        title = ".".join(shared) or f"{len(names)} quantities"
    draw = _quantity(traj, shared[-1] if shared else "", names, unit, values, across)
    if across is not None:
        title = f"{title} over {across.name}"
    return Panel(title, draw, over_time=across is None, legend=len(names) > 1)


def _quantity(
    traj: Trajectory, word: str, names: Sequence[str], unit: str, values: np.ndarray,
    across: Across | None = None,
) -> Callable[[Axes], None]:  # fmt: skip
    """Draws curves, labelled by their symbols or a word for all; a dot marks the start of a path."""

    def draw(axes: Axes) -> None:
        factor, printed = style.scale(values, unit)
        symbols = [style.math_label(name) for name in names]
        colors = [style.QUANTITIES[k % SHOWN] for k in range(len(names))]
        x = times(traj)
        if across is not None:
            wide, shown = style.scale(across.values, across.unit)
            x = across.values * wide
            axes.set_xlabel((style.math_label(across.name) + style.print_unit(shown)).strip())
            for k, color in enumerate(colors):
                axes.plot(x[:1], values[:1, k] * factor, "o", color=color, markersize=3.0)
        _curves(axes, x, values * factor, symbols, colors)
        symbolic = len(names) <= 3 and len(", ".join(names)) <= BESIDE
        label = ", ".join(symbols) if symbolic else word if len(word) <= BESIDE else ""
        axes.set_ylabel((label + style.print_unit(printed)).strip())

    return draw


def path(traj: Trajectory) -> list[Panel]:
    """Panels of a path: one observable over another, and over time where it has limits."""
    labels = traj.system.labels
    if len(labels.path) != 2:
        return []
    if len(labels.path_limits) != 2:
        return [Panel("path", lambda axes: _draw_path(axes, traj), over_time=False)]
    second = style.math_label(labels.path[1])
    return [
        Panel("path within its limits", lambda axes: _draw_path(axes, traj), over_time=False),
        Panel(f"{second} over time", lambda axes: _draw_height(axes, traj), legend=False),
    ]


def _draw_path(axes: Axes, traj: Trajectory) -> None:
    first, second = traj.system.labels.path
    factor, label = _axis(traj, first)
    x = style.finite(traj[first]) * factor
    factor, height = _axis(traj, second, *traj.system.labels.path_limits)
    y = style.finite(traj[second]) * factor
    axes.plot(x, y, color=style.QUANTITIES[0], linewidth=0.9)
    axes.plot(x[:1], y[:1], "o", color="black", markersize=3.5, label="start")
    room = 0.02 * (np.nanmax(x) - np.nanmin(x)) or 1.0  # a path at rest has no width
    axes.set_xlim(np.nanmin(x) - room, np.nanmax(x) + room)
    _draw_limits(axes, traj, x, factor)
    axes.set_xlabel(label)
    axes.set_ylabel(height)


def _draw_height(axes: Axes, traj: Trajectory) -> None:
    second = traj.system.labels.path[1]
    factor, label = _axis(traj, second, *traj.system.labels.path_limits)
    axes.plot(times(traj), style.finite(traj[second]) * factor, color=style.QUANTITIES[0])
    axes.set_xlim(times(traj)[0], times(traj)[-1])
    _draw_limits(axes, traj, times(traj), factor)
    axes.set_ylabel(label)


def _axis(traj: Trajectory, name: str, *others: str) -> tuple[float, str]:
    """Factor and label of an axis for an observable and others on the same axis."""
    largest = [np.nanmax(np.abs(style.finite(traj[each]))) for each in (name, *others)]
    factor, unit = style.scale(largest, traj.unit(name))
    return factor, style.math_label(name) + style.print_unit(unit)


def _draw_limits(axes: Axes, traj: Trajectory, x: np.ndarray, factor: float) -> None:
    """Draws limits as lines, with grey areas beyond them."""
    names = traj.system.labels.path_limits
    if len(names) != 2:
        return
    there = np.flatnonzero(np.isfinite(x))
    order = there[np.argsort(x[there], kind="stable")]
    lower, upper = (style.finite(traj[name])[order] * factor for name in names)
    ends = axes.get_xlim()
    x = np.concatenate([[ends[0]], x[order], [ends[1]]])
    room = 0.18 * np.nanmax(upper - lower)
    bottom, top = np.nanmin(lower) - room, np.nanmax(upper) + room
    for limit, edge in ((lower, bottom), (upper, top)):
        limit = np.concatenate([limit[:1], limit, limit[-1:]])
        axes.fill_between(x, limit, edge, color="#D9D9D9", linewidth=0.0)
        axes.plot(x, limit, color="#404040", linewidth=0.8)
    axes.set_ylim(bottom, top)


def _busiest(traj: Trajectory) -> np.ndarray:
    """The contacts that are drawn: those with the largest impulses, then those with the smallest gaps."""
    count = traj.system.nc
    impulse = np.zeros(count) if traj.impulse_normal is None else np.nansum(traj.impulse_normal, axis=0)
    nearest = np.zeros(count) if traj.gap is None else np.nanmin(style.finite(traj.gap), axis=0)
    return np.sort(np.lexsort((nearest, -impulse))[:SHOWN])


def _contact_names(traj: Trajectory) -> list[str]:
    return [contact_names(traj.system)[k] for k in _busiest(traj)]


def _some(traj: Trajectory) -> str:
    return "" if traj.system.nc <= SHOWN else f" ({SHOWN} of {traj.system.nc})"


def gaps(traj: Trajectory) -> list[Panel]:
    """Panel of the gaps of the contacts, unless a path within limits shows them."""
    if not traj.system.nc or traj.gap is None or traj.system.labels.path_limits:
        return []
    values = style.finite(traj.gap)[:, _busiest(traj)]
    units = list(dict.fromkeys(gap_units(traj.system)[k] for k in _busiest(traj)))

    def draw(axes: Axes) -> None:
        factor, unit = style.scale(values, units[0] if len(units) == 1 else "")
        _curves(axes, times(traj), values * factor, _contact_names(traj), style.CONTACTS)
        axes.set_ylabel(f"gap ({unit})" if len(units) == 1 else f"gap ({', '.join(units)})")

    return [Panel("gaps" + _some(traj), draw)]


def contacts(traj: Trajectory) -> list[Panel]:
    """Panels of mean contact forces without impacts, and of the impulses of intervals with impacts."""
    if not traj.system.nc or traj.impulse_normal is None or not np.any(traj.impulse_normal):
        return []
    shown = _busiest(traj)
    impulse = style.finite(traj.impulse_normal)[1:, shown]
    hit = _hit(traj)[:, shown]
    panels = []
    edges, force = _mean(np.asarray(traj.t), np.where(hit, np.nan, impulse))
    if np.any(force > 0):
        span = edges[1] - edges[0]
        factor, unit = style.scale(10.0 * span, "s")  # 0.5 ms reads better than 500 µs
        title = f"normal forces, means over {span * factor:.3g} {unit}{_some(traj)}"
        panels.append(Panel(title, lambda axes: _draw_forces(axes, traj, edges, force)))
    if np.any(hit):
        stems = np.where(hit, impulse, np.nan)
        panels.append(
            Panel("normal impulses of impacts" + _some(traj), lambda axes: _draw_impacts(axes, traj, stems))
        )
    return panels


def _hit(traj: Trajectory) -> np.ndarray:
    """Mask (rows - 1, nc) of the intervals in which a contact takes part in an impact: its own, or one of
    another contact that gives it an impulse of the same order.
    """
    impulse = style.finite(traj.impulse_normal)[1:]
    if traj.impacts is None:
        return np.zeros(impulse.shape, bool)
    own = np.asarray(traj.impacts)[1:] > 0
    largest = np.max(np.where(own, np.nan_to_num(impulse), 0.0), axis=1, keepdims=True)
    # the impulse of a resting contact in one interval is far below a tenth of an impact's
    return own | ((largest > 0.0) & (impulse > 0.1 * largest))


def _mean(t: np.ndarray, impulse: np.ndarray, most: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Edges (n + 1,) and mean forces (n, m) of at most so many intervals, from impulses between rows; with
    more the chatter of closed contacts fills a panel. Means leave out NaN entries and their duration.
    """
    rows = len(t) - 1
    size = -(-rows // most)
    first = np.arange(0, rows, size)
    duration = np.where(np.isnan(impulse), 0.0, np.diff(t)[:, None])
    total = np.add.reduceat(np.nan_to_num(impulse), first)
    length = np.add.reduceat(duration, first)
    mean = np.divide(total, length, out=np.full(total.shape, np.nan), where=length > 0)
    return np.append(t[first], t[-1]), mean


def _draw_forces(axes: Axes, traj: Trajectory, edges: np.ndarray, force: np.ndarray) -> None:
    factor, unit = style.scale(force, "N")
    edges = edges * style.scale(traj.t, "s")[0]
    for k, name in enumerate(_contact_names(traj)):
        if not np.any(force[:, k] > 0):
            continue
        values = np.where(force[:, k] > 0, force[:, k] * factor, np.nan)
        color, first = style.CONTACTS[k], k % 2 == 0
        if first:
            axes.stairs(values, edges, color=color, fill=True, alpha=0.25, linewidth=0.0)
        axes.stairs(
            values, edges, color=color, label=name, linewidth=1.1, linestyle="-" if first else DASHES
        )
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel(f"force ({unit})")


def _draw_impacts(axes: Axes, traj: Trajectory, stems: np.ndarray) -> None:
    """Draws stems with dots and open squares alternately, so that simultaneous impacts are both visible."""
    factor, unit = style.scale(stems, "N s")
    t = times(traj)[1:]
    for k, name in enumerate(_contact_names(traj)):
        there = np.isfinite(stems[:, k])
        if not np.any(there):
            continue
        x, y = t[there], stems[there, k] * factor
        color, first = style.CONTACTS[k], k % 2 == 0
        axes.vlines(x, 0.0, y, color=color, linewidth=0.8 if first else 2.0, zorder=2.2 if first else 2.1)
        axes.plot(
            x, y, "o" if first else "s", color=color, markersize=2.8 if first else 5.0,
            markerfacecolor=color if first else "none", linestyle="none", zorder=2.4, label=name,
            clip_on=False,
        )  # fmt: skip
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel(f"impulse ({unit})")


def constraints(traj: Trajectory) -> list[Panel]:
    """Panels of mean forces of the bilateral constraints and of the bounded rows."""
    labels, system = traj.system.labels, traj.system
    kinds = (
        ("constraint", system.nb, labels.constraints, traj.constraint_impulse),
        ("dry friction", system.nd, labels.dry_frictions, traj.dry_friction_impulse),
    )
    return [panel for kind in kinds for panel in _row_forces(traj, *kind)]


def _row_forces(
    traj: Trajectory, kind: str, count: int, names: tuple[str, ...], impulse: Any
) -> list[Panel]:
    """Panel of the mean forces of one kind of rows, from their impulses (rows, count)."""
    if not count or impulse is None:
        return []
    edges, force = _mean(np.asarray(traj.t), style.finite(impulse)[1:])
    if not np.any(np.isfinite(force)):
        return []
    shown = np.sort(np.argsort(-np.max(np.nan_to_num(np.abs(force)), axis=0), kind="stable")[:SHOWN])
    names = names or tuple(f"{kind} {k}" for k in range(count))
    middles = 0.5 * (edges[1:] + edges[:-1])

    def draw(axes: Axes) -> None:
        factor, unit = style.scale(force, "N")
        x = middles * style.scale(traj.t, "s")[0]
        _curves(axes, x, force[:, shown] * factor, [label_name(names[k]) for k in shown], style.QUANTITIES)
        axes.set_ylabel(f"force ({unit})")

    some = "" if count <= SHOWN else f" ({SHOWN} largest of {count})"
    return [Panel(f"{kind} forces{some}", draw)]


def energy(traj: Trajectory) -> list[Panel]:
    """Panel of kinetic, potential and total energy, or of their changes where these are small."""
    parts = {"kinetic": style.finite(traj["kinetic"])}
    if traj.system.potential is not None:
        parts |= {"potential": style.finite(traj["potential"]), "total": style.finite(traj["energy"])}
    values = np.stack(list(parts.values()), axis=1)
    changes = values - values[0]
    small = 4.0 * np.nanmax(np.abs(changes)) < np.nanmax(np.abs(values))
    start, unit = style.scale(values[0, -1:], "J")
    since = f": change from {values[0, -1] * start:.4g} {unit}" if small else ""
    looks = {"kinetic": style.QUANTITIES[0], "potential": style.QUANTITIES[1], "total": "black"}

    def draw(axes: Axes) -> None:
        drawn = changes if small else values
        factor, unit = style.scale(drawn, "J")
        for k, name in enumerate(parts):
            axes.plot(times(traj), drawn[:, k] * factor, color=looks[name], label=name)
        axes.set_ylabel(f"{'change' if small else 'energy'} ({unit})")

    return [Panel("energy" + since, draw)]
