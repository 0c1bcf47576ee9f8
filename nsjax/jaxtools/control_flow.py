"""Branches, loops and lanes that depend on values of a run, in the form that compiles to a small program;
loops whose reverse mode stores a bounded number of bytes.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import SymbolicZero

from nsjax.jaxtools.internals import jaxpr_as_fun
from nsjax.jaxtools.programs import without_repeats, without_unread
from nsjax.types import Array, PyTree, record

# One function of many lanes: independent runs or steps.


def map_lanes(lane: Callable[[Any], PyTree], lanes: PyTree, count: Array | None = None) -> PyTree:
    """Results of all lanes, computed on one device in the way that is fastest there.

    A CPU computes them one after the other: the loop over lanes and the time loops become one kernel, a
    lane out of contact really skips the contact problem, and a lane gives the bits of a single run. A GPU
    computes them all at once, since one lane cannot fill it.

    Args:
        lane: function of one lane.
        lanes: pytree whose leaves have the lanes as first axis.
        count: number of lanes to compute; the results of the others are zero and cost nothing on a CPU.
            None: all, and the map can be differentiated in reverse mode.
    """
    if jax.default_backend() != "cpu":
        return jax.vmap(lane)(lanes)
    if count is None:
        return lax.map(lane, lanes)
    length = jax.tree.leaves(lanes)[0].shape[0]
    at = functools.partial(lax.dynamic_index_in_dim, axis=0, keepdims=False)

    def step(k: Array, found: PyTree) -> PyTree:
        new = lane(jax.tree.map(lambda x: at(x, k), lanes))
        return jax.tree.map(lambda all_, x: lax.dynamic_update_index_in_dim(all_, x, k, 0), found, new)

    shapes = jax.eval_shape(lane, jax.tree.map(lambda x: x[0], lanes))
    empty = jax.tree.map(lambda x: jnp.zeros((length, *x.shape), x.dtype), shapes)
    return lax.fori_loop(0, count, step, empty)


def lanes_around(tree: PyTree) -> tuple[int, list[Array]]:
    """Number of lanes of all `jax.vmap` around tracers, and the leaves that are differentiated."""
    leaves: list[Any] = [x for x in jax.tree.leaves(tree) if isinstance(x, jax.core.Tracer)]
    sizes: list[int] = [1]
    moving: list[Array] = []

    @jax.custom_jvp
    def differentiated(leaves: list[Array]) -> list[Array]:
        return leaves

    @functools.partial(differentiated.defjvp, symbolic_zeros=True)
    def follow(primals: Any, tangents: Any) -> Any:
        moving[:] = [x for x, y in zip(leaves, tangents[0], strict=True) if not isinstance(y, SymbolicZero)]
        return primals[0], tangents[0]

    def batched(leaves: list[Array]) -> Any:
        @custom_vmap
        def same(leaves: list[Array]) -> list[Array]:
            return leaves

        @same.def_vmap
        def together(size: int, split: list[list[bool]], leaves: list[Array]) -> Any:
            sizes.append(size)
            return batched(leaves), split[0]

        return same(leaves)

    if leaves:
        differentiated(leaves)
        batched(lax.stop_gradient(leaves))
    return int(np.prod(sizes)), moving


def places_of(some: Sequence[Array], tree: PyTree) -> tuple[int, ...]:
    """Places of the leaves of a tree that are among some arrays."""
    known = {id(x) for x in some}
    return tuple(k for k, x in enumerate(jax.tree.leaves(tree)) if id(x) in known)


def results_that_move(
    function: Callable[[Any], Any], data: PyTree, moves: Sequence[int]
) -> tuple[int, ...]:  # fmt: skip
    """Places of the leaves of a function's result that depend on those of its argument at ``moves``."""
    leaves, tree = jax.tree.flatten(data)
    found: list[tuple[int, ...]] = []

    def look(some: list[Array]) -> Array:
        every = [*leaves]
        for k, x in zip(moves, some, strict=True):
            every[k] = x
        result = function(jax.tree.unflatten(tree, every))
        found.append(places_of(lanes_around(result)[1], result))
        return jnp.zeros(())

    jax.eval_shape(lambda some: jax.jvp(look, (some,), (some,)), [leaves[k] for k in moves])
    return found[-1]


# Loops of a batch whose lanes need different numbers of passes, on devices that run lanes side by side.


KEPT, LEAST = 8, 32
"""A loop goes on with a batch of an eighth of the lanes when no more are left, down to this many lanes."""


