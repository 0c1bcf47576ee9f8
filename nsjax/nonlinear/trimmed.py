"""Programs without operations whose results are not used, or that stand in them twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Var, jaxpr_as_fun
from jax.interpreters import partial_eval


def without_unread(made: ClosedJaxpr) -> ClosedJaxpr:
    """A traced function with the same arguments and results, without operations that no result needs."""
    wanted = [True] * len(made.jaxpr.outvars)
    lines, _ = partial_eval.dce_jaxpr(made.jaxpr, wanted, instantiate=True)
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
        >>> from nsjax.nonlinear.trimmed import without_repeats
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


def trimmed(f: Callable[..., Any], *arguments: Any) -> Any:
    """``f(*arguments)`` by a program that holds only the operations that its results need.

    JAX removes operations that nobody reads when it compiles, and in scans and branches, but not in the
    bodies of loops that end by a condition. Derivatives that are formed there leave many of them.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from nsjax.nonlinear import trimmed
        >>> slope = lambda x: trimmed(lambda y: jax.jvp(jnp.sin, (y,), (jnp.ones(()),))[1], x)
        >>> float(slope(0.0)), "sin" in str(jax.make_jaxpr(slope)(0.0))
        (1.0, False)
    """
    return counted(f, *arguments)[0]


def counted(f: Callable[..., Any], *arguments: Any) -> tuple[Any, int]:
    """`trimmed`, and the `code_size` of its program."""
    made, shapes = jax.make_jaxpr(f, return_shape=True)(*arguments)
    made = without_unread(made)
    found = jaxpr_as_fun(made)(*jax.tree.leaves(arguments))
    return jax.tree.unflatten(jax.tree.structure(shapes), found), code_size(made)


def equations(made: ClosedJaxpr | Jaxpr) -> int:
    """Number of equations of a traced function, including those of the functions that it calls.

    Example:
        >>> import jax
        >>> from nsjax.nonlinear.trimmed import equations
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
        >>> from nsjax.nonlinear.trimmed import code_size
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
        >>> from nsjax.nonlinear.trimmed import decides
        >>> [decides(jax.make_jaxpr(f)(1.0)) for f in (jnp.sin, lambda x: jnp.where(x > 0.0, x, 1.0))]
        [False, True]
    """
    return any(line.primitive.name in DECISIONS for line in _lines(made))


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
