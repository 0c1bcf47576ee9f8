"""Draws the moving pictures of the guide's gallery, and that of the README: ``python notebooks/gallery.py [NAME ...]``.

``python notebooks/gallery.py seconds [NAME ...]`` writes the CPU time of the runs of the gallery beside their code.
"""

from __future__ import annotations

import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import rc_context
from PIL import Image

import nsjax
from nsjax.plot.film import FilmAxes
from nsjax.plot.style import RC

HERE = pathlib.Path(__file__).resolve().parent
GUIDE = HERE.parent / "nsjax" / "documentation" / "guide"
PAGES = (GUIDE / "gallery.md", GUIDE / "examples.md")
SECTION = re.compile(
    r"^##+ ([^\n]*)\n[^#]*?gallery/(\w+)\.webp.*?```python\n(.*?)```", re.MULTILINE | re.DOTALL
)
"""Title, name of the picture and code of a run."""

WIDE, HIGH = 320, 240
"""Size of a moving picture [pixels]."""

FRAMES, PACE = 40, 100
"""Number of its frames, and the time of one [ms]."""

WINDOWS = {"damper": (0.98, 1.0), "table": (0.0, 0.3), "walker": (0.5, 1.0), "clutch": (0.0, 0.3)}
"""Shares of long runs that are shown; others are shown whole."""

LOOK = {"figure.figsize": (6.0, 3.4), "savefig.dpi": 110, "figure.constrained_layout.use": True}
"""Settings of diagrams."""

README = {
    "slider_crank": 0.3, "crate": 0.4, "cube": 0.3, "spheres": 1.0, "rope": 0.75, "hopper": 0.46, "cam": 0.19,
    "dominoes": 0.62,
}  # fmt: skip
"""Runs on the picture of the README, four in a row, and the share of each at which it is shown."""


def sections() -> dict[str, tuple[str, str]]:
    """Title and code of every run of the pages, by the name of its picture."""
    found = [x for page in PAGES for x in SECTION.findall(page.read_text(encoding="utf-8"))]
    return {name: (title, code) for title, name, code in found}


def run(name: str, code: str) -> tuple[Any, Any]:
    """Problem and trajectory that the code of a section makes; its diagram, if any, goes beside the pictures."""
    made: dict[str, Any] = {"__name__": "gallery"}
    with (
        tempfile.TemporaryDirectory() as folder,
        rc_context(LOOK),
    ):
        code = code.replace('"diagram.png"', repr(f"{folder}/diagram.png"))
        exec(compile(code, name, "exec"), made)
        for diagram in pathlib.Path(folder).glob("*.png"):
            few(Image.open(diagram).convert("RGB")).save(
                HERE / "gallery" / f"{name}_diagram.png", optimize=True
            )
        plt.close("all")
    return made["problem"], made["traj"]


def frames(problem: Any, traj: Any, window: tuple[float, float]) -> list[Image.Image]:
    """Pictures of a share of a run without axes, all of the common size."""
    animation = nsjax.animate(problem, traj, frames=round(FRAMES / (window[1] - window[0])))
    count = len(animation.scene.times)
    with rc_context(RC):
        scene = FilmAxes(animation.scene, bare=True)
        drawn = np.stack([scene.pixels(row).copy() for row in range(*(round(x * count) for x in window))])
    inked = np.any(drawn.min(axis=0) < 250, axis=2)
    rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
    cut = drawn[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    share = min(WIDE / cut.shape[2], HIGH / cut.shape[1])
    size = round(share * cut.shape[2]), round(share * cut.shape[1])
    found = []
    for pixels in cut:
        whole = Image.new("RGB", (WIDE, HIGH), "white")
        small = Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS)
        whole.paste(small, ((WIDE - size[0]) // 2, (HIGH - size[1]) // 2))
        found.append(whole)
    return found


def few(drawn: Image.Image) -> Image.Image:
    """A picture with few colours."""
    return drawn.quantize(192, dither=Image.Dither.NONE)


def seconds(code: str) -> float:
    """CPU time [s] of a run from the start of Python on, with nothing compiled before."""
    with tempfile.TemporaryDirectory() as folder:
        own = os.environ | {"XDG_CACHE_HOME": folder}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, cwd=folder, env=own)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_seconds(names: list[str]) -> None:
    """Writes the CPU times of the runs named, or of all, above their code on the page of the gallery."""
    page = PAGES[0]
    for name in names or [x[1] for x in SECTION.findall(page.read_text(encoding="utf-8"))]:
        spent = f"*{seconds(sections()[name][1]):.2g} s*"
        begin, found, rest = page.read_text(encoding="utf-8").partition(f"gallery/{name}.webp)\n")
        words, mark, code = rest.partition("```python\n")
        words = re.sub(r"\*[\d.]+ s\*\n\n$", "", words) + f"{spent}\n\n"
        page.write_text(begin + found + words + mark + code, encoding="utf-8")
        print(name, spent, flush=True)


def main(names: list[str]) -> None:
    """Draws the runs named, or all, and puts those of the README side by side."""
    nsjax.configure()
    runs = sections()
    for name in names or runs:
        drawn = frames(*run(name, runs[name][1]), WINDOWS.get(name, (0.0, 1.0)))
        path = HERE / "gallery" / f"{name}.webp"
        drawn[0].save(
            path, save_all=True, append_images=drawn[1:], duration=PACE, loop=0, quality=45, method=6
        )
        print(name, path.stat().st_size, flush=True)
    if not all((HERE / "gallery" / f"{name}.webp").is_file() for name in README):
        return
    whole = Image.new("RGB", (4 * WIDE, 2 * HIGH), "white")
    for k, (name, share) in enumerate(README.items()):
        moving: Any = Image.open(HERE / "gallery" / f"{name}.webp")
        moving.seek(round(share * (moving.n_frames - 1)))
        whole.paste(moving.convert("RGB"), (k % 4 * WIDE, k // 4 * HIGH))
    few(whole).save(HERE / "gallery.png", optimize=True)


if __name__ == "__main__":
    asked = sys.argv[1:]
    write_seconds(asked[1:]) if asked[:1] == ["seconds"] else main(asked)
