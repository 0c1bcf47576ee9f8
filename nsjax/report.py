"""Report of a run in words, for ``print(traj)`` and the end of ``nsjax simulate``."""

from __future__ import annotations

from typing import Any

import numpy as np

from nsjax import status
from nsjax.core.system import contact_names, gap_units
from nsjax.short import scale

ROUNDING = 4.0 * float(np.finfo(float).eps)
"""Penetrations up to this part of the largest coordinate of a run are shown as zero: a gap is a difference
of numbers of the size of the coordinates, each rounded once or twice.
"""

LISTED = 12
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
    ]
    causes = status.describe(int(traj.status))
    what = "; then ".join(words for words, _ in causes)
    lines.append(f"status           {what or 'all steps went well'}")
    if causes:
        first = traj.first_failure
        lines.append(f"first            step {int(first.step)}, t = {float(first.time):.9g} s")
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
    deepest, units = _deepest(traj), gap_units(traj.system)
    lines = ["", *contact_table(traj), ""]
    for unit in dict.fromkeys(units):
        worst = int(np.argmax(np.where(np.array(units) == unit, deepest, -1.0)))
        where = f" ({contact_names(traj.system)[worst]})" if deepest[worst] > 0 else ""
        lines.append(f"penetration      {with_unit(deepest[worst], unit)} at most{where}")
    if traj.residual is not None:
        largest = np.max(np.asarray(traj.residual))
        lines.append(f"residual         {largest:.1e} at most (relative, contact problems)")
    return lines


def _deepest(traj: Any) -> np.ndarray:
    """Largest penetration of each contact (nc,) [m, or rad], 0 if it is rounding of the coordinates."""
    depth = -np.min(np.asarray(traj.gap_min), axis=0)
    return np.where(depth > ROUNDING * np.max(np.abs(traj.q), initial=0.0), depth, 0.0)


def contact_table(traj: Any) -> list[str]:
    """Table of impacts, contact time and penetration of every contact, or of those with most impacts."""
    impacts = np.sum(np.asarray(traj.impacts), axis=0)
    closed = np.sum(np.asarray(traj.closed_time), axis=0)
    deepest = _deepest(traj)
    names, units = contact_names(traj.system), gap_units(traj.system)
    shown = np.sort(np.lexsort((-deepest, -closed, -impacts))[:LISTED])
    width = max(16, *(len(names[k]) for k in shown))
    lines = [f"{'contact':<{width}} {'impacts':>8} {'contact time':>14} {'penetration':>14}"]
    for k in shown:
        lines.append(
            f"{names[k]:<{width}} {impacts[k]:>8} {with_unit(closed[k], 's'):>14} "
            f"{with_unit(deepest[k], units[k]):>14}"
        )
    if len(shown) < len(names):
        lines.append(f"({len(names) - len(shown)} more contacts, with fewer impacts)")
    return lines


def energy_line(traj: Any) -> str:
    """Line on the energy at the start and the end of the run."""
    energy = np.asarray(traj["energy"])
    start, end = float(energy[0]), float(energy[-1])
    name = "energy" if traj.system.potential is not None else "kinetic energy"
    part = f" ({100 * (end - start) / abs(start):+.3g} %)" if start else ""
    ends = f"{with_unit(start, 'J')} at the start, {with_unit(end, 'J')} at the end"
    return f"{name:<16} {ends}, difference {with_unit(end - start, 'J')}{part}"
