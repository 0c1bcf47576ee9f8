"""Animations: the page is whole, says what was run, and what it shows is what the run did."""

from __future__ import annotations

import base64
import html
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time
import zlib

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nsjax
from nsjax import InputError, Problem, State, System, models, schemes, shapes
from nsjax import multibody as mb
from nsjax.motion import motion
from nsjax.plot.film import FilmAxes
from nsjax.plot.scene import PACE, DrawnRun, DrawnShape, reference_force
from tests.plot.browser import browser, missing
from tests.plot.coasting import coasting, stretched
from tests.points import unit_mass

CRANK = models.slider_crank()
PLAYER = pathlib.Path(__file__).with_name("player.js")


@pytest.fixture(scope="module")
def crank():
    return coasting(CRANK, rows=41, step=2e-4, push=2e-3)


@pytest.fixture(scope="module")
def animation(crank):
    return nsjax.animate(CRANK, crank, frames=21)


def trace(scene: DrawnRun, name: str) -> DrawnShape:
    return next(x for x in scene.traces if x.name == name)


def told(page: str) -> tuple[dict, np.ndarray]:
    """Header and shares that a page carries."""
    raw = zlib.decompress(base64.b64decode(re.search(r'atob\("([^"]+)"\)', page)[1]))
    length = int.from_bytes(raw[:4], "little")
    return json.loads(raw[4 : 4 + length]), np.frombuffer(raw[4 + length :], "<i2")


def on_page(page: str, frame: int, name: str) -> np.ndarray:
    """Coordinates of a trace in a frame, as the page computes them."""
    head, store = told(page)
    found = next(x for x in head["traces"] if x["name"] == name)
    own = unpacked(store, found["points"])
    points = own[frame % len(own)]
    if "pose" not in found:
        return points
    poses = unpacked(store, found["pose"])[:, 0].reshape(-1, len(head["low"]), len(head["low"]) + 1)
    pose = poses[frame % len(poses)]
    return points @ pose[:, :-1].T + pose[:, -1]


def unpacked(store: np.ndarray, told: list) -> np.ndarray:
    """Numbers (rows, n, k) from their shares."""
    place, *size, low, high = told
    changes = store[place : place + int(np.prod(size))].reshape(-1, size[0])
    shares = np.cumsum(changes, axis=1, dtype="<i2").T.reshape(size)
    span = np.where(np.greater(high, low), np.subtract(high, low), 1.0)
    return np.where(shares == -32768, np.nan, low + (shares + 32767.0) / 65534.0 * span)


def test_frames_show_the_rows(animation, crank) -> None:
    page = animation.to_html()
    assert len(animation.scene.times) == 21
    for frame, row in ((0, 0), (10, 20), (20, 40)):
        theta = crank.q[row, 0]
        pin = 153.0 * np.array([np.cos(theta), np.sin(theta)])  # millimetres
        np.testing.assert_allclose(on_page(page, frame, "crank"), [[0.0, 0.0], pin], atol=0.01)
        np.testing.assert_allclose(trace(animation.scene, "crank").at(frame), [[0.0, 0.0], pin], atol=1e-9)
    assert [animation.scene.times[k] for k in (0, 10, 20)] == ["0 ms", "4 ms", "8 ms"]


def test_what_stands_still_is_written_once(animation) -> None:
    head, store = told(animation.to_html())
    rows = {x["name"]: x["points"][1] for x in head["traces"]}
    moving = {name for name, many in rows.items() if many > 1}
    assert moving == {"crank", "rod", "slider", "joints", "contact forces"}
    assert rows.keys() - moving == {"lower wall", "upper wall"}
    others = [x for x in head["traces"] if x["name"] != "lower wall"]  # with shares of the upper one
    assert len(store) == sum(2 * x["points"][2] * (21 if x["name"] in moving else 1) for x in others)


def test_arrows_end_at_corners_and_are_as_long_as_forces(animation, crank) -> None:
    """2 mN s between rows 0.2 ms apart: 10 N at every corner, the reference of all arrows."""
    seen = motion(CRANK, crank, frames=21)
    assert reference_force(seen) == pytest.approx(10.0)
    page = animation.to_html()
    points = on_page(page, 10, "contact forces").reshape(4, 6, 2)
    np.testing.assert_allclose(points[:, 1], 1e3 * seen.places[10], atol=0.01)
    lengths = np.linalg.norm(points[:, 1] - points[:, 0], axis=1)
    np.testing.assert_allclose(lengths, 1e3 * 0.125 * seen.size, rtol=1e-3)
    assert (points[:2, 1, 1] < points[:2, 0, 1]).all()  # the upper wall pushes down
    assert np.isnan(on_page(page, 0, "contact forces")).all()
    assert "10 N" in animation.scene.words


def test_the_title_says_what_was_run_and_axes_have_units(animation) -> None:
    scene = animation.scene
    assert "slider crank: moreau, dt = 0.0002 s, t = 0 to 0.008 s" in scene.title
    assert "21 of 41 rows" in scene.words
    assert f"{20 * PACE * 1e-3 / 8e-3:.3g} times slower" in scene.words
    assert scene.axes == ("x (mm)", "y (mm)")


