"""Functions whose derivative is a rule, for batches whose lanes take different branches as well.

`jax.custom_jvp` follows a rule and batches what it finds. A batch evaluates both branches of
`jax.lax.cond`, with ``stop_gradient`` of the operands in lanes that do not take the branch: what reverse
mode finds there, often no number, ends at it. Operands of a rule are tangents, too, and for these JAX has
no transpose of ``stop_gradient``. Here the batched rule ends them by an operation of our own, whose
transpose is zero.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
from jax import lax
from jax.custom_derivatives import SymbolicZero

from nsjax.jaxtools.internals import (
    ClosedJaxpr,
    Jaxpr,
    Primitive,
    ad,
    batch_jaxpr,
    batching,
    dce_jaxpr,
    held_weakly,
    jaxpr_as_fun,
    mlir,
    partial_eval,
    stop_gradient_p,
)
from nsjax.types import Array, PyTree

FLOAT0 = jax.dtypes.float0


def with_rule(value: Callable[[PyTree], PyTree], rule: Callable[..., Any]) -> Callable[[PyTree], PyTree]:
    """The function ``value`` of one tree with the derivative by ``rule``; neither holds traced values.

    Args:
        value: ``data -> found``.
        rule: ``(data, change) -> (found, change of found)``. Changes that are known to be zero are
            `jax.custom_derivatives.SymbolicZero`.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from nsjax.jaxtools.rules import with_rule
        >>> twice = with_rule(jnp.sin, lambda x, dx: (jnp.sin(x), 2.0 * jnp.cos(x) * dx))
        >>> [float(f(0.0)) for f in (twice, jax.grad(twice))]
        [0.0, 2.0]
    """

    def call(data: PyTree) -> PyTree:
        made, shapes = jax.make_jaxpr(value, return_shape=True)(data)
        types = [jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in made.in_avals]
        tree: Any = jax.tree.structure(data)  # the type stubs of jax lack its methods

        @functools.cache
        def traced(still: tuple[bool, ...]) -> ClosedJaxpr:
            def flat(leaves: list[Array], moving: list[Array]) -> tuple[list[Array], list[Array]]:
                left = iter(moving)
                every = [
                    SymbolicZero(x) if no else next(left)
                    for x, no in zip(made.in_avals, still, strict=True)
                ]
                found, moves = map(jax.tree.leaves, rule(tree.unflatten(leaves), tree.unflatten(every)))
                return found, [x for x in moves if x.dtype != FLOAT0]

            return jax.make_jaxpr(flat)(types, [x for x, no in zip(types, still, strict=True) if not no])

        found = _ruled.bind(*jax.tree.leaves(data), value=made, rule=_Rule(traced))
        return jax.tree.unflatten(jax.tree.structure(shapes), found)

    return call


@held_weakly  # a rule may hold a system
@dataclasses.dataclass(frozen=True, eq=False)
class _Rule:
    """``still -> (data, moving changes) -> (found, its moving changes)``, traced when somebody asks for it;
    ``still`` tells which leaves do not move.
    """

    traced: Callable[[tuple[bool, ...]], ClosedJaxpr]

    def then(self, change: Callable[[ClosedJaxpr, tuple[bool, ...]], ClosedJaxpr]) -> _Rule:
        return _Rule(functools.cache(lambda still: change(self.traced(still), still)))


def _moves(made: ClosedJaxpr) -> list[Any]:
    """Type of the change of each result; float0 of one that has none."""
    return [x.to_tangent_aval() for x in made.out_avals]


def _values(*leaves: Array, value: ClosedJaxpr, rule: _Rule) -> list[Array]:
    return list(jaxpr_as_fun(value)(*leaves))


def _derivative(leaves: Any, changes: Any, value: ClosedJaxpr, rule: _Rule) -> Any:
    still = tuple(isinstance(x, ad.Zero) for x in changes)
    made = rule.traced(still)
    found = jaxpr_as_fun(made)(*leaves, *[x for x, no in zip(changes, still, strict=True) if not no])
    types = _moves(value)
    moving = iter(found[len(types) :])
    return found[: len(types)], [ad.Zero(x) if x.dtype == FLOAT0 else next(moving) for x in types]


def _batched(axis: Any, leaves: Any, axes: Any, value: ClosedJaxpr, rule: _Rule) -> Any:
    split = [x is not None for x in axes]
    leaves = [x if k is None else jax.numpy.moveaxis(x, k, 0) for x, k in zip(leaves, axes, strict=True)]
    value, ends = batch_jaxpr(value, axis, split, False)
    results = [*ends, *(x for x, kind in zip(ends, _moves(value), strict=True) if kind.dtype != FLOAT0)]

    def change(made: ClosedJaxpr, still: tuple[bool, ...]) -> ClosedJaxpr:
        inside = [*split, *(x for x, no in zip(split, still, strict=True) if not no)]
        return _ended(batch_jaxpr(made, axis, inside, results)[0])

    return _ruled.bind(*leaves, value=value, rule=rule.then(change)), [0 if x else None for x in ends]


def _without_unread(read: list[bool], line: Any) -> tuple[list[bool], Any]:
    """The operation without values that nobody reads; data that the rule may read count as read."""
    value = line.params["value"]
    moves = [x for x, kind in zip(read, _moves(value), strict=True) if kind.dtype != FLOAT0]

    def fewer(made: ClosedJaxpr, wanted: list[bool]) -> ClosedJaxpr:
        body = made.jaxpr.replace(debug_info=made.jaxpr.debug_info.with_unknown_names())
        return ClosedJaxpr(dce_jaxpr(body, wanted, True)[0], made.consts)

    if not any(read):
        return [False] * len(line.invars), None
    new = {
        "value": fewer(value, read),
        "rule": line.params["rule"].then(lambda made, _: fewer(made, [*read, *moves])),
    }
    ends = [x for x, wanted in zip(line.outvars, read, strict=True) if wanted]
    return [True] * len(line.invars), line.replace(outvars=ends, params=new)


def _lowered(context: Any, *leaves: Any, value: ClosedJaxpr, rule: _Rule) -> Any:
    found, tokens = mlir.jaxpr_subcomp(
        context.module_context, value.jaxpr, context.name_stack, context.tokens_in,
        [mlir.ir_constant(x) for x in value.consts], *leaves, dim_var_values=context.dim_var_values,
        const_lowering=context.const_lowering, outer_traceback=context.traceback,
    )  # fmt: skip
    context.set_tokens_out(tokens)
    return found


_ruled = Primitive("nsjax_with_rule")
_ruled.multiple_results = True
_ruled.def_impl(_values)
_ruled.def_abstract_eval(lambda *_, value, rule: value.out_avals)
mlir.register_lowering(_ruled, _lowered)
ad.primitive_jvps[_ruled] = _derivative
batching.fancy_primitive_batchers[_ruled] = _batched
partial_eval.dce_rules[_ruled] = _without_unread


# Entries that are moved around, whose transpose moves them back.


def cycled(x: Array, axis: int, places: int) -> Array:
    """The entries of ``x`` along an axis, moved around to places in front of their own.

    The transpose of JAX's own slices and their concatenation fills each slice up with zeros and adds: five
    operations, of which the compiler makes kernels of their own. This one has the other slices.

    Args:
        x: array.
        axis: axis, not counted from the end.
        places: number of places, between 0 and the number of entries.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.jaxtools.rules import cycled
        >>> cycled(jnp.arange(3.0), 0, 1).tolist()
        [1.0, 2.0, 0.0]
    """
    return _cycled.bind(x, value=_slices(x.shape, x.dtype, axis, places), axis=axis, places=places)


@functools.cache
def _slices(shape: tuple[int, ...], dtype: Any, axis: int, places: int) -> ClosedJaxpr:
    """The operation as a traced function, whose size counts in a program."""

    def moved(x: Array) -> Array:
        ends = ((places, shape[axis]), (0, places))
        return lax.concatenate([lax.slice_in_dim(x, *part, axis=axis) for part in ends], axis)

    return jax.make_jaxpr(moved)(jax.ShapeDtypeStruct(shape, dtype))


def _cycled_back(change: Any, x: Any, value: ClosedJaxpr, axis: int, places: int) -> list[Any]:
    return [cycled(change, axis, change.shape[axis] - places)]


def _cycled_lanes(x: Any, axes: Any, value: ClosedJaxpr, axis: int, places: int) -> Any:
    return cycled(x[0], axis + (axes[0] <= axis), places), axes[0]


_cycled = Primitive("nsjax_cycled")
_cycled.def_impl(lambda x, value, axis, places: jaxpr_as_fun(value)(x)[0])
_cycled.def_abstract_eval(lambda x, value, axis, places: value.out_avals[0])
mlir.register_lowering(
    _cycled, mlir.lower_fun(lambda x, value, axis, places: jaxpr_as_fun(value)(x), multiple_results=True)
)
ad.deflinear2(_cycled, _cycled_back)
batching.primitive_batchers[_cycled] = _cycled_lanes


def _ended(made: Any) -> Any:
    """A traced function in which derivatives end by `_end` in place of JAX's ``stop_gradient``."""
    if isinstance(made, ClosedJaxpr):
        return made.replace(jaxpr=_ended(made.jaxpr))
    if isinstance(made, tuple | list):
        return type(made)(map(_ended, made)) if not hasattr(made, "_fields") else made
    if not isinstance(made, Jaxpr):
        return made
    lines = [
        x.replace(primitive=_end if x.primitive is stop_gradient_p else x.primitive)
        .replace(params={name: _ended(value) for name, value in x.params.items()})
        for x in made.eqns
    ]  # fmt: skip
    return made.replace(eqns=lines)


_end = Primitive("nsjax_end_of_derivatives")
_end.def_impl(lambda x: x)
_end.def_abstract_eval(lambda x: x)
mlir.register_lowering(_end, lambda _, x: [x])
ad.primitive_jvps[_end] = lambda x, change: (_end.bind(*x), ad.Zero(jax.typeof(x[0]).to_tangent_aval()))
ad.primitive_transposes[_end] = lambda change, x: [ad.Zero(x.aval)]
batching.primitive_batchers[_end] = lambda x, axes: (_end.bind(*x), axes[0])
