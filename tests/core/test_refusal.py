"""Runs inside transformations whose numbers are refused outside: bits, values, derivatives, loops."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes, status
from nsjax.contact import ContactProblem, RowGroups, solve
from nsjax.multibody import assemble, body, contact, hinge, joint_spring, plane, point
from tests.design import slow_but

NONSENSE = np.array(
    [np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, -1e300, 1e-300, 7.0, -1e-3, 1e8, 1e150, -1e150]
)
STEPS = 120

ARM = assemble(
    body("rod", mass=1.0, inertia=0.1, com=0.5),
    hinge("pin", "ground", "rod"),
    joint_spring("spring", "pin", stiffness=2.0, damping=0.1),
    contact("tip", point("rod", (1.0, 0.0)), plane(at=(0.0, -0.05)), friction=0.3, restitution=0.5),
    gravity=9.81,
)
CRANK = models.slider_crank()


def ball(x: Any) -> nsjax.Problem:
    return models.bouncing_ball(**dict(zip(FIELDS[ball], x, strict=True)))


def crank(x: Any) -> nsjax.Problem:
    return CRANK.replace(**dict(zip(FIELDS[crank], x, strict=True)))


def arm(x: Any) -> nsjax.Problem:
    return ARM.replace(dict(zip(FIELDS[arm], x, strict=True)))


FIELDS: dict[Callable[[Any], nsjax.Problem], dict[str, float]] = {
    ball: {"mass": 1.0, "restitution": 0.8, "gravity": 9.81, "radius": 0.05, "height": 0.03, "speed": 0.1,
           "table_amplitude": 0.001, "table_frequency": 10.0},
    crank: {"crank_mass": 0.038, "rod_mass": 0.038, "rod_inertia": 5.9e-5, "friction": 0.01,
            "gravity": 9.81, "restitution": 0.4, "clearance": 1e-3},
    arm: {"rod.mass": 1.0, "rod.inertia": 0.1, "rod.com": 0.5, "spring.stiffness": 2.0,
          "tip.friction": 0.3, "tip.restitution": 0.5},
}  # fmt: skip


def drawn(make: Any, lanes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (lanes, fields), and the same without nonsense: one field in ``fields`` is nonsense."""
    rng, good = np.random.default_rng(seed), np.array(list(FIELDS[make].values()))
    fine = good * rng.uniform(0.9, 1.1, size=(lanes, len(good)))
    bad = rng.random(fine.shape) < 1.0 / len(good)
    return np.where(bad, NONSENSE[rng.integers(len(NONSENSE), size=fine.shape)], fine), fine


def end(make: Any, scheme: nsjax.Scheme, x: Any, dt: float = 1e-3) -> tuple[Any, Any]:
    """A velocity at the end of a run, and its status and iterations."""
    traj = nsjax.simulate(*make(x), scheme, dt=dt, steps=STEPS, every=STEPS)
    return traj.v[-1, 0], (traj.status, jnp.max(traj.iterations))


def in_turn(one: Any) -> Any:
    return jax.jit(lambda x: jax.lax.map(one, x))


def together(one: Any) -> Any:
    return jax.jit(jax.vmap(one))


def refuses(make: Any, x: np.ndarray, scheme: nsjax.Scheme) -> bool:
    try:
        nsjax.simulate(*make(x), scheme, dt=1e-3, steps=STEPS, every=STEPS)
    except nsjax.InputError:
        return True
    return False


def test_a_heavy_part_does_not_hide_a_light_one() -> None:
    """Rounding of the eigenvalues of this mass, 1e4, is far above the smallest, 0.96; the other mass has
    a negative one.
    """
    fine = np.array([[1e20, 1e9, 5e19], [1e9, 1.0, 2e9], [5e19, 2e9, 1e20]])
    bad = fine - np.diag([0.0, 0.97, 0.0])
    start = nsjax.State(t=0.0, q=jnp.ones(3), v=jnp.zeros(3))

    def run(mass: np.ndarray) -> nsjax.Trajectory:
        system = nsjax.System(name="three", nq=3, nv=3, mass=lambda q, p: p, force=lambda t, q, v, p: -q)
        return nsjax.simulate(system, jnp.asarray(mass), start, schemes.moreau(), dt=1e-3, steps=3)

    assert np.isfinite(run(fine).q).all()
    with pytest.raises(nsjax.InputError, match="not positive definite"):
        run(bad)


