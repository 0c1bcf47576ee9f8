"""The slider-crank models: mechanics against energies and rotated corners, motion against references."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from tests.models.closed_phase import Motion
from tests.models.slider_crank_cases import FRICTION, INSTANTS, reference
from tests.references import slope
from tests.references.slider_crank import Data, bilateral

# The slider-crank models: mechanics against energies and rotated corners, motion against references.
# Steps per 5 ms: primes between 1e-4 and 1e-6 s, so that no grid refines another one. Impacts fall on
# another fraction of a step in each of them, which is what scatters single pairs.
GRIDS = (53, 61, 73, 89, 103, 127, 149, 179, 211, 251, 307, 367, 433, 521, 617, 739, 877, 1051, 1249,
         1493, 1777, 2113, 2521, 2999, 3571, 4253, 4999)  # fmt: skip


def moreau_run(grid: int, **numbers) -> nsjax.Trajectory:
    """Rows at `INSTANTS`."""
    problem = models.slider_crank(**numbers)
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=0.005 / grid, steps=10 * grid, every=grid, save=[])
    traj.raise_for_status()
    return traj


# ----------------------------------------------------------------------------------- mechanics


def some_parameters(rng: np.random.Generator) -> dict[str, float]:
    """All numbers different, so that none can stand for another one."""
    names = ("crank_length", "rod_length", "half_length", "half_height", "clearance", "crank_mass",
             "rod_mass", "slider_mass", "crank_inertia", "rod_inertia", "slider_inertia", "gravity",
             "torque")  # fmt: skip
    return dict(zip(names, rng.uniform(0.3, 2.0, len(names)).tolist(), strict=True))


def bodies(q, p):
    """Centres of mass of crank, rod and slider in the plane."""
    direction = lambda a: jnp.stack([jnp.cos(a), jnp.sin(a)])  # noqa: E731
    joint = p.crank_length * direction(q[0])
    return (
        p.crank_length / 2 * direction(q[0]),
        joint + p.rod_length / 2 * direction(q[1]),
        joint + p.rod_length * direction(q[1]),
    )


@jax.jit
def from_energies(q, v, p):
    """Mass matrix, force and potential energy by Lagrange's equations from the energies of the bodies."""
    masses = p.crank_mass, p.rod_mass, p.slider_mass
    turns = [getattr(p, f"{body}_inertia") for body in ("crank", "rod", "slider")[: q.shape[0]]]

    def kinetic(q, v):
        velocities = jax.jvp(lambda q: bodies(q, p), (q,), (v,))[1]
        moving = sum(m * jnp.sum(u**2) for m, u in zip(masses, velocities, strict=True))
        return (moving + sum(j * w**2 for j, w in zip(turns, v, strict=True))) / 2

    def potential(q):
        return p.gravity * sum(m * c[1] for m, c in zip(masses, bodies(q, p), strict=True))

    momentum = jax.grad(kinetic, argnums=1)
    # d/dt (dT/dv) at constant v is the part that goes to the right-hand side.
    turning = jax.jvp(lambda q: momentum(q, v), (q,), (v,))[1]
    force = (jax.grad(kinetic)(q, v) - turning - jax.grad(potential)(q)).at[0].add(p.torque)
    return jax.hessian(kinetic, argnums=1)(q, v), force, potential(q)


@pytest.mark.parametrize(
    "factory", [models.slider_crank_bilateral, pytest.param(models.slider_crank, marks=pytest.mark.slow)]
)
def test_mass_force_and_potential_follow_from_energies(factory):
    rng = np.random.default_rng(1)
    for _ in range(5):
        numbers = some_parameters(rng)
        if factory is models.slider_crank_bilateral:
            for name in ("half_length", "half_height", "clearance", "slider_inertia"):
                del numbers[name]
        system, p, _ = factory(**numbers)
        q, v = rng.uniform(-np.pi, np.pi, system.nq), rng.uniform(-3, 3, system.nv)
        mass, force, potential = from_energies(q, v, p)
        np.testing.assert_allclose(system.mass(q, p), mass, rtol=0, atol=1e-13)
        np.testing.assert_allclose(system.force(0.3, q, v, p), force, rtol=0, atol=1e-12)
        assert float(system.potential(0.3, q, p)) == pytest.approx(float(potential), abs=1e-12)


