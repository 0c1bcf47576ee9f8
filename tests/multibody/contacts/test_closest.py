"""Contacts at closest points: gaps against optimisers and fine sampling, their derivatives against the
velocities of the points that meet, and states in which a direction is lost.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize
from scipy.spatial.transform import Rotation

from nsjax.core.operators import prepared
from nsjax.multibody import assemble, body, box, capsule, contact, cylinder, hole, plane, profile, sphere
from nsjax.multibody.contacts import gap_functions

AXIS, OTHER = (0.6, 0.0, 0.8), (0.0, 0.28, 0.96)
AT, ON, TURNED = (0.1, -0.2, 0.05), (-0.15, 0.1, 0.2), (0.3, -0.5, 0.8)
NORMAL = (0.0, 0.6, 0.8)
HALF = (0.5, 0.3, 0.2)
SAMPLED = 12
"""Random states in which gaps are compared."""
PIN = contact("pin", cylinder("a", 0.3, 0.4, at=AT, axis=OTHER), hole("b", 2.0, at=ON, axis=AXIS))


def spatial() -> Any:
    ball = sphere("a", 0.07, at=AT)
    return assemble(
        body("a", mass=1.0, inertia=(1.0, 1.0, 1.0)), body("b", mass=1.0, inertia=(1.0, 1.0, 1.0)),
        contact("capsule", ball, capsule("b", 0.1, 0.4, at=ON, axis=AXIS), friction=0.1),
        contact("crossed", capsule("a", 0.08, 0.3, at=AT, axis=OTHER), capsule("b", 0.1, 0.4, axis=AXIS)),
        contact("box", ball, box("b", *HALF, at=ON, turned=TURNED)),
        contact("drum", ball, cylinder("b", 0.3, 0.4, at=ON, axis=AXIS)),
        contact("pipe", ball, hole("b", 2.0, at=ON, axis=AXIS)),
        contact("slot", ball, hole("b", 2.0, at=ON, axis=AXIS, half_length=0.2)),
        contact("socket", ball, hole("b", 2.0, at=ON)),
        contact("roll", cylinder("a", 0.3, 0.4, at=AT, axis=AXIS), plane("b", at=ON, normal=NORMAL)),
        contact("lie", capsule("a", 0.3, 0.4, at=AT, axis=AXIS), plane("b", at=ON, normal=NORMAL)),
        contact("stand", box("a", *HALF, at=AT, turned=TURNED), plane("b", at=ON, normal=NORMAL)),
        contact("bar", capsule("a", 0.08, 0.6, at=AT, axis=OTHER), box("b", *HALF, at=ON, turned=TURNED)),
        contact("shaft", capsule("a", 0.1, 0.4, at=AT, axis=OTHER), hole("b", 2.0, at=ON, axis=AXIS)),
        PIN,
    )  # fmt: skip


PARTS = ("capsule", "crossed", "box", "drum", "pipe", "slot", "socket", "roll", "lie", "stand", "pin")


def rounded(shape: np.ndarray) -> np.ndarray:
    """Points of a rounded cam (n, 2)."""
    return (0.5 + 0.1 * np.cos(2 * shape))[:, None] * np.stack([np.cos(shape), np.sin(shape)], axis=1)


def planar() -> Any:
    ball = sphere("a", 0.07, at=(0.1, -0.2))
    angles = np.linspace(0.0, 2.0 * np.pi, 40, endpoint=False)
    return assemble(
        body("a", mass=1.0, inertia=1.0), body("b", mass=1.0, inertia=1.0),
        contact("capsule", ball, capsule("b", 0.1, 0.4, at=(0.2, 0.1), axis=(0.6, 0.8)), friction=0.1),
        contact("box", ball, box("b", 0.5, 0.3, at=(-0.1, 0.2), turned=0.4)),
        contact("slot", ball, hole("b", 2.0, axis=(0.6, 0.8), half_length=0.2)),
        contact("bearing", ball, hole("b", 2.0)),
        contact("lie", capsule("a", 0.1, 0.4), plane("b", at=(0.0, -0.3))),
        contact("stand", box("a", 0.5, 0.3, turned=0.4), plane("b")),
        contact("cam", ball, profile("b", rounded(angles))),
        contact("bar", capsule("a", 0.08, 0.6, axis=(0.6, 0.8)), box("b", 0.2, 0.3, at=(0.1, 0.0))),
        contact("face", profile("a", rounded(angles)), plane("b", at=(0.0, -0.3), normal=(0.6, -0.8))),
    )  # fmt: skip


def states(problem: Any, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    system = problem.system
    q, v = rng.normal(size=(n, system.nq)), rng.normal(size=(n, system.nv))
    if system.nq == 14:
        for own in (slice(3, 7), slice(10, 14)):
            q[:, own] /= np.linalg.norm(q[:, own], axis=1, keepdims=True)
    return q, v


def functions(problem: Any) -> Any:
    """Gaps, their rates along v, the same from the points that meet, second derivatives, slips."""
    system = problem.system
    mechanism, zero = system.gap.__self__, jnp.zeros(())
    p = prepared(system, jax.tree.map(lambda x: jnp.asarray(x, float), problem.params))

    def material(q: jax.Array, v: jax.Array) -> jax.Array:
        scene, found = mechanism.scene(zero, q, v, p), []
        a = scene.algebra
        for part in mechanism.topology.all_of("contact"):
            met = gap_functions.meetings(scene, part, p[part.name])
            one = scene.motion(met.first, a.subtract(met.here, scene.frame(met.first).origin))
            other = scene.motion(met.second, a.subtract(met.there, scene.frame(met.second).origin))
            found.append(jnp.reshape(a.dot(met.normal, a.subtract(one, other)), -1))
        return jnp.concatenate(found)

    def all_of(q: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
        fresh = p if system.refresh is None else system.refresh(zero, q, p)
        gap = lambda xi: system.gap(zero, system.retract(q, xi), fresh)  # noqa: E731
        rest = jnp.zeros(system.nv)
        value, rate = jax.jvp(gap, (rest,), (v,))
        second = jax.jvp(lambda xi: jax.jvp(gap, (xi,), (v,))[1], (rest,), (v,))[1]
        return value, rate, material(q, v), second, system.slip(zero, q, v, fresh)

    return jax.jit(jax.vmap(all_of)), [x.split(".")[0] for x in system.labels.contacts]


def lost() -> tuple[np.ndarray, np.ndarray]:
    """Axes that are parallel or coincide, ends that meet, centres in one another, a cylinder that stands:
    each along random velocities and along three directions.
    """
    turn = Rotation.align_vectors([AXIS], [OTHER])[0]  # the axes of both capsules parallel
    upright = Rotation.align_vectors([NORMAL], [AXIS])[0]  # the cylinder stands on its plane
    q, still = [], np.array([1.0, 0, 0, 0])
    for how in (Rotation.identity(), turn, upright):
        for place in (np.zeros(3), np.array(ON), np.array(ON) + 0.4 * np.array(AXIS), np.array(HALF)):
            centre = place - how.apply(AT)  # both centres of the balls and middles meet there
            q.append(np.concatenate([centre, how.as_quat(scalar_first=True), np.zeros(3), still]))
    v = np.random.default_rng(5).normal(size=(LOST, 12))
    along = [np.tile(e, (LOST, 1)) for e in np.eye(12)[:3]]
    return np.tile(q, (4, 1)), np.concatenate([v, *along])


RANDOM, LOST = 60, 12
"""States of each kind."""


@dataclasses.dataclass(frozen=True)
class Evaluated:
    """What `functions` gives at random states, and behind them at those of `lost`: one program for all."""

    q: np.ndarray
    names: list[str]
    gap: np.ndarray
    rate: np.ndarray
    material: np.ndarray
    second: np.ndarray
    slip: np.ndarray


@pytest.fixture(scope="module")
def space() -> Evaluated:
    problem = spatial()
    evaluate, names = functions(problem)
    q, v = (np.concatenate(x) for x in zip(states(problem, RANDOM, 3), lost(), strict=True))
    return Evaluated(q, names, *(np.asarray(x) for x in evaluate(q, v)))


@pytest.fixture(scope="module")
def flat() -> Evaluated:
    problem = planar()
    evaluate, names = functions(problem)
    q, v = states(problem, RANDOM, 6)
    q[:, 3:5] *= 0.3
    return Evaluated(q, names, *(np.asarray(x) for x in evaluate(q, v)))


class Poses:
    """Both bodies of a state, from their quaternions by scipy."""

    def __init__(self, q: np.ndarray) -> None:
        self.at = {"a": q[:3], "b": q[7:10]}
        self.turns = {
            k: Rotation.from_quat(q[i : i + 4], scalar_first=True).as_matrix()
            for k, i in (("a", 3), ("b", 10))
        }

    def point(self, name: str, x: Any) -> np.ndarray:
        return self.at[name] + self.turns[name] @ np.asarray(x)


def bounded(directions: np.ndarray, target: np.ndarray, half: Any) -> float:
    """Least distance of a target from sums of directions (3, n) with bounded factors."""
    found = optimize.lsq_linear(directions, target, (-np.asarray(half), np.asarray(half)), tol=1e-14)
    return float(np.linalg.norm(directions @ found.x - target))


@pytest.mark.slow
def test_gaps_in_space(space: Evaluated) -> None:
    """Segments and boxes by bounded least squares, cylinders and rims by fine sampling."""
    first = {name: space.names.index(name) for name in PARTS}
    angles = np.linspace(0.0, 2.0 * np.pi, 4001)
    checked = 0
    for row, gap in zip(space.q[:SAMPLED], space.gap, strict=False):
        poses = Poses(row)
        b = poses.turns["b"]
        centre, middle = poses.point("a", AT), poses.point("b", ON)
        axis, other = b @ AXIS, poses.turns["a"] @ OTHER
        wanted = {
            "capsule": bounded(axis[:, None], centre - middle, [0.4]) - 0.17,
            "crossed": bounded(np.stack([axis, -other], 1), centre - poses.at["b"], [0.4, 0.3]) - 0.18,
            "slot": 1.93 - bounded(axis[:, None], centre - middle, [0.2]),
            "pipe": 1.93 - np.linalg.norm(np.cross(axis, centre - middle)),
            "socket": 1.93 - np.linalg.norm(centre - middle),
        }
        box_axes = b @ Rotation.from_rotvec(TURNED).as_matrix()
        out = bounded(box_axes, centre - middle, HALF)
        if out > 0.0:
            wanted["box"] = out - 0.07
            checked += 1
        for name, value in wanted.items():
            assert abs(gap[first[name]] - value) <= 1e-8, name
        crossed = gap[first["crossed"] : first["crossed"] + 3]
        assert crossed[0] <= np.min(crossed) + 1e-12
        across = np.linalg.svd(np.array([AXIS]))[2][1:]
        rim = 0.3 * (np.cos(angles)[:, None] * across[0] + np.sin(angles)[:, None] * across[1])
        rims = np.concatenate([rim + 0.4 * np.array(AXIS), rim - 0.4 * np.array(AXIS)]) + AT
        heights = (poses.at["a"] + rims @ poses.turns["a"].T - middle) @ (b @ NORMAL)
        assert abs(np.min(gap[first["roll"] : first["roll"] + 10]) - np.min(heights)) <= 1e-6
        rims = 0.4 * np.array(AXIS) * np.array([[1.0], [-1.0]]) + AT
        heights = (poses.at["a"] + rims @ poses.turns["a"].T - middle) @ (b @ NORMAL) - 0.3
        assert abs(np.min(gap[first["lie"] : first["lie"] + 2]) - np.min(heights)) <= 1e-12
        height, radius = axis @ (centre - middle), np.linalg.norm(np.cross(axis, centre - middle))
        if height > 0.4 and radius > 0.3:
            assert abs(gap[first["drum"]] - np.hypot(height - 0.4, radius - 0.3) + 0.07) <= 1e-12
    assert checked >= 6


def pins_against_sampling(q: np.ndarray, gap: np.ndarray) -> None:
    """Both rims by fine sampling, of configurations (n, 14) and their gaps (n, 2)."""
    angles = np.linspace(0.0, 2.0 * np.pi, 4001)
    across = np.linalg.svd(np.array([OTHER]))[2][1:]
    rim = 0.3 * (np.cos(angles)[:, None] * across[0] + np.sin(angles)[:, None] * across[1]) + AT
    for row, own in zip(q, gap, strict=True):
        poses = Poses(row)
        axis, middle = poses.turns["b"] @ AXIS, poses.point("b", ON)
        for side, found in zip((-0.4, 0.4), own, strict=True):
            apart = poses.at["a"] + (rim + side * np.array(OTHER)) @ poses.turns["a"].T - middle
            wanted = 2.0 - np.max(np.linalg.norm(np.cross(axis, apart), axis=1))
            # sampled within 2 pi / 8000: (0.3 + 5) * that squared / 2 of the distance
            assert -2e-6 <= found - wanted <= 1e-9


def test_a_pin_alone_in_a_hole() -> None:
    problem = assemble(
        body("a", mass=1.0, inertia=(1.0, 1.0, 1.0)), body("b", mass=1.0, inertia=(1.0, 1.0, 1.0)), PIN
    )
    q, _ = states(problem, SAMPLED, 5)
    gap = jax.jit(jax.vmap(lambda q: problem.system.gap(0.0, q, problem.params)))(q)
    pins_against_sampling(q, np.asarray(gap))


@pytest.mark.slow
@pytest.mark.parametrize("which", ["space", "flat"])
def test_rates_are_those_of_the_points_that_meet(which: str, request: Any) -> None:
    """The derivative of every gap is the velocity of one point against the other along the normal."""
    found = request.getfixturevalue(which)
    rate, material = found.rate[:RANDOM], found.material[:RANDOM]
    # a closest point of the spline by Newton steps that end at rounding of the parameter, 1e-10 of it
    assert np.max(np.abs(rate - material)) <= 1e-9 * np.max(np.abs(rate))


@pytest.mark.slow
@pytest.mark.parametrize("which", ["flat", pytest.param("space", marks=pytest.mark.slow)])
def test_numbers_stay_numbers(which: str, request: Any) -> None:
    """Gaps, first and second derivatives and slips, where directions are lost as elsewhere."""
    found = request.getfixturevalue(which)
    for x in (found.gap, found.rate, found.second, found.slip):
        assert np.all(np.isfinite(x))


@pytest.mark.slow
def test_states_without_direction(space: Evaluated) -> None:
    """Every gap still has a derivative: a row that is zero would leave a contact without force."""
    rows = space.rate[RANDOM + LOST :].reshape(3, LOST, -1)
    assert np.all(np.linalg.norm(rows, axis=0) > 0.1)
    stands = space.gap[RANDOM + LOST - 4 : RANDOM + LOST]
    stands = stands[:, space.names.index("roll") : space.names.index("roll") + 10]
    heights = np.sort(stands, axis=1)
    assert np.allclose(heights[:, 4] - heights[:, 0], 0.0, atol=1e-9)  # on all points of one rim


@pytest.mark.slow
def test_profile_against_sampling(flat: Evaluated) -> None:
    """A spline through 40 points of a cam: distance as from the curve itself, to the spline's error."""
    gap, angles = flat.gap[:, flat.names.index("cam")], np.linspace(0, 2 * np.pi, 40001)
    curve, outside = rounded(angles), 0
    for row, found in zip(flat.q, gap, strict=True):
        turns = [np.array([[np.cos(x), -np.sin(x)], [np.sin(x), np.cos(x)]]) for x in row[[2, 5]]]
        centre = turns[1].T @ (row[:2] + turns[0] @ [0.1, -0.2] - row[3:5])
        distance = np.min(np.hypot(*(curve - centre).T))
        if np.hypot(*centre) > 0.7:
            outside += 1
            # interpolation by a cubic spline of step h = 2 pi / 40: (5/384) h^4 of the fourth derivative,
            # about 3 for this curve, with one more factor two for its ends
            assert abs(found + 0.07 - distance) <= 5e-5
    assert outside >= 10