@pytest.mark.parametrize(
    ("make", "scheme", "lanes", "batches"),
    [
        (ball, schemes.moreau(), 300, (in_turn,)),
        pytest.param(arm, schemes.moreau(), 200, (in_turn,), marks=pytest.mark.slow),
        pytest.param(ball, schemes.moreau(), 300, (together,), marks=pytest.mark.slow),
        pytest.param(crank, schemes.moreau(), 200, (in_turn, together), marks=pytest.mark.slow),
        pytest.param(ball, schemes.nsga_decoupled(), 300, (in_turn, together), marks=pytest.mark.slow),
        pytest.param(arm, schemes.generalized_alpha(), 200, (in_turn, together), marks=pytest.mark.slow),
    ],
    ids=["ball", "arm", "ball-together", "crank", "ball-nsga", "arm-generalized_alpha"],
)
@pytest.mark.filterwarnings("ignore:simulate. dt:UserWarning")
def test_drawn_nonsense(make: Any, scheme: nsjax.Scheme, lanes: int, batches: Any) -> None:
    """What eager runs refuse has a bit and no values; neighbours keep their bits; no loop is long."""
    x, fine = drawn(make, lanes, 0)
    one = functools.partial(end, make, scheme)
    sound = (x == fine).all(axis=1)
    for batched in batches:
        batch = batched(one)
        value, (bits, iterations) = jax.device_get(batch(x))
        want, (none, usual) = jax.device_get(batch(fine))
        assert not none.any()
        np.testing.assert_array_equal(value[sound], want[sound])
        refused = bits & status.REFUSED != 0
        assert np.isnan(value[refused]).all()
        assert np.isfinite(value[bits == 0]).all()
        assert refused.mean() > 0.2
        # each iteration that cannot come to an answer has its own bound; a refused run has no iterations
        assert iterations[refused].max() <= 4 * STEPS
        assert usual.max() < 10 * STEPS
    # a mass that is singular to rounding is seen by its eigenvalues alone, which no lane computes
    clear = lanes if make is not crank else np.flatnonzero(np.abs(x[:, 1]) < 1e100)
    some = np.random.default_rng(1).permutation(clear)[:40]
    assert [refuses(make, x[k], scheme) for k in some] == refused[some].tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [ball, pytest.param(arm, marks=pytest.mark.slow), pytest.param(crank, marks=pytest.mark.slow)]
)
def test_derivatives_of_drawn_nonsense(make: Any) -> None:
    """Not a number where the value is none; forward and reverse agree elsewhere, bit for bit in batches."""
    x, fine = drawn(make, 60, 2)
    one = functools.partial(end, make, schemes.moreau())
    reverse = together(jax.value_and_grad(one, has_aux=True))
    (value, (bits, _)), gradient = jax.device_get(reverse(x))
    _, neighbours = jax.device_get(reverse(fine))
    sound = (x == fine).all(axis=1)
    np.testing.assert_array_equal(gradient[sound], neighbours[sound])
    way = jnp.asarray(np.random.default_rng(3).uniform(size=x.shape[1]))
    forward = together(lambda y: jax.jvp(lambda z: one(z)[0], (y,), (way,))[1])
    slope = jax.device_get(forward(x))
    lost = np.isnan(value)
    assert lost.sum() >= 15
    assert np.isnan(gradient[lost]).all()
    assert np.isnan(slope[lost]).all()
    np.testing.assert_allclose(slope[sound], gradient[sound] @ way, rtol=1e-9, atol=1e-12)
    assert (bits[lost] != 0).all()


