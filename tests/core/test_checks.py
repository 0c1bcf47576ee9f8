"""Bad input gets a sentence that names the thing, its value and the remedy, before any work."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, Problem, State, System, models, schemes
from nsjax.core import checks
from tests.points import no_force, unit_mass

BALL = models.bouncing_ball()


def run(problem=BALL, scheme=None, **options):
    options = {"dt": 1e-3, "steps": 10, **options}
    return nsjax.simulate(*problem, schemes.moreau() if scheme is None else scheme, **options)


def skew(q, p):
    return jnp.array([[1.0, 0.5], [0.0, 1.0]])


def flat(t, q, v, p):
    return jnp.zeros(3)


def single(t, q, v, p):
    return jnp.zeros(2, jnp.float32)


def height(t, q, p):
    return q[:1]


def speed_squared(t, q, v, p):
    return (v[1:] ** 2)[:, None]


def speed(t, q, v, p):
    return (3.0 * v[1:] - 1.0)[:, None]


def test_slip_must_be_affine() -> None:
    state = nsjax.State(t=0.0, q=np.ones(2), v=np.zeros(2))
    parts = {
        "nq": 2, "nv": 2, "nc": 1, "nt": 1, "mass": unit_mass, "force": no_force, "gap": height,
        "law": elastic,
    }  # fmt: skip
    with pytest.raises(
        InputError, match=r"slip is not affine in v: .* is [12] of its size; return velocities"
    ):
        nsjax.simulate(
            nsjax.System(**parts, slip=speed_squared), {}, state, schemes.moreau(), dt=1e-3, steps=1
        )
    checks.check_values(nsjax.System(**parts, slip=speed), {}, state)


@pytest.mark.parametrize(
    "call",
    [
        "nsjax.simulate(*models.bouncing_ball(), schemes.moreau(), dt=1e-3, steps=1)",
        "nsjax.load('run.npz')",
    ],
)
def test_single_precision_is_refused_in_a_sentence(call: str) -> None:
    code = f"import nsjax; from nsjax import models, schemes\n{call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "64-bit floats are off" in done.stderr
    assert "nsjax.configure()" in done.stderr


def test_constructors_accept_tracers() -> None:
    import jax

    heights = jnp.array([0.5, 1.0])

    def start(height):
        return models.bouncing_ball(balls=2, dimension=2, height=height, speed=height).state

    states = jax.vmap(start)(heights)
    assert states.q.shape == (2, 6)
    np.testing.assert_allclose(states.q[:, 1], heights + 0.05)


def blow_up(t, q, v, p):
    """Force that is not finite after t = 0.5."""
    return jnp.where(t > 0.5, jnp.log(-jnp.ones(1)), -q)


def hole(t, q, p):
    """Gap that is not finite below one half."""
    return jnp.sqrt(q - 0.5)


def fading(q, p):
    """Mass that becomes singular where q leaves the unit interval."""
    return jnp.where(q[0] < 1.0, 1.0, 0.0) * jnp.eye(1)


def nan_mass(q, p):
    return jnp.where(q[0] < 1.0, 1.0, jnp.nan) * jnp.eye(1)


def pull(t, q, v, p):
    return -jnp.ones(1)


def push(t, q, v, p):
    return jnp.ones(1)


def elastic(p):
    return nsjax.ContactLaw()


@pytest.mark.parametrize(
    ("functions", "sentence"),
    [
        ({"mass": unit_mass, "force": blow_up}, r"step 51, t = 0\.51 s: the force function returned"),
        ({"mass": fading, "force": push}, r"step 142, t = 1\.42 s: the mass matrix is singular"),
        (
            {"mass": nan_mass, "force": push},
            r"step 142, t = 1\.42 s: the mass matrix has an entry",
        ),
        (
            {"mass": unit_mass, "force": pull, "nc": 1, "gap": hole, "law": elastic},
            r"step 101, t = 1\.01 s: the gap function returned",
        ),
    ],
)
def test_what_fails_first_in_a_run_is_named(functions, sentence) -> None:
    """Step and time from the closed forms q = t^2/2 and q = 1 - t^2/2 at the step's midpoint."""
    start = 1.0 if functions["force"] is pull else 0.0
    system = nsjax.System(nq=1, nv=1, **functions)
    state = nsjax.State(t=0.0, q=np.full(1, start), v=np.zeros(1))
    traj = nsjax.simulate(system, {}, state, schemes.moreau(), dt=1e-2, steps=200)
    with pytest.raises(nsjax.RunError, match=sentence):
        traj.raise_for_status()
    assert dataclasses.is_dataclass(traj.first_failure)


def two_walls(t, q, p):
    """A wall that the ball can meet, and one that runs through it whatever it does."""
    return jnp.stack([q[0] + 10.0, 0.055 - t])


def test_an_unsolved_contact_problem_is_named_with_its_contact() -> None:
    """No impulse acts on the second gap, which closes at t = 0.055: first tested negative at 0.0555."""
    labels = nsjax.Labels(contacts=("floor", "press"))
    system = nsjax.System(
        nq=1, nv=1, nc=2, mass=unit_mass, force=pull, gap=two_walls, law=elastic, labels=labels
    )
    state = nsjax.State(t=0.0, q=np.zeros(1), v=np.zeros(1))
    traj = nsjax.simulate(system, {}, state, schemes.moreau(), dt=1e-3, steps=100)
    where = r"step 56, t = 0\.056 s: no impulses fulfil the contact laws"
    with pytest.raises(nsjax.RunError, match=where + r".* \(contact 1: press\)"):
        traj.raise_for_status()


def test_of_many_numbers_that_are_absent_few_are_listed() -> None:
    params = {f"k{i}": None for i in range(20)}
    system = System(nq=1, nv=1, mass=unit_mass, force=lambda t, q, v, p: -p["k3"] * q, name="springs")
    problem = Problem(system=system, params=params, state=State(t=0.0, q=np.zeros(1), v=np.zeros(1)))
    with pytest.raises(
        InputError, match=r"params\['k0'\], .* and 14 more is None: give a number"
    ) as failed:
        run(problem)
    assert len(str(failed.value)) < 400
