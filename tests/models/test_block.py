"""The block against scipy's rotations, closed forms and event-driven integration."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import nsjax
from nsjax import models, schemes
from nsjax.core import InputError, Labels
from nsjax.core.operators import contact_rows, kinetic_energy, potential_energy
from tests.references import slope

G = 9.81
EPS = np.finfo(float).eps
SIZE = np.array([0.1, 0.2, 0.3])

# Corners in the order of the model: all plus first, the last axis fastest.
SIGNS = {d: np.array(list(itertools.product([1.0, -1.0], repeat=d))) for d in (2, 3)}


def run(problem, dt: float, steps: int, every: int = 1, scheme=None) -> nsjax.Trajectory:
    """Always the same signature, so that each dimension compiles once.

    A block that stands on the plane does so to rounding: with `gap_tolerance` it counts as standing.
    """
    scheme = schemes.moreau(gap_tolerance=1e-12) if scheme is None else scheme
    traj = nsjax.simulate(*problem, scheme, dt=dt, steps=steps, every=every, events=1)
    traj.raise_for_status()
    return traj


def cuboid(**numbers):
    """A block in space; always the same parameters given, as another choice would compile again."""
    return models.block(**{"size": SIZE, **numbers})


def scipy_rotation(p) -> Rotation:
    return Rotation.from_quat(np.asarray(p)[..., [1, 2, 3, 0]])


def angle_between(p, q) -> np.ndarray:
    return (scipy_rotation(p).inv() * scipy_rotation(q)).magnitude()


# ------------------------------------------------------------------ the event-driven reference


class Impact(NamedTuple):
    time: float
    active: list[int]
    stuck: list[int]
    before: np.ndarray
    after: np.ndarray


class Reference:
    """Rigid box on a rough plane in numpy: corners that stick or are open, impacts without rebound.

    Corners have velocities ``A v`` and accelerations ``A a + b``, normal component last. While the
    corners in ``stuck`` rest, their forces follow from ``A a + b = 0`` (least squares, as corners of one
    edge depend on each other) and must stay inside the friction cone, which is checked.
    """

    def __init__(self, size, friction: float, angle: float = 0.0, mass: float = 46.8):
        self.size, self.friction, self.angle, self.m = np.asarray(size, float), friction, angle, mass
        self.d = len(self.size)
        self.x = 0.5 * SIGNS[self.d] * self.size
        square = self.size**2
        self.j = mass / 12 * (square.sum() - square if self.d == 3 else np.array([square.sum()]))
        self.mass = np.concatenate([np.full(self.d, mass), self.j])
        self.nq, self.nv = (7, 6) if self.d == 3 else (3, 3)
        self.margin = np.inf  # least relative distance of a force or impulse from the cone's surface

    def turn(self, q) -> np.ndarray:
        if self.d == 3:
            return scipy_rotation(q[3:]).as_matrix()
        c, s = np.cos(q[2]), np.sin(q[2])
        return np.array([[c, -s], [s, c]])

    def corners(self, q) -> np.ndarray:
        return q[: self.d] + self.x @ self.turn(q).T

    def gaps(self, q) -> np.ndarray:
        return self.corners(q)[:, -1]

    def rows(self, q, v) -> tuple[np.ndarray, np.ndarray]:
        """A (corners, d, nv) and b (corners, d)."""
        turn = self.turn(q)
        if self.d == 2:
            r = self.x @ turn.T
            side = np.stack([-r[:, 1], r[:, 0]], axis=1)
            a = np.concatenate([np.broadcast_to(np.eye(2), (4, 2, 2)), side[:, :, None]], axis=2)
            return a, -(v[2] ** 2) * r
        columns = [np.cross(e, self.x) @ turn.T for e in np.eye(3)]  # R (e x X)
        a = np.concatenate([np.broadcast_to(np.eye(3), (8, 3, 3)), np.stack(columns, axis=2)], axis=2)
        return a, np.cross(v[3:], np.cross(v[3:], self.x)) @ turn.T

    def force(self, v) -> np.ndarray:
        h = np.zeros(self.nv)
        h[0], h[self.d - 1] = self.m * G * np.sin(self.angle), -self.m * G * np.cos(self.angle)
        if self.d == 3:
            h[3:] = -np.cross(v[3:], self.j * v[3:])
        return h

    def acceleration(self, q, v, stuck) -> tuple[np.ndarray, np.ndarray]:
        """Acceleration and forces (stuck corners, d)."""
        a, b = self.rows(q, v)
        a, b = a[stuck].reshape(-1, self.nv), b[stuck].reshape(-1)
        free = self.force(v) / self.mass
        force = np.linalg.lstsq(a / self.mass @ a.T, -(a @ free + b), rcond=1e-10)[0]
        return free + a.T @ force / self.mass, force.reshape(-1, self.d)

    def rate(self, y, stuck) -> np.ndarray:
        q, v = y[: self.nq], y[self.nq :]
        acceleration = self.acceleration(q, v, stuck)[0]
        if self.d == 2:
            return np.concatenate([v, acceleration])
        p, w = q[3:], v[3:]
        turned = np.concatenate([[-p[1:] @ w], p[0] * w + np.cross(p[1:], w)]) / 2
        return np.concatenate([v[:3], turned, acceleration])

    def inside(self, forces) -> bool:
        tangential = np.linalg.norm(forces[:, :-1], axis=1)
        room = self.friction * forces[:, -1] - tangential
        self.margin = min(self.margin, room.min() / np.abs(forces).max())
        return bool(np.all(room >= 0))

    def impact(self, q, v, active) -> tuple[np.ndarray, list[int]]:
        """Velocity after the impact, and the corners that stay, by trying all cases open / stick."""
        a, _ = self.rows(q, v)
        found = []
        for count in range(len(active), 0, -1):
            for stuck in itertools.combinations(active, count):
                rows = a[list(stuck)].reshape(-1, self.nv)
                impulse = np.linalg.lstsq(rows / self.mass @ rows.T, -rows @ v, rcond=1e-10)[0]
                after = v + rows.T @ impulse / self.mass
                margin = self.margin
                lifts = all(a[k, -1] @ after >= -1e-9 for k in active)
                if lifts and self.inside(impulse.reshape(-1, self.d)):
                    found.append((after, list(stuck)))
                else:
                    self.margin = margin  # a case that is none does not count
        assert found, "no case of sticking and open corners fulfils the law"
        for after, _ in found:
            np.testing.assert_allclose(after, found[0][0], rtol=0, atol=1e-8)
        return found[0]

    def path(self, q, v, stuck, time: float, rows: int):
        """State at ``rows + 1`` equal times, and the impacts between."""
        times = np.linspace(0, time, rows + 1)
        y, t, impacts = np.concatenate([q, v]), 0.0, []
        out = np.empty((rows + 1, self.nq + self.nv))
        while True:
            others = [k for k in range(len(self.x)) if k not in stuck]

            def touch(t, y, others=others):
                return self.gaps(y[: self.nq])[others].min()

            touch.terminal, touch.direction = True, -1
            # A corner that has just been left rises from zero: look only after a first short stretch.
            first = solve_ivp(lambda t, y, s=stuck: self.rate(y, s), (t, min(t + 1e-3, time)), y,
                              method="DOP853", rtol=1e-12, atol=1e-13, dense_output=True)  # fmt: skip
            second = solve_ivp(lambda t, y, s=stuck: self.rate(y, s), (first.t[-1], time), first.y[:, -1],
                               method="DOP853", rtol=1e-12, atol=1e-13, dense_output=True, events=touch,
                               max_step=0.02)  # fmt: skip
            end = second.t[-1]
            for piece, low in ((first, t), (second, first.t[-1])):
                here = (times >= low) & (times <= piece.t[-1])
                if here.any():
                    out[here] = piece.sol(times[here]).T
            for state in second.y.T:
                assert self.inside(self.acceleration(state[: self.nq], state[self.nq :], stuck)[1])
            if second.status != 1:
                return times, out[:, : self.nq], out[:, self.nq :], impacts
            y, t = second.y[:, -1], end
            active = sorted({*stuck, *np.flatnonzero(np.abs(self.gaps(y[: self.nq])) < 1e-9)})
            before = y[self.nq :].copy()
            y[self.nq :], stuck = self.impact(y[: self.nq], before, active)
            impacts.append(
                Impact(t, list(map(int, active)), list(map(int, stuck)), before, y[self.nq :].copy())
            )
            if np.abs(y[self.nq :]).max() < 1e-9:  # at rest, as it will stay
                out[times > t] = y
                return times, out[:, : self.nq], out[:, self.nq :], impacts


def standing(ref: Reference, attitude) -> np.ndarray:
    """Pose with this attitude (rotation vector or angle) and the lowest corner on the plane."""
    if ref.d == 3:
        attitude = Rotation.from_rotvec(attitude).as_quat()[[3, 0, 1, 2]]
    q = np.concatenate([np.zeros(ref.d), np.atleast_1d(attitude)])
    q[ref.d - 1] -= ref.gaps(q).min()
    return q


# --------------------------------------------------------------------------------- mechanics


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
def test_force_directions_at_random_poses(dimension):
    # Direction n at the point X of the body: (n, X x R'n).
    params = models.block(dimension=dimension, size=EDGES[dimension], **NUMBERS).params
    x = 0.5 * SIGNS[dimension] * EDGES[dimension]
    for seed in range(30):
        q, v = random_state(seed, dimension)
        found = operators(dimension)(q, v, params)
        directions = np.eye(dimension)[[-1, *range(dimension - 1)]]  # normal, then tangents
        if dimension == 3:
            local = scipy_rotation(q[3:]).inv().apply(directions)
            turn = np.cross(x[:, None, :], local[None, :, :])
        else:
            c, s = np.cos(q[2]), np.sin(q[2])
            local = directions @ np.array([[c, -s], [s, c]])
            turn = (x[:, None, 0] * local[None, :, 1] - x[:, None, 1] * local[None, :, 0])[:, :, None]
        expected = np.concatenate(
            [np.broadcast_to(directions, (len(x), dimension, dimension)), turn], axis=2
        )
        wt = np.asarray(found["wt"]).reshape(expected.shape)
        np.testing.assert_allclose(wt, expected, rtol=0, atol=10 * EPS)
        assert not np.any(found["offset"])


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


# --------------------------------------------------------------------------- block on a slope

SLOPE = 0.3
ON_SLOPE = {2: [0.2, 0.1], 3: [0.3, 0.2, 0.1]}


def motion(traj, dimension: int) -> np.ndarray:
    """Distance from the start that any corner may have moved: translation plus radius times angle."""
    radius = np.linalg.norm(ON_SLOPE[dimension]) / 2
    angle = np.abs(traj.q[:, 2] - traj.q[0, 2]) if dimension == 2 else 2 * np.linalg.norm(
        traj.q[:, 4:] - traj.q[0, 4:], axis=1)  # fmt: skip
    return np.linalg.norm(traj.q[:, :dimension] - traj.q[0, :dimension], axis=1) + radius * angle


@pytest.mark.parametrize("dimension", [2, 3])
def test_block_sticks_below_the_angle_of_friction(dimension):
    dt, m = 1e-3, 2.5
    problem = models.block(
        dimension=dimension, size=ON_SLOPE[dimension], slope=SLOPE, friction=1.01 * np.tan(SLOPE), mass=m
    )
    traj = run(problem, dt, 100_000, every=1000)
    # 2 g dt^2 = 2e-5 m are asked for; nothing but rounding is needed.
    assert motion(traj, dimension).max() <= 1e-14
    assert np.abs(traj.v).max() <= 1e-15
    force = m * G * np.array([np.cos(SLOPE), -np.sin(SLOPE)])
    np.testing.assert_allclose(traj.force_normal[1:].sum(axis=1), force[0], rtol=1e-9)
    np.testing.assert_allclose(traj.force_tangential[1:, :, 0].sum(axis=1), force[1], rtol=1e-9)


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("tilt", [1e-14, -1e-14])
def test_block_settles_once_where_rounding_lifts_a_corner(dimension, tilt):
    # Without a tolerance a corner lifted by rounding is left out of a step: the block tilts by g dt^2 over
    # its length, is caught, slides until friction has stopped it, and rests a little below the plane for
    # good. Near the angle of friction, where sliding hardly slows down, it slides farther than 2 g dt^2.
    dt = 1e-3
    numbers = {"size": ON_SLOPE[dimension], "slope": SLOPE, "friction": 1.1 * np.tan(SLOPE), "mass": 2.5}
    start = [0, 0.05, tilt] if dimension == 2 else [0, 0, 0.05, 1, 0.3 * tilt, -0.5 * tilt, 0]
    problem = models.block(dimension=dimension, initial_q=start, **numbers)
    traj = run(problem, dt, 100_000, every=1000, scheme=schemes.moreau(gap_tolerance=0.0))
    shift = np.linalg.norm((traj.q - traj.q[0])[:, :dimension], axis=1)
    assert G * dt**2 <= shift.max() <= 2 * G * dt**2
    assert traj.gap_min.min() >= -4 * G * dt**2  # a step of at most 2 g dt, twice as fast at a corner
    assert np.abs(traj.q[1:] - traj.q[1]).max() <= 1e-13
    # With the default tolerance such a corner counts as standing, and the block stays: as for a block that
    # sticks, nothing but rounding.
    assert motion(run(problem, dt, 100_000, every=1000, scheme=schemes.moreau()), dimension).max() <= 1e-14


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("factor", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("restitution", [0.0, 0.7])
def test_block_slides_above_the_angle_of_friction(dimension, factor, restitution):
    friction = factor * np.tan(SLOPE)
    problem = models.block(
        dimension=dimension, size=ON_SLOPE[dimension], slope=SLOPE, friction=friction, mass=2.5,
        restitution=restitution,
    )  # fmt: skip
    traj = run(problem, 1e-3, 1000, every=10)
    a = G * (np.sin(SLOPE) - friction * np.cos(SLOPE))
    # Exact up to the tolerance of the contact problems, 1e-11 of the largest velocity.
    np.testing.assert_allclose(traj.v[:, 0], a * traj.t, rtol=0, atol=1e-11)
    np.testing.assert_allclose(traj.q[:, 0], a * traj.t**2 / 2, rtol=0, atol=1e-11)
    others = np.delete(traj.q - traj.q[0], 0, axis=1)
    assert np.abs(others).max() <= 1e-12


# -------------------------------------------------------------------- tipping, landing, rolling

ROWS = 10
# Numbers of steps that do not nest: the step of an impact is quantised.
COUNTS = ROWS * np.array(
    [41, 53, 71, 97, 127, 163, 211, 277, 359, 467, 607, 787, 1021, 1327, 1723, 2239, 2909, 3779]
)


def convergence(ref: Reference, q, stuck, time: float):
    """Errors of poses (any row) and of the last velocity for all step sizes, and the true impacts."""
    times, qs, vs, impacts = ref.path(q, np.zeros(ref.nv), stuck, time, ROWS)
    numbers = {"dimension": ref.d, "size": ref.size, "friction": ref.friction, "slope": ref.angle}
    poses, rates = [], []
    for n in COUNTS:
        traj = run(models.block(initial_q=q, **numbers), time / n, int(n), every=int(n) // ROWS)
        np.testing.assert_allclose(traj.t, times, rtol=1e-12)
        move = np.linalg.norm(traj.q[:, : ref.d] - qs[:, : ref.d], axis=1)
        space = ref.d == 3
        turn = angle_between(traj.q[:, 3:], qs[:, 3:]) if space else np.abs(traj.q[:, 2] - qs[:, 2])
        poses.append(np.max(move + np.linalg.norm(ref.size) / 2 * turn))
        rates.append(np.abs(traj.v[-1] - vs[-1]).max())
    return time / COUNTS, np.array(poses), np.array(rates), impacts, (qs, vs)


# An impact is noticed up to d = 1.5 steps late. Rocking, with 0.7 of the speed kept, that prolongs the
# next swing by 2 * 0.7 d, so that the delay of the third impact is d + 2.4 (d + 2.4 d) = 9.2 d;
# rolling is alike. The velocity in the smooth motion that follows is off by the acceleration times that.
LATE = 9.2 * 1.5


def test_tall_box_tips_about_its_lower_corner():
    # Steeper than width / height = 1 / 3, and rough. Up to 33 degrees past the start it is a pendulum.
    size, angle, time = np.array([0.2, 0.6]), 0.45, 0.5
    ref = Reference(size, 1.0, angle)
    q = standing(ref, 0.0)
    steps, poses, rates, impacts, (qs, vs) = convergence(ref, q, [1], time)
    # The reference against the textbook's pendulum: psi'' = 3 g / (4 l) sin(psi), psi from the vertical.
    length, start = np.linalg.norm(size) / 2, angle - np.arctan(1 / 3)
    fall = solve_ivp(lambda t, y: [y[1], 0.75 * G / length * np.sin(y[0])], (0, time), [start, 0.0],
                     method="DOP853", rtol=1e-12, atol=1e-13)  # fmt: skip
    np.testing.assert_allclose([-qs[-1, 2], -vs[-1, 2]], [fall.y[0, -1] - start, fall.y[1, -1]], rtol=1e-9)
    assert not impacts
    assert qs[-1, 2] < -0.5
    assert ref.margin > 0.1
    # Smooth motion, but the corner is held on velocity level.
    assert slope(steps, poses) == pytest.approx(1, abs=0.1)
    # The tilt is reached half a step late; centre and far corner are both off by the length times that.
    assert np.all(poses <= 2 * length * np.abs(vs[-1, 2]) * steps / 2)
    # Where drift has lifted the corner off, a step goes without contact and without the torque about it:
    # the angular velocity misses 3 g / (4 l) sin(psi) dt, and as much by the delay.
    assert np.all(rates <= G / length * steps)


def test_box_lands_flat_and_stays():
    # A flat box (height < length / sqrt 2) that lands on its face stops dead: both corners get impulses.
    ref = Reference([0.6, 0.2], 1.5, 0.2)
    q = standing(ref, -0.6)
    stuck = [int(np.argmin(ref.gaps(q)))]
    steps, poses, _, impacts, _ = convergence(ref, q, stuck, 0.6)
    assert [i.active for i in impacts] == [[1, 3]]
    assert ref.margin > 0.2
    for counts in (1234, 6000):
        traj = run(
            models.block(dimension=2, size=ref.size, friction=1.5, slope=0.2, initial_q=q),
            0.6 / counts,
            counts,
        )
        assert np.abs(traj.v[-1]).max() < 1e-12
        held = traj.q[traj.t > impacts[0].time + 0.01]
        assert np.abs(held - held[-1]).max() < 1e-12
    assert 0.85 <= slope(steps, poses) <= 1.15
    # It stops up to a step and a half late, in an attitude off by what it turns in that time.
    far = np.linalg.norm(ref.size) * abs(impacts[0].before[2])
    assert np.all(poses <= 1.5 * far * steps)


def test_rocking_box_loses_what_housner_says():
    # A slender box rocks from corner to corner: the corner left gets no impulse, and the angular
    # velocity shrinks by (H^2 / 3 - L^2 / 6) / (H^2 / 3 + L^2 / 3) = 0.7.
    ref = Reference([0.2, 0.4], 1.0)
    q = standing(ref, -0.2)
    steps, poses, rates, impacts, (qs, vs) = convergence(ref, q, [1], 0.63)
    acceleration = np.abs(ref.acceleration(qs[-1], vs[-1], impacts[-1].stuck)[0]).max()
    assert [i.stuck for i in impacts] == [[3], [1], [3]]
    speeds = [abs(i.after[2]) for i in impacts]
    np.testing.assert_allclose(np.divide(speeds[1:], speeds[:-1]), 0.7, rtol=1e-8)
    assert 0.85 <= slope(steps, poses) <= 1.15
    assert np.all(rates <= LATE * acceleration * steps)
    # Impacts become ever more frequent and accumulate at 0.93 s; then the box stands.
    problem = models.block(dimension=2, size=ref.size, friction=1.0, initial_q=q)
    traj = run(problem, 1e-4, 20_000, every=1000)
    late = traj.t >= 1.0
    assert np.abs(traj.v[late]).max() < 1e-12
    assert np.abs(traj.q[late] - traj.q[late][0]).max() < 1e-12
    assert np.abs(traj.q[-1, 2]) < 3e-4  # upright: nothing of the 0.2 rad is left but a few steps' drift


def test_box_rolls_over_its_corners_in_space():
    # Released on one corner it falls onto a second, a third and a fourth; each sticks, the one before
    # lifts off, and between the impacts the box is a heavy top about the corner.
    ref = Reference([0.2, 0.25, 0.4], 1.0)
    q = standing(ref, [-0.2, 0.3, 0.1])
    steps, poses, rates, impacts, (qs, vs) = convergence(ref, q, [1], 0.45)
    acceleration = np.abs(ref.acceleration(qs[-1], vs[-1], impacts[-1].stuck)[0]).max()
    assert [i.stuck for i in impacts] == [[3], [7], [5]]
    assert ref.margin > 0.3
    assert 0.85 <= slope(steps, poses) <= 1.15
    assert np.all(rates <= LATE * acceleration * steps)


def test_planar_motion_in_space_is_that_of_the_plane():
    # The rocking box extended in y: four corners of two edges, whose forces depend on each other.
    flat = Reference([0.2, 0.4], 1.0)
    q = standing(flat, -0.2)
    plane = run(models.block(dimension=2, size=flat.size, friction=1.0, initial_q=q), 1e-3, 600)
    turned = Rotation.from_rotvec([0, 0.2, 0]).as_quat()[[3, 0, 1, 2]]  # +phi turns x to z, which is -y
    space = run(
        cuboid(size=np.array([0.2, 0.5, 0.4]), friction=1.0, initial_q=[q[0], 0, q[1], *turned]), 1e-3, 600
    )
    assert plane.impacts.sum() == 3
    np.testing.assert_allclose(space.q[:, [0, 2]], plane.q[:, :2], rtol=0, atol=1e-9)
    np.testing.assert_allclose(space.v[:, [0, 2]], plane.v[:, :2], rtol=0, atol=1e-8)
    np.testing.assert_allclose(-space.v[:, 4], plane.v[:, 2], rtol=0, atol=1e-8)
    assert np.abs(space.v[:, [1, 3, 5]]).max() < 1e-8


# ---------------------------------------------------------------------------- parallelepiped

FALL = {
    "restitution": 0.8,
    "friction": 0.0,
    "initial_q": [0, 0, 1, 1, 0, 0, 0],
    "initial_v": [3, 0, 0, 60, 60, 0],
}


@functools.cache
def one_impact():
    """Event-driven: time, corner, gap rates, impulse, state after, state at 0.69 s."""
    ref = Reference(SIZE, 0.0)
    y = np.concatenate([FALL["initial_q"], FALL["initial_v"]]).astype(float)

    def rate(t, y):
        return ref.rate(y, [])

    def touch(t, y):
        return ref.gaps(y[:7]).min()

    touch.terminal = True
    touch.direction = -1  # the flight after the impact may begin a rounding below the ground
    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-13}
    flight = solve_ivp(rate, (0, 0.69), y, events=touch, max_step=2e-3, **options)
    q, v = flight.y[:7, -1], flight.y[7:, -1]
    corner = int(np.argmin(ref.gaps(q)))
    row = ref.rows(q, v)[0][corner, -1]
    before = row @ v
    impulse = -1.8 * before / (row / ref.mass @ row)
    after = v + row / ref.mass * impulse
    last = solve_ivp(
        rate, (flight.t[-1], 0.69), np.concatenate([q, after]), events=touch, max_step=2e-3, **options
    )
    assert last.t[-1] == 0.69
    return flight.t[-1], corner, before, impulse, after, last.y[:7, -1], last.y[7:, -1]


def test_event_driven_reference_of_the_parallelepiped():
    # Two programs: the numbers of the specification and the integration of this file.
    time, corner, before, impulse, after, q, v = one_impact()
    assert time == pytest.approx(0.41528560, abs=5e-9)
    np.testing.assert_array_equal(SIGNS[3][corner], [1, -1, 1])
    assert before == pytest.approx(-13.061164, abs=5e-7)
    assert -0.8 * before == pytest.approx(10.448931, abs=5e-7)
    assert impulse == pytest.approx(500.757659, abs=5e-7)
    np.testing.assert_allclose(after[3:], [-20.279995, -25.405483, -30.626666], rtol=0, atol=5e-7)
    assert after[2] == pytest.approx(6.625998, abs=5e-7)
    np.testing.assert_allclose(q[:3], [2.07, 0, 1.6041598], rtol=0, atol=5e-8)
    np.testing.assert_allclose(v[3:], [2.480049, 38.575949, -17.492675], rtol=0, atol=5e-7)
    assert Reference(SIZE, 0.0).gaps(q)[corner] == pytest.approx(1.5154841, abs=5e-8)


# Published to four digits for these step sizes.
@pytest.mark.parametrize(
    ("dt", "published"), [(1e-3, 506.6), (5e-4, 512.9), (2.5e-4, 503.1), (1e-4, 502.4), (2.5e-5, 500.8)]
)
def test_impulse_of_the_parallelepiped(dt, published):
    steps = round(0.69 / dt)
    traj = run(cuboid(**FALL), dt, steps, every=steps)
    assert int(traj.events.count) == 1
    assert float(traj.events.impulse_normal[0]) == pytest.approx(published, abs=0.051)
    assert int(traj.events.contact[0]) == 2  # (+,-,+)


def test_parallelepiped_converges_with_order_one():
    time, corner, before, impulse, _, q, v = one_impact()
    counts = np.array([449, 547, 659, 797, 967, 1409, 2063, 3001, 4397, 6421, 9377, 13697, 20011])
    steps = 0.69 / counts
    errors = []
    for n in counts:
        traj = run(cuboid(**FALL), 0.69 / n, int(n), every=int(n))
        dt, events = 0.69 / n, traj.events
        assert int(events.count) == 1
        assert int(events.contact[0]) == corner
        # Noticed at the first midpoint below the plane, so within a step and a half.
        assert -0.1 * dt <= float(events.time[0]) - time <= 1.6 * dt
        # Newton's law is exact at that midpoint; the rate itself changes with the curvature of the path.
        rate = float(events.rate_before[0])
        assert float(events.rate_after[0]) == pytest.approx(-0.8 * rate, rel=1e-10)
        # 60 sqrt(2) rad/s at half a diagonal.
        assert abs(rate - before) <= 1.6 * dt * (7200 * np.linalg.norm(SIZE) / 2 + G)
        errors.append([
            abs(float(events.impulse_normal[0]) - impulse), abs(rate - before),
            np.abs(traj.v[-1, 3:] - v[3:]).max(), abs(traj.q[-1, 2] - q[2]),
            float(angle_between(traj.q[-1, 3:], q[3:])), abs(traj.v[-1, 2] - v[2]),
        ])  # fmt: skip
        np.testing.assert_allclose(traj.q[-1, :2], [2.07, 0], rtol=0, atol=1e-12)
        assert traj.gap_min.min() > -1.6 * dt * 13.1
    errors = np.array(errors)
    # Impulse, gap rate, height and its rate: all of them follow the time of the impact.
    for k in (0, 1, 3, 5):
        assert 0.85 <= slope(steps, errors[:, k]) <= 1.15
    # Attitude and angular velocity see the flight's error of second order (0.1 rad a step) as well.
    for k in (2, 4):
        assert 0.85 <= slope(steps, errors[:, k]) <= 1.25


# ------------------------------------------------------------------------------- free spinning

# A plate of this size and mass 12 has the moments of inertia 1, 2, 3; the plane is far below.
PLATE = {"size": np.array([np.sqrt(2.0), 1.0, 0.0]), "mass": 12.0, "gravity": 0.0, "ground": -1e3}
SPIN = np.array([0.3, 5.0, 0.2])


@functools.cache
def free_path(rows: int):
    def rate(t, y):
        p, w = y[:4], y[4:]
        turned = np.concatenate([[-p[1:] @ w], p[0] * w + np.cross(p[1:], w)]) / 2
        j = np.array([1.0, 2.0, 3.0])
        return np.concatenate([turned, np.cross(j * w, w) / j])

    times = np.linspace(0, 2, rows + 1)
    path = solve_ivp(
        rate, (0, 2), [1, 0, 0, 0, *SPIN], method="DOP853", rtol=3e-14, atol=3e-14, t_eval=times
    )
    return path.y[:4].T, path.y[4:].T


def spinning(force_velocity: str, steps: int, rows: int):
    problem = cuboid(**PLATE, initial_q=[0, 0, 0, 1, 0, 0, 0], initial_v=[0, 0, 0, *SPIN])
    if (
        force_velocity == "start"
    ):  # another program: without the contacts it compiles in a fifth of the time
        system = dataclasses.replace(
            problem.system, nc=0, nt=0, gap=None, slip=None, law=None, observe=None, labels=Labels()
        )
        problem = dataclasses.replace(problem, system=system)
    scheme = schemes.moreau(gap_tolerance=1e-12, force_velocity=force_velocity)
    return run(problem, 2 / steps, steps, every=steps // rows, scheme=scheme)


@pytest.mark.parametrize(
    ("force_velocity", "order", "attitude", "spin"),
    [("auto", 2, 3.1e-5, 1.3e-4), ("start", 1, 1.7e-2, 8.5e-2)],
)
def test_order_of_a_free_body(force_velocity, order, attitude, spin):
    p, w = free_path(25)
    np.testing.assert_allclose(w[-1], [-4.81412577, 1.38354367, 2.78123515], rtol=0, atol=5e-9)
    np.testing.assert_allclose(p[-1], [0.22163858, 0.12989281, -0.74757703, -0.61248084], rtol=0, atol=5e-9)
    counts = 25 * np.array([24, 32, 44, 60, 84, 116, 160, 224])  # dt from 3.3e-3 to 3.6e-4
    errors = []
    for n in counts:
        traj = spinning(force_velocity, int(n), 25)
        errors.append([angle_between(traj.q[:, 3:], p).max(), np.abs(traj.v[:, 3:] - w).max()])
        if n == 800:  # dt = 0.0025, the figures of `rotations.md` section 7, two digits
            assert errors[-1] == [pytest.approx(attitude, rel=0.04), pytest.approx(spin, rel=0.04)]
    errors = np.array(errors)
    for column in errors.T:
        assert slope(2 / counts, column) == pytest.approx(order, abs=0.1)


def test_explicit_gyroscopic_torque_feeds_energy():
    # With the force at the start of the step each step adds exactly dt^2 / 2 tau J^-1 tau.
    traj = spinning("start", 800, 800)
    j, w = np.array([1.0, 2.0, 3.0]), traj.v[:, 3:]
    torque = np.cross(j * w, w)
    energy = np.sum(j * w**2, axis=1) / 2
    gain = np.cumsum(np.sum(torque**2 / j, axis=1))[:-1] * (2 / 800) ** 2 / 2
    np.testing.assert_allclose(energy[1:] - energy[0], gain, rtol=1e-10, atol=1e-12)
    assert 4e-3 < energy[-1] / energy[0] - 1 < 6e-3  # `rotations.md`: +0.5 %


FAST = {
    "gravity": 0.0,
    "ground": -1e3,
    "mass": 12.0,
    "size": np.sqrt([0.05, 0.15, 0.35]),
}  # J = 0.5, 0.4, 0.2


def test_fast_spin_keeps_its_energy():
    # 1e4 steps with |Omega| dt = 0.2 about the first axis (stable) and the second (tumbling).
    dt = 1e-2
    for axis in (0, 1):
        spin = np.full(3, 0.02)
        spin[axis] = 20.0
        problem = cuboid(**FAST, initial_q=[0, 0, 0, 1, 0, 0, 0], initial_v=[0, 0, 0, *spin])
        traj = run(problem, dt, 10_000, every=10)
        energy = traj["kinetic"]
        length = np.sqrt(np.sum(traj.q[:, 3:].astype(np.longdouble) ** 2, axis=1))
        # `rotations.md` section 7: +7e-7 and +2.3e-2; the small other components are not given there.
        assert 0 < energy[-1] / energy[0] - 1 < (2e-6, 3e-2)[axis]
        assert np.abs(length - 1).max() <= 2 * EPS


def test_quaternion_stays_a_unit_quaternion():
    problem = cuboid(**PLATE, initial_q=[0, 0, 0, 1, 0, 0, 0], initial_v=[0, 0, 0, *SPIN])
    traj = run(problem, 1e-3, 100_000, every=25)
    length = np.sqrt(np.sum(traj.q[:, 3:].astype(np.longdouble) ** 2, axis=1))
    assert np.abs(length - 1).max() <= 2 * EPS
    assert np.all(traj.q[:, :3] == 0)


def test_steady_spin_is_exact():
    # About a principal axis: the attitude is exp(Omega t), 20 turns.
    problem = cuboid(**PLATE, initial_q=[0, 0, 0, 1, 0, 0, 0], initial_v=[0, 0, 0, 0, 0, 7.0])
    traj = run(problem, 1e-2, 1800, every=18)
    exact = Rotation.from_rotvec(np.outer(traj.t, [0, 0, 7.0])).as_quat()[:, [3, 0, 1, 2]]
    # Rounding of t and of 1800 products; an angle of 126 rad is itself known to 1e-14.
    assert angle_between(traj.q[:, 3:], exact).max() <= 1e-12
    np.testing.assert_array_equal(traj.v[:, 3:], np.broadcast_to([0, 0, 7.0], (101, 3)))


# ---------------------------------------------------------------------------------- gradients


def toss(dimension: int, x):
    """A box that hits the plane once; x: initial angular velocity, friction."""
    if dimension == 3:
        start = jnp.concatenate([jnp.array([3.0, 0.0, 0.0]), x[:3]])
        return cuboid(**{**FALL, "initial_v": start, "friction": x[3]})
    start = jnp.concatenate([jnp.array([1.0, -3.0]), x[:1]])
    return models.block(
        dimension=2, initial_q=[0, 0.4, 0.5], initial_v=start, restitution=0.6, friction=x[1]
    )


@pytest.mark.parametrize("dimension", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_derivatives_of_a_toss(dimension):
    # Forward and reverse through an impact with friction: finite, and the same.
    def height(x):
        # Thrown at 3 m/s from 0.4 m the planar box hits after 0.1 s, the other after 0.415 s.
        problem, dt = toss(dimension, x), {2: 1e-3, 3: 2e-3}[dimension]
        traj = nsjax.simulate(*problem, schemes.moreau(), dt=dt, steps=240, every=240, save=["impacts"])
        return traj.q[-1, dimension - 1], traj.impacts.sum()

    @jax.jit
    def both(x):
        gradient, impacts = jax.grad(height, has_aux=True)(x)
        return gradient, jax.jacfwd(lambda x: height(x)[0])(x), impacts

    x = jnp.array([60.0, 60.0, 0.0, 0.1] if dimension == 3 else [5.0, 0.02])  # it slides
    gradient, forward, impacts = both(x)
    assert impacts == 1
    assert np.all(np.isfinite(gradient))
    assert np.all(gradient != 0)
    np.testing.assert_allclose(forward, gradient, rtol=1e-9)
