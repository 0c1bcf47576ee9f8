"""The one place where the solution of an equation gets its derivative.

A solver iterates without derivatives. At its answer, one linearised step, evaluated with data that have
derivatives ("live" data) but with branches and matrices taken at the answer, has the same value and, by the
implicit function theorem, the right derivative: one linear solve, whatever the solver did. The matrices are
functions of the answer, whose own derivative follows by the same rule, so that higher derivatives are
right as well (as long as the branches stay).

Reverse mode that computes parts of a run a second time needs only the answer, not the iteration that has
found it: answers carry a name (`SOLUTION`) by which `jax.checkpoint` keeps them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.custom_derivatives import SymbolicZero

from nsjax.nonlinear.trimmed import counted
from nsjax.types import Array, PyTree

SOLUTION = "nsjax_solution"
"""Name of all answers, for policies of `jax.checkpoint`."""


def keep_solutions(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` for which reverse mode stores only the arguments and the solutions of solvers."""
    policy = jax.checkpoint_policies.save_only_these_names(SOLUTION)
    return jax.checkpoint(f, prevent_cse=False, policy=policy)


def tangent_along(f: Callable[[PyTree], PyTree], data: PyTree, change: PyTree) -> tuple[PyTree, PyTree]:
    """Value and derivative of ``f`` at ``data``. Leaves whose tangent is known to be zero count as
    constants: zero tangents would be carried through all of ``f``, and the compiler keeps products with
    them.
    """
    value, along, _ = counted_along(f, data, change)
    return value, along


def counted_along(
    f: Callable[[PyTree], PyTree], data: PyTree, change: PyTree
) -> tuple[PyTree, PyTree, int]:
    """`tangent_along`, and the code size of its program (`nsjax.nonlinear.trimmed.code_size`)."""
    live = LiveLeaves(data, change)

    def both(some: list[Array], change: list[Array]) -> tuple[PyTree, PyTree]:
        return jax.jvp(lambda values: f(live.whole(values)), (some,), (change,))

    (value, along), size = counted(both, live.values, live.tangents)
    return value, along, size


class LiveLeaves:
    """The live leaves of a tree, those with a tangent, apart from its constant leaves.

    Args:
        data: tree of arrays.
        change: its tangents; leaves with known zero tangents are constant.
        also: tree of bool, leaves that are live even with a zero tangent; None: none.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.nonlinear import LiveLeaves
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
    if jnp.issubdtype(x.dtype, jnp.floating):
        return jnp.zeros_like(x)
    return np.zeros(x.shape, jax.dtypes.float0)


def implicit_solution(
    solver: Callable[[PyTree], tuple[PyTree, PyTree]],
    live_step: Callable[[PyTree, PyTree], Callable[[PyTree], PyTree]],
) -> Callable[[PyTree], tuple[PyTree, PyTree]]:
    """Wraps a solver so that its solution differentiates by the implicit function theorem.

    Args:
        solver: ``data -> (x, aux)``; ``aux`` (iteration counts, residuals) has no derivative.
        live_step: ``(x, data) -> step`` with ``step(live)`` the result of one linearised step from
            ``x``, ``x - J^-1 f(x, live)``, with ``J`` and all branches taken at ``(x, data)``.

    Returns:
        A function of ``data`` with forward and reverse derivatives of any order.
    """

    @jax.custom_jvp
    def solution(data: PyTree) -> tuple[PyTree, PyTree]:
        return solver(data)

    @functools.partial(solution.defjvp, symbolic_zeros=True)
    def rule(primals: Any, tangents: Any) -> Any:
        (data,), (change,) = primals, tangents
        x, aux = solution(data)
        x = checkpoint_name(x, SOLUTION)
        dx = tangent_along(live_step(x, data), data, change)[1]
        return (x, aux), (dx, jax.tree.map(_no_tangent, aux))

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
    ``ds = -g_data / g_s`` and ``dx = x_data + x_s ds``.

    Args:
        solver: ``data -> (s, x, aux)``, without derivatives; ``aux`` has none.
        flown: ``(s, data, aux) -> (x, g)``, the same end as that of the solver.

    Returns:
        ``data -> (s, x, aux)``, with forward and reverse derivatives of any order.
    """

    @jax.custom_jvp
    def solution(data: PyTree) -> tuple[Array, PyTree, PyTree]:
        return solver(lax.stop_gradient(data))

    def rule(primals: Any, tangents: Any) -> Any:
        (data,), (change,) = primals, tangents
        s, x, aux = solution(data)
        shape: Any  # the type stubs of jax lack its methods
        leaves, shape = jax.tree.flatten(x)
        floats = [k for k, y in enumerate(leaves) if jnp.issubdtype(y.dtype, jnp.floating)]
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

    solution.defjvp(rule, symbolic_zeros=True)

    def without_tangents(data: PyTree) -> tuple[Array, PyTree, PyTree]:
        s, x, aux = solution(data)
        return s, x, lax.stop_gradient(aux)

    return without_tangents
