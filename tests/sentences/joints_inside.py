"""A chain whose joints are not inside its structure."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from tests.common.chain import chain


def _with(**changes):
    problem = chain(4, True)
    return dataclasses.replace(problem, system=dataclasses.replace(problem.system, **changes))


def _far(t, q, p):
    return chain(4, True).system.constraint(t, q, p) + 0.1 * jnp.sin(q[0]) * np.eye(8)[7]