def test_the_page_needs_nothing_else_and_is_small(animation, tmp_path: pathlib.Path) -> None:
    animation.save(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count("</html>") == 1
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=", page)
    assert "://" not in page
    assert len(page) < 30_000


def test_a_cell_of_a_notebook_holds_the_page_packed(animation) -> None:
    """Whole, with its player: each cell plays alone. It has two thirds of the weight of the page."""
    cell, page = animation._repr_html_(), animation.to_html()
    (inner,) = re.findall(r'<iframe srcdoc="([^"]*)"', cell)
    packed = re.search(r'atob\("([^"]+)"\)', html.unescape(inner))[1]
    assert zlib.decompress(base64.b64decode(packed)).decode() == page
    assert len(cell) < 0.8 * len(page)


@pytest.mark.skipif(shutil.which("node") is None, reason="node not found")
@pytest.mark.parametrize("seed", [0, 1])
def test_the_player_and_the_film_paint_the_same(seed: int, tmp_path: pathlib.Path) -> None:
    """Projection, sorting by depth and motion stand twice, for browsers and for films: the triangles of two
    meshes that move, drawn at random, have the same corners in the same order.
    """
    tri = pytest.importorskip("matplotlib.collections")
    draw, rows, wide, high = np.random.default_rng(seed), 5, 800, 600
    turns = Rotation.random(rows, draw).as_matrix()
    poses = np.concatenate([turns, draw.normal(size=(rows, 3, 1))], axis=2)
    mesh = "body", "mesh", "body", "#123456", "#123456", 1.0
    faces = np.arange(30).reshape(10, 3)
    meshes = (
        DrawnShape(*mesh, draw.normal(size=(1, 30, 3)), faces, pose=poses),
        DrawnShape(*mesh, draw.normal(size=(rows, 30, 3)), faces),
    )
    ends = -3.0 * np.ones(3), 3.0 * np.ones(3)
    drawn = DrawnRun("", "", tuple(map(str, range(rows))), ("x", "y", "z"), *ends, meshes)
    page = tmp_path / "run.html"
    page.write_text(drawn.page(), encoding="utf-8")
    for row in (0, 3):
        words = ["node", str(PLAYER), str(page), str(row), str(wide), str(high)]
        said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        paths = [x for x in json.loads(said) if len(x) == 3]
        painted = np.array(paths[::2])  # each is filled, and then stroked
        film = FilmAxes(drawn)
        film.show(row)
        (triangles,) = [x for x in film.drawn if isinstance(x, tri.TriMesh)]
        flat = triangles._triangulation
        known = np.stack([flat.x, flat.y], axis=1)[flat.triangles]
        size = 0.95 * min(wide, high)
        np.testing.assert_allclose(painted[..., 0], wide / 2 + size * known[..., 0], atol=0.1)
        np.testing.assert_allclose(painted[..., 1], high / 2 - size * known[..., 1], atol=0.1)


def test_pages_stay_small_where_pictures_are_large(monkeypatch) -> None:
    """Four numbers at each of 98 nodes of the surface, three at the 40 of the edges and their breaks."""
    monkeypatch.setattr("nsjax.plot.animation.NUMBERS", 20_000)
    cube = models.flexible_cube(elements=4)
    scene = nsjax.animate(cube, coasting(cube, rows=200)).scene
    assert 24 <= len(scene.times) < 51
    assert scene.traces[1].kind == "mesh"
    assert scene.axes[2] == "z (mm)"


def test_solids_are_coloured_by_their_stress() -> None:
    """Stretched along z: Cauchy's stresses of diag(1, 1, s) with Green's strain e are
    ``(lambda + 2 mu) e s`` and ``lambda e / s``; one scale of colours for all frames.
    """
    cube = models.flexible_cube(elements=2, young=1e5)
    scene = nsjax.animate(cube, coasting(stretched(cube, 10.0), step=1e-2)).scene
    s = np.array([1.0, 1.1, 1.2, 1.3])
    first, shear, e = 1e5 * 0.3 / (1.3 * 0.4), 1e5 / 2.6, 0.5 * (s * s - 1.0)
    expected = 1e-3 * ((first + 2.0 * shear) * e * s - first * e / s)  # kN/m^2
    assert [x.name for x in scene.traces if len(x.points) > 1] == ["brick", "edges"]
    brick = trace(scene, "brick")
    assert brick.values.shape == (4, 26)  # of 27 nodes, one is inside
    np.testing.assert_allclose(brick.values, np.repeat(expected[:, None], 26, axis=1), atol=1e-6)
    assert brick.ends == (pytest.approx(0.0, abs=1e-9), pytest.approx(expected[-1]))
    assert brick.title == "equivalent stress (kN/m^2)"
    head, store = told(scene.page())
    values = next(x["values"] for x in head["traces"] if x["name"] == "brick")
    shown = unpacked(store, values)[..., 0]
    np.testing.assert_allclose(shown, np.repeat(expected[:, None], 26, axis=1), atol=1e-4 * expected[-1])


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
    assert trace(nsjax.animate(own, coasting(own)).scene, "mass").at(3).shape == (1, 2)
    bare = problem()
    with pytest.raises(InputError, match=r"has no shapes; give System\(shapes=...\)"):
        nsjax.animate(bare, coasting(bare))
    with pytest.raises(InputError, match=r"must return an nsjax\.shapes\.Picture"):
        nsjax.animate(problem(shapes=wrong), coasting(problem(shapes=wrong)))


def test_a_run_with_inputs_is_one_of_the_problem() -> None:
    """A weight on a rail is pushed by a table: 2 N for 0.1 s move 1 kg by 10 mm."""
    rail = mb.assemble(
        mb.body("m", mass=1.0), mb.slide("rail", "ground", "m"), mb.actuator("push", "rail", 0.0)
    )
    push = nsjax.signal([0.0, 1.0], [2.0, 2.0])
    run = nsjax.simulate(*rail, schemes.moreau(), dt=1e-3, steps=100, inputs={"push": push})
    drawn = nsjax.animate(rail, run, frames=2).scene
    body = trace(drawn, "m")
    unit = {"x (m)": 1.0, "x (mm)": 1e3}[drawn.axes[0]]
    gone = np.nanmax(body.at(1)[:, 0]) - np.nanmax(body.at(0)[:, 0])
    assert gone == pytest.approx(0.01 * unit, rel=0.01)
    assert nsjax.plot.overview(rail, run).axes
    with pytest.raises(InputError, match="not a run of this problem's system"):
        nsjax.animate(CRANK, run)


def test_what_cannot_be_animated_is_refused(crank, tmp_path: pathlib.Path, monkeypatch) -> None:
    ball = models.bouncing_ball()
    with pytest.raises(InputError, match="not a run of this problem's system"):
        nsjax.animate(ball, crank)
    with pytest.raises(InputError, match="frames = 0"):
        nsjax.animate(CRANK, crank, frames=0)
    with pytest.raises(InputError, match=r"pages or films; end the name in .html, .gif or .mp4"):
        nsjax.animate(CRANK, crank, frames=2).save(tmp_path / "run.avi")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match="pip install"):
        nsjax.animate(CRANK, crank, frames=2).save(tmp_path / "run.gif")


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("spatial", [False, True])
def test_the_mechanism_moves_in_a_browser(spatial: bool, animation, tmp_path: pathlib.Path) -> None:
    """Play and pause are clicked; the picture and the time beside the slider change in between. A click on
    the crank's pin leaves its trace, the mouse turns a solid.
    """
    page, folder = tmp_path / "run.html", tmp_path / "profile"
    cube = models.flexible_cube(elements=1)
    (nsjax.animate(cube, coasting(cube, rows=20)) if spatial else animation).save(page)
    folder.mkdir()
    click = "document.getElementById('play').click()"
    label = "return document.getElementById('time').textContent"
    drag = """const c = document.querySelector('canvas');
        c.setPointerCapture = () => {};
        const at = x => ({clientX: x, clientY: 300, pointerId: 1});
        const act = (kind, x) => c.dispatchEvent(new PointerEvent(kind, at(x)));
        act('pointerdown', 300); act('pointermove', 380); act('pointerup', 380);"""
    with browser(folder) as window:
        window.open(page)
        before, at = window.screenshot(), window.run(label)
        window.run(click)
        window.wait(f"return (() => {{ {label} }})() !== '{at}'")
        window.run(click)
        time.sleep(0.5)
        after, then = window.screenshot(), window.run(label)
        time.sleep(0.5)
        assert window.run(label) == then  # paused
        window.run(drag)
        assert window.screenshot() != after
        assert window.console() == []
    assert at == "t = 0 ms"
    assert then != at
    assert before.startswith(b"\x89PNG")
    assert before != after


