"""What newcomers meet first: columns of parts, words of records, and kinds of values that do not fit."""

from __future__ import annotations

import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, Recording, models, plot, schemes, transforms
from nsjax import multibody as mb

MOREAU = schemes.moreau()
PENDULUM = mb.assemble(
    mb.body("rod", mass=1.0, inertia=0.1, com=0.5), mb.hinge("pin", "ground", "rod"),
    mb.contact("floor", mb.sphere("rod", 0.1, at=1.0), mb.plane(at=(0.0, -2.0))), gravity=9.81,
)  # fmt: skip
RUN = nsjax.simulate(*PENDULUM, MOREAU, dt=1e-3, steps=50)
BALL = models.bouncing_ball()
TIMES = np.linspace(0.1, 0.5, 5)


def test_columns_of_parts_are_sensors() -> None:
    """The force on the pin is that of `Trajectory.joint`; an unknown quantity is answered with both."""
    np.testing.assert_array_equal(RUN["pin.force"], RUN.joint("pin").force)
    assert RUN.unit("pin.force") == "N"
    with pytest.raises(KeyError, match=r"no quantity 'pin.forec'; did you mean 'pin.force'"):
        RUN["pin.forec"]


@pytest.mark.slow
def test_plots_of_vectors_have_their_components() -> None:
    pytest.importorskip("matplotlib")
    (axes,) = RUN.plot("pin.force", "floor.force").axes
    words = [x.get_text() for x in axes.get_legend().get_texts()]
    assert len(words) == len(axes.get_lines()) == 3  # x and y of the pin, the normal force on the floor
    crate = mb.assemble(
        mb.body("crate", mass=1.0, inertia=0.1), mb.contact("feet", mb.box("crate", 0.1, 0.1), mb.plane()),
        gravity=9.81, start={"crate": (0.0, 0.1, 0.0)},
    )  # fmt: skip
    run = nsjax.simulate(*crate, MOREAU, dt=1e-3, steps=2)
    words = [x.get_text() for x in run.plot("feet.forces").axes[0].get_legend().get_texts()]
    assert words == [f"feet.{k}.force.n" for k in range(4)]
    solid = mb.assemble(mb.body("crate", mass=1.0, inertia=(1.0, 1.0, 1.0)), gravity=9.81)
    run = nsjax.simulate(*solid, MOREAU, dt=1e-3, steps=2)
    with pytest.raises(InputError, match=r"plot: crate.rotation has \(3, 3\) numbers a row"):
        plot.named(run, ["crate.rotation"])


def test_contacts_are_listed_once() -> None:
    with pytest.raises(KeyError, match=r"no contact 'flor'; did you mean 'floor'\? Known: floor\W*$"):
        RUN.contact("flor")


def test_words_of_records_are_short() -> None:
    seen = Recording(times=TIMES, values={"y": TIMES}, noise=1e-3, name="drop")
    assert repr(seen) == "Recording('drop', y, 5 times from 0.1 to 0.5 s, 5 values)"
    step = nsjax.stepper(BALL, MOREAU, 1e-3, inputs=["mass"], outputs=["y"], substeps=2)
    assert repr(step) == "Stepper(bouncing_ball, moreau, inputs: mass, outputs: y, substeps: 2)"


def test_a_file_prints_its_names_by_kind() -> None:
    text = (
        "<mujoco><worldbody><body name='a'><joint name='j'/><geom size='0.1'/></body></worldbody></mujoco>"
    )
    words = str(mb.read_mjcf(text)).splitlines()
    assert ["body", "a"] in [line.split() for line in words]
    assert ["hinge", "j"] in [line.split() for line in words]


def test_parts_on_joints_print_them() -> None:
    """As they are written: the joint is the second argument."""
    assert repr(mb.joint_spring("s", "pin", stiffness=1.0)) == "joint_spring('s', 'pin', stiffness=1.0)"
    assert repr(mb.actuator("motor", "pin", 2.0)).startswith("actuator('motor', 'pin', ")
    assert repr(mb.gear("pair", "pin", "elbow", ratio=2.0)).startswith("gear('pair', 'pin', 'elbow', ")


def _fit(**given: Any) -> Any:
    seen = Recording(times=TIMES, values={"y": 1.0 - 4.9 * TIMES**2}, noise=1e-3)
    train: Any = {"gravity": transforms.positive()}
    return nsjax.identify(BALL, MOREAU, seen, **{"train": train, "dt": 1e-2, **given})


def _lanes(reduce: Any) -> Any:
    return nsjax.sweep(BALL, MOREAU, {"params.mass": [1.0, 2.0]}, dt=1e-3, steps=2, reduce=reduce)


def _pile(**given: Any) -> Any:
    places = given.pop("positions", [(0.0, 0.0, 0.1), (1.0, 0.0, 0.1)])
    return mb.spheres(given.pop("radius", 0.1), 1.0, places, **given)


def test_a_wall_may_be_an_array() -> None:
    made = _pile(walls=[(np.array([0.0, 0.0, 1.0]), jnp.asarray(0.0))])
    assert made.params.level.tolist() == [0.0]


def test_angles_that_look_like_degrees_are_asked_about() -> None:
    parts = [mb.body("rod", mass=1.0, inertia=0.1, com=0.5), mb.hinge("pin", "ground", "rod")]
    with pytest.warns(
        UserWarning, match=r"'rod' is 90 rad, 14.3 turns; for degrees, give np.radians\(90\)"
    ):
        problem = mb.assemble(*parts, gravity=9.81, start={"rod": 90.0})
    assert float(problem.state.q[0]) == 90.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mb.assemble(*parts, gravity=9.81, start={"rod": (6.0, 90.0)})
        lift = [mb.body("car", mass=1.0), mb.slide("shaft", "ground", "car", axis=(0.0, 1.0))]
        mb.assemble(*lift, gravity=9.81, start={"shaft": 90.0})
