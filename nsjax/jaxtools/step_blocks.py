"""Time loops of many large steps, whose derivative goes through blocks of steps in loops of moderate size.

The derivative of a step is a linear map of tangents, with coefficients that the state at its start
determines. Where these states are known, all coefficients of a block of steps are found without order
between the steps. Their program, a list of operations, is cut into parts, each of which is a loop over the
block: a kernel that compiles soon. One more loop, forward or backward over the steps, applies the maps.

A large step is either compiled as one kernel, which takes minutes, or in pieces, which takes a quarter of a
microsecond for each operation (`nsjax.jaxtools.programs.LARGE_WITH_TANGENTS`). This is between: kernels of
a bounded size.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from nsjax.jaxtools.control_flow import StepBlocks, branch, scan_blocks
from nsjax.jaxtools.implicit import SOLUTION, LiveLeaves, keep_solutions, value_with_derivative_of
from nsjax.jaxtools.internals import ClosedJaxpr, Jaxpr, Var, jaxpr_as_fun
from nsjax.jaxtools.programs import (
    LARGE_STEP,
    LARGE_WITH_TANGENTS,
    code_size,
    ends_kernel,
    in_one_list,
    lines_alone,
    without_ends,
    without_repeats,
    without_unread,
)
from nsjax.jaxtools.rules import FLOAT0, with_rule
from nsjax.types import Array, PyTree

Body = Callable[[PyTree, None], tuple[PyTree, PyTree]]
_Data = tuple[list[Array], list[Array]]


class Plan(NamedTuple):
    """Sizes from which on the derivative of a run goes through blocks, and those of its parts.

    Args:
        steps: least number of steps: fewer do not pay for the longer compilation. A gradient of a hopper
            took 70 to 130 in place of 300 us a step, and up to twice as long to compile, on a machine with
            much other work.
        step: least code size of a step without its derivative.
        whole: code size of a step with tangents up to which its loop is one kernel.
        block: steps of a block. The parts of its program hand over arrays for all of them, some 50 kB a
            step for a robot of six coordinates: they are to stay in the cache.
        part: code size up to which operations share a loop. The branch of events of a hopper (12,000)
            compiles in 27 CPU s in one loop, in 12 in parts of 3,000, and in 13 in pieces.
    """

    steps: int = 5000
    step: int = 7000
    whole: int = LARGE_WITH_TANGENTS
    block: int = 8
    part: int = 3000


def scan_steps(
    body: Body,
    carry: PyTree,
    length: int,
    blocks: StepBlocks,
    plan: Plan | None = None,
    usual: Body | None = None,
) -> tuple[PyTree, PyTree]:
    """``lax.scan(body, carry, None, length)`` for the steps of a run, whose reverse mode stores what
    ``blocks`` says; the derivative of many large steps goes through blocks by ``plan``.

    Args:
        body: ``carry, None -> carry, row``.
        carry: state of the loop.
        length: number of steps.
        blocks: what reverse mode stores.
        plan: sizes; None: those of `Plan`.
        usual: the body where no blocks are made; None: it stores what ``blocks`` says.
    """
    plan = plan or Plan()

    def plain(body: Body, carry: PyTree, once: Body | None) -> tuple[PyTree, PyTree]:
        if once is None:
            once = keep_solutions(body) if blocks.solutions else jax.checkpoint(body, prevent_cse=False)
        return scan_blocks(once, carry, length, blocks.size)

    if length < plan.steps or jax.default_backend() != "cpu":
        return plain(body, carry, usual)
    made, shapes = jax.make_jaxpr(lambda x: body(x, None), return_shape=True)(carry)
    if not plan.step <= code_size(without_unread(made)) <= LARGE_STEP:
        return plain(body, carry, usual)
    step = _Step(made, len(jax.tree.leaves(carry)))

    def in_order(data: _Data) -> Any:
        consts, leaves = data
        return plain(lambda x, _: step(consts, x), leaves, None)

    def full(data: _Data) -> Any:
        size = sum(map(code_size, step.parts(_moving(data[0]))))
        return in_order(data) if size <= plan.whole else _in_blocks(step, data, length, (blocks, plan))

    run = value_with_derivative_of(in_order, full)
    found = run((list(made.consts), jax.tree.leaves(carry)))
    last, rows = (jax.tree.unflatten(jax.tree.structure(x), y) for x, y in zip(shapes, found, strict=True))
    return last, rows


def _moving(leaves: list[Array]) -> tuple[int, ...]:
    """Places of floats that are differentiated."""
    places: list[int] = []

    @jax.custom_jvp
    def look(leaves: list[Array]) -> list[Array]:
        return leaves

    @functools.partial(look.defjvp, symbolic_zeros=True)
    def rule(primals: Any, tangents: Any) -> Any:
        places.extend(LiveLeaves(primals[0], tangents[0]).live)
        return primals[0], tangents[0]

    look(leaves)
    return tuple(places)


def _opened(lines: Jaxpr) -> Jaxpr:
    """A traced function whose constants are arguments."""
    return lines.replace(constvars=[], invars=[*lines.constvars, *lines.invars])


class _Step:
    """A traced step ``constants, carry -> carry, row`` of flat lists, and its derivative in two parts."""

    def __init__(self, made: ClosedJaxpr, count: int) -> None:
        constants = len(made.consts)
        made = made.replace(jaxpr=_opened(made.jaxpr), consts=[])
        self.made, self.constants, self.count = made, constants, count
        types = [jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in made.in_avals]
        self.types = types[:constants], types[constants:]
        real = lambda types: [k for k, x in enumerate(types) if jnp.issubdtype(x.dtype, jnp.floating)]  # noqa: E731
        self.live, self.results = real(self.types[1]), real(made.out_avals)
        self.parts = functools.cache(self._parts)

    def __call__(self, consts: list[Array], carry: list[Array]) -> tuple[list[Array], list[Array]]:
        found = list(jaxpr_as_fun(self.made)(*consts, *carry))
        return found[: self.count], found[self.count :]

    def _parts(self, moving: tuple[int, ...]) -> tuple[ClosedJaxpr, ClosedJaxpr]:
        """The coefficients of the derivative, ``constants, carry -> coefficients``, and the linear map
        ``coefficients, change of the moving constants, change of the carry -> change of the results``; of
        floats alone.
        """
        held: list[ClosedJaxpr] = []

        def coefficients(consts: list[Array], carry: list[Array]) -> list[Array]:
            def results(some: list[Array], state: list[Array]) -> list[Array]:
                every = [*consts, *carry]
                for k, x in zip(
                    (*moving, *(self.constants + k for k in self.live)), [*some, *state], strict=True
                ):
                    every[k] = x
                found = jaxpr_as_fun(self.made)(*every)
                return [found[k] for k in self.results]

            at = [consts[k] for k in moving], [carry[k] for k in self.live]
            linear = jax.make_jaxpr(jax.linearize(results, *at)[1])(*at)
            held.append(linear)
            return list(linear.consts)

        with without_ends():
            known = jax.make_jaxpr(coefficients)(*self.types)
        linear = ClosedJaxpr(_opened(held[0].jaxpr), [])
        return _cheap_again(
            without_unread(without_repeats(in_one_list(known))),
            without_repeats(in_one_list(linear)).jaxpr,
        )


CHEAP = ("broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "neg", "copy")


def _cheap_again(known: ClosedJaxpr, linear: Jaxpr) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Both parts of a derivative, where the linear one computes copies of coefficients itself, which need
    no storage then.
    """
    made = {x: line for line in known.eqns for x in line.outvars}
    left = [x for x in known.jaxpr.outvars if isinstance(x, Var)]
    kept: dict[Var, None] = {}
    moved: set[int] = set()
    while left:
        x = left.pop()
        line = made.get(x)
        if line is None or line.primitive.name not in CHEAP:
            kept[x] = None
        elif id(line) not in moved:
            moved.add(id(line))
            left += [y for y in line.invars if isinstance(y, Var)]
    count = len(known.out_avals)
    own = dict(zip(linear.invars[:count], known.jaxpr.outvars, strict=True))
    swap = lambda x: own.get(x, x) if isinstance(x, Var) else x  # noqa: E731
    again = [line for line in known.eqns if id(line) in moved]
    lines = [*again, *(line.replace(invars=[swap(x) for x in line.invars]) for line in linear.eqns)]
    first = list(kept)
    ends = [swap(x) for x in linear.outvars]
    info = linear.debug_info.with_unknown_names()
    new = linear.replace(
        constvars=[], invars=[*first, *linear.invars[count:]], outvars=ends, eqns=lines, debug_info=info
    )
    fewer = known.replace(
        jaxpr=known.jaxpr.replace(outvars=first, debug_info=known.jaxpr.debug_info.with_unknown_names())
    )
    return without_unread(fewer), without_repeats(ClosedJaxpr(new, []))


