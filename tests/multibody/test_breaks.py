"""Joints that break at a force beside contacts, in one run, beside closed forms and event-driven runs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import Problem, schemes
from nsjax import multibody as mb
from nsjax.types import Array
from tests.design import in_turn
from tests.slopes import with_slopes

SLOW = pytest.mark.slow
G = 9.81
FIRST, SECOND = 2.0, 1.0
"""Masses [kg] of both cars."""


def pull(t: Any, scene: Any, own: Any) -> Any:
    return jnp.stack([own["rate"] * t, 0.0 * t])


def cars(rate: Any = 40.0, limit: Any = 6.0, friction: Any = 0.3, coordinates: str = "joint") -> Problem:
    """Two cars that slide on a rough floor, tied by a bolt; the first is pulled harder and harder."""
    floor = [mb.contact(f"{x}_floor", mb.point(x), mb.plane(), friction=friction) for x in ("one", "two")]
    return mb.assemble(
        mb.body("one", mass=FIRST, inertia=0.01), mb.body("two", mass=SECOND, inertia=0.005),
        mb.hinge("bolt", "one", "two", on=0.4, active=True), *floor,
        mb.force("pull", "one", law=pull, own={"rate": rate, "limit": limit}),
        gravity=G, coordinates=coordinates, start={"two": (-0.4, 0.0, 0.0)},
    )  # fmt: skip


def breaking(problem: Problem, bolt: str = "bolt") -> Any:
    force = mb.reaction(problem, bolt)

    def left(t: Any, q: Any, v: Any, p: Any) -> Array:
        push = force(t, q, v, p)
        return p["pull"].own["limit"] ** 2 - jnp.sum(push**2)

    return left


BREAKS = {x: breaking(cars(coordinates=x)) for x in ("joint", "absolute")}
"""Of both kinds of coordinates: the margin of the bolt."""

TIME = 0.7


def places(x: Array) -> Array:
    """Instant of the break, places and rates after `TIME`: they stick, slide together, and apart."""
    rate, limit, mu = x
    both = FIRST + SECOND
    begins, breaks = mu * G * both / rate, limit * both / (SECOND * rate)
    t = breaks - begins
    v, s = rate * t**2 / (2.0 * both), rate * t**3 / (6.0 * both)
    left = TIME - breaks
    push = rate * breaks / FIRST - mu * G
    one = s + v * left + push * left**2 / 2.0 + rate * left**3 / (6.0 * FIRST)
    fast = v + push * left + rate * left**2 / (2.0 * FIRST)
    stops = jnp.minimum(left, v / (mu * G))
    return jnp.stack([
        breaks, one, fast, s + v * stops - mu * G * stops**2 / 2.0 - 0.4, v - mu * G * stops
    ])  # fmt: skip


def run(x: Array, scheme: Any, coordinates: str = "joint", steps: int = 70) -> Array:
    """Places and rates after `TIME`, of one run in which the bolt breaks."""
    change = [(BREAKS[coordinates], {"bolt.active": False})]
    traj = nsjax.simulate(
        *cars(*x, coordinates), scheme, dt=TIME / steps, steps=steps, every=steps, resets=change
    )
    one, two = (jnp.stack([traj[f"{k}.x"][-1], traj[f"{k}.vx"][-1]]) for k in ("one", "two"))
    return jnp.concatenate([one, two])


X = jnp.array([40.0, 6.0, 0.3])


SCHEMES = ("moreau", "moreau_theta", "ggl_unified", "half_explicit", "generalized_alpha", "bathe")


def test_a_bolt_on_the_ground_breaks() -> None:
    """At the limit over the rate of the pull."""
    own = {"rate": X[0], "limit": X[1]}
    tied = mb.assemble(
        mb.body("one", mass=FIRST, inertia=0.01), mb.hinge("bolt", "ground", "one", active=True),
        mb.force("pull", "one", law=pull, own=own),
    )  # fmt: skip
    run = nsjax.simulate(*tied, schemes.moreau(), dt=0.01, steps=20, every=20, stop=breaking(tied))
    assert bool(run.stopped)
    np.testing.assert_allclose(run.t[-1], X[1] / X[0], atol=1e-9)


@SLOW
@pytest.mark.parametrize(
    ("name", "coordinates"),
    [("moreau", "joint"), ("moreau_theta", "absolute"), ("half_explicit", "absolute")],
)
def test_a_bolt_between_sliding_cars_breaks(name: str, coordinates: str) -> None:
    scheme, guard = getattr(schemes, name)(), BREAKS[coordinates]
    stopped = nsjax.simulate(*cars(*X, coordinates), scheme, dt=0.01, steps=70, every=70, stop=guard)
    np.testing.assert_allclose(stopped.t[-1], places(X)[0], atol=1e-9)


@SLOW
@pytest.mark.parametrize(("name", "coordinates"), in_turn(SCHEMES, ("joint", "absolute")))
def test_cars_after_it(name: str, coordinates: str) -> None:
    found = run(X, getattr(schemes, name)(), coordinates)
    np.testing.assert_allclose(found, places(X)[1:], atol=1e-3)


@SLOW
@pytest.mark.parametrize("name", ["moreau", "half_explicit"])
def test_its_derivatives(name: str) -> None:
    """Sliding begins within a step: derivatives by the friction are of first order in the step, 0.042 off
    by half-explicit steps of 0.01 s, 0.005 in steps of a quarter of that. Generalized-alpha is 0.26 and
    0.13 off in steps of 0.01 and 0.005 s, and compiles for minutes.
    """
    made = getattr(schemes, name)()
    # reverse compiles as long as the rest
    for transform in (jax.jacfwd, jax.jacrev) if name == "moreau" else (jax.jacfwd,):
        slopes = jax.jit(transform(lambda x: run(x, made, steps=560)))(X)
        np.testing.assert_allclose(slopes, jax.jacfwd(places)(X)[1:], atol=0.02)


ROD, BLOCK, LENGTH, MU = 1.5, 0.8, 1.0, 0.2
START, LIMIT = 1.1, 10.0
"""The pin holds at rest, with 9.4 N, and in the step without contact force that may follow."""


def ladder(limit: Any = LIMIT, friction: Any = MU) -> Problem:
    """A rod whose tip slides on a rough floor, pinned to a block that falls along a wall."""
    return mb.assemble(
        mb.body("block", mass=BLOCK), mb.slide("wall", "ground", "block", axis=(0.0, 1.0)),
        mb.body("rod", mass=ROD, inertia=ROD * LENGTH**2 / 12.0, com=(0.5 * LENGTH, 0.0)),
        mb.hinge("pin", "block", "rod"),
        mb.contact("tip", mb.point("rod", at=(LENGTH, 0.0)), mb.plane(), friction=friction),
        mb.force("pull", "block", law=none, own={"limit": limit}),
        gravity=G, start={"wall": LENGTH * np.sin(START), "pin": -START},
    )  # fmt: skip


def none(t: Any, scene: Any, own: Any) -> Any:
    return jnp.zeros(2)


def balance(angle: float, rate: float, mu: float) -> np.ndarray:
    """Angular acceleration, normal force and both forces of the pin, of the rod at an angle with the floor
    whose tip slides outwards: Newton and Euler for rod and block.
    """
    c, s = np.cos(angle), np.sin(angle)
    # centre of the rod: x = L/2 cos, y = L/2 sin; pin: y = L sin; unknown: a, N, X, Y on the rod at the pin
    h = 0.5 * LENGTH
    matrix = np.array([
        [ROD * h * -s, mu, -1.0, 0.0],
        [ROD * h * c, -1.0, 0.0, -1.0],
        [ROD * LENGTH**2 / 12.0, h * c - mu * h * s, -h * s, -h * c],
        [BLOCK * LENGTH * c, 0.0, 0.0, 1.0],
    ])  # fmt: skip
    right = np.array([
        ROD * h * c * rate**2, ROD * (h * s * rate**2 - G), 0.0, BLOCK * (LENGTH * s * rate**2 - G),
    ])  # fmt: skip
    found: np.ndarray = np.linalg.solve(matrix, right)
    return found


def instant(limit: float = LIMIT, mu: float = MU) -> float:
    """Time at which the pin's force reaches the limit, event-driven."""

    def rate(t: float, x: np.ndarray) -> list[float]:
        return [x[1], balance(x[0], x[1], mu)[0]]

    def left(t: float, x: np.ndarray) -> float:
        return limit - float(np.linalg.norm(balance(x[0], x[1], mu)[2:]))

    left.terminal, left.direction = True, -1.0  # type: ignore[attr-defined]
    found = solve_ivp(rate, (0.0, 1.0), [START, 0.0], events=left, rtol=1e-11, atol=1e-12)
    assert len(found.t_events[0]) == 1
    assert balance(*found.y_events[0][0], mu)[1] > 0.5
    return float(found.t_events[0][0])


