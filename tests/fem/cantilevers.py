"""Static cantilevers of both spatial beam elements, by Newton's method on dense matrices: a second, plain
way from the elements to equilibrium.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.fem import (
    committed,
    incremental_energy,
    incremental_strains,
    objective_forces,
    section_axes,
    started,
)
from nsjax.math import rodrigues, rotations

TOLERANCE = 1e-7
"""Of the last step of Newton [m, rad], which squares: what is left is rounding."""
STIFF = {"roll": (5e3, 5e3, 1e4, 100.0, 100.0, 100.0), "bend": (5e6, 5e6, 1e7, 1e7 / 12, 1e7 / 12, 5e6 / 6)}


def arc(elements: int, radius: float = 100.0, angle: float = np.pi / 4) -> np.ndarray:
    s = np.linspace(0.0, angle, elements + 1)
    return radius * np.stack([np.sin(s), 1 - np.cos(s), 0 * s], axis=1)


@functools.partial(jax.jit, static_argnames="follower")
def _objective_step(nodes, points, stiffness, force, moment, follower):
    lengths, axes = section_axes(points, jnp.array([0.0, 0.0, 1.0]))

    def residual(xi):
        moved = jax.vmap(rotations.move_pose)(nodes, jnp.concatenate([jnp.zeros(6), xi]).reshape(-1, 6))
        pairs = jnp.stack([moved[:-1], moved[1:]], axis=1)
        f = jax.vmap(lambda n, length, d: objective_forces(n, None, length, d, jnp.zeros(3), stiffness))(
            pairs, lengths, axes
        )
        total = jnp.zeros((len(points), 6)).at[:-1].add(f[:, 0]).at[1:].add(f[:, 1])
        own = moment if follower else rotations.matrix(moved[-1, 3:]).T @ moment
        return total.at[-1].add(jnp.concatenate([force, own]))[1:].reshape(-1)

    zero = jnp.zeros(6 * (len(points) - 1))
    change = -jnp.linalg.solve(jax.jacfwd(residual)(zero), residual(zero))
    xi = jnp.concatenate([jnp.zeros(6), change]).reshape(-1, 6)
    return jax.vmap(rotations.move_pose)(nodes, xi), jnp.max(jnp.abs(change))


def objective(points, stiffness, force=(0, 0, 0), moment=(0, 0, 0), steps=1, follower=False):
    """Nodes (n + 1, 7) in equilibrium under end loads."""
    points, stiffness = jnp.asarray(points), jnp.asarray(stiffness)
    nodes = jnp.concatenate([points, jnp.zeros((len(points), 4)).at[:, 0].set(1.0)], axis=1)
    for k in range(1, steps + 1):
        loads = (jnp.asarray(x, float) * k / steps for x in (force, moment))
        load = tuple(loads)
        for _ in range(40):
            nodes, change = _objective_step(nodes, points, stiffness, *load, follower)
            if change < TOLERANCE:
                break
        assert change < TOLERANCE
    return np.asarray(nodes)


def _elements(x, per):
    return jnp.stack([x[k : len(x) - per + k : per] if k < per else x[per::per] for k in range(per + 1)], 1)


@functools.partial(jax.jit, static_argnames="per")
def _incremental_step(x, d, history, stiffness, force, moment, per):
    def residual(free):
        d = jnp.concatenate([jnp.zeros((1, 6)), free.reshape(-1, 6)])

        def energy(d):
            return jnp.sum(
                jax.vmap(lambda x, d, h: incremental_energy(x, d, h, stiffness))(
                    _elements(x, per), _elements(d, per), history
                )
            )

        inner = jax.grad(energy)(d)
        outer = jnp.concatenate([force, rodrigues.spin(d[-1, 3:]).T @ moment])
        return (inner.at[-1].add(-outer))[1:].reshape(-1)

    free = d[1:].reshape(-1)
    change = -jnp.linalg.solve(jax.jacfwd(residual)(free), residual(free))
    return jnp.concatenate([d[:1], (free + change).reshape(-1, 6)]), jnp.max(jnp.abs(change))


@functools.partial(jax.jit, static_argnames="per")
def _commit(x, d, history, per):
    return x + d[:, :3], jax.vmap(committed)(_elements(x, per), _elements(d, per), history)


def incremental(points, stiffness, force=(0, 0, 0), moment=(0, 0, 0), steps=1, per=1):
    """Places (n + 1, 3), and strains (elements, g, 6); ``per + 1`` nodes an element."""
    x, stiffness = jnp.asarray(points), jnp.asarray(stiffness)
    history = jax.vmap(lambda p: started(p, jnp.array([0.0, 0.0, 1.0])))(_elements(x, per))
    for k in range(1, steps + 1):
        load = tuple(jnp.asarray(y, float) * k / steps for y in (force, moment))
        d = jnp.zeros((len(points), 6))
        for _ in range(40):
            d, change = _incremental_step(x, d, history, stiffness, *load, per)
            if change < TOLERANCE:
                break
        assert change < TOLERANCE
        x, history = _commit(x, d, history, per)
    rest = jnp.zeros((len(points), 6))
    strains = jax.vmap(incremental_strains)(_elements(x, per), _elements(rest, per), history)
    return np.asarray(x), np.asarray(strains)
