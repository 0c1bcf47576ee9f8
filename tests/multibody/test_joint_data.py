"""One body on one joint or spring against the runs of a commercial code, 5 s each."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import nsjax
from nsjax import schemes
from tests.design import slow_but
from tests.multibody.joint_cases import ARM, CASES, POINT

STEP = 1e-3
FINER = {"Distance_Case02": 1e-4, "RevSpherical_Case02": 1e-4}
"""Blows of 2700 N between calm ways: the step is a tenth."""


Point = tuple[float, float, float]


def matrices(quaternions: np.ndarray) -> np.ndarray:
    """Rotation matrices (rows, 3, 3)."""
    w, x, y, z = (quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)).T
    return np.moveaxis(
        np.array([
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]), -1, 0,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(reference_data: pathlib.Path) -> pathlib.Path:
    if not (reference_data / "joints").is_dir():
        pytest.skip(f"no joints in {reference_data}; set NSJAX_DATA to the folder above them")
    return reference_data / "joints"


@pytest.mark.parametrize("name", slow_but(CASES, "Prismatic_Case03"))
def test_motion(name: str, folder: pathlib.Path) -> None:
    """Positions, velocities, attitudes and angular velocities at all 501 instants, within 1e-3 of their
    range, or of 1 where nothing moves.
    """
    dt = FINER.get(name, STEP)
    steps = round(5.0 / dt)
    traj = nsjax.simulate(
        *CASES[name](), schemes.generalized_alpha(rho_inf=0.8), dt=dt, steps=steps, every=steps // 500
    )
    traj.raise_for_status()
    rows = traj.body("bob")
    with np.load(folder / f"{name}.npz") as data:
        wanted = {
            "position": data["Pos"][:, 1:], "velocity": data["Vel"][:, 1:],
            "rotation": matrices(data["Quat"][:, 1:]), "spin": data["Avel"][:, 1:],
        }  # fmt: skip
    off = {}
    for what, there in wanted.items():
        size = max(np.ptp(there, axis=0).max(), 1.0)
        off[what] = float(np.max(np.abs(np.asarray(getattr(rows, what)) - there)) / size)
    assert max(off.values()) <= 1e-3, off
    if name in REACTIONS:
        assert max(reactions(traj, folder / f"{name}.npz", *REACTIONS[name])) <= 1e-3


ORIGIN = (0.0, 0.0, 0.0)
REACTIONS: dict[str, tuple[str, tuple[float, float, float], tuple[float, float, float], str]] = {
    "Revolute_Case02": ("Rforce", POINT, ARM, "j"), "Spherical_Case02": ("Rforce", POINT, ARM, "j"),
    "Cylindrical_Case03": ("Rforce", POINT, ARM, "j"), "Prismatic_Case03": ("Rforce", POINT, ARM, "j"),
    "Universal_Case02": ("Rforce", ORIGIN, (0.0, 0.0, 2.0), "j"),
    "Distance_Case02": ("Rforce", POINT, (2.0, 0.0, 0.0), "j"),
    "RevSpherical_Case02": ("Rforce_Body1", POINT, (0.0, -2.0, 0.0), "j"),
    "RotSpring_Case02": ("Rforce", ORIGIN, ARM, "jk"), "TranSpring_Case02": ("Rforce", ORIGIN, None, "k"),
    "TranSpringCB_Case02": ("Rforce", ORIGIN, None, "k"),
    "TranSpringCB_Case04": ("Rforce", ORIGIN, None, "k"),
    "LinActuator_Case01": ("RforceA", ORIGIN, ORIGIN, "j"),
}  # fmt: skip
"""Reactions: their name, the joint's point in the ground and in the body (None for springs, which pull
along their line), and who carries them: the joint ``j``, the spring ``k``, or both.
"""


def reactions(
    traj: nsjax.Trajectory, file: pathlib.Path, name: str, point: Point, on: Point | None, who: str
) -> tuple[float, float]:
    """Largest errors of force and moment on the ground at the joint's point in the ground, of their
    range.
    """
    rows, pose = [traj.joint(x) if x == "j" else traj.load(x) for x in who], traj.body("bob")
    own = sum(x.force for x in rows), sum(x.torque for x in rows)
    with np.load(file) as data:
        force, moment = data[name][:, 1:], data[name.replace("force", "torque")][:, 1:]
    if name == "RforceA":  # the actuator's, on the body; the joint itself carries nothing
        force = -force
    if on is None:
        arm = np.zeros(3)
    else:
        arm = pose.position + np.sum(np.asarray(pose.rotation) * np.array(on), axis=2) - np.array(point)
    found = -(own[1] + np.cross(arm, own[0]))
    errors = [np.max(np.abs(a - b)) / max(np.ptp(b), 1.0) for a, b in ((-own[0], force), (found, moment))]
    return float(errors[0]), float(errors[1])
