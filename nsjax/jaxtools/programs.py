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
from nsjax.types import Array, PyTree

# Programs without operations whose results are not used, or that stand in them twice.


def without_unread(made: ClosedJaxpr) -> ClosedJaxpr:
    """A traced function with the same arguments and results, without operations that no result needs."""
    wanted = [True] * len(made.jaxpr.outvars)
    lines, _ = dce_jaxpr(made.jaxpr, wanted, instantiate=True)
    return made.replace(jaxpr=lines)


def without_repeats(made: ClosedJaxpr) -> ClosedJaxpr:
    """A traced function with the same arguments and results, in which equal operations on the same operands
    are done once.

    The compiler does the same, but for branches and loops: two evaluations of `nsjax.math.sin_cos` at one
    position, in the gap and in the force, stay two. Operations inside branches and loops are left as they
    are, so that functions that are called several times stay one function of the program.

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
    """A traced function in which slices of an array along an axis that do not overlap are results of one
    operation.

    Reverse mode fills up every slice with zeros and adds: two operations for each, of which the compiler
    makes kernels of their own in a loop that is compiled in pieces. One concatenation is the transpose of
    all of them together.

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
    """`sliced_once` of a function without constants of its own."""
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
    """Operations that replace slices of a traced function, by ``id`` of the slice, and which of their
    results is the slice.
    """
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
    """``f(*arguments)`` by a program that holds only the operations that its results need, and the
    `code_size` of this program.

    JAX removes operations that nobody reads when it compiles, and in scans and branches, but not in the
    bodies of loops that end by a condition. Derivatives that are formed there leave many of them.

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
    # one kernel gains nothing: a slider-crank took 0.92 to 0.96 us, 0.73 to 0.86 without (loaded machine)
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
"""Code size of a step with its tangents (`nsjax.jaxtools.programs.code_size`) from which on its loops are
no longer one kernel.

The compilation time of one kernel grows with the square of this size, that of pieces in proportion.
Reverse gradients by all numbers of a model and its start on a machine with other work, thousands of
equations, thousands of code size, and CPU s to compile as one kernel: rod with two points 5.8, 14, 5;
slider-crank with moreau 6.8, 15, 8; cart with pole 6.3, 17, 10; slider-crank with generalized_alpha 14, 30,
22, with ed_alpha 18, 40, 38 (in pieces 28); ball on a plane 17, 43, 44 (20); box 19, 50, 65; ball with
friction against spinning and rolling 20, 52, 74. From 20 s on ``2 + 2.4e-8 size^2`` is within a tenth of
these; equations alone take the ball for smaller than the slider-crank with ed_alpha. In space, equations
have more axes, and each axis is a loop of its own.

Beside the slider-crank these are robots and linkages, whose steps by Moreau's rule have thousands of code
size, with ``closed_time`` and without: hopper of a file 58, 41, four-bar linkage of a size class 51, 34.
The reverse gradient is the same: the time closed, which nobody reads, is no part of it. The four-bar
linkage compiles in 25 s and takes 52 us a step in pieces, 70 s and 11 us (2.4 runs) as one kernel; the
hopper 34 s and 166 us in pieces, and was not done in several minutes as one kernel.

This size is larger than that of a slider-crank with any scheme (39.6 with ed_alpha). An earlier program of
the hopper (25, 76) compiled in 30 s in pieces and in 171 s as one kernel; a step took 250 us in pieces and
50 us as one kernel. The slider-crank with generalized_alpha compiles in 26 s or 37 s and takes 29 or 3 us.
So one kernel saves time after half a million steps or more. One kernel for each kind of step (flight,
contact), as a loop of two passes of which one does nothing, is no better compromise: 119 s and 165 us for
the hopper.

Gradients of 1,000 steps or more by schemes of impulses divide steps: those without events, nearly all, have
a backward program of their own in kernels of a bounded size (`nsjax.jaxtools.choices`), the others the
whole one in pieces. Tracing and compiling a gradient of a hopper takes 62 CPU s with one program for all
steps, 92 with two; that of an ant 92 and 166, which pays after some 300,000 steps: after 300 gradients of
1,000 steps, as a search takes them.

