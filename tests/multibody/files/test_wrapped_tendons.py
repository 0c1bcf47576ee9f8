"""Tendons of files that wind about cylinders and spheres: springs, dampers, stops and dry friction, against
the package `mujoco` and closed forms; in the plane, the same as parts.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.core.operators import prepared
from nsjax.multibody import assemble, body, hinge, read_mjcf, sensor, sphere, tendon
from nsjax.multibody.sensors import sensed
from tests.design import in_turn
from tests.multibody.files.oracle import mujoco, quiet

SLOW = pytest.mark.slow
G = 9.81
SPRING = {"stiffness": 60.0, "damping": 1.3, "length": (0.9, 1.0)}

FILE = (
    "<mujoco><compiler angle='radian'/><option gravity='0 0 {gravity}'/><worldbody>"
    "<site name='w' pos='-0.3 0 0.5'/>"
    "<geom name='peg' type='cylinder' size='0.2 0.1' pos='0.1 0 0' zaxis='0 1 0'/><body name='a'>"
    "<joint name='A' axis='0 -1 0'/><inertial pos='0.25 0 0' mass='1.2' diaginertia='0.02 0.03 0.02'/>"
    "<site name='sa' pos='0.4 0 0.06'/><geom name='ball' size='0.05' pos='0.5 0 0' mass='0'/>"
    "<site name='past' pos='0.5 0 0.1'/>{arm}</body></worldbody>"
    "<tendon><spatial name='t' {given}><site site='w'/><geom geom='peg'/><site site='sa'/>{on}</spatial>"
    "</tendon></mujoco>"
)  # fmt: skip
ARM = (
    "<body name='b' pos='0.5 0 0'><joint name='B' axis='0 -1 0'/>"
    "<inertial pos='0.15 0 0.01' mass='0.7' diaginertia='0.01 0.015 0.01'/>"
    "<site name='sb' pos='0.2 0 0.05'/></body>"
)  # fmt: skip
ON = "<geom geom='ball' sidesite='past'/><site site='sb'/>"
WORDS = {"length": "springlength", "limits": "range", "friction": "frictionloss"}


def written(arms: int, gravity: float, given: dict[str, Any]) -> str:
    """A file with one or two arms in a tendon about a fixed peg, and about the elbow."""
    numbers = {WORDS.get(k, k): " ".join(map(str, np.ravel(x))) for k, x in given.items()}
    if "range" in numbers:
        numbers["limited"] = "true"
    more = {"arm": ARM, "on": ON} if arms == 2 else {"arm": "", "on": ""}
    text = " ".join(f"{k}='{x}'" for k, x in numbers.items())
    return FILE.format(gravity=-gravity, given=text, **more)


def arm(space: str, coordinates: str, start: dict[str, Any], gravity: float = G, **given: Any) -> Any:
    """The file as a problem, or in the plane the same as parts; as many arms as the start has joints."""
    arms = len(start)
    if space == "file":
        file = quiet(read_mjcf, written(arms, gravity, given), contact=False)
        return file.problem(start, coordinates)
    parts = [body("a", mass=1.2, inertia=0.03, com=(0.25, 0.0)), hinge("A", "ground", "a")]
    path: list[Any] = [("ground", (-0.3, 0.5)), sphere("ground", 0.2, at=(0.1, 0.0)), ("a", (0.4, 0.06))]
    if arms == 2:
        parts += [
            body("b", mass=0.7, inertia=0.015, com=(0.15, 0.01)), hinge("B", "a", "b", at=(0.5, 0.0)),
        ]  # fmt: skip
        path += [(sphere("a", 0.05, at=(0.5, 0.0)), ("a", (0.5, 0.1))), ("b", (0.2, 0.05))]
    return assemble(
        *parts, tendon("t", *path, **given), gravity=(0.0, -gravity), start=start, coordinates=coordinates
    )


OTHERS = ("file", "joint"), ("file", "absolute"), ("plane", "absolute")
CASES = [("plane", "joint"), *(pytest.param(*x, marks=SLOW) for x in OTHERS)]


@SLOW
@pytest.mark.parametrize(("space", "coordinates"), CASES)
def test_springs_and_dampers_on_a_wrapped_tendon(space: str, coordinates: str) -> None:
    """Lengths, their rates and accelerations at random states, in and on both sides of the range of free
    lengths; and derivatives by stiffness and damping, in which they are linear, forward and reverse.
    """
    problem = arm(space, coordinates, {"A": 0.0, "B": 0.0}, **SPRING)
    mechanism, system = problem.system.parts, problem.system
    senses = [sensor("l", "coordinate", "t"), sensor("r", "rate", "t")] + [
        sensor(x, "angular_acceleration", x) for x in "ab"
    ]

    def looked(numbers: Any, q: Any, v: Any) -> Any:
        p = prepared(system, problem.replace({"t.stiffness": numbers[0], "t.damping": numbers[1]}).params)
        found = [sensed(mechanism, x, jnp.zeros(()), q, v, None, p) for x in senses]
        # a positive angle in the plane turns x to the second axis, in space about -y
        turned = [-x[1] if x.ndim else x for x in found[2:]]
        return jnp.stack([*found[:2], turned[0], turned[1] - turned[0]])

    slopes = jax.jit(jax.jacfwd(looked)), jax.jit(jax.jacrev(looked))
    model = mujoco.MjModel.from_xml_string(written(2, G, SPRING))
    data, draw, seen, values = mujoco.MjData(model), np.random.default_rng(5), set(), jax.jit(looked)
    numbers = np.array([SPRING["stiffness"], SPRING["damping"]])

    def wanted() -> np.ndarray:
        mujoco.mj_forward(model, data)
        return np.array([data.ten_length[0], data.ten_velocity[0], *data.qacc_smooth])

    for _ in range(12):
        data.qpos[:], data.qvel[:] = draw.uniform(-1.2, 1.2, 2), draw.normal(size=2)
        # in the plane, angles are those from the axes of the ground
        own = [np.cumsum(x) if space == "plane" else x for x in (data.qpos, data.qvel)]
        state = arm(
            space, coordinates, dict(zip("AB", zip(*own, strict=True), strict=True)), **SPRING
        ).state
        q, v = jnp.asarray(state.q), jnp.asarray(state.v)
        here = wanted()
        np.testing.assert_allclose(values(numbers, q, v), here, rtol=1e-10, atol=1e-10)
        seen.add(int(np.digitize(here[0], SPRING["length"])))
        by = []
        for field in (model.tendon_stiffness, model.tendon_damping):
            field[0] += 1.0
            by.append(wanted() - here)
            field[0] -= 1.0
        for slope in slopes:
            np.testing.assert_allclose(slope(numbers, q, v).T, by, rtol=1e-9, atol=1e-10)
    assert seen == {0, 1, 2}


# One arm: the length of its tendon and its moment arm, in closed form.


def drawn(angle: float) -> tuple[float, float]:
    """Length of the tendon about the peg, and its derivative by the angle of the arm."""
    s, c = np.sin(angle), np.cos(angle)
    tip, centre, radius = np.array([0.4 * c - 0.06 * s, 0.4 * s + 0.06 * c]), np.array([0.1, 0.0]), 0.2
    ends = np.array([-0.3, 0.5]) - centre, tip - centre
    away = [np.linalg.norm(x) for x in ends]
    apart = np.arccos(ends[0] @ ends[1] / away[0] / away[1])
    turned = apart - sum(np.arccos(radius / x) for x in away)
    assert turned > 0.0
    # it runs clockwise, over the peg
    touching = np.arctan2(ends[1][1], ends[1][0]) + np.arccos(radius / away[1])
    along = np.array([np.sin(touching), -np.cos(touching)])
    length = sum(np.sqrt(x**2 - radius**2) for x in away) + radius * turned
    return float(length), float(along @ np.array([-tip[1], tip[0]]))


def test_the_moment_arm_is_the_derivative_of_the_length() -> None:
    for angle in (-0.7, -0.4, -0.3):
        wide = (drawn(angle + 1e-5)[0] - drawn(angle - 1e-5)[0]) / 2e-5
        assert drawn(angle)[1] == pytest.approx(wide, rel=1e-8)


WEIGHT, INERTIA = 1.2 * 0.25, 0.03 + 1.2 * 0.25**2
"""Mass times distance, and moment of inertia about the hinge, of one arm."""

SCHEMES = [schemes.moreau, pytest.param(schemes.nsga_decoupled, marks=SLOW)]


@SLOW
@pytest.mark.parametrize(
    ("place", "side", "scheme"),
    in_turn(
        [("plane", "joint"), *OTHERS], ("lower", "upper"),
        (schemes.moreau, schemes.moreau, schemes.nsga_decoupled, schemes.nsga_decoupled),
    ),
)  # fmt: skip
def test_an_arm_comes_to_rest_at_a_limit(place: Any, side: str, scheme: Any) -> None:
    """It falls, down or up, into the rigid stop of the length: angle and force in closed form."""
    space, coordinates = place
    start, stop, gravity = (-0.3, -0.4, G) if side == "upper" else (-0.4, -0.3, -G)
    limits = (0.2, drawn(stop)[0]) if side == "upper" else (drawn(stop)[0], 2.0)
    problem = arm(space, coordinates, {"A": start}, gravity=gravity, limits=limits)
    dt = 1e-4
    run = nsjax.simulate(*problem, scheme(), dt=dt, steps=1500, every=100)
    run.raise_for_status()
    fast = np.sqrt(2.0 * WEIGHT * G * abs(np.sin(stop) - np.sin(start)) / INERTIA)
    # a scheme on velocity level stops within the step of the impact
    assert float(run.joint("A").position[-1]) == pytest.approx(stop, abs=fast * dt)
    angle = float(run.joint("A").position[-1])
    np.testing.assert_allclose(run.joint("A").rate[-1], 0.0, atol=1e-10)
    rows = run.contact(f"t.{side}")
    pull = rows.force[-1] if float(jnp.max(rows.force)) > 0.0 else rows.impulse[-1] / dt
    wanted = WEIGHT * G * np.cos(angle) / abs(drawn(angle)[1])
    # rows of a hinge on velocity level let it drift by two micrometres on the way
    drifts = coordinates == "absolute" and scheme is schemes.moreau
    assert float(np.ravel(pull)[0]) == pytest.approx(wanted, rel=1e-5 if drifts else 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("space", "coordinates"), CASES)
def test_an_arm_is_held_by_dry_friction(space: str, coordinates: str, scheme: Any) -> None:
    """Up to the bound by closed form; two hundredths below it, it slides with the closed acceleration."""
    angle, dt = -0.35, 1e-4
    weight, lever = WEIGHT * G * np.cos(angle), abs(drawn(angle)[1])
    problem = arm(space, coordinates, {"A": angle}, friction=weight / lever)
    for share in (1.02, 0.98):
        made = problem.replace({"t.friction": share * weight / lever})
        run = nsjax.simulate(*made, scheme(), dt=dt, steps=20, every=20)
        run.raise_for_status()
        wanted = -max(0.0, 1.0 - share) * weight / INERTIA * run.t
        # the moment arm turns by 1e-6 on the way
        np.testing.assert_allclose(run.joint("A").rate, wanted, rtol=1e-4, atol=1e-12)
