"""Memory and progress of long runs: estimates, and loops whose reverse mode stores a bounded number of
bytes.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.branches import branch
from nsjax.core.errors import InputError, optional
from nsjax.types import Array, PyTree

# Progress of runs and sweeps, told between compiled calls: a callback inside would split the kernel.


Progress = bool | Callable[[int, int], None] | None


@contextlib.contextmanager
def meter(progress: Progress, total: int, unit: str = "lane") -> Iterator[Callable[[int], None]]:
    """Context with a function that the caller calls with the number of finished lanes or steps.

    Args:
        progress: False or None: silent; True: a bar; a function: called with those done and all.
        total: number of all.
        unit: ``"lane"`` or ``"step"``.

    Raises:
        InputError: for ``progress=True`` without tqdm.
    """
    if progress is False or progress is None:
        yield lambda done: None
        return
    if progress is not True:
        yield lambda done: progress(done, total)
        return
    tqdm = optional("progress=True needs", "progress", "tqdm.auto").tqdm
    with tqdm(total=total, unit=unit, unit_scale=unit == "step") as bar:
        yield lambda done: bar.update(done - bar.n) and None


# Estimates of the memory that a run needs, before it is allocated.


_GROUP = pathlib.Path("/sys/fs/cgroup/memory.max")
"""File in which Linux states the memory limit of a container."""


def tree_bytes(tree: PyTree) -> int:
    """Bytes of all arrays of ``tree``, or of its shapes; the lanes of a batch count once."""
    leaves = jax.tree.leaves(tree)
    return int(sum(np.prod(np.shape(x), dtype=float) * jnp.result_type(x).itemsize for x in leaves))


def machine_bytes() -> float:
    """Memory that this process may use [bytes]; infinite if it cannot be found out."""
    try:
        whole: float = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return np.inf
    try:
        return min(whole, float(_GROUP.read_text()))
    except (OSError, ValueError):  # no such file, or "max"
        return whole


def refuse_more(what: str, needed: float, remedy: str, *, limit: float | None = None) -> None:
    """Refuses a run or array that does not fit into memory.

    Args:
        what: the thing, for the start of the error sentence.
        needed: bytes that it needs.
        remedy: end of the sentence.
        limit: bytes, `machine_bytes` if None.

    Raises:
        InputError: with the estimate.

    Example:
        >>> from nsjax.core.memory import refuse_more
        >>> refuse_more("events = 5", 3 * 2**30, "ask for fewer", limit=2**30)
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: events = 5 would take 3 GiB, of 1 GiB of memory; ask for fewer
    """
    # size [bytes] that every machine has left: it is not asked, which takes longer than a short run
    little = 2.0**24
    if limit is None and needed <= little:
        return
    limit = machine_bytes() if limit is None else limit
    if needed > limit:
        raise InputError(
            f"{what} would take {needed / 2**30:.3g} GiB, of {limit / 2**30:.3g} GiB of memory; {remedy}"
        )


def lanes_around(tree: PyTree) -> tuple[int, bool]:
    """Number of lanes of all `jax.vmap` around a tree of tracers, and whether the tree is differentiated.
    Transformations outside of a `jax.jit` cannot be seen.
    """
    most, differentiated = 1, False
    for leaf in jax.tree.leaves(tree):
        lanes, seen = 1, leaf
        while isinstance(seen, jax.core.Tracer):
            axis = getattr(getattr(seen, "_trace", None), "axis_data", None)
            lanes *= int(getattr(axis, "size", 1) or 1)
            differentiated |= hasattr(seen, "primal")
            seen = getattr(seen, "primal", getattr(seen, "val", None))
        most = max(most, lanes)
    return most, differentiated


FEW_ROWS = "raise every, or name the quantities to keep, save=[...]"


def check_rows(
    rows: int, row_bytes: int, *, traced: bool, lanes: int = 1, kept: int = 0, limit: float | None = None
) -> None:
    """Refuses, or warns of, a run whose saved rows would not fit into memory.

    Outside transformations a run needs twice the size of its rows while its parts are joined, and is
    refused if that does not fit. In a transformation the rows need twice their size for derivatives, but
    rows that nobody uses fall away: the user is warned, and the run is refused if the times of its rows do
    not fit.

    Args:
        rows, row_bytes: number of rows of a lane, and bytes of a row.
        traced: whether the run is inside a transformation.
        lanes: lanes of all batches around the run, see `lanes_around`.
        kept: bytes that reverse mode stores of a lane in addition to the rows.
        limit: bytes, `machine_bytes` if None.

    Raises:
        InputError: for rows that do not fit.

    Warns:
        UserWarning: for rows that may not fit with the bytes that reverse mode stores.
    """
    whose = f" in each of {lanes} lanes" if lanes > 1 else ""
    what = f"simulate: {rows} rows of {row_bytes} bytes{whose}"
    if not traced:
        refuse_more(f"{what}, while they are joined,", 2.0 * rows * row_bytes, FEW_ROWS, limit=limit)
        return
    limit = machine_bytes() if limit is None else limit
    refuse_more(f"{what}: their times alone", 8.0 * rows * lanes, "raise every", limit=limit)
    needed = lanes * (2.0 * rows * row_bytes + kept)
    if needed > limit:
        fewer = ", or take fewer lanes at a time (jax.lax.map)" if lanes > 1 else ""
        warnings.warn(
            f"{what} and their derivatives may take {needed / 2**30:.3g} GiB, of {limit / 2**30:.3g} GiB "
            f"of memory (batches outside of a jax.jit are not counted); {FEW_ROWS}{fewer}; for few "
            "parameters use forward mode (jax.jacfwd)",
            stacklevel=4,
        )


def check_events(events: int, nt: int) -> None:
    """Refuses an impact list that does not fit into memory; each step of a run reads all of it.

    Raises:
        InputError: for a list that does not fit.
    """
    refuse_more(f"events = {events}", 8.0 * events * (5 + nt), "ask for fewer, or for none")


# Loops whose reverse mode stores a bounded number of bytes, since it computes blocks a second time.


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
        >>> from nsjax.core.memory import plan_blocks
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
