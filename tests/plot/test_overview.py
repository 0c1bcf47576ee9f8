"""The overview figure: what it shows is what the run did, and matplotlib stays as it was."""

from __future__ import annotations

import dataclasses
import pathlib
import struct

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.image import imread

import nsjax
from nsjax import Problem, State, System, analysis, models, plot, schemes
from nsjax import multibody as mb
from nsjax.figures import new_figure
from nsjax.plot import animate_mode, panels, style
from nsjax.trajectory import ROWS
from tests.plot.coasting import coasting
from tests.points import unit_mass

CRANK = models.slider_crank()

HELD = {"upper": 6.55e-3, "lower": 31.4e-3}
"""Impulses of a corner [N s] while its wall holds the slider, from 9.146 to 15.029 ms and from 30.264 to
34.338 ms: half the integrals of `wall_force` along the event-driven motion of `tests.references`."""


@pytest.fixture(scope="module")
def crank():
    return nsjax.simulate(*CRANK, schemes.moreau(), dt=1e-5, steps=6000, every=5)


@pytest.fixture(scope="module")
def figure(crank):
    return plot.overview(CRANK, crank)


def titles(figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def panel(figure, word: str):
    return next(axes for axes in figure.axes if word in axes.get_title(loc="left"))


def line(axes, label: str) -> np.ndarray:
    return next(np.asarray(x.get_xydata()) for x in axes.lines if x.get_label() == label)


def legend(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.slow
def test_panels_of_the_slider_crank(figure) -> None:
    assert titles(figure) == [
        "(a) path within its limits", "(b) $y$ over time", "(c) angular velocities",
        "(d) energy: change from 7.496 J", "(e) normal forces, means over 0.15 ms",
        "(f) normal impulses of impacts",
    ]  # fmt: skip
    assert legend(panel(figure, "(c)")) == [r"$\omega_{1}$", r"$\omega_{2}$", r"$\omega_{3}$"]
    assert panel(figure, "(a)").get_xlabel() == "$x$ (mm)"
    assert panel(figure, "(f)").get_xlabel() == "time (ms)"


@pytest.mark.slow
def test_path_and_its_limits_are_in_millimetres(figure, crank) -> None:
    axes = panel(figure, "(a)")
    drawn = axes.lines[0].get_xydata()
    np.testing.assert_allclose(drawn, 1e3 * np.stack([crank["x"], crank["y"]], axis=1), rtol=1e-12)
    limits = [x.get_ydata() for x in axes.lines[2:]]
    assert [set(np.round(y, 9)) for y in limits] == [{-1.0}, {1.0}]
    bottom, top = axes.get_ylim()
    assert bottom < -1.0 < 1.0 < top  # what lies beyond is drawn, so that penetration can be seen


def test_impacts_carry_their_impulses(figure, crank) -> None:
    axes = panel(figure, "impulses")
    for k, name in enumerate(CRANK.system.labels.contacts):
        hit = crank.impacts[:, k] > 0
        assert hit.any()
        expected = 1e3 * np.stack([crank.t[hit], crank.impulse_normal[hit, k]], axis=1)  # ms, mN s
        drawn = line(axes, name)
        there = np.isin(drawn[:, 0].round(9), expected[:, 0].round(9))
        np.testing.assert_allclose(drawn[there], expected, rtol=1e-12)
    # partners of an impact at other rows are few: simultaneous corners hit together here
    assert len(drawn) == len(expected)


def test_contacts_that_act_together_look_different(figure) -> None:
    lines = [x for x in panel(figure, "impulses").lines if not x.get_label().startswith("_")]
    looks = {(x.get_color(), x.get_marker(), x.get_markersize(), x.get_markerfacecolor()) for x in lines}
    assert len(looks) == 4
    left, right = lines[0], lines[1]
    assert right.get_markersize() > left.get_markersize()
    assert right.get_markerfacecolor() == "none"


def test_forces_and_impulses_together_are_the_whole_impulse(figure, crank) -> None:
    """Nothing is lost or drawn twice between the two panels."""
    stairs = {p.get_label(): p for p in panel(figure, "normal forces").patches}
    for k, name in enumerate(CRANK.system.labels.contacts):
        values, edges, _ = stairs[name].get_data()
        persistent = np.nansum(values * np.diff(edges)) * 1e-3  # N ms
        impulses = line(panel(figure, "impulses"), name)[:, 1].sum() * 1e-3  # mN s
        # intervals with an impact are left out of a mean, whose neighbours then stand for them
        assert persistent + impulses == pytest.approx(crank.impulse_normal[:, k].sum(), rel=0.01)
        # both kinds are there: the accumulation of bounces ends early, so that some of it is held
        assert 0.98 * HELD[name.split()[0]] < persistent < 1.15 * HELD[name.split()[0]]
        assert impulses > 2.0 * persistent


def test_mean_keeps_impulse_and_leaves_out_what_is_not_a_number() -> None:
    t = np.linspace(0.0, 1.0, 1001)
    impulse = np.arange(1000.0)[:, None] * [1.0, 2.0]
    edges, force = panels._mean(t, impulse)
    assert len(force) <= 400
    np.testing.assert_allclose((force * np.diff(edges)[:, None]).sum(0), impulse.sum(0))
    constant = np.full((1000, 1), 3e-3)
    constant[1::3] = np.nan
    np.testing.assert_allclose(panels._mean(t, constant)[1], 3.0)
    assert np.isnan(panels._mean(t, np.full((1000, 1), np.nan))[1]).all()


def test_an_impact_that_reaches_another_contact_is_drawn_there_too(crank) -> None:
    """A closed corner takes part in the impact of its partner without an impact of its own."""
    impacts, impulse = np.zeros((4, 4), int), np.zeros((4, 4))
    impulse[1], impacts[1] = [50e-3, 40e-3, 0.1e-3, 0.0], [1, 0, 0, 0]
    impulse[2] = 1e-3
    traj = dataclasses.replace(crank, impacts=impacts, impulse_normal=impulse, t=np.arange(4.0))
    assert panels._hit(traj).tolist() == [[True, True, False, False], [False] * 4, [False] * 4]


def test_energy_panel_shows_changes_where_they_are_small(figure, crank) -> None:
    drawn = line(panel(figure, "energy"), "total")[:, 1]
    np.testing.assert_allclose(drawn, 1e3 * (crank["energy"] - crank["energy"][0]), atol=1e-9)
    ball = models.bouncing_ball()
    traj = nsjax.simulate(*ball, schemes.moreau(), dt=1e-3, steps=1000, every=10)
    figure = plot.overview(ball, traj)
    axes = panel(figure, "energy")
    assert axes.get_title(loc="left") == "(e) energy"
    assert panel(figure, "gaps").get_ylabel() == "gap (m)"
    np.testing.assert_allclose(line(axes, "total")[:, 1], traj["energy"], rtol=1e-12)


def test_panels_without_content_are_left_out(crank) -> None:
    bare = dataclasses.replace(crank, **{name: None for name in ROWS})
    assert [title[4:] for title in titles(plot.overview(CRANK, bare))] == [
        "path within its limits", "$y$ over time", "angular velocities", "energy: change from 7.496 J",
    ]  # fmt: skip


def test_lines_that_cover_each_other_are_told_apart(crank) -> None:
    v = np.stack([crank.v[:, 0], crank.v[:, 1], crank.v[:, 0]], axis=1)
    axes = panel(plot.overview(CRANK, dataclasses.replace(crank, v=v)), "velocities")
    dashed = {x.get_label(): x.is_dashed() for x in axes.lines}
    assert dashed == {r"$\omega_{1}$": False, r"$\omega_{2}$": False, r"$\omega_{3}$": True}


def test_what_never_moves_has_no_panel(crank) -> None:
    still = plot.overview(CRANK, dataclasses.replace(crank, v=np.zeros(crank.v.shape)))
    assert "velocities" not in " ".join(titles(still))


def test_only_the_busiest_of_many_contacts_are_drawn(crank) -> None:
    balls = models.bouncing_ball(balls=5, dimension=2)
    rows, (_, params, state) = 4, balls
    impulse = np.zeros((rows, 15))
    impulse[3] = np.arange(15.0)
    bare = dataclasses.replace(crank, **{name: None for name in ROWS})
    traj = dataclasses.replace(
        bare, system=balls.system, params=params, t=np.arange(4.0), v=np.zeros((rows, 15)),
        q=np.tile(state.q, (rows, 1)), gap=np.ones((rows, 15)), impulse_normal=impulse,
        impacts=(impulse > 0).astype(int),
    )  # fmt: skip
    axes = panel(plot.overview(balls, traj), "impulses")
    assert "(6 of 15)" in axes.get_title(loc="left")
    assert legend(axes) == list(balls.system.labels.contacts[9:])


def spring(t, q, v, p):
    return -p * q


def pin(t, q, p):
    return q[1:]


def test_a_system_without_labels_and_energy_is_drawn(tmp_path: pathlib.Path) -> None:
    problem = Problem(
        system=System(nq=2, nv=2, nb=1, mass=unit_mass, force=spring, constraint=pin),
        params=np.array(1.0),
        state=State(t=0.0, q=np.array([1.0, 0.0]), v=np.zeros(2)),
    )
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-2, steps=20)
    figure = plot.overview(problem, traj)
    assert [title[4:] for title in titles(figure)][:2] == ["positions", "velocities"]
    assert legend(panel(figure, "positions")) == ["$q_{1}$", "$q_{2}$"]
    assert legend(panel(figure, "energy")) == ["kinetic"]


def test_a_run_that_failed_is_drawn_without_warnings(crank, recwarn) -> None:
    q, v = crank.q.copy(), crank.v.copy()
    q[50:], v[50:] = np.nan, np.inf
    impulse = crank.impulse_normal.copy()
    impulse[50:] = np.nan
    figure = plot.overview(CRANK, dataclasses.replace(crank, q=q, v=v, impulse_normal=impulse))
    figure.canvas.draw()
    assert [str(w.message) for w in recwarn] == []


def test_a_figure_is_written_and_matplotlib_stays_as_it_was(tmp_path: pathlib.Path, crank) -> None:
    before = (dict(mpl.rcParams), mpl.get_backend())
    figure = plot.overview(CRANK, crank, tmp_path / "run.png")
    assert (dict(mpl.rcParams), mpl.get_backend()) == before
    header = (tmp_path / "run.png").read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    assert struct.unpack(">II", header[16:]) == tuple(int(200 * x) for x in figure.get_size_inches())
    assert figure.get_size_inches().tolist() == [7.0, 5.5]  # one column of a paper
    assert type(figure.canvas).__name__ == "FigureCanvasAgg"
    plot.overview(CRANK, crank).savefig(tmp_path / "later.png")  # the same picture without our settings
    assert np.array_equal(imread(tmp_path / "later.png"), imread(tmp_path / "run.png"))


def test_no_text_leaves_the_figure_and_no_panels_overlap(figure) -> None:
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    for box in boxes:
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= width + 1
        assert box.y1 <= height + 1
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert not (a.x0 < b.x1 and b.x0 < a.x1 and a.y0 < b.y1 and b.y0 < a.y1)
    for axes in figure.axes:
        if axes.get_legend() is not None:
            legend, title = axes.get_legend().get_window_extent(), axes._left_title.get_window_extent()
            assert not legend.overlaps(title), axes.get_title(loc="left")
            assert legend.y0 >= axes.get_window_extent().y1 - 1  # outside the data


def test_labels_in_print() -> None:
    printed = {
        "omega1": r"$\omega_{1}$", "phi": r"$\varphi$", "y": "$y$", "vx2": "$v_{x2}$", "qw": "$q_{w}$",
        "theta_3": r"$\theta_{3}$", "y_lower": "y lower", "table_velocity": "table velocity",
    }  # fmt: skip
    assert {name: style.math_label(name) for name in printed} == printed


def test_prefixes() -> None:
    for largest, unit, factor, name in (
        (0.2, "s", 1e3, "ms"), (3.0, "s", 1.0, "s"), (0.9999e-3, "m", 1e3, "mm"), (2e-8, "m", 1e9, "nm"),
        (4.2e4, "N", 1e-3, "kN"), (1e-30, "m", 1e9, "nm"), (1e-5, "rad", 1.0, "rad"), (0.0, "m", 1.0, "m"),
        (5e-3, "", 1.0, ""), (np.nan, "J", 1.0, "J"),
    ):  # fmt: skip
        assert style.scale([0.0, -largest], unit) == (pytest.approx(factor), name)


def test_beams_are_drawn_by_deflection_and_curvature() -> None:
    """A straight cantilever bent to an arc: the tip of the closed form, and one curvature in all elements;
    no quaternions.
    """
    arm = mb.beam("arm", (0, 0, 0), (1, 0, 0), elements=4, section=mb.circular(0.01, E=1e9, rho=1e3))
    problem = mb.assemble(arm, mb.fixed("wall", "ground", "arm.start"))
    run, curvature = coasting(problem, rows=2), 0.4
    angles = curvature * np.linspace(0.0, 1.0, 5)
    poses = np.zeros((5, 7))
    poses[:, 0], poses[:, 2] = np.sin(angles) / curvature, (np.cos(angles) - 1.0) / curvature
    poses[:, 3], poses[:, 5] = np.cos(angles / 2), np.sin(angles / 2)
    q = np.array(run.q)
    q[1, : poses.size] = poses.ravel()
    deflection, bending = panels.beams(dataclasses.replace(run, q=q))
    assert (deflection.title[:11], bending.title) == ("deflections", "curvatures")
    axes = new_figure().subplots()
    bending.draw(axes)
    np.testing.assert_allclose([x.get_ydata() for x in axes.lines], [[0.0, curvature]] * 4, atol=1e-12)
    axes = new_figure().subplots()
    deflection.draw(axes)
    tip = next(x.get_ydata() for x in axes.lines if x.get_label().startswith("arm.4.z"))
    np.testing.assert_allclose(tip, [0.0, 1e3 * (np.cos(curvature) - 1.0) / curvature], atol=1e-9)


def test_a_mode_moves_as_its_shape() -> None:
    """Two carts between walls: side by side in the first mode, against each other in the second."""
    problem = mb.assemble(
        mb.body("one", mass=1.0), mb.slide("left", "ground", "one"),
        mb.body("two", mass=1.0), mb.slide("right", "ground", "two", at=(1.0, 0.0)),
        mb.joint_spring("k1", "left", stiffness=10.0), mb.joint_spring("k2", "right", stiffness=10.0),
        mb.spring("between", "one", "two", stiffness=20.0, length=1.0),
    )  # fmt: skip
    modes = analysis.modes(problem)
    for number, sign in ((0, 1.0), (1, -1.0)):
        found = animate_mode(problem, modes, number)
        ways = {}
        for trace in found.scene.traces:
            if trace.role == "body" and trace.kind == "area":
                places = np.stack([trace.at(row).mean(axis=0)[0] for row in range(48)])
                ways[trace.name] = places - places[12]  # a quarter of the period: rest
        np.testing.assert_allclose(ways["two"], sign * ways["one"], atol=1e-9)
        wide = np.max(np.abs(ways["one"]))
        np.testing.assert_allclose(
            ways["one"], ways["one"][0] * np.cos(2 * np.pi * np.arange(48) / 48), atol=1e-9
        )
        assert 0.05 < wide / np.linalg.norm(found.scene.high - found.scene.low) < 0.15
