"""Programs without operations that nobody reads, and large loops compiled in pieces."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.jaxtools.internals import ClosedJaxpr, Jaxpr, Var, dce_jaxpr, jaxpr_as_fun
from nsjax.types import PyTree

# Programs without operations whose results are not used, or that stand in them twice.


def without_unread(made: ClosedJaxpr) -> ClosedJaxpr:
    """A traced function with the same arguments and results, without operations that no result needs."""
    wanted = [True] * len(made.jaxpr.outvars)
    lines, _ = dce_jaxpr(made.jaxpr, wanted, instantiate=True)
    return made.replace(jaxpr=lines)


def without_repeats(made: ClosedJaxpr) -> ClosedJaxpr:
    """A traced function with the same results, in which equal operations on equal operands are done once.

    The compiler does the same, but for branches and loops: two evaluations of `nsjax.math.sin_cos` at one
    position, in the gap and in the force, stay two. The insides of branches and loops stay as they are.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from nsjax.jaxtools.programs import without_repeats
        >>> made = jax.make_jaxpr(lambda x: jnp.sin(2.0 * x) + jnp.cos(2.0 * x))(1.0)
        >>> [len(x.eqns) for x in (made, without_repeats(made))]
        [5, 4]
    """
    known: dict[Var, Var] = {}
    first: dict[Any, list[Any]] = {}
    lines = []
    for line in made.eqns:
        line = line.replace(invars=[known.get(x, x) if isinstance(x, Var) else x for x in line.invars])
        alike = first.setdefault((line.primitive, *map(_operand, line.invars)), [])
        same = next((x for x in alike if _same_operation(x, line)), None)
        if same is None:
            alike.append(line)
            lines.append(line)
        else:
            known |= zip(line.outvars, same.outvars, strict=True)
    results = [known.get(x, x) if isinstance(x, Var) else x for x in made.jaxpr.outvars]
    return made.replace(jaxpr=made.jaxpr.replace(eqns=lines, outvars=results))


def _operand(x: Any) -> Any:
    """What an operand is known by: a variable by itself, a number by its type and its value."""
    return x if isinstance(x, Var) else (str(x.aval), np.asarray(x.val).tobytes())


def _same_operation(a: Any, b: Any) -> bool:
    """Whether two operations of one kind on the same operands have the same results."""
    return (
        not a.effects and not b.effects and a.params.keys() == b.params.keys()
        and all(_same(x, b.params[name]) for name, x in a.params.items())
        and [x.aval for x in a.outvars] == [x.aval for x in b.outvars]
    )  # fmt: skip


def _same(a: Any, b: Any) -> bool:
    """Whether two parameters of operations are the same; traced functions by their operations."""
    if a is b:
        return True
    if isinstance(a, ClosedJaxpr) and isinstance(b, ClosedJaxpr):
        return not a.consts and not b.consts and _same_function(a.jaxpr, b.jaxpr)
    if isinstance(a, Jaxpr) and isinstance(b, Jaxpr):
        return _same_function(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and not isinstance(a, np.ndarray) and bool(a == b)


def _same_function(a: Jaxpr, b: Jaxpr) -> bool:
    """Whether two traced functions do the same operations in the same order on arguments of one type."""
    ends = [[*x.constvars, *x.invars] for x in (a, b)]
    if [x.aval for x in ends[0]] != [x.aval for x in ends[1]] or len(a.eqns) != len(b.eqns):
        return False
    names = dict(zip(*ends, strict=True))

    def operands(line: Any) -> list[Any]:
        return [_operand(names.get(x, x) if isinstance(x, Var) else x) for x in line]

    for x, y in zip(a.eqns, b.eqns, strict=True):
        alike = x.primitive is y.primitive and operands(x.invars) == [*map(_operand, y.invars)]
        if not alike or not _same_operation(x, y):
            return False
        names |= zip(x.outvars, y.outvars, strict=True)
    return operands(a.outvars) == [*map(_operand, b.outvars)]


def sliced_once(made: Any, known: dict[int, Any] | None = None) -> Any:
    """A traced function in which disjoint slices of an array along an axis are results of one operation.

    Its transpose is one concatenation. That of every slice fills up with zeros and adds: two operations for
    each, which are kernels of their own in a loop that is compiled in pieces.

    Args:
        made: traced function, or a parameter of an operation that may hold some.
        known: functions that have been rewritten so far; None: none.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from nsjax.jaxtools.internals import jaxpr_as_fun
        >>> from nsjax.jaxtools.programs import sliced_once
        >>> f = jaxpr_as_fun(sliced_once(jax.make_jaxpr(lambda x: x[:2] * x[2:])(jnp.ones(4))))
        >>> back = jax.make_jaxpr(jax.grad(lambda x: f(x)[0].sum()))(jnp.ones(4))
        >>> [line.primitive.name for line in back.eqns if line.primitive.name in ("pad", "concatenate")]
        ['concatenate']
    """
    known = {} if known is None else known
    if isinstance(made, tuple | list):
        new = made if hasattr(made, "_fields") else type(made)(sliced_once(x, known) for x in made)
        return made if all(map(operator.is_, made, new)) else new
    if isinstance(made, ClosedJaxpr) and id(made) not in known:
        lines = sliced_once(made.jaxpr, known)
        known[id(made)] = made if lines is made.jaxpr else made.replace(jaxpr=lines)
    elif isinstance(made, Jaxpr) and id(made) not in known:
        known[id(made)] = _sliced_once(made, known)
    return known.get(id(made), made)


def _sliced_once(made: Jaxpr, known: dict[int, Any]) -> Jaxpr:
    """`sliced_once` of a function without constants."""
    together, done = _splits(made), set()
    swap: dict[Var, Var] = {}
    lines, same = [], not together
    read = lambda x: swap.get(x, x) if isinstance(x, Var) else x  # noqa: E731
    for line in made.eqns:
        if id(line) in together:
            split, swap[line.outvars[0]] = together[id(line)]
            if id(split) in done:
                continue
            line = split
            done.add(id(split))
        params = {name: sliced_once(value, known) for name, value in line.params.items()}
        if any(value is not line.params[name] for name, value in params.items()):
            line, same = line.replace(params=params), False
        lines.append(line.replace(invars=[read(x) for x in line.invars]))
    if same:
        return made
    info = made.debug_info.with_unknown_names()
    return made.replace(eqns=lines, outvars=[read(x) for x in made.outvars], debug_info=info)


def _splits(made: Jaxpr) -> dict[int, tuple[Any, Var]]:
    """Operations that replace slices, by ``id`` of the slice, and which of their results is the slice."""
    groups: dict[Any, list[Any]] = {}
    for line in made.eqns:
        if (place := _place(line)) is not None:
            groups.setdefault((line.invars[0], place[0]), []).append((place[1:], line))
    found: dict[int, tuple[Any, Var]] = {}
    for (x, axis), group in groups.items():
        size, ends, chosen = x.aval.shape[axis], [0], set()
        for start, end in sorted({place for place, _ in group}, key=lambda place: place[::-1]):
            if start >= ends[-1]:  # those that end first leave most room for others
                chosen.add((start, end))
                ends += [start, end] if start > ends[-1] else [end]
        if len(chosen) < 2:
            continue
        sizes = [b - a for a, b in itertools.pairwise([*ends, size] if size > ends[-1] else ends)]
        # traced anew each time, since the variables of its results are to be new
        split = jax.make_jaxpr(lambda y, n=sizes, k=axis: lax.split(y, n, k))(x.aval).eqns[0]
        split, parts = split.replace(invars=[x]), dict(zip(ends, split.outvars, strict=False))
        found |= {id(line): (split, parts[place[0]]) for place, line in group if place in chosen}
    return found


def _place(line: Any) -> tuple[int, int, int] | None:
    """Axis, start and end of a slice along one axis alone; None for other operations."""
    if line.primitive is not lax.slice_p or not isinstance(line.invars[0], Var):
        return None
    source: Any = line.invars[0].aval
    given, shape = line.params, source.shape
    if given["strides"] is not None and set(given["strides"]) != {1}:
        return None
    part = zip(given["start_indices"], given["limit_indices"], shape, strict=True)
    cut = [(k, a, b) for k, (a, b, n) in enumerate(part) if (a, b) != (0, n)]
    return cut[0] if len(cut) == 1 and cut[0][1] < cut[0][2] else None


def counted(f: Callable[..., Any], *arguments: Any) -> tuple[Any, int]:
    """``f(*arguments)`` by a program of the operations that its results need alone, and its `code_size`.

    JAX does not remove unread operations, which derivatives leave, from loops that end by a condition.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from nsjax.jaxtools.programs import counted
        >>> slope = lambda x: counted(lambda y: jax.jvp(jnp.sin, (y,), (jnp.ones(()),))[1], x)[0]
        >>> float(slope(0.0)), "sin" in str(jax.make_jaxpr(slope)(0.0))
        (1.0, False)
    """
    made, shapes = jax.make_jaxpr(f, return_shape=True)(*arguments)
    made, size = as_counted(made)
    found = jaxpr_as_fun(made)(*jax.tree.leaves(arguments))
    return jax.tree.unflatten(jax.tree.structure(shapes), found), size


def as_counted(made: ClosedJaxpr) -> tuple[ClosedJaxpr, int]:
    """A traced function as a program of `counted`, and its `code_size`."""
    made = without_unread(made)
    size = code_size(made)
    # one kernel gains nothing
    return sliced_once(made) if size > LARGE_WITH_TANGENTS else made, size


def equations(made: ClosedJaxpr | Jaxpr) -> int:
    """Number of equations of a traced function, including those of the functions that it calls.

    Example:
        >>> import jax
        >>> from nsjax.jaxtools.programs import equations
        >>> equations(jax.make_jaxpr(lambda x: jax.jit(lambda y: 2.0 * y + 1.0)(x))(1.0))
        2
    """
    return sum(1 for _ in _lines(made))


def code_size(made: ClosedJaxpr | Jaxpr) -> int:
    """Number of equations of a traced function and of the loops around them: one for each axis of an
    operand or result, the one with the most axes. A compiler writes as much code.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from nsjax.jaxtools.programs import code_size
        >>> [code_size(jax.make_jaxpr(jnp.sin)(x)) for x in (1.0, jnp.ones(3), jnp.ones((3, 3)))]
        [1, 2, 3]
    """
    shapes = ([x.aval for x in (*line.invars, *line.outvars)] for line in _lines(made))
    return sum(1 + max(map(np.ndim, line), default=0) for line in shapes)


DECISIONS = (
    "lt", "gt", "le", "ge", "eq", "ne", "sign", "floor", "ceil", "round", "rem", "argmax", "argmin",
)  # fmt: skip
"""Operations whose results jump; those of ``max``, ``min``, ``abs`` and ``clamp`` do not."""


def decides(made: ClosedJaxpr | Jaxpr) -> bool:
    """Whether a traced function holds an operation whose result jumps, so that its own may.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from nsjax.jaxtools.programs import decides
        >>> [decides(jax.make_jaxpr(f)(1.0)) for f in (jnp.sin, lambda x: jnp.where(x > 0.0, x, 1.0))]
        [False, True]
    """
    return holds(made, DECISIONS)


def holds(made: ClosedJaxpr | Jaxpr, names: tuple[str, ...]) -> bool:
    """Whether a traced function holds one of the operations ``names``, or calls a function that does.

    Example:
        >>> import jax
        >>> from nsjax.jaxtools.programs import holds
        >>> holds(jax.make_jaxpr(jax.jit(lambda x: x + 1.0))(1.0), ("add",))
        True
    """
    return any(
        line.primitive.name in names
        or any(holds(x, names) for value in line.params.values() for x in _inside(value))
        for line in made.eqns
    )


def _lines(made: ClosedJaxpr | Jaxpr) -> Iterator[Any]:
    """Equations of a traced function, with those of the functions that it calls in place of the calls."""
    for line in made.eqns:
        inside = [x for value in line.params.values() for x in _inside(value)]
        if inside:
            for x in inside:
                yield from _lines(x)
        else:
            yield line


def _inside(value: Any) -> list[Any]:
    """Traced functions in a parameter of an equation."""
    if isinstance(value, ClosedJaxpr | Jaxpr):
        return [value]
    return [x for part in value for x in _inside(part)] if isinstance(value, list | tuple) else []


# Loops of large steps and of their derivatives, which are compiled in pieces.


LARGE_WITH_TANGENTS = 40_000
"""Code size of a step with its tangents (`code_size`) from which on its loops are no longer one kernel.

