"""Runs with too large a step are warned of before, and flagged after: none is finite and wrong unseen."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import nsjax
from experiments.mixed_timestepping import fig_bob
from nsjax import State, System, models, schemes, stability, status
from tests.design import each_family
from tests.points import unit_mass

MASSES = 6
STIFFNESS = np.array([1.0, 1.0, 1e4, 1.0, 1e6, 1.0])  # of the springs, from the wall on


def _matrix(k):
    """Stiffness of the chain: spring i holds mass i to mass i - 1, the first to the wall."""
    full = np.zeros((MASSES, MASSES))
    for i in range(MASSES):
        full[i, i] += k[i]
        if i:
            full[i - 1, i - 1] += k[i]
            full[i, i - 1] -= k[i]
            full[i - 1, i] -= k[i]
    return full


MATRIX = _matrix(STIFFNESS)


def pull(t, q, v, p):
    return -p["stiffness"] @ q - p["damping"] * p["stiffness"] @ v


CHAIN = System(nq=MASSES, nv=MASSES, mass=unit_mass, force=pull)
START = State(t=0.0, q=np.array([0.0] * 4 + [1e-3, 0.0]), v=np.array([0.0] * 5 + [1.0]))


def chain(damping=0.0):
    return CHAIN, {"stiffness": MATRIX, "damping": damping}, START


def exact_size(times):
    """Largest displacement and speed of the chain at these times, by its modes."""
    w2, modes = np.linalg.eigh(MATRIX)
    w = np.sqrt(w2)
    a, b = modes.T @ START.q, modes.T @ START.v
    q = (a * np.cos(np.outer(times, w)) + b / w * np.sin(np.outer(times, w))) @ modes.T
    v = (b * np.cos(np.outer(times, w)) - a * w * np.sin(np.outer(times, w))) @ modes.T
    return np.max(np.abs(q)), np.max(np.abs(v))


def outcome(scheme, dt, steps=400):
    """Size of the motion over that of the exact one, and whether the run was flagged."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        traj = nsjax.simulate(*chain(), scheme, dt=dt, steps=steps, save=[])
    warned = any("largest stable step" in str(x.message) for x in seen)
    q, v = exact_size(np.linspace(0.0, steps * dt, 20 * steps))
    found = max(np.max(np.abs(traj.q)) / q, np.max(np.abs(traj.v)) / v)
    return found, bool(traj.status), warned


STEPS = (1e-4, 5e-4, 1e-3, 1.4e-3, 1.45e-3, 2e-3, 1e-2, 1e-1, 1.0)


def check(name, sizes):
    for dt in sizes:
        ratio, failed, warned = outcome(schemes.REGISTRY[name].factory(), dt)
        print(f"{name:20} dt {dt:8.2e} size/exact {ratio:10.3g} failed {failed} warned {warned}")
        if not failed:
            # twice the speeds is where a run counts as diverged; ten is what is asked
            assert ratio < 10.0, (name, dt, ratio)


@each_family("name")
def test_no_scheme_is_finite_and_wrong_unseen(name) -> None:
    check(name, STEPS)


