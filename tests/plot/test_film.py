"""Films: as many frames as the page has, that show what moves, or a sentence about what is missing."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import nsjax
from nsjax import InputError, models, plot
from nsjax.plot import film
from nsjax.plot.scene import FORCE, PACE
from tests.plot.coasting import coasting, stretched

pytest.importorskip("matplotlib", reason="films need matplotlib (extra plot)")


def frames(path: pathlib.Path) -> tuple[list[np.ndarray], int]:
    """Pictures of a GIF as numbers, and its pace [ms]."""
    image = pytest.importorskip("PIL.Image", reason="reads films").open(path)
    found = []
    for k in range(image.n_frames):
        image.seek(k)
        found.append(np.asarray(image.convert("RGB"), float))
    return found, image.info["duration"]


def near(picture: np.ndarray, colour: str) -> np.ndarray:
    """Which pixels have a colour."""
    wanted = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
    return np.abs(picture - wanted).max(axis=-1) < 40.0


def test_a_film_of_the_plane_moves(tmp_path: pathlib.Path) -> None:
    """The rod goes up with the pin of the crank (150 rad/s from the right), contacts push later."""
    crank = models.slider_crank()
    run = coasting(crank, rows=3, step=2e-3, push=2e-3)
    nsjax.animate(crank, run).save(tmp_path / "run.gif")
    pictures, pace = frames(tmp_path / "run.gif")
    assert (len(pictures), pace) == (3, PACE)
    tops = [np.flatnonzero(near(x, "#E69F00").any(axis=1)).min() for x in pictures]
    assert tops[0] > tops[1] > tops[2]  # rows of pixels count downwards
    assert [bool(near(x, FORCE).any()) for x in pictures] == [False, True, True]


@pytest.mark.slow
def test_a_film_of_space_moves(tmp_path: pathlib.Path) -> None:
    """Stretched, a cube is taller and turns from the dark end of the colours to the yellow one."""
    cube = models.flexible_cube(elements=2, young=1e5)
    nsjax.animate(cube, coasting(stretched(cube, 10.0), rows=2, step=2e-2)).save(tmp_path / "run.gif")
    (first, last), _ = frames(tmp_path / "run.gif")
    wide = int(0.75 * first.shape[1])  # the scale of colours stands to the right of it

    def count(picture: np.ndarray, least: float) -> int:
        """Pixels that are so much bluer than red; viridis goes from (68, 1, 84) to (253, 231, 37)."""
        bluer = (picture[..., 2] - picture[..., 0])[:, :wide]
        return int((np.sign(least) * bluer > abs(least)).sum())

    dark = count(first, 5)
    assert dark > 1000
    assert count(first, -90) == 0
    assert count(last, -90) > 1.1 * dark  # 1.2 times as tall, seen from 20 degrees above


@pytest.mark.parametrize("spatial", [False, True])
def test_frames_over_a_copy_of_the_axes_are_those_drawn_at_once(spatial: bool) -> None:
    from nsjax.plot.film import FilmAxes

    problem = models.flexible_cube(elements=1) if spatial else models.slider_crank()
    scene = nsjax.animate(problem, coasting(problem, rows=3, step=2e-3, push=2e-3)).scene
    one, whole = FilmAxes(scene), FilmAxes(scene)
    one.pixels(0)
    whole.show(2)
    whole.canvas.draw()
    np.testing.assert_array_equal(one.pixels(2), np.asarray(whole.canvas.buffer_rgba())[..., :3])


def test_films_tell_their_progress(tmp_path: pathlib.Path) -> None:
    ball, said = models.bouncing_ball(), []
    animation = nsjax.animate(ball, coasting(ball, rows=3))
    animation.save(tmp_path / "run.gif", progress=lambda *x: said.append(x))
    assert said == [(1, 3), (2, 3), (3, 3)]


def test_where_nothing_writes_films_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.animation import writers

    monkeypatch.setattr(type(writers), "is_available", lambda self, name: False)
    monkeypatch.setattr(film, "_ffmpeg", lambda: None)
    with pytest.raises(
        InputError, match=r"run.mp4: such a film needs ffmpeg, .*pip install imageio-ffmpeg"
    ):
        plot.check_animation("run.mp4")
    with pytest.raises(InputError, match=r"run.GIF: such a film needs pillow, which is not found; "):
        plot.check_animation("run.GIF")


@pytest.mark.skipif(film._ffmpeg() is None, reason="ffmpeg not found (extra film, or Debian's ffmpeg)")
def test_an_mp4_is_one(tmp_path: pathlib.Path) -> None:
    ball = models.bouncing_ball()
    nsjax.animate(ball, coasting(ball, rows=3)).save(tmp_path / "run.mp4")
    assert (tmp_path / "run.mp4").read_bytes()[4:8] == b"ftyp"