REASONS = {
    "mass": (-1.0, status.REFUSED_NEGATIVE, "a mass, a length, a coefficient or a tolerance is negative"),
    "restitution": (7.0, status.REFUSED_LAW, "a restitution is outside"),
    "gravity": (np.nan, status.REFUSED_NOT_FINITE, "one of its numbers is not finite"),
    "height": (-0.5, status.REFUSED_START, "its start penetrates a wall or violates a constraint"),
}


@pytest.mark.parametrize("name", slow_but(REASONS, "mass", "gravity"))
def test_a_lane_says_why_it_is_refused(name: str) -> None:
    value, bit, words = REASONS[name]
    good = FIELDS[ball][name]

    def run(x: Any) -> nsjax.Trajectory:
        problem = models.bouncing_ball(**{name: x})
        return nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=STEPS, every=STEPS)

    traj = jax.device_get(together(run)(jnp.array([good, value, 1.0])))
    assert traj.status.tolist() == [0, status.REFUSED | bit, 0]
    assert traj.first_failure.step.tolist() == [-1, 0, -1]
    with pytest.raises(nsjax.RunError, match=f"^lane 1, step 0, t = 0 s: the run is refused, .*{words}"):
        traj.raise_for_status()


@pytest.mark.parametrize("compiled", [False, True])
def test_a_derivative_of_a_refused_mechanism(compiled: bool) -> None:
    """Also where a mass that is differentiated has a value, outside `jax.jit`."""
    arm = assemble(body("arm", mass=1.0, inertia=0.1), hinge("pin", "ground", "arm", at=0.5))

    def run(mass: Any) -> Any:
        own = arm.replace(**{"arm.mass": mass})
        traj = nsjax.simulate(*own, schemes.moreau(), dt=1e-3, steps=STEPS, every=STEPS)
        return traj.q[-1, 0], traj.status

    slope = jax.value_and_grad(run, has_aux=True)
    for mass, bits in ((1.0, 0), (-1.0, status.REFUSED | status.REFUSED_NEGATIVE)):
        (q, found), change = (jax.jit(slope) if compiled else slope)(mass)
        assert int(found) == bits
        assert np.isnan([q, change]).tolist() == [bits > 0] * 2


def test_a_loop_waits_for_no_lane_that_it_holds() -> None:
    """The sine of a phase of 1e298 is another number where XLA rounds the time otherwise. A condition that
    computed from it went on for ever in a program without optimisation, whose body had ended.
    """

    def run(amplitude: Any, frequency: Any) -> Any:
        problem = models.bouncing_ball(**FIELDS[ball] | {
            "table_amplitude": amplitude, "table_frequency": frequency
        })  # fmt: skip
        return nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=STEPS, every=STEPS).status

    found = together(lambda x: run(*x))(jnp.array([[1e-3, 10.0], [1e150, -1e300]]))
    assert found.tolist() == [0, status.CONTACT_JAMMED]


@pytest.mark.parametrize("name", slow_but(REASONS, "gravity"))
def test_a_stepper_refuses_what_runs_refuse(name: str) -> None:
    """In lanes by bits; a step changes nothing that is not a number."""
    value, bit, _ = REASONS[name]
    good, sound = FIELDS[ball][name], models.bouncing_ball()
    stepper = nsjax.stepper(sound, schemes.moreau(), 1e-3)

    def run(x: Any) -> Any:
        problem = models.bouncing_ball(**{name: x})
        carry, row = stepper.step(stepper.reset(problem.params, problem.state))
        return carry.status, row.q

    bits, q = jax.device_get(together(run)(jnp.array([good, value, good])))
    assert bits[0] == bits[2] == 0
    assert bits[1] & (status.REFUSED | bit) == status.REFUSED | bit
    assert np.isnan(q[1]).all()
    assert np.isfinite(q[::2]).all()
    with pytest.raises(nsjax.InputError):
        run(value)


