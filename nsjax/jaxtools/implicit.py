"""Derivatives of solutions, by the implicit function theorem, and derivatives written by hand.

A solver iterates without derivatives. At its answer, one linearised step, evaluated with data that have
derivatives ("live" data) but with branches and matrices taken at the answer, has the same value and, by the
implicit function theorem, the right derivative: one linear solve, whatever the solver did. The matrices are
functions of the answer, whose own derivative follows by the same rule, so that higher derivatives are
right as well (as long as the branches stay).

Reverse mode that computes parts of a run a second time needs only the answer, not the iteration that has
found it: answers carry a name (`SOLUTION`) by which `jax.checkpoint` keeps them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.custom_derivatives import SymbolicZero

from nsjax.jaxtools.choices import chosen_map
from nsjax.jaxtools.control_flow import Shared
from nsjax.jaxtools.internals import ClosedJaxpr, jaxpr_as_fun
from nsjax.jaxtools.programs import (
    LARGE_WITH_TANGENTS,
    as_counted,
    counted,
    ends_kernel,
    sliced_once,
    without_unread,
)
from nsjax.jaxtools.rules import with_rule
from nsjax.types import Array, PyTree

# Derivatives written by hand: values that carry a tangent of their own, of first order.
#
# The value of such a function must have the lanes of a batch (`jax.vmap`) wherever its tangent has them,
# else the derivative of a batch is wrong. The value therefore depends, with no effect, on arguments that
# do not enter it.


@jax.custom_jvp
def _of_first_order(x: Array) -> Array:
    """One; differentiating it raises an error. As a factor it is a value that reverse mode keeps, so
    that a second differentiation, in either mode, meets it.
    """
    return jnp.ones_like(x)


@_of_first_order.defjvp
def _refuse(primals: Any, tangents: Any) -> Any:
    raise NotImplementedError(
        'second derivative of a derivative through impacts: gradient="saltation" is of first order only. '
        'Use schemes.localized(scheme), or gradient="discrete" for a run without impacts'
    )


def without_derivative(x: PyTree, sentence: str) -> PyTree:
    """``x``; differentiating it, in either mode, raises `NotImplementedError` with the ``sentence``."""

    @jax.custom_jvp
    def same(x: PyTree) -> PyTree:
        return x

    @same.defjvp
    def refuse(primals: Any, tangents: Any) -> Any:
        raise NotImplementedError(sentence)

    return same(x)


def only_tangent(x: Array, refuse: bool = True) -> Array:
    """Zero, with the first derivative of ``x``. A second derivative raises an error with ``refuse``, else
    factors of the result count as constants.
    """
    return _first_tangent(x) if refuse else _open_tangent(x)


def _noting(y: Array, x: Array) -> Array:
    """``y``, with the lanes of a batch of ``x``, which has the same shape."""
    return lax.select(np.zeros(jnp.shape(y), bool), x, y)


@jax.custom_jvp
def _first_tangent(x: Array) -> Array:
    return _noting(jnp.zeros_like(x), x)


@_first_tangent.defjvp
def _keep(primals: Any, tangents: Any) -> Any:
    return jnp.zeros_like(primals[0]), _of_first_order(primals[0]) * tangents[0]


@jax.custom_jvp
def _open_tangent(x: Array) -> Array:
    return _noting(jnp.zeros_like(x), x)


@_open_tangent.defjvp
def _keep_open(primals: Any, tangents: Any) -> Any:
    return jnp.zeros_like(primals[0]), tangents[0]


@jax.custom_jvp
def with_tangent(x: Array, change: Array) -> Array:
    """``x``, with the derivative of ``x + change``; the value of ``change`` does not matter."""
    return _noting(x, change)


@with_tangent.defjvp
def _add(primals: Any, tangents: Any) -> Any:
    return primals[0], tangents[0] + tangents[1]


def with_retract_tangent(retract: Callable[[Array, Array], Array], q: Array, xi: Array) -> Array:
    """``q``, with the derivative of ``retract(q, xi)`` for a ``xi`` that is zero but has a derivative."""

    @jax.custom_jvp
    def move(q: Array, xi: Array) -> Array:
        return _joined(q, _no_entries(xi))

    @move.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (q, xi), (dq, dxi) = primals, tangents
        along = jax.jvp(lambda x: retract(q, x), (jnp.zeros_like(xi),), (dxi,))[1]
        return q, dq + along

    return move(q, xi)


def make_live(x: PyTree, by: PyTree) -> PyTree:
    """``x``; if ``by`` has a tangent, then every float in ``x`` has one, of zeros where it had none.

    JAX differentiates the body of a loop anew each time that it finds another part of the carry with a
    tangent: three times for a run from a fixed state. With tangents from the start, once is enough. Each
    float is concatenated with an empty slice of ``by``, and so has its tangent and, in a batch, its lanes.
    """
    none = _none_of(by)
    if none is None:
        return x
    return jax.tree.map(lambda y: _joined(jnp.asarray(y), none) if _is_float(y) and jnp.size(y) else y, x)


def with_lanes(x: PyTree, by: PyTree) -> PyTree:
    """``x``, each of whose arrays has the lanes of a batch of every float in ``by``, and their tangents.

    Constants that stand for values of a derivative need them: JAX takes the lanes of a function with a
    hand-written derivative from the function itself, and fails where its derivative has others.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from nsjax.jaxtools import with_lanes
        >>> jax.vmap(lambda y: with_lanes(jnp.arange(2), y))(jnp.ones(3)).shape
        (3, 2)
    """
    none = _none_of(by)
    if none is None:
        return x
    return jax.tree.map(lambda y: _joined(jnp.asarray(y), none) if jnp.size(y) else y, x)


def _none_of(by: PyTree) -> Array | None:
    """Empty array (0,) with the tangents and lanes of every float in a tree; None without floats."""
    nothing = [_no_entries(jnp.asarray(y)) for y in jax.tree.leaves(by) if _is_float(y)]
    if not nothing:
        return None
    return lax.concatenate(nothing, 0) if len(nothing) > 1 else nothing[0]


def _is_float(x: Any) -> bool:
    return bool(jnp.issubdtype(jnp.result_type(x), jnp.floating))


def _no_entries(y: Array) -> Array:
    """Empty slice (0,) of ``y``, which keeps its tangent and its lanes."""
    if not y.ndim:
        return lax.broadcast(y, (0,))
    return lax.slice_in_dim(y, 0, 0).reshape(0)


def _joined(y: Array, none: Array) -> Array:
    return lax.concatenate([y.reshape(-1), none.astype(y.dtype)], 0).reshape(y.shape)


# The one place where the solution of an equation gets its derivative.


SOLUTION = "nsjax_solution"
"""Name of all answers, for policies of `jax.checkpoint`."""


EVENTS = "nsjax_events"
"""Name of what reverse mode stores of steps whose derivative is by kind, see `Quiet`."""


def keep_solutions(f: Callable[..., Any], solutions: bool = True) -> Callable[..., Any]:
    """``f`` for which reverse mode stores arguments, ``solutions`` of solvers, and steps' kinds."""
    names = (SOLUTION, EVENTS) if solutions else (EVENTS,)
    policy = jax.checkpoint_policies.save_only_these_names(*names)
    return jax.checkpoint(f, prevent_cse=False, policy=policy)


