"""Parameters that bring the end of a motion to a target: Newton's method and Adam on the same cost."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from nsjax.jaxtools.compilation import compiled_once

Curves = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Aim:
    """Half the squares of misses over ``miss`` and of changes of the numbers from a guess over ``scale``.

    Args:
        end: function of the numbers (n,) and of ``steps`` with the values to control (m,).
        steps: see `curved`.
        guess, scale: initial guess and scale of the numbers (n,).
        want, miss: desired values (m,), and the miss that costs as much as a change by ``scale``.
    """

    end: Callable[..., jax.Array]
    steps: int | float
    guess: tuple[float, ...]
    scale: tuple[float, ...]
    want: tuple[float, ...]
    miss: tuple[float, ...]

    def cost(self, numbers: Any, curves: Curves) -> tuple[float, np.ndarray, np.ndarray]:
        """Cost, gradient (n,) and Hessian (n, n), from the end and its derivatives."""
        found, slopes, second = curves
        off, weight = found - np.array(self.want), 1.0 / np.array(self.miss) ** 2
        moved, stiff = np.asarray(numbers) - np.array(self.guess), 1.0 / np.array(self.scale) ** 2
        value = 0.5 * off @ (weight * off) + 0.5 * moved @ (stiff * moved)
        hessian = slopes.T @ (weight[:, None] * slopes) + np.einsum("i,ijk->jk", weight * off, second)
        return float(value), slopes.T @ (weight * off) + stiff * moved, hessian + np.diag(stiff)


def _slopes(numbers: Any, end: Callable[..., jax.Array], steps: Any) -> tuple[jax.Array, Any]:
    def value(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        found = end(x, steps)
        return found, found

    slopes, found = jax.jacfwd(value, has_aux=True)(numbers)
    return slopes, (found, slopes)


@functools.partial(compiled_once, static_argnames=("end", "fixed"))
def _bent(
    numbers: jax.Array, steps: Any, end: Callable[..., jax.Array], fixed: int | None
) -> tuple[Any, Any]:
    given = functools.partial(_slopes, end=end, steps=steps if fixed is None else fixed)
    return jax.jacfwd(given, has_aux=True)(numbers)


def curved(numbers: Any, end: Callable[..., jax.Array], steps: Any) -> Curves:
    """End (m,), first (m, n) and second derivatives (m, n, n), exact: forward over forward.

    Each whole number of steps needs its own program; floats are data of one program. Programs are compiled
    without optimisation: a run takes milliseconds, an optimised compilation some minutes.
    """
    fixed = steps if isinstance(steps, int) else None
    second, (found, slopes) = _bent(jnp.asarray(numbers, float), 1.0 * steps, end, fixed)
    bent = np.asarray(second)
    return np.asarray(found), np.asarray(slopes), 0.5 * (bent + bent.transpose(0, 2, 1))


def newton(aim: Aim, most: int = 60) -> tuple[np.ndarray, list[float], list[float]]:
    """Newton's method, with a shifted Hessian where it is not positive definite or the cost would rise.

    Returns:
        Numbers, and costs and sizes of the scaled gradient by the number of Hessians.
    """
    x, scale, shift = np.array(aim.guess), np.array(aim.scale), 0.0
    value, slope, hessian = aim.cost(x, curved(x, aim.end, aim.steps))
    costs, sizes = [value], [float(np.linalg.norm(scale * slope))]
    while sizes[-1] > 1e-8 and len(costs) <= most:
        scaled = hessian * np.outer(scale, scale)
        least = np.linalg.eigvalsh(scaled)[0]
        shifted = scaled + (max(shift, 1e-3 - least) if least < 1e-3 else shift) * np.eye(len(x))
        tried = x - scale * np.linalg.solve(shifted, scale * slope)
        after = aim.cost(tried, curved(tried, aim.end, aim.steps))
        if after[0] <= value + 1e-12:
            x, (value, slope, hessian), shift = tried, after, 0.0 if shift < 1e-2 else shift / 10
        else:
            shift = 10 * shift if shift else 1.0
        costs.append(value)
        sizes.append(float(np.linalg.norm(scale * slope)))
    return x, costs, sizes


def adam(aim: Aim, tries: int) -> list[float]:
    """Costs of optax's Adam in scaled numbers, with a learning rate that falls from 0.1."""
    rule = optax.adam(optax.cosine_decay_schedule(0.1, tries))
    scale, z = np.array(aim.scale), jnp.zeros(len(aim.guess))
    memory, costs = rule.init(z), []
    for _ in range(tries):
        x = np.array(aim.guess) + scale * np.asarray(z)
        value, slope, _ = aim.cost(x, curved(x, aim.end, aim.steps))  # one program with Newton's
        costs.append(value)
        change, memory = rule.update(jnp.asarray(scale * slope), memory)
        z = z + jnp.asarray(change)
    return costs
