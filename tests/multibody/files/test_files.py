"""Model files of others: accelerations against the package `mujoco`, names, and what is told."""

from __future__ import annotations

import pathlib
import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from nsjax.core.operators import prepared
from nsjax.multibody import LeftOutWarning, assemble, read_mjcf, read_urdf

mujoco = pytest.importorskip("mujoco", reason="the package mujoco is not installed")

MODELS = pathlib.Path(__file__).parent / "models"


def read(name: str, **given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        return (read_urdf if name.endswith("urdf") else read_mjcf)(MODELS / name, **given)


def here(model: Any, q: np.ndarray) -> np.ndarray:
    """MuJoCo's positions in the coordinates used here: balls are turned against the parent's axes."""
    found = q.copy()
    for k in np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_BALL):
        own = slice(model.jnt_qposadr[k], model.jnt_qposadr[k] + 4)
        above = model.body(model.jnt_bodyid[k])
        chain = [above.quat]
        while model.body_mass[above.parentid[0]] == 0.0 and above.parentid[0] > 0:
            above = model.body(above.parentid[0])
            chain.append(above.quat)
        for row in found:
            for quaternion in chain:
                product = np.zeros(4)
                mujoco.mju_mulQuat(product, quaternion, row[own])
                row[own] = product
    return found


WELDED = """<mujoco><compiler angle="radian"/><worldbody>
<body name="hinge" pos="0.1 0 0"><joint name="hinge" axis="0 0 1"/><inertial pos="0 0 0" mass="1"
  diaginertia="1 1 1"/>
  <body name="tool tip" pos="0.2 0.1 0.3" euler="0.3 0.1 0"><geom type="mesh" mesh="m" mass="0"/></body>
</body>
<body name="2nd" pos="0.3 0.4 0.5" euler="0.5 -0.3 1"><freejoint/><inertial pos="0 0 0.1" mass="2"
  diaginertia="0.1 0.1 0.1"/><geom name="big" type="box" size="0.1 0.2 0.3" euler="0.3 0.2 0.1" condim="4"
  solref="0.01 1"/></body>
<geom name="floor" type="plane" size="1 1 1" pos="0 0 -1" euler="0.1 0 0" friction="0.4"/></worldbody>
<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
<equality><weld name="glue" body1="tool tip" body2="2nd"/><joint joint1="hinge" polycoef="0 1 0 0 0"/>
</equality>
<sensor><jointpos joint="hinge"/></sensor></mujoco>"""


def test_names_welds_and_what_is_left_out() -> None:
    """A weld through a body without mass is closed in the reference position; everything else is told."""
    with pytest.warns(LeftOutWarning, match="softness of contact") as told:
        file = read_mjcf(WELDED, restitution=0.3)
    assert str(told[0].message).count(";") + 1 >= len(file.left_out)
    names = {part.name: part.kind for part in file}
    assert names == {
        "hinge": "body",
        "hinge_joint": "hinge",
        "_2nd": "body",
        "glue": "fixed",
        "equality1": "coupling",
        "floor_big": "contact",
        "floor_tool_tip_mesh": "contact",
        "tool_tip_mesh_big": "contact",
    }
    assert file.names["body", "2nd"] == "_2nd"
    assert [(x.kind, x.of) for x in file.sensors.values()] == [("coordinate", ("hinge_joint",))]
    for words in ("which are part of 'hinge' here: 'tool tip'", "softness of contact"):
        assert sum(words in x for x in file.left_out) == 1, words
    with pytest.warns(LeftOutWarning):
        round_one = read_mjcf(
            WELDED.replace('type="box" size="0.1 0.2 0.3"', 'type="ellipsoid" size="0.1 0.2 0.3"')
        )
    assert sum("contact of ellipsoid and mesh is not known" in x for x in round_one.left_out) == 1
    model, glue = mujoco.MjModel.from_xml_string(WELDED), next(x for x in file if x.name == "glue")
    pose = mujoco.MjData(model)
    mujoco.mj_forward(model, pose)
    one, other = pose.body("hinge"), pose.body("2nd")
    turns = [x.xmat.reshape(3, 3) for x in (one, other)]
    apart = one.xpos + turns[0] @ glue.numbers.at - other.xpos - turns[1] @ glue.numbers.on
    assert np.max(np.abs(apart)) <= 1e-15
    assert np.allclose(
        turns[0] @ Rotation.from_rotvec(glue.numbers.turned).as_matrix(), turns[1], atol=1e-15
    )
    apart_from = ("glue", "equality1", "floor_tool_tip_mesh", "tool_tip_mesh_big")
    bare = [part for part in file if part.name not in apart_from]
    problem = assemble(*bare, gravity=file.gravity, start=file.start)
    system, p = problem.system, prepared(problem.system, problem.params)
    assert problem.params["floor_big"].friction == 1.0  # the larger one of both
    assert problem.params["floor_big"].restitution == 0.3
    assert problem.params["floor_big"].torsional == 0.005
    assert problem.params["floor_big"].rolling is None
    with pytest.warns(LeftOutWarning):
        few = read_mjcf(WELDED, capacity=4)
    assert next(x for x in few if x.name == "floor_big").numbers.torsional == 0.005
    size = np.array([0.1, 0.2, 0.3])
    corners = np.array(np.meshgrid(*[(-1, 1)] * 3, indexing="ij")).reshape(3, -1).T * size
    world = pose.geom("big").xpos + corners @ pose.geom("big").xmat.reshape(3, 3).T
    normal = pose.geom("floor").xmat.reshape(3, 3)[:, 2]
    wanted = np.sort((world - pose.geom("floor").xpos) @ normal)
    assert np.allclose(np.sort(system.gap(0.0, jnp.asarray(problem.state.q), p)), wanted, atol=1e-12)


def test_parents_do_not_meet_and_exclusions_hold() -> None:
    file = read("quadruped.xml", friction=0.2)
    met = [part.name for part in file if part.kind == "contact"]
    assert "floor_foot_fl" in met
    assert "foot_fr_foot_hl" not in met
    assert "foot_fl_foot_fr" in met
    assert file[0].name == "trunk"
    assert all(part.numbers.friction == 0.2 for part in file if part.kind == "contact")


def test_elbow_of_the_tosses(reference_data: pathlib.Path) -> None:
    with pytest.warns(LeftOutWarning, match="drake:mu_static"):
        file = read_urdf(reference_data / "elbow_toss" / "elbow.urdf", free=True)
    problem = assemble(*file, gravity=file.gravity, start=file.start)
    assert problem.system.nv == 7
    assert problem.params["elbow_2"].mass == 0.37
    with pytest.warns(LeftOutWarning, match="root link 'elbow_1' is held"):
        held = read_urdf(reference_data / "elbow_toss" / "elbow.urdf")
    assert assemble(*held, gravity=held.gravity).system.nv == 1


LINKS = (
    '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous"><parent link="a"/>'
)
