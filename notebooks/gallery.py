"""Draws the README's gallery: ``python notebooks/gallery.py`` writes one picture, of frames of films."""

from __future__ import annotations

import io
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib import rc_context
from PIL import Image

import nsjax
from nsjax import models, schemes
from nsjax.multibody import assemble, body, box, contact, plane, sphere, spheres
from nsjax.plot.film import DPI, Scene
from nsjax.plot.style import RC

HERE = pathlib.Path(__file__).resolve().parent
SHARE = 0.75
"""Of the size of a film."""


def crank() -> tuple[Any, float | None]:
    """The mechanism of the first figure, while the slider rattles."""
    problem = models.slider_crank()
    run = nsjax.simulate(*problem, schemes.moreau(), dt=1e-5, time=0.05, every=50)
    return nsjax.animate(problem, run), None


def crash() -> tuple[Any, float]:
    """The ball and the crate of notebook 13."""
    problem = assemble(
        body("crate", mass=1.0, inertia=0.3**2 / 12 + 0.4**2 / 12),
        body("ball", mass=2.0, inertia=0.5 * 2.0 * 0.15**2),
        contact("feet", box("crate", 0.15, 0.2), plane(), friction=0.4),
        contact("roll", sphere("ball", 0.15), plane(), friction=0.5),
        contact("blow", sphere("ball", 0.15), box("crate", 0.15, 0.2), friction=0.3, restitution=0.3),
        gravity=9.81,
        start={"crate": (0.0, 0.2, 0.0), "ball": ((-0.8, 0.15, 0.0), (4.0, 0.0, -4.0 / 0.15))},
    )
    run = nsjax.simulate(*problem, schemes.moreau(), dt=5e-4, time=0.4, every=10)
    return nsjax.animate(problem, run), 0.5


def cube() -> tuple[Any, float]:
    """The soft cube of notebook 11 on the plane, coloured by its stress."""
    problem = models.flexible_cube(elements=5, height=1e-3, velocity=np.array([0.0, 0.0, -2.42]))
    run = nsjax.simulate(*problem, schemes.moreau(), dt=2e-4, time=0.03, every=5)
    return nsjax.animate(problem, run), 0.3


def pile() -> tuple[Any, float]:
    """Spheres that fall into a corner."""
    grid = np.stack(np.meshgrid(*[np.arange(3)] * 3, indexing="ij"), -1).reshape(-1, 3)
    places = 0.13 + 0.24 * grid + np.random.default_rng(0).uniform(0.0, 0.02, grid.shape)
    walls = [((0.0, 0.0, 1.0), 0.0), ((1.0, 0.0, 0.0), 0.0), ((0.0, 1.0, 0.0), 0.0)]
    problem = spheres(0.1, 1.0, places, walls=walls, friction=0.3)
    run = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, time=0.5, every=10)
    return nsjax.animate(problem, run), 1.0


def pushed(frame: dict[str, Any]) -> int:
    """Points of arrows in a frame, the last trace of which are the forces."""
    return sum(x is not None for x in frame["data"][-1]["x"])


def frame(made: Callable[[], tuple[Any, float | None]]) -> Image.Image:
    """A picture of a run, some way through it, or where most contacts push."""
    animation, share = made()
    frames = animation.figure["frames"]
    arrows = [pushed(x) for x in frames]
    row = arrows.index(max(arrows)) if share is None else round(share * (len(frames) - 1))
    drawn = io.BytesIO()
    with rc_context(RC):
        scene = Scene(animation.figure)
        scene.show(row)
        scene.figure.savefig(drawn, format="png", dpi=SHARE * DPI)
    return Image.open(drawn).convert("RGB")


def main() -> None:
    """Puts the pictures side by side."""
    nsjax.configure()
    pictures = [frame(made) for made in (crank, crash, cube, pile)]
    wide, high = max(x.width for x in pictures), max(x.height for x in pictures)
    whole = Image.new("RGB", (2 * wide, 2 * high), "white")
    for k, picture in enumerate(pictures):
        whole.paste(picture, (k % 2 * wide, k // 2 * high))
    whole.quantize(256, dither=Image.Dither.NONE).save(HERE / "gallery.png", optimize=True)


if __name__ == "__main__":
    main()
