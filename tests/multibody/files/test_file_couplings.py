"""Couplings of model files: accelerations with equalities held rigidly, against the package `mujoco`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.core.operators import prepared
from nsjax.multibody import assemble, read_mjcf, read_urdf
from nsjax.multibody.reactions import Instant
from tests.multibody.files.oracle import quiet

mujoco = pytest.importorskip("mujoco", reason="the package mujoco is not installed")

MASS = "<inertial pos='0.1 0.05 -0.1' mass='{}' diaginertia='0.2 0.3 0.25'/>"
ARM = (
    "<mujoco><compiler angle='radian'/><worldbody><body name='a' pos='0 0 1'>"
    "<joint name='j1' axis='0 1 0' ref='0.3' stiffness='3' damping='0.2'/>" + MASS.format(1.5)
    + "<body name='b' pos='0.4 0 0' euler='0.2 0.1 0'>"
    "<joint name='j2' axis='1 0 0.5' damping='0.1'/>" + MASS.format(0.8)
    + "<body name='c' pos='0.3 0.1 0'><joint name='j3' type='slide' axis='0 0.6 0.8' ref='0.05'/>"
    + MASS.format(0.5) + "</body></body>"
    "<body name='d' pos='-0.3 0 0'><joint name='j4' axis='0 0 1'/>" + MASS.format(0.7) + "</body></body>"
    "</worldbody><equality>{}</equality></mujoco>"
)  # fmt: skip
LAWS = {
    "polynomial": "<joint name='e' joint1='j3' joint2='j1' polycoef='0.1 0.4 -0.3 0.2 0.1'/>",
    "linear": "<joint name='e' joint1='j2' joint2='j4' polycoef='0.2 -1.5 0 0 0'/>",
    "held": "<joint name='e' joint1='j4' polycoef='0.25 7 0 0 0'/>",
    "two": "<joint joint1='j2' joint2='j1' polycoef='0 0.5 0 0 0'/>"
    "<joint joint1='j3' joint2='j2' polycoef='0 0.3 0.2 0 0'/>",
}
LINK = (
    "<link name='{}'><inertial><origin xyz='0.1 0 0.02'/><mass value='{}'/>"
    "<inertia ixx='0.1' iyy='0.12' izz='0.15' ixy='0' ixz='0' iyz='0'/></inertial></link>"
)
JOINT = (
    "<joint name='{}' type='{}'><parent link='{}'/><child link='{}'/>"
    "<origin xyz='0.2 0 0' rpy='0.1 0 0.3'/>"
    "<axis xyz='{}'/><limit lower='-2' upper='2' effort='1' velocity='1'/>{}</joint>"
)
FINGERS = (
    "<robot name='hand'><link name='world'/>"
    + "".join(LINK.format(x, 1.0 + k) for k, x in enumerate("pqrs"))
    + JOINT.format("wrist", "revolute", "world", "p", "0 1 0", "")
    + JOINT.format("left", "prismatic", "p", "q", "0 1 0", "")
    + JOINT.format("right", "prismatic", "p", "r", "0 1 0", "<mimic joint='left' multiplier='-1'/>")
    + JOINT.format("tip", "revolute", "q", "s", "1 0 0",
                   "<mimic joint='left' multiplier='2.5' offset='0.1'/>") + "</robot>"
)  # fmt: skip


def mujoco_model(text: str) -> Any:
    spec = mujoco.MjSpec.from_string(text)
    spec.compiler.fusestatic = False
    return spec.compile()


def residuals(model: Any, q: np.ndarray, derivative: int = 0) -> tuple[list[Any], ...]:
    """Of all joint equalities: first joint, second joint or None, ``y - y0 - P(x - x0)`` as a polynomial
    derived so often, at a position.
    """
    found: list[Any] = []
    for k in range(model.neq):
        law = np.polynomial.Polynomial(model.eq_data[k][:5])
        one, other = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
        x = q[other] - model.qpos0[other] if other >= 0 else 0.0
        found.append((one, other, law.deriv(derivative)(x) if derivative else law(x)))
    return found


def rigid_acceleration(model: Any, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """By the library's mass matrix and forces, with the rows of all equalities held exactly."""
    data = mujoco.MjData(model)
    for flag in ("CONTACT", "LIMIT", "FRICTIONLOSS", "EQUALITY"):
        model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    mass = np.zeros((model.nv, model.nv))
    for row, unit in zip(mass, np.eye(model.nv), strict=True):
        mujoco.mj_mulM(model, data, row, unit)
    rows, drift = np.zeros((model.neq, model.nv)), np.zeros(model.neq)
    second = residuals(model, q, 2)
    for k, (one, other, slope) in enumerate(residuals(model, q, 1)):
        rows[k, one] = 1.0
        if other >= 0:
            rows[k, other] = -slope
            drift[k] = -second[k][2] * v[other] ** 2
    force, n = data.qfrc_passive - data.qfrc_bias, model.neq
    full = np.block([[mass, rows.T], [rows, np.zeros((n, n))]])
    return np.linalg.solve(full, np.concatenate([force, -drift]))[: model.nv]


