"""Loops whose reverse mode stores a bounded number of bytes: blocks that are computed a second time."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.branches import branch
from nsjax.types import PyTree

REVERSE_BYTES = 6 * 10**6
"""What reverse mode may store of a run whose steps it stores one by one, in bytes. Blocks need less, and
a third copy of the step in the compiled program."""


class Blocks(NamedTuple):
    """How reverse mode stores a run.

    Args:
        size: steps per block, whose carries are computed a second time; all of them: one block.
        solutions: whether solutions are kept beside the carries, so that no solver runs again.
    """

    size: int
    solutions: bool


def tree_shapes(tree: PyTree) -> tuple[Any, tuple[tuple[Any, Any], ...]]:
    """Structure of a tree, shapes and types of its numbers."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((jnp.shape(x), jnp.result_type(x)) for x in leaves)


def tree_bytes(tree: PyTree) -> int:
    """Size of all arrays of ``tree``, those of a batch counted once."""
    leaves = jax.tree.leaves(tree)
    return int(sum(np.prod(jnp.shape(x), dtype=int) * jnp.result_type(x).itemsize for x in leaves))


def plan_blocks(steps: int, carry_bytes: int, solution_bytes: int, budget: int | None = None) -> Blocks:
    """All steps one by one if that fits into the budget, else blocks of about the square root of their
    number: ``steps / size`` carries over the whole run, and ``size`` more in the block at hand.

    Args:
        steps: of the run.
        carry_bytes: size of what one step hands to the next.
        solution_bytes: size of the solutions of a step, zero if they are not to be kept.
        budget: bytes, `REVERSE_BYTES` if None.

    Example:
        >>> from nsjax.core.blocks import plan_blocks
        >>> plan_blocks(1000, 100, 50), plan_blocks(100_000, 100, 50)
        (Blocks(size=1000, solutions=True), Blocks(size=316, solutions=True))
    """
    budget = REVERSE_BYTES if budget is None else budget
    if steps * (carry_bytes + solution_bytes) > budget:
        return Blocks(max(1, int(np.sqrt(steps))), True)
    return Blocks(steps, solution_bytes > 0)


def _even(length: int, size: int) -> int:
    """A divisor of ``length`` within a factor of two of ``size``, the nearest one; else ``size``."""
    near = [n for n in range(max(1, size // 2), min(length, 2 * size) + 1) if length % n == 0]
    return min(near, key=lambda n: abs(np.log(n / size))) if near else size


def scan_blocks(
    body: Callable[[Any, None], tuple[Any, Any]], carry: PyTree, length: int, size: int
) -> tuple[Any, Any]:
    """``lax.scan(body, carry, None, length)`` that keeps for reverse mode the carries of blocks of
    about ``size`` only.

    A length that has no divisor near is padded with iterations that do nothing.
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


def warn_of_rows(rows: int, row_bytes: int, *, traced: bool, limit: int | None = None) -> None:
    """Warns before a run whose saved rows would not fit into memory.

    Twice their size is needed: in a transformation for their derivatives, outside one while the parts of
    the run are joined. Of a batch (`jax.vmap`) one lane is seen and counted.

    Args:
        rows, row_bytes: their number and size.
        traced: whether the run stands in a transformation.
        limit: bytes, the memory of the machine if None.
    """
    if limit is None:
        try:
            limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, OSError, ValueError):
            return
    needed = 2 * rows * row_bytes
    if needed > limit:
        what = ", and their derivatives," if traced else ", while they are joined,"
        whose = " for every lane of a batch" if traced else ""
        mode = "; for few parameters use forward mode (jax.jacfwd)" if traced else ""
        warnings.warn(
            f"simulate: {rows} rows of {row_bytes} bytes{what} take {needed / 2**30:.3g} GiB{whose}, of "
            f"{limit / 2**30:.3g} GiB of memory; raise every, or name the quantities to keep, "
            f"save=[...]{mode}",
            stacklevel=4,
        )