def tangent_along(
    f: Callable[[PyTree], PyTree], data: PyTree, change: PyTree
) -> tuple[tuple[PyTree, PyTree], int]:
    """Value and derivative of ``f`` at ``data``, and the code size of their program. Leaves whose tangent
    is known to be zero count as constants: zero tangents would be carried through all of ``f``, and the
    compiler keeps products with them.
    """
    live = LiveLeaves(data, change)

    def both(some: list[Array], change: list[Array]) -> tuple[PyTree, PyTree]:
        return jax.jvp(lambda values: f(live.whole(values)), (some,), (change,))

    return counted(both, live.values, live.tangents)


class LiveLeaves:
    """The live leaves of a tree, those with a tangent, apart from its constant leaves.

    Args:
        data: tree of arrays.
        change: its tangents; leaves with known zero tangents are constant.
        also: tree of bool, leaves that are live even with a zero tangent; None: none.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.jaxtools import LiveLeaves
        >>> data = {"x": jnp.ones(2), "count": jnp.asarray(3)}
        >>> live = LiveLeaves(data, data, {"x": True, "count": True})
        >>> live.whole([jnp.zeros(2)])["x"].tolist(), len(live.values)
        ([0.0, 0.0], 1)
    """

    def __init__(self, data: PyTree, change: PyTree, also: PyTree = None) -> None:
        tree: Any  # the type stubs of jax lack its methods
        self.leaves, tree = jax.tree.flatten(data)
        tangents = tree.flatten_up_to(change)
        kept = [False] * len(tangents) if also is None else tree.flatten_up_to(also)
        real = [jnp.issubdtype(jnp.result_type(x), jnp.floating) for x in self.leaves]
        self.tree, self.live = tree, [
            k for k, taken in enumerate(kept)
            if real[k] and (taken or not isinstance(tangents[k], SymbolicZero))
        ]  # fmt: skip
        self.values = [jnp.asarray(self.leaves[k]) for k in self.live]
        self.tangents = [
            jnp.zeros_like(x) if isinstance(tangents[k], SymbolicZero) else tangents[k]
            for k, x in zip(self.live, self.values, strict=True)
        ]

    def whole(self, values: list[Array]) -> PyTree:
        """The tree with other ``values`` of its live leaves."""
        leaves = list(self.leaves)
        for k, x in zip(self.live, values, strict=True):
            leaves[k] = x
        return self.tree.unflatten(leaves)

    def picked(self, tree: PyTree) -> list[Array]:
        """The live leaves of a tree of the same structure."""
        leaves = self.tree.flatten_up_to(tree)
        return [leaves[k] for k in self.live]