def test_an_overflow_names_the_step_and_not_the_force() -> None:
    spring = System(nq=1, nv=1, mass=unit_mass, force=lambda t, q, v, p: -p * q)
    start = State(t=0.0, q=np.ones(1), v=np.zeros(1))
    for every in (1, 1000):  # also where no row but the start is finite
        with pytest.warns(UserWarning, match="fastest oscillation 2236 rad/s"):
            traj = nsjax.simulate(spring, 5e6, start, schemes.moreau(), dt=1e-3, steps=1000, every=every)
        assert traj.status == status.DIVERGED | status.FORCE_NOT_FINITE
        with pytest.raises(nsjax.RunError, match=r": the motion diverges"):
            traj.raise_for_status()
    below = 0.999 * 2.0 / np.sqrt(5e6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traj = nsjax.simulate(spring, 5e6, start, schemes.moreau(), dt=below, steps=1000)
    assert traj.status == 0


@pytest.mark.parametrize("damping", [1e-4, 3e-3, pytest.param(0.0, marks=pytest.mark.slow)])
def test_the_largest_step_is_the_scheme_s_own(damping) -> None:
    """Closed form of Moreau's rule: ``omega^2 dt^2 + 2 c dt = 4`` with ``c = damping omega^2``."""
    system, params, start = chain(damping)
    w2 = np.linalg.eigvalsh(MATRIX)[-1]
    c = damping * w2
    limit = 4.0 / (c + np.sqrt(c * c + 4.0 * w2))
    modes = stability.fastest(system, params, start)
    np.testing.assert_allclose(modes.explicit_limit(), limit, rtol=1e-6)
    assert stability.largest_step(schemes.moreau(), modes, 0.99 * limit) is None
    found = stability.largest_step(schemes.moreau(), modes, 4.0 * limit)
    # 64 steps of four to the 64-th
    np.testing.assert_allclose(found, limit, rtol=0.03)
    assert stability.largest_step(schemes.generalized_alpha(), modes, 100 * limit) is None


def test_a_sweep_says_how_many_of_its_steps_are_too_large() -> None:
    problem = models.mass_spring_chain()  # sqrt(1e7) rad/s: stable up to 0.632 ms
    over = {"dt": [1e-4, 5e-4, 1e-3, 2e-3]}
    with pytest.warns(
        UserWarning, match=r"sweep: dt of 2 of 4 lanes, up to 0.002 s, is above .* about 0.00063"
    ):
        nsjax.sweep(problem, schemes.moreau(), over, time=4e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nsjax.sweep(problem, schemes.moreau(), {"dt": [1e-4, 5e-4]}, time=4e-3)


def test_constraints_hold_the_stiff_spring() -> None:
    free, held = (models.mass_spring_chain(support=x) for x in ("spring", "constraint"))
    np.testing.assert_allclose(np.sqrt(stability.fastest(*free).stiffness[0]), np.sqrt(1e7 + 1), rtol=1e-6)
    # the two masses that are left: omega^2 = 3 of the matrix [[2, -1], [-1, 2]]
    np.testing.assert_allclose(stability.fastest(*held).stiffness[0], 3.0, rtol=1e-6)


def test_numbers_of_the_user_s_choice_may_make_a_scheme_unstable() -> None:
    """Newmark's scheme with ``beta = 0`` is the central difference: stable up to two."""
    made = schemes.newmark(beta=0.0)
    assert stability.is_conditional(made)
    assert not any(stability.is_conditional(x) for x in (schemes.newmark(), schemes.newmark(0.36, 0.7)))
    modes = stability.fastest(*chain())
    limit = 2.0 / np.sqrt(np.linalg.eigvalsh(MATRIX)[-1])
    np.testing.assert_allclose(stability.largest_step(made, modes, 2.0 * limit), limit, rtol=0.02)
    assert stability.largest_step(schemes.newmark(0.25, 0.4), modes, 100 * limit) is not None


def test_the_implicit_schemes_are_flagged_where_they_overshoot() -> None:
    check("generalized_alpha", (1e-2, 1.0))


def test_explicit_schemes_are_right_or_flagged() -> None:
    check("moreau", (1e-3, 1.4e-3, 1.45e-3, 1e-1))


def test_a_run_that_rests_is_not_examined(monkeypatch) -> None:
    looked: list[int] = []
    monkeypatch.setattr(nsjax.stability, "diverged_row", lambda *x: looked.append(1))
    spring = System(nq=1, nv=1, mass=unit_mass, force=lambda t, q, v, p: -p * (q - 1.0))
    for off in (1e-14, 1e-3):  # at rest but for roundings, and in motion
        start = State(t=0.0, q=np.array([1.0 + off]), v=np.array([1e-3 * off]))  # the speed grows by far
        nsjax.simulate(spring, 1e2, start, schemes.moreau(), dt=1e-2, steps=100)
    assert looked == [1]


@pytest.mark.parametrize("scheme", ["gen-alpha 0", "gen-alpha 0.8", "newmark"])
def test_growth_of_nonlinear_motion_is_reported(scheme: str) -> None:
    """Speeds of the bob grow by 7 to 30, and no explicit limit has been passed."""
    energy, bits = fig_bob.energies(fig_bob.RUNS[scheme], 50.0)
    assert np.max(energy) > 50.0 * energy[0]
    assert bits & status.DIVERGED