def compacting_loop(loop: Any) -> Callable[..., list[Array]]:
    """The function of a traced ``lax.while_loop`` whose batch drops lanes that have ended. Returns
    ``(constants of the condition, constants of the body, carry) -> carry``, all of them flat.

    The results of every lane are those of the plain loop: a lane passes through the same operations, in
    whatever batch it is. ``loop``: the equation of the loop.
    """
    ahead, body = loop.params["cond_nconsts"], loop.params["body_nconsts"]
    going, step = jaxpr_as_fun(loop.params["cond_jaxpr"]), jaxpr_as_fun(loop.params["body_jaxpr"])

    @custom_vmap
    def plain(*operands: Array) -> list[Array]:
        return list(loop.primitive.bind(*operands, **loop.params))

    @plain.def_vmap
    def together(size: int, batched: Sequence[bool], *operands: Array) -> tuple[list[Array], list[bool]]:
        axes = [0 if x else None for x in batched]
        first = ahead + body
        carry = [
            x if b else jnp.broadcast_to(x, (size, *jnp.shape(x)))
            for x, b in zip(operands[first:], batched[first:], strict=True)
        ]
        own = [0] * len(carry)
        batch = _Batch(
            alive=jax.vmap(lambda *x: going(*x)[0], (*axes[:ahead], *own)),
            moved=jax.vmap(lambda *x: step(*x), (*axes[ahead:first], *own)),
            constants=(operands[:ahead], operands[ahead:first]),
            axes=(axes[:ahead], axes[ahead:first]),
        )
        found = _run(batch, size, carry)
        return found, [True] * len(found)

    return plain


@dataclasses.dataclass(frozen=True)
class _Batch:
    """Functions of a batch of loops.

    Args:
        alive: ``(constants, carry) -> (lanes,) bool``, lanes that go on.
        moved: ``(constants, carry) -> carry`` after a pass.
        constants: those of both functions.
        axes: their axes of lanes, None where all lanes share a value.
    """

    alive: Callable[..., Array]
    moved: Callable[..., list[Array]]
    constants: tuple[Sequence[Array], Sequence[Array]]
    axes: tuple[Sequence[int | None], Sequence[int | None]]


def _run(batch: _Batch, size: int, carry: list[Array]) -> list[Array]:
    """The loop over a batch of ``size`` lanes, which ends in smaller and smaller batches."""
    few = size // KEPT if size // KEPT >= LEAST else 0
    ahead, body = batch.constants

    def more(both: tuple[Array, list[Array]]) -> Array:
        return jnp.sum(both[0]) > few

    def advance(both: tuple[Array, list[Array]]) -> tuple[Array, list[Array]]:
        live, carry = both
        ends = zip(batch.moved(*body, *carry), carry, strict=True)
        new = [jnp.where(live.reshape(-1, *(1,) * (x.ndim - 1)), x, y) for x, y in ends]
        return batch.alive(*ahead, *new), new

    live, carry = lax.while_loop(more, advance, (batch.alive(*ahead, *carry), carry))
    if not few:
        return carry
    places = jnp.nonzero(live, size=few, fill_value=size)[0]
    some = functools.partial(jnp.take, indices=jnp.minimum(places, size - 1), axis=0)
    held = [
        [x if axis is None else some(x) for x, axis in zip(own, axes, strict=True)]
        for own, axes in zip(batch.constants, batch.axes, strict=True)
    ]
    left = _run(dataclasses.replace(batch, constants=(held[0], held[1])), few, [some(x) for x in carry])
    return [x.at[places].set(y, mode="drop") for x, y in zip(carry, left, strict=True)]


# Branches and loops that depend on values of a run, in the form that compiles to a small program.


def branch(
    condition: Array, yes: Callable[..., Any], no: Callable[..., Any], *operands: Any, again: bool = False
) -> Any:
    """``lax.cond`` whose branches are functions of the program, which calls the one that is taken.

    JAX makes a derivative in several passes (tangents, residuals, values that are computed a second time)
    and copies the branches of ``lax.cond`` in each pass; every branch around them doubles the copies.
    Functions are not copied: tracing a gradient handles half as many operations, and the same operations
    run.

    Args:
        condition: () bool.
        yes, no: functions of ``operands`` with results of the same shapes.
        operands: their arguments; both may use values of their surroundings as well.
        again: whether reverse mode computes the branch that was taken once more inside its transpose. Else
            each branch returns the residuals of its transpose, and zeros for those of the other branch: in
            a large branch hundreds of arrays, at every visit.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.jaxtools.control_flow import branch
        >>> float(branch(jnp.asarray(True), lambda x: 2 * x, lambda x: x, 3.0))
        6.0
    """
    if again:
        yes, no = (jax.checkpoint(f, prevent_cse=False) for f in (yes, no))
    return lax.cond(condition, jax.jit(yes), jax.jit(no), *operands)


