"""Friction that depends on the direction, beside an integration of its law, its ellipse, and MuJoCo."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import Problem, schemes
from nsjax import multibody as mb
from nsjax.types import Array
from tests.design import drawn, in_turn

SLOW = pytest.mark.slow
G = 9.81
MU = (0.2, 0.5)
TURN = 0.6
"""Angle of the grain with the x axis."""


def puck(
    pull: Any = (0.5, 1.0), mu: Any = MU, v: Any = (1.2, 0.4), coordinates: str = "joint", **given: Any
) -> Problem:
    """A puck on a plane with a grain, with a further pull along the plane; a smooth ball beside it."""
    grain = (np.cos(TURN), np.sin(TURN), 0.0)
    made = mb.assemble(
        mb.body("puck", mass=0.7, inertia=(1e-2, 1e-2, 1e-2)),
        mb.contact("floor", mb.point("puck"), mb.plane(), friction=mu, **({"grain": grain} | given)),
        mb.body("ball", mass=1.0, inertia=(1e-2, 1e-2, 1e-2)),
        mb.contact("ice", mb.sphere("ball", 0.1), mb.plane()),
        gravity=(*pull, -G), coordinates=coordinates, start={"ball": (3.0, 0.0, 0.1)},
    )  # fmt: skip
    at = [k for k, x in enumerate(made.system.labels.v) if x.startswith(("puck.vx", "puck.vy"))]
    return made.replace(
        {"state.v": jnp.asarray(made.state.v).at[np.array(at)].set(jnp.stack([*map(jnp.asarray, v)]))}
    )


def exact(pull: Any = (0.5, 1.0), mu: Any = MU, v: Any = (1.2, 0.4), time: float = 0.4) -> np.ndarray:
    """Place and velocity: ``dv = g - G M^2 v / |M v|`` along and across the grain."""
    axes = np.array([[np.cos(TURN), np.sin(TURN)], [-np.sin(TURN), np.cos(TURN)]])
    m = np.diag(mu)

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        own = axes @ x[2:]
        force = -G * m @ m @ own / np.linalg.norm(m @ own)
        return np.concatenate([x[2:], np.array(pull) + axes.T @ force])

    found = solve_ivp(rate, (0.0, time), [0.0, 0.0, *v], rtol=1e-10, atol=1e-12)
    return np.asarray(found.y[:, -1])


def end(problem: Problem, scheme: Any, dt: float = 1e-3) -> Array:
    traj = nsjax.simulate(*problem, scheme, dt=dt, time=0.4, every=round(0.4 / dt))
    return jnp.stack([traj[f"puck.{x}"][-1] for x in ("x", "y", "vx", "vy")])


OTHERS = in_turn(drawn("grain"), ("absolute", "joint"))


@SLOW
@pytest.mark.parametrize(("name", "coordinates"), [("moreau", "joint"), *OTHERS])
def test_a_puck_slides_as_the_ellipse_says(name: str, coordinates: str) -> None:
    """Not against the sliding: the path bends. First order in the step."""
    problem = puck(coordinates=coordinates)
    found = np.asarray(end(problem, getattr(schemes, name)()))
    np.testing.assert_allclose(found, exact(), atol=4e-3)
    assert np.abs(exact() - exact(mu=(0.35, 0.35))).max() > 0.1


@SLOW
def test_its_derivatives() -> None:
    """By both coefficients, the pull and the speed; beside secants of the integration."""
    x = jnp.array([*MU, 0.5, 1.0, 1.2, 0.4])

    def run(x: Array) -> Array:
        return end(puck(x[2:4], (x[0], x[1]), x[4:]), schemes.moreau())

    secants = []
    for k in range(6):
        step = 1e-4 * np.eye(6)[k]
        both = [exact(y[2:4], tuple(y[:2]), y[4:]) for y in (np.asarray(x) + step, np.asarray(x) - step)]
        secants.append((both[0] - both[1]) / 2e-4)
    for transform in (jax.jacfwd, jax.jacrev):
        slopes = jax.jit(transform(run))(x)
        np.testing.assert_allclose(slopes, np.stack(secants, axis=1), atol=6e-3)


def test_it_sticks_inside_the_ellipse() -> None:
    """A pull along the plane at several angles in one batch; the force in the report balances it."""
    angles = jnp.linspace(0.1, 3.0, 5)

    def run(angle: Array, part: Any) -> Any:
        own = part * G * jnp.stack([MU[0] * jnp.cos(angle), MU[1] * jnp.sin(angle)])
        pull = (
            own[0] * np.cos(TURN) - own[1] * np.sin(TURN), own[0] * np.sin(TURN) + own[1] * np.cos(TURN)
        )  # fmt: skip
        traj = nsjax.simulate(*puck(pull, v=(0.0, 0.0)), schemes.moreau(), dt=1e-2, steps=20, every=20)
        return traj.q[-1, :2], traj.contact("floor").force[-1], 0.7 * own

    made = jax.jit(jax.vmap(run, (0, None)))
    assert bool((jnp.linalg.norm(made(angles, 1.001)[0], axis=1) > 1e-5).all())
    moved, force, own = made(angles, 0.999)
    np.testing.assert_allclose(moved, 0.0, atol=1e-12)
    np.testing.assert_allclose(force[:, 1:], -own, atol=1e-9)
    np.testing.assert_allclose(force[:, 0], 0.7 * G, atol=1e-9)


FILE = """<mujoco><option gravity="0.5 1 -9.81"/><worldbody>
<geom name="floor" type="plane" size="5 5 1" euler="{turn}"/>
<body name="puck" pos="0 0 0.1"><freejoint/>
<geom name="tip" type="{kind}" size="0.1 0.1 0.1" mass="1"/></body></worldbody>
<contact><pair geom1="floor" geom2="tip" friction="0.2 0.6 0 0 0" condim="3"/></contact></mujoco>"""


@pytest.mark.parametrize(("kind", "turn"), [("sphere", "0 0 30"), ("box", "80 0 0"), ("box", "0 70 10")])
def test_pairs_of_files(kind: str, turn: str) -> None:
    """The first coefficient acts along the first tangent of MuJoCo's contact."""
    mujoco = pytest.importorskip("mujoco", reason="reads a model file")
    text = FILE.format(kind=kind, turn=turn)
    file = mb.read_mjcf(text)
    assert not file.left_out
    numbers = file.problem().params[next(x.name for x in file if x.kind == "contact")]
    assert (float(numbers.friction), float(numbers.friction_across)) == (0.2, 0.6)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    normal = model.geom_quat[0]
    data.qpos[:3] = 0.099 * np.asarray(mb_normal(normal))
    mujoco.mj_forward(model, data)
    frame = data.contact[0].frame.reshape(3, 3)
    along = np.asarray(numbers.grain) - np.dot(numbers.grain, frame[0]) * frame[0]
    np.testing.assert_allclose(np.cross(along / np.linalg.norm(along), frame[1]), 0.0, atol=1e-12)


