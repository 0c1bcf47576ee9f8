"""The frame of `fig_frame` with the source's incremental elements of three nodes, by displacement control.

A computation of its own, dense and in the plane: the deflection under the load is given step by step, the
load found with the increments ``(u_x, u_y, alpha_z)`` of all nodes, and the histories committed.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.fem import committed, incremental_energy, started

PLANE = np.array([0, 1, 5])
"""Indices of the increments of plane motion."""

SETTLED = 1e-9
"""Largest last Newton update, for lengths of 120."""


def _elements(x: Any) -> Any:
    """Values at nodes (n, ...) element by element (n / 2, 3, ...)."""
    return jnp.stack([x[0:-2:2], x[1:-1:2], x[2::2]], axis=1)


def _spread(free: Any, nodes: int) -> Any:
    """Increments (nodes, 6) from the free ones; the feet rotate only."""
    count = 3 * nodes
    kept = np.setdiff1d(np.arange(count), [0, 1, count - 3, count - 2])
    plane = jnp.zeros(count).at[kept].set(free).reshape(nodes, 3)
    return jnp.zeros((nodes, 6)).at[:, PLANE].set(plane)


@functools.partial(jax.jit, static_argnames="node")
def _newton(x: Any, y: Any, history: Any, stiffness: Any, down: Any, node: int) -> tuple[Any, Any]:
    """One Newton step of ``y``, free increments and the load; ``down``: increment of the deflection."""

    def residual(y: Any) -> Any:
        def energy(free: Any) -> Any:
            steps = _spread(free, len(x))
            each = jax.vmap(lambda x, d, h: incremental_energy(x, d, h, stiffness))
            return jnp.sum(each(_elements(x), _elements(steps), history)) + y[-1] * steps[node, 1]

        moved = _spread(y[:-1], len(x))[node, 1]
        return jnp.concatenate([jax.grad(energy)(y[:-1]), jnp.stack([moved + down])])

    change = -jnp.linalg.solve(jax.jacfwd(residual)(y), residual(y))
    return y + change, jnp.max(jnp.abs(change[:-1]))


@jax.jit
def _commit(x: Any, y: Any, history: Any) -> tuple[Any, Any]:
    steps = _spread(y[:-1], len(x))
    return x + steps[:, :3], jax.vmap(committed)(_elements(x), _elements(steps), history)


def limit_load(
    elements: int, leg: float, stiffness: tuple[float, ...], largest: float, steps: int
) -> tuple[float, float]:
    """Largest load on the path to a deflection ``largest``, and its deflection.

    Args:
        elements: number of elements per leg, a multiple of five.
        leg: length of a leg.
        stiffness: two shear stiffnesses, extension, two bending stiffnesses, twist.
        steps: number of equal steps of the deflection.
    """
    s = np.linspace(0.0, leg, 2 * elements + 1)
    up = np.stack([0 * s, s, 0 * s], axis=1)
    x = jnp.asarray(np.concatenate([up, np.stack([s[1:], leg + 0 * s[1:], 0 * s[1:]], axis=1)]))
    node, stiff = 2 * elements + 2 * elements // 5, jnp.asarray(stiffness)
    history = jax.vmap(lambda p: started(p, jnp.array([0.0, 0.0, 1.0])))(_elements(x))
    load, loads = 0.0, [0.0]
    for _ in range(steps):
        y = jnp.zeros(3 * len(x) - 3).at[-1].set(load)
        for _ in range(30):
            y, change = _newton(x, y, history, stiff, largest / steps, node)
            if change < SETTLED * leg:
                break
        else:
            raise RuntimeError(f"no equilibrium at the deflection {len(loads) * largest / steps:g}")
        x, history = _commit(x, y, history)
        load = float(y[-1])
        loads.append(load)
    k = int(np.argmax(loads))
    before, at, after = loads[k - 1 : k + 2]
    shift = 0.5 * (before - after) / (before - 2.0 * at + after)  # vertex of the parabola
    return at - 0.25 * (before - after) * shift, (k + shift) * largest / steps
