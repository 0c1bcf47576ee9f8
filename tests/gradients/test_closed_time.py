"""Derivatives of the time for which a contact is closed: from its landing to its release."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import State, System, models, schemes
from tests.design import each_family
from tests.points import bouncing, position, unit_mass
from tests.references.bar import Bar

COUNTS = (159, 639, 2499)


def push(t, q, v, p):
    """Towards the wall, less and less, then away; the second part grows with the distance."""
    return (p["slope"] * t - p["push"])[None] + p["away"] * q


SYSTEM = System(nq=1, nv=1, nc=1, mass=unit_mass, force=push, gap=position, law=bouncing)


def closed(scheme, steps: int, time, height, rows: int = 1, **numbers):
    """Closed time of a mass from rest; ``rows`` cut it into parts."""
    p = {"push": 0.0, "slope": 0.0, "away": 0.0, "restitution": 0.0} | numbers
    state = State(t=0.0, q=jnp.reshape(height, 1), v=jnp.reshape(p.pop("speed", 0.0), 1))
    traj = nsjax.simulate(SYSTEM, p, state, scheme, dt=time / steps, steps=steps, every=steps // rows)
    return jnp.sum(traj.closed_time)


def trend(run, exact, x, counts=COUNTS) -> list[float]:
    """Largest errors of derivatives times numbers of steps: ``run(x, steps)`` against ``exact(x)``."""
    wanted = np.asarray(jax.jacfwd(exact)(jnp.asarray(x)))
    found = [np.asarray(jax.jit(jax.jacfwd(lambda x, n=n: run(x, n)))(jnp.asarray(x))) for n in counts]
    return [n * np.max(np.abs(y - wanted)) for n, y in zip(counts, found, strict=True)]


@each_family("name")
def test_from_a_landing_to_a_release(name: str) -> None:
    """A mass lands without rebound and is let go when the force on it changes its sign, at ``a / b``."""
    scheme = schemes.REGISTRY[name].factory()

    def exact(x):
        a, b, h, _ = x
        height, rate = (lambda t: h - a * t**2 / 2 + b * t**3 / 6), (lambda t: -a * t + b * t**2 / 2)
        t = 0.4
        for _ in range(20):
            t = jax.lax.stop_gradient(t - height(t) / rate(t))
        return a / b - (t - height(t) / jax.lax.stop_gradient(rate(t)))

    def run(x, n):
        return closed(scheme, n, x[3], x[2], rows=3, push=x[0], slope=x[1])

    # measured 0.8 to 1.7 in all schemes: the places of both ends in their steps
    found = trend(run, exact, [4.0, 5.0, 0.3, 1.2])
    assert np.max(found) < 3.0, found


@each_family("name")
def test_from_the_end_of_bounces_on(name: str) -> None:
    """A ball lies at the wall from ``sqrt(2 h / g) (1 + e) / (1 - e)`` to the end."""
    scheme = schemes.REGISTRY[name].factory()

    def exact(x):
        g, h, e, time = x
        return time - jnp.sqrt(2.0 * h / g) * (1.0 + e) / (1.0 - e)

    def run(x, n):
        return closed(scheme, n, x[3], x[1], rows=3, push=x[0], restitution=x[2])

    x = [9.81, 0.2, 0.4, 1.0]
    found, size = trend(run, exact, x), np.max(np.abs(jax.jacfwd(exact)(jnp.asarray(x))))
    # time of the last bounce with a flight above eight steps: margin four, known to a quarter of itself;
    # measured 0.01 (Moreau) to 0.22 (ggl_decoupled) at the finest
    assert np.all(np.array(found[1:]) / COUNTS[1:] < 0.25 * size), found


@each_family("name")
def test_what_leaves_at_once_is_not_closed(name: str) -> None:
    """Neither after a rebound, nor after an impact without one where the wall repels."""
    scheme = schemes.REGISTRY[name].factory()

    def rebound(x, n):
        return closed(scheme, n, x[3], x[1], push=x[0], restitution=x[2])

    def repelled(x, n):
        return closed(scheme, n, x[3], x[1], push=-x[0], away=x[2], speed=-3.0)

    for run, x in ((rebound, [9.81, 0.2, 0.8, 0.5]), (repelled, [4.5, 0.4, 9.0, 0.5])):
        # a step or two that are counted, and depend on the step size
        found = trend(run, lambda x: 0.0 * x[0], x)
        assert np.max(found) < 3.0, found


NUMBERS = np.array([900.0, 1.0, 5.005, 0.4])  # Young's modulus, density, distance, restitution


def bar_closed(x) -> float:
    """Of a bar resolved at its events: from the last of a sequence of bounces to the release."""
    bar = Bar(*x, elements=4)
    bar.momentum(1.5)
    last, total = 0.0, 0.0
    for kind, t in bar.events:
        total, last = (total, t) if kind == "impact" else (total + t - last, last)
    return total


@each_family("name")
def test_of_an_elastic_bar(name: str) -> None:
    """It strikes, bounces, rests while a wave runs through it, and leaves."""
    scheme = schemes.REGISTRY[name].factory()
    steps = 1e-5 * NUMBERS
    wanted = np.array([(bar_closed(NUMBERS + h) - bar_closed(NUMBERS - h)) / 2e-5 for h in np.diag(steps)])

    def run(x, n):
        problem = models.elastic_bar(elements=4, young=x[0], density=x[1], distance=x[2], restitution=x[3])
        traj = nsjax.simulate(*problem, scheme, dt=1.5 / n, steps=n, every=n, save=["closed_time"])
        return jnp.sum(traj.closed_time)

    found = []
    for n in (3 * 997, 3 * 2011, 3 * 4013):
        one = jax.jit(jax.jacfwd(lambda x, n=n: run(x, n)))(jnp.asarray(NUMBERS)) * NUMBERS
        found.append(n * np.max(np.abs(one - wanted)))
    # measured 40 to 100, most of it in the restitution, by which the last bounces are told
    assert np.max(found) < 150.0, found
