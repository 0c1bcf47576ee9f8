"""Nearest admissible start: loops are closed, couplings hold and limits are kept. Contacts are ignored:
`nsjax.consistent` moves a problem out of penetrations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.core.checks import without_values
from nsjax.multibody.coordinates.loop_closure import CLOSED, closing_rates, openings
from nsjax.multibody.mechanism import Mechanism
from nsjax.multibody.start import given_coordinates
from nsjax.startup.owned import compiled_for
from nsjax.types import Array, PyTree


@compiled_for("mechanism")
def _gaps(mechanism: Mechanism, p: PyTree, q: Array) -> tuple[Array, Array]:
    """Gaps of the limits and their Jacobian."""
    system, zero = mechanism.system(), jnp.zeros(())

    def gaps(xi: Array) -> Array:
        scene = mechanism.scene(zero, system.retract(q, xi), None, p)
        signs = [(1.0 if which == "lower" else -1.0) for _, which in mechanism.presence.limits]
        found = [
            sign * (scene.coordinates(name)[0] - getattr(p[name], which))
            for sign, (name, which) in zip(signs, mechanism.presence.limits, strict=True)
        ]
        return jnp.stack([jnp.asarray(x, float) for x in found])

    rest = jnp.zeros(system.nv)
    return gaps(rest), jax.jacfwd(gaps)(rest)


def nearest_to(
    wanted: np.ndarray, equal: tuple[np.ndarray, ...], least: tuple[np.ndarray, ...]
) -> np.ndarray:
    """The vector nearest to ``wanted`` with ``J x = b`` and ``G x >= c``, by an active set of rows.

    Args:
        wanted: (n,).
        equal: ``J`` (m, n) and ``b`` (m,).
        least: ``G`` (k, n) and ``c`` (k,).

    Example:
        >>> import numpy as np
        >>> from nsjax.multibody.nearest_start import nearest_to
        >>> none = np.zeros((0, 2)), np.zeros(0)
        >>> nearest_to(np.array([1.0, -2.0]), none, (np.eye(2), np.zeros(2))).tolist()
        [1.0, 0.0]
    """
    (J, b), (G, c) = equal, least
    acting: list[int] = []
    x = wanted
    turns = 50  # largest number of changes of the set of active rows in a step
    for _ in range(turns):
        rows, right = np.concatenate([J, G[acting]]), np.concatenate([b, c[acting]])
        forces = np.linalg.pinv(rows @ rows.T, rcond=1e-12) @ (right - rows @ wanted)
        x = wanted + rows.T @ forces
        pulls = forces[len(b) :]
        if len(acting) and np.min(pulls) < -1e-12:
            acting.pop(int(np.argmin(pulls)))
            continue
        miss = np.where(np.isin(np.arange(len(c)), acting), 0.0, c - G @ x)
        if not len(c) or np.max(miss) <= 1e-13:
            break
        acting.append(int(np.argmax(miss)))
    return x


def nearest_start(
    mechanism: Mechanism, p: PyTree, near: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Admissible position and velocity nearest to given ones.

    Args:
        mechanism: in joint coordinates.
        p: its params.
        near: in the form of ``start`` of `nsjax.multibody.assemble`.

    Raises:
        InputError: for traced numbers, and where no admissible start is found.
    """
    if without_values((p, dict(near))):
        raise InputError(
            "assemble: near with traced numbers or inside jax.jit, and the search has no derivatives; give "
            "start, and guess for what it leaves open"
        )
    q0, v0, *_ = given_coordinates(mechanism, near, "near")
    system = mechanism.system()
    p = jax.tree.map(lambda x: jnp.asarray(x, float), p)
    bound = bool(mechanism.topology.closures or mechanism.presence.motions or mechanism.presence.couplings)
    stopped, none = bool(mechanism.presence.limits), (np.zeros((0, system.nv)), np.zeros(0))
    q, rest = np.asarray(q0, float), jnp.zeros(system.nv)

    def rows(q: np.ndarray) -> tuple[Any, Any]:
        at = jnp.asarray(q)
        left, each = map(np.asarray, openings(mechanism, p, at, rest)[:2] if bound else none[::-1])
        equal = each[: len(left)], left
        least = tuple(map(np.asarray, _gaps(mechanism, p, at)))[::-1] if stopped else none
        return equal, least

    # largest number of steps of the search; each goes to the nearest point of the linearised constraints
    passes = 100
    settled = 1e-11  # step below which the search has converged [m, rad]
    for _ in range(passes):
        (J, r), (G, g) = rows(q)
        xi = nearest_to(np.asarray(system.difference(q, q0)), (J, -r), (G, -g))
        largest = float(np.max(np.abs(xi), initial=0.0))
        if largest <= settled and (not len(r) or np.max(np.abs(r)) <= CLOSED):
            break
        q = np.asarray(system.retract(jnp.asarray(q), jnp.asarray(xi * min(1.0, 0.5 / max(largest, 0.5)))))
    else:
        raise InputError(_refusal(mechanism, r, g))
    if not bound:
        return q, np.asarray(v0, float)
    v, _ = closing_rates(mechanism, 0.0, p, jnp.asarray(q), jnp.asarray(v0), jnp.eye(system.nv))
    return q, np.asarray(v)


def _refusal(mechanism: Mechanism, r: np.ndarray, g: np.ndarray) -> str:
    """The error sentence about the loop, coupling or limit with the largest violation."""
    names = [f"the loop or coupling at {x!r}" for x in mechanism.labels().constraints]
    names += [repr(".".join(x)) for x in mechanism.presence.limits]
    left = np.concatenate([np.abs(r), np.where(g < 0.0, -g, 0.0)])
    worst = int(np.argmax(left)) if len(left) else 0
    which = names[worst] if worst < len(names) else "the search"
    return (
        f"assemble: no admissible start near the given one is found: {which} misses by {left[worst]:.3g}; "
        "check lengths and limits, or give near closer to a place that the mechanism can have"
    )
