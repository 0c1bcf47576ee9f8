"""One of two linear maps of tangents, by a value of the run, and large functions in a few kernels.

The derivative of `jax.lax.cond` copies residuals of both branches at every visit. The operation of this
file is a linear map; its transpose is the same operation with both maps transposed, on the same data.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.jaxtools.internals import (
    ClosedJaxpr,
    Jaxpr,
    Primitive,
    Var,
    ad,
    batch_jaxpr,
    batching,
    dce_jaxpr,
    jaxpr_as_fun,
    mlir,
    partial_eval,
)
from nsjax.jaxtools.programs import code_size, holds, without_repeats, without_unread
from nsjax.types import Array


def chosen_map(
    which: Array, maps: Sequence[Callable[..., list[Array]]], data: list[Array], change: list[Array]
) -> list[Array]:
    """``maps[which](data, change)``, for functions that are linear in ``change``, with floats as results.

    Args:
        which: () bool.
        maps: two functions with results of the same types. The second one is right for either value of
            ``which``, and a batch whose lanes differ takes it alone; the first one is shorter. On a CPU its
            program is a few kernels, see `in_kernels`.
        data: arrays that coefficients come from.
        change: tangents, or cotangents of transposed maps.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from nsjax.jaxtools.choices import chosen_map
        >>> maps = [lambda a, x: [2.0 * x[0]], lambda a, x: [a[0] * x[0]]]
        >>> f = lambda which, x: chosen_map(which, maps, [jnp.asarray(3.0)], [x])[0]
        >>> [float(jax.grad(f, argnums=1)(jnp.asarray(which), 1.0)) for which in (False, True)]
        [2.0, 3.0]
    """
    count = len(data)

    def traced(run: Callable[..., list[Array]]) -> ClosedJaxpr:
        return jax.make_jaxpr(lambda *x: run(list(x[:count]), list(x[count:])))(*data, *change)

    both = tuple(map(traced, maps))
    used = [x or y for x, y in zip(*(_read(made) for made in both), strict=True)]
    operands = [x for x, wanted in zip([*data, *change], used, strict=True) if wanted]
    fewer = tuple(with_inputs(made, used) for made in both)
    return list(_choice.bind(which, *operands, maps=fewer, count=sum(used[:count])))


def _read(made: ClosedJaxpr) -> list[bool]:
    """Which arguments a traced function reads."""
    return dce_jaxpr(made.jaxpr, [True] * len(made.out_avals), instantiate=False)[1]


def with_inputs(made: ClosedJaxpr, kept: list[bool], results: list[bool] | None = None) -> ClosedJaxpr:
    """A traced function of the arguments ``kept`` alone, and with fewer ``results``."""
    body = made.jaxpr.replace(debug_info=made.jaxpr.debug_info.with_unknown_names())
    return made.replace(jaxpr=dce_jaxpr(body, results or [True] * len(made.out_avals), instantiate=kept)[0])


def _taken(which: Array, *operands: Array, maps: Any, count: int, whole: bool = False) -> list[Array]:
    """The map that is taken, the first one ``whole`` in a few kernels."""
    first, second = map(jaxpr_as_fun, maps)
    if whole:
        first = in_kernels(maps[0], 1 - which.astype(int))
    return list(lax.cond(which, jax.jit(second), jax.jit(first), *operands))


def _derivative(operands: Any, changes: Any, **given: Any) -> Any:
    ahead = 1 + given["count"]
    if all(isinstance(x, ad.Zero) for x in changes[:ahead]):
        moves = map(ad.instantiate_zeros, changes[ahead:])
        return _choice.bind(*operands, **given), _choice.bind(*operands[:ahead], *moves, **given)
    return jax.jvp(functools.partial(_taken, **given), [*operands], [*map(ad.instantiate_zeros, changes)])


def _transposed(back: Any, which: Any, *operands: Any, maps: Any, count: int) -> list[Any]:
    data, change = operands[:count], operands[count:]
    if all(isinstance(x, ad.Zero) for x in back):
        return [None] * (1 + len(operands))
    read = [not isinstance(x, ad.Zero) for x in back]
    maps = tuple(turned(made, count, tuple(read)) for made in maps)
    given = [x for x, some in zip(back, read, strict=True) if some]
    found = _choice.bind(which, *data, *given, maps=maps, count=count)
    moves = [x if ad.is_undefined_primal(y) else None for x, y in zip(found, change, strict=True)]
    return [None] * (1 + count) + moves


def turned(made: ClosedJaxpr, count: int, read: tuple[bool, ...]) -> ClosedJaxpr:
    """The transpose of a map, ``data, changes of its results that are read -> changes``."""
    made = with_inputs(made, [True] * len(made.in_avals), list(read))
    types = [jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in made.in_avals]
    ends = [jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in made.out_avals]

    def back_to_changes(data: list[Array], back: list[Array]) -> Any:
        along = lambda *change: jaxpr_as_fun(made)(*data, *change)  # noqa: E731
        return jax.linear_transpose(along, *types[count:])(back)

    return jax.make_jaxpr(back_to_changes)(types[:count], ends)


def _batched(axis: Any, operands: Any, axes: Any, maps: Any, count: int) -> Any:
    operands = [x if k is None else jnp.moveaxis(x, k, 0) for x, k in zip(operands, axes, strict=True)]
    split = [x is not None for x in axes]
    if not split[0]:
        ends = [batch_jaxpr(made, axis, split[1:], False)[1] for made in maps]
        results = [x or y for x, y in zip(*ends, strict=True)]
        each = tuple(batch_jaxpr(made, axis, split[1:], results)[0] for made in maps)
        found = _choice.bind(*operands, maps=each, count=count)
        return found, [0 if x else None for x in results]
    made, results = batch_jaxpr(maps[1], axis, split[1:], False)
    return jaxpr_as_fun(made)(*operands[1:]), [0 if x else None for x in results]


def _without_unread(read: list[bool], line: Any) -> tuple[list[bool], Any]:
    if not any(read):
        return [False] * len(line.invars), None
    maps, count = line.params["maps"], line.params["count"]
    used = [dce_jaxpr(made.jaxpr, read, instantiate=False)[1] for made in maps]
    kept = [x or y for x, y in zip(*used, strict=True)]
    new = {
        "maps": tuple(with_inputs(made, kept, read) for made in maps), "count": sum(kept[:count])
    }  # fmt: skip
    some = [x for x, wanted in zip(line.invars[1:], kept, strict=True) if wanted]
    ends = [x for x, wanted in zip(line.outvars, read, strict=True) if wanted]
    return [True, *kept], line.replace(invars=[line.invars[0], *some], outvars=ends, params=new)


CHOICE = "nsjax_chosen_map"
_choice = Primitive(CHOICE)
_choice.multiple_results = True
_choice.def_impl(_taken)
_choice.def_abstract_eval(lambda *_, maps, count: maps[1].out_avals)
mlir.register_lowering(
    _choice, mlir.lower_fun(functools.partial(_taken, whole=True), multiple_results=True)
)
ad.primitive_jvps[_choice] = _derivative
ad.primitive_transposes[_choice] = _transposed
batching.fancy_primitive_batchers[_choice] = _batched
partial_eval.dce_rules[_choice] = _without_unread


# Large functions in a few kernels, inside loops that are compiled in pieces.


def in_kernels(made: ClosedJaxpr, once: Array, most: int | None = None) -> Callable[..., list[Array]]:
    """A traced function inside a loop that is compiled in pieces, as loops of one pass, which a CPU's
    compiler makes kernels of.

    The results of a kernel stand in one array, since each array that a loop returns is a kernel to fill it.

    Args:
        made: the function; its integers are exact as floats.
        once: () int, one; the compiler is not to know it.
        most: code size of operations that share a kernel, see `_parts`.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from nsjax.jaxtools.choices import in_kernels
        >>> made = jax.make_jaxpr(lambda x, k: (x[k] * x, k + 1))(jnp.ones(2), 0)
        >>> run = lambda once: in_kernels(made, once, 1)(jnp.array([2.0, 3.0]), 1)
        >>> [x.tolist() for x in jax.jit(run)(1)]
        [[6.0, 9.0], 2]
    """
    if jax.default_backend() != "cpu":
        return jaxpr_as_fun(made)
    made = without_unread(without_repeats(in_one_list(made)))
    kernels = _parts(made.jaxpr, most)

    def passed(*operands: Array) -> list[Array]:
        ends = [*made.jaxpr.constvars, *made.jaxpr.invars]
        known = {x: (y, 0) for x, y in zip(ends, [*made.consts, *operands], strict=True)}
        count = jnp.zeros_like(once)
        for k, part in enumerate(kernels):
            count, found = _kernel(part, known, count, once + k)
            known |= found
        return [_number(known, x) for x in made.jaxpr.outvars]

    return passed


Known = dict[Var, tuple[Array, int]]
"""Arrays in which the values of variables stand, and the places of their first numbers."""


def _number(known: Known, x: Any) -> Array:
    """Value of an operand."""
    if not isinstance(x, Var):
        return jnp.asarray(x.val)
    kind: Any = x.aval
    array, first = known[x]
    if jnp.shape(array) == kind.shape and not first:
        return jnp.asarray(array, kind.dtype)
    return array[first : first + kind.size].reshape(kind.shape).astype(kind.dtype)


def _kernel(
    part: tuple[ClosedJaxpr, list[Var], list[Var]], known: Known, count: Array, until: Array
) -> tuple[Array, Known]:
    """The count after the loop of a part, and its results."""
    body, needed, results = part
    arrays = [*{id(known[x][0]): known[x][0] for x in needed}.values()]
    index = {id(x): k for k, x in enumerate(arrays)}
    kinds: list[Any] = [x.aval for x in results]
    places = [0, *itertools.accumulate(x.size for x in kinds)]

    def once_more(state: tuple[Array, list[Array], Array]) -> tuple[Array, list[Array], Array]:
        count, arrays, found = state
        # else the compiler takes out of the loop what depends on the arrays alone, which do not change
        _, now = lax.optimization_barrier((count, arrays))
        here = {x: (now[index[id(known[x][0])]], known[x][1]) for x in needed}
        for y, k in zip(jaxpr_as_fun(body)(*[_number(here, x) for x in needed]), places, strict=False):
            found = lax.dynamic_update_slice(found, jnp.ravel(y).astype(float), (k,))
        return count + 1, arrays, found

    start = (count, arrays, jnp.zeros(places[-1]))
    count, _, found = lax.while_loop(lambda state: state[0] < until, once_more, start)
    return count, {x: (found, k) for x, k in zip(results, places, strict=False)}


LIBRARY = ("dot_general", "scatter", "scatter-add", "sort", "cholesky", "triangular_solve")
"""Operations that the compiler leaves out of kernels, and all that shares a loop with them."""


def _parts(lines: Jaxpr, most: int | None = None) -> list[tuple[ClosedJaxpr, list[Var], list[Var]]]:
    """A traced function in parts of a code size, each with its arguments and results. An operation that a
    kernel cannot hold, or whose branches hold such ones, is a part of its own.
    """
    # time to compile a kernel grows with the square of its size: one of 13,400 takes 23 CPU s
    most = 15_000 if most is None else most
    groups: list[list[Any]] = []
    size = most
    for line in lines.eqns:
        body = _alone(lines, [line])[0]
        own = most if holds(body, LIBRARY) else code_size(body)
        if size + own > most:
            groups.append([])
            size = 0
        groups[-1].append(line)
        size += own
    found, read = [], {x for x in lines.outvars if isinstance(x, Var)}
    for group in reversed(groups):
        found.append(_alone(lines, group, read))
        read = read | set(found[-1][1])
    return found[::-1]


def _alone(
    made: Jaxpr, lines: list[Any], read: set[Var] | None = None
) -> tuple[ClosedJaxpr, list[Var], list[Var]]:
    """Some operations as a function, with its arguments, and its results that are ``read``; None: all."""
    own = {x: None for line in lines for x in line.outvars if type(x) is Var}
    used = {x: None for line in lines for x in line.invars if isinstance(x, Var) and x not in own}
    ends = [x for x in own if read is None or x in read]
    info = made.debug_info.with_unknown_names()
    body = made.replace(constvars=[], invars=[*used], outvars=ends, eqns=lines, debug_info=info)
    return ClosedJaxpr(body, []), [*used], ends


CALLS = ("jit", "remat2", "closed_call", "custom_jvp_call")
"""Operations that call one function with their operands; scans of one pass do, too."""


def in_one_list(made: ClosedJaxpr) -> ClosedJaxpr:
    """A traced function with the operations of the functions that it calls in place of the calls.

    Example:
        >>> import jax
        >>> from nsjax.jaxtools.choices import in_one_list
        >>> made = in_one_list(jax.make_jaxpr(lambda x: jax.jit(lambda y: 2.0 * y)(x) + 1.0)(1.0))
        >>> [line.primitive.name for line in made.eqns]
        ['mul', 'add']
    """

    def called(line: Any) -> Callable[..., list[Array]] | None:
        given, once = line.params, line.primitive is lax.scan_p and line.params["length"] == 1
        if not once and line.primitive.name not in CALLS:
            return None
        inside = given.get("jaxpr") or given["call_jaxpr"]
        run = _with_other(inside if isinstance(inside, ClosedJaxpr) else ClosedJaxpr(inside, []), called)
        if not once:
            return run
        first, own = given["num_consts"] + given["num_carry"], given["num_carry"]

        def one_pass(*operands: Array) -> list[Array]:
            found = run(*operands[:first], *(jnp.squeeze(x, 0) for x in operands[first:]))
            return [*found[:own], *(x[None] for x in found[own:])]

        return one_pass

    return _traced(_with_other(made, called), made)


def _with_other(
    made: ClosedJaxpr, other: Callable[[Any], Callable[..., list[Array]] | None]
) -> Callable[..., list[Array]]:
    """A traced function as a function, with ``other(line)`` in place of operations where it is not None."""
    lines = made.jaxpr

    def run(*arguments: Array) -> list[Array]:
        known = dict(zip([*lines.constvars, *lines.invars], [*made.consts, *arguments], strict=True))
        value = lambda x: known[x] if isinstance(x, Var) else x.val  # noqa: E731
        for line in lines.eqns:
            instead = other(line)
            if instead is not None:
                found = instead(*map(value, line.invars))
                known.update(zip(line.outvars, found, strict=True))
            else:
                body, used, ends = _alone(lines, [line])
                known.update(zip(ends, jaxpr_as_fun(body)(*map(value, used)), strict=True))
        return [value(x) for x in lines.outvars]

    return run


def _traced(run: Callable[..., list[Array]], made: ClosedJaxpr) -> ClosedJaxpr:
    """A function, traced for arguments as those of another one."""
    types = [jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in made.in_avals]
    return jax.make_jaxpr(run)(*types)


# Loops over steps, most of which take the first map: one kernel for all of these that follow each other.


def first_maps_in_loops(made: ClosedJaxpr) -> ClosedJaxpr:
    """A traced function with the same results, whose scans over a choice of maps, of which the first one
    fits into a kernel, go through the passes that take the first map in a loop of their own: one kernel.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from jax import lax
        >>> from nsjax.jaxtools.choices import chosen_map, first_maps_in_loops
        >>> from nsjax.jaxtools.internals import jaxpr_as_fun
        >>> maps = [lambda a, x: [2.0 * x[0]], lambda a, x: [a[0] * x[0]]]
        >>> def run(which):
        ...     step = lambda x, on: (chosen_map(on, maps, [jnp.asarray(3.0)], [x])[0], None)
        ...     return lax.scan(step, 1.0, which, reverse=True)[0]
        >>> which = jnp.array([True, False, False])
        >>> loops = first_maps_in_loops(jax.make_jaxpr(run)(which))
        >>> [line.primitive.name for line in loops.eqns], float(jaxpr_as_fun(loops)(which)[0])
        (['while'], 12.0)
    """
    # other devices ask the host after every pass of a loop of unknown length
    if jax.default_backend() != "cpu" or not holds(made, (CHOICE,)):
        return made
    loops = {id(line): _in_loops(line) for line in made.eqns}
    if not any(loops.values()):
        return made
    return _traced(_with_other(made, lambda line: loops[id(line)]), made)


def _in_loops(line: Any) -> Callable[..., list[Array]] | None:
    """`first_maps_in_loops` of an operation; None if it stays as it is."""
    if line.primitive is lax.scan_p and (found := _two_loops(line)) is not None:
        return found
    params = {}
    for name, value in line.params.items():
        inside = ClosedJaxpr(value, []) if isinstance(value, Jaxpr) else value
        if isinstance(inside, ClosedJaxpr) and (new := first_maps_in_loops(inside)) is not inside:
            if new.consts and inside is not value:
                return None
            params[name] = new if inside is value else new.jaxpr
    if not params:
        return None
    line = line.replace(params=line.params | params)
    return lambda *operands: line.primitive.bind(*operands, **line.params)


def _two_loops(line: Any) -> Callable[..., list[Array]] | None:
    """A scan as a loop over passes by the second map, and in it one over those by the first map; None for
    scans with results of each pass, and for those without such a choice.
    """
    given = line.params
    fixed, moving, length = given["num_consts"], given["num_carry"], given["length"]
    if length == 1 or len(line.outvars) > moving or not holds(given["jaxpr"], (CHOICE,)):
        return None
    body = in_one_list(given["jaxpr"])
    choices = [x for x in body.eqns if x.primitive is _choice]
    if len(choices) != 1:
        return None
    info = body.jaxpr.debug_info.with_unknown_names()
    chosen = body.replace(jaxpr=body.jaxpr.replace(outvars=choices[0].invars[:1], debug_info=info))
    if any(_read(chosen)[fixed : fixed + moving]):  # the choice depends on the passes before
        return None
    maps = choices[0].params["maps"]

    def passed(made: ClosedJaxpr) -> Callable[..., list[Array]]:
        run = lambda _, *operands: jaxpr_as_fun(made)(*operands)  # noqa: E731
        return _with_other(body, lambda x: run if x is choices[0] else None)

    first = without_unread(without_repeats(in_one_list(_traced(passed(maps[0]), body))))
    if len(_parts(first.jaxpr)) > 1 or holds(first, LIBRARY):
        return None

    def run(*operands: Array) -> list[Array]:
        consts, start, over = operands[:fixed], operands[fixed : fixed + moving], operands[fixed + moving :]
        last, by = (0, -1) if given["reverse"] else (length - 1, 1)
        at = lambda x, k: lax.dynamic_index_in_dim(x, k, keepdims=False)  # noqa: E731
        going = lambda both: by * both[0] <= by * last  # noqa: E731

        def easy(both: tuple[Array, list[Array]]) -> Array:
            which = jaxpr_as_fun(without_unread(chosen))
            return going(both) & ~which(*consts, *start, *(at(x, both[0]) for x in over))[0]

        def step(run: Callable[..., list[Array]], both: tuple[Array, list[Array]]) -> Any:
            k, carry = both
            return k + by, run(*consts, *carry, *(at(x, k) for x in over))

        def several(both: tuple[Array, list[Array]]) -> Any:
            both = lax.while_loop(easy, functools.partial(step, jaxpr_as_fun(first)), both)
            rest = jax.jit(functools.partial(step, passed(maps[1])))
            return lax.cond(going(both), rest, lambda x: x, both)

        return lax.while_loop(going, several, (jnp.asarray(length - 1 - last), [*start]))[1]

    return run
