"""Model files of others: accelerations against the package `mujoco`, names, and what is told."""

from __future__ import annotations

import pathlib
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from nsjax.core.operators import prepared
from nsjax.multibody import LeftOutWarning, assemble, read_mjcf, read_urdf
from nsjax.multibody.start import RedundantConstraintsWarning

mujoco = pytest.importorskip("mujoco", reason="the package mujoco is not installed")

MODELS = pathlib.Path(__file__).parent / "models"
STATES = 100
CONTROLS = {"double_pendulum.xml": (0.7, -0.5, 1.3), "gyroscope.xml": (2.0,)}


def read(name: str, **given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        return (read_urdf if name.endswith("urdf") else read_mjcf)(MODELS / name, **given)


def smooth_model(name: str) -> Any:
    """MuJoCo's model without everything that is soft or set-valued here."""
    spec = mujoco.MjSpec.from_file(str(MODELS / name))
    spec.compiler.fusestatic = False
    model = spec.compile()
    for flag in ("CONTACT", "LIMIT", "FRICTIONLOSS", "EQUALITY"):
        model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
    return model


def random_states(model: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q, v = rng.normal(size=(STATES, model.nq)), rng.normal(size=(STATES, model.nv))
    for row in q:
        mujoco.mj_normalizeQuat(model, row)
    return q, v


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


def forces_and_masses(problem: Any, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    system = problem.system
    p = prepared(system, jax.tree.map(lambda x: jnp.asarray(x, float), problem.params))
    both = jax.jit(jax.vmap(lambda q, v: (system.force(jnp.zeros(()), q, v, p), system.mass(q, p))))
    force, mass = both(jnp.asarray(q), jnp.asarray(v))
    return np.asarray(force), np.asarray(mass)


@pytest.mark.parametrize(
    "name",
    [
        "double_pendulum.xml",
        "gyroscope.xml",
        pytest.param("arm.urdf", marks=pytest.mark.slow),
        pytest.param("quadruped.xml", marks=pytest.mark.slow),
    ],
)
def test_accelerations(name: str) -> None:
    """To 1e-9 of their size at 100 random states, the same coordinates in the same order."""
    model, file = smooth_model(name), read(name, contact=False)
    problem, data = assemble(*file, gravity=file.gravity, start=file.start), mujoco.MjData(model)
    controls = CONTROLS.get(name, ())
    names = [part.name for part in file if part.kind == "actuator"]
    assert len(names) == len(controls)
    problem = problem.replace({f"{n}.own.control": u for n, u in zip(names, controls, strict=True)})
    q, v = random_states(model, 1)
    force, mass = forces_and_masses(problem, here(model, q), v)
    for k in range(STATES):
        data.qpos[:], data.qvel[:], data.ctrl[:] = q[k], v[k], controls
        mujoco.mj_forward(model, data)
        found = np.linalg.solve(mass[k], force[k])
        assert np.max(np.abs(found - data.qacc)) <= 1e-9 * np.max(np.abs(data.qacc))
    assert np.allclose(problem.state.q, here(model, model.qpos0[None])[0], atol=1e-15)


def closed(crank: float, up: float) -> tuple[float, float]:
    """Angles of the joints of coupler and rocker at an angle of the crank, from the law of cosines."""
    pin = 0.1 * np.array([np.cos(crank), np.sin(crank)])
    apart = np.array([0.4, 0.0]) - pin
    length = np.hypot(*apart)
    lean = up * np.arccos((0.4**2 + length**2 - 0.3**2) / (2.0 * 0.4 * length))
    coupler = np.arctan2(apart[1], apart[0]) + lean
    tip = pin + 0.4 * np.array([np.cos(coupler), np.sin(coupler)])
    return coupler - crank, np.arctan2(tip[1], tip[0] - 0.4)


def test_four_bar() -> None:
    """Accelerations of a loop closed by connect, projected from MuJoCo's mass matrix, bias and Jacobian."""
    model, rng = smooth_model("four_bar.xml"), np.random.default_rng(2)
    data, file = mujoco.MjData(model), read("four_bar.xml", contact=False)
    with pytest.warns(RedundantConstraintsWarning):  # the third row of a connect in one plane
        problem = assemble(*file, gravity=file.gravity, guess={"bearing": 0.5, "pivot": 1.0})
    system, rows = problem.system, [0, 2]
    assert system.nb == 2
    q = np.array([[a, *closed(a, 1.0 if k % 2 else -1.0)] for k, a in enumerate(rng.uniform(0, 6, STATES))])
    p = prepared(system, jax.tree.map(lambda x: jnp.asarray(x, float), problem.params))

    def rates(q: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
        zero = jnp.zeros(())
        gap, along = jax.jvp(lambda q: system.constraint(zero, q, p), (q,), (v,))
        drift = jax.jvp(
            lambda q: jax.jvp(lambda x: system.constraint(zero, x, p), (q,), (v,))[1], (q,), (v,)
        )[1]
        return gap, jax.jacfwd(lambda q: system.constraint(zero, q, p))(q), drift, along

    directions, v, wanted = [], [], []
    for row in q:
        data.qpos[:] = row
        mujoco.mj_forward(model, data)
        directions.append(connect_rows(model, data)[rows])
        v.append(np.linalg.svd(directions[-1])[2][2] * rng.normal() * 3.0)
        wanted.append(projected(model, data, row, v[-1], rows))
    force, mass = forces_and_masses(problem, q, np.array(v))
    gaps, found, drift, along = jax.jit(jax.vmap(rates))(jnp.asarray(q), jnp.asarray(v))
    assert np.max(np.abs(gaps)) <= 1e-14
    assert np.max(np.abs(along)) <= 1e-14
    for k in range(STATES):
        a = solved(mass[k], force[k], np.asarray(found[k]), -np.asarray(drift[k]))
        assert np.max(np.abs(a - wanted[k])) <= 1e-9 * np.max(np.abs(wanted[k]))


def connect_rows(model: Any, data: Any) -> np.ndarray:
    ends = (("coupler", [0.4, 0.0, 0.0]), ("rocker", [0.3, 0.0, 0.0]))
    found = []
    for name, at in ends:
        jac, b = np.zeros((3, model.nv)), model.body(name).id
        point = data.body(name).xpos + data.body(name).xmat.reshape(3, 3) @ np.array(at)
        mujoco.mj_jac(model, data, jac, None, point, b)
        found.append(jac)
    return found[1] - found[0]


def projected(model: Any, data: Any, q: np.ndarray, v: np.ndarray, rows: list[int]) -> np.ndarray:
    """Acceleration by MuJoCo's matrices; the drift of the rows by a central difference along v."""
    h, sides = 1e-5, []
    for sign in (1.0, -1.0, 0.0):
        data.qpos[:], data.qvel[:] = q + sign * h * v, v
        mujoco.mj_forward(model, data)
        sides.append(connect_rows(model, data)[rows])
    drift = (sides[0] - sides[1]) @ v / (2.0 * h)
    mass = np.zeros((model.nv, model.nv))
    for row, unit_vector in zip(mass, np.eye(model.nv), strict=True):
        mujoco.mj_mulM(model, data, row, unit_vector)
    return solved(mass, data.qfrc_passive - data.qfrc_bias, sides[2], -drift)


def solved(mass: np.ndarray, force: np.ndarray, rows: np.ndarray, target: np.ndarray) -> np.ndarray:
    nv, nb = len(force), len(rows)
    full = np.block([[mass, rows.T], [rows, np.zeros((nb, nb))]])
    return np.linalg.solve(full, np.concatenate([force, target]))[:nv]


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
