"""Animations: the page is whole, says what was run, and what it shows is what the run did."""

from __future__ import annotations

import json
import pathlib
import re
import sys
import time

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, Problem, State, System, models, shapes
from nsjax.motion import motion
from nsjax.plot import animation as scenes
from nsjax.plot.animation import PACE
from tests.plot.browser import browser, missing
from tests.plot.coasting import coasting, stretched
from tests.points import unit_mass

pytest.importorskip("plotly", reason="animations need plotly (extra plot)")

CRANK = models.slider_crank()


@pytest.fixture(scope="module")
def crank():
    return coasting(CRANK, rows=41, step=2e-4, push=2e-3)


@pytest.fixture(scope="module")
def animation(crank):
    return nsjax.animate(CRANK, crank, frames=21)


def trace(figure: dict, name: str) -> int:
    return next(k for k, x in enumerate(figure["data"]) if x["name"] == name)


def shown(figure: dict, frame: int, name: str) -> np.ndarray:
    """Coordinates of a trace in a frame."""
    place = figure["frames"][frame]["traces"].index(trace(figure, name))
    data = figure["frames"][frame]["data"][place]
    return np.array([[np.nan if x is None else x for x in data[axis]] for axis in "xy"]).T


def test_frames_show_the_rows(animation, crank) -> None:
    figure = animation.figure
    assert len(figure["frames"]) == 21
    for frame, row in ((0, 0), (10, 20), (20, 40)):
        theta = crank.q[row, 0]
        pin = 153.0 * np.array([np.cos(theta), np.sin(theta)])  # millimetres
        np.testing.assert_allclose(shown(figure, frame, "crank"), [[0.0, 0.0], pin], atol=0.01)
    labels = [step["label"] for step in figure["layout"]["sliders"][0]["steps"]]
    assert (labels[0], labels[10], labels[20]) == ("0 ms", "4 ms", "8 ms")


def test_what_stands_still_is_written_once(animation) -> None:
    figure = animation.figure
    moving = {figure["data"][k]["name"] for k in figure["frames"][3]["traces"]}
    assert moving == {"crank", "rod", "slider", "joints", "contact forces"}
    assert {x["name"] for x in figure["data"]} - moving == {"lower wall", "upper wall"}


def test_arrows_end_at_corners_and_are_as_long_as_forces(animation, crank) -> None:
    """2 mN s between rows 0.2 ms apart: 10 N at every corner, the reference of all arrows."""
    seen = motion(CRANK, crank, frames=21)
    assert scenes.reference_force(seen) == pytest.approx(10.0)
    points = shown(animation.figure, 10, "contact forces").reshape(4, scenes.ARROW, 2)
    np.testing.assert_allclose(points[:, 1], 1e3 * seen.places[10], atol=0.01)
    lengths = np.linalg.norm(points[:, 1] - points[:, 0], axis=1)
    np.testing.assert_allclose(lengths, 1e3 * 0.125 * seen.size, rtol=1e-4)
    assert (points[:2, 1, 1] < points[:2, 0, 1]).all()  # the upper wall pushes down
    assert np.isnan(shown(animation.figure, 0, "contact forces")).all()
    assert "10 N" in animation.figure["layout"]["title"]["text"]


def test_the_title_says_what_was_run_and_axes_have_units(animation) -> None:
    layout = animation.figure["layout"]
    assert "slider crank: moreau, dt = 0.0002 s, t = 0 to 0.008 s" in layout["title"]["text"]
    assert "21 of 41 rows" in layout["title"]["text"]
    assert f"{20 * PACE * 1e-3 / 8e-3:.3g} times slower" in layout["title"]["text"]
    assert (layout["xaxis"]["title"]["text"], layout["yaxis"]["title"]["text"]) == ("x (mm)", "y (mm)")
    assert [x["label"] for x in layout["updatemenus"][0]["buttons"]] == ["▶ play", "❚❚ pause"]


