"""Functions at rows of a run, and drift of constraints and contacts."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import State, System, models, schemes
from nsjax.analysis import growth, measure_drift, rows
from nsjax.core import InputError
from tests.points import no_force, unit_mass


# Evaluation row by row: chunks, and what is refused.
@functools.cache
def run(**options) -> nsjax.Trajectory:
    return nsjax.simulate(*models.bouncing_ball(), schemes.moreau(), dt=1e-3, steps=100, **options)


def _both(system, p, t, q, v):
    return t + p.gravity, q * v


def test_chunks_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    traj = run()
    monkeypatch.setattr(rows, "CHUNK", 32)  # 101 rows: three full calls and a filled one
    first, second = rows.by_rows(_both, traj, traj.t, traj.q, traj.v)
    np.testing.assert_array_equal(first, traj.t + 9.81)
    np.testing.assert_array_equal(second, traj.q * traj.v)


def test_prepared_parameters_reach_the_model() -> None:
    own = System(nq=1, nv=1, mass=unit_mass, force=no_force, prepare=lambda p: {"mass": p["weight"] ** 2})
    start = State(t=0.0, q=np.zeros(1), v=np.zeros(1))
    traj = nsjax.simulate(own, {"weight": 2.0}, start, schemes.moreau(), dt=1e-2, steps=2)
    assert rows.by_rows(_weight, traj, traj.t).tolist() == [4.0, 4.0, 4.0]


def _weight(system, p, t):
    return p["mass"]


def test_refusals() -> None:
    def traced(x):
        traj = nsjax.simulate(*models.bouncing_ball(gravity=x), schemes.moreau(), dt=1e-3, steps=2)
        rows.check_run(traj, "who")
        return x

    with pytest.raises(InputError, match="outside transformations"):
        jax.jit(traced)(jnp.asarray(9.81))


# Drift of constraints and contacts against the figures of the specification and synthetic columns.
@functools.cache
def guide(scheme: str, time: float, every: int = 10, **options):
    make = schemes.REGISTRY[scheme].factory
    traj = nsjax.simulate(
        *models.slider_crank_bilateral(), make(**options), dt=1e-4, time=time, every=every
    )
    traj.raise_for_status()
    return traj, measure_drift(traj)


# ------------------------------------------------------------------------ schemes.md section 1


@pytest.mark.slow
def test_half_explicit_drifts_linearly() -> None:
    """``g = -1.8e-5 t`` [m, s] at 1e-4 s, on velocity level to the solver's tolerance."""
    _, drift = guide("half_explicit", 8.0)
    found = growth(drift.t, drift.constraint[:, 0])
    # the specification gives two digits
    assert found.rate == pytest.approx(-1.8e-5, abs=0.06e-5)
    assert found.rate_error < 1e-7
    # the oscillation of 2e-6 m on top is a tenth of the growth after 1 s
    assert found.power == pytest.approx(1.0, abs=2 * found.power_error)
    assert found.power_error < 0.1
    assert np.abs(drift.constraint_rate).max() < 1e-11


def test_half_explicit_drift_does_not_depend_on_the_rows() -> None:
    _, fine = guide("half_explicit", 2.0)
    _, coarse = guide("half_explicit", 2.0, every=50)
    first, second = (growth(d.t, d.constraint[:, 0]) for d in (fine, coarse))
    # rows at other phases of the oscillation: agreement within a few of its errors
    assert abs(first.rate - second.rate) < 3 * math.hypot(first.rate_error, second.rate_error)


def test_moreau_stays_bounded() -> None:
    traj, drift = guide("moreau", 1.0)
    # 1.2e-3 m in the specification, which gives two digits
    assert drift.largest()["constraint"] == pytest.approx(1.2e-3, abs=0.05e-3)
    assert growth(drift.t, drift.constraint[:, 0]).power < 0.5
    # the residual, and its rate along the motion, written out
    q, v = traj.q, traj.v
    height = 0.153 * np.sin(q[:, 0]) + 0.306 * np.sin(q[:, 1])
    rate = 0.153 * np.cos(q[:, 0]) * v[:, 0] + 0.306 * np.cos(q[:, 1]) * v[:, 1]
    np.testing.assert_allclose(drift.constraint[:, 0], height, rtol=0, atol=1e-16)
    np.testing.assert_allclose(drift.constraint_rate[:, 0], rate, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("time", "largest"), [(0.05, 6.4e-4), (0.1, 4.3e-3), (0.5, 0.12), (1.0, 0.31)])
def test_acceleration_level_runs_away(time: float, largest: float) -> None:
    _, drift = guide("moreau", 1.0, constraint_form="index_1")
    until = drift.t <= time * (1 + 1e-9)
    assert np.abs(drift.constraint[until]).max() == pytest.approx(largest, rel=0.05)  # two digits


