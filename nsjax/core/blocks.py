"""Loops whose reverse mode stores a bounded number of bytes, since it computes blocks a second time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.branches import branch
from nsjax.types import Array, PyTree

REVERSE_BYTES = 6 * 10**6
"""Most bytes that reverse mode stores of a run step by step. Blocks store less, but need a third copy of
the step in the compiled program."""


class StepBlocks(NamedTuple):
    """Blocks in which reverse mode stores a run.

    Args:
        size: steps of a block, whose carries are computed a second time; with all steps there is one block.
        solutions: whether solutions are stored with the carries, so that no solver runs again.
    """

    size: int
    solutions: bool


def tree_shapes(tree: PyTree) -> tuple[Any, tuple[tuple[Any, Any], ...]]:
    """Structure of a tree, and shapes and types of its leaves."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(
        (x.shape, x.dtype) if hasattr(x, "dtype") else (jnp.shape(x), jnp.result_type(x)) for x in leaves
    )


def plan_blocks(steps: int, carry_bytes: int, solution_bytes: int, budget: int | None = None) -> StepBlocks:
    """Blocks for a run: all steps in one block if they fit into the budget, else blocks of about the square
    root of their number: ``steps / size`` carries over the whole run, ``size`` more in the present block.

    Args:
        steps: of the run.
        carry_bytes: size of what one step hands to the next.
        solution_bytes: size of the solutions of a step, zero if they are not to be kept.
        budget: bytes, `REVERSE_BYTES` if None.

    Example:
        >>> from nsjax.core.blocks import plan_blocks
        >>> plan_blocks(1000, 100, 50), plan_blocks(100_000, 100, 50)
        (StepBlocks(size=1000, solutions=True), StepBlocks(size=316, solutions=True))
    """
    budget = REVERSE_BYTES if budget is None else budget
    if steps * (carry_bytes + solution_bytes) > budget:
        return StepBlocks(max(1, int(np.sqrt(steps))), True)
    return StepBlocks(steps, solution_bytes > 0)


def kept_bytes(steps: int, carry_bytes: int, solution_bytes: int, blocks: StepBlocks) -> int:
    """Bytes that reverse mode stores of a run in these blocks."""
    own = carry_bytes + (solution_bytes if blocks.solutions else 0)
    return blocks.size * own + (steps // blocks.size * carry_bytes if blocks.size < steps else 0)


def _even(length: int, size: int) -> int:
    """The divisor of ``length`` nearest to ``size``, within a factor of two of it; else ``size``."""
    near = [n for n in range(max(1, size // 2), min(length, 2 * size) + 1) if length % n == 0]
    return min(near, key=lambda n: abs(np.log(n / size))) if near else size


def scan_first(
    body: Callable[[Any, Any], tuple[Any, Any]], carry: PyTree, over: PyTree, length: Array
) -> tuple[Any, Any]:
    """``lax.scan(body, carry, over)`` that ends after the first ``length`` () entries; the results of the
    others are zeros. It has no reverse mode.
    """
    body = jax.jit(body)  # keeps its trace: the shapes of results are computed first

    def entry(k: Any) -> PyTree:
        return jax.tree.map(lambda x: x[k], over)

    def one(k: Array, both: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
        carry, new = body(both[0], entry(k))
        return carry, jax.tree.map(lambda x, y: lax.dynamic_update_index_in_dim(x, y, k, 0), both[1], new)

    shapes = jax.eval_shape(body, carry, entry(0))[1]
    size = len(jax.tree.leaves(over)[0])
    zeros = jax.tree.map(lambda x: jnp.zeros((size, *x.shape), x.dtype), shapes)
    return lax.fori_loop(0, length, one, (carry, zeros))


def scan_blocks(
    body: Callable[[Any, None], tuple[Any, Any]], carry: PyTree, length: int, size: int
) -> tuple[Any, Any]:
    """``lax.scan(body, carry, None, length)`` that keeps for reverse mode only the carries between blocks
    of about ``size`` iterations.

    A length without a divisor near ``size`` is padded with iterations that do nothing.
    """
    if size >= length:
        return lax.scan(body, carry, None, length=length)
    size = _even(length, size)
    blocks = -(-length // size)

    def one(carry: Any, k: Any) -> Any:
        if blocks * size == length:
            return body(carry, None)
        nothing = jax.tree.map(lambda y: jnp.zeros(y.shape, y.dtype), jax.eval_shape(body, carry, None)[1])
        return branch(k < length, lambda c: body(c, None), lambda c: (c, nothing), carry)

    def block(carry: Any, first: Any) -> Any:
        return lax.scan(one, carry, first + jnp.arange(size))

    starts = size * jnp.arange(blocks)
    carry, found = lax.scan(jax.checkpoint(block, prevent_cse=False), carry, starts)
    return carry, jax.tree.map(lambda y: y.reshape(blocks * size, *y.shape[2:])[:length], found)
