"""The block: equations, sticking on a slope, impulses."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nsjax
from nsjax import models, schemes
from nsjax.core import InputError
from nsjax.core.operators import contact_rows, kinetic_energy, potential_energy
from tests.design import each_family
from tests.models.block_runs import run
from tests.references.rigid_box import SIGNS, G, Reference, scipy_rotation

# Mechanics of the block against scipy's rotations and point masses; its start and refusals.
EPS = np.finfo(float).eps


def random_state(seed: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = rng.normal(size=7 if dimension == 3 else 3) * (1.0 if dimension == 3 else 2.0)
    if dimension == 3:
        q[3:] /= np.linalg.norm(q[3:])
    return q, rng.normal(size=3 * (dimension - 1)) * 5


@functools.cache
def operators(dimension: int):
    """Functions of the model, compiled together: one call per state."""
    system = models.block(dimension=dimension).system

    @jax.jit
    def all_of(q, v, p):
        t = jnp.asarray(0.7)
        rows = contact_rows(system, t, q, p)
        move = lambda s: system.potential(t, system.retract(q, s * v), p)  # noqa: E731
        return {
            "gap": system.gap(t, q, p), "slip": system.slip(t, q, v, p),
            "wt": rows.wt, "offset": rows.offset,
            "kinetic": kinetic_energy(system, q, v, p), "potential": potential_energy(system, t, q, p),
            "mass": system.mass(q, p), "force": system.force(t, q, v, p),
            "power": jax.jvp(move, (0.0,), (1.0,))[1], "lowest": system.observe(t, q, v, None, p)["lowest"],
        }  # fmt: skip

    return all_of


EDGES = {2: np.array([0.7, 0.25]), 3: np.array([0.7, 0.25, 0.4])}
NUMBERS = {"mass": 3.3, "gravity": 9.5, "slope": 0.4, "ground": -0.3}


@pytest.mark.parametrize("dimension", [2, 3])
def test_corners_gaps_and_slip_at_random_poses(dimension):
    ref = Reference(EDGES[dimension], 0.0)
    params = models.block(dimension=dimension, size=EDGES[dimension], **NUMBERS).params
    for seed in range(30):
        q, v = random_state(seed, dimension)
        found = operators(dimension)(q, v, params)
        np.testing.assert_allclose(found["gap"], ref.gaps(q) + 0.3, rtol=0, atol=20 * EPS)
        assert found["lowest"] == pytest.approx(ref.gaps(q).min() + 0.3, abs=20 * EPS)
        # Velocity of a point: v + (R Omega) x (R X), not by the rows of the reference.
        if dimension == 3:
            r = scipy_rotation(q[3:])
            velocity = v[:3] + np.cross(r.apply(v[3:]), r.apply(ref.x))
        else:
            turned = Rotation.from_euler("z", q[2]).apply(np.pad(ref.x, ((0, 0), (0, 1))))
            velocity = v[:2] + np.cross([0.0, 0.0, v[2]], turned)[:, :2]
        np.testing.assert_allclose(found["slip"], velocity[:, :-1], rtol=0, atol=50 * EPS)
        a, _ = ref.rows(q, v)
        np.testing.assert_allclose(a @ v, velocity, rtol=0, atol=50 * EPS)  # the reference itself


@pytest.mark.parametrize("dimension", [2, 3])
def test_energy_and_inertia_are_those_of_a_homogeneous_box(dimension):
    # Gauss points at 1 / sqrt(3) integrate second moments exactly: equal point masses there are the box.
    m, g, slope_angle, ground = (NUMBERS[k] for k in ("mass", "gravity", "slope", "ground"))
    params = models.block(dimension=dimension, size=EDGES[dimension], **NUMBERS).params
    points = 0.5 * SIGNS[dimension] * EDGES[dimension] / np.sqrt(3)
    ref = Reference(2 * np.abs(points[0]), 0.0)  # its corners are the Gauss points
    share = m / len(points)
    up = np.zeros(dimension)
    up[0], up[-1] = -np.sin(slope_angle), np.cos(slope_angle)
    for seed in range(30):
        q, v = random_state(seed, dimension)
        found = operators(dimension)(q, v, params)
        a, _ = ref.rows(q, v)
        kinetic = share / 2 * np.sum((a @ v) ** 2)
        assert found["kinetic"] == pytest.approx(kinetic, rel=1e-13)
        np.testing.assert_allclose(
            found["mass"], share * np.einsum("kdi,kdj->ij", a, a), rtol=0, atol=1e-14
        )
        origin = np.zeros(dimension)
        origin[-1] = ground  # the height is counted from this point of the plane
        potential = share * g * np.sum((ref.corners(q) - origin) @ up)
        assert found["potential"] == pytest.approx(potential, rel=1e-13, abs=1e-13)
        # The weight has this potential, and gyroscopic torques no power.
        power = float(np.sum(found["force"] * v))
        assert power == pytest.approx(-float(found["power"]), rel=1e-12, abs=1e-12)
        if dimension == 3:
            j = np.diag(found["mass"])[3:]
            np.testing.assert_allclose(found["force"][3:], np.cross(j * v[3:], v[3:]), rtol=0, atol=1e-13)


def test_start_and_refusals():
    for dimension in (2, 3):
        problem = models.block(dimension=dimension, ground=0.4)
        gaps = np.asarray(problem.system.gap(0.0, problem.state.q, problem.params))
        lower = SIGNS[dimension][:, -1] < 0
        np.testing.assert_allclose(gaps[lower], 0, atol=EPS)
        assert np.all(gaps[~lower] > 0.09)
        lifted = models.block(dimension=dimension, height=0.25)
        gaps = np.asarray(lifted.system.gap(0.0, lifted.state.q, lifted.params))
        np.testing.assert_allclose(gaps[lower], 0.25, rtol=4 * EPS)
        assert len(problem.system.labels.contacts) == problem.system.nc == 2**dimension
    # Contact labels and their order are public: (+,-,+) is contact 2.
    assert models.block().system.labels.contacts[2] == "corner +-+"
    given = models.block(inertia=[1.0, 2.0, 3.0], mass=5.0)
    np.testing.assert_array_equal(
        given.system.mass(given.state.q, given.params), np.diag([5.0, 5, 5, 1, 2, 3])
    )
    spun = models.block(initial_q=[0, 0, 1, 0, 3, 0, 4])
    np.testing.assert_allclose(spun.state.q[3:], [0, 0.6, 0, 0.8], atol=EPS)
    with pytest.raises(InputError, match="must not be zero"):
        models.block(initial_q=[0, 0, 1, 0, 0, 0, 0])
    with pytest.raises(InputError, match="dimension = 4"):
        models.block(dimension=4)


# The block on a slope, which sticks below the angle of friction.
SLOPE = 0.3
ON_SLOPE = {2: [0.2, 0.1], 3: [0.3, 0.2, 0.1]}


def slowest(dimension: int, dt: float) -> float:
    """Speed that counts as rest [m/s]: rounding in the plane. In space the impulses of the step before are
    taken again as long as they meet the tolerance of 1e-11, relative to those of single corners. So large
    errors at four corners leave at most four such parts of ``g dt``, possibly in each step.
    """
    return 1e-15 if dimension == 2 else 4e-11 * G * dt


def rest(dimension: int, dt: float, steps: int) -> float:
    """Distance that a block at rest may move [m]."""
    return 1e-14 if dimension == 2 else steps * dt * slowest(dimension, dt)


def motion(traj, dimension: int) -> np.ndarray:
    """Distance from the start that any corner may have moved: translation plus radius times angle."""
    radius = np.linalg.norm(ON_SLOPE[dimension]) / 2
    angle = np.abs(traj.q[:, 2] - traj.q[0, 2]) if dimension == 2 else 2 * np.linalg.norm(
        traj.q[:, 4:] - traj.q[0, 4:], axis=1)  # fmt: skip
    return np.linalg.norm(traj.q[:, :dimension] - traj.q[0, :dimension], axis=1) + radius * angle


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "dimension"), [(20_000, 2), (20_000, 3)])
def test_block_sticks_below_the_angle_of_friction(dimension, steps):
    dt, m = 1e-3, 2.5
    problem = models.block(
        dimension=dimension, size=ON_SLOPE[dimension], slope=SLOPE, friction=1.01 * np.tan(SLOPE), mass=m
    )
    traj = run(problem, dt, steps, every=1000)
    # 2 g dt^2 = 2e-5 m are asked for
    assert motion(traj, dimension).max() <= rest(dimension, dt, steps)
    radius = np.linalg.norm(ON_SLOPE[dimension]) / 2
    speed = np.abs(traj.v) * np.array([1.0] * dimension + [radius] * (traj.v.shape[1] - dimension))
    assert speed.max() <= slowest(dimension, dt)
    force = m * G * np.array([np.cos(SLOPE), -np.sin(SLOPE)])
    np.testing.assert_allclose(traj.force_normal[1:].sum(axis=1), force[0], rtol=1e-9)
    np.testing.assert_allclose(traj.force_tangential[1:, :, 0].sum(axis=1), force[1], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("tilt", "dimension", "steps"), [(1e-14, 2, 20_000), (-1e-14, 3, 20_000)])
def test_block_settles_once_where_rounding_lifts_a_corner(dimension, tilt, steps):
    # Without a tolerance a corner lifted by rounding is left out of a step: the block tilts by g dt^2 over
    # its length, is caught, slides until friction has stopped it, and rests a little below the plane for
    # good. Near the angle of friction, where sliding hardly slows down, it slides farther than 2 g dt^2.
    dt = 1e-3
    numbers = {"size": ON_SLOPE[dimension], "slope": SLOPE, "friction": 1.1 * np.tan(SLOPE), "mass": 2.5}
    start = [0, 0.05, tilt] if dimension == 2 else [0, 0, 0.05, 1, 0.3 * tilt, -0.5 * tilt, 0]
    problem = models.block(dimension=dimension, initial_q=start, **numbers)
    traj = run(problem, dt, steps, every=1000, scheme=schemes.moreau(gap_tolerance=0.0))
    shift = np.linalg.norm((traj.q - traj.q[0])[:, :dimension], axis=1)
    assert G * dt**2 <= shift.max() <= 2 * G * dt**2
    assert traj.gap_min.min() >= -4 * G * dt**2  # a step of at most 2 g dt, twice as fast at a corner
    assert np.abs(traj.q[1:] - traj.q[1]).max() <= max(1e-13, rest(dimension, dt, steps))
    # With the default tolerance such a corner counts as standing, and the block stays, as one that sticks.
    stays = run(problem, dt, steps, every=1000, scheme=schemes.moreau())
    assert motion(stays, dimension).max() <= rest(dimension, dt, steps)


# The planar block with every registered scheme: dropped on a slope on which it sticks.
MASS, INCLINE, DROP, TIME = 2.5, 0.2, 5e-3, 0.2


@each_family("name", "moreau")
def test_impulses_of_a_block_that_falls_and_sticks_are_those_of_its_weight(name):
    """At rest at both ends: normal and tangential impulses are the weight's, whatever the scheme, and the
    block has slid by what it fell along the slope, and little more.
    """
    steps = 1000
    problem = models.block(
        dimension=2, size=[0.2, 0.1], slope=INCLINE, friction=0.8, mass=MASS, restitution=0.0, height=DROP
    )
    traj = nsjax.simulate(*problem, schemes.REGISTRY[name].factory(), dt=TIME / steps, steps=steps)
    traj.raise_for_status()
    weight = MASS * G * TIME * np.array([np.cos(INCLINE), np.sin(INCLINE)])
    speed = np.abs(np.asarray(traj.v)[-1])
    assert speed[:2].max() < 1e-8
    assert np.asarray(traj.gap)[-1].min() > -2 * TIME / steps * np.sqrt(
        2 * G * DROP
    )  # two steps of the fall
    normal = np.asarray(traj.impulse_normal)[1:].sum()
    tangent = np.abs(np.asarray(traj.impulse_tangential)[1:].sum())
    np.testing.assert_allclose([normal, tangent], weight, rtol=1e-6)
    fallen = DROP * np.tan(INCLINE)
    moved = abs(float(traj.q[-1, 0] - traj.q[0, 0]))
    # the impact is met within two steps
    assert abs(moved - fallen) < 2 * TIME / steps * np.sqrt(2 * G * DROP)
