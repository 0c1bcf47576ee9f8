"""Programs without the operations whose results are not used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, jaxpr_as_fun
from jax.interpreters import partial_eval


def without_unread(made: ClosedJaxpr) -> ClosedJaxpr:
    """A traced function with the same arguments and results, without operations that no result needs."""
    wanted = [True] * len(made.jaxpr.outvars)
    lines, _ = partial_eval.dce_jaxpr(made.jaxpr, wanted, instantiate=True)
    return made.replace(jaxpr=lines)


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
    return sum(1 + max(np.ndim(x.aval) for x in (*line.invars, *line.outvars)) for line in _lines(made))


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
