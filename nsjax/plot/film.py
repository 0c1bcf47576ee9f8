"""Animations as films, GIF or MP4, drawn by matplotlib from data in plotly's form."""

from __future__ import annotations

import html
import io as stream
import itertools
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from nsjax import io
from nsjax.core import InputError
from nsjax.core.memory import Progress, meter
from nsjax.figures import require_matplotlib
from nsjax.plot.style import RC

WRITERS = {".gif": "pillow", ".mp4": "ffmpeg"}
"""Matplotlib's writer of films for each suffix; pillow is installed with matplotlib."""

PIXELS, DPI = 640, 80
"""Width of a film [px], and dots per inch."""

LIGHT = np.array([0.36, -0.48, 0.8])
"""Unit vector towards the lamp, close to the direction of the camera."""


def require_writer(path: str | os.PathLike[str]) -> None:
    """Refuses a film for which no writer is installed.

    Args:
        path: path of the film, ``*.gif`` or ``*.mp4``.

    Raises:
        InputError: if matplotlib, or ffmpeg for MP4, is missing.
    """
    require_matplotlib()
    from matplotlib.animation import writers

    name = WRITERS[pathlib.Path(path).suffix.lower()]
    if not writers.is_available(name):
        remedy = (
            "end the name in .gif or .html, which need nothing more, or install ffmpeg"
            if (name == "ffmpeg")
            else "end the name in .html, or install it with: pip install pillow"
        )
        raise InputError(f"{path}: such a film needs {name}, which is not found; {remedy}")


def write(
    figure: dict[str, Any], path: str | os.PathLike[str], pace: int, progress: Progress = False
) -> None:
    """Writes a film, whole or not at all.

    Args:
        figure: ``data``, ``layout`` and ``frames`` in plotly's form.
        path: path of the film, ``*.gif`` or ``*.mp4``.
        pace: duration of a frame [ms].
        progress: True: a bar; a function: called with the frames done and all frames.

    Raises:
        InputError: for a path that cannot be written; as `require_writer`.
    """
    require_writer(path)
    import matplotlib

    suffix, count = pathlib.Path(path).suffix.lower(), len(figure["frames"])
    with (
        io.replacing(path) as file,
        tempfile.TemporaryDirectory() as folder,
        matplotlib.rc_context(RC),
        meter(progress, count, "frame") as tell,
    ):
        whole = pathlib.Path(folder) / f"film{suffix}"
        scene = FilmAxes(figure)

        def frames() -> Iterator[np.ndarray]:
            for row in range(count):
                yield scene.pixels(row)
                tell(row + 1)

        (_gif if suffix == ".gif" else _mp4)(frames(), whole, pace)
        file.write(whole.read_bytes())


def _gif(frames: Iterator[np.ndarray], path: pathlib.Path, pace: int) -> None:
    from PIL import Image

    colours = 128  # colours of a frame of a GIF, which holds all frames until it is written: 70 MB for 240
    drawn = [
        Image.fromarray(x).convert("P", palette=Image.Palette.ADAPTIVE, colors=colours) for x in frames
    ]
    drawn[0].save(path, save_all=True, append_images=drawn[1:], duration=pace, loop=0)