def _no_tangent(x: Array) -> Any:
    """Zero tangent of an auxiliary result."""
    return jnp.zeros_like(x) if _is_float(x) else np.zeros(jnp.shape(x), jax.dtypes.float0)


def implicit_solution(
    solver: Callable[[PyTree], tuple[PyTree, PyTree]],
    live_step: Callable[[PyTree, PyTree], Callable[[PyTree], PyTree]],
) -> Callable[[PyTree], tuple[PyTree, PyTree]]:
    """Wraps a solver so that its solution differentiates by the implicit function theorem. Returns a
    function of ``data`` with forward and reverse derivatives of any order.

    Args:
        solver: ``data -> (x, aux)``; ``aux`` (iteration counts, residuals) has no derivative.
        live_step: ``(x, data) -> step`` with ``step(live)`` the result of one linearised step from
            ``x``, ``x - J^-1 f(x, live)``, with ``J`` and all branches taken at ``(x, data)``.
    """

    def rule(data: PyTree, change: PyTree) -> Any:
        x, aux = solution(data)
        x = checkpoint_name(x, SOLUTION)
        (_, dx), _ = tangent_along(live_step(x, data), data, change)
        return (x, aux), (dx, jax.tree.map(_no_tangent, aux))

    solution = with_rule(solver, rule)

    def without_tangents(data: PyTree) -> tuple[PyTree, PyTree]:
        x, aux = solution(data)
        return x, lax.stop_gradient(aux)

    return without_tangents


