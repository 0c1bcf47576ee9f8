"""Animations of runs: one HTML file with controls, drawn by plotly, or a film."""

from __future__ import annotations

import dataclasses
import html
import os
from typing import Any

import numpy as np

from nsjax import io
from nsjax.core import InputError, Problem
from nsjax.core.arguments import file_path
from nsjax.core.errors import optional
from nsjax.core.memory import Progress
from nsjax.figures import require_matplotlib
from nsjax.motion import FRAMES, Motion, MovedShape, motion, moved
from nsjax.plot import film
from nsjax.trajectory import Trajectory
from nsjax.types import scale

# Traces of plotly for shapes and forces.


# Okabe and Ito's colours without vermilion, which is the colour of forces only.
BODIES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
FORCE, GROUND, SPRING, JOINT = "#D55E00", "#8C8C8C", "#5A5A5A", "#222222"

ARROW = 6
"""Number of points of an arrow: tail, tip, both sides of its head, and a break."""


@dataclasses.dataclass(frozen=True)
class Trace:
    """One trace of plotly: constant attributes, coordinates (rows, n, d) in the unit of the axes, and
    values (rows, n) in the unit of their colour bar.
    """

    look: dict[str, Any]
    points: np.ndarray
    still: bool
    decimals: int
    values: np.ndarray | None = None

    def at(self, row: int) -> dict[str, Any]:
        """Coordinates and values of a row."""
        columns = np.round(self.points[row], self.decimals).T
        found: dict[str, Any] = {name: _plain(x) for name, x in zip("xyz", columns, strict=False)}
        if self.values is not None:
            # number of decimals of coloured values, whose unit makes them one to a thousand
            value_decimals = 2
            found["intensity"] = _plain(np.round(self.values[row], value_decimals))
        return found


def _plain(column: np.ndarray) -> list[float | None]:
    """List of numbers, with None for not-a-number and zero for minus zero."""
    return [None if x != x else x + 0.0 for x in column.tolist()]


def axis_unit(seen: Motion) -> tuple[float, str]:
    """Factor from metres to the unit of the axes, and this unit."""
    return scale([seen.size], "m")


def shape_traces(seen: Motion) -> list[Trace]:
    """Traces of all shapes, fixed shapes first; the last trace shows the forces."""
    factor, _ = axis_unit(seen)
    digits = 5  # number of decimals of coordinates relative to the scene's diagonal
    decimals = max(0, digits - int(np.floor(np.log10(seen.size * factor))) - 1)
    colours = _colours(seen)
    order = sorted(seen.shapes, key=lambda x: (x.role == "joint", x.role != "ground"))
    found = [_trace(x, colours[x.name], seen.dimension, factor, decimals) for x in order]
    arrows = _arrows(seen)
    if arrows is not None:
        found.append(Trace(_force_look(seen.dimension), factor * arrows, False, decimals))
    return found


def _trace(x: MovedShape, colour: str, dimension: int, factor: float, decimals: int) -> Trace:
    """Trace of a shape."""
    look, values = _look(x, colour, dimension), x.values
    if values is not None:
        values, bar = _scale_of_colours(x, values)
        look = {**look, **bar}
    return Trace(look, factor * x.points, x.still, decimals, values)


