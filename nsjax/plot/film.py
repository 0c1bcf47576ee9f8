"""Animations as films, GIF or MP4, drawn by matplotlib with the colours and the view of their pages.

Projection, shading and order of depth stand twice, here and in ``viewer.html``, some thirty lines each; a
test compares what both paint. The page's painter is slower here, pictures from here would not turn there.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io as stream
import itertools
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from nsjax import io
from nsjax.core import InputError
from nsjax.core.memory import Progress, meter
from nsjax.figures import require_matplotlib
from nsjax.plot.scene import LOOK, PACE, DrawnRun, DrawnShape
from nsjax.plot.style import RC

WRITERS = {".gif": "pillow", ".mp4": "ffmpeg"}
"""Matplotlib's writer of films for each suffix; pillow is installed with matplotlib."""

PIXELS, DPI = 640, 80
"""Width of a film [px], and dots per inch."""


def require_writer(path: str | os.PathLike[str]) -> None:
    """Refuses a film for which no writer is installed. ``path``: path of the film, ``*.gif`` or ``*.mp4``.

    Raises:
        InputError: if matplotlib, or ffmpeg for MP4, is missing.
    """
    require_matplotlib()
    from matplotlib.animation import writers

    name = WRITERS[pathlib.Path(path).suffix.lower()]
    if _ffmpeg() is None if name == "ffmpeg" else not writers.is_available(name):
        remedy = (
            "end the name in .gif or .html, which need nothing more, or pip install imageio-ffmpeg"
            if (name == "ffmpeg")
            else "end the name in .html, or install it with: pip install pillow"
        )
        raise InputError(f"{path}: such a film needs {name}, which is not found; {remedy}")


def _ffmpeg() -> str | None:
    """Program that writes MP4: that of the machine, or of the package imageio-ffmpeg; None without both."""
    import matplotlib

    found = shutil.which(matplotlib.rcParams["animation.ffmpeg_path"])
    if found is None and importlib.util.find_spec("imageio_ffmpeg") is not None:
        import imageio_ffmpeg

        with contextlib.suppress(RuntimeError):  # on a machine for which the package holds none
            found = imageio_ffmpeg.get_ffmpeg_exe()
    return found


def write(scene: DrawnRun, path: str | os.PathLike[str], progress: Progress = False) -> None:
    """Writes a film, whole or not at all.

    Args:
        scene: what is drawn.
        path: path of the film, ``*.gif`` or ``*.mp4``.
        progress: True: a bar; a function: called with the frames done and all frames.

    Raises:
        InputError: for a path that cannot be written; as `require_writer`.
    """
    require_writer(path)
    import matplotlib

    suffix, count = pathlib.Path(path).suffix.lower(), len(scene.times)
    with (
        io.replacing(path) as file,
        tempfile.TemporaryDirectory() as folder,
        matplotlib.rc_context(RC),
        meter(progress, count, "frame") as tell,
    ):
        whole = pathlib.Path(folder) / f"film{suffix}"
        shown = FilmAxes(scene)

        def frames() -> Iterator[np.ndarray]:
            for row in range(count):
                yield shown.pixels(row)
                tell(row + 1)

        if suffix == ".gif":
            _gif(frames(), whole, shown.sample())
        else:
            _mp4(frames(), whole)
        file.write(whole.read_bytes())


def _gif(frames: Iterator[np.ndarray], path: pathlib.Path, sample: np.ndarray) -> None:
    from PIL import Image

    palette = Image.fromarray(sample).quantize(colors=256)  # one for all: a film takes half the time
    # all frames are held until they are written: 70 MB for 240
    drawn = [Image.fromarray(x).quantize(palette=palette, dither=Image.Dither.NONE) for x in frames]
    drawn[0].save(path, save_all=True, append_images=drawn[1:], duration=PACE, loop=0)