def event_solution(
    solver: Callable[[PyTree], tuple[Array, PyTree, PyTree]],
    flown: Callable[[Array, PyTree, PyTree], tuple[PyTree, Array]],
) -> Callable[[PyTree], tuple[Array, PyTree, PyTree]]:
    """Wraps the motion to an event so that its time ``s``, at which ``g(s, data) = 0``, and its end
    ``x(s, data)`` differentiate by the implicit function theorem. One linearised motion serves both:
    ``ds = -g_data / g_s`` and ``dx = x_data + x_s ds``. Returns ``data -> (s, x, aux)``, with forward and
    reverse derivatives of any order.

    Args:
        solver: ``data -> (s, x, aux)``, without derivatives; ``aux`` has none.
        flown: ``(s, data, aux) -> (x, g)``, the same end as that of the solver.
    """

    def rule(data: PyTree, change: PyTree) -> Any:
        s, x, aux = solution(data)
        shape: Any  # the type stubs of jax lack its methods
        leaves, shape = jax.tree.flatten(x)
        floats = [k for k, y in enumerate(leaves) if _is_float(y)]
        counts = [y for k, y in enumerate(leaves) if k not in floats]
        s, aux, counts = checkpoint_name((s, aux, counts), SOLUTION)
        live = LiveLeaves(data, change)

        def near(s: Array, some: list[Array]) -> tuple[list[Array], Array]:
            end, g = flown(s, live.whole(some), aux)
            found = jax.tree.leaves(end)
            return [found[k] for k in floats], g

        # the end of the linearised motion has the value of the solver's, which need not be stored
        (end, _), along = jax.linearize(near, s, live.values)
        dx, dg = along(jnp.zeros_like(s), live.tangents)
        ahead, rate = along(jnp.ones_like(s), [jnp.zeros_like(y) for y in live.values])
        ds = -dg / jnp.where(rate < 0.0, rate, -1.0)
        others = iter(counts)
        leaves = [y if k in floats else next(others) for k, y in enumerate(leaves)]
        moves = [_no_tangent(y) for y in leaves]
        for k, value, a, b in zip(floats, end, dx, ahead, strict=True):
            leaves[k], moves[k] = value, a + b * ds
        still = jax.tree.map(_no_tangent, aux)
        return (s, shape.unflatten(leaves), aux), (ds, shape.unflatten(moves), still)

    solution = with_rule(lambda data: solver(lax.stop_gradient(data)), rule)

    def without_tangents(data: PyTree) -> tuple[Array, PyTree, PyTree]:
        s, x, aux = solution(data)
        return s, x, lax.stop_gradient(aux)

    return without_tangents


# Programs that hold the operations of a derivative only if they are differentiated.


@dataclasses.dataclass(frozen=True)
class Quiet:
    """What a large program takes for the derivative of a function where nothing happens.

    Args:
        easy: a shorter function, ``data -> value, None``, whose derivative is right there; it has the same
            solutions in the same order.
        whole: the function, which also returns whether something happens: ``data -> value, () bool``.
        shared: what passes of the loop around it have in common; None: nothing.
    """

    easy: Callable[[PyTree], tuple[PyTree, Any]]
    whole: Callable[[PyTree], tuple[PyTree, Any]]
    shared: Shared | None = None