def test_stabilisation_keeps_the_drift_bounded_and_of_second_order() -> None:
    """On velocity level it is 1.2e-3 m here, and of first order; on acceleration level it runs away."""
    scheme = schemes.moreau(constraint_form="baumgarte")
    fine = nsjax.simulate(*models.slider_crank_bilateral(), scheme, dt=5e-5, time=1.0, every=20)
    drifts = guide("moreau", 1.0, constraint_form="baumgarte")[1], measure_drift(fine)
    coarse, fine = (x.largest()["constraint"] for x in drifts)
    assert coarse < 1.2e-3 / 8
    assert growth(drifts[0].t, drifts[0].constraint[:, 0]).power < 0.5
    assert coarse / fine == pytest.approx(4.0, rel=0.1)  # the phase of the largest one differs


def test_position_level_has_no_drift() -> None:
    _, drift = guide("moreau", 0.1, constraint_form="index_3")
    assert drift.largest()["constraint"] < 1e-14
    assert drift.largest()["constraint_rate"] > 1e-5


# slider_crank.md section 4, Fig. 3: min g at 1e-5 s
@pytest.mark.parametrize(
    ("restitution", "deepest"),
    [
        (0.7, 6.7e-6),
        (0.9, 3.5e-6),
        pytest.param(0.1, 4.14e-5, marks=pytest.mark.slow),
        pytest.param(0.4, 8.8e-6, marks=pytest.mark.slow),
    ],
)
def test_penetration_of_moreau(restitution: float, deepest: float) -> None:
    problem = models.slider_crank(restitution=restitution, friction=0.0)
    drift = measure_drift(nsjax.simulate(*problem, schemes.moreau(), dt=1e-5, time=0.2))
    assert drift.largest()["penetration"] == pytest.approx(deepest, rel=0.01)


@pytest.mark.slow
def test_a_pressed_contact_neither_opens_nor_moves_and_one_in_flight_does_not_count() -> None:
    problem = models.bouncing_ball(restitution=0.0, height=0.1)
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=1e-3, steps=400)
    drift = measure_drift(traj)
    landed = math.sqrt(2 * 0.1 / 9.81)
    assert not drift.pressed[drift.t < landed].any()
    assert drift.pressed[drift.t > landed + 3e-3].all()
    # held where it was caught, within one step of the fall, and at rest, to the solver's tolerance
    assert np.ptp(drift.penetration[drift.t > landed + 3e-3]) < 1e-12
    assert drift.largest()["gap"] == pytest.approx(drift.penetration[-1, 0], abs=1e-12)
    assert 0 < drift.penetration[-1, 0] < 9.81 * landed * 1e-3
    assert drift.largest()["gap_rate"] < 1e-11


# ------------------------------------------------------------------------ the fit

T = np.linspace(0.0, 3.0, 1201)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_power_and_rate_of_exact_growth(power: int) -> None:
    found = growth(5.0 + T, -2e-6 * T**power)
    assert found.power == pytest.approx(power, abs=1e-10)
    assert found.power_error < 1e-10
    assert found.rate == pytest.approx(np.polyfit(T, -2e-6 * T**power, 1)[0], rel=1e-10)
    assert found.largest == pytest.approx(2e-6 * 3.0**power)


def test_error_of_the_rate_with_white_noise() -> None:
    """Against the textbook's standard error of a least-squares slope."""
    rng = np.random.default_rng(1)
    exact = 1.0 / np.sqrt(np.sum((T - T.mean()) ** 2))
    errors = [growth(T, rng.standard_normal(T.size)).rate_error for _ in range(200)]
    # ten blocks: the error of one run scatters by a quarter, the mean square of 200 by 4 %
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(exact, rel=0.15)


def test_error_of_the_rate_with_correlated_noise() -> None:
    """The scatter of 200 fits, where the textbook's formula is too small by a factor of four."""
    rng = np.random.default_rng(2)
    kernel = np.ones(20) / np.sqrt(20)
    fits = [
        growth(T, 3.0 * T + np.convolve(rng.standard_normal(T.size + 19), kernel, "valid"))
        for _ in range(200)
    ]
    rates, errors = np.array([f.rate for f in fits]), np.array([f.rate_error for f in fits])
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(np.std(rates), rel=0.3)
    inside = np.mean(np.abs(rates - 3.0) < 2.26 * errors)  # 95 % of Student's t with 9 degrees of freedom
    assert inside > 0.88


def test_a_bounded_oscillation_does_not_grow() -> None:
    found = growth(T, np.sin(40 * T))
    assert abs(found.power) < 0.1
    assert abs(found.rate) < 4 * found.rate_error
    assert math.isnan(growth(T, 0 * T).power)