A gradient of 1,000 steps of the hopper, measured in turn on a machine with much other work: 330 us a step
with one program; least and median of 12 times 55 and 115 us with four kernels that write into one array and
132 small ones, one for each number of the model that is read, and one that adds its cotangent up; 34 and 53
us (8 and 10 runs) with one kernel, and 28 small ones, since all numbers are one vector. Of these, 17 us are
the kernel, 4 the run. Threads take the rest of the median: from nine kernels on, with an array of more than
512 bytes, XLA offers a loop's kernels to all threads, which look for work that is not there. On one thread
(``NPROC=1``) the least times are 42 and 34 us, the medians 47 and 47.

A step in pieces costs a quarter of a microsecond for each of its operations, whatever they do. The
backward step of the hopper's contact course has about a thousand, of which 260 copy results of branches.
With the derivative of the velocity step as a loop of one pass, which is a kernel, the step took 160 to 200
us and the compilation some 8 CPU s more. With the velocity step and its derivative as calls that jaxlib
0.10.2 keeps whole (attributes ``inlineable`` and ``xla_cpu_small_call``) the step took 74 us at the same
compilation time; but the compiler ends the process at some such calls, for an unknown reason, and refuses
large batches and scatters. Parallel steps do not help either. With the carries of all steps known, the
derivatives of 50 steps by all 57 entries of a carry, followed by products of matrices, took 68 us a step
and entry. This is more than the kernel takes for a whole backward step.
"""

LARGE_STEP = 20_000
"""Code size of a step without tangents from which on its time loop is no longer one kernel. The loops
inside the step, of a contact solver or of Newton's method, are kernels in any case.

LLVM forgets what it knows about all loops of a kernel whenever it turns or writes out one of them (half of
the 165 s that it takes for a hopper with nsga_decoupled), so that compile times grow with the square of the
size. Code size, CPU s of the first call and us of a step, each as one kernel and in pieces, and the number
of steps (in thousands) from which on one kernel saves time:

    ===========================  ====  ==========  ===========  ========
    slider-crank, bathe          12.2    6.5, 5.5     0.72, 6.4       180
    ant, moreau                  12.7    8.9, 8.9       10, 19         0
    hopper, ggl_decoupled        14.8   13.5, 9.4      4.3, 21       240
    humanoid, moreau             18.9  17.6, 12.4      35, 142        49
    hopper, half_explicit        21.9  23.0, 11.1     11.9, 24       950
    ant, ggl_decoupled           25.9  22.6, 12.7       26, 37       860
    hopper, generalized_alpha    27.7  30.1, 14.9      7.4, 12      3400
    ===========================  ====  ==========  ===========  ========
"""


def large_in_pieces(step: Callable[[PyTree], PyTree], first: PyTree) -> Callable[[PyTree], PyTree]:
    """The step of a time loop, which is traced once; a large one is not compiled into one kernel.

    Args:
        step: ``x -> x`` of the next step.
        first: an ``x``, only for its structure, shapes and types.

    Returns:
        The step with the same results; `ends_kernel` at its start if its code size is above `LARGE_STEP`.

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
    takes such sums out of kernels; the transpose of the reading is such a sum, too.

    Args:
        tangents: tangents of a step.
        data: arguments of the step, which reverse mode has without computing the step again.

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
        leaves[moving[0]] = _again(leaves[moving[0]], lax.stop_gradient(at))
    return jax.tree.unflatten(tree, leaves)


def _is_vector(x: Any) -> bool:
    """Whether ``x`` is a vector (n,) of several floats."""
    return jnp.ndim(x) == 1 and jnp.issubdtype(jnp.result_type(x), jnp.floating) and x.shape[0] > 1


def _again(x: Array, at: Array) -> Array:
    """``x`` (n,), read and added at its own indices plus a number from ``at`` (m,) that is zero but for
    nan.
    """
    places = jnp.arange(x.shape[0]) + (at[0] != at[0])
    return jnp.zeros_like(x).at[places].add(x.at[places].get(mode="clip"), mode="drop")
