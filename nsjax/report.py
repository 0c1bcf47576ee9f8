"""Report of a run in words, with what explains a failure: loads that are not finite, impacts that gain
energy.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import status
from nsjax.core.operators import kinetic_energy, potential_energy, prepared, refreshed
from nsjax.core.system import System, contact_names, gap_units
from nsjax.jaxtools.compilation import compiled_once
from nsjax.jaxtools.owned import compiled_for
from nsjax.types import Array, PyTree, scale

# Loads of a mechanism that are not finite where a run failed.


PLACES = (0.0, 0.5, 1.0, 1.5)
"""Parts of the way from the last finite row to the end of the step that failed, where forces are looked at.
Steps evaluate them up to the end, and iterations go beyond it.
"""


def failed_loads(traj: Any) -> list[str]:
    """Names of the loads that are not finite about the first failure of a run. Returns no names for systems
    that are not made of parts, for a run that stayed finite, and where the loads are finite at these
    states.

    They are evaluated at the last finite row, and at `PLACES` between it and the end of the step that
    failed, with the velocity and the mean acceleration of that row. So they are found if rows lie close to
    each other (``every=1``). ``traj``: a `Trajectory`, not a batch.

    Example:
        >>> import jax.numpy as jnp
        >>> import nsjax
        >>> from nsjax import schemes
        >>> from nsjax.report import failed_loads
        >>> from nsjax.multibody import actuator, assemble, body, hinge
        >>> arm = assemble(body("arm", mass=1.0, inertia=0.1), hinge("pin", "ground", "arm"),
        ...                actuator("motor", "pin", law=lambda t, q, v, p: jnp.sqrt(v - 1.0)))
        >>> failed_loads(nsjax.simulate(arm, schemes.moreau(), dt=1e-3, steps=2))
        ['motor']
    """
    system, first = traj.system, traj.first_failure
    names = system.parts.part_names("load") if system.parts is not None else ()
    if not names or not int(first.status) & (status.FORCE_NOT_FINITE | status.STATE_NOT_FINITE):
        return []
    finite = np.isfinite(traj.q).all(axis=-1) & np.isfinite(traj.v).all(axis=-1)
    before = finite & (np.asarray(traj.t) < float(first.time))
    last = int(np.flatnonzero(before)[-1]) if before.any() else 0
    rows = [(x[max(last - 1, 0)], x[last]) for x in (traj.t, traj.q, traj.v)]
    found = _finite(system, traj.params, rows, first.time)
    return [name for name, each in zip(names, np.asarray(found), strict=True) if not each]


@compiled_for("system")
def _finite(system: System, params: PyTree, rows: list[tuple[Array, Array]], end: Array) -> Array:
    """Whether each load is finite at the second of two rows and at all places after it."""
    ready = prepared(system, params)
    (t0, t), (_, q), (v0, v) = rows
    mean = (v - v0) / jnp.where(t > t0, t - t0, 1.0)

    def at(part: float) -> Array:
        after = part * (end - t)
        there = system.retract(q, after * (v + 0.5 * after * mean))
        row = t + after, there, v + after * mean, None, refreshed(system, t + after, there, ready)
        loads = [system.parts.part_row("load", name, *row) for name in system.parts.part_names("load")]
        return jnp.stack([jnp.all(jnp.stack([jnp.isfinite(x).all() for x in y.values()])) for y in loads])

    return jnp.all(jnp.stack([at(part) for part in PLACES]), axis=0)


# Finds impacts at which a run gains energy that nothing explains, by its rows, after the run.


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

    return lax.map(lambda row: look(*row), rows)


def first_rise(rows: Any, kinetic: Any, energy: Any) -> int | None:
    """The first of the ``rows`` with impacts at which the energy rises beyond `RISE`, or None. ``rows``:
    indices of rows with impacts, not the first two; ``kinetic``, ``energy``: values [J] of all rows; those
    that are not known are not finite.
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
    Models without a potential are not examined. ``rows``: ``t``, ``q``, ``v`` and ``impacts`` of all rows;
    ``speeds``: (rows,) largest entry of each velocity.
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


# Report of a run in words, for ``print(traj)`` and the end of ``nsjax simulate``.


ROUNDING = 4.0 * float(np.finfo(float).eps)
"""Penetrations up to this part of the largest coordinate of a run are shown as zero."""


def report(traj: Any) -> str:
    """Model, scheme, times, contacts, energy and failures of one run, in lines. ``traj``: a `Trajectory`,
    not a batch. Returns lines, without a line end after the last one.
    """
    system, t = traj.system, traj.t
    lines = [
        f"model            {system.name or 'without a name'}",
        f"scheme           {traj.carry.scheme or 'not known'}",
        f"rows             {len(t)}, from t = {t[0]:g} s to {t[-1]:g} s, dt = {float(traj.carry.dt):g} s",
        *([] if traj.stopped is None else [stop_line(traj)]), *contact_lines(traj), energy_line(traj),
        *rise_lines(traj),
    ]  # fmt: skip
    causes = status.describe(int(traj.status))
    what = "; then ".join(words for words, _ in causes)
    lines.append(f"status           {what or 'all steps went well'}")
    if causes:
        first = traj.first_failure
        lines.append(f"first            step {int(first.step)}, t = {float(first.time):.9g} s")
        good = np.all(np.isfinite(traj.q), axis=1)
        if not good.all():
            rows = int(np.argmin(good))
            last = f", the last at t = {t[rows - 1]:g} s" if rows else ""
            lines.append(f"finite rows      {rows} of {len(t)}{last}; the run went on to its last step")
        if loads := failed_loads(traj):
            lines.append(f"not finite       {', '.join(loads)}")
        lines.append(f"remedy           {causes[0][1]}")
    return "\n".join(line.rstrip() for line in lines)