def test_contacts_are_named_in_the_order_of_the_corners():
    system, p, _ = models.slider_crank()
    # A small turn to the left lifts the right corners: upper right nears its wall, lower left its own.
    gaps = np.asarray(system.gap(0.0, np.array([0.0, 0.0, 1e-3]), p))
    near = {system.labels.contacts[k] for k in np.flatnonzero(gaps < p.clearance)}
    assert near == {"upper right", "lower left"}


def test_check_values_of_table_1():
    problem = models.slider_crank()
    mass = np.asarray(problem.system.mass(problem.state.q, problem.params))
    assert mass[0, 0] == pytest.approx(2.9650115e-3, abs=1e-12)
    assert mass[1, 1] == pytest.approx(8.595878e-3, abs=1e-12)
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-5, steps=1)
    assert traj["energy"][0] == pytest.approx(7.4955, abs=5e-5)
    assert traj["y"][0] == 0.0
    assert np.asarray(problem.system.gap(0.0, problem.state.q, problem.params)) == pytest.approx(1e-3)


def test_guide_is_the_height_of_the_slider():
    system, p, _ = models.slider_crank_bilateral()
    q = np.array([0.7, -1.2])
    height = p.crank_length * np.sin(q[0]) + p.rod_length * np.sin(q[1])
    assert float(system.constraint(0.0, q, p)[0]) == pytest.approx(height, abs=1e-15)


# ------------------------------------------------------------- motion with clearance, Moreau


@pytest.mark.slow
@FRICTION
def test_moreau_converges_to_the_event_driven_motion(friction):
    ref = reference(friction)
    runs = [moreau_run(grid, friction=friction) for grid in GRIDS]
    steps = [0.005 / grid for grid in GRIDS]
    angles = np.array([np.abs(run.q[1:, :2] - ref.x[:, :2]) for run in runs])
    for angle in (0, 1):
        assert 0.85 <= slope(steps, angles[:, -1, angle]) <= 1.15  # at 0.05 s
        assert 0.85 <= slope(steps, angles[:, :, angle].max(axis=1)) <= 1.15
    # Velocities: no single instant serves. Impact times are wrong by tens to hundreds of steps late in
    # an accumulation, and a velocity is wrong by its whole jump while an impact lies between its two
    # times; 0.05 s is such an instant (true impacts at 49.4 and 50.1 ms). The mean over instants converges.
    rates = np.array([np.abs(run.v[1:, :2] - ref.x[:, 2:]).mean(axis=0) for run in runs])
    for angle in (0, 1):
        assert 0.85 <= slope(steps, rates[:, angle]) <= 1.15


@FRICTION
@pytest.mark.parametrize("dt", [1e-4, 1e-5, 1e-6])
def test_first_impact_step(friction, dt):
    # The contact acts in the first step whose midpoint penetrates: that midpoint is at most one step
    # away from the impact (the list gives the end of the step).
    time = reference(friction).first("impact").time
    problem = models.slider_crank(friction=friction)
    traj = nsjax.simulate(
        *problem, schemes.moreau(), dt=dt, steps=int(0.003 / dt), events=4, save=["impulse_normal"]
    )
    first = traj.events
    assert abs(float(first.time[0]) - dt / 2 - time) <= dt
    assert [int(k) for k in first.contact[:2]] == [0, 1]
    assert int(first.count) == 2
    assert float(first.rate_before[0]) == pytest.approx(reference(friction).first("impact").before, rel=0.1)
    np.testing.assert_allclose(first.rate_after[:2], -0.4 * np.asarray(first.rate_before[:2]), rtol=1e-9)
    assert first.impulse_normal[0] == pytest.approx(traj.impulse_normal[:, 0].sum(), rel=1e-12)


