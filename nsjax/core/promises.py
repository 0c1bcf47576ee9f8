"""Tests whether a system has the structure that it promises, along random directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.errors import InputError
from nsjax.core.inertia import mass_matrix, saddle
from nsjax.core.operators import contact_rows, gap_rows, momentum, row_rates
from nsjax.core.system import State, System
from nsjax.linalg import interleaving, matvec
from nsjax.linalg.dense import unit_matrix
from nsjax.types import Array, PyTree

TOLERANCE = 1e-9
"""Relative error of a promise that is accepted: far above rounding of sums over a row of a matrix, far
below the effect of a missing entry."""


def _off(found: Array, wanted: Array, least: Array | float = 0.0) -> Array:
    """Largest difference relative to the size of the wanted values, or to ``least`` if this is larger."""
    size = jnp.maximum(jnp.max(jnp.abs(wanted)), least)
    return jnp.max(jnp.abs(found - wanted)) / jnp.where(size > 0.0, size, 1.0)


def _functions(system: System, state: State, p: PyTree, xi: Array, dv: Array) -> dict[str, Any]:
    """Inertia, and force over position and over velocity, as functions (nv,) -> (nv,) at a moved state."""
    t, q, v = state.t, system.retract(state.q, xi), state.v + dv
    return {
        "inertia": lambda w: momentum(system, q, w, p),
        "force over the positions": lambda x: system.force(t, system.retract(q, x), v, p),
        "force over the velocities": lambda x: system.force(t, q, v + x, p),
    }


def _directions(system: System) -> tuple[Array, Array]:
    """Two velocities (nv,) along which functions are tested."""
    number = jnp.arange(system.nv)
    return jnp.cos(1.0 * number * number), jnp.sin(3.0 * number * number + 1.0)


def weighed(system: System, state: State, p: PyTree) -> dict[str, Array]:
    """Twice the kinetic energy along a direction, of dense systems that of each velocity alone, too; and
    the skew part of the inertia relative to the first.
    """
    x, y = _directions(system)
    if not system.structure.dense:
        mx, my = (momentum(system, state.q, w, p) for w in (x, y))
        energy = jnp.sum(x * mx)
        return {"energy": energy, "skew": jnp.abs(jnp.sum(y * mx) - jnp.sum(x * my)) / energy}
    mass = mass_matrix(system, state.q, p)
    each, energy = jnp.sum(mass * unit_matrix(system.nv), axis=1), jnp.sum(x * matvec(mass, x))
    skew = jnp.max(jnp.abs(mass - mass.T)) / energy
    return {"energy": jnp.concatenate([each, energy[None]]), "skew": skew}


def sampled(system: System, state: State, p: PyTree) -> dict[str, Array]:
    """Numbers for `check_promises`; empty for a dense structure that is not constant, without ``rows``,
    ``islands``, ``pairs`` and ``smooth`` contacts.
    """
    structure, rest = system.structure, jnp.zeros(system.nv)
    x, y = _directions(system)
    found: dict[str, Array] = {}

    def along(f: Callable[[Array], Array]) -> Array:
        return jax.jvp(f, (rest,), (x,))[1]

    here = _functions(system, state, p, rest, rest)
    if not structure.dense:
        # gyroscopic moments of equal inertias cancel; their rounding error is no coupling
        turning = jnp.max(jnp.abs(here["inertia"](x))) * jnp.max(jnp.abs(state.v))
        for name, f in here.items():
            least = turning if name == "force over the velocities" else 0.0
            product = structure.times(structure.tangent(f, rest), x)
            found[f"outside: {name}"] = _off(product, along(f), least)
        if system.inside:
            whole, both = saddle(system, jnp.asarray(state.t), state.q, p), jnp.concatenate([x, y])
            zero = jnp.zeros(system.nv + system.inside)
            both, with_joints = both[: zero.shape[0]], interleaving(structure).saddle
            matrix = with_joints.tangent(whole, zero)
            wanted = jax.jvp(whole, (zero,), (both,))[1]
            found["outside: joints"] = _off(with_joints.times(matrix, both), wanted)
        found |= _apart(system, state, p, x)
    if system.rows is not None:
        at = jnp.asarray(state.t)
        rate, count = contact_rows(system, at, state.q, p).rate(x), system.nc * (1 + system.nt)
        found["rows: contacts"] = _off(rate, row_rates(system, at, state.q, x, p)[:count])
    if system.smooth and system.nt:
        friction = system.law(p).friction_of(system.nc)[system.nc - system.smooth :]
        found["smooth: friction"] = jnp.max(jnp.abs(friction))
    if structure.constant:
        # distance (in the units of q and v) over which a state is moved to test whether the tangent changes
        step = 1e-2
        moved = _functions(system, state, p, step * y, step * x)
        for name, f in here.items():
            found[f"changes: {name}"] = _off(along(moved[name]), along(f))
        for name, count in (("gap", system.nc), ("constraint", system.nb)):
            if count:
                places = state.q, system.retract(state.q, step * y)
                wt = [gap_rows(system, name, jnp.asarray(state.t), q, p).wt for q in places]
                found[f"changes: directions of the {name}"] = _off(wt[1], wt[0])
    return found


def _apart(system: System, state: State, p: PyTree, x: Array) -> dict[str, Array]:
    """Amount by which rates of contacts depend on velocities outside of their islands or bodies."""
    if not system.islands and system.pairs is None:
        return {}
    t = jnp.asarray(state.t)
    rows, rest = contact_rows(system, t, state.q, p), jnp.zeros(system.nv)
    whole = lambda v: row_rates(system, t, state.q, v, p)  # noqa: E731
    what = "islands" if system.islands else "pairs"
    return {f"{what}: contacts": _off(rows.rate(x) - rows.offset, whole(x) - whole(rest))}


def check_promises(system: System, found: dict[str, np.ndarray]) -> None:
    """Refuses a model without the promised structure, or whose inertia is not positive."""
    kind = type(system.structure).__name__
    for name, value in found.items():
        what, _, of = name.partition(": ")
        if what == "outside" and not value <= TOLERANCE:
            raise InputError(
                f"structure: the tangent of the {of} is not {kind}: products with it are wrong by "
                f"{value:.3g} of their size; give a wider block or pattern that contains all couplings"
            )
        if what == "islands" and not value <= TOLERANCE:
            raise InputError(
                f"islands: rates of the {of} depend on velocities of other parts, by {value:.3g} of their "
                "size; order contacts part by part, or leave islands out"
            )
        if what == "rows" and not value <= TOLERANCE:
            raise InputError(
                f"rows: rates of the {of} differ from those of gap and slip by {value:.3g} of their size; "
                "check rows, or leave them out, and gap and slip are differentiated"
            )
        if what == "pairs" and not value <= TOLERANCE:
            raise InputError(
                f"pairs: rates of the {of} by the directions differ from those of gap and slip by "
                f"{value:.3g} of their size; check directions and bodies"
            )
        if what == "smooth" and value != 0.0:
            raise InputError(
                f"System: smooth = {system.smooth}, but friction of the law is {value:.3g} in the last of "
                "the contacts; order contacts with friction first, or leave smooth out"
            )
        if what == "changes" and not value <= TOLERANCE:
            raise InputError(
                f"structure: constant = True, but the {of} has a tangent that changes with the state, by "
                f"{value:.3g} of its size; leave constant out"
            )
        if what == "energy" and not value > 0:
            raise InputError(
                f"inertia is not positive definite at the start: v M v = {value:.6g} for some v; every "
                "velocity needs inertia (check masses, lengths and their signs)"
            )
        if what == "skew" and not value <= TOLERANCE:
            raise InputError(f"inertia is not symmetric at the start: v M w - w M v = {value:.3g} of v M v")
