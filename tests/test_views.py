"""Runs in words, figures and tables; records in one line."""

from __future__ import annotations

import dataclasses
import functools
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, models, multibody, schemes
from nsjax.cli.inputs import RunPlan
from nsjax.cli.report import summary
from nsjax.report import contact_lines, with_unit
from nsjax.sensors import find
from nsjax.types import short

BALLS = models.bouncing_ball(balls=2, dimension=2)


@functools.cache
def run():
    return nsjax.simulate(*BALLS, schemes.moreau(), dt=1e-3, steps=500, every=5)


@pytest.mark.slow
def test_a_run_is_printed_as_the_command_line_reports_it() -> None:
    traj = run()
    told = str(traj).splitlines()
    plan = RunPlan(BALLS, schemes.moreau(), 1e-3, 500, 5)
    reported = summary(plan, traj, 1.0, 1.0).splitlines()
    assert set(reported) & set(told) >= {
        x for x in told if x.startswith(("model", "scheme", "contact", "ball"))
    }
    assert "status           all steps went well" in told
    assert len(str(traj)) < 1000
    assert len(repr(traj)) < 100
    assert repr(traj) == "Trajectory(bouncing_ball, 101 rows, t = 0 to 0.5 s, status 0)"
    shown = traj._repr_html_()
    assert f"<pre>{traj}</pre>" in shown
    assert f"{len(traj.columns)} columns" in shown
    assert "data:image/png;base64," in shown
    assert len(shown) < 100_000


@pytest.mark.slow
def test_a_run_that_failed_prints_its_first_step_and_a_remedy() -> None:
    with pytest.warns(UserWarning, match="largest stable step"):
        traj = nsjax.simulate(*models.mass_spring_chain(), schemes.moreau(), dt=3e-3, time=0.9)
    lines = str(traj).splitlines()
    remedy = lines[-1]
    (step,) = [line for line in lines if line.startswith("first  ")]
    assert step.startswith(f"first            step {int(traj.first_failure.step)}, t = ")
    assert remedy.startswith("remedy           take a smaller dt")
    (energy,) = [line for line in lines if line.startswith("energy")]
    last = float(traj.t[np.isfinite(traj["energy"])][-1])
    good = int(np.isfinite(traj.q).all(axis=1).sum())
    assert any(line.startswith(f"finite rows      {good} of {len(traj.t)}, the last at") for line in lines)
    assert energy.endswith(f"at t = {last:g} s, not finite after it")


@pytest.mark.slow
def test_penetrations_before_a_failure_are_printed() -> None:
    """The gaps of a run are not finite from some row on, and the contact is closed in others."""
    traj = run()
    gap, q = np.array(traj.gap_min), np.array(traj.q)
    gap[-3:], q[-3:] = np.nan, np.nan
    assert float(np.nanmin(gap)) == float(np.min(traj.gap_min)) < -1e-3
    failed = dataclasses.replace(traj, gap_min=gap, q=q)
    assert contact_lines(failed) == contact_lines(traj)


@pytest.mark.slow
def test_the_change_of_energy_is_given_beside_the_largest_kinetic_energy() -> None:
    """A ball of 2 kg falls 0.2 m and loses three quarters, from any height above the zero of potential."""
    for height in (0.0, 50.0):
        parts = [
            multibody.body("ball", mass=2.0, inertia=0.1),
            multibody.contact(
                "floor", multibody.point("ball"), multibody.plane(at=(0.0, height)), restitution=0.5
            ),
        ]
        start = {"ball": (0.0, height + 0.2, 0.0)}
        traj = nsjax.simulate(
            *multibody.assemble(*parts, gravity=10.0, start=start), schemes.moreau(), dt=1e-4, steps=2500
        )
        (line,) = [x for x in str(traj).splitlines() if x.startswith("energy")]
        found = re.search(r"difference (\S+) J \(largest kinetic energy (\S+) J\)", line)
        assert found is not None
        # the instant of the impact is known to a step, in which the ball falls 0.2 mm
        np.testing.assert_allclose([float(x) for x in found.groups()], [-3.0, 4.0], rtol=2e-3)


def test_runs_of_any_kind_can_be_printed() -> None:
    bare = nsjax.simulate(*BALLS, schemes.moreau(), dt=1e-3, steps=50, save=[])
    assert "contact" not in str(bare)
    assert "energy  " in str(bare)
    batch = jax.tree.map(lambda x: np.stack([x, x]), run())
    assert str(batch) == repr(batch) == "Trajectory(bouncing_ball, batch (2,), 101 rows each)"
    seen = []

    @jax.jit
    def traced(g):
        traj = nsjax.simulate(
            *BALLS.replace(gravity=g), schemes.moreau(), dt=1e-3, steps=5, gradient="discrete"
        )
        seen.append(str(traj))
        return traj.q

    jax.eval_shape(traced, jnp.ones(()))
    assert "q=traced float64(6, 6)" in seen[0]