def test_every_contact_problem_of_a_long_run_is_solved():
    for friction in (0.0, 0.01):
        problem = models.slider_crank(friction=friction)
        for dt in (1e-4, 1e-5, 1e-6):
            steps = round(0.2 / dt)
            traj = nsjax.simulate(*problem, schemes.moreau(), dt=dt, steps=steps, every=steps // 200)
            assert int(traj.status) == 0
            assert traj.residual.max() < 1e-10
            assert traj.iterations.sum() > 0
            assert int(traj.first_failure.step) == -1


# ------------------------------------------------------------------------ the bilateral model


@pytest.mark.parametrize(
    ("friction", "closure", "release", "theta2"),
    [(0.0, 9.1304e-3, 15.0203e-3, 0.5252027332), (0.01, 9.1456e-3, 15.0287e-3, 0.5254706685)],
)
def test_reference_figures(friction, closure, release, theta2):
    # Printed figures of another event-driven integration, to their last digit.
    ref = reference(friction)
    assert ref.first("impact").time == pytest.approx(2.6925027520e-3, abs=6e-14)
    assert ref.first("closure").time == pytest.approx(closure, abs=6e-8)
    assert ref.first("release").time == pytest.approx(release, abs=6e-8)
    assert ref.first("closure").wall == ref.first("release").wall == 1
    assert ref.x[-1, 1] == pytest.approx(theta2, abs=6e-11)


def test_bilateral_reference_figures():
    x, force = bilateral(Data(), INSTANTS)
    np.testing.assert_allclose(x[-1, :2], [4.809238135, 0.520895295], rtol=0, atol=6e-10)
    np.testing.assert_allclose(x[-1, 2:], [68.74950942, -3.832215405], rtol=0, atol=6e-9)
    assert force[-1] == pytest.approx(-0.49204960, abs=6e-9)


# The driven flexible slider-crank with two modes beside an event-driven integration, into the phase in
# which its slider first stays on a wall.
#
# Table 2 but for the restitution: with its 0.1 the rod, which the impact makes vibrate, lifts the slider
# again and again, and no phase is closed before 11 ms. Plastic, both lower corners stay for 0.12 ms.
INSIDE, END = 7.6e-3, 8e-3
NUMBERS = {**models.TABLE_2, "restitution": 0.0, "elements": 2, "modes": 2}


@functools.cache
def resolved():
    """First contact with its corners, the state inside the closed phase with its forces, opening."""
    motion = Motion(models.slider_crank_flexible(**NUMBERS))
    t, x, on = motion.fly(END)
    after = motion.struck(t, x, on)
    inside, state, opened = motion.slide(t, after, on, INSIDE)
    assert not opened
    forces = motion.forces(inside, state, on)[0]
    opening, _, opened = motion.slide(inside, state, on, END)
    assert opened
    return t, on, state, forces, opening


@pytest.mark.slow
def test_motion_through_the_first_closed_phase():
    first, on, state, forces, opening = resolved()
    assert first == pytest.approx(7.5200e-3, abs=5e-7)  # slider_crank.md, rigid: 7.5201 ms
    assert on.tolist() == [2, 3]
    dt = 1e-6
    traj = nsjax.simulate(
        *models.slider_crank_flexible(**NUMBERS), schemes.bathe(), dt=dt, steps=round(7.63e-3 / dt)
    )
    traj.raise_for_status()
    hit = np.flatnonzero(np.asarray(traj.impacts).any(axis=1))
    assert abs(float(traj.t[hit[0]]) - first) < 1.5 * dt
    row = round(INSIDE / dt)
    found = np.concatenate([np.asarray(traj.q)[row], np.asarray(traj.v)[row]])
    n = len(found) // 2
    # an impact answered within two steps leaves the rod's 0.43 rad/s (0.13 m/s over its length) for so long
    np.testing.assert_allclose(found[:n], state[:n], atol=2 * dt * 0.43)
    # and in the vibration that it raises, of less than 5 kHz
    late = 2 * dt * 0.43 * 2 * np.pi * 5e3
    np.testing.assert_allclose(found[n : n + 3], state[n : n + 3], atol=late)
    np.testing.assert_allclose(np.asarray(traj.force_normal)[row, on], forces, rtol=0.02)
    closed = np.asarray(traj.force_normal)[hit[0] + 1 :, on]
    held = np.asarray(traj.t)[hit[0] + 1 :] < opening - dt
    assert np.all(closed[held] > 0.0)