def mb_normal(quaternion: np.ndarray) -> list[float]:
    w, x, y, z = quaternion
    return [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)]


def test_a_pair_without_a_steady_frame_is_said() -> None:
    pytest.importorskip("mujoco", reason="reads a model file")
    with pytest.warns(mb.LeftOutWarning):
        file = mb.read_mjcf(FILE.format(kind="capsule", turn="0 0 0"))
    assert any("in one direction" in str(x) for x in file.left_out)


@pytest.mark.parametrize(("given", "words"), [
    ({"mu": 0.2}, "give two coefficients, along the grain and across it"),
    ({"grain": ("wheel", (1.0, 0.0, 0.0))}, "a grain of 'wheel'; it belongs to one of ground, puck"),
    ({"grain": (1.0, 0.0)}, "and a direction of three entries"),
    ({"grain": (0.0, 0.0, -2.0)}, "-2.0.* has no direction along the surface"),
    ({"grain": ("puck", (0.0, 0.0, 0.0))}, "has no direction along the surface"),
])  # fmt: skip
def test_what_is_no_grain_is_refused(given: Any, words: str) -> None:
    with pytest.raises(nsjax.InputError, match=words):
        puck(**given)


def test_a_grain_along_the_normal_rubs() -> None:
    """With equal coefficients the direction of the grain does not matter: 1 m/s less 0.3 g in 0.1 s."""
    problem = puck(pull=(0.0, 0.0), mu=(0.3, 0.3), v=(1.0, 0.0), grain=("puck", (0.0, 0.0, 1.0)))
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=100, every=100)
    assert abs(float(traj["puck.vx"][-1]) - (1.0 - 0.3 * G * 0.1)) < 1e-12