@pytest.mark.slow
def test_lowest_point_of_a_profile(flat: Evaluated) -> None:
    """A cam on a face: its lowest point as from the curve itself, to the spline's error as above. The curve
    is not convex, so that two points may be as low.
    """
    gap = flat.gap[:, flat.names.index("face")]
    curve = rounded(np.linspace(0, 2 * np.pi, 40001))
    for row, found in zip(flat.q, gap, strict=True):
        turns = [np.array([[np.cos(x), -np.sin(x)], [np.sin(x), np.cos(x)]]) for x in row[[2, 5]]]
        places = row[:2] + curve @ turns[0].T - row[3:5] - turns[1] @ [0.0, -0.3]
        assert abs(found - np.min(places @ (turns[1] @ [0.6, -0.8]))) <= 5e-5


def test_a_ball_at_rest_in_a_socket_knows_its_curvature() -> None:
    """Straight below the centre, where a foot on a line of no length must not move with it."""
    problem = assemble(
        body("a", mass=1.0, inertia=(1.0, 1.0, 1.0)), contact("c", sphere("a", 0.1), hole("ground", 0.3)),
        coordinates="absolute", gravity=9.81, start={"a": (0.0, 0.0, -0.2)},
    )  # fmt: skip
    system, p = problem.system, prepared(problem.system, problem.params)
    q, t = jnp.asarray(problem.state.q), jnp.zeros(())
    bend = jax.jit(jax.hessian(lambda x: system.gap(t, q.at[:3].add(x), p)[0]))(jnp.zeros(3))
    np.testing.assert_allclose(bend, np.diag([-5.0, -5.0, 0.0]), atol=1e-12)  # -1/e across the radius


def test_points_and_directions_of_a_profile() -> None:
    """A function is sampled; clockwise points and a first one given twice make the same curve."""
    angles = np.linspace(0.0, 2.0 * np.pi, 129)
    made = [
        profile("b", lambda a: rounded(np.array([a]))[0]), profile("b", rounded(angles)),
        profile("b", np.roll(rounded(angles[:-1])[::-1], 1, axis=0)),
    ]  # fmt: skip
    assert np.allclose(made[0].numbers.control, made[1].numbers.control, atol=1e-12)
    assert np.allclose(made[2].numbers.control, np.roll(made[1].numbers.control, -1, axis=0), atol=1e-12)


def test_a_profile_of_a_traced_number() -> None:
    """Control points scale with the radius, through the interpolation."""

    def control(radius: jax.Array) -> jax.Array:
        return profile("b", lambda a: (radius * jnp.cos(a), jnp.sin(a)), samples=16).numbers.control

    plain = profile("b", lambda a: (2.0 * np.cos(a), np.sin(a)), samples=16).numbers.control
    value, slope = jax.jvp(control, (2.0,), (1.0,))
    assert np.allclose(value, plain, atol=1e-13)
    assert np.allclose(slope[:, 0], plain[:, 0] / 2.0, atol=1e-13)
