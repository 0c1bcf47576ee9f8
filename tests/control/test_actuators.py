"""Servos with limits, and first-order actuators in every scheme, against closed forms."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from nsjax.analysis import linearise
from nsjax.multibody import assemble, body, servo, slide
from tests.control.mechanisms import arm

SCHEMES = (schemes.moreau(), schemes.generalized_alpha(), schemes.nsga_decoupled(), schemes.half_explicit())


def sledge(coordinates: str = "joint", **given: Any) -> nsjax.Problem:
    return assemble(
        body("sledge", mass=2.0, inertia=1.0), slide("rail", "ground", "sledge"),
        servo("servo", "rail", **given), coordinates=coordinates,
    )  # fmt: skip


def test_a_position_servo_is_an_oscillator() -> None:
    problem = sledge(position=0.3, stiffness=50.0, damping=4.0)
    run = nsjax.simulate(*problem, schemes.generalized_alpha(rho_inf=1.0), dt=1e-3, steps=1000)
    decay, w = 1.0, np.sqrt(25.0 - 1.0)  # (d / 2 m), sqrt(k / m - decay^2)
    wanted = 0.3 - 0.3 * np.exp(-decay * run.t) * (np.cos(w * run.t) + decay / w * np.sin(w * run.t))
    # second order: error constant below one of dt^2 times accelerations
    assert np.max(np.abs(run.body("sledge").position[:, 0] - wanted)) < 5e-6


def test_a_servo_does_not_go_beyond_its_limit() -> None:
    problem = sledge(velocity=1.0, damping=1e3, limit=(-1.0, 4.0))
    run = nsjax.simulate(*problem, schemes.moreau(), dt=1e-4, steps=3000)
    # constant force 4 N until the wanted speed is nearly there
    assert run.v[2000, 0] == pytest.approx(4.0 / 2.0 * 0.2, rel=1e-12)
    assert np.max(run.load("servo").force[:, 0]) == 4.0


QUICK = (SCHEMES[0], "joint", 2)
OTHERS = [("absolute", 2), ("absolute", 3), ("joint", 3), ("joint", 2)]
CASES = [
    QUICK,
    *(pytest.param(x, *c, marks=pytest.mark.slow) for x, c in zip(SCHEMES, OTHERS, strict=True)),
]


@pytest.mark.parametrize(("scheme", "coordinates", "dimension"), CASES)
def test_an_activation_follows_in_every_scheme(
    scheme: nsjax.Scheme, coordinates: str, dimension: int
) -> None:
    T, dt, steps = 0.05, 1e-3, 100
    problem = nsjax.with_actuator_dynamics(arm(coordinates, dimension), {"motor": T}, {"motor": 0.5})
    run = nsjax.simulate(*problem, scheme, dt=dt, steps=steps)
    run.raise_for_status()
    wanted = 2.0 - 1.5 * np.exp(-run.t / T)
    # explicit Euler is the coarsest: error of first order, dt / (2 T) of the way
    assert np.max(np.abs(run["motor.activation"] - wanted)) < 1.5 * dt / (2.0 * T)
    torque = run.load("motor").torque
    if dimension == 2:
        assert np.max(np.abs(torque - run["motor.activation"])) < 1e-12


@pytest.mark.slow
def test_a_command_is_an_input_and_has_derivatives() -> None:
    problem = nsjax.with_actuator_dynamics(arm("joint", 2), {"motor": 0.03})

    def end(numbers: Any) -> Any:
        T, u = numbers
        given = problem.replace({"time_constants.motor": T})
        return nsjax.simulate(
            *given, schemes.moreau(), dt=1e-3, steps=100, every=100,
            inputs={"motor": nsjax.signal([0.0, 0.05], jnp.stack([u, -u]))},
        ).q[-1, 0]  # fmt: skip

    at, h = jnp.array([0.03, 2.0]), 1e-6
    # one program: a run of its value alone would compile for longer than these five take
    made = jax.jit(lambda x: (jax.jacfwd(end)(x), *jax.value_and_grad(end)(x)))
    forward, _, reverse = made(at)
    secants = np.array([(made(at + h * e)[1] - made(at - h * e)[1]) / (2 * h) for e in np.eye(2)])
    assert np.max(np.abs(forward - reverse)) < 1e-9
    assert np.max(np.abs(reverse - secants)) < 1e-6 * np.max(np.abs(secants))


def test_an_activation_is_one_state_of_the_linear_motion() -> None:
    problem = nsjax.with_actuator_dynamics(sledge(position=0.0, stiffness=8.0), {"servo": 0.1})
    A, B, C, D = linearise(problem, inputs=["servo"], outputs=["sledge.position"])
    assert A.shape == (3, 3)
    assert B.shape == (3, 1)
    s = 3.0j  # beside the resonance at 2 rad/s
    transfer = (C @ np.linalg.solve(s * np.eye(3) - A, B) + D)[0, 0]
    assert transfer == pytest.approx(8.0 / (2.0 * s * s + 8.0) / (1.0 + 0.1 * s), rel=1e-12)


def test_many_activations_are_looked_at_together() -> None:
    """Files have dozens: the mechanics are traced as often for two as for one."""
    problem, traced = models.slider_crank(), []

    def gap(t: Any, q: Any, p: Any) -> Any:
        traced.append(0)
        return problem.system.gap(t, q, p)

    watched = dataclasses.replace(problem, system=dataclasses.replace(problem.system, gap=gap))
    counts = []
    for names in (("torque",), ("torque", "gravity")):
        traced.clear()
        nsjax.with_actuator_dynamics(watched, dict.fromkeys(names, 0.1))
        counts.append(len(traced))
    assert counts[0] == counts[1]
