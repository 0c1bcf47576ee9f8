"""The nonsmooth generalized-alpha family against closed forms; figures of `nsga.md` sections 9 and 10."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import ContactLaw, InputError, State, System, models, schemes
from tests.points import unit_mass

G = 9.81
NAMES = ("nsga_decoupled", "nsga_neglected", "nsga_coupled")

# ------------------------------------------------ a sphere on a rough slope; a point for radius zero


def sphere_mass(q, p):
    return jnp.stack([p["mass"], p["mass"], p["inertia"]])[:, None] * np.eye(3)


def sphere_force(t, q, v, p):
    weight = p["mass"] * p["gravity"]
    return jnp.stack([weight * jnp.sin(p["slope"]), -weight * jnp.cos(p["slope"]), 0.0 * weight])


def sphere_gap(t, q, p):
    return q[1:2]


def sphere_slip(t, q, v, p):
    return (v[0] - p["radius"] * v[2]).reshape(1, 1)


def sphere_law(p):
    return ContactLaw(restitution=p["restitution"], friction=p["friction"])


SPHERE = System(
    nq=3, nv=3, nc=1, nt=1, mass=sphere_mass, force=sphere_force, gap=sphere_gap, slip=sphere_slip,
    law=sphere_law,
)  # fmt: skip
DATA = {
    "mass": 1.5, "inertia": 0.4 * 1.5 * 0.05**2, "gravity": G, "slope": 0.0, "radius": 0.0,
    "restitution": 0.0, "friction": 0.0,
}  # fmt: skip


def sphere(scheme, dt: float, steps: int, v=(0.0, 0.0, 0.0), z: float = 0.0, **changes):
    state = State(t=0.0, q=np.array([0.0, z, 0.0]), v=np.array(v))
    traj = nsjax.simulate(SPHERE, {**DATA, **changes}, state, scheme, dt=dt, steps=steps)
    traj.raise_for_status()
    return traj


@pytest.mark.slow
def test_sliding_block_stops_half_a_step_late():
    scheme = schemes.nsga_decoupled(creep_correction=False)
    for dt in (0.01, 0.003):
        traj = sphere(scheme, dt, int(1.0 / dt), v=(2.0, 0.0, 0.0), friction=0.3)
        stop = 2.0**2 / (2 * 0.3 * G)
        assert traj.v[-1, 0] == pytest.approx(0.0, abs=1e-12)
        # the velocity is exact until the last step; what that one lacks is of second order
        assert traj.q[-1, 0] - stop == pytest.approx(0.5 * dt * 2.0, abs=0.5 * 0.3 * G * dt**2)


@pytest.mark.slow
@pytest.mark.parametrize(("correction", "length"), [(False, 1.0), (True, 0.02)])
def test_sticking_block_creeps_without_the_correction(correction, length):
    """By ``h/2 g sin(slope)`` per second; corrected, in the first step alone, before any force is known."""
    scheme = schemes.nsga_decoupled(creep_correction=correction)
    pull, dt = G * np.sin(np.deg2rad(15.0)), 0.02
    traj = sphere(scheme, dt, 50, slope=np.deg2rad(15.0), friction=0.5)
    np.testing.assert_allclose(traj.v[1:, 0], 0.0, atol=1e-13)  # rounding of velocities of g dt
    assert traj.q[-1, 0] == pytest.approx(0.5 * dt * pull * length, rel=1e-9)  # the solver's tolerance
    np.testing.assert_allclose(traj.force_tangential[1:, 0, 0], -1.5 * pull, rtol=1e-9)


@pytest.mark.slow
def test_sliding_down_a_slope_has_the_exact_velocity():
    angle = np.deg2rad(35.0)
    traj = sphere(schemes.nsga_decoupled(), 0.02, 50, slope=angle, friction=0.5)
    exact = G * (np.sin(angle) - 0.5 * np.cos(angle))
    assert exact == pytest.approx(1.608844, abs=5e-7)
    assert traj.v[-1, 0] == pytest.approx(exact, rel=1e-9)  # the solver's tolerance, 50 times


@pytest.mark.parametrize(
    ("friction", "v", "impulse"),
    [
        (0.05, (1.925, 0.5, -6.25), -0.1125),
        (0.8, (9 / 7, 0.5, 180 / 7), -7.5 / 7),
    ],
    ids=["slip", "stick"],
)
def test_impact_of_a_spinning_sphere(friction, v, impulse):
    traj = sphere(
        schemes.nsga_decoupled(), 1e-3, 1, v=(2.0, -1.0, -10.0), z=5e-4, gravity=0.0, radius=0.05,
        restitution=0.5, friction=friction,
    )  # fmt: skip
    # the solver's tolerance, ten times
    np.testing.assert_allclose(traj.v[-1], v, rtol=1e-10)
    np.testing.assert_allclose(traj.impulse_normal[-1], 2.25, rtol=1e-10)
    np.testing.assert_allclose(traj.impulse_tangential[-1], [[impulse]], rtol=1e-10)


def test_impulse_of_an_impact_does_not_act_on_the_flight_behind_it():
    traj = sphere(
        schemes.nsga_decoupled(), 1e-3, 4, v=(2.0, -1.0, -10.0), z=5e-4, gravity=0.0, radius=0.05,
        restitution=0.5, friction=0.8,
    )  # fmt: skip
    assert traj.impacts.sum() == 1
    # without forces: straight on, to rounding of positions of 1e-2 m
    np.testing.assert_allclose(np.diff(traj.q[1:], axis=0), 1e-3 * np.asarray(traj.v[1:-1]), atol=1e-16)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_slider_does_not_turn_between_its_walls(name):
    """Both corners of a wall strike and slide together: friction alone must not single one out."""
    problem = models.slider_crank()  # friction 0.01
    traj = nsjax.simulate(*problem, getattr(schemes, name)(), dt=1e-4, steps=1000)
    traj.raise_for_status()
    assert np.abs(traj.impulse_tangential).max() > 1e-4
    # 3.5e-3 rad where a tangential impulse acts on positions of corners that are open or hardly loaded
    assert np.abs(traj.q[:, 2]).max() < 1e-12


def test_rebound_and_rest_without_penetration():
    traj = sphere(schemes.nsga_decoupled(), 2.3e-3, 1500, z=0.3, restitution=0.8)
    first = int(np.flatnonzero(traj.impulse_normal[:, 0])[0])
    # Newton's law refers to the velocity at the start of the step of the impact
    assert traj.v[first, 1] == pytest.approx(-0.8 * traj.v[first - 1, 1], rel=1e-12)
    assert traj.gap.min() >= -1e-12
    np.testing.assert_array_equal(np.abs(traj.q[-200:, 1]) < 1e-12, True)


# ------------------------------------------------------------------- a pendulum with a constraint


def pendulum_force(t, q, v, p):
    return jnp.stack([0.0 * q[0], 0.0 * q[0] - G])


def pendulum_rod(t, q, p):
    return 0.5 * (jnp.sum(q * q) - 1.0)[None]


PENDULUM = System(
    nq=2, nv=2, nb=1, mass=unit_mass, force=pendulum_force, constraint=pendulum_rod
)  # fmt: skip
START = State(t=0.0, q=np.array([1.0, 0.0]), v=np.array([0.0, 0.0]))


@pytest.mark.slow
def test_scale_of_the_multipliers_changes_nothing():
    runs = [
        nsjax.simulate(PENDULUM, (), START, schemes.nsga_decoupled(mass_scale=m), dt=1e-2, steps=100)
        for m in (0.1, 1.0, 10.0)
    ]
    for other in (runs[0], runs[2]):
        np.testing.assert_allclose(other.q, runs[1].q, atol=1e-8)  # tolerance 1e-10, 100 steps


# ---------------------------------------------------------------------------- variants and refusals


def test_registry_and_schemes_agree_on_singular_masses():
    for entry in schemes.REGISTRY.values():
        assert entry.factory().traits.singular_mass == entry.singular_mass


def test_refusals():
    with pytest.raises(InputError, match="nsga_coupled: iteration = 'newton'; choose one of block, mono"):
        schemes.nsga_coupled(iteration="newton")
    problem = models.block(formulation="nodes", **models.SPINNING_BLOCK)
    with pytest.raises(
        InputError, match="'moreau' needs inertia for every velocity; the nsga schemes take"
    ):
        nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=1)
    with pytest.raises(
        InputError, match="formulation = 'nodal' with dimension = 3; choose one of rotation"
    ):
        models.block(formulation="nodal")
    labels = dataclasses.replace(problem.system.labels, constraints=())
    loose = dataclasses.replace(problem.system, nb=0, constraint=None, labels=labels)
    with pytest.raises(InputError, match="mass is not positive definite"):
        nsjax.simulate(loose, problem.params, problem.state, schemes.nsga_decoupled(), dt=1e-3, steps=1)


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_box_sticks_on_a_slope_on_its_corners(dimension):
    """Their rows are dependent: what each corner carries is not unique, the motion is."""
    problem = models.block(dimension=dimension, slope=0.3)
    traj = nsjax.simulate(*problem, schemes.nsga_decoupled(), dt=1e-2, steps=20)
    traj.raise_for_status()
    weight = problem.params.mass * G
    # the solver's tolerance
    np.testing.assert_allclose(traj.v, 0.0, atol=1e-11)
    np.testing.assert_allclose(traj.force_normal[1:].sum(axis=1), weight * np.cos(0.3), rtol=1e-10)
    tangential = np.asarray(traj.force_tangential[1:]).sum(axis=(1, 2))
    np.testing.assert_allclose(tangential, -weight * np.sin(0.3), rtol=1e-10)
