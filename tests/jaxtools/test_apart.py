"""Large steps and their derivatives: the same numbers, and loops that are no kernel."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from nsjax.jaxtools import programs
from tests.common.kernel import USERS, is_one_kernel

MODELS = {"ball": functools.partial(models.bouncing_ball, dimension=2), "crank": models.slider_crank}

STEP = {"ball": 5e-3, "crank": 1e-4}


def _last(restitution, gradient=None):
    problem = MODELS["ball"]()
    params = dataclasses.replace(problem.params, restitution=restitution)
    run = nsjax.simulate(
        problem.system, params, problem.state, schemes.moreau(), dt=STEP["ball"], steps=200, every=200,
        save=(), gradient=gradient,
    )  # fmt: skip
    return run.q[-1]


def test_a_large_step_is_the_same_in_pieces(monkeypatch) -> None:
    """Rounding differs, as of any two programs. The loops of its solver stay kernels."""
    whole = jax.jit(_last).lower(0.4).compile(USERS)
    monkeypatch.setattr(programs, "LARGE_STEP", 0)
    jax.clear_caches()  # else what has been traced is taken
    pieces = jax.jit(_last).lower(0.4).compile(USERS)
    np.testing.assert_allclose(pieces(0.4), whole(0.4), rtol=1e-12)
    assert is_one_kernel(whole.as_text())
    assert not is_one_kernel(pieces.as_text())
    assert 'xla_cpu_small_call="true"' in pieces.as_text()


@pytest.mark.slow
@pytest.mark.parametrize("gradient", [None, "discrete"])
@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_derivatives_of_a_large_step_are_the_same_in_pieces(monkeypatch, mode, gradient) -> None:
    end = functools.partial(_last, gradient=gradient)
    whole = jax.jit(mode(end))(0.4)
    monkeypatch.setattr(programs, "LARGE_STEP", 0)
    jax.clear_caches()
    np.testing.assert_allclose(jax.jit(mode(end))(0.4), whole, rtol=1e-9, atol=1e-12)


def test_what_has_no_vector_stays() -> None:
    one = {"a": jnp.asarray(1.0), "b": jnp.ones((2, 2)), "c": jnp.arange(3)}
    assert programs.ends_kernel(one, one)["a"] is one["a"]