def _mp4(frames: Iterator[np.ndarray], path: pathlib.Path) -> None:
    first = next(frames)
    size = f"{first.shape[1]}x{first.shape[0]}"
    words = (
        f"-loglevel error -f rawvideo -pix_fmt rgb24 -s {size} -r {1e3 / PACE:g} -i - -an -vcodec h264 "
        "-pix_fmt yuv420p"
    )
    program = _ffmpeg()
    assert program is not None  # see `require_writer`
    with subprocess.Popen([program, *words.split(), str(path)], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        for x in itertools.chain([first], frames):
            process.stdin.write(x.tobytes())
    if process.returncode:  # its own words stand above
        raise subprocess.CalledProcessError(process.returncode, program)


def png(scene: DrawnRun) -> bytes:
    """The first frame without axes, in the format PNG."""
    import matplotlib

    held = stream.BytesIO()
    with matplotlib.rc_context(RC):
        shown = FilmAxes(scene, bare=True)
        shown.show(0)
        shown.figure.savefig(held, format="png", dpi=DPI, bbox_inches="tight")
    return held.getvalue()


def projected(scene: DrawnRun, points: np.ndarray) -> np.ndarray:
    """Points (n, 3) as the page shows them first: to the right, up, and towards the eye, in diagonals."""
    a, e = (LOOK[x] for x in ("side", "up"))
    right = [-np.sin(a), np.cos(a), 0.0]
    up = [-np.sin(e) * np.cos(a), -np.sin(e) * np.sin(a), np.cos(e)]
    eye = [np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)]
    middle, diagonal = 0.5 * (scene.low + scene.high), np.linalg.norm(scene.high - scene.low)
    found: np.ndarray = (points - middle) @ np.transpose([right, up, eye]) / diagonal
    found[:, :2] /= 1.0 - found[:, 2:] / LOOK["distance"]
    return found


