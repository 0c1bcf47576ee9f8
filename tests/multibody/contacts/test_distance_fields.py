"""Shapes by signed distances: circles and tori by spacing, triangles by solid angles, balls that roll in a
bowl, land beside a lobe and fall into a cup.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, body, contact, distance_field, read_mjcf, sphere
from nsjax.multibody.contacts.distance_fields import distance_from
from nsjax.multibody.contacts.signed_distances import outline, triangles
from tests.common.kernel import BLOCKERS, is_one_kernel, loop_text
from tests.design import slow_but
from tests.multibody.contacts.hollow_solids import CUP, RING, L

BALL = ((-1.5, -1.5, -1.5), (1.5, 1.5, 1.5))
TORUS = ((-3.4, -3.4, -1.4), (3.4, 3.4, 1.4))


def torus(x: Any) -> Any:
    """Signed distances of points (k, 3) from a torus of radii 2 and 1."""
    xp = jnp if isinstance(x, jax.Array) else np
    return xp.sqrt((xp.sqrt(x[:, 0] ** 2 + x[:, 1] ** 2) - 2.0) ** 2 + x[:, 2] ** 2) - 1.0


def circle(x: Any) -> Any:
    xp = jnp if isinstance(x, jax.Array) else np
    return xp.sqrt(xp.sum(x * x, axis=1)) - 1.0


SMOOTH = {
    "circle": (lambda h: distance_field("a", lambda a: (np.cos(a), np.sin(a)), spacing=h), circle, 2),
    "sphere": (lambda h: distance_field("a", circle, spacing=h, region=BALL), circle, 3),
    "torus": (lambda h: distance_field("a", torus, spacing=h, region=TORUS), torus, 3),
}  # fmt: skip


def errors(shape: Any, exact: Any, points: np.ndarray) -> np.ndarray:
    """Largest errors (3,) of gaps, normals and their rates at points that are near no other surface."""

    def whole(distance: Any) -> Any:
        def normal(y: Any) -> Any:
            return distance(y)[1]

        return jax.jit(jax.vmap(lambda y: (*distance(y), jax.jacfwd(normal)(y))))(points)

    def known(y: Any) -> Any:
        return exact(y[None])[0], jax.grad(lambda z: exact(z[None])[0])(y)

    found, wanted = whole(functools.partial(distance_from, shape.numbers)), whole(known)
    return np.array([np.max(np.abs(x - y)) for x, y in zip(found, wanted, strict=True)])


@pytest.mark.slow
@pytest.mark.parametrize("name", SMOOTH)
def test_orders_of_gaps_normals_and_curvatures(name: str) -> None:
    """Four, three and two, by two spacings, the worst of hundreds of places drawn around the surface."""
    made, exact, d = SMOOTH[name]
    draw = np.random.default_rng(1).uniform(-3.3, 3.3, size=(20_000, d))
    points = draw[np.abs(exact(draw)) < 0.2][:1000]
    coarse, fine = (errors(made(h), exact, points) for h in (0.08, 0.04))
    assert np.all(coarse < (3e-5, 1e-3, 0.06))
    # places of the worst errors in their cells scatter orders
    assert np.all(np.log2(coarse / fine) > (3.5, 2.6, 1.6))


def by_solid_angles(x: np.ndarray, points: np.ndarray, faces: Any) -> float:
    """Signed distance of a point: by projections, and by the solid angles under which it sees triangles."""
    found = np.inf
    for a, b, c in points[faces]:
        rows = np.stack([b - a, c - a], axis=1)
        u = np.linalg.lstsq(rows, x - a, rcond=None)[0]
        if np.all(u >= 0.0) and np.sum(u) <= 1.0:
            found = min(found, float(np.linalg.norm(a + rows @ u - x)))
        for one, other in ((a, b), (b, c), (c, a)):
            way = other - one
            s = np.clip((x - one) @ way / (way @ way), 0.0, 1.0)
            found = min(found, float(np.linalg.norm(x - one - s * way)))
    a, b, c = (points[np.asarray(faces)[:, k]] - x for k in range(3))
    r, s, t = (np.linalg.norm(y, axis=1) for y in (a, b, c))
    below = r * s * t + np.sum(a * b, 1) * t + np.sum(b * c, 1) * r + np.sum(c * a, 1) * s
    turns = np.sum(np.arctan2(np.sum(a * np.cross(b, c), axis=1), below)) / (2.0 * np.pi)
    assert min(abs(turns), abs(turns - 1.0)) < 1e-6
    return -found if turns > 0.5 else found


@pytest.mark.parametrize("name", slow_but(("L", "cup", "ring"), "L", "cup"))
def test_distances_from_triangles(name: str) -> None:
    points, faces = {"L": L, "cup": CUP, "ring": RING}[name]
    low, high = points.min(axis=0) - 0.3, points.max(axis=0) + 0.3
    x = np.random.default_rng(2).uniform(low, high, size=(150, 3))
    found = triangles("a", points, np.asarray(faces)[:, ::-1]).distance(x)  # turned outward
    np.testing.assert_allclose(found, [by_solid_angles(y, points, faces) for y in x], rtol=0, atol=1e-14)
    assert np.sum(found < 0.0) > 10


def test_distances_from_polygons() -> None:
    """Those of a long prism over the same outline, far from its ends."""
    points, faces = CUP
    prism, flat = (
        triangles("a", points * (1.0, 1.0, 20.0), faces),
        outline("a", points[: len(points) // 2, :2]),
    )
    x = np.random.default_rng(3).uniform((-1.0, -1.0), (4.0, 3.0), size=(500, 2))
    deep = np.concatenate([x, np.full((500, 1), 10.0)], axis=1)
    np.testing.assert_allclose(flat.distance(x), prism.distance(deep), rtol=0, atol=1e-13)


@pytest.mark.slow
def test_beyond_the_grid() -> None:
    """Distances continue there, are that of the shape or larger, and grow by one along the normal."""
    shape = distance_field("a", lambda a: (np.cos(a), np.sin(a)), spacing=0.05, margin=0.3).numbers
    x = np.random.default_rng(4).uniform(-3.0, 3.0, size=(2000, 2))
    x[:2] = (1.3 - 1e-9, 0.7), (1.3 + 1e-9, 0.7)
    found, normal = jax.jit(jax.vmap(functools.partial(distance_from, shape)))(x)
    away = circle(x)
    beyond = np.max(np.abs(x), axis=1) > 1.3
    assert np.all((found - away)[beyond] > -1e-6)
    assert np.max((found / away)[beyond]) < 1.2
    assert abs(found[1] - found[0]) < 1e-8
    assert np.max(np.abs(normal[1] - normal[0])) < 1e-8


# Derivatives by the numbers of a field.


@pytest.mark.parametrize("dimension", slow_but([2, 3], 2))
def test_derivatives_by_the_numbers_of_a_field(dimension: int) -> None:
    """Gap of a ball from a circle or sphere whose centre is beside the origin of the turned axes, against
    the closed form; the grid of a tenth of the radius has normals to 2e-3.
    """
    centre, place = np.array([0.3, -0.2, 0.1])[:dimension], np.array([0.9, 0.8, -0.3])[:dimension]
    turned: Any = 0.4 if dimension == 2 else np.array([0.3, -0.5, 0.2])

    def distance(x: np.ndarray) -> np.ndarray:
        return np.linalg.norm(x - centre, axis=1) - 1.0

    shape = distance_field(
        "ground", distance, spacing=0.1, region=((-1.6,) * dimension, (1.6,) * dimension),
        at=(0.2,) * dimension, turned=turned,
    )  # fmt: skip
    inertia: Any = 1.0 if dimension == 2 else (1.0,) * 3
    problem = assemble(
        body("ball", mass=1.0, inertia=inertia), contact("c", sphere("ball", 0.2), shape),
        start={"ball": ((*place, 0.0),) if dimension == 2 else (tuple(place),)},
    )  # fmt: skip
    own = problem.params["c"].second

    def gap(control: Any, at: Any, turned: Any) -> Any:
        second = dataclasses.replace(own, control=control, at=at, turned=turned)
        part = dataclasses.replace(problem.params["c"], second=second)
        return problem.system.gap(0.0, problem.state.q, {**problem.params, "c": part})[0]

    def turn(w: Any) -> Any:
        if dimension == 2:
            return jnp.array([[jnp.cos(w), -jnp.sin(w)], [jnp.sin(w), jnp.cos(w)]])
        return jax.scipy.linalg.expm(
            jnp.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
        )

    def exact(at: Any, turned: Any) -> Any:
        return jnp.linalg.norm(place - at - turn(turned) @ centre) - 1.2

    numbers = (jnp.asarray(own.control), jnp.asarray(own.at, float), jnp.asarray(own.turned, float))
    found = jax.jit(jax.grad(gap, (0, 1, 2)))(*numbers)
    wanted = jax.jit(jax.grad(exact, (0, 1)))(*numbers[1:])
    for x, y in zip(found[1:], wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=2e-3)
    assert abs(np.sum(found[0]) - 1.0) < 1e-12  # a higher level of all distances
    ways = jax.random.normal(jax.random.key(3), (sum(x.size for x in numbers),))
    split = np.cumsum([x.size for x in numbers])[:-1]
    change = tuple(y.reshape(x.shape) for x, y in zip(numbers, jnp.split(ways, split), strict=True))
    forward = jax.jit(lambda n, c: jax.jvp(gap, n, c)[1])(numbers, change)
    reverse = sum(jnp.sum(x * y) for x, y in zip(found, change, strict=True))
    np.testing.assert_allclose(forward, reverse, rtol=1e-12)


def test_points_within_the_shape_have_negative_distances() -> None:
    """In compiled loops, too, of a grid whose middle is no round number."""
    low, high, spacing = np.array((-1.2, -1.5)), np.array((1.4, 1.7)), 0.07
    shape = distance_field("a", circle, spacing=spacing, region=(low, high)).numbers
    x = np.random.default_rng(6).uniform(low, high, size=(2000, 2))
    found, _ = jax.jit(lambda x, y: jax.lax.map(functools.partial(distance_from, y), x))(x, shape)
    clear = np.linalg.norm(x, axis=1) > 3.0 * spacing  # of the centre, where the distance has a kink
    np.testing.assert_allclose(found[clear], circle(x)[clear], rtol=0, atol=0.1 * spacing**2)


# A ball that rolls in a bowl.


def hollow(x: np.ndarray) -> np.ndarray:
    """Signed distances from a thick shell around a hollow of radius 1."""
    return np.abs(np.linalg.norm(x, axis=1) - 1.3) - 0.3


def bowl_with_ball(dimension: int, spacing: float, coordinates: str = "joint") -> nsjax.Problem:
    """A ball of radius 0.2 at rest in the bowl, at an angle of 0.6."""
    radius, up = 0.2, np.eye(dimension)[-1]
    bowl = distance_field(
        "ground", hollow, spacing=spacing, region=((-1.9,) * dimension, (1.9,) * dimension)
    )
    share = 0.5 if dimension == 2 else 0.4
    inertia: Any = (share * radius**2,) * 3 if dimension == 3 else share * radius**2
    place = (0.8 - 1e-6) * (np.sin(0.6) * np.eye(dimension)[0] - np.cos(0.6) * up)
    start: Any = ((*place, 0.0),) if dimension == 2 else (tuple(place),)
    return assemble(
        body("ball", mass=1.0, inertia=inertia), contact("c", sphere("ball", radius), bowl, friction=1.0),
        gravity=9.81, start={"ball": start}, coordinates=coordinates,
    )  # fmt: skip


def rolled(dimension: int, spacing: float, coordinates: str = "joint") -> float:
    """Angle of the ball after half a second."""
    problem = bowl_with_ball(dimension, spacing, coordinates)
    run = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=2e-3, steps=250)
    run.raise_for_status()
    x = np.asarray(run.body("ball").position[-1])
    return float(np.arctan2(x[0], -x[-1]))


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [2, 3])
def test_the_time_loop_is_one_kernel(dimension: int) -> None:
    text = loop_text(bowl_with_ball(dimension, 0.1), schemes.moreau(), 1e-3)
    assert is_one_kernel(text)
    assert not BLOCKERS.search(text)


@pytest.mark.slow
def test_lanes_and_saved_runs_are_single_runs(tmp_path: pathlib.Path) -> None:
    problem = bowl_with_ball(2, 0.1)

    def end(x: Any) -> Any:
        q = jnp.asarray(problem.state.q).at[0].set(x)
        state = dataclasses.replace(problem.state, q=q)
        made = problem.system, problem.params, state
        return nsjax.simulate(*made, schemes.moreau(), dt=2e-3, steps=100, every=100).q[-1]

    places = jnp.array([0.4, 0.1, -0.2])
    lanes, one = jax.jit(jax.vmap(end))(places), jax.jit(end)
    np.testing.assert_allclose(lanes, [one(x) for x in places], rtol=0, atol=1e-13)
    run = nsjax.simulate(*problem, schemes.moreau(), dt=2e-3, steps=100)
    nsjax.save(tmp_path / "run.npz", problem, run)
    kept = nsjax.load(tmp_path / "run.npz", problem).problem.params["c"].second
    np.testing.assert_array_equal(kept.control, problem.params["c"].second.control)


def rolling_angle(dimension: int) -> float:
    """The same of ``(1 + I / m r^2) (R - r) a'' = -g sin a``."""
    share = 1.5 if dimension == 2 else 1.4
    found = solve_ivp(
        lambda t, y: (y[1], -9.81 / (share * 0.8) * np.sin(y[0])), (0.0, 0.5), (0.6, 0.0), rtol=1e-10,
        atol=1e-12,
    )  # fmt: skip
    return float(found.y[0, -1])


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "coordinates"), [(2, "joint"), (2, "absolute"), (3, "joint")])
def test_a_ball_rolls_in_a_bowl(dimension: int, coordinates: str) -> None:
    """Of grids of a fifth, a tenth and a twentieth of the radius the errors are 5e-4, 7e-5 and 1e-6 with
    small steps; these steps add 1e-5.
    """
    assert abs(rolled(dimension, 0.1, coordinates) - rolling_angle(dimension)) < 2e-4


# A disc that lands beside a lobe, and flies on.


def lobes(a: Any) -> Any:
    r = 1.0 + 0.35 * np.cos(3.0 * a)
    return r * np.cos(a), r * np.sin(a)


RADIUS, PLACE, SPEED, BOUNCE, END = 0.15, np.array([0.2, 1.2]), np.array([-0.5, 0.0]), 0.6, 0.4


def landed(x: float) -> float:
    """Place along x of the disc at the end, whose first place is shifted by ``x``: the distance from the
    curve is the least over its angle.
    """
    angles = np.linspace(0.0, 2.0 * np.pi, 4001)

    def foot(place: np.ndarray) -> tuple[float, np.ndarray]:
        a = angles[np.argmin(np.sum((np.stack(lobes(angles), axis=1) - place) ** 2, axis=1))]

        def slope(b: float) -> float:
            at, way = np.array(lobes(b)), np.array(lobes(b + 1e-6)) - np.array(lobes(b - 1e-6))
            return float((at - place) @ way)

        apart = place - np.array(lobes(brentq(slope, a - 2e-3, a + 2e-3, xtol=1e-14)))
        return float(np.linalg.norm(apart)), apart / np.linalg.norm(apart)

    def flown(t: float) -> np.ndarray:
        return PLACE + (x, 0.0) + t * SPEED + (0.0, -0.5 * 9.81 * t * t)

    times = np.linspace(0.0, END, 400)
    first = next(k for k, t in enumerate(times) if foot(flown(t))[0] < RADIUS)
    hit = brentq(lambda t: foot(flown(t))[0] - RADIUS, times[first - 1], times[first], xtol=1e-13)
    normal = foot(flown(hit))[1]
    speed = SPEED - np.array([0.0, 9.81 * hit])
    speed = speed - (1.0 + BOUNCE) * (normal @ speed) * normal
    return float(flown(hit)[0] + (END - hit) * speed[0])


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
@pytest.mark.parametrize("name", ["moreau", "generalized_alpha"])
def test_a_landing_beside_a_lobe(name: str, coordinates: str) -> None:
    """And its derivative, forward and reverse, with the instant of the impact."""
    shape = distance_field("ground", lobes, spacing=0.03, turned=0.0)
    problem = assemble(
        body("disc", mass=1.0, inertia=0.01),
        contact("c", sphere("disc", RADIUS), shape, restitution=BOUNCE), gravity=9.81,
        start={"disc": ((*PLACE, 0.0), (*SPEED, 0.0))}, coordinates=coordinates,
    )  # fmt: skip
    scheme = schemes.REGISTRY[name].factory()

    def end(x: Any) -> Any:
        state = dataclasses.replace(problem.state, q=jnp.asarray(problem.state.q).at[0].add(x))
        made = problem.system, problem.params, state
        return nsjax.simulate(*made, scheme, dt=5e-4, steps=800, every=800, gradient="saltation").q[-1, 0]

    zero, wide = jnp.zeros(()), 1e-5
    value, forward = jax.jit(lambda x: jax.jvp(end, (x,), (jnp.ones(()),)))(zero)
    assert abs(float(value) - landed(0.0)) < 2e-3  # steps of first order, as the next
    wanted = (landed(wide) - landed(-wide)) / (2.0 * wide)
    assert abs(float(forward) - wanted) < 1e-2 * abs(wanted)
    assert abs(float(jax.jit(jax.grad(end))(zero)) - float(forward)) < 1e-9


@pytest.mark.slow
def test_a_ball_falls_into_a_cup() -> None:
    """And rests on its floor, which is flat and at 0.2 m."""
    points, faces = CUP
    cup = distance_field("ground", 0.2 * points[:, [2, 0, 1]], faces, spacing=0.01, margin=0.1)
    problem = assemble(
        body("ball", mass=1.0, inertia=(0.004,) * 3), contact("c", sphere("ball", 0.08), cup, friction=0.5),
        gravity=9.81, start={"ball": (0.1, 0.3, 0.5)},
    )  # fmt: skip
    run = nsjax.simulate(*problem, schemes.moreau(), dt=2e-3, steps=300)
    run.raise_for_status()
    # a step before it lands at 2.1 m/s, which a scheme on velocity level does not take back, is 4 mm
    np.testing.assert_allclose(run.body("ball").position[-1], (0.1, 0.3, 0.28), rtol=0, atol=4e-3)


@pytest.mark.slow
def test_pictures_have_the_surface() -> None:
    """The outline, the triangles, or points of the surface of a function."""
    flat = distance_field("a", CUP[0][:8, :2], spacing=0.1)
    solid = distance_field("a", *CUP, spacing=0.2)
    given = distance_field("a", torus, region=TORUS, spacing=0.1)
    for shape, dimension, kind in ((flat, 2, "area"), (solid, 3, "mesh"), (given, 3, "dots")):
        inertia: Any = 1.0 if dimension == 2 else (1.0,) * 3
        parts = [body(x, mass=1.0, inertia=inertia) for x in ("a", "b")]
        problem = assemble(*parts, contact("c", sphere("b", 0.2), shape), gravity=9.81)
        drawn = problem.system.shapes(0.0, jnp.asarray(problem.state.q), problem.params)
        (found,) = [x for x in drawn.shapes if x.kind == kind and "a" in x.name]
        assert found.points.shape[-2] == len(shape.numbers.surface) > 3
    assert np.max(np.abs(torus(given.numbers.surface))) < 0.01


TORUS_FILE = """<mujoco><extension><plugin plugin="mujoco.sdf.torus"><instance name="t">
<config key="radius1" value="0.35"/><config key="radius2" value="0.15"/></instance></plugin></extension>
<asset><mesh name="t"><plugin instance="t"/></mesh></asset><worldbody>
<geom type="sdf" name="ring" mesh="t"><plugin instance="t"/></geom>
<body name="b" pos="0 0 1"><freejoint/><geom name="ball" size=".1"/></body></worldbody></mujoco>"""


def test_a_file_with_a_field_names_the_remedy() -> None:
    pytest.importorskip("mujoco", reason="the package mujoco is not installed")
    (said,) = [x for x in read_mjcf(TORUS_FILE).left_out if "sdf" in x]
    assert said.endswith("ring - ball pass through each other; add contacts with a distance_field")