def test_the_page_needs_nothing_else(animation, tmp_path: pathlib.Path) -> None:
    animation.save(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count("</html>") == 1
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=", page)
    assert "Plotly.newPlot" in page
    assert "MIT license" in page  # of plotly.js, which is inside
    assert len(page) < 7e6  # plotly.js 4.8 MB, frames 0.2 MB
    assert "<iframe srcdoc=" in animation._repr_html_()[:20]
    json.dumps(animation.figure, allow_nan=False)  # what is not a number has no place in a page


def test_pages_stay_small_where_pictures_are_large(monkeypatch) -> None:
    """Four numbers at each of 98 nodes of the surface, three at the 40 of the edges and their breaks."""
    monkeypatch.setattr("nsjax.plot.animation.NUMBERS", 20_000)
    cube = models.flexible_cube(elements=4)
    figure = nsjax.animate(cube, coasting(cube, rows=200)).figure
    assert 24 <= len(figure["frames"]) < 51
    assert figure["data"][1]["type"] == "mesh3d"
    assert figure["layout"]["scene"]["zaxis"]["title"]["text"] == "z (mm)"


def test_solids_are_coloured_by_their_stress() -> None:
    """Stretched along z: Cauchy's stresses of diag(1, 1, s) with Green's strain e are
    ``(lambda + 2 mu) e s`` and ``lambda e / s``; one scale of colours for all frames.
    """
    cube = models.flexible_cube(elements=2, young=1e5)
    figure = nsjax.animate(cube, coasting(stretched(cube, 10.0), step=1e-2)).figure
    s = np.array([1.0, 1.1, 1.2, 1.3])
    first, shear, e = 1e5 * 0.3 / (1.3 * 0.4), 1e5 / 2.6, 0.5 * (s * s - 1.0)
    expected = 1e-3 * ((first + 2.0 * shear) * e * s - first * e / s)  # kN/m^2
    assert [figure["data"][k]["name"] for k in figure["frames"][1]["traces"]] == ["brick", "edges"]
    for frame, stress in zip(figure["frames"], expected, strict=True):
        assert len(frame["data"][0]["intensity"]) == 26  # of 27 nodes, one is inside
        np.testing.assert_allclose(frame["data"][0]["intensity"], stress, atol=0.006)
    brick = figure["data"][trace(figure, "brick")]
    assert (brick["cmin"], brick["cmax"]) == (pytest.approx(0.0, abs=1e-9), pytest.approx(expected[-1]))
    assert brick["colorbar"]["title"]["text"] == "equivalent stress (kN/m^2)"


def test_colours_of_anything_but_a_mesh_are_refused() -> None:
    def coloured(t, q, p):
        dots = shapes.Shape(points=q[None], name="mass", kind="dots", values=q[:1])
        return shapes.Picture(shapes=(dots,))

    own = problem(shapes=coloured)
    with pytest.raises(InputError, match=r"'mass' is a dots of 1 points with values .*; a mesh alone has"):
        nsjax.animate(own, coasting(own))


def test_a_shape_of_two_contacts_is_drawn_once_and_rows_that_are_not_finite_never() -> None:
    ball = models.bouncing_ball()
    traj = coasting(ball, rows=10)
    traj.q[6:] = np.nan
    assert len(motion(ball, traj).t) == 6


def weight(t, q, v, p):
    return jnp.stack([0.0 * t, -p])


def dot(t, q, p):
    return shapes.Picture(shapes=(shapes.Shape(points=q[None], name="mass", kind="dots"),))


def wrong(t, q, p):
    return q


def problem(**functions):
    system = System(nq=2, nv=2, mass=unit_mass, force=weight, **functions)
    return Problem(system=system, params=np.array(1.0), state=State(t=0.0, q=np.ones(2), v=np.ones(2)))


def test_a_model_of_ones_own_is_drawn_and_one_without_shapes_is_refused() -> None:
    own = problem(shapes=dot)
    assert shown(nsjax.animate(own, coasting(own)).figure, 3, "mass").shape == (1, 2)
    bare = problem()
    with pytest.raises(InputError, match=r"has no shapes; give System\(shapes=...\)"):
        nsjax.animate(bare, coasting(bare))
    with pytest.raises(InputError, match=r"must return an nsjax\.shapes\.Picture"):
        nsjax.animate(problem(shapes=wrong), coasting(problem(shapes=wrong)))


def test_what_cannot_be_animated_is_refused(crank, tmp_path: pathlib.Path, monkeypatch) -> None:
    ball = models.bouncing_ball()
    with pytest.raises(InputError, match="not a run of this problem's system"):
        nsjax.animate(ball, crank)
    with pytest.raises(InputError, match="frames = 0"):
        nsjax.animate(CRANK, crank, frames=0)
    with pytest.raises(InputError, match=r"pages or films; end the name in .html, .gif or .mp4"):
        nsjax.animate(CRANK, crank, frames=2).save(tmp_path / "run.avi")
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(InputError, match="pip install"):
        nsjax.animate(CRANK, crank)


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_the_mechanism_moves_in_a_browser(animation, tmp_path: pathlib.Path) -> None:
    """Play and pause are clicked; the picture and the time beside the slider change in between."""
    page, folder = tmp_path / "run.html", tmp_path / "profile"
    animation.save(page)
    folder.mkdir()
    click = "document.querySelectorAll('.updatemenu-button')[{}].dispatchEvent(new MouseEvent('click'))"
    label = "return document.querySelector('.slider-label').textContent"
    with browser(folder) as window:
        window.open(page)
        before, at = window.screenshot(), window.run(label)
        window.run(click.format(0))
        window.wait(f"return (() => {{ {label} }})() !== '{at}'")
        window.run(click.format(1))
        time.sleep(0.5)
        after, then = window.screenshot(), window.run(label)
        time.sleep(0.5)
        assert window.run(label) == then  # paused
        assert window.console() == []
    assert at == "t = 0 ms"
    assert then != at
    assert before.startswith(b"\x89PNG")
    assert before != after