def test_a_rigid_body_is_on_the_page_once_with_its_poses() -> None:
    """A box that turns: the points of the page are its corners turned by the angle of the run."""
    problem = mb.assemble(
        mb.body("arm", mass=1.0, inertia=(0.1, 0.1, 0.1), shape=mb.box("arm", 0.3, 0.1, 0.05, at=0.2)),
        mb.hinge("pin", "ground", "arm", axis=(0.0, 0.0, 1.0)), start={"pin": (0.3, 2.0)},
    )  # fmt: skip
    traj = nsjax.simulate(*problem, nsjax.schemes.moreau(), dt=0.01, steps=40)
    page = nsjax.animate(problem, traj, frames=41).to_html()
    head, _ = told(page)
    arm = next(x for x in head["traces"] if x["name"] == "arm")
    assert arm["points"][1] == 1
    local = np.array(list(itertools.product((-0.1, 0.5), (-0.1, 0.1), (-0.05, 0.05))))
    for frame in (0, 17, 40):
        c, s = np.cos(traj.q[frame, 0]), np.sin(traj.q[frame, 0])
        turned = local @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]).T
        scale = 1e3 if "mm" in head["axes"][0] else 1.0
        np.testing.assert_allclose(on_page(page, frame, "arm"), scale * turned, atol=2e-4 * scale)