@pytest.mark.slow
def test_an_indefinite_mass_and_a_singular_one() -> None:
    """Of a user's model, whose numbers have no names; schemes that need no inertia keep the second."""

    def run(scheme: nsjax.Scheme, mass: Any) -> Any:
        system = nsjax.System(
            nq=2, nv=2, nb=1, mass=_diagonal, force=lambda t, q, v, p: jnp.array([0.0, -9.81]),
            constraint=lambda t, q, p: q[:1] - q[1:],
        )  # fmt: skip
        state = nsjax.State(t=0.0, q=jnp.zeros(2), v=jnp.zeros(2))
        return nsjax.simulate(system, {"m": mass}, state, scheme, dt=1e-3, steps=4).status

    masses, bad = jnp.array([1.0, -1.0, 0.0]), status.REFUSED | status.REFUSED_MASS
    assert together(functools.partial(run, schemes.moreau()))(masses).tolist() == [0, bad, bad]
    assert together(functools.partial(run, schemes.nsga_decoupled()))(masses).tolist() == [0, bad, 0]


def _diagonal(q: Any, p: Any) -> Any:
    return jnp.diag(jnp.stack([jnp.ones(()), p["m"]]))


def test_rows_of_a_run_are_starts() -> None:
    """A state that a scheme has left inside a wall is a start inside transformations, too."""
    problem, scheme = models.bouncing_ball(height=0.02, restitution=0.3), schemes.moreau()
    traj = nsjax.simulate(*problem, scheme, dt=5e-3, steps=200)
    inside = np.flatnonzero(traj.gap[:, 0] < -1e-6)
    assert len(inside)

    def run(t: Any, q: Any, v: Any) -> Any:
        state = nsjax.State(t=t, q=q, v=v)
        return nsjax.simulate(problem.system, problem.params, state, scheme, dt=5e-3, steps=1).status

    assert not together(run)(traj.t[inside], traj.q[inside], traj.v[inside]).any()


def test_values_that_stop_being_finite_have_no_derivative() -> None:
    """A force that is not finite from 0.05 s on: rows before it have the derivatives that they had."""
    system = nsjax.System(
        nq=1, nv=1, mass=lambda q, p: jnp.eye(1), force=lambda t, q, v, p: _lost(t) + p["f"] + 0.0 * q
    )
    state = nsjax.State(t=0.0, q=jnp.zeros(1), v=jnp.zeros(1))

    def run(f: Any) -> Any:
        return nsjax.simulate(system, {"f": f}, state, schemes.moreau(), dt=1e-2, steps=10).q[:, 0]

    value, slope = jax.jvp(run, (1.0,), (1.0,))
    assert np.isfinite(value[:5]).all()
    assert np.isnan(value[7:]).all()
    np.testing.assert_array_equal(np.isnan(slope), np.isnan(value))
    assert np.isnan(jax.grad(lambda f: run(f)[-1])(1.0))
    np.testing.assert_allclose(slope[:5], value[:5])  # proportional to f


def _lost(t: Any) -> Any:
    return jnp.where(t > 0.05, jnp.nan, 0.0)


@pytest.mark.parametrize("diagonal", [-1.0, -1e300, 1e300, 1e-300, np.nan, np.inf])
@pytest.mark.parametrize("free", [-1.0, -1e300, np.nan])
def test_contact_problems_of_nonsense_end(diagonal: float, free: float) -> None:
    """A negative mass made two million steps of one problem."""
    found = _solved(jnp.array([[diagonal]]), jnp.array([free]))
    assert found.iterations <= 60_000
    assert found.residual <= 1e-11 or not found.residual <= 1e-3


@jax.jit
def _solved(delassus: Any, free: Any) -> Any:
    problem = ContactProblem(
        rows=RowGroups.of(1, 0), delassus=delassus, free=free, friction=jnp.zeros(1), mask=jnp.array([True])
    )
    return solve(problem)
