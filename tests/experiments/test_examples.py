"""The worked examples of schemes of one's own."""

from __future__ import annotations

import inspect

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from experiments.examples import rho_infinity_bathe as example
from experiments.examples import schatzman_paoli as paoli
from nsjax import ContactLaw, State, System, models
from nsjax.models.slider_crank import slider_crank_bilateral
from tests.points import spring, unit_mass

# The worked example of a new base scheme, tested like the registered ones.
OSCILLATOR = System(nq=1, nv=1, mass=unit_mass, force=spring)


def test_it_is_one_short_file() -> None:
    assert len(inspect.getsource(example).splitlines()) <= 40


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_spectral_radius_at_infinity(rho: float) -> None:
    """A very stiff oscillator loses the factor rho in every step, once the start is forgotten."""
    state = State(t=0.0, q=np.array([1e-6]), v=np.zeros(1))
    scheme = example.rho_infinity_bathe(rho)
    traj = nsjax.simulate(OSCILLATOR, {"k": 1e8}, state, scheme, dt=1.0, steps=12)
    size = np.abs(traj.q[:, 0])
    assert traj.status == 0
    # omega dt = 1e4: the limit is met to its reciprocal
    np.testing.assert_allclose(size[2:10] / size[1:9], rho, rtol=1e-3)


@pytest.mark.slow
def test_order_two_with_a_constraint() -> None:
    """Bilateral slider-crank at 0.05 s against the minimal-coordinate solution of the specification."""
    exact = np.array([4.809238135, 0.520895295])
    errors, steps = [], np.array([307, 503, 809, 1301])
    for n in steps:
        traj = nsjax.simulate(
            *slider_crank_bilateral(), example.rho_infinity_bathe(), dt=0.05 / n, steps=int(n), every=int(n)
        )
        traj.raise_for_status()
        errors.append(np.abs(traj.q[-1] - exact))
    slopes = np.polyfit(np.log(1 / steps), np.log(errors), 1)[0]
    np.testing.assert_allclose(slopes, 2.0, atol=0.05)


# The worked paoli of a scheme outside the mixed framework, against parabolas and the law it solves.
G, HEIGHT = 9.81, 1.0
SCHEME = paoli.schatzman_paoli()
FALL = np.sqrt(2.0 * HEIGHT / G)


def ball(restitution: float, **numbers: float) -> nsjax.Problem:
    return models.bouncing_ball(height=HEIGHT, radius=0.0, restitution=restitution, **numbers)


def drop(restitution: float, steps: int, time: float, events: int = 40) -> nsjax.Trajectory:
    traj = nsjax.simulate(*ball(restitution), SCHEME, dt=time / steps, steps=steps, events=events)
    traj.raise_for_status()
    return traj


def test_it_is_one_short_file_of_public_parts() -> None:
    source = inspect.getsource(paoli)
    assert len(source.splitlines()) <= 60
    used = [line.split()[1] for line in source.splitlines() if "import" in line and "nsjax" in line]
    assert set(used) == {"nsjax.schemes", "nsjax.schemes.building"}


@pytest.mark.slow
def test_times_of_impacts_converge() -> None:
    """Order one for the first four: where in their steps impacts lie scatters, the worst of many less."""
    restitution = 0.8
    exact = FALL * (1 + 2 * np.cumsum([0.0, *restitution ** np.arange(1.0, 4.0)]))
    worst = []
    for base in (301, 3001):
        runs = [drop(restitution, base + base // 40 * k + k, 3.0) for k in range(20)]
        worst.append(max(np.max(np.abs(traj.events.time[:4] - exact)) for traj in runs))
    # each impact is noticed up to a step late, and the lateness of earlier ones adds up: eleven were seen
    assert worst[0] < 14.0 * 3.0 / 301
    assert np.log10(worst[0] / worst[1]) == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("restitution", [0.0, 0.5, 0.8])
def test_law_energy_and_rest(restitution: float) -> None:
    traj = drop(restitution, 4001, 5.0)
    dt, q, p = 5.0 / 4001, traj.q[:, 0], traj.impulse_normal[:, 0]
    # the law at every step: weighted gaps, multipliers, and one of them zero
    weighted = q[2:] + restitution * q[:-2]
    assert weighted.min() >= -1e-12
    assert p.min() >= 0.0
    assert np.max(weighted * p[2:]) <= 1e-12 * np.max(p)
    # momentum, to rounding of its sum
    np.testing.assert_allclose(traj.v[:, 0], np.cumsum(p) - G * np.asarray(traj.t), atol=1e-11)
    # energy, but in the first of the two steps of an impact, grows by rounding of velocities to steps only
    half = np.append((p[:-1] > 0.0) & (p[1:] > 0.0), False)
    energy = np.asarray(traj["energy"])[~half]
    assert np.max(energy - np.minimum.accumulate(energy)) <= 2.0 * (G * dt) ** 2
    # at rest after the accumulation
    end = FALL * (1.0 + restitution) / (1.0 - restitution)
    late = np.asarray(traj.t) > end + 0.1
    assert np.max(np.abs(q[late])) <= 1e-6
    assert np.max(np.abs(traj.v[late])) <= 1e-3
    assert abs(q[-1]) <= 1e-12


def test_a_resting_ball_stays() -> None:
    still = ball(0.8).replace({"state.q": [0.0]})
    traj = nsjax.simulate(*still, SCHEME, dt=1e-3, steps=1000, events=40)
    traj.raise_for_status()
    np.testing.assert_allclose(traj.q, 0.0, atol=1e-15)
    np.testing.assert_allclose(traj.force_normal[1:, 0], float(still.params.mass) * G, rtol=1e-9)
    assert traj.impacts.sum() == 0


def test_an_impact_takes_two_steps() -> None:
    """At constant velocity: turned to ``-e v`` after the second, wherever in its step the impact lies."""
    for start in (0.1, 0.1003, 0.1007):
        free = ball(0.6, gravity=0.0).replace({"state.q": [start], "state.v": [-1.0]})
        traj = nsjax.simulate(*free, SCHEME, dt=1e-3, steps=200, events=40)
        first = int(np.argmax(traj.impulse_normal[:, 0] > 0.0))
        assert traj.v[first - 1, 0] == -1.0
        np.testing.assert_allclose(traj.v[first + 1 :, 0], 0.6, rtol=1e-9)


def flat(q, p):
    return 2.0 * jnp.eye(2)


def weight(t, q, v, p):
    return jnp.array([0.0, -2.0 * G])


def floor(t, q, p):
    return q[1:]


def along(t, q, v, p):
    return v[:1][None]


def rough(p):
    return ContactLaw(restitution=0.4, friction=p)


BLOCK = System(nq=2, nv=2, nc=1, nt=1, mass=flat, force=weight, gap=floor, slip=along, law=rough)


@pytest.mark.slow
def test_friction_stops_a_sliding_block() -> None:
    state = State(t=0.0, q=np.zeros(2), v=np.array([1.0, 0.0]))
    traj = nsjax.simulate(BLOCK, 0.3, state, SCHEME, dt=1e-3, steps=500)
    traj.raise_for_status()
    np.testing.assert_allclose(traj.v[:300, 0], 1.0 - 0.3 * G * np.asarray(traj.t[:300]), atol=1e-9)
    assert np.max(np.abs(traj.v[345:, 0])) <= 1e-12
    assert traj.q[-1, 0] == pytest.approx(0.5 / (0.3 * G), abs=1e-3)