class FilmAxes:
    """Axes, title and time of a film, and the traces of its frame; ``bare``: without axes and words."""

    def __init__(self, scene: DrawnRun, bare: bool = False) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.scene, self.bare, self.solid = scene, bare, len(scene.low) == 3
        wide, tall = (scene.high - scene.low)[:2]
        # as high as the scene needs below the lines of the title
        share = 0.75 if self.solid else float(np.clip(tall / wide + 0.2, 0.5, 0.85))
        high = 2 * round(0.5 * share * PIXELS)
        self.figure: Any = Figure(figsize=(PIXELS / DPI, high / DPI), dpi=DPI)
        self.canvas = FigureCanvasAgg(self.figure)
        self.axes: Any = self._space() if self.solid else self._plane()
        self.clock = self.figure.text(0.98, 0.02, "", ha="right", fontsize=9.0, family="monospace")
        if bare:
            self.axes.set_axis_off()
        else:
            self.figure.text(0.02, 0.985, scene.title, fontsize=9.5, va="top")
            self.figure.text(
                0.02, 0.985 - 17.0 / high, scene.words, fontsize=7.0, va="top", color="#444444"
            )
        self.drawn: list[Any] = []
        self.behind: Any = None
        self._bars()

    def _plane(self) -> Any:
        axes = self.figure.add_axes((0.11, 0.15, 0.86, 0.7), aspect="equal", anchor="C")
        ends = np.stack([self.scene.low, self.scene.high], axis=1)
        wide, tall = np.diff(ends, axis=1)[:, 0]
        narrow = 0.6  # least ratio of width to height that has room for the numbers of the axis
        ends[0] += max(0.0, 0.5 * (narrow * tall - wide)) * np.array([-1.0, 1.0])
        axes.set(xlim=ends[0], ylim=ends[1], xlabel=self.scene.axes[0], ylabel=self.scene.axes[1])
        return axes

    def _space(self) -> Any:
        """Axes in shares of the scene's diagonal, with the floor and the edges of the scene."""
        axes: Any = self.figure.add_axes((0.02, 0.02, 0.96, 0.88), aspect="equal")
        axes.set(xlim=(-0.56, 0.56), ylim=(-0.46, 0.46))
        axes.set_axis_off()
        if self.bare:
            return axes
        ends = np.stack([self.scene.low, self.scene.high])
        at = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]])
        corners = projected(self.scene, np.take_along_axis(ends, at, axis=0))
        axes.plot(*corners[:, :2].T, color="#CCCCCC", linewidth=0.8, zorder=0.5)
        for k, place in enumerate(corners[[1, 3, 5]]):
            words = f"{self.scene.axes[k]} {self.scene.high[k]:.3g}"
            axes.text(
                *place[:2],
                words,
                fontsize=7.0,
                color="#777777",
                zorder=0.5,
                ha="center",
                va="bottom" if k == 2 else "top",
            )
        return axes

    def _bars(self) -> None:
        """Draws the colour bars, which are the same for all frames."""
        from matplotlib.cm import ScalarMappable

        for trace in self.scene.traces:
            if trace.values is not None and not self.bare:
                shown = ScalarMappable(_norm(trace), cmap=_colours())
                self.figure.colorbar(shown, ax=self.axes, shrink=0.6, pad=0.02, label=trace.title)

    def sample(self) -> np.ndarray:
        """Pixels with the colours of all frames: some frames, and all colours of shapes."""
        from matplotlib.colors import to_rgb

        count = len(self.scene.times)
        found = [self.pixels(row) for row in sorted({0, count // 3, 2 * count // 3, count - 1})]
        wide = found[0].shape[1]
        for colour in {x.colour for x in self.scene.traces}:
            pure = np.round(255.0 * np.array(to_rgb(colour))).astype(np.uint8)
            found.append(np.broadcast_to(pure, (8, wide, 3)))
        return np.concatenate(found)

    def pixels(self, row: int) -> np.ndarray:
        """Colours (high, wide, 3) of a frame. Axes and titles are drawn once, what moves over a copy."""
        if self.behind is None:
            self.canvas.draw()
            self.behind = self.canvas.copy_from_bbox(self.figure.bbox)
        self.canvas.restore_region(self.behind)
        self.show(row)
        for artist in sorted(self.drawn, key=lambda x: x.get_zorder()):
            self.axes.draw_artist(artist)
        self.figure.draw_artist(self.clock)
        return np.array(self.canvas.buffer_rgba())[..., :3]

    def show(self, row: int) -> None:
        """Draws a frame in place of the previous frame."""
        for old in self.drawn:
            old.remove()
        if self.solid:
            self.drawn = _in_space(self.axes, self.scene, row)
        else:
            self.drawn = [y for x in self.scene.traces for y in _in_the_plane(self.axes, x, row)]
        self.clock.set_text("" if self.bare else "t = " + self.scene.times[row])


@functools.cache
def _colours() -> Any:
    """Colours of values."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("values", LOOK["colours"])


def _norm(trace: DrawnShape) -> Any:
    from matplotlib.colors import Normalize

    return Normalize(*trace.ends)


def _in_the_plane(axes: Any, trace: DrawnShape, row: int) -> list[Any]:
    x, y = trace.at(row).T
    if trace.kind == "dots":
        edge, size = trace.colour, trace.width_in_film
        return list(axes.plot(x, y, "o", color=trace.fill, markeredgecolor=edge, markersize=size))
    found = list(axes.plot(x, y, color=trace.colour, linewidth=trace.width_in_film))
    if trace.kind == "area":
        found += axes.fill(x, y, color=trace.colour, alpha=LOOK["area"], linewidth=0.0)
    return found


def _in_space(axes: Any, scene: DrawnRun, row: int) -> list[Any]:
    """Draws the ground first, then faces and lines sorted by depth, then points and forces."""
    from matplotlib.collections import PolyCollection, TriMesh
    from matplotlib.tri import Triangulation

    every = [x.at(row) for x in scene.traces]
    ends = np.cumsum([0, *map(len, every)])
    places = np.concatenate(every)
    seen, found = projected(scene, places), []
    faces, colours, pairs = [np.zeros((0, 3), int)], [np.zeros((0, 4))], [np.zeros((0, 2), int)]
    widths, strokes, dots = [np.zeros(0)], [np.zeros((0, 4))], dict[tuple[str, float], list[np.ndarray]]()
    for trace, first, last in zip(scene.traces, ends[:-1], ends[1:], strict=True):
        if trace.kind == "mesh":
            faces.append(first + trace.faces)
            colours.append(_face_colours(trace, row))
        elif trace.kind == "dots":
            dots.setdefault((trace.colour, trace.width_in_film), []).append(seen[first:last])
        elif trace.kind == "force":
            line = seen[first:last, :2].T
            found += axes.plot(*line, color=trace.colour, linewidth=trace.width_in_film, zorder=3)
        else:
            pairs.append(np.stack([np.arange(first, last - 1), np.arange(first + 1, last)], axis=1))
            widths.append(np.full(last - first - 1, trace.width))
            strokes.append(_alike(trace.colour, last - first - 1))
    for (colour, size), some in dots.items():  # a call for each point would take a third of the time
        found += axes.plot(*np.concatenate(some)[:, :2].T, "o", color=colour, markersize=size, zorder=3)
    corners = np.concatenate(faces)
    shades = _shaded(places[corners], np.concatenate(colours))
    flat = shades[:, 3] < 1.0  # the ground
    if flat.any():
        ground = PolyCollection(list(seen[corners[flat], :2]), facecolors=shades[flat], linewidths=0.0)
        found.append(axes.add_collection(ground, autolim=False))
    pixels = float(np.ptp(axes.transData.transform([(0.0, 0.0), (1.0, 0.0)])[:, 0]))
    strips, kept = _strips(seen[np.concatenate(pairs)], np.concatenate(widths) / pixels)
    shown = np.concatenate([seen[corners[~flat]], strips])
    if not len(shown):
        return found
    painted = np.concatenate([shades[~flat], np.tile(np.concatenate(strokes)[kept], (2, 1))])
    order = np.argsort(shown[..., 2].mean(axis=1), kind="stable")
    flattened, each = shown[order].reshape(-1, 3), np.arange(3 * len(order)).reshape(-1, 3)
    # triangles of one colour each: a path for each would take most of the time of a film
    drawn = TriMesh(Triangulation(flattened[:, 0], flattened[:, 1], each), zorder=2)
    drawn.set_facecolor(np.repeat(painted[order], 3, axis=0))  # type: ignore[arg-type]
    return [axes.add_collection(drawn, autolim=False), *found]


def _strips(ends: np.ndarray, wide: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pieces of lines (n, 2, 3) of some widths as triangles (2 m, 3, 3), and which m of them are finite."""
    kept = np.isfinite(ends).all(axis=(1, 2))
    start, end = ends[kept, 0], ends[kept, 1]
    along = (end - start)[:, :2]
    length = np.linalg.norm(along, axis=1, keepdims=True)
    along = 0.5 * wide[kept, None] * along / np.where(length > 0.0, length, 1.0)
    side = np.stack([-along[:, 1], along[:, 0], np.zeros(len(along))], axis=1)
    a, b, c, d = start + side, start - side, end + side, end - side
    return np.concatenate([np.stack([a, b, c], axis=1), np.stack([b, c, d], axis=1)]), kept


def _alike(colour: str, count: int) -> np.ndarray:
    from matplotlib.colors import to_rgba

    return np.tile(to_rgba(colour), (count, 1))


def _face_colours(trace: DrawnShape, row: int) -> np.ndarray:
    """Colours (m, 4) of triangles that face the lamp."""
    colours = _alike(trace.colour, len(trace.faces))
    if trace.values is not None:
        means = trace.values[row % len(trace.values)][trace.faces].mean(axis=1)
        colours = _colours()(_norm(trace)(means))
    colours[:, 3] = LOOK["ground"] if trace.role == "ground" else 1.0
    return colours


def _shaded(corners: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """Colours of triangles (m, 3, 3), darker where they face away from the lamp."""
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1)
    lit = np.abs(normals @ np.array(LOOK["light"])) / np.where(lengths > 0.0, lengths, 1.0)
    ambient = LOOK["ambient"]
    return np.concatenate(
        [colours[:, :3] * (ambient + (1.0 - ambient) * lit)[:, None], colours[:, 3:]], axis=1
    )