def _mp4(frames: Iterator[np.ndarray], path: pathlib.Path, pace: int) -> None:
    import matplotlib

    first = next(frames)
    size = f"{first.shape[1]}x{first.shape[0]}"
    words = (
        f"-loglevel error -f rawvideo -pix_fmt rgb24 -s {size} -r {1e3 / pace:g} -i - -an -vcodec h264 "
        "-pix_fmt yuv420p"
    )
    program = matplotlib.rcParams["animation.ffmpeg_path"]
    with subprocess.Popen([program, *words.split(), str(path)], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        for x in itertools.chain([first], frames):
            process.stdin.write(x.tobytes())
    if process.returncode:  # its own words stand above
        raise subprocess.CalledProcessError(process.returncode, program)


def png(figure: dict[str, Any]) -> bytes:
    """The first frame of a figure in plotly's form, without axes, in the format PNG."""
    import matplotlib

    held = stream.BytesIO()
    with matplotlib.rc_context(RC):
        scene = FilmAxes(figure)
        scene.show(0)
        for text in list(scene.figure.texts):
            text.remove()
        scene.axes.set_axis_off()
        scene.figure.savefig(held, format="png", dpi=DPI, bbox_inches="tight")
    return held.getvalue()


class FilmAxes:
    """Axes, title and time of a film, and the traces of the frame that is shown.

    Args:
        picture: figure in plotly's form.
    """

    def __init__(self, picture: dict[str, Any]) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.picture, layout = picture, picture["layout"]
        self.solid = "scene" in layout
        high = 2 * round(0.5 * 0.75 * PIXELS * (1.0 if self.solid else layout["height"] / 640.0))
        self.figure: Any = Figure(figsize=(PIXELS / DPI, high / DPI), dpi=DPI)
        self.canvas = FigureCanvasAgg(self.figure)
        self.axes: Any = self._space(layout["scene"]) if self.solid else self._plane(layout)
        title, _, rest = layout["title"]["text"].partition("<br><sup>")
        words = html.unescape(rest.removesuffix("</sup>"))
        self.figure.text(0.02, 0.985, html.unescape(title), fontsize=9.5, va="top")
        self.figure.text(0.02, 0.985 - 17.0 / high, words, fontsize=7.0, va="top", color="#444444")
        self.clock = self.figure.text(0.98, 0.02, "", ha="right", fontsize=9.0, family="monospace")
        self.drawn: list[Any] = []
        self.behind: Any = None
        self._bars()

    def _plane(self, layout: dict[str, Any]) -> Any:
        axes = self.figure.add_axes((0.11, 0.15, 0.86, 0.7), aspect="equal", anchor="C")
        axes.set(xlim=layout["xaxis"]["range"], ylim=layout["yaxis"]["range"])
        axes.set(xlabel=layout["xaxis"]["title"]["text"], ylabel=layout["yaxis"]["title"]["text"])
        return axes

    def _space(self, scene: dict[str, Any]) -> Any:
        """Axes in space, seen from the position of the page's camera."""
        import mpl_toolkits.mplot3d  # noqa: F401

        axes: Any = self.figure.add_axes((0.0, 0.02, 0.95, 0.9), projection="3d", computed_zorder=False)
        ends = [scene[f"{axis}axis"]["range"] for axis in "xyz"]
        axes.set(xlim=ends[0], ylim=ends[1], zlim=ends[2])
        axes.set_box_aspect(np.diff(ends, axis=1)[:, 0], zoom=0.95)
        axes.set(**{f"{axis}label": scene[f"{axis}axis"]["title"]["text"] for axis in "xyz"})
        x, y, z = (scene["camera"]["eye"][axis] for axis in "xyz")
        axes.view_init(elev=np.degrees(np.arctan2(z, np.hypot(x, y))), azim=np.degrees(np.arctan2(y, x)))
        for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
            axis.set_pane_color("white")
        return axes

    def _bars(self) -> None:
        """Draws the colour bars, which are the same for all frames."""
        from matplotlib.cm import ScalarMappable

        for trace in self.picture["data"]:
            if trace.get("showscale"):
                shown = ScalarMappable(_norm(trace), cmap="viridis")
                label = trace["colorbar"]["title"]["text"]
                self.figure.colorbar(shown, ax=self.axes, shrink=0.6, pad=0.08, label=label)

    def pixels(self, row: int) -> np.ndarray:
        """Colours (high, wide, 3) of a frame. Axes and titles are drawn once, what moves over a copy."""
        if self.behind is None:
            self.canvas.draw()
            self.behind = self.canvas.copy_from_bbox(self.figure.bbox)
        self.canvas.restore_region(self.behind)
        self.show(row)
        for artist in sorted(self.drawn, key=lambda x: x.get_zorder()):
            if hasattr(artist, "do_3d_projection"):
                artist.do_3d_projection()
            self.axes.draw_artist(artist)
        self.figure.draw_artist(self.clock)
        found: np.ndarray = np.array(self.canvas.buffer_rgba())[..., :3]
        return found

    def show(self, row: int) -> None:
        """Draws a frame in place of the previous frame."""
        for old in self.drawn:
            old.remove()
        frame = self.picture["frames"][row]
        moved = dict(zip(frame["traces"], frame["data"], strict=True))
        traces = [{**x, **moved.get(k, {})} for k, x in enumerate(self.picture["data"])]
        if self.solid:
            self.drawn = _in_space(self.axes, traces)
        else:
            self.drawn = [y for x in traces for y in _in_the_plane(self.axes, x)]
        self.clock.set_text("t = " + self.picture["layout"]["sliders"][0]["steps"][row]["label"])


def _norm(trace: dict[str, Any]) -> Any:
    from matplotlib.colors import Normalize

    return Normalize(trace["cmin"], trace["cmax"])


def _points(trace: dict[str, Any], axes: str) -> np.ndarray:
    """Points of a trace (n, d), missing coordinates as not a number."""
    return np.array([trace[axis] for axis in axes], float).T


def _in_the_plane(axes: Any, trace: dict[str, Any]) -> list[Any]:
    x, y = _points(trace, "xy").T
    # ratio of the widths of lines and points in the plane to those of the page [points / pixel]
    thick = 0.65
    if trace["mode"] == "markers":
        fill, edge = trace["marker"]["color"], trace["marker"]["line"]["color"]
        wide = thick * trace["marker"]["size"]
        return list(axes.plot(x, y, "o", color=fill, markeredgecolor=edge, markersize=wide))
    line = trace["line"]
    found = list(axes.plot(x, y, color=line["color"], linewidth=thick * line["width"]))
    if trace.get("fill"):
        found += axes.fill(x, y, color=line["color"], alpha=0.35, linewidth=0.0)
    return found


def _in_space(axes: Any, traces: list[dict[str, Any]]) -> list[Any]:
    """Draws the ground first, then faces and lines sorted by depth, then points and forces."""
    from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

    layers: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {1: [], 2: [], 3: []}
    found = []
    for trace in traces:
        points = _points(trace, "xyz")
        if trace["type"] == "mesh3d":
            layers[2 if trace["opacity"] == 1.0 else 1].append(_faces(trace, points))
        elif trace["mode"] == "markers":
            colour, edge = trace["marker"]["color"], trace["marker"]["line"]["color"]
            found.append(axes.scatter(*points.T, s=14, c=colour, edgecolors=edge, zorder=3))
        else:
            layers[3 if trace["name"] == "contact forces" else 2].append(_segments(trace, points))
    thin = 0.9  # width of lines in space [points], which matplotlib sorts by depth among faces
    for layer, given in layers.items():
        shapes = [x for x in given if len(x[0])]
        if not shapes:
            continue
        corners, colours = (np.concatenate(x) for x in zip(*shapes, strict=True))
        if layer == 3:
            drawn = Line3DCollection(corners[:, :2], colors=colours, linewidths=2.0, zorder=3)
        else:
            drawn = Poly3DCollection(
                corners, facecolors=colours, edgecolors=colours, linewidths=thin * (layer - 1), zorder=layer
            )
        found.append(axes.add_collection3d(drawn, autolim=False))
    return found


def _faces(trace: dict[str, Any], points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triangles (n, 3, 3) and their colours (n, 4), darker where they face away from the lamp."""
    import matplotlib
    from matplotlib.colors import to_rgba

    faces = np.stack([trace[x] for x in "ijk"], axis=1)
    corners = points[faces]
    colours = np.tile(to_rgba(trace["color"], trace["opacity"]), (len(faces), 1))
    if trace.get("intensity") is not None:
        means = np.array(trace["intensity"], float)[faces].mean(axis=1)
        colours = matplotlib.colormaps["viridis"](_norm(trace)(means))
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1)
    lit = np.abs(normals @ LIGHT) / np.where(lengths > 0.0, lengths, 1.0)
    ambient = 0.55  # brightness of a face parallel to the light, relative to its full colour
    colours[:, :3] *= (ambient + (1.0 - ambient) * lit)[:, None]
    return corners, colours


def _segments(trace: dict[str, Any], points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Segments of a line as degenerate triangles with their colours, to be sorted among faces."""
    from matplotlib.colors import to_rgba

    pieces = np.stack([points[:-1], points[1:], points[1:]], axis=1)
    pieces = pieces[np.all(np.isfinite(pieces), axis=(1, 2))]
    return pieces, np.tile(to_rgba(trace["line"]["color"]), (len(pieces), 1))
