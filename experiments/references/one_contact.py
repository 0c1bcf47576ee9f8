"""Event-driven reference of systems with one contact: motion between located events, impacts by cases.

``q' = v``, ``M(q) v' = h(q, v)``, gap ``g(q)``, Newton's law with one coefficient in the normal direction
and Coulomb's law for one tangential direction without rebound. Flights are integrated by DOP853 at a tight
tolerance. It shares no code with nsjax; the mechanics are handed over as functions of numpy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

RTOL, ATOL = 1e-13, 1e-15

Vector = np.ndarray


@dataclasses.dataclass(frozen=True)
class Mechanics:
    """Mechanics of a system with one contact, as functions of numpy.

    Args:
        mass: ``q -> M`` (n, n).
        force: ``q, v -> h`` (n,).
        gap: ``q -> g`` [m].
        normal, tangent: ``q -> w`` (n,): gap rate and slip are ``w v``; no tangent without friction.
        restitution, friction: coefficients of the contact.
        holds: whether the contact stays closed after an impact without rebound, until its force vanishes.
            With rebound the contact bounces and never closes.
    """

    mass: Callable[[Vector], np.ndarray]
    force: Callable[[Vector, Vector], Vector]
    gap: Callable[[Vector], float]
    normal: Callable[[Vector], Vector]
    tangent: Callable[[Vector], Vector] | None
    restitution: float
    friction: float
    holds: bool


def after_impact(m: Mechanics, q: Vector, v: Vector) -> Vector:
    """Velocity after an impact: the contact sticks if Coulomb's cone allows it, else it slips."""
    mass, n = m.mass(q), m.normal(q)
    by_normal = np.linalg.solve(mass, n)
    if m.tangent is None:
        return v - by_normal * (1.0 + m.restitution) * (n @ v) / (n @ by_normal)
    t = m.tangent(q)
    by_tangent = np.linalg.solve(mass, t)
    matrix = np.array([[n @ by_normal, n @ by_tangent], [t @ by_normal, t @ by_tangent]])
    asked = np.array([-(1.0 + m.restitution) * (n @ v), -(t @ v)])
    normal, tangential = np.linalg.solve(matrix, asked)
    if abs(tangential) > m.friction * normal:
        sign = -np.sign(t @ v)
        normal = asked[0] / (matrix[0, 0] + sign * m.friction * matrix[0, 1])
        tangential = sign * m.friction * normal
    return v + by_normal * normal + by_tangent * tangential


def contact_force(m: Mechanics, q: Vector, v: Vector) -> float:
    """Force that keeps a straight contact without friction closed [N]: ``n`` is constant there."""
    mass, n = m.mass(q), m.normal(q)
    return float(-(n @ np.linalg.solve(mass, m.force(q, v))) / (n @ np.linalg.solve(mass, n)))


def motion(m: Mechanics, q: Vector, v: Vector, times: Vector) -> tuple[Vector, Vector, int]:
    """``q, v`` at increasing times from the start at zero, and the number of impacts.

    Args:
        m: the system.
        q, v: start, with an open contact.
        times: [s]; the first is zero.
    """
    size = len(q)
    x, t, closed, impacts = np.concatenate([q, v]), 0.0, False, 0
    rows = [x]
    for end in times[1:]:
        while t < end:
            t, x, event = _phase(m, t, x, float(end), closed)
            if not event:
                continue
            if closed:
                closed = False
            else:
                x = np.concatenate([x[:size], after_impact(m, x[:size], x[size:])])
                impacts, closed = impacts + 1, m.holds and contact_force(m, x[:size], x[size:]) > 0.0
        rows.append(x)
    found = np.array(rows)
    return found[:, :size], found[:, size:], impacts


def _phase(m: Mechanics, t: float, x: Vector, end: float, closed: bool) -> tuple[float, Vector, bool]:
    """The motion to the next event, or to the end: time, state, whether an event ended it."""
    size = len(x) // 2

    def rate(_: float, x: Vector) -> Vector:
        q, v = x[:size], x[size:]
        force = m.force(q, v) + (m.normal(q) * contact_force(m, q, v) if closed else 0.0)
        return np.concatenate([v, np.linalg.solve(m.mass(q), force)])

    def look(_: float, x: Vector) -> float:
        return contact_force(m, x[:size], x[size:]) if closed else m.gap(x[:size])

    look.terminal, look.direction = True, -1.0  # type: ignore[attr-defined]
    found = solve_ivp(rate, (t, end), x, method="DOP853", rtol=RTOL, atol=ATOL, events=look)
    return float(found.t[-1]), found.y[:, -1], found.status == 1
