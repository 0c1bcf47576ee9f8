"""Environments of gymnasium made of steppers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError, State
from nsjax.core.arguments import check_is, numbers
from nsjax.core.errors import optional
from nsjax.status import describe
from nsjax.stepper import Stepper, StepRow


def _flat(row: StepRow) -> Any:
    """Outputs of a row in their order (n,)."""
    return jnp.concatenate([jnp.ravel(jnp.asarray(x, float)) for x in row.outputs.values()])


def environment(
    stepper: Stepper, reward: Callable[[StepRow, Any], Any], *, low: Any, high: Any,
    stop: Callable[[StepRow], Any] | None = None,
    start: Callable[[np.random.Generator], State] | None = None, steps: int | None = None,
) -> Any:  # fmt: skip
    """An environment of gymnasium, for its wrappers and the libraries that learn policies with it.

    An action is ``u`` of the stepper; an observation holds its outputs one behind the other. Each step,
    with its reward, is one compiled call.

    Args:
        stepper: a stepper with inputs and outputs.
        reward: ``(row, u) -> number`` of a step, in functions of `jax.numpy`.
        low, high: bounds of the action, numbers or (input_size,).
        stop: ``(row) -> bool`` whether the episode ends, in functions of `jax.numpy`; None: never.
        start: ``(generator) -> nsjax.State`` draws a start with the environment's generator, which
            ``reset`` seeds; None: the start of the problem.
        steps: number of steps after which an episode is truncated; None: never.

    Returns:
        A `gymnasium.Env` whose spaces are boxes of 64-bit floats. ``info`` of a step has its ``"t"``,
        ``"q"`` and ``"v"``. A step with a failure (a status that is not 0) ends the episode, and
        ``info["failures"]`` names it.

    Raises:
        ImportError: without the package gymnasium, naming the extra.
        InputError: for a stepper without inputs or outputs, and bounds in the wrong order.

    Limits: one environment on one core: for batches take `nsjax.Stepper.batch`, for derivatives the stepper
    itself, in `jax.lax.scan`. Rendering is left to `nsjax.plot`. Forces among the outputs are zero at a
    start.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> crank = nsjax.stepper(
        ...     models.slider_crank(), schemes.moreau(), 1e-3, inputs=["torque"], outputs=["theta1"]
        ... )
        >>> env = nsjax.environment(crank, lambda row, u: row.v[0] - 0.1 * u[0] ** 2, low=-0.2, high=0.2)
        >>> seen, info = env.reset(seed=0)
        >>> seen, reward, over, cut, info = env.step(env.action_space.low)
        >>> seen.shape, over, cut
        ((1,), False, False)
    """
    gymnasium = optional("environments need", "gym", "gymnasium")
    check_is("environment", "stepper", stepper, Stepper)
    if not stepper.names or not stepper.outputs:
        raise InputError(
            f"environment: the stepper has inputs {list(stepper.names)} and outputs "
            f"{[str(x) for x in stepper.outputs]}; name at least one of both in nsjax.stepper"
        )
    size = (stepper.input_size,)
    least, most = (_bound(name, x, size) for name, x in (("low", low), ("high", high)))
    if not np.all(least < most):
        raise InputError(f"environment: low = {low} and high = {high}; low must be below high")
    functions, spaces = _functions(stepper, reward, stop), gymnasium.spaces
    seen = functions[0](stepper.reset())
    boxes = (spaces.Box(least, most, dtype=np.float64), spaces.Box(-np.inf, np.inf, seen.shape, np.float64))
    kind = _kind(gymnasium.Env, stepper, functions)
    return kind(boxes, start, steps)


def _bound(name: str, value: Any, size: tuple[int, ...]) -> np.ndarray:
    """One bound of the action, one number for each input."""
    found = numbers("environment", name, value)
    if found.shape not in ((), size):
        raise InputError(
            f"environment: {name} has shape {found.shape}; give one number, or {size} for the inputs"
        )
    return np.broadcast_to(found, size).copy()


def _kind(base: Any, stepper: Stepper, functions: tuple[Any, Any]) -> Any:
    """The class of an environment; its base is known once gymnasium is imported."""

    class Environment(base):
        """See `nsjax.environment`."""

        def __init__(self, boxes: tuple[Any, Any], start: Any, steps: int | None) -> None:
            self.action_space, self.observation_space = boxes
            self._start, self._steps = start, steps
            self._carry: Any = None
            self._count = 0

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            """Begins an episode."""
            super().reset(seed=seed)
            given = None if self._start is None else self._start(self.np_random)
            self._carry, self._count = stepper.reset(state=given), 0
            return np.asarray(functions[0](self._carry)), {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            """One step of the stepper."""
            if self._carry is None:
                raise InputError("step: no episode has begun; call reset() of the environment first")
            self._carry, row, seen, gain, over = functions[1](self._carry, np.asarray(action, float))
            self._count += 1
            info = {"t": float(row.t), "q": np.asarray(row.q), "v": np.asarray(row.v)}
            if int(row.status):
                info["failures"] = [said for said, _ in describe(int(row.status))]
            cut = self._steps is not None and self._count >= self._steps
            return np.asarray(seen), float(gain), bool(over) or bool(row.status), cut, info

    return Environment


def _functions(stepper: Stepper, reward: Any, stop: Any) -> tuple[Any, Any]:
    """Compiled functions: the observation of a start, and a whole step."""

    def observe(carry: Any) -> Any:
        return _flat(stepper.observe(carry))

    def take(carry: Any, u: Any) -> Any:
        carry, row = stepper.step(carry, u)
        over = jnp.zeros((), bool) if stop is None else jnp.asarray(stop(row))
        return carry, row, _flat(row), jnp.asarray(reward(row, u), float), over

    return jax.jit(observe), jax.jit(take)