def repeat(
    going: Callable[[Any], Array], body: Callable[[Any], Any], start: Any, uneven: bool = False
) -> Any:
    """``lax.while_loop`` whose body holds only the operations that its results need, each of them once.

    JAX removes operations that nobody reads from scans and branches, but not from these loops. Derivatives
    and products with parts of matrices leave many of them: a third of the passes of an implicit step.

    In a batch the condition is there twice, for the loop and for its lanes. XLA may round one operation
    differently in two places, and a lane that the loop waits for and the body holds never ends: conditions
    compare what the loop carries with given numbers, and compute nothing that may round.

    Args:
        going: ``(carry) -> () bool``, whether the body is to run once more.
        body: ``(carry) -> carry``.
        start: carry, a tree of arrays.
        uneven: whether lanes of a batch differ much in their number of passes. On a device that runs them
            side by side, the loop then goes on with the lanes that are left, see `compacting_loop`; it has
            no derivative.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.jaxtools.control_flow import repeat
        >>> int(repeat(lambda k: k < 3, lambda k: k + 1, jnp.asarray(0)))
        3
    """
    loop, shapes = jax.make_jaxpr(lambda x: lax.while_loop(going, body, x), return_shape=True)(start)
    lines = [_dce_and_cse(line) if line.primitive is lax.while_p else line for line in loop.jaxpr.eqns]
    leaves, made = jax.tree.leaves(start), loop.jaxpr.replace(eqns=lines)
    if uneven and jax.default_backend() != "cpu":
        *others, last = lines
        operands = jaxpr_as_fun(loop.replace(jaxpr=made.replace(eqns=others, outvars=last.invars)))(*leaves)
        found = compacting_loop(last)(*operands)
    else:
        found = jaxpr_as_fun(loop.replace(jaxpr=made))(*leaves)
    return jax.tree.unflatten(jax.tree.structure(shapes), found)


def repeat_for(count: Array, body: Callable[[Array, Any], Any], start: Any) -> Any:
    """``lax.fori_loop`` from 0 to ``count``, with a body as in `repeat`."""
    ahead = lambda both: (both[0] + 1, body(*both))  # noqa: E731
    return repeat(lambda both: both[0] < count, ahead, (jnp.zeros_like(count), start))[1]


def _dce_and_cse(loop: Any) -> Any:
    """The loop with a body without unread and repeated operations; arguments and results stay the same."""
    body = without_repeats(without_unread(loop.params["body_jaxpr"]))
    return loop.replace(params=loop.params | {"body_jaxpr": body})


@record()
class Shared:
    """Arrays that all passes of a loop share, and that are differentiated, in one vector.

    Reverse mode adds up the cotangents of what passes share, array by array: in a loop that is compiled in
    pieces two kernels in each pass, for each array of a model. ``arrays``: the arrays, tracers of floats;
    ``vector``: their numbers, one after the other.
    """

    arrays: list[Array]
    vector: Array

    @classmethod
    def of(cls, tree: PyTree, moving: Sequence[Array]) -> Shared:
        """Those leaves of a tree that are among the ``moving`` ones."""
        own, moves = {id(x): x for x in jax.tree.leaves(tree)}, {id(x) for x in moving}
        arrays = [x for place, x in own.items() if place in moves]
        return cls(arrays=arrays, vector=jnp.concatenate([jnp.zeros(0), *map(jnp.ravel, arrays)]))

    def apart(self, tree: PyTree) -> tuple[PyTree, Callable[[PyTree], PyTree]]:
        """The vector with the other leaves of a tree, and the function that makes the tree of them."""
        shape: Any  # the type stubs of jax lack its methods
        leaves, shape = jax.tree.flatten(tree)
        types, known = [*map(jax.typeof, self.arrays)], {id(x): k for k, x in enumerate(self.arrays)}
        places = [known.get(id(x)) for x in leaves]

        def whole(both: tuple[Array, list[Any]]) -> PyTree:
            parts = lax.split(both[0], [math.prod(x.shape) for x in types]) if types else []
            arrays = [y.reshape(x.shape).astype(x.dtype) for x, y in zip(types, parts, strict=True)]
            others = iter(both[1])
            return shape.unflatten([next(others) if k is None else arrays[k] for k in places])

        return (self.vector, [x for x, k in zip(leaves, places, strict=True) if k is None]), whole


# Loops whose reverse mode stores a bounded number of bytes, since it computes blocks a second time.


REVERSE_BYTES = 6 * 10**6
"""Most bytes that reverse mode stores of a run step by step; blocks need a third copy of the step."""


def tree_bytes(tree: PyTree) -> int:
    """Bytes of all arrays of ``tree``, or of its shapes; the lanes of a batch count once."""
    leaves = jax.tree.leaves(tree)
    return int(sum(np.prod(np.shape(x), dtype=float) * jnp.result_type(x).itemsize for x in leaves))


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
        carry_bytes: size of what one step hands to the next.
        solution_bytes: size of the solutions of a step, zero if they are not to be kept.
        budget: bytes, `REVERSE_BYTES` if None.

    Example:
        >>> from nsjax.jaxtools.control_flow import plan_blocks
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
    """``lax.scan`` that ends after ``length`` () entries, with zeros after them; no reverse mode."""
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
