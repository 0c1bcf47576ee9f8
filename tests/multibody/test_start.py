"""Positions and velocities that close loops, the nearest ones, and their derivatives by numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import nsjax
from nsjax import InputError
from nsjax.core.operators import prepared, refreshed
from nsjax.multibody import assemble, ball, body, contact, coupling, hinge, hole, slide, sphere
from tests.design import slow_but

# Positions and velocities that close loops, and their derivatives by the numbers of the parts.
GROUND, CRANK, ROCKER = 0.4, 0.1, 0.3


def four_bar(coupler, angle, rate=5.0):
    """Angles and rates of crank, coupler and rocker."""
    problem = assemble(
        body("crank", mass=0.1, inertia=1e-3), body("coupler", mass=0.4, inertia=5e-3),
        body("rocker", mass=0.3, inertia=2e-3), hinge("o", "ground", "crank"),
        hinge("a", "crank", "coupler", at=CRANK), hinge("c", "ground", "rocker", at=GROUND),
        hinge("b", "coupler", "rocker", at=coupler, on=ROCKER), start={"crank": (angle, rate)},
        guess={"rocker": 1.5, "coupler": 0.5},
    )  # fmt: skip
    return jnp.concatenate([jnp.asarray(problem.state.q), jnp.asarray(problem.state.v)])


def closed_form(coupler, angle, rate=5.0):
    """By the triangle of pin, rocker's bearing and eye (law of cosines)."""
    pin = CRANK * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
    apart = jnp.stack([GROUND, 0.0]) - pin
    d = jnp.sqrt(jnp.sum(apart**2))
    inner = jnp.arccos((coupler**2 + d**2 - ROCKER**2) / (2 * coupler * d))
    phi = jnp.arctan2(apart[1], apart[0]) + inner
    eye = pin + coupler * jnp.stack([jnp.cos(phi), jnp.sin(phi)])
    psi = jnp.arctan2(eye[1], eye[0] - GROUND)
    return jnp.stack([angle, phi, psi])


def exact(coupler, angle):
    place, rates = jax.jvp(lambda a: closed_form(coupler, a), (angle,), (5.0,))
    return jnp.concatenate([place, rates])


@pytest.mark.slow
def test_a_loop_closes() -> None:
    np.testing.assert_allclose(four_bar(0.4, 0.3), exact(0.4, 0.3), rtol=0, atol=1e-11)


