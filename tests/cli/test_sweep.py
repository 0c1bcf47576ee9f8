"""``nsjax sweep``: axes, what is run, printed, written and refused."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import nsjax
from nsjax import cli, models, schemes
from nsjax.cli import sweep
from nsjax.cli.sweep import read_axis
from tests.plot.faults import faults

# 0.5 s: as many impacts as steps resolve, in one program for all tests with these axes
BALL = ["sweep", "bouncing-ball", "--set", "height=0.05", "--set", "radius=0.0", "--time", "0.5"]
AXES = ["restitution=0.3:0.9:4", "gravity=5,9.81"]


@pytest.mark.parametrize(
    ("entry", "name", "values"),
    [
        ("restitution=0.1:0.9:5", "restitution", [0.1, 0.3, 0.5, 0.7, 0.9]),
        ("table-amplitude=1e-3", "table_amplitude", [1e-3]),
        ("scheme.rho_inf=0,0.5", "scheme.rho_inf", [0.0, 0.5]),
        ("dt=1e-5:1e-3:3:log", "dt", [1e-5, 1e-4, 1e-3]),
        ("state.v[0] = 1:-1:2", "state.v[0]", [1.0, -1.0]),
    ],
)
def test_axes(entry: str, name: str, values: list[float]) -> None:
    found = read_axis(entry)
    assert found[0] == name
    np.testing.assert_allclose(found[1], values, rtol=1e-15)


@pytest.mark.slow
def test_a_map_is_summed_up_and_saved(capsys) -> None:
    assert cli.main([*BALL, *AXES, "--output", "map.npz", "--plot", "map.svg"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert {p.name for p in pathlib.Path().iterdir()} == {"map.npz", "map.svg"}
    assert pathlib.Path("map.svg").read_text().startswith("<?xml")
    with np.load("map.npz") as file:
        found = dict(file)
    np.testing.assert_allclose(found["over.restitution"], [0.3, 0.5, 0.7, 0.9])
    assert found["values.impacts"].shape == (4, 2, 1)
    losses = np.zeros((4, 2))
    for i, e in enumerate(found["over.restitution"]):
        for k, g in enumerate((5.0, 9.81)):
            ball = models.bouncing_ball(height=0.05, radius=0.0, restitution=e, gravity=g)
            traj = nsjax.simulate(*ball, schemes.moreau(), dt=1e-3, steps=500, every=500)
            losses[i, k] = traj["energy"][0] - traj["energy"][-1]
            # the same operations in another program
            np.testing.assert_allclose(found["values.y"][i, k], traj["y"][-1], rtol=1e-10, atol=1e-14)
            assert found["values.impacts"][i, k, 0] == traj.impacts.sum()
    words = [line.split() for line in out.splitlines()]
    assert ["lanes", "4", "x", "2", "=", "8"] in words
    row = next(line for line in words if line[:1] == ["energy_loss"])
    shown = [f"{x:.5g}" for x in (losses.min(), losses.mean(), losses.max())]
    np.testing.assert_allclose([float(x) for x in row[1:4]], [float(x) for x in shown], rtol=2e-5)
    assert row[4] == "J"
    assert out.splitlines()[-2:] == ["wrote            map.npz", "wrote            map.svg"]


def test_failed_lanes_are_told_and_left_out(capsys) -> None:
    axes = ["restitution=0.5,1.5", "gravity=5,9.81"]
    assert cli.main([*BALL, *axes, "--quiet", "--output", "map.nc"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("must lie in [0, 1]") == 2
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset("map.nc", engine="h5netcdf") as data:
        assert data["status"].dims == ("restitution", "gravity")
        assert np.isnan(data["values.y"].sel(restitution=1.5)).all()
        assert np.isfinite(data["values.y"].sel(restitution=0.5)).all()
    assert cli.main([*BALL, "restitution=1.5,1.6", "gravity=5,9.81"]) == 1
    assert "all lanes failed; lane 0 (" in capsys.readouterr().err


@pytest.mark.slow
def test_chaos_runs_along_if_it_is_asked_for(capsys) -> None:
    argv = [*BALL, "--set", "restitution=0.9", "gravity=5:9.81:3", "--quantity", "lyapunov"]
    assert cli.main([*argv, "--output", "map.npz", "--plot", "map.png"]) == 0
    assert "lyapunov" in capsys.readouterr().out
    ball = models.bouncing_ball(height=0.05, radius=0.0, restitution=0.9)
    over = {"params.gravity": np.linspace(5, 9.81, 3)}
    expected = nsjax.sweep_lyapunov(ball, schemes.moreau(), over, dt=1e-3, time=0.5)
    with np.load("map.npz") as file:
        np.testing.assert_allclose(file["values.lyapunov"], expected, rtol=1e-9)
    assert pathlib.Path("map.png").stat().st_size > 5_000


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["restitution"], "write it as NAME=FIRST:LAST:COUNT"),
        (["restitution=0:1"], "write it as NAME=FIRST:LAST:COUNT"),
        (["restitution=-1:1:3:log"], "write it as NAME=FIRST:LAST:COUNT"),
        (["=1,2"], "write it as NAME=FIRST:LAST:COUNT"),
        (["restitution=0:1:1.5"], "write it as NAME=FIRST:LAST:COUNT"),
        (["restitution=0:1:1e12"], "1000000000000 values would take 7.45e+03 GiB"),
        (["restitution=0:1:1e6", "gravity=1:2:1e6"], "1000000000000 lanes would take 5.96e+04 GiB"),
        (["restitution=a,b"], "write it as NAME=FIRST:LAST:COUNT"),
        (["restitutoin=0,1"], "did you mean 'restitution'"),
        (["balls=1,2"], "changes the system itself; give it by --set"),
        (
            ["gravity=1,2", "gravity=3,4"],
            "--axis gravity: an axis is given twice; write all its values in one",
        ),
        (["gravity=1,2", "mass=1,2,3", "--zip"], "--zip: the axes have 2, 3 values"),
        (["dt=1e-3,1e-4", "--dt", "1e-3"], "dt is an axis; leave --dt out"),
        (["gravity=1,2", "--quantity", "impact"], "did you mean 'impacts'"),
        (["gravity=1,2", "--output", "map.mat"], "results are saved as npz or nc"),
        (["gravity=1,2", "--output", "no/map.npz"], "no"),
        (["gravity=1,2", "mass=1,2", "radius=0,0.1", "--plot", "map.png"], "one or two axes, not 3"),
        (["gravity=1,2", "--output", "a.npz", "--plot", "./a.npz"], "npz"),
        (["gravity=1,2", "--devices", "0"], "--devices 0"),
        (["dt=1e-3,1e-2", "--quantity", "lyapunov"], "different numbers of steps"),
    ],
)
def test_refusals(capsys, argv: list[str], words: str) -> None:
    assert cli.main([*BALL, *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("nsjax: ")
    assert err.count("\n") == 1
    assert words in err
    assert list(pathlib.Path().iterdir()) == []


def test_a_map_has_its_axes_and_units() -> None:
    values = np.array([[1e-3, 2e-3, np.nan], [4e-3, 5e-3, 6e-3]])
    axes = {"restitution": np.array([0.1, 0.9]), "dt": np.array([1e-5, 1e-4, 1e-3])}
    figure = sweep.draw(axes, values, "energy_loss", "J", "ball, moreau", {"dt": "s"})
    assert list(faults(figure)) == []
    assert figure.axes[0].get_title() == "ball, moreau"
    assert figure.axes[0].get_xlabel() == "dt (s)"
    ax, bar = figure.axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert ax.get_ylabel() == "restitution"
    assert "mJ" in bar.get_ylabel()
    drawn = ax.collections[0].get_array()
    np.testing.assert_allclose(np.ma.filled(drawn, np.nan).reshape(2, 3), 1e3 * values)
    curve = sweep.draw({"dt": axes["dt"]}, values[1], "energy_loss", "J").axes[0]
    np.testing.assert_allclose(curve.lines[0].get_ydata(), 1e3 * values[1])
