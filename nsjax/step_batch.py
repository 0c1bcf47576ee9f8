"""Batches of one stepper, whose lanes advance together step by step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.core.errors import InputError
from nsjax.core.system import State
from nsjax.lanes import map_lanes
from nsjax.types import PyTree

StepperCarry = Any
"""The records `StepperCarry` and `StepRow` of `nsjax.stepper`, which imports this module."""

StepRow = Any


@dataclasses.dataclass(frozen=True, eq=False)
class StepBatch:
    """Pure functions `reset`, `step` and `observe` of many lanes, see `nsjax.Stepper.batch`.

    Args:
        stepper: stepper of one lane.
        lanes: number of lanes.
    """

    stepper: Any
    lanes: int

    def reset(self, params: PyTree = None, state: State | None = None) -> StepperCarry:
        """The carries of all lanes at their starts, lanes first.

        Args:
            params, state: see `nsjax.Stepper.reset`; a leaf with one axis more than the problem's own, of
                ``lanes`` entries, has a value for each lane, any other leaf is common to all. None: those
                of the problem.

        Raises:
            InputError: for a leaf with another number of lanes, and as `nsjax.Stepper.reset`.
        """
        problem = self.stepper.problem
        given = {"params": params, "state": state}
        own = {
            "params": None if params is None else problem.params,
            "state": None if state is None else problem.state,
        }
        leaves, tree = jax.tree.flatten(given)
        known = jax.tree.leaves(own)
        if not jax.tree.structure(own) == tree:  # type: ignore[operator]
            raise InputError(
                "reset: params or state of a batch have another structure than those of the problem; put "
                "other numbers into problem.params and problem.state"
            )
        leaves = [jnp.asarray(x) for x in leaves]
        varied = [x.ndim == jnp.ndim(y) + 1 for x, y in zip(leaves, known, strict=True)]
        self._check("reset: a leaf", [x for x, v in zip(leaves, varied, strict=True) if v])

        def one(k: jax.Array) -> StepperCarry:
            found = [x[k] if v else x for x, v in zip(leaves, varied, strict=True)]
            return self.stepper.reset(**jax.tree.unflatten(tree, found))

        if any(varied):
            return map_lanes(one, jnp.arange(self.lanes))
        same: StepperCarry = jax.tree.map(
            lambda x: jnp.broadcast_to(x, (self.lanes, *jnp.shape(x))), one(jnp.asarray(0))
        )
        return same

    def step(self, carry: StepperCarry, u: Any = None) -> tuple[StepperCarry, StepRow]:
        """One step of every lane.

        Args:
            carry: result of `reset` or of the step before.
            u: inputs as in `nsjax.Stepper.step`, lanes first: (lanes, input_size), (lanes,) for one input,
                or a mapping of such arrays.

        Returns:
            The next carries and rows, lanes first.

        Raises:
            InputError: for another number of lanes, and as `nsjax.Stepper.step`.
        """
        u = jax.tree.map(jnp.asarray, u)
        self._check("step: u", jax.tree.leaves(u))
        return self._mapped(lambda own, x: self.stepper.step(own, x), carry, u)

    def observe(self, carry: StepperCarry) -> StepRow:
        """The rows of the last step of every lane, see `nsjax.Stepper.observe`."""
        return self._mapped(lambda own, _: (own, self.stepper.observe(own)), carry, None)[1]

    def _mapped(
        self, one: Callable[[StepperCarry, Any], tuple[StepperCarry, StepRow]], carry: StepperCarry, u: Any
    ) -> tuple[StepperCarry, StepRow]:
        """Carries and rows of the function ``one`` in every lane. Params of lanes, which no step changes,
        are not written again.
        """

        def lane(both: tuple[StepperCarry, Any]) -> tuple[StepperCarry, StepRow]:
            after, row = one(*both)
            return dataclasses.replace(after, own=None), row

        self._check("carry.state.t", [carry.state.t])
        after, rows = map_lanes(lane, (carry, u))
        return dataclasses.replace(after, own=carry.own), rows

    def _check(self, what: str, leaves: list[Any]) -> None:
        for x in leaves:
            if jnp.ndim(x) < 1 or jnp.shape(x)[0] != self.lanes:
                raise InputError(
                    f"{what} has shape {jnp.shape(x)}, and the batch {self.lanes} lanes; give one entry a "
                    "lane on its first axis"
                )
