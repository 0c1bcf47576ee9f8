"""One compiled program per scheme and model: final state and its sensitivities for any step size."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import State, System
from nsjax.core.scheme import Scheme
from nsjax.loop import LoopProgram, begin_run, prepare_run, run_row


def _primes(low: int, high: int) -> list[int]:
    return [n for n in range(low, high) if all(n % k for k in range(2, int(n**0.5) + 1))]


def primes_near(start: int, octaves: int, each: int) -> np.ndarray:
    """Primes in each octave from ``start`` on, at about equal ratios: (octaves, each)."""
    wanted = start * 2 ** (np.arange(octaves)[:, None] + np.arange(each)[None, :] / each)

    def near(n: float) -> int:
        at = round(n)
        return min(_primes(at - 50, at + 50), key=lambda k: abs(k - n))

    return np.vectorize(near)(wanted)


STEPS = primes_near(100, 8, 5)
"""Step counts, eight octaves of five: primes, so that no grid nests in another or in the impact times."""

Build = Callable[[jax.Array], tuple[object, State]]


def floats(tree):
    return jax.tree.map(lambda x: jnp.asarray(x, float), tree)


@functools.cache
def _program(system: System, build: Build, static: Scheme, mode: str):
    """``(p, coef, dt, steps) -> (Jacobian, (final q and v, status, notes))``, steps traced: the program
    serves all step sizes. In reverse mode the number of steps is static.
    """
    keep = LoopProgram(system=system, keep=("notes",), events=0)

    def final(p, coef, dt, steps):
        scheme = dataclasses.replace(static, coef=coef)
        params, state = floats(build(p))
        run = begin_run(keep, scheme, params, state, dt, None)
        run, row = run_row(prepare_run(keep, scheme, params, dt), run, steps)
        x = jnp.concatenate([row["q"], row["v"]])
        return x, (x, run.status, row["notes"])

    if mode == "reverse":
        return jax.jit(jax.jacrev(final, has_aux=True), static_argnums=3)
    return jax.jit(jax.jacfwd(final, has_aux=True))


@dataclasses.dataclass(frozen=True)
class Answer:
    """Final state ``x = (q, v)``, its Jacobian (2 n, parameters), and the notes of the run."""

    x: np.ndarray
    jacobian: np.ndarray
    notes: int


def sensitivity(
    system: System, build: Build, scheme: Scheme, p, time: float, steps: int, gradient: str = "saltation",
    mode: str = "forward",
) -> Answer:  # fmt: skip
    """Sensitivities of the state after ``steps`` steps to the parameter vector."""
    static = dataclasses.replace(scheme, coef=(), gradient=gradient)
    f = _program(system, build, static, mode)
    count = int(steps)
    jacobian, (x, status, notes) = f(jnp.asarray(p, float), floats(scheme.coef), time / count, count)
    assert int(status) == 0, f"{scheme.name}: status {int(status)} at {count} steps"
    bits = int(np.bitwise_or.reduce(np.ravel(notes)))
    return Answer(x=np.asarray(x), jacobian=np.asarray(jacobian), notes=bits)


def off(found: np.ndarray, exact: np.ndarray) -> float:
    """Relative Frobenius error."""
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def slope(errors, steps=STEPS) -> float:
    """Least-squares order of the errors in the step size, root mean squares of each octave.

    The error at one step size is that of the place of the impacts inside their steps: a saw-tooth that
    passes through zero. Single points below it say nothing about the order.
    """
    e, n = np.asarray(errors), np.asarray(steps)
    rms, middle = np.sqrt(np.mean(e**2, axis=1)), np.exp(np.mean(np.log(n), axis=1))
    return float(np.polyfit(-np.log(middle), np.log(rms), 1)[0])
