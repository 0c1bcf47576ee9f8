"""Values that a compiled time loop computes once, where many results read them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from nsjax.jaxtools.internals import Primitive, ad, batching, mlir
from nsjax.types import Array


def once(x: Array) -> Array:
    """The same array, computed once for an operation that reads its entries many times, as a product of
    matrices does.

    XLA's fusion on CPU copies cheap operations into the loop of each operation that reads their results,
    and does them there for each element of its own: the turning of a sliding direction for each column of
    Newton's matrix. It does not copy a division, which is what ``x`` becomes there, by one. Other devices
    compute as before. Derivatives are those of ``x``.

    Example:
        >>> import jax
        >>> from nsjax.jaxtools.storing import once
        >>> float(once(jax.numpy.asarray(2.0))), float(jax.grad(lambda x: once(x) ** 2)(3.0))
        (2.0, 6.0)
    """
    return _once.bind(x)


def _by_one(x: Array) -> Array:
    return x / jnp.where(x == x, jnp.ones_like(x), jnp.nan)  # a constant would be left out


def _moved(x: Any, change: Any) -> Any:
    return _once.bind(*x), change[0]


_once = Primitive("nsjax_once")
_once.def_impl(lambda x: x)
_once.def_abstract_eval(lambda x: x)
ad.primitive_jvps[_once] = _moved
batching.defvectorized(_once)
mlir.register_lowering(_once, mlir.lower_fun(lambda x: x, multiple_results=False))
mlir.register_lowering(_once, mlir.lower_fun(_by_one, multiple_results=False), platform="cpu")
