"""Values that the checks of a start need, in one compiled call."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from nsjax.core.inertia import mass_matrix, saddle
from nsjax.core.operators import Joints, gap_rows, prepared, refreshed, touching
from nsjax.core.promises import sampled, weighed
from nsjax.core.system import State, System
from nsjax.core.velocity_rows import residuals
from nsjax.linalg import interleaving
from nsjax.startup.lowered import kept_call
from nsjax.startup.once import compiled_once
from nsjax.startup.owned import compiled_for
from nsjax.types import Array, PyTree


def _bend(function: Any, state: State, p: PyTree) -> Array:
    """Second difference of a rate with the velocity, relative to its size: zero if the rate is affine."""
    number = jnp.arange(state.v.shape[0])
    aside = (1.0 + jnp.max(jnp.abs(state.v))) * jnp.cos(1.0 * number * number)
    three = jax.vmap(lambda s: function(state.t, state.q, state.v + s * aside, p))(jnp.arange(-1.0, 2.0))
    size = jnp.max(jnp.abs(three))
    return jnp.max(jnp.abs(three[0] - 2.0 * three[1] + three[2])) / jnp.where(size > 0.0, size, 1.0)


def probe(
    system: System, params: PyTree, state: State, promises: bool = True, mechanics: bool = True
) -> dict[str, Any]:
    """Everything whose value is checked at the start; without ``promises`` only what numbers decide, not
    what the functions of the system promise, and without ``mechanics`` those of its laws alone.
    """
    p = prepared(system, params)
    if mechanics:
        p = refreshed(system, jnp.asarray(state.t), state.q, p)
    found: dict[str, Any] = {}
    if promises and system.structure.dense:
        found["mass"] = mass_matrix(system, state.q, p)
    elif mechanics:
        found |= weighed(system, state, p)
    if promises:
        found |= sampled(system, state, p)
    if mechanics and system.gap is not None:
        gap = system.gap(state.t, state.q, p)
        # contacts that may not act count as open, whatever their gaps
        found["gap"] = jnp.where(touching(system, state.t, state.q, p, gap, 0.0), gap, jnp.abs(gap))
    if mechanics and system.nb:
        found["constraint"] = residuals(system, jnp.asarray(state.t), state.q, p)
        found |= _constraint_rates(system, state, p)
    for name in ("slip", "drag", "velocity_constraint") if promises else ():
        if getattr(system, name) is not None:
            found[f"{name}: bend"] = _bend(getattr(system, name), state, p)
    if system.drag_bound is not None:
        found["drag_bound"] = jnp.asarray(system.drag_bound(p), float)
    if system.law is not None:
        law = system.law(p)
        found["restitution"] = law.restitution
        found["restitution_tangential"] = law.restitution_tangential
        found["friction"] = law.friction
    return found


@compiled_for("system", make=compiled_once)
def probed(system: System, params: PyTree, state: State) -> dict[str, Any]:
    """`probe` in one compiled call, outside transformations."""
    return kept_call(probe, system, params, state)


def _constraint_rates(system: System, state: State, p: PyTree) -> dict[str, Any]:
    """Rates of the constraints, and the sums of the magnitudes of their terms; their rows, too, if the mass
    is checked with them.
    """
    t, v, inside = jnp.asarray(state.t), state.v, system.inside
    rows = gap_rows(system, "constraint", t, state.q, p, first=inside)
    found: dict[str, Any] = {"constraint_rows": rows.wt} if system.structure.dense else {}
    rate, size = rows.rate(v), jnp.sum(jnp.abs(rows.wt) * jnp.abs(v), axis=1) + jnp.abs(rows.offset)
    if inside:
        joints = Joints(system=system, t=t, q=state.q, params=p)
        structure = interleaving(system.structure).saddle
        still, rest = joints.rate(jnp.zeros_like(v)), jnp.zeros(system.nv + inside)
        matrix = jax.tree.map(jnp.abs, structure.tangent(saddle(system, t, state.q, p), rest))
        speed = jnp.concatenate([jnp.abs(v), jnp.zeros(inside)])
        rate = jnp.concatenate([joints.rate(v), rate])
        size = jnp.concatenate([structure.times(matrix, speed)[system.nv :] + jnp.abs(still), size])
    return found | {"rate": rate, "rate_size": size}