def test_records_are_short() -> None:
    problem = models.slider_crank()
    for thing in (problem, problem.system, run().carry, schemes.bathe()):
        assert len(repr(thing)) < 1000
        assert "\n" not in repr(thing)
    assert repr(problem.system) == "System('slider_crank', nq=3, nv=3, nc=4, nt=1)"
    assert "restitution=0.4" in repr(problem)
    shown = problem._repr_html_()
    assert "<tr><th>restitution</th><td>0.4</td></tr>" in shown
    assert "<tr><th>state.q</th><td>[0.0, 0.0, 0.0]</td></tr>" in shown
    assert "data:image/png;base64," in shown
    assert len(shown) < 100_000
    scheme = schemes.generalized_alpha()
    assert repr(scheme).startswith("generalized_alpha(rho_inf=0.8, consistent_initial_acceleration=True")
    assert len(repr(schemes.localized(schemes.moreau()))) < 200
    assert short((1,)) == "(1,)"
    assert short(list(range(9))) == "[0, 1, 2, 3, 4, 5, ... 3 more]"
    assert short(np.zeros((7, 1))) == "float64(7, 1)"


def test_a_figure_of_what_is_named() -> None:
    figure = run().plot("y1", "vy1", "y2", "energy")
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "$y_{1}$, $y_{2}$ (m)",
        "$v_{y1}$ (m/s)",
        "energy (J)",
    ]
    first, second = figure.axes[0].lines
    np.testing.assert_allclose(first.get_ydata(), run()["y1"])
    np.testing.assert_allclose(second.get_ydata(), run()["y2"])
    assert figure._repr_png_().startswith(b"\x89PNG")  # what a notebook shows
    beside = run().plot("ball 1 on table.force", "y1").axes[0]
    assert beside.get_ylabel() == "force (N)"
    whole = run().plot()
    assert whole.axes[0].get_title(loc="left") == "(a) positions"
    assert len(run().plot(*["y1"] * 9).axes[0].lines) == 9
    with pytest.raises(KeyError, match="did you mean 'y1'"):
        run().plot("y11")
    (portrait,) = run().plot("vy1", "vy2", x="y1").axes
    assert portrait.get_xlabel() == "$y_{1}$ (m)"
    drawn = [x for x in portrait.get_lines() if len(x.get_xdata()) > 1]
    np.testing.assert_allclose([x.get_xdata() for x in drawn], 2 * [run()["y1"]])
    np.testing.assert_allclose(drawn[1].get_ydata(), run()["vy2"])
    with pytest.raises(InputError, match="x = 'y1' without quantities over it; name them"):
        run().plot(x="y1")
    with pytest.raises(InputError, match=r"x = 'ball 1 on table.force' has \(2,\) numbers a row; name one"):
        run().plot("y1", x="ball 1 on table.force")
    with pytest.raises(InputError, match=r"pass one run, not a batch"):
        jax.tree.map(lambda x: np.stack([x, x]), run()).plot("y1")


def test_tables_of_other_packages() -> None:
    xarray, pandas = pytest.importorskip("xarray"), pytest.importorskip("pandas")
    traj = run()
    data = traj.to_xarray()
    assert isinstance(data, xarray.Dataset)
    assert data["y1"].attrs["units"] == "m"
    assert data["gap"].dims == ("time", "contact")
    assert data["force_tangential"].dims == ("time", "contact", "tangent")
    np.testing.assert_array_equal(data["gap"].sel(contact="ball 2 on table"), traj.gap[:, 1])
    np.testing.assert_array_equal(data["energy"], traj["energy"])
    assert data.attrs == {"model": "bouncing_ball", "scheme": "moreau", "status": 0}
    table = traj.to_pandas()
    assert isinstance(table, pandas.DataFrame)
    np.testing.assert_array_equal(table.index, traj.t)
    np.testing.assert_array_equal(table["gap[ball 2 on table]"], traj.gap[:, 1])
    np.testing.assert_array_equal(table["vy2"], traj["vy2"])
    with pytest.raises(InputError, match="take one run of the batch"):
        jax.tree.map(lambda x: np.stack([x, x]), traj).to_pandas()


@pytest.mark.parametrize("package", ["xarray", "pandas"])
def test_packages_that_are_missing_are_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"to_{package} needs {package}; install it with: pip install"):
        getattr(run(), f"to_{package}")()


def test_a_sweep_is_printed() -> None:
    ball = models.bouncing_ball(height=0.1)
    found = nsjax.sweep(
        ball, schemes.moreau(), {"params.restitution": [0.2, 1.5, 0.8]},
        reduce={"y": nsjax.reductions.final("y")}, dt=1e-3, steps=10, every=10,
    )  # fmt: skip
    lines = str(found).splitlines()
    assert lines[:2] == ["model     bouncing_ball", "lanes     3 over params.restitution; 1 failed"]
    assert lines[2].startswith("y         (3,) from 0.1")
    assert found._repr_html_() == f"<pre>{found}</pre>"


