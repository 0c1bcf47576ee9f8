"""Derivatives at single events against closed forms and event-driven motions, over many step sizes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import State, System, gradient_notes, models, schemes
from nsjax.contact import ContactLaw
from tests.design import each_family, slow_but
from tests.gradients import mechanism, spatial
from tests.gradients.program import primes_near, sensitivity, slope
from tests.points import no_force, unit_mass

GRID = primes_near(709, 5, 10)
"""Step counts from 700 to 22 000, ten primes per octave: dt below 1e-3 s."""
SLOW = pytest.mark.slow


def turning(name: str, vy: float) -> tuple[np.ndarray, np.ndarray]:
    """Relative errors (grid) of d v_x / d `spatial.NAMES` and the notes of the runs."""
    exact = spatial.reference(vy)[1][0]
    scheme = schemes.REGISTRY[name].factory()
    found, bits = [], []
    for n in GRID.ravel():
        run = sensitivity(
            spatial.SYSTEM, spatial.build, scheme, spatial.vector(vy), spatial.DATA["time"], n
        )
        found.append(np.linalg.norm(run.jacobian[3, :5] - exact[:5]) / np.linalg.norm(exact[:5]))
        bits.append(run.notes)
    return np.reshape(found, GRID.shape), np.reshape(bits, GRID.shape)


@each_family("name")
@pytest.mark.parametrize("vy", [0.0, 0.3])
def test_a_slide_that_turns_in_space(name: str, vy: float) -> None:
    """Straight up a slope and back, and past the turn at a distance that steps resolve."""
    errors, bits = turning(name, vy)
    assert slope(errors, GRID) >= 0.9
    assert np.max(errors) < 5e-3
    assert not np.any(bits & gradient_notes.SERIOUS)


@each_family("name")
@pytest.mark.parametrize("vy", [1e-3, 0.02])
def test_a_turn_that_a_step_does_not_resolve_is_noted(name: str, vy: float) -> None:
    """Without a note, the derivative is that of the motion to first order; elsewhere it is bounded."""
    errors, bits = turning(name, vy)
    quiet = (bits & gradient_notes.KINK) == 0
    assert np.all(errors[quiet] * GRID[quiet] < 60.0)
    assert np.all(errors < 0.25)
    assert np.any(quiet) == (vy > 0.01)


@SLOW
def test_localized_at_both_corners_of_a_wall() -> None:
    """The slider-crank strikes with both corners at one instant: located, of second order."""
    exact, _ = mechanism.reference(0.004)
    errors = []
    for n in (401, 809, 1607):
        found = sensitivity(
            mechanism.SYSTEM, mechanism.build, schemes.localized(schemes.generalized_alpha()),
            mechanism.BASE, 0.004, n,
        )  # fmt: skip
        assert not found.notes & gradient_notes.UNLOCATED
        columns = found.jacobian[mechanism.ANGLES] - exact
        errors.append(np.max(np.linalg.norm(columns, axis=0) / np.linalg.norm(exact, axis=0)))
    assert errors[-1] < 1e-3
    assert errors[0] / errors[-1] > 8.0


def spring(t, q, v, p):
    """Natural frequency p["w"]."""
    return -(p["w"] ** 2) * q


def between(t, q, p):
    """Three balls in a row: first gap, second gap."""
    return jnp.stack([q[1] - q[0] - 0.1, q[2] - q[1] - 0.1])


def before_wall(t, q, p):
    return p["wall"] - q


def bounce(p):
    return ContactLaw(restitution=1.0)


ROW = System(nq=3, nv=3, nc=2, nt=0, mass=unit_mass, force=no_force, gap=between, law=bounce)
OSCILLATOR = System(nq=1, nv=1, nc=1, nt=0, mass=unit_mass, force=spring, gap=before_wall, law=bounce)


@each_family("name")
def test_a_touching_ball_without_load_is_noted(name: str) -> None:
    """The motion is discontinuous in the second gap: the impulse is shared, or passed on."""
    scheme = schemes.REGISTRY[name].factory()
    for gap, noted in ((0.0, True), (0.05, False)):
        state = State(t=0.0, q=np.array([-0.3, 0.0, 0.1 + gap]), v=np.array([1.0, 0.0, 0.0]))
        traj = nsjax.simulate(ROW, {}, state, scheme, dt=1.7e-3, steps=240, every=240, save=["notes"])
        assert bool(np.any(np.asarray(traj.notes) & gradient_notes.COUPLED)) == noted


@each_family("name")
def test_an_oscillator_that_grazes_is_noted(name: str) -> None:
    """A wall at its amplitude, just before it and just behind it; not where it is hit or missed clearly."""
    scheme = schemes.REGISTRY[name].factory()
    state = State(t=0.0, q=np.zeros(1), v=np.array([1.0]))
    for n in (211, 503, 1009):
        for excess, grazes in ((0.0, True), (1e-9, True), (-1e-9, True), (0.1, False), (-0.1, False)):
            params = {"w": 2.0, "wall": np.array([0.5 + excess])}
            lengths = {"dt": 1.2 / n, "steps": n, "every": n}
            traj = nsjax.simulate(OSCILLATOR, params, state, scheme, notes=True, **lengths)
            assert bool(np.any(np.asarray(traj.notes) & gradient_notes.GRAZING)) == grazes, (n, excess)
            near = float(np.min(np.asarray(traj.margin)))
            assert near < 30.0 if grazes else near > 30.0


TIMED = {
    "moreau": schemes.moreau(),
    "generalized_alpha": schemes.generalized_alpha(),
    "localized": schemes.localized(schemes.moreau()),
}


@pytest.mark.parametrize("name", slow_but(TIMED, "moreau"))
def test_times_of_impacts_have_derivatives(name: str) -> None:
    """Of a ball dropped from a height, with a second impact: t1 = sqrt(2 h / g), t2 = t1 (1 + 2 e)."""

    def times(x, scheme):
        problem = models.bouncing_ball(radius=0.0, height=x[0], gravity=x[1], restitution=x[2])
        return nsjax.simulate(*problem, scheme, dt=1e-3, steps=1200, every=1200, events=3).events.time

    def exact(x):
        first = jnp.sqrt(2.0 * x[0] / x[1])
        return jnp.stack([first, first * (1.0 + 2.0 * x[2])])

    x = jnp.array([1.0, 9.81, 0.7])
    found = np.asarray(jax.jacfwd(lambda x: times(x, TIMED[name]))(x))
    # the speed at an impact is off by a step of acceleration
    np.testing.assert_allclose(found[:2], jax.jit(jax.jacfwd(exact))(x), rtol=1e-2, atol=2e-3)
    assert np.all(np.isfinite(found))


@SLOW
def test_check_gradient_tells_of_grazing() -> None:
    """The default slider-crank is grazed at 0.0509 s, as it is released while it bounces."""
    problem = models.slider_crank()
    run = {"parameters": ["clearance"], "outputs": ["theta2"], "dt": 1e-5, "time": 0.1, "samples": 7}
    found = nsjax.check_gradient(problem, schemes.generalized_alpha(), **run)
    assert any("grazed" in sentence for sentence in found.notes)