The compilation time of one kernel grows with the square of this size, that of pieces in proportion; a step
in pieces takes several times as long. The bound lies above a slider-crank with any scheme (39,600 with
`ed_alpha`), below robots: a hopper of a file does not compile as one kernel within minutes.

Gradients of many steps by schemes of impulses divide them: steps without events, nearly all, have a
backward program of their own in kernels of a bounded size (`nsjax.jaxtools.choices`), the others the whole
one in pieces.
"""

LARGE_STEP = 20_000
"""Code size of a step without tangents from which on its time loop is no longer one kernel; as one kernel
larger ones save time after a million steps or more. The loops inside the step, of a contact solver or of
Newton's method, are kernels in any case.
"""


def large_in_pieces(step: Callable[[PyTree], PyTree], first: PyTree) -> Callable[[PyTree], PyTree]:
    """The step of a time loop, which is traced once; a large one is not compiled into one kernel. ``step``:
    ``x -> x`` of the next step; ``first``: an ``x``, only for its structure, shapes and types. Returns the
    step with the same results; `ends_kernel` at its start if its code size is above `LARGE_STEP`.

    Example:
        >>> from nsjax.jaxtools.programs import large_in_pieces
        >>> float(large_in_pieces(lambda x: 2.0 * x, 1.0)(3.0))
        6.0
    """
    made, shapes = jax.make_jaxpr(step, return_shape=True)(first)
    large = code_size(without_unread(made)) > LARGE_STEP

    def traced(x: PyTree) -> PyTree:
        x = ends_kernel(x, x) if large else x
        return jax.tree.unflatten(jax.tree.structure(shapes), jaxpr_as_fun(made)(*jax.tree.leaves(x)))

    return traced


def ends_kernel(tangents: PyTree, data: PyTree) -> PyTree:
    """The same tangents from a program that the compiler cannot put into one kernel, nor its transpose.

    The entries of an array are read, and added to zeros, at indices that the compiler does not know. It
    takes such sums out of kernels; the transpose of the reading is such a sum, too. ``tangents``: tangents
    of a step; ``data``: arguments of the step, which reverse mode has without computing the step again.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.jaxtools.programs import ends_kernel
        >>> ends_kernel([jnp.arange(3.0)], [jnp.ones(3)])[0].tolist()
        [0.0, 1.0, 2.0]
    """
    leaves: Any
    leaves, tree = jax.tree.flatten(tangents)
    moving, known = [k for k, x in enumerate(leaves) if _is_vector(x)], jax.tree.leaves(data)
    at = next((x for x in known if _is_vector(x)), None)
    if moving and at is not None:
        x, number = leaves[moving[0]], lax.stop_gradient(at)[0]
        places = jnp.arange(x.shape[0]) + (number != number)  # zero is added, but for nan
        leaves[moving[0]] = jnp.zeros_like(x).at[places].add(x.at[places].get(mode="clip"), mode="drop")
    return jax.tree.unflatten(tree, leaves)


def _is_vector(x: Any) -> bool:
    """Whether ``x`` is a vector (n,) of several floats."""
    return jnp.ndim(x) == 1 and jnp.issubdtype(jnp.result_type(x), jnp.floating) and x.shape[0] > 1