def on_the_laws(model: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A position and velocity that fulfil all equalities; each follows a joint set before."""
    q, v = rng.uniform(-0.5, 0.5, model.nq), rng.normal(size=model.nv)
    for k in range(model.neq):
        one, other, value = residuals(model, q)[k]
        q[one] = model.qpos0[one] + value
        v[one] = residuals(model, q, 1)[k][2] * v[other] if other >= 0 else 0.0
    return q, v


def here(problem: Any, model: Any) -> np.ndarray:
    """Where the file's joints stand in ``q``."""
    labels = [x.split(".")[0] for x in problem.system.labels.q]
    return np.array([labels.index(model.joint(k).name) for k in range(model.njnt)])


CASES = [(read_mjcf, ARM.format(x)) for x in LAWS.values()] + [(read_urdf, FINGERS)]


@pytest.mark.parametrize(
    ("reader", "text"),
    [x if k == 4 else pytest.param(*x, marks=pytest.mark.slow) for k, x in enumerate(CASES)],
    ids=[*LAWS, "fingers"],
)
def test_accelerations(reader: Any, text: str) -> None:
    file, model = quiet(reader, text), mujoco_model(text)
    assert not any("equality" in x or "coupl" in x for x in file.left_out)
    problem = assemble(*file, gravity=file.gravity)
    system, p, places = problem.system, prepared(problem.system, problem.params), here(problem, model)
    mechanism, rng = system.parts, np.random.default_rng(3)

    @jax.jit
    def looked(q: jax.Array, v: jax.Array) -> Any:
        t = jnp.zeros(())
        return Instant(mechanism, t, q, v, p).balance[0], system.constraint(t, q, p)

    for _ in range(10):
        q, v = on_the_laws(model, rng)
        order = np.argsort(places)
        found, left = looked(jnp.asarray(q[order]), jnp.asarray(v[order]))
        wanted = rigid_acceleration(model, q, v)
        assert np.max(np.abs(left)) <= 1e-13
        assert np.max(np.abs(np.asarray(found)[places] - wanted)) <= 1e-8 * (1.0 + np.max(np.abs(wanted)))


def test_what_does_not_couple_is_told() -> None:
    text = ARM.format("<joint joint1='j1' joint2='j2' active='false'/>")
    assert any("not active at the start" in x for x in quiet(read_mjcf, text).left_out)


def test_a_weld_that_leaves_turns_free() -> None:
    """``torquescale='0'`` holds points alone: it is a ball, as the library's rows of it are."""
    weld = "<weld name='w' body1='c' body2='d' anchor='0.1 0 0' torquescale='{}'/>"
    files = [quiet(read_mjcf, ARM.format(weld.format(scale))) for scale in (0, 1)]
    kinds = [next(x.kind for x in file if x.name == "w") for file in files]
    assert kinds == ["ball", "fixed"]