def test_zero_has_no_sign() -> None:
    assert with_unit(-0.0, "m") == with_unit(0.0, "m") == "0 m"
    assert with_unit(-1e-3, "m") == "-1 mm"


@pytest.mark.slow
def test_penetrations_of_stops_are_angles() -> None:
    """A rod between a stop of its hinge and a slide's; the report does not compare radians with metres."""
    parts = [
        multibody.body("rod", mass=1.0, inertia=0.1, com=(0.5, 0.0)),
        multibody.body("block", mass=1.0, inertia=0.1),
        multibody.hinge("A", "ground", "rod", limits=(-1.0, 0.5), restitution=0.5),
        multibody.slide("B", "ground", "block", axis=(0.0, 1.0), limits=(-0.1, 1.0)),
    ]
    traj = nsjax.simulate(
        *multibody.assemble(*parts, gravity=(0.0, -9.81)), schemes.moreau(), dt=1e-3, steps=600
    )
    lines = str(traj).splitlines()
    table = {line.split()[0]: line.split()[-1] for line in lines if line[:2] in ("A.", "B.")}
    assert table["A.lower"] == "rad"
    assert table["B.lower"].endswith("m")
    deepest = [line for line in lines if line.startswith("penetration")]
    assert [line.partition("(")[2] for line in deepest] == ["A.lower)", "B.lower)"]
    assert f"{-traj.gap_min[:, 0].min():.5g} rad" in deepest[0]


@pytest.mark.parametrize(
    ("depth", "shown"), [(8e-16, "none"), (1e-15, "1e-06 nm at most"), (1e-20, "none")]
)
def test_penetrations_are_shown_from_the_rounding_of_the_coordinates_on(depth: float, shown: str) -> None:
    """The ball falls from 1 m: 4 units of rounding are 8.9e-16 m."""
    traj = nsjax.simulate(*models.bouncing_ball(), schemes.moreau(), dt=1e-3, steps=2)
    traj = dataclasses.replace(traj, gap_min=np.full_like(traj.gap_min, -depth))
    lines = str(traj).splitlines()
    (line,) = [x for x in lines if x.startswith("penetration  ")]
    assert line.split(maxsplit=1)[1].startswith(shown)


def test_components_have_names() -> None:
    """Those of vectors and of contacts; coordinates of beams by the names of their ends; units."""
    mb = multibody
    problem = mb.assemble(
        mb.body("ball", mass=1.0, inertia=0.1), mb.hinge("pin", "ground", "ball"),
        mb.contact("stop", mb.sphere("ball", 0.1, at=0.5), mb.plane(at=(0.0, -1.0)), friction=0.1),
        gravity=9.81,
    )  # fmt: skip
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=3)
    np.testing.assert_array_equal(traj["pin.force.y"], traj["pin.force"][:, 1])
    np.testing.assert_array_equal(traj["stop.force.t1"], traj.contact("stop").force[:, 1])
    assert traj.unit("pin.force.y") == "N"
    assert "pin.force.y" in traj
    assert "pin.force.n" not in traj
    rubber = mb.circular(0.02, E=1e7, rho=1e3)
    beam = mb.assemble(mb.beam("arm", (0, 0, 0), (1, 0, 0), elements=1, section=rubber)).system
    assert find(beam, "arm.end.z") is find(beam, "arm.1.z")
    assert find(beam, "arm.end.z").unit == "m"


def test_the_energy_names_springs_that_it_leaves_out() -> None:
    """A law alone does not say what it stores; with its potential the energy stays."""
    for given, words in (({}, "without that of coil"), ({"potential": lambda e, own: 5.0 * e * e}, "")):
        problem = multibody.assemble(
            multibody.body("cart", mass=1.0), multibody.slide("rail", "ground", "cart"),
            multibody.joint_spring("coil", "rail", law=lambda e, rate, own: 10.0 * e, **given),
            start={"cart": 0.3},
        )  # fmt: skip
        traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=100)
        assert words in str(traj)
        assert ("potential=" in str(traj)) == bool(words)
        assert (np.ptp(traj["energy"]) < 1e-4) == (not words)


def test_a_problem_is_printed_as_its_numbers() -> None:
    lines = str(models.bouncing_ball()).splitlines()
    assert lines[0].startswith("System('bouncing_ball'")
    assert any(re.fullmatch(r"restitution +\S+", x) for x in lines)
    assert any(x.startswith("state.q ") for x in lines)
    large = multibody.assemble(*(multibody.body(f"b{k}", mass=1.0, inertia=1.0) for k in range(70)))
    lines = str(large).splitlines()
    assert len(lines) < 70
    assert lines[-1].startswith("state.v ")