PIN = breaking(ladder(), "pin")


def meets(x: Array, scheme: Any, dt: Any = 1e-3) -> Array:
    return nsjax.simulate(*ladder(*x), scheme, dt=dt, steps=600, every=600, stop=PIN).t[-1]


@SLOW
@pytest.mark.parametrize("name", ["moreau", "ggl_unified", "nsga_decoupled"])
def test_the_pin_of_a_sliding_ladder_breaks(name: str) -> None:
    """Beside an event-driven run, at two steps, by schemes with forces of first order: half a step.

    The tip lifts off for a step now and then and falls back. Within such a step the rate of the force, and
    with it the derivative of the instant, are a tenth off, as their secants are.
    """
    scheme, x = getattr(schemes, name)(), jnp.array([LIMIT, MU])
    for dt in (1e-3, 0.93e-3):
        np.testing.assert_allclose(meets(x, scheme, dt), instant(), atol=0.5 * dt)


@SLOW
@pytest.mark.parametrize("name", ["generalized_alpha", "bathe"])
def test_the_pin_of_a_sliding_ladder_breaks_and_when_it_would_else(name: str) -> None:
    """By schemes of second order: the instant and its derivative, beside event-driven runs."""
    scheme = getattr(schemes, name)()
    x = jnp.array([LIMIT, MU])
    both = with_slopes(lambda x, dt: meets(x, scheme, dt))
    step = 1e-4
    slopes = [
        (instant(LIMIT + step) - instant(LIMIT - step)) / (2 * step),
        (instant(mu=MU + step) - instant(mu=MU - step)) / (2 * step),
    ]
    for dt in (1e-3, 0.93e-3):
        found, derivative = both(x, dt)
        np.testing.assert_allclose(found, instant(), atol=1e-6)
        np.testing.assert_allclose(derivative, slopes, rtol=0.02, atol=1e-4)
