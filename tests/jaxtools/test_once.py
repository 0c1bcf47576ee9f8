"""Programs that run once, and what they leave alone."""

import jax
import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import models, schemes
from nsjax.jaxtools.compilation import compiled_once


def test_the_values_are_those_of_any_compiler() -> None:
    def wave(x):
        return jnp.sum(jnp.sin(x) ** 2)

    x = np.linspace(0.0, 1.0, 50)
    np.testing.assert_allclose(compiled_once(wave)(x), jax.jit(wave)(x), rtol=1e-14)


def test_a_run_of_plain_numbers_inside_jit() -> None:
    """Nothing is traced of the problem, yet there are no values: checks that need some are left out."""
    problem = models.bouncing_ball(height=1.0)

    def end():
        return nsjax.simulate(*problem, schemes.moreau(), dt=1e-2, steps=60, every=60).q[-1]

    np.testing.assert_allclose(jax.jit(end)(), end(), rtol=1e-14)
