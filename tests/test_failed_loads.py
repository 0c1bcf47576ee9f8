"""Loads whose law fails are named by the report of a run and by its error."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

import nsjax
from nsjax import models, schemes
from nsjax.multibody import actuator, assemble, body, force, hinge, joint_spring
from nsjax.report import failed_loads
from nsjax.trajectory import RunError


def _run(law, scheme, coordinates="joint"):
    """An arm that falls from rest with a good spring, a good motor and one with ``law``."""
    problem = assemble(
        body("arm", mass=1.0, inertia=0.1, com=(0.3, 0.0)), hinge("pin", "ground", "arm"),
        joint_spring("coil", "pin", stiffness=1.0), actuator("good", "pin", law=lambda t, q, v, p: -v),
        actuator("bad", "pin", law=law), gravity=9.81, coordinates=coordinates,
    )  # fmt: skip
    return nsjax.simulate(*problem, scheme, dt=1e-3, steps=200)


@pytest.mark.parametrize(
    ("scheme", "coordinates"),
    [
        (schemes.moreau(), "joint"),
        pytest.param(schemes.generalized_alpha(), "absolute", marks=pytest.mark.slow),
    ],
)
def test_the_motor_whose_law_fails_is_named(scheme, coordinates) -> None:
    """At the start, and at a speed that the arm reaches after some eighty steps."""
    for least in (-0.1, 0.8):
        traj = _run(lambda t, q, v, p, x=least: 0.01 * jnp.sqrt(v + x), scheme, coordinates)
        assert failed_loads(traj) == ["bad"], least
        assert "not finite       bad\n" in str(traj)
        with pytest.raises(RunError, match=r"Not finite there: bad\.$"):
            traj.raise_for_status()


def test_a_force_that_fails_at_a_time() -> None:
    def push(k):
        return force(f"push{k}", "block", law=lambda t, *_: (jnp.log(0.05 * k + 0.01 - t), 0.0))

    problem = assemble(body("block", mass=1.0, inertia=0.1), push(1), push(2), gravity=9.81)
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=200)
    assert 0.055 < float(traj.first_failure.time) < 0.065
    assert failed_loads(traj) == ["push1"]


@pytest.mark.slow
def test_no_names_otherwise() -> None:
    good = _run(lambda t, q, v, p: 0.0, schemes.moreau())
    assert failed_loads(good) == []
    assert "not finite" not in str(good)
    ball = nsjax.simulate(*models.bouncing_ball(), schemes.moreau(), dt=1e-3, steps=2)
    assert failed_loads(ball) == []
