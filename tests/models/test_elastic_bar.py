"""The bar against the exact wave solution of a bar that meets a rigid wall."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes

SPEED, WAVE, LENGTH = 10.0, 30.0, 10.0
PASSAGE = LENGTH / WAVE


def exact(t: np.ndarray, x: np.ndarray, touch: float) -> tuple[np.ndarray, np.ndarray]:
    """Displacements and velocities (times, places) of the continuum; ``x`` counts from the tip.

    d'Alembert: a wave that stops the particles runs in with the speed of sound, is reflected at the free
    end, and takes them with it on its way back.
    """
    tau = np.clip(t - touch, 0.0, 2 * PASSAGE)[:, None]
    stopped = np.clip(tau - x / WAVE, 0.0, None)  # how long ago the front passed
    returned = np.clip(tau - (2 * LENGTH - x) / WAVE, 0.0, None)
    v = np.where(returned > 0, -SPEED, np.where(stopped > 0, 0.0, SPEED))
    u = SPEED * np.minimum(t, touch)[:, None] + SPEED * (tau - stopped - returned)
    after = np.clip(t - touch - 2 * PASSAGE, 0.0, None)[:, None]
    return u - SPEED * after, np.where(after > 0, -SPEED, v)


def run(scheme, elements: int, courant: float):
    """1.5 s with steps of ``courant`` times the time of a wave through an element, and the time of touch:
    just before the end of a step, so that no error of its detection hides that of the mesh.
    """
    dt = courant * LENGTH / elements / WAVE
    touch = (round(0.5 / dt) - 0.01) * dt
    problem = models.elastic_bar(elements=elements, distance=SPEED * touch)
    traj = nsjax.simulate(*problem, scheme, dt=dt, steps=round(1.5 / dt))
    traj.raise_for_status()
    return traj, touch


def check(traj, touch: float, elements: int, lag: float) -> float:
    """Duration, impulse, plateau of the force, rebound; returns the mean error of the displacements."""
    size, dt = LENGTH / elements, float(traj.t[1])
    t, impulse = np.asarray(traj.t), np.asarray(traj.impulse_normal)[:, 0]
    on = np.flatnonzero(impulse > 0)
    assert 0.0 < t[on[0]] - touch < 0.02 * dt
    # dispersion releases the tip up to the passage of an element or two early
    assert abs(t[on[-1]] - (touch + 2 * PASSAGE)) < 1.5 * dt + 2 * size / WAVE
    momentum = np.asarray(traj["momentum"])
    assert momentum[0] == pytest.approx(100.0)
    # exact balance; the acceleration of generalized-alpha follows the force with a lag of a step or two
    assert momentum[0] - momentum[-1] == pytest.approx(impulse.sum(), rel=lag)
    # the first impulse stops one node, a share of 1 / (2 elements) of the bar without restitution; waves
    # behind the front keep about as much again
    assert impulse.sum() == pytest.approx(200.0, rel=1.2 / elements)
    middle = (t > touch + 0.1 * PASSAGE) & (t < touch + 1.9 * PASSAGE)
    assert impulse[middle].sum() / (middle.sum() * dt) == pytest.approx(300.0, rel=1.0 / elements + 0.005)
    x = LENGTH - np.linspace(0.0, LENGTH, elements + 1)
    return float(np.mean(np.abs(np.asarray(traj.q) - exact(t, x, touch)[0])))


@pytest.mark.parametrize(
    "scheme", [pytest.param(schemes.half_explicit(), marks=pytest.mark.slow, id="half_explicit")]
)
def test_waves_of_the_continuum(scheme) -> None:
    courant, lag = (0.5, 1e-11) if scheme.name == "half_explicit" else (1.0, 1e-3)
    coarse, fine = (check(*run(scheme, n, courant), n, lag) for n in (25, 50))
    # the front is smeared over a length that shrinks as n^(-2/3) or faster, and so is the kink behind it
    assert fine < 0.65 * coarse
    assert fine < 0.002 * SPEED * 2 * PASSAGE


def test_exact_solution_solves_the_wave_equation() -> None:
    t, x = np.linspace(0.0, 1.5, 3001), np.linspace(0.0, LENGTH, 401)
    u, v = exact(t, x, 0.5)
    assert u[:, 0].max() == pytest.approx(5.0)
    np.testing.assert_allclose(np.gradient(u, t, axis=0)[5:-5], v[5:-5], atol=0.51 * 2 * SPEED)
    smooth = np.abs(np.gradient(u, t, axis=0) - v) < 1e-9
    assert smooth.mean() > 0.99
    # momentum is taken away by the force E A v / c = 300 N; the mean along the bar by trapezoid
    momentum = np.trapezoid(v, x, axis=1)
    inside = (t > 0.51) & (t < 0.49 + 2 * PASSAGE)
    np.testing.assert_allclose(np.polyfit(t[inside], momentum[inside], 1)[0], -300.0, rtol=1e-3)


def test_unequal_elements_of_unequal_material() -> None:
    sizes = np.array([1.0, 2.0, 0.5, 0.5])
    problem = models.elastic_bar(
        elements=4, sizes=sizes, length=8.0, young=np.array([1.0, 2.0, 4.0, 4.0]), area=2.0
    )
    s, p, _ = problem
    x = np.array([0.0, 2.0, 6.0, 7.0, 8.0])
    stress = np.array([1.0, 2.0, 4.0, 4.0]) * 0.1
    force = np.asarray(s.force(0.0, 0.1 * x, 0 * x, p))
    np.testing.assert_allclose(force, 2.0 * np.append(stress, 0) - 2.0 * np.append(0, stress), atol=1e-15)
    assert float(s.potential(0.0, 0.1 * x, p)) == pytest.approx(float(np.sum(stress * 0.1 * np.diff(x))))
    weighted = problem.replace(gravity=2.0)
    np.testing.assert_allclose(s.force(0.0, 0 * x, 0 * x, weighted.params).sum(), 2.0 * 16.0)


@pytest.mark.parametrize(
    ("kind", "square"), [("lumped", lambda s: 4 * s), ("consistent", lambda s: 12 * s / (3 - 2 * s))]
)
def test_frequencies_of_both_masses(kind, square) -> None:
    """Closed form of a free bar of equal elements: the largest is ``2 c / l`` with half of each element at
    its nodes, ``sqrt(12) c / l`` with the consistent mass.
    """
    n, size = 12, LENGTH / 12
    system, p, state = models.elastic_bar(elements=n, mass=kind, speed=0.0)
    inertia = np.asarray(jax.vmap(lambda w: system.inertia(state.q, w, p))(jnp.eye(n + 1)))
    stiffness = -np.asarray(jax.jacfwd(lambda x: system.force(0.0, x, state.v, p))(jnp.zeros(n + 1)))
    found = np.sort(np.linalg.eigvals(np.linalg.solve(inertia, stiffness)).real)
    angle = np.sin(np.pi * np.arange(n + 1) / (2 * n)) ** 2
    np.testing.assert_allclose(found, (WAVE / size) ** 2 * square(angle), rtol=1e-10, atol=1e-9)
    assert np.sum(inertia) == pytest.approx(LENGTH)