def _scale_of_colours(x: MovedShape, values: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
    """Values in the unit of their colour bar, and attributes of the bar, the same over the whole run."""
    name, _, unit = x.quantity.partition(" [")
    times, unit = scale(values, unit.rstrip("]"))
    values = times * values
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    title = f"{name} ({unit})" if unit not in ("", "-") else name
    bar = {"title": {"text": title, "side": "right"}, "thickness": 12, "len": 0.6, "x": 0.98}
    return values, {
        "colorscale": "Viridis", "cmin": low, "cmax": high if high > low else low + 1.0, "showscale": True,
        "colorbar": bar, "hovertemplate": f"{x.name}: %{{intensity:.3g}} {unit}<extra></extra>",
    }  # fmt: skip


def _colours(seen: Motion) -> dict[str, str]:
    """Colour of every shape; shapes of the same name have the same colour."""
    given: dict[str, str] = {}
    bodies = list(dict.fromkeys(x.name for x in seen.shapes if x.role == "body"))
    for k, name in enumerate(bodies):
        given[name] = BODIES[k % len(BODIES)]
    roles = {"ground": GROUND, "spring": SPRING, "joint": JOINT}
    return {x.name: given.get(x.name, roles.get(x.role, GROUND)) for x in seen.shapes}


def _look(x: MovedShape, colour: str, dimension: int) -> dict[str, Any]:
    """Constant attributes of a shape's trace."""
    quiet = {"name": x.name, "hoverinfo": "name", "showlegend": False}
    if x.kind == "mesh":
        i, j, k = np.array(x.faces).T.tolist()
        light = {"ambient": 0.6, "diffuse": 0.7, "specular": 0.15, "roughness": 0.7, "fresnel": 0.05}
        ground = x.role == "ground"
        flat = 24  # largest number of points of a mesh drawn with flat faces and sharp edges
        return {
            "type": "mesh3d", "i": i, "j": j, "k": k, "color": "#B0B0B0" if ground else colour,
            "opacity": 0.25 if ground else 1.0, "flatshading": x.points.shape[1] <= flat, "lighting": light,
            **quiet, "hoverinfo": "skip" if ground else "name",
        }  # fmt: skip
    look: dict[str, Any] = {"type": "scatter" if dimension == 2 else "scatter3d", **quiet}
    if x.kind == "dots":
        ring = {"color": colour, "width": 1.5}
        fill = "white" if x.role == "joint" else colour
        size = 8 if dimension == 2 else 4
        return {**look, "mode": "markers", "marker": {"size": size, "color": fill, "line": ring}}
    width = {"body": 4.0, "ground": 2.0, "spring": 1.5, "joint": 1.5}[x.role]
    if x.kind == "area":
        line = {"color": colour, "width": 1.5}
        red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
        faint = f"rgba({red},{green},{blue},0.35)"
        return {**look, "mode": "lines", "line": line, "fill": "toself", "fillcolor": faint}
    wide = width if dimension == 2 else 1.5 * width
    return {**look, "mode": "lines", "line": {"color": colour, "width": wide}, "connectgaps": False}


def _force_look(dimension: int) -> dict[str, Any]:
    return {
        "type": "scatter" if dimension == 2 else "scatter3d", "mode": "lines", "connectgaps": False,
        "line": {"color": FORCE, "width": 2.0 if dimension == 2 else 5.0}, "name": "contact forces",
        "hoverinfo": "name", "showlegend": False,
    }  # fmt: skip


def reference_force(seen: Motion) -> float:
    """Force [N] of an arrow of the usual length; zero without forces."""
    if seen.forces is None or seen.places is None:
        return 0.0
    sizes = np.linalg.norm(seen.forces, axis=-1)
    sizes = sizes[sizes > 0.0]
    # percentile of the forces that is the reference, so that single impacts do not hide all other forces
    usual = 90.0
    return float(np.percentile(sizes, usual)) if sizes.size else 0.0


def _arrows(seen: Motion) -> np.ndarray | None:
    """Polylines (rows, nc ARROW, d) of the force arrows, which end at the contacts; None without forces."""
    reference = reference_force(seen)
    if not reference:
        return None
    assert seen.forces is not None
    assert seen.places is not None
    sizes = np.linalg.norm(seen.forces, axis=-1, keepdims=True)
    acts = sizes > 1e-3 * reference
    unit = seen.forces / np.where(acts, sizes, 1.0)
    usual, longest = 0.125, 0.2  # lengths of arrows as shares of the scene's diagonal
    length = seen.size * np.minimum(usual * sizes / reference, longest)
    tip = np.where(acts, seen.places, np.nan)
    if seen.dimension == 2:
        side = np.stack([-unit[..., 1], unit[..., 0]], axis=-1)
    else:
        side = np.cross(unit, np.where(np.abs(unit[..., 2:]) < 0.9, [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]))
        side /= np.where(acts, np.linalg.norm(side, axis=-1, keepdims=True), 1.0)
    head_share = 0.25  # length of the head of an arrow over its whole length
    head = np.minimum(head_share * length, 0.03 * seen.size)
    back = tip - head * unit
    parts = [tip - length * unit, tip, back + 0.5 * head * side, tip, back - 0.5 * head * side]
    found = np.stack([*parts, np.full(tip.shape, np.nan)], axis=2)
    return found.reshape(len(seen.t), -1, seen.dimension)


def _framed(seen: Motion) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest coordinates of the scene [m], with the arrows of all frames."""
    arrows = _arrows(seen)
    if arrows is None:
        return seen.low, seen.high
    points = arrows.reshape(-1, seen.dimension)
    low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    return np.minimum(seen.low, low), np.maximum(seen.high, high)


def scene_layout(seen: Motion) -> dict[str, Any]:
    """Layout with equally scaled axes that stay the same in all frames."""
    factor, unit = axis_unit(seen)
    low, high = _framed(seen)
    margin = 0.08  # empty space around the scene, as a share of its diagonal
    pad = margin * seen.size
    ends = factor * np.stack([low - pad, high + pad], axis=1)
    names = [f"{name} ({unit})" for name in seen.axes]
    common: dict[str, Any] = {
        "paper_bgcolor": "white", "plot_bgcolor": "white", "showlegend": False, "autosize": True,
        "font": {"family": "DejaVu Sans, Arial, sans-serif", "size": 12, "color": "#222222"},
        "margin": {"l": 60, "r": 20, "t": 70, "b": 110},
    }  # fmt: skip
    if seen.dimension == 2:
        width, height = np.diff(ends, axis=1)[:, 0]
        # least ratio of width to height of a picture: narrower axes have no room for their numbers
        narrow = 0.6
        wider = max(0.0, 0.5 * (narrow * height - width))
        ends[0] += np.array([-wider, wider])
        width += 2.0 * wider
        # a page of 900 px, and 190 px above and below the scene
        tall = float(np.clip(900.0 * height / width + 190.0, 400.0, 640.0))
        line = {"gridcolor": "#E3E3E3", "zeroline": False, "showline": True, "linecolor": "#888888"}
        x = {**line, "title": {"text": names[0]}, "range": ends[0].tolist(), "constrain": "domain"}
        y = {**line, "title": {"text": names[1]}, "range": ends[1].tolist(), "scaleanchor": "x"}
        return {**common, "height": tall, "xaxis": x, "yaxis": {**y, "constrain": "domain"}}
    low, high = ends[:, 0], ends[:, 1]
    axes = {
        f"{axis}axis": {
            "title": {"text": names[k]}, "range": [float(low[k]), float(high[k])], "showbackground": False,
            "gridcolor": "#D8D8D8", "zeroline": False,
        }
        for k, axis in enumerate("xyz")
    }  # fmt: skip
    camera = {"eye": {"x": 1.2, "y": -1.5, "z": 0.7}, "center": {"z": -0.12}}
    # diagonal of a spatial scene in plotly's unit; the camera at two units' distance then sees all of it
    diagonal = 1.65
    spread = diagonal * (high - low) / np.linalg.norm(high - low)
    ratio = dict(zip("xyz", spread.tolist(), strict=True))
    scene = {**axes, "aspectmode": "manual", "aspectratio": ratio, "camera": camera}
    return {**common, "height": 620.0, "scene": {**scene, "uirevision": "kept"}, "uirevision": "kept"}


NUMBERS = 1_500_000
"""Largest count of numbers in a file, which limits its frames: 10 MB beside the 5 MB of plotly itself."""

PACE = 40
"""Duration of a frame [ms]."""

QUIET = "window.addEventListener('unhandledrejection', e => { if (e.reason == null) e.preventDefault(); })"
"""Script against false errors: an interruption, by the pause button for instance, makes plotly reject a
promise without a reason, which browsers report as an error.
"""


@dataclasses.dataclass(frozen=True, repr=False)
class Animation:
    """Animation of a run for a browser or notebook, a self-contained page of 5 MB and more.

    Args:
        figure: ``data``, ``layout`` and ``frames`` in plotly's form, accepted by
            ``plotly.graph_objects.Figure(animation.figure)``.
        title: title of the page.
    """

    figure: dict[str, Any]
    title: str

    def __repr__(self) -> str:
        return f"Animation({self.title!r}, {len(self.figure['frames'])} frames)"

    def to_html(self) -> str:
        """The whole page with plotly.js (MIT licence) inside, so that it loads no other files."""
        import plotly.io  # type: ignore[import-not-found, unused-ignore]

        body = plotly.io.to_html(
            self.figure, include_plotlyjs=True, full_html=False, validate=False, auto_play=False,
            post_script=QUIET, config={"displaylogo": False, "responsive": True},
        )  # fmt: skip
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(self.title)}'
            f"</title></head>\n<body>{body}</body></html>\n"
        )

    def _repr_html_(self) -> str:
        page = html.escape(self.to_html(), quote=True)
        inline = 640  # height of an animation in a notebook [px]
        return f'<iframe srcdoc="{page}" width="100%" height="{inline}" style="border:0"></iframe>'

    def save(self, path: str | os.PathLike[str], *, progress: Progress = False) -> None:
        """Writes the page to ``*.html``, or a film to ``*.gif`` or ``*.mp4``, whole or not at all.

        Films have the same frames, drawn by matplotlib; MP4 needs ffmpeg. Limits: in space faces are sorted
        by the depth of their centres, so that large faces may hide nearer parts.

        Args:
            path: of the file.
            progress: of a film: True shows a bar (extra ``progress``), a function is called with the frames
                done and all frames.

        Raises:
            InputError: for another suffix, a path that cannot be written, and without the needed library.
        """
        check_animation(path)
        if file_path(path).suffix.lower() in film.WRITERS:
            film.write(self.figure, path, PACE, progress)
            return
        with io.replacing(path) as file:
            file.write(self.to_html().encode())


def require_plotly() -> None:
    """Raises an `InputError` if plotly is missing."""
    optional("animations need", "plot", "plotly")


def check_animation(path: str | os.PathLike[str]) -> None:
    """Refuses an animation that could not be written; call it before the run that it is for.

    Args:
        path: path of a page, ``*.html``, or of a film, ``*.gif`` or ``*.mp4``.

    Raises:
        InputError: for another suffix; if plotly is missing, or matplotlib for films, or ffmpeg for MP4.

    Example:
        >>> from nsjax import plot
        >>> plot.check_animation("run.html")
    """
    require_plotly()
    suffix = file_path(path).suffix.lower()
    if suffix in film.WRITERS:
        film.require_writer(path)
    elif suffix not in (".html", ".htm"):
        raise InputError(f"{path}: animations are pages or films; end the name in .html, .gif or .mp4")


def animate(problem: Problem, traj: Trajectory, *, frames: int = FRAMES) -> Animation:
    """Animation of a run with buttons and a slider, on one self-contained page.

    It shows the shapes of `nsjax.System.shapes`: models of the package define them, mechanisms of
    `nsjax.multibody.assemble` have those of their parts. Arrows that end at contacts are the forces on the
    bodies, means over the time since the previous frame (impacts included), with proportional lengths.
    Solids of elements are coloured by the equivalent stress at their nodes, on one scale for the whole run.

    Args:
        problem: problem of the run.
        traj: one run of it (not a batch); arrows need ``impulse_normal`` and ``impulse_tangential`` saved.
        frames: largest number of rows drawn, at even distances; fewer where the page would become too
            large.

    Returns:
        An `Animation`: notebooks show it, ``.save("run.html")`` writes it, ``.save("run.gif")`` a film.

    Raises:
        InputError: if plotly is missing, for a system without shapes, a batch, or the run of another
            system.

    Limits: a page redraws all shapes for each frame: meshes of more than some thousand triangles play
    slowly. For a solid, each frame computes the stress of all elements, in 0.1 s for 14,000 elements.
    Rows that are not finite are left out.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> ball = models.bouncing_ball()
        >>> traj = nsjax.simulate(*ball, schemes.moreau(), dt=1e-3, steps=500)
        >>> nsjax.animate(ball, traj, frames=50)
        Animation('bouncing ball: moreau, dt = 0.001 s, t = 0 to 0.5 s', 50 frames)
    """
    require_plotly()
    seen = motion(problem, traj, frames=frames)
    fewer = _affordable(seen)
    if fewer < len(seen.t):
        seen = motion(problem, traj, frames=fewer)
    scheme = traj.carry.scheme.replace("_", " ") or "unknown scheme"
    run = f"{scheme}, dt = {float(traj.carry.dt):.4g} s"
    title = f"{_name(problem)}: {run}, t = {seen.t[0]:.4g} to {seen.t[-1]:.4g} s"
    return Animation(figure=_figure(seen, title, _words(seen, traj)), title=title)


def still(problem: Problem) -> bytes:
    """Picture of a problem at its state, for notebooks.

    Args:
        problem: a problem whose system has shapes.

    Returns:
        A file in the format PNG.

    Raises:
        InputError: if plotly or matplotlib is missing, for a system without shapes, and a state that is not
            finite.

    Example:
        >>> from nsjax import models, plot
        >>> plot.still(models.bouncing_ball())[1:4]
        b'PNG'
    """
    require_plotly()
    require_matplotlib()
    t, q = (np.asarray(x)[None] for x in (problem.state.t, problem.state.q))
    seen = moved(problem.system, problem.params, t, q)
    return film.png(_figure(seen, _name(problem), ""))


def _name(problem: Problem) -> str:
    return problem.system.name.replace("_", " ") or "system without a name"


def _affordable(seen: Motion) -> int:
    """Number of frames within `NUMBERS`."""
    moving = [x for x in seen.shapes if not x.still]
    each = sum(x.points[0].size + (0 if x.values is None else x.values[0].size) for x in moving)
    each += 0 if seen.forces is None else ARROW * seen.forces[0].size
    least = 24  # least number of frames, however large they are
    return max(least, NUMBERS // max(1, each))


def _words(seen: Motion, traj: Trajectory) -> str:
    """Second line of the title: rows, speed, scale of the arrows."""
    said = [f"{len(seen.t)} of {len(traj.t)} rows"]
    spent = float(seen.t[-1] - seen.t[0])
    shown = 1e-3 * PACE * (len(seen.t) - 1)
    if spent > 0.0 and shown > 0.0:
        ratio = shown / spent
        if 0.8 < ratio < 1.25:
            said.append("about in real time")
        else:
            said.append(f"{ratio:.3g} times slower" if ratio > 1.0 else f"{1.0 / ratio:.3g} times faster")
    longest = reference_force(seen)
    if longest:
        factor, unit = scale([longest], "N")
        said.append(f"arrows: mean contact forces, {longest * factor:.3g} {unit} an eighth of the scene")
    if seen.magnified != 1.0:
        said.append(f"{seen.note} {seen.magnified:.3g} times as large")
    return "; ".join(said)


def _figure(seen: Motion, title: str, words: str) -> dict[str, Any]:
    """Data, layout and frames in plotly's form."""
    traces = shape_traces(seen)
    moving = [k for k, trace in enumerate(traces) if not trace.still]
    factor, unit = scale(seen.t, "s")
    labels = [f"{t * factor:.4g} {unit}" for t in seen.t]
    frames = [
        {"name": str(row), "traces": moving, "data": [traces[k].at(row) for k in moving]}
        for row in range(len(seen.t))
    ]
    layout = {**scene_layout(seen), **_controls(labels, seen.dimension == 3)}
    layout["title"] = {
        "text": f"{html.escape(title)}<br><sup>{html.escape(words)}</sup>", "x": 0.02, "xanchor": "left",
        "font": {"size": 15},
    }  # fmt: skip
    return {"data": [{**x.look, **x.at(0)} for x in traces], "layout": layout, "frames": frames}


def _controls(labels: list[str], redraw: bool) -> dict[str, Any]:
    """Buttons that play and pause, and a slider over the times."""
    at_once = {"mode": "immediate", "transition": {"duration": 0}}
    play = {**at_once, "fromcurrent": True, "frame": {"duration": PACE, "redraw": redraw}}
    pause = {**at_once, "frame": {"duration": 0, "redraw": False}}
    jump = {**at_once, "frame": {"duration": 0, "redraw": redraw}}
    buttons = [
        {"label": "▶ play", "method": "animate", "args": [None, play]},
        {"label": "❚❚ pause", "method": "animate", "args": [[None], pause]},
    ]
    steps = [
        {"label": label, "method": "animate", "args": [[str(row)], jump]}
        for row, label in enumerate(labels)
    ]
    return {
        "updatemenus": [{
            "type": "buttons", "direction": "left", "buttons": buttons, "showactive": False,
            "x": 0.0, "xanchor": "left", "y": 0.0, "yanchor": "top", "pad": {"t": 62, "r": 10},
        }],
        "sliders": [{
            "active": 0, "steps": steps, "x": 0.22, "len": 0.78, "y": 0.0, "yanchor": "top",
            "pad": {"t": 48},
            "currentvalue": {"prefix": "t = ", "xanchor": "right"}, "transition": {"duration": 0},
            "tickcolor": "white", "ticklen": 0, "minorticklen": 0, "font": {"color": "#444444"},
        }],
    }  # fmt: skip
