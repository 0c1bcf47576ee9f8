"""Finds impacts at which a run gains energy that nothing explains, by its rows, after the run."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.operators import kinetic_energy, potential_energy, prepared, refreshed
from nsjax.core.system import System
from nsjax.startup.once import compiled_once
from nsjax.startup.owned import compiled_for
from nsjax.types import Array, PyTree

RISE = 0.1
"""Rise of the energy at an impact, relative to the largest kinetic energy before it, from which on it is
told. Schemes of order one at impacts have errors of ``omega dt`` there; a tenth is no longer an error of a
step that resolves its motion."""


@compiled_for("system", make=compiled_once)
def _energies(system: System, params: PyTree, rows: tuple[Array, ...]) -> tuple[Array, Array]:
    """Kinetic energy and energy (rows,) [J] at ``t, q, v`` of rows; no energy (NaN) where walls, joints or
    a potential move with time: their work at an impact is not known.
    """
    ready = prepared(system, params)

    def look(t: Array, q: Array, v: Array) -> tuple[Array, Array]:
        p = refreshed(system, t, q, ready)
        kinetic = kinetic_energy(system, q, v, p)
        given = [f for f in (system.gap, system.constraint, system.potential) if f is not None]
        one = jnp.ones(())
        rates = [jax.jvp(lambda s, f=f: jnp.ravel(f(s, q, p)), (t,), (one,))[1] for f in given]
        moves = jnp.any(jnp.concatenate(rates) != 0.0)
        return kinetic, jnp.where(moves, jnp.nan, kinetic + potential_energy(system, t, q, p))

    found: tuple[Array, Array] = lax.map(lambda row: look(*row), rows)
    return found


def first_rise(rows: Any, kinetic: Any, energy: Any) -> int | None:
    """The first of the ``rows`` with impacts at which the energy rises beyond `RISE`, or None.

    Args:
        rows: indices of rows with impacts, not the first two.
        kinetic, energy: values [J] of all rows; those that are not known are not finite.
    """
    largest = np.fmax.accumulate(kinetic)
    # ratio of the rise to the change of energy in the row before, which drives and dampers explain: an
    # impact may reverse a velocity and double it, and the two rows that are looked at add up
    drives = 4.0
    for k in rows:
        before, after = energy[k - 1], np.fmax(energy[k], energy[min(k + 1, len(energy) - 1)])
        explained = RISE * largest[k - 1] + drives * abs(before - energy[k - 2])
        if after - before > explained:
            return int(k)
    return None


def rise_in_run(system: System, params: PyTree, rows: dict[str, Any], speeds: np.ndarray) -> int | None:
    """The row of an eager run at whose impacts its energy has risen; None without one.

    Energies are evaluated only at impacts after which the largest speed is above that of all rows before:
    without that an impact adds no kinetic energy to speak of, and most runs compile nothing for this.
    Models without a potential are not examined.

    Args:
        rows: ``t``, ``q``, ``v`` and ``impacts`` of all rows.
        speeds: (rows,) largest entry of each velocity.
    """
    if system.potential is None or rows.get("impacts") is None or len(rows["t"]) < 4:
        return None
    hits = np.sum(np.asarray(rows["impacts"]), axis=1) > 0
    record = np.fmax.accumulate(speeds)
    two = np.fmax(speeds, np.append(speeds[1:], 0.0))
    there = hits[2:] & (two[2:] > (1.0 + 0.5 * RISE) * record[1:-1])
    # number of impacts of a run that are examined: the first that reach a speed above all before them
    examined = 16
    some = np.flatnonzero(there)[:examined] + 2
    if not len(some):
        return None
    last = len(speeds) - 1
    fastest = [int(np.argmax(speeds[:k])) for k in some]  # the kinetic energy before is largest near these
    looked = np.concatenate([some - 2, some - 1, some, np.minimum(some + 1, last), fastest])
    padded = np.concatenate([looked, np.full(5 * examined - len(looked), looked[0])])
    found = _energies(system, params, tuple(np.asarray(rows[name])[padded] for name in "tqv"))
    kinetic, energy = np.full((2, last + 1), np.nan)
    kinetic[padded], energy[padded] = (np.asarray(x) for x in found)
    return first_rise(some, kinetic, energy)
