"""Springs, motors and loads of a run by name, and energies by their source."""

import numpy as np
import pytest

import nsjax
from nsjax import multibody as mb
from nsjax import schemes


@pytest.fixture(scope="module")
def run():
    problem = mb.assemble(
        mb.body("cart", mass=2.0), mb.body("rod", mass=1.0, inertia=0.1, com=0.4),
        mb.slide("rail", "ground", "cart"), mb.hinge("pin", "cart", "rod"),
        mb.spring("coil", ("ground", (-1.0, 0.0)), ("rod", 0.8), stiffness=20.0, length=0.5, damping=0.3),
        mb.joint_spring("torsion", "pin", stiffness=2.0, rest=0.2),
        mb.actuator("motor", "rail", law=lambda t, x, rate, own: own["k"] * (0.3 - x), own={"k": 5.0}),
        mb.force("push", ("rod", (0.8, 0.0)), (0.0, 1.0), follower=True), mb.torque("twist", "rod", 0.4),
        gravity=9.81, start={"rail": (0.1, 0.5), "rod": (0.7, -1.0)},
    )  # fmt: skip
    return nsjax.simulate(*problem, schemes.half_explicit(), dt=1e-3, steps=400)


def test_powers_are_the_change_of_energies(run) -> None:
    """Kinetic energy changes by the work of loads and weight: to the square of the step."""
    power = sum(run.load(x).power for x in ("coil", "torsion", "motor", "push", "twist"))
    weight = -np.diff(sum(run.body(x).potential for x in ("cart", "rod")))
    work = 0.5 * (power[1:] + power[:-1]) * 1e-3 + weight
    assert np.max(np.abs(np.diff(run["kinetic"]) - work)) < 1e-6 * np.max(run["kinetic"])
    assert np.ptp(run["kinetic"]) > 1.0


def test_forces_and_moments(run) -> None:
    rod, coil = run.body("rod"), run.load("coil")
    turn = np.stack([np.cos(rod.rotation), np.sin(rod.rotation)], axis=1)
    apart = rod.position + 0.8 * turn - np.array([-1.0, 0.0])
    length = np.linalg.norm(apart, axis=1)
    tip = rod.velocity + 0.8 * rod.spin[:, None] * np.stack([-turn[:, 1], turn[:, 0]], axis=1)
    pull = 20.0 * (length - 0.5) + 0.3 * np.sum(apart * tip, axis=1) / length
    np.testing.assert_allclose(coil.force, -(pull / length)[:, None] * apart, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run.load("torsion").torque, -2.0 * (rod.rotation - 0.2), rtol=1e-12)
    np.testing.assert_allclose(
        run.load("motor").force[:, 0], 5.0 * (0.3 - run["rail.position"]), rtol=1e-12
    )
    across = np.stack([-turn[:, 1], turn[:, 0]], axis=1)
    np.testing.assert_allclose(run.load("push").force, across, atol=1e-12)
    np.testing.assert_allclose(run.load("twist").torque, 0.4)


def test_efforts_are_one_number(run) -> None:
    """Of a motor and a torsion spring on their coordinates; of a spring apart, against its tension."""
    pin, coil = run.joint("pin"), run.load("coil")
    np.testing.assert_allclose(run.load("motor").effort, run.load("motor").force[:, 0], rtol=1e-12)
    np.testing.assert_allclose(run.load("torsion").effort, -2.0 * (pin.position - 0.2), rtol=1e-12)
    np.testing.assert_allclose(np.abs(coil.effort), np.linalg.norm(coil.force, axis=1), rtol=1e-12)
    apart = run.body("rod").position + np.array([1.0, 0.0])
    assert (np.sign(coil.effort) == np.sign(np.sum(coil.force * apart, axis=1))).mean() > 0.9
    assert not np.any(run.load("push").effort)
    np.testing.assert_array_equal(run["motor.effort"], run.load("motor").effort)
    assert [run.unit(f"{x}.effort") for x in ("motor", "torsion", "coil")] == ["N", "N m", "N"]
    assert (run.unit("pin.position"), run.unit("rail.rate")) == ("rad", "m/s")


def test_columns_are_what_a_run_answers_to(run) -> None:
    assert set(run.keys()) == set(run.columns) == set(run._ipython_key_completions_())
    for name in run.columns:
        if not name.startswith("rod.acceleration"):
            assert len(run[name]) == len(run.t), name
    assert "pin.force" in run
    assert "pin.farce" not in run


def test_tables_hold_reactions_and_powers(run, tmp_path) -> None:
    xarray, pandas = pytest.importorskip("xarray"), pytest.importorskip("pandas")
    data = run.to_xarray()
    table = run.to_pandas("rod.velocity", mb.sensor("tip", "velocity", "rod", at=(0.8, 0.0)))
    assert isinstance(data, xarray.Dataset)
    assert data["pin.force"].dims == ("time", "axis")
    np.testing.assert_array_equal(data["pin.force"].sel(axis="y"), run.joint("pin").force[:, 1])
    assert data["motor.power"].attrs == {"units": "W"}
    np.testing.assert_array_equal(table["coil.power"], run.load("coil").power)
    tip = run.sensor(mb.sensor("tip", "velocity", "rod", at=(0.8, 0.0)))
    np.testing.assert_array_equal(table["tip[x]"], tip[:, 0])
    units = table.attrs["units"]
    assert (units["tip[x]"], units["rod.velocity[y]"], units["pin.torque"]) == ("m/s", "m/s", "N m")
    run.to_csv(tmp_path / "run.csv", "rod.velocity")
    read = pandas.read_csv(tmp_path / "run.csv")
    np.testing.assert_array_equal(read["time [s]"], run.t)
    np.testing.assert_array_equal(read["pin.force[x] [N]"], run.joint("pin").force[:, 0])
    np.testing.assert_array_equal(read["rod.velocity[y] [m/s]"], run.body("rod").velocity[:, 1])


def test_unknown_names(run) -> None:
    with pytest.raises(KeyError, match=r"no load 'coils'; did you mean 'coil'"):
        run.load("coils")


def test_the_effort_of_a_thruster_is_what_it_is_given() -> None:
    """A propeller with a reaction moment, and a motor of two bodies that is a pure moment."""
    problem = mb.assemble(
        mb.body("hull", mass=1.0, inertia=0.2), mb.body("wheel", mass=0.1, inertia=0.1),
        mb.hinge("axle", "hull", "wheel", at=0.2),
        mb.thruster("jet", "hull", 3.0, axis=(0.6, 0.8), moment=0.1),
        mb.thruster("spin", "hull", -2.0, moment=0.5, against="wheel"),
    )  # fmt: skip
    run = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=3)
    np.testing.assert_allclose(run["jet.effort"], 3.0, rtol=1e-12)
    np.testing.assert_allclose(run["spin.effort"], -2.0, rtol=1e-12)