def with_unit(value: float, unit: str) -> str:
    """A number with a prefixed unit: ``"1.5 mm"`` for 0.0015 and ``"m"``."""
    value = float(value) + 0.0  # turns minus zero into zero
    factor, printed = scale(value, unit)
    return f"{value * factor:.5g} {printed}"


def stop_line(traj: Any) -> str:
    """Line on the end of a run with a stop."""
    if bool(traj.stopped):
        return f"stop             stopped at t = {float(traj.t[-1]):.9g} s"
    return "stop             it did not come: the run did not stop"


def contact_lines(traj: Any) -> list[str]:
    """Lines on contacts, penetration and residual, as far as saved; no lines for a run without contacts."""
    needed = (traj.impacts, traj.closed_time, traj.gap_min)
    if not traj.system.nc or any(x is None for x in needed):
        return []
    lines = [*contact_table(traj), *penetration_lines(traj)]
    if traj.residual is not None:
        largest = np.max(np.asarray(traj.residual))
        lines.append(f"residual         {largest:.1e} at most (relative, contact problems)")
    return lines


def penetration_lines(traj: Any) -> list[str]:
    """Deepest penetration and its contact, of gaps in metres and of those in radians."""
    deepest, units, names = _deepest(traj), np.array(gap_units(traj.system)), contact_names(traj.system)
    lines = []
    for unit in dict.fromkeys(units[deepest > 0.0]):
        worst = int(np.argmax(np.where(units == unit, deepest, -1.0)))
        lines.append(f"penetration      {with_unit(deepest[worst], unit)} at most ({names[worst]})")
    return lines or ["penetration      none"]


def _deepest(traj: Any) -> np.ndarray:
    """Largest penetration (nc,) [m, or rad] in finite rows; 0 if it is rounding of the coordinates."""
    depth = -np.min(np.asarray(traj.gap_min), axis=0, initial=0.0, where=np.isfinite(traj.gap_min))
    size = np.max(np.abs(traj.q), initial=0.0, where=np.isfinite(traj.q))
    return np.where(depth > ROUNDING * size, depth, 0.0)


def contact_table(traj: Any, most: int = 12) -> list[str]:
    """Table of impacts, contact time, penetration of contacts that closed, or of the ``most`` busiest."""
    impacts = np.sum(np.asarray(traj.impacts), axis=0)
    closed = np.sum(np.asarray(traj.closed_time), axis=0)
    deepest = _deepest(traj)
    names, units = contact_names(traj.system), gap_units(traj.system)
    met = int(np.sum((impacts > 0) | (closed > 0.0) | (deepest > 0.0)))
    shown = np.sort(np.lexsort((-deepest, -closed, -impacts))[: min(met, most)])
    others = f"{len(names) - met} of {len(names)} contacts never closed"
    if not met:
        return [
            "",
            f"contacts         {others}" if len(names) > 1 else f"contact          {names[0]} never closed",
        ]
    width = max(16, *(len(names[k]) for k in shown))
    lines = ["", f"{'contact':<{width}} {'impacts':>8} {'contact time':>14} {'penetration':>14}"]
    for k in shown:
        lines.append(
            f"{names[k]:<{width}} {impacts[k]:>8} {with_unit(closed[k], 's'):>14} "
            f"{with_unit(deepest[k], units[k]):>14}"
        )
    if met > most:
        lines.append(f"({met - most} more contacts, with fewer impacts)")
    if met < len(names):
        lines.append(f"({others})")
    return [*lines, ""]


def energy_line(traj: Any) -> str:
    """Line on the energy at the start and the end of the run, or until it is not finite.

    Beside a change of energy with a potential is the largest kinetic energy, to compare it with: the zero
    of a potential is arbitrary.
    """
    energy, kinetic = np.asarray(traj["energy"]), np.asarray(traj["kinetic"])
    name = "energy" if traj.system.potential is not None else "kinetic energy"
    finite = np.isfinite(energy)
    if not finite.all():
        last = max(int(np.argmin(finite)) - 1, 0)
        return (
            f"{name:<16} {with_unit(energy[0], 'J')} at the start, {with_unit(energy[last], 'J')} at "
            f"t = {traj.t[last]:g} s, not finite after it"
        )
    start, end = float(energy[0]), float(energy[-1])
    beside = f" ({100 * (end - start) / start:+.3g} %)" if start else ""
    if traj.system.potential is not None:
        beside = f" (largest kinetic energy {with_unit(np.max(kinetic), 'J')})"
    if left := getattr(traj.system.parts, "unstored", ()):
        beside += f"; without that of {', '.join(left)}: give the law potential="
    ends = f"{with_unit(start, 'J')} at the start, {with_unit(end, 'J')} at the end"
    return f"{name:<16} {ends}, difference {with_unit(end - start, 'J')}{beside}"


def rise_lines(traj: Any) -> list[str]:
    """Line on the impact at which the energy rose, of a run with this status."""
    system, energy = traj.system, np.asarray(traj["energy"])
    if not int(traj.status) & status.ENERGY_ROSE or traj.impacts is None:
        return []
    hits = np.flatnonzero(np.sum(np.asarray(traj.impacts), axis=1))
    row = first_rise(hits[hits > 1], np.asarray(traj["kinetic"]), energy)
    if row is None:
        return []
    name = contact_names(system)[int(np.argmax(np.asarray(traj.impacts)[row]))]
    later = np.fmax(energy[row], energy[min(row + 1, len(energy) - 1)])
    rise = f"from {with_unit(energy[row - 1], 'J')} to {with_unit(later, 'J')}"
    return [f"energy rises     {rise} at an impact ({name}), t = {float(traj.t[row]):.9g} s"]
