"""The slider-crank in an ideal guide without its multiplier, by the classical Runge-Kutta method.

With the constraint on acceleration level (index 1) the multiplier is eliminated,
``a = M^-1 (h + W lambda)``, ``W' a + dW'/dt v = 0``. On velocity level (index 2) velocities, those of the
stages as well, are projected on ``W' v = 0`` beside, in the kinetic metric. Nothing keeps the position.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import models

Array = Any


def _parts(q: Array, p: Any) -> tuple[Array, Array, Array]:
    """``M^-1 W``, ``W`` and ``W' M^-1 W`` at a configuration."""
    system = models.slider_crank_bilateral().system
    w = jax.jacobian(lambda x: system.constraint(0.0, x, p))(q)[0]
    solved = jnp.linalg.solve(system.mass(q, p), w)
    return solved, w, w @ solved


def accelerations(q: Array, v: Array, p: Any) -> Array:
    """The acceleration of the mechanism in its guide, constraint on acceleration level."""
    system = models.slider_crank_bilateral().system
    solved, w, delassus = _parts(q, p)
    free = jnp.linalg.solve(system.mass(q, p), system.force(0.0, q, v, p))
    turned = jax.jvp(lambda x: _parts(x, p)[1], (q,), (v,))[1] @ v
    return free - solved * (w @ free + turned) / delassus


def projected(q: Array, v: Array, p: Any) -> Array:
    """Velocities that fulfil the constraint on velocity level."""
    solved, w, delassus = _parts(q, p)
    return v - solved * (w @ v) / delassus


@functools.partial(jax.jit, static_argnums=(0, 3))
def _run(level: str, x: Array, step: Array, count: int, p: Any) -> Array:
    def fit(x: Array) -> Array:
        return jnp.stack([x[0], projected(x[0], x[1], p)]) if level == "index 2" else x

    def rate(x: Array) -> Array:
        q, v = fit(x)
        return jnp.stack([v, accelerations(q, v, p)])

    def advance(x: Array, _: None) -> tuple[Array, Array]:
        a = rate(x)
        b = rate(x + 0.5 * step * a)
        c = rate(x + 0.5 * step * b)
        d = rate(x + step * c)
        x = fit(x + step / 6.0 * (a + 2.0 * b + 2.0 * c + d))
        return x, x[0]

    return jax.lax.scan(advance, x, None, count)[1]


def height(level: str, step: float, time: float) -> tuple[np.ndarray, np.ndarray]:
    """Time and height of the slider, which the guide should keep at zero.

    Args:
        level: ``"index 1"`` or ``"index 2"``.
        step: step size [s].
        time: duration [s].
    """
    system, params, state = models.slider_crank_bilateral()
    count = round(time / step)
    start = jnp.stack([jnp.asarray(state.q), jnp.asarray(state.v)])
    q = _run(level, start, jnp.asarray(step), count, params)
    y = jax.vmap(lambda x: system.constraint(0.0, x, params)[0])(q)
    return step * np.arange(count + 1), np.concatenate([[0.0], np.asarray(y)])
