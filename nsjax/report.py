"""Report of a run in words, for ``print(traj)`` and the end of ``nsjax simulate``."""

from __future__ import annotations

from typing import Any

import numpy as np

from nsjax import status
from nsjax.core.system import contact_names, gap_units
from nsjax.failed_loads import failed_loads
from nsjax.impact_energy import first_rise
from nsjax.short import scale

ROUNDING = 4.0 * float(np.finfo(float).eps)
"""Penetrations up to this part of the largest coordinate of a run are shown as zero: a gap is a difference
of numbers of the size of the coordinates, each rounded once or twice.
"""

TABLE_CONTACTS = 12
"""Largest number of contacts in the table."""


def report(traj: Any) -> str:
    """Model, scheme, times, contacts, energy and failures of one run, in lines.

    Args:
        traj: a `Trajectory`, not a batch.

    Returns:
        Lines, without a line end after the last one.
    """
    system, t = traj.system, traj.t
    lines = [
        f"model            {system.name or 'without a name'}",
        f"scheme           {traj.carry.scheme or 'not known'}",
        f"rows             {len(t)}, from t = {t[0]:g} s to {t[-1]:g} s, dt = {float(traj.carry.dt):g} s",
        *contact_lines(traj),
        energy_line(traj),
        *rise_lines(traj),
    ]
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
    """Largest penetration of each contact (nc,) [m, or rad] in rows that are finite, 0 if it is rounding of
    the coordinates.
    """
    depth = -np.min(np.asarray(traj.gap_min), axis=0, initial=0.0, where=np.isfinite(traj.gap_min))
    size = np.max(np.abs(traj.q), initial=0.0, where=np.isfinite(traj.q))
    return np.where(depth > ROUNDING * size, depth, 0.0)


def contact_table(traj: Any) -> list[str]:
    """Table of impacts, contact time and penetration of the contacts that closed, or of those with most
    impacts.
    """
    impacts = np.sum(np.asarray(traj.impacts), axis=0)
    closed = np.sum(np.asarray(traj.closed_time), axis=0)
    deepest = _deepest(traj)
    names, units = contact_names(traj.system), gap_units(traj.system)
    met = int(np.sum((impacts > 0) | (closed > 0.0) | (deepest > 0.0)))
    shown = np.sort(np.lexsort((-deepest, -closed, -impacts))[: min(met, TABLE_CONTACTS)])
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
    if met > TABLE_CONTACTS:
        lines.append(f"({met - TABLE_CONTACTS} more contacts, with fewer impacts)")
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
