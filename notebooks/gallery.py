"""Draws the pictures of the guide's gallery, and of the README: ``python notebooks/gallery.py [NAME ...]``."""

from __future__ import annotations

import io
import pathlib
import re
import sys
from typing import Any

import numpy as np
from matplotlib import rc_context
from PIL import Image

import nsjax
from nsjax.plot.film import FilmAxes
from nsjax.plot.style import RC

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent / "nsjax" / "documentation" / "guide" / "gallery.md"
SECTION = re.compile(r"^## (.*?)$.*?gallery/(\w+)\.png.*?```python\n(.*?)```", re.MULTILINE | re.DOTALL)
"""Title, name of the picture and code of a run."""

WIDE, HIGH, DPI = 480, 360, 160
"""Size of a picture [pixels], drawn at twice the size of its screen."""

MOMENTS = {
    "slider_crank": 0.3, "crate": 0.4, "dominoes": 0.62, "cam": 0.19, "arm": 0.36, "boxes": 0.56, "spheres": 1.0,
    "rope": 0.75, "box": 0.5, "slope": 0.95, "bearing": 0.13, "chain": 0.3, "rod": 0.52, "break": 0.3, "coin": 0.2,
    "bar": 0.55, "flight": 0.5, "cube": 0.3, "rotor": 0.7, "hopper": 0.46,
}  # fmt: skip
"""Share of the run at which the picture shows what its title says; the nearest frame with forces is taken."""

README = ("slider_crank", "crate", "cube", "spheres", "rope", "hopper", "cam", "dominoes")
"""Runs on the picture of the README, four in a row."""


def sections() -> dict[str, tuple[str, str]]:
    """Title and code of every run of the page, by the name of its picture."""
    found = SECTION.findall(PAGE.read_text(encoding="utf-8"))
    return {name: (title, code) for title, name, code in found}


def run(code: str) -> tuple[Any, Any]:
    """Problem and trajectory that the code of a section makes."""
    made: dict[str, Any] = {"__name__": "gallery"}
    exec(compile(code, str(PAGE), "exec"), made)
    return made["problem"], made["traj"]


def picture(title: str, code: str, share: float) -> Image.Image:
    """A frame of the run without axes, its title above."""
    animation = nsjax.animate(*run(code))
    row = moment(animation.figure["frames"], share)
    drawn = io.BytesIO()
    with rc_context(RC):
        scene = FilmAxes(animation.figure)
        scene.show(row)
        for text in list(scene.figure.texts):
            text.remove()
        scene.axes.set_axis_off()
        scene.figure.savefig(drawn, format="png", dpi=2 * DPI)
    return titled(cropped(Image.open(drawn).convert("RGB")), title)


def moment(frames: list[dict[str, Any]], share: float) -> int:
    """The frame nearest to a share of the run in which contacts push, or the nearest one of all."""
    wanted = share * (len(frames) - 1)
    pushed = [k for k, x in enumerate(frames) if any(value is not None for value in x["data"][-1]["x"])]
    return min(pushed or range(len(frames)), key=lambda k: abs(k - wanted))


def cropped(drawn: Image.Image) -> Image.Image:
    """The part that is not white."""
    inked = np.any(np.asarray(drawn) < 250, axis=2)
    rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
    return drawn.crop((int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1))


def titled(drawn: Image.Image, title: str) -> Image.Image:
    """A picture of the common size: the title, and below it as much as fits, in the middle."""
    from matplotlib.figure import Figure

    with rc_context(RC):
        figure = Figure(figsize=(WIDE / DPI, HIGH / DPI), dpi=DPI)
        figure.text(0.5, 0.96, title, ha="center", va="top", fontsize=9)
        axes: Any = figure.add_axes((0.03, 0.02, 0.94, 0.84))
        axes.imshow(np.asarray(drawn), interpolation="antialiased")
        axes.set_axis_off()
        held = io.BytesIO()
        figure.savefig(held, format="png")
    return Image.open(held).convert("RGB")


def saved(drawn: Image.Image, path: pathlib.Path) -> None:
    """Writes a picture with few colours."""
    drawn.quantize(96, dither=Image.Dither.NONE).save(path, optimize=True)


def main(names: list[str]) -> None:
    """Draws the runs named, or all, and puts those of the README side by side."""
    nsjax.configure()
    runs = sections()
    for name in names or runs:
        saved(picture(*runs[name], MOMENTS[name]), HERE / "gallery" / f"{name}.png")
        print(name, flush=True)
    tiles = [Image.open(HERE / "gallery" / f"{name}.png").convert("RGB") for name in README]
    whole = Image.new("RGB", (4 * WIDE, 2 * HIGH), "white")
    for k, tile in enumerate(tiles):
        whole.paste(tile, (k % 4 * WIDE, k // 4 * HIGH))
    saved(whole, HERE / "gallery.png")


if __name__ == "__main__":
    main(sys.argv[1:])
