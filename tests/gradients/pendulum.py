"""A double pendulum that hits a rough wall, and its event-driven sensitivities.

The reference integrates the flights with DOP853 between located impacts, solves every impact by cases,
and takes central differences of the end: no code and no formula of the package is used.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from nsjax import State, System
from nsjax.contact import ContactLaw
from nsjax.types import Array, record

NAMES = ("a", "b", "omega_a", "omega_b", "restitution", "friction", "gravity", "wall", "length", "bob")


@record()
class Params:
    """Point masses 1 and ``bob`` [kg] at lengths 1 and ``length`` [m]; angles from the vertical."""

    restitution: Array | float
    friction: Array | float
    gravity: Array | float
    wall: Array | float
    length: Array | float
    bob: Array | float


def mass(q, p):
    """Mass matrix for absolute angles."""
    off = p.bob * p.length * jnp.cos(q[0] - q[1])
    return jnp.stack([1.0 + p.bob, off, off, p.bob * p.length**2]).reshape(2, 2)


def force(t, q, v, p):
    """Centrifugal terms and weight."""
    s = p.bob * p.length * jnp.sin(q[0] - q[1])
    weight = p.gravity * jnp.stack([(1.0 + p.bob) * jnp.sin(q[0]), p.bob * p.length * jnp.sin(q[1])])
    return jnp.stack([-s * v[1] ** 2, s * v[0] ** 2]) - weight


def gap(t, q, p):
    """Distance of the lower bob from the wall."""
    return (p.wall - jnp.sin(q[0]) - p.length * jnp.sin(q[1]))[None]


def slip(t, q, v, p):
    """Its velocity along the wall."""
    return (jnp.sin(q[0]) * v[0] + p.length * jnp.sin(q[1]) * v[1])[None, None]


def law(p):
    """Newton and Coulomb."""
    return ContactLaw(restitution=p.restitution, friction=p.friction)


SYSTEM = System(nq=2, nv=2, nc=1, nt=1, mass=mass, force=force, gap=gap, slip=slip, law=law)


def build(p: Array) -> tuple[Params, State]:
    """Parameters and start out of a vector in the order of `NAMES`."""
    numbers = dict(zip(NAMES[4:], p[4:], strict=True))
    return Params(**numbers), State(t=0.0, q=p[:2], v=p[2:4])


@dataclasses.dataclass(frozen=True)
class Case:
    """A motion: parameters in the order of `NAMES`, end, kinds of the impacts, expected order."""

    name: str
    values: tuple[float, ...]
    time: float
    events: tuple[str, ...]
    order: float


_START = (-0.9, -0.7, 0.0, 0.0)
SLIP = Case("pendulum, slip impact", (*_START, 0.8, 0.2, 9.81, 0.3, 0.8, 0.6), 0.73, ("slip",), 0.9)
STICK = Case("pendulum, stick impact", (*_START, 0.8, 0.7, 9.81, 0.3, 0.8, 0.6), 0.73, ("stick",), 0.7)


def _accelerations(x, p):
    g, _, l2, m2 = p[2:]
    c, s = math.cos(x[0] - x[1]), math.sin(x[0] - x[1])
    m11, m12, m22 = 1.0 + m2, m2 * l2 * c, m2 * l2 * l2
    h1 = -m2 * l2 * s * x[3] ** 2 - (1.0 + m2) * g * math.sin(x[0])
    h2 = m2 * l2 * s * x[2] ** 2 - m2 * l2 * g * math.sin(x[1])
    det = m11 * m22 - m12 * m12
    return (m22 * h1 - m12 * h2) / det, (m11 * h2 - m12 * h1) / det


def _struck(x, p):
    """State after the impact, and its kind."""
    e, mu, _, _, l2, m2 = p
    m12 = m2 * l2 * math.cos(x[0] - x[1])
    m = np.array([[1.0 + m2, m12], [m12, m2 * l2 * l2]])
    n = -np.array([math.cos(x[0]), l2 * math.cos(x[1])])
    t = np.array([math.sin(x[0]), l2 * math.sin(x[1])])
    w = np.column_stack([n, t])
    g2, u, v = w.T @ np.linalg.solve(m, w), w.T @ x[2:], np.array(x[2:])
    answers = []
    stick = np.linalg.solve(g2, [-(1 + e) * u[0], -u[1]])
    if abs(stick[1]) <= mu * stick[0]:
        answers.append(("stick", stick))
    for sign in (1.0, -1.0):
        pn = -(1 + e) * u[0] / (g2[0, 0] - mu * sign * g2[0, 1])
        impulse = np.array([pn, -mu * sign * pn])
        if pn > 0 and sign * (u[1] + g2[1] @ impulse) > 0:
            answers.append(("slip", impulse))
    assert len(answers) == 1
    kind, impulse = answers[0]
    return np.concatenate([x[:2], v + np.linalg.solve(m, w @ impulse)]), kind


def end_state(values, time: float) -> tuple[np.ndarray, tuple[str, ...]]:
    """State at ``time`` and the kinds of the impacts."""
    return motion(values, time)[:2]


def motion(values, time: float) -> tuple[np.ndarray, tuple[str, ...], list[float]]:
    """State at ``time``, kinds and times of the impacts."""
    p, x, t = values[4:], np.array(values[:4]), 0.0

    def rate(t, x):
        return [x[2], x[3], *_accelerations(x, p)]

    def distance(t, x):
        return p[3] - math.sin(x[0]) - p[4] * math.sin(x[1])

    distance.terminal, distance.direction = True, -1
    kinds: list[str] = []
    times: list[float] = []
    while True:
        # steps so short that the event of the dense output (order 7) is exact to rounding
        run = solve_ivp(
            rate, (t, time), x, method="DOP853", rtol=1e-13, atol=1e-14, max_step=4e-3, events=distance
        )
        t, x = run.t[-1], run.y[:, -1]
        if run.status == 0:
            return x, tuple(kinds), times
        x, kind = _struck(x, p)
        kinds.append(kind)
        times.append(float(t))


@functools.cache
def reference(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Final state and its Jacobian by central differences of two widths, which must agree."""
    x, kinds = end_state(case.values, case.time)
    assert kinds == case.events, f"{case.name}: {kinds}"
    found = []
    for width in (1e-4, 2e-5):
        columns = []
        for k in range(len(NAMES)):
            d = np.zeros(len(NAMES))
            d[k] = width
            high, low = (end_state(tuple(case.values + s * d), case.time)[0] for s in (1, -1))
            columns.append((high - low) / (2 * width))
        found.append(np.array(columns).T)
    # errors of second order: 1e-8 and 4e-10 times third derivatives
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-5)
    return x, found[1]