def _in_blocks(step: _Step, data: _Data, length: int, plans: tuple[StepBlocks, Plan]) -> Any:
    """The run in blocks of steps, of which the last one is filled up by steps that do nothing."""
    (consts, carry), (blocks, plan) = data, plans
    size = plan.block
    number, block = -(-length // size), _Block(step, plan, length % size == 0)

    def one(both: tuple[list[Array], Array], _: None) -> tuple[tuple[list[Array], Array], list[Array]]:
        carry, left = both
        # the loop over blocks is no kernel; what it loops over are kernels
        carry, rows = block(consts, ends_kernel(carry, carry), jnp.minimum(size, left))
        return (carry, left - size), rows

    group = max(1, blocks.size // size)
    (last, _), rows = scan_blocks(keep_solutions(one), (carry, jnp.asarray(length)), number, group)
    return last, [x.reshape(number * size, *x.shape[2:])[:length] for x in rows]


class _Block:
    """``(constants, carry, number of steps) -> (carry, rows)`` of a block, with its derivative; ``even``:
    whether all blocks have all steps.
    """

    def __init__(self, step: _Step, plan: Plan, even: bool) -> None:
        self.step, self.plan, self.even = step, plan, even
        self.taken = with_rule(self._value, self._rule)

    def __call__(
        self, consts: list[Array], carry: list[Array], n: Array
    ) -> tuple[list[Array], list[Array]]:
        end, rows, _ = self.taken((consts, carry, n))
        return end, rows

    def _kept(self, going: Array, new: list[Array], old: list[Array]) -> list[Array]:
        return new if self.even else [jnp.where(going, a, b) for a, b in zip(new, old, strict=True)]

    def _value(self, data: Any) -> tuple[list[Array], list[Array], list[Array]]:
        """Carry after the block, rows, and the carries before its steps."""
        consts, carry, n = data

        def one(carry: list[Array], k: Array) -> tuple[list[Array], Any]:
            new, row = self.step(consts, carry)
            return self._kept(k < n, new, carry), (row, carry)

        end, (rows, starts) = lax.scan(one, carry, jnp.arange(self.plan.block))
        return end, rows, starts

    def _rule(self, data: Any, change: Any) -> Any:
        step, (consts, carry, _) = self.step, data
        found = self.taken(data)
        starts = checkpoint_name(found[2], SOLUTION)
        some, state = LiveLeaves(consts, change[0]), LiveLeaves(carry, change[1], [True] * len(carry))
        known, linear = step.parts(tuple(some.live))
        shared = dict(
            zip([*known.jaxpr.constvars, *known.jaxpr.invars], [*known.consts, *consts], strict=False)
        )
        own = dict(zip(known.jaxpr.invars[len(consts) :], starts, strict=True))
        in_loops(known.jaxpr, shared, own, self.plan.part)
        names = known.jaxpr.outvars

        def one(change: list[Array], over: tuple[Array, list[Array]]) -> tuple[list[Array], Any]:
            k, here = over
            left = iter(here)
            at = [next(left) if x in own else shared[x] for x in names]
            moves = jaxpr_as_fun(linear)(*at, *some.tangents, *change)
            new, rows = moves[: len(change)], moves[len(change) :]
            return self._kept(k < data[2], new, change), (rows, change)

        mapped = [own[x] for x in names if x in own]
        end, (rows, states) = lax.scan(one, state.tangents, (jnp.arange(self.plan.block), mapped))
        places = [k - step.count for k in step.results if k >= step.count]
        return found, (
            _spread(found[0], step.live, end), _spread(found[1], places, rows),
            _spread(found[2], step.live, states),
        )  # fmt: skip


def _is_branch(line: Any) -> bool:
    """Whether an operation chooses one of two functions by a value of the run."""
    return (
        line.primitive.name == "cond"
        and len(line.params["branches"]) == 2
        and isinstance(line.invars[0], Var)
    )


def _spread(leaves: Sequence[Array], places: Sequence[int], moves: Sequence[Array]) -> list[Any]:
    """Changes of all ``leaves``: ``moves`` at ``places``, none of the others, which are no floats."""
    known = dict(zip(places, moves, strict=True))
    return [known.get(k, np.zeros(jnp.shape(x), FLOAT0)) for k, x in enumerate(leaves)]


def in_loops(
    lines: Jaxpr, one: dict[Var, Array], every: dict[Var, Array], most: int, where: Array | None = None
) -> None:
    """Enters values of the variables of a traced function for each of several rows, by loops of operations
    whose code size is at most ``most`` each, or that of one operation.

    Args:
        lines: the function; no function is called in it.
        one: values that all rows share.
        every: those of each row.
        most: code size.
        where: (rows,) bool, rows that are wanted; the others are zero. None: all.
    """
    parts: list[list[Any]] = []
    known, total = set(every), most
    for line in lines.eqns:
        if known.isdisjoint(x for x in line.invars if isinstance(x, Var)):
            body, inputs, outputs = lines_alone(lines, [line])
            one |= zip(outputs, jaxpr_as_fun(body)(*[one[x] for x in inputs]), strict=True)
            continue
        known |= set(line.outvars)
        own = code_size(lines_alone(lines, [line])[0])
        if total + own > most:
            parts.append([])
            total = 0
        parts[-1].append(line)
        total += own
    read, needed = {x for x in lines.outvars if isinstance(x, Var)}, []
    for part in reversed(parts):
        needed.append(read)
        read = read | {x for line in part for x in line.invars if isinstance(x, Var)}
    for part, later in zip(parts, reversed(needed), strict=True):
        if len(part) == 1 and _divides(part[0], every, most):
            every |= _through_branch(part[0], one, every, most, where)
            continue
        body, inputs, outputs = lines_alone(lines, part, later)
        every |= zip(outputs, _each(body, inputs, one, every, where), strict=True)


def _each(
    body: ClosedJaxpr, inputs: list[Any], one: dict[Var, Array], every: dict[Var, Array],
    where: Array | None,
) -> list[Array]:  # fmt: skip
    """Results of a function for each row, by one loop."""
    function, mapped = jaxpr_as_fun(body), [x for x in inputs if isinstance(x, Var) and x in every]

    def row(_: None, over: tuple[Any, list[Array]]) -> tuple[None, list[Array]]:
        wanted, own = over
        known = one | dict(zip(mapped, own, strict=True))
        operands = [known[x] if isinstance(x, Var) else x.val for x in inputs]
        if where is None:
            return None, list(function(*operands))
        none = lambda *_: [jnp.zeros(x.shape, x.dtype) for x in body.out_avals]  # noqa: E731
        return None, branch(wanted, lambda *x: list(function(*x)), none, *operands)

    length = len(next(iter(every.values())))
    found: list[Array] = lax.scan(row, None, (where, [every[x] for x in mapped]), length=length)[1]
    return found


def _divides(line: Any, every: dict[Var, Array], most: int) -> bool:
    """Whether an operation is a branch whose second function is so large that it gets loops of its own."""
    return _is_branch(line) and line.invars[0] in every and code_size(line.params["branches"][1]) > most


def _through_branch(
    line: Any, one: dict[Var, Array], every: dict[Var, Array], most: int, where: Array | None
) -> dict[Var, Array]:
    """Results of a branch for each row. Rows that take its first function alone cost nothing else."""
    turn, *operands = line.invars
    first, second = line.params["branches"]
    second = without_unread(without_repeats(in_one_list(second)))
    takes = every[turn] != 0
    takes = takes if where is None else takes & where
    plain = lambda: _each(first, operands, one, every, where)  # noqa: E731

    def divided() -> list[Array]:
        fixed, rows = dict(zip(second.jaxpr.constvars, second.consts, strict=True)), {turn: every[turn]}
        for x, given in zip(second.jaxpr.invars, operands, strict=True):
            if isinstance(given, Var) and given in every:
                rows[x] = every[given]
            else:
                fixed[x] = one[given] if isinstance(given, Var) else given.val
        in_loops(second.jaxpr, fixed, rows, most, takes)
        found = []
        for x, other in zip(second.jaxpr.outvars, plain(), strict=True):
            new = rows[x] if x in rows else fixed[x] if isinstance(x, Var) else x.val
            found.append(jnp.where(takes.reshape(-1, *(1,) * (other.ndim - 1)), new, other))
        return found

    found = branch(jnp.any(takes), divided, plain)
    return {x: y for x, y in zip(line.outvars, found, strict=True) if type(x) is Var}