@pytest.mark.slow
def test_derivatives_of_a_closed_loop() -> None:
    """By a length and by the given angle, forward and reverse, against the law of cosines."""
    wanted = jax.jacfwd(exact, argnums=(0, 1))(0.4, 0.3)
    for transform in (jax.jacfwd, jax.jacrev):
        for found, there in zip(transform(four_bar, argnums=(0, 1))(0.4, 0.3), wanted, strict=True):
            np.testing.assert_allclose(found, there, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_a_start_in_absolute_coordinates_has_derivatives() -> None:
    """A body at ``(0, c)``, turned by an angle, with its mass centre at ``c`` along its axis."""
    angle = 0.3

    def begin(c):
        problem = assemble(
            body("a", mass=1.0, inertia=0.1, com=(c, 0.0)), gravity=(0.0, -9.81), coordinates="absolute",
            start={"a": ((0.0, c, angle), (0.0, 0.0, 1.0))},
        )  # fmt: skip
        return jnp.concatenate([problem.state.q, problem.state.v])

    s, c = np.sin(angle), np.cos(angle)
    wanted = [c, 1.0 + s, 0.0, -s, c, 0.0]
    for slope in (jax.jacfwd(begin), jax.jit(jax.jacrev(begin))):
        np.testing.assert_allclose(slope(0.1), wanted, atol=1e-15)  # rounding
    np.testing.assert_allclose(
        begin(0.1), [0.1 * c, 0.1 + 0.1 * s, angle, -0.1 * s, 0.1 * c, 1], atol=1e-16
    )


@pytest.mark.parametrize(("dimension", "coordinates"), [(2, "absolute"), (3, "joint")])
def test_plain_numbers_inside_jit(coordinates: str, dimension: int) -> None:
    """Nothing is traced of the parts, yet there are no values: checks that need some are left out."""

    space = dimension == 3
    inertia, axis = ((0.1, 0.2, 0.15), (0.0, 1.0, 0.0)) if space else (0.1, None)
    at = (1.0, 0.0, 0.0, 0.1, 0.2, 0.3) if space else (1.0, 0.0, 0.1)

    def start():
        problem = assemble(
            body("arm", mass=1.0, inertia=inertia, com=(0.5, 0.0, 0.0)[:dimension]),
            hinge("pin", "ground", "arm", axis=axis), body("stone", mass=1.0, inertia=inertia),
            coordinates=coordinates, start={"arm": (0.3, 2.0), "stone": at},
            gravity=(0.0, 0.0, -9.81) if space else 9.81,
        )  # fmt: skip
        return jnp.concatenate([jnp.asarray(problem.state.q), jnp.asarray(problem.state.v)])

    np.testing.assert_allclose(jax.jit(start)(), start(), rtol=0, atol=1e-14)


def test_searches_are_refused_inside_jit() -> None:
    def pendulum(**given):
        parts = body("arm", mass=1.0, inertia=0.1, com=0.5), hinge("pin", "ground", "arm")
        return jnp.asarray(assemble(*parts, gravity=9.81, **given).state.q)

    with pytest.raises(InputError, match=r"inside jax\.jit"):
        jax.jit(lambda: pendulum(near={"arm": 0.3}))()
    with pytest.raises(InputError, match=r"outside of jax\.jit"):
        jax.jit(lambda: pendulum(start="equilibrium"))()


# `assemble(near=)`: nearest positions and velocities that loops, couplings and limits allow.
BOTH = ("joint", "absolute")


def linkage(*more: Any, **given: Any) -> Any:
    return assemble(
        body("crank", mass=1.0, inertia=0.02, com=0.15), hinge("A", "ground", "crank"),
        body("coupler", mass=1.5, inertia=0.05, com=0.3), hinge("B", "crank", "coupler", at=0.3),
        body("rocker", mass=1.0, inertia=0.05, com=0.25), hinge("D", "ground", "rocker", at=0.7),
        hinge("C", "coupler", "rocker", at=0.6, on=0.5, loop=True), *more, gravity=9.81, **given,
    )  # fmt: skip


@pytest.mark.slow
def test_the_nearest_position_of_a_loop() -> None:
    """Against a search by scipy over all angles."""
    wanted, rates = np.array([0.9, 0.3, 1.9]), np.array([1.0, -0.5, 0.8])
    near = dict(zip(("crank", "coupler", "rocker"), zip(wanted, rates, strict=True), strict=True))
    problem = linkage(near=near)

    def open_by(x: np.ndarray) -> np.ndarray:
        ends = [(r * np.cos(a), r * np.sin(a)) for r, a in zip((0.3, 0.6, -0.5), x, strict=True)]
        return np.sum(ends, axis=0) - (0.7, 0.0)

    def rows(x: np.ndarray) -> np.ndarray:
        ends = [(-r * np.sin(a), r * np.cos(a)) for r, a in zip((0.3, 0.6, -0.5), x, strict=True)]
        return np.array(ends).T

    found = minimize(
        lambda x: np.sum((x - wanted) ** 2), wanted, method="SLSQP", tol=1e-14,
        constraints={"type": "eq", "fun": open_by, "jac": rows},
    )  # fmt: skip
    angles = np.asarray(problem.state.q)
    np.testing.assert_allclose(open_by(angles), 0.0, atol=1e-11)
    np.testing.assert_allclose(angles, found.x, atol=1e-6)  # of the search
    J = rows(angles)
    np.testing.assert_allclose(problem.state.v, rates - np.linalg.pinv(J) @ (J @ rates), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", BOTH)
def test_couplings_and_limits(coordinates: str) -> None:
    """``x = 2 y`` with x at most 0.5: from (1, 0.1) the limit acts, from (0.4, 0.1) it does not."""
    parts = [
        body("a", mass=1.0, inertia=0.1), slide("A", "ground", "a", limits=(-0.5, 0.5)),
        body("b", mass=1.0, inertia=0.1), slide("B", "ground", "b"),
        coupling("law", "A", "B", polynomial=(0.0, 2.0)),
    ]  # fmt: skip
    for near, x, rates in (((1.0, 0.1), 0.5, (1.0, 0.0)), ((0.4, 0.1), 0.36, (0.2, 0.4))):
        start = {name: (y, v) for name, y, v in zip("ab", near, rates, strict=True)}
        problem = assemble(*parts, coordinates=coordinates, near=start)
        mechanism, state, params = problem.system.parts, problem.state, problem.params
        scene = mechanism.scene(jnp.zeros(()), *map(jnp.asarray, (state.q, state.v)), params)
        found, speeds = zip(*(scene.coordinates(name) for name in "AB"), strict=True)
        np.testing.assert_allclose(np.ravel(found), (x, x / 2.0), atol=1e-10)
        speed = (2.0 * rates[0] + rates[1]) / 5.0
        np.testing.assert_allclose(np.ravel(speeds), (2.0 * speed, speed), atol=1e-10)


# Bearings with clearance: the ideal linkage, closed at a given eccentricity of the journal.


def loose(lengths: Any, off: Any, coordinates: str = "joint", angle: Any = 0.3) -> nsjax.Problem:
    """A four-bar whose rocker has a journal in a hole of the coupler."""
    ground, crank, coupler, rocker = lengths
    return assemble(
        body("crank", mass=0.1, inertia=1e-3, com=(0.02, 0.01)),
        body("coupler", mass=0.4, inertia=5e-3, com=0.15), body("rocker", mass=0.3, inertia=2e-3),
        hinge("o", "ground", "crank"), hinge("a", "crank", "coupler", at=crank),
        hinge("c", "ground", "rocker", at=ground),
        contact("b", sphere("rocker", 0.009, at=rocker), hole("coupler", 0.01, at=coupler)),
        start={"crank": (angle, 5.0), "b": off}, guess={"rocker": 1.5, "coupler": 0.5}, gravity=9.81,
        coordinates=coordinates,
    )  # fmt: skip


def of_loose(lengths: Any, off: Any, angle: Any) -> jax.Array:
    """Angles by the law of cosines, for a coupler that ends at the centre of the journal."""
    ground, crank, coupler, rocker = lengths
    reach, aside = jnp.hypot(coupler + off[0], off[1]), jnp.arctan2(off[1], coupler + off[0])
    apart = jnp.stack([ground - crank * jnp.cos(angle), -crank * jnp.sin(angle)])
    d = jnp.sqrt(jnp.sum(apart**2))
    inner = jnp.arccos((reach**2 + d**2 - rocker**2) / (2 * reach * d))
    phi = jnp.arctan2(apart[1], apart[0]) + inner
    eye = reach * jnp.stack([jnp.cos(phi), jnp.sin(phi)]) - apart
    return jnp.stack([angle, phi - aside, jnp.arctan2(eye[1], eye[0])])


def drawn(k: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Lengths, eccentricity (of the first draw: none, of the last: on the wall) and angle of the crank."""
    seeded = np.random.default_rng(k)
    lengths = np.array([0.4, 0.1, 0.4, 0.3]) * seeded.uniform(0.9, 1.1, 4)
    size, way = (0.0, seeded.uniform(), 1.0)[min(k, 2)], seeded.uniform(-np.pi, np.pi)
    return lengths, 1e-3 * size * np.array([np.cos(way), np.sin(way)]), seeded.uniform(-0.5, 0.5)


@pytest.mark.parametrize("coordinates", slow_but(BOTH, "joint"))
def test_a_linkage_with_clearance_starts_as_the_ideal_one(coordinates: str) -> None:
    """Angles and rates by the law of cosines; the gap is the clearance less the eccentricity. Numbers that
    change afterwards close the linkage anew.
    """
    for k in range(3):
        lengths, off, angle = drawn(k)
        problem = loose(lengths, off, coordinates, angle)
        for given in (lengths, lengths + np.array([0.0, 0.0, 0.02, 0.0])):
            problem = problem.replace({"b.second.at": given[2]})
            wanted, rates = jax.jvp(lambda a: of_loose(given, off, a), (angle,), (5.0,))  # noqa: B023
            t, q, v = jnp.zeros(()), jnp.asarray(problem.state.q), jnp.asarray(problem.state.v)
            p = refreshed(problem.system, t, q, prepared(problem.system, problem.params))
            scene = problem.system.parts.scene(t, q, v, p)
            found = [[f(x) for x in ("crank", "coupler", "rocker")] for f in (scene.rotation, scene.spin)]
            np.testing.assert_allclose(found, [wanted, rates], atol=2e-11)
            gap = float(problem.system.gap(t, q, p)[0])
            np.testing.assert_allclose(gap, 1e-3 - np.linalg.norm(off), atol=1e-11)


@pytest.mark.slow
def test_derivatives_of_a_start_with_clearance() -> None:
    """By all lengths, the eccentricity and the angle, forward and reverse, and by a number afterwards."""
    given = drawn(1)
    wanted = jax.jacfwd(of_loose, argnums=(0, 1, 2))(*map(jnp.asarray, given))

    def angles(lengths: Any, off: Any, angle: Any) -> Any:
        return loose(lengths, off, "joint", angle).state.q

    for transform in (jax.jacfwd, jax.jacrev):
        found = transform(angles, argnums=(0, 1, 2))(*map(jnp.asarray, given))
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-9)
    problem = loose(*given[:2], "joint", given[2])
    found = jax.grad(lambda x: problem.replace({"b.second.at": x}).state.q[2])(given[0][2])
    np.testing.assert_allclose(found, wanted[0][2, 2], atol=1e-9)


def test_a_socket_with_clearance() -> None:
    """A spatial slider-crank: the rod's end is in a socket of the slider, with the eccentricity e:
    ``|A - (s, 0, 0) - e| = l``.
    """
    crank, rod, angle, off = 0.1, 0.3, 0.7, np.array([1e-4, -2e-4, 3e-4])
    small, x = (1e-3, 1e-3, 1e-3), (1.0, 0.0, 0.0)
    problem = assemble(
        body("crank", mass=0.1, inertia=small), hinge("o", "ground", "crank", axis=(0.0, 0.0, 1.0)),
        body("rod", mass=0.1, inertia=small), ball("a", "crank", "rod", at=crank),
        body("piston", mass=0.1, inertia=small), slide("s", "ground", "piston", axis=x),
        contact("b", sphere("rod", 0.009, at=rod), hole("piston", 0.01)), gravity=(0.0, 0.0, -9.81),
        start={"crank": angle, "b": off}, guess={"piston": 0.4},
    )  # fmt: skip
    tip = crank * np.array([np.cos(angle), np.sin(angle), 0.0]) - off
    place = tip[0] + np.sqrt(rod**2 - tip[1] ** 2 - tip[2] ** 2)
    np.testing.assert_allclose(problem.state.q[-1], place, atol=1e-11)
