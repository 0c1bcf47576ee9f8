"""Every registered scheme on every registered model."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import Criteria, InputError, State, models, schemes
from tests.common.kernel import BLOCKERS, is_one_kernel, loop_text
from tests.common.own import OWN
from tests.design import drawn

SCHEMES = {**schemes.REGISTRY, **OWN}

# One program of each family among the quick tests; `-m slow` runs each scheme on the ball, each model with
# some scheme, and constraints with one scheme of each machinery.
BALL, HELD = "bouncing_ball", "slider_crank_bilateral"
QUICK = [("moreau", BALL), ("half_explicit", BALL), ("nsga_decoupled", BALL), ("ggl_unified", HELD)]
QUICK += [("moreau", "slider_crank"), ("moreau", "mass_spring_chain")]
MODELS = [(drawn("", k)[0], m) for k, m in enumerate(sorted(models.REGISTRY)) if m != "elastic_bar"]
HOLDING = [(s, HELD) for s in ("moreau", "generalized_alpha", "bathe", "nsga_coupled", "schatzman_paoli")]
SLOW = [("generalized_alpha", "elastic_bar"), *((s, BALL) for s in sorted(SCHEMES)), *MODELS, *HOLDING]


def cases(quick, slow):
    """Of schemes and models; what is slow runs with ``-m slow``."""
    rest = [pytest.param(*x, marks=pytest.mark.slow) for x in dict.fromkeys(slow) if x not in quick]
    return pytest.mark.parametrize(("scheme", "model"), [*quick, *rest])


PAIRS = cases(QUICK, SLOW)
TRACED = cases([("moreau", "slider_crank")], [(s, BALL) for s in drawn("lanes")])
LOOPS = cases(QUICK[:3], [(s, BALL) for s in schemes.REGISTRY] + MODELS + HOLDING[:4])


def numbers(tree):
    return jax.tree.map(lambda x: jnp.asarray(x, float), tree)


@functools.cache
def setting(scheme: str, model: str):
    """Scheme, problem, and a step of which 400 show impacts where the model has any."""
    entry = models.REGISTRY[model]
    problem = entry.factory(**dict(entry.small))
    return SCHEMES[scheme].factory(), problem, 5e-4 if problem.system.nc else entry.dt


def time_step(scheme: str, model: str) -> float:
    dt = setting(scheme, model)[2]
    return min(dt, 2e-5) if model.startswith("slider_crank") else dt


def run(scheme: str, model: str, **options):
    s, problem, _ = setting(scheme, model)
    dt = time_step(scheme, model)
    return nsjax.simulate(*problem, s, **{"dt": dt, "steps": 400, "every": 100, "events": 4, **options})


@PAIRS
def test_runs_end_well_and_fulfil_the_contact_laws(scheme: str, model: str) -> None:
    traj = run(scheme, model)
    traj.raise_for_status()
    assert np.all(np.isfinite(traj.q))
    assert np.max(traj.residual) <= 1e-10
    if traj.system.nc:
        assert traj.impacts.sum() > 0
        # dependent contacts share an impulse to the rounding of a linear solve
        assert np.all(traj.impulse_normal >= -1e-15)
        params = setting(scheme, model)[1].params
        friction = np.broadcast_to(getattr(params, "friction", 0.0), traj.system.nc)
        size = np.linalg.norm(traj.impulse_tangential, axis=2)
        # sums of vectors are no longer than sums of lengths; the factor covers the solver's tolerance
        assert np.all(size <= friction * traj.impulse_normal * (1 + 1e-9) + 1e-15)


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_criteria_are_an_option(scheme: str) -> None:
    factory = SCHEMES[scheme].factory
    assert factory(criteria=Criteria(gate=3.0)).criteria.gate == 3.0
    with pytest.raises(InputError, match=r"criteria must be a nsjax.Criteria, got 3.0"):
        factory(criteria=3.0)


@PAIRS
def test_a_saved_state_is_a_start(scheme: str, model: str) -> None:
    """With the carry, of the same run to the bit; of any row position and velocity alone, that may lie
    as far inside walls as a step goes.
    """
    whole, half = run(scheme, model), run(scheme, model, steps=200)
    rest = run(scheme, model, steps=200, carry=half.carry)
    np.testing.assert_array_equal(whole.q[2:], rest.q)
    np.testing.assert_array_equal(whole.impulse_normal[3:], rest.impulse_normal[1:])
    s, problem, _ = setting(scheme, model)
    traj, dt = run(scheme, model, every=1), time_step(scheme, model)
    for k in np.random.default_rng(3).integers(1, 400, 20):
        state = State(t=traj.t[k], q=traj.q[k], v=traj.v[k])
        more = nsjax.simulate(problem.system, problem.params, state, s, dt=dt, steps=4, events=4)
        assert more.status == 0
        if scheme == "moreau" and not problem.system.nc and k < 397:  # which remembers nothing
            np.testing.assert_allclose(more.q[-1], traj.q[k + 4], rtol=1e-12, atol=1e-14)


@TRACED
def test_lanes_equal_single_runs(scheme: str, model: str) -> None:
    """Under `lax.map` no lane, not even a failing one, touches a bit of another; and lanes equal runs
    outside transformations to rounding: those are another program (traced lengths), in which the
    compiler may contract products and sums in another way.

    Scheme and step size are traced here as in a single run: as constants the compiler would fold them.
    """
    s, problem, _ = setting(scheme, model)
    dt = time_step(scheme, model)
    lanes = [problem, problem.replace(gravity=-np.inf), problem.replace(gravity=5.0)]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *[numbers(p) for p in lanes])

    @jax.jit
    def mapped(batch, s, dt):
        def final(p):
            # as a single run: the program that carries the other derivative rounds in its own way
            traj = nsjax.simulate(*p, s, dt=dt, steps=400, every=100, save=(), gradient="discrete")
            return traj.q, traj.status

        return jax.lax.map(final, batch)

    q, status = mapped(batch, numbers(s), jnp.asarray(dt))
    assert status.astype(bool).tolist() == [False, True, False]
    other = jax.tree.map(lambda x: x[jnp.array([2, 2, 0])], batch)
    moved, _ = mapped(other, numbers(s), jnp.asarray(dt))
    np.testing.assert_array_equal(moved, q[jnp.array([2, 2, 0])])
    one = nsjax.simulate(*lanes[2], s, dt=dt, steps=400, every=100)
    # over 400 steps the difference stays below 1e-13 of each entry, or of rounding of entries around one
    np.testing.assert_allclose(q[0], run(scheme, model).q, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(q[2], one.q, rtol=1e-12, atol=1e-14)


def check_kernel(scheme: str, model: str, gradient: str) -> None:
    """A LAPACK call, scatter, sort or library product in the loop costs a factor six, silently."""
    s, problem, dt = setting(scheme, model)
    text = loop_text(problem, dataclasses.replace(s, gradient=gradient), dt)
    assert BLOCKERS.findall(text) == []
    # An implicit step of the spatial block touches more bytes than configure() lets into one kernel: as
    # one it compiles twice as long. Nothing in it blocks the kernel, as the line above checks.
    if model != "block" or scheme in ("moreau", "half_explicit"):
        assert is_one_kernel(text)


@LOOPS
def test_the_time_loop_is_one_kernel(scheme: str, model: str) -> None:
    check_kernel(scheme, model, "discrete")


@TRACED
def test_the_time_loop_with_its_derivative_is_one_kernel(scheme: str, model: str) -> None:
    check_kernel(scheme, model, SCHEMES[scheme].factory().gradient)
