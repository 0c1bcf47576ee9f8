"""Functions in single precision: the program that was traced in 64-bit floats, with 32-bit ones."""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.jaxtools.internals import ClosedJaxpr, Jaxpr, Literal
from nsjax.types import Array

WIDE, NARROW = np.dtype(np.float64), np.dtype(np.float32)


_SINGLE = contextvars.ContextVar("single", default=False)
"""Whether what this thread traces now becomes a program of single precision."""


def least_tolerance() -> float:
    """Least relative tolerance of what is traced now: a thousand roundings in single precision, else zero.

    Contact problems of robots end with residuals of some 1e-6 in single precision, and rates of their rows
    differ from those of differentiated gaps by 1e-7.
    """
    return 1e3 * float(np.finfo(np.float32).eps) if _SINGLE.get() else 0.0


@contextlib.contextmanager
def _tracing_single() -> Iterator[None]:
    before = _SINGLE.set(True)
    try:
        yield
    finally:
        _SINGLE.reset(before)


def single_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in 32-bit floats, for devices whose double precision is slow.

    The function is traced in 64 bits, with all its derivatives and batches, and its program is then written
    with 32-bit numbers. Mechanisms that are assembled outside keep their starts of double precision. In the
    runs inside, relative tolerances below a thousand roundings, 1.2e-4, are raised to that.

    Args:
        function: of arrays and trees of them, as `jax.jit` takes it.

    Returns:
        A compiled function with results in 32 bits.

    Raises:
        InputError: when it is traced, for runs that locate instants (`nsjax.schemes.localized`, ``stop=``,
            ``resets=``).
        NotImplementedError: if it is differentiated; take the derivative inside.

    Limits: gaps are rounded to some 1e-7 of the distance from the origin, and so is the penetration of
    contacts at rest. Motions part from those of double precision as after a disturbance of that size; see
    the guide, "Single precision", for what was measured.

    Example:
        >>> import jax
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> ball = models.bouncing_ball()
        >>> def height(params):
        ...     run = nsjax.simulate(ball.system, params, ball.state, schemes.moreau(), dt=1e-3, steps=300)
        ...     return run.q[-1, 0]
        >>> value, slope = nsjax.single_precision(jax.value_and_grad(height))(ball.params)
        >>> value.dtype, bool(abs(value - height(ball.params)) < 1e-5)
        (dtype('float32'), True)
    """

    @jax.jit
    @functools.wraps(function)
    def computed(*arguments: Any) -> Any:
        kind = lambda x: WIDE if jnp.result_type(x) == NARROW else jnp.result_type(x)  # noqa: E731
        wide = jax.tree.map(lambda x: jax.ShapeDtypeStruct(jnp.shape(x), kind(x)), arguments)
        with _tracing_single():
            made, shapes = jax.make_jaxpr(function, return_shape=True)(*wide)
        leaves = [x.astype(_narrow(x.dtype)) for x in map(jnp.asarray, jax.tree.leaves(arguments))]
        return jax.tree.unflatten(jax.tree.structure(shapes), _evaluated(made, leaves))

    whole: Any = jax.custom_jvp(computed)
    whole.defjvp(_refused)
    return functools.wraps(function)(lambda *arguments: whole(*arguments))


def _refused(arguments: Any, changes: Any) -> Any:
    raise NotImplementedError(
        "single_precision: its program has no derivative; take it inside, single_precision(jax.grad(...))"
    )


def _narrow(kind: Any) -> Any:
    return NARROW if kind == WIDE else kind


def _evaluated(made: ClosedJaxpr, arguments: list[Array]) -> list[Array]:
    """Results of a traced function with 32-bit numbers in place of 64-bit ones."""
    known: dict[Any, Any] = {}

    def value(x: Any) -> Any:
        return _number(x.val) if isinstance(x, Literal) else known[x]

    known.update(zip(made.jaxpr.constvars, map(_number, made.consts), strict=True))
    known.update(zip(made.jaxpr.invars, arguments, strict=True))
    for line in made.jaxpr.eqns:
        given = [value(x) for x in line.invars]
        if "call_jaxpr" in line.params:  # with a derivative by a rule, which was taken before
            found = _evaluated(line.params["call_jaxpr"], given)
        else:
            found = line.primitive.bind(*given, **{k: _rewritten(v) for k, v in line.params.items()})
            found = found if line.primitive.multiple_results else [found]
        known.update(zip(line.outvars, found, strict=True))
    return [value(x) for x in made.jaxpr.outvars]


def _number(x: Any) -> Any:
    """A constant in 32 bits; one beyond their range becomes the largest or the least number there is."""
    if jnp.result_type(x) != WIDE:
        return x
    value, range_ = np.asarray(x), np.finfo(np.float32)
    size = np.clip(np.abs(value), range_.tiny, range_.max)
    return np.where(np.isfinite(value) & (value != 0.0), np.copysign(size, value), value).astype(NARROW)


def _rewritten(parameter: Any) -> Any:
    """A parameter of an operation, with 32-bit numbers in place of 64-bit ones."""
    if isinstance(parameter, ClosedJaxpr):
        shapes = [jax.ShapeDtypeStruct(x.shape, _narrow(x.dtype)) for x in parameter.in_avals]
        return jax.make_jaxpr(lambda *x: _evaluated(parameter, list(x)))(*shapes)
    if isinstance(parameter, Jaxpr):
        return _rewritten(ClosedJaxpr(parameter, ())).jaxpr
    if isinstance(parameter, jax.core.ShapedArray):
        return parameter.update(dtype=_narrow(parameter.dtype))
    if isinstance(parameter, tuple | list):
        made = [_rewritten(x) for x in parameter]
        return type(parameter)(*made) if hasattr(parameter, "_fields") else type(parameter)(made)
    return (
        NARROW if isinstance(parameter, np.dtype | type) and parameter in (WIDE, np.float64) else parameter
    )
