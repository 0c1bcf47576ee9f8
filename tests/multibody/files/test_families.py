"""Model files by seed against the package `mujoco`: accelerations with equalities held rigidly, efforts of
actuators, rates of activations and sensors, at random states.
"""

from __future__ import annotations

import pathlib

import pytest

from nsjax.multibody import LeftOutWarning, read_mjcf, read_urdf
from tests.design import slow_but
from tests.multibody.files.families import Family, robot
from tests.multibody.files.oracle import compared

SLOW = pytest.mark.slow
STATES = 10
FILES = 5


def checked(worst: dict[str, float]) -> None:
    """Accelerations to 1e-8 of their size, all else to 1e-10."""
    for what, error in worst.items():
        assert error < (1e-8 if "acc" in what else 1e-10), (what, error)


@pytest.mark.parametrize("seed", [3, *(pytest.param(k, marks=SLOW) for k in range(2 * FILES) if k != 3)])
def test_files(seed: int) -> None:
    """Nested defaults, all joints, springs, tendons, servos, couplings; every other one closes a loop."""
    checked(compared(Family(seed, loops=seed % 2 == 1).text, STATES, seed, 0.3))


def test_a_bound_of_several_actuators_together_is_said_to_be_left_out() -> None:
    """The one thing in which a file of the family differs: in seeds 17, 32 and 39 the bound is reached. The
    oracle leaves it out, too.
    """
    with pytest.warns(
        LeftOutWarning, match="bound of the sum of all actuators is left out: 'jb00', 'jb10'"
    ):
        read_mjcf(Family(17, loops=True).text, contact=False)


MODELS = pathlib.Path(__file__).parent / "models"
QUICK = "double_pendulum.xml", "gyroscope.xml"


@pytest.mark.parametrize("name", slow_but(sorted(x.name for x in MODELS.iterdir()), *QUICK))
def test_models(name: str) -> None:
    """Those of the folder: an arm, a double pendulum, a ball below a turned body, a robot."""
    reader = read_urdf if name.endswith("urdf") else read_mjcf
    checked(compared(str(MODELS / name), STATES, 1, 0.4, reader))


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=SLOW) for k in range(1, FILES))])
def test_robots(seed: int) -> None:
    """URDF with <mimic>."""
    checked(compared(robot(seed), STATES, seed, 0.3, read_urdf))