def value_with_derivative_of(
    plain: Callable[[PyTree], PyTree], full: Callable[[PyTree], PyTree], quiet: Quiet | None = None
) -> Callable[[PyTree], PyTree]:
    """A function with the values of ``plain`` and the derivative of ``full``.

    Operations that only a derivative needs are then left out of programs that are not differentiated. A
    function that is traced for compilation cannot know whether it will be. In a batch, constants among the
    results of ``plain`` need the lanes that ``full`` gives them (`nsjax.jaxtools.with_lanes`).

    Args:
        plain: a function of one tree.
        full: another function with the same values up to rounding. A derivative evaluates it instead of
            ``plain``, to any order that it has itself; the loops of a large one are compiled in pieces
            (`nsjax.jaxtools.programs`).
        quiet: what a large program takes in place of ``full`` where nothing happens; None: nothing.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from nsjax.jaxtools import value_with_derivative_of
        >>> root = value_with_derivative_of(jnp.sqrt, lambda x: x / jnp.sqrt(x))
        >>> [float(f(4.0)) for f in (root, jax.grad(root))]
        [2.0, 0.25]
    """

    def with_shared(kinds: Quiet, shared: Shared, data: PyTree) -> PyTree:
        data, whole = shared.apart(data)
        parts = [lambda x, f=f: f(whole(x)) for f in (plain, full, kinds.easy, kinds.whole)]
        return value_with_derivative_of(parts[0], parts[1], Quiet(parts[2], parts[3]))(data)

    if quiet is not None and quiet.shared is not None:
        return functools.partial(with_shared, quiet, quiet.shared)

    def rule(data: PyTree, change: PyTree) -> Any:
        live = LiveLeaves(data, change)
        whole = (lambda x: (full(x), ())) if quiet is None else quiet.whole
        made, shape = _along(whole, live)
        count = len(made.out_avals) - (quiet is not None)
        program, size = as_counted(
            made.replace(jaxpr=made.jaxpr.replace(outvars=made.jaxpr.outvars[:count]))
        )
        large = size > LARGE_WITH_TANGENTS
        found = _by_kind(quiet, live, made) if large and quiet is not None else None
        if found is None:
            both = jaxpr_as_fun(program)(*live.values, *live.tangents)
            value, along = both[: count // 2], both[count // 2 :]
            found = value, ends_kernel(along, data) if large else along
        value, along = found
        return jax.tree.unflatten(shape, value), jax.tree.unflatten(shape, along)

    return with_rule(plain, rule)


def _along(f: Callable[[PyTree], tuple[PyTree, PyTree]], live: LiveLeaves) -> tuple[ClosedJaxpr, Any]:
    """Program ``values, tangents -> value, derivative, further result``, and the value's structure."""

    def both(some: list[Array], change: list[Array]) -> tuple[PyTree, PyTree, PyTree]:
        return jax.jvp(lambda values: f(live.whole(values)), (some,), (change,), has_aux=True)

    made, shapes = jax.make_jaxpr(both, return_shape=True)(live.values, live.tangents)
    return made, jax.tree.structure(shapes[0])


def _by_kind(quiet: Quiet, live: LiveLeaves, made: ClosedJaxpr) -> tuple[Any, Any] | None:
    """Leaves of value and tangent from one of two programs; None if their solutions differ."""
    given = [x for x in live.leaves if isinstance(x, jax.core.Tracer)]
    many = 4096  # numbers: every step copies them, of a table or a mesh too
    # on other devices lanes differ
    if jax.default_backend() != "cpu" or sum(x.size for x in given) > many:
        return None
    (*value, happens), whole, known = _linear_part(live, sliced_once(without_unread(made)))
    _, easy, own = _linear_part(live, as_counted(_along(quiet.easy, live)[0])[0])
    if [x.aval for x in known] != [x.aval for x in own]:
        return None
    count = len(given)

    def with_data(line: ClosedJaxpr, solutions: list[Array], ends: bool) -> Callable[..., list[Array]]:
        place = {id(x): k for k, x in enumerate([*given, *solutions])}

        def run(data: list[Array], change: list[Array]) -> list[Array]:
            consts = [data[place[id(x)]] if id(x) in place else x for x in line.consts]
            moves = jaxpr_as_fun(line.replace(consts=consts))(*change)
            return ends_kernel(moves, data[:count]) if ends else moves

        return run

    which, known = checkpoint_name((lax.stop_gradient(happens), known), EVENTS)
    maps = with_data(easy, own, False), with_data(whole, _solutions(live, whole), True)
    moves = iter(chosen_map(which, maps, [*given, *known], live.tangents))
    return value, [next(moves) if _is_float(x) else _no_tangent(x) for x in value]


def _linear_part(live: LiveLeaves, made: ClosedJaxpr) -> tuple[list[Array], ClosedJaxpr, list[Array]]:
    """Results of a program of `_along` but the derivative, the linear map of the tangents, which computes
    its coefficients again, and the solutions among its constants.
    """
    half = len(made.out_avals) // 2
    moving = [
        half + k for k, x in enumerate(made.out_avals[:half]) if jnp.issubdtype(x.dtype, jnp.floating)
    ]

    def run(change: list[Array]) -> tuple[list[Array], list[Array]]:
        found = jaxpr_as_fun(made)(*live.values, *change)
        return [*found[:half], *found[2 * half :]], [found[k] for k in moving]

    (found, _), along = jax.linearize(keep_solutions(run), live.tangents)
    line = jax.make_jaxpr(lambda change: along(change)[1])(live.tangents)
    return found, line, _solutions(live, line)


def _solutions(live: LiveLeaves, line: ClosedJaxpr) -> list[Array]:
    """Traced constants of a linear map that are none of the data."""
    given = {id(x) for x in live.leaves}
    return [x for x in line.consts if isinstance(x, jax.core.Tracer) and id(x) not in given]
