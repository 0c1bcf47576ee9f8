"""Hulls, boxes and capsules on hulls: depths over all axes and of MuJoCo, faces that lie on each other, and
derivatives by sizes.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import nsjax
from nsjax import schemes
from nsjax.core.operators import contact_rows, prepared, refreshed, row_rates
from nsjax.multibody import assemble, box, capsule, contact, hull, read_mjcf
from nsjax.multibody.contacts import convex_pairs
from nsjax.multibody.contacts.hulls import prepared as prepared_hull
from tests.multibody.contacts.held_features import Program, massive

CLOUD = np.random.default_rng(3).normal(size=(40, 3)) * (0.3, 0.2, 0.1)
ROCK = np.random.default_rng(8).normal(size=(25, 3)) * (0.2, 0.2, 0.25)
HALF = (0.2, 0.15, 0.1)
CORNERS = np.array(np.meshgrid(*[(-1.0, 1.0)] * 3, indexing="ij")).reshape(3, -1).T * HALF
RADIUS, SEGMENT = 0.05, np.array([(-0.2, 0.0, 0.0), (0.2, 0.0, 0.0)])
FIRST = {
    "hull": (lambda: hull("a", ROCK), ROCK, 0.0), "box": (lambda: box("a", *HALF), CORNERS, 0.0),
    "capsule": (lambda: capsule("a", RADIUS, 0.2), SEGMENT, RADIUS),
}  # fmt: skip
WEDGE = 0.1 * np.array(
    [
        (-1.5, -1.0, 0.0), (1.5, -1.0, 0.0), (1.5, 1.0, 0.0), (-1.5, 1.0, 0.0), (-1.0, 0.5, 1.0),
        (1.2, 0.4, 1.0),
    ]
)  # fmt: skip

"""A block with a rectangle below."""


def axes_of(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Normals of the faces of a hull, and its edges."""
    found = ConvexHull(points)
    beside: dict[tuple[int, int], list[int]] = {}
    for k, face in enumerate(found.simplices):
        for i in range(3):
            one, other = sorted((int(face[i]), int(face[(i + 1) % 3])))
            beside.setdefault((one, other), []).append(k)
    normals = found.equations[:, :3]
    sharp = [x for x, (k, m) in beside.items() if normals[k] @ normals[m] < 1.0 - 1e-9]
    return normals, np.array([points[i] - points[j] for i, j in sharp])


def depth(one: np.ndarray, other: np.ndarray) -> float:
    """Separation of two hulls, negative in each other: the largest along normals of faces and directions
    across two edges.
    """
    (m, d), (n, e) = axes_of(one), axes_of(other)
    across = np.cross(d[:, None], e[None]).reshape(-1, 3)
    sizes = np.linalg.norm(across, axis=1)
    across = across[sizes > 1e-9] / sizes[sizes > 1e-9, None]
    ways = np.vstack([m, -m, n, -n, across, -across])
    return float(np.max(np.min(one @ ways.T, axis=0) - np.max(other @ ways.T, axis=0)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "many", "missed"), [("box", 15, 0), pytest.param("hull", 60, 1, marks=pytest.mark.slow)]
)
def test_depths_by_all_axes(kind: str, many: int, missed: int) -> None:
    """Of bodies that are in each other by up to two centimetres; one of sixty rocks is given along another
    axis, which is that of a face.
    """
    problem = assemble(massive("a"), massive("b"), contact("c", FIRST[kind][0](), hull("b", CLOUD)))
    system, p = problem.system, prepared(problem.system, problem.params)
    gap = jax.jit(lambda q: system.gap(0.0, q, p))
    draw, errors = np.random.default_rng(3), []
    for k in range(many):
        turns = [Rotation.random(random_state=7 * k + i) for i in (0, 1)]
        way = draw.normal(size=3)
        way, wanted = way / np.linalg.norm(way), -draw.uniform(1e-4, 0.02)
        one, other, low, high = turns[0].apply(FIRST[kind][1]), turns[1].apply(CLOUD), 0.0, 2.0
        for _ in range(12):  # to where they are about so deep in each other
            middle = 0.5 * (low + high)
            low, high = (middle, high) if depth(one, middle * way + other) < wanted else (low, middle)
        ends = [(0.0, 0.0, 0.0), turns[0].as_quat(scalar_first=True)]
        ends += [low * way, turns[1].as_quat(scalar_first=True)]
        errors.append(abs(float(gap(np.concatenate(ends))[0]) - depth(one, low * way + other)))
    assert np.sum(np.array(errors) > 1e-10) <= missed


def scene_of(points: np.ndarray, other: str) -> str:
    """A model of MuJoCo with two free bodies."""
    words = " ".join(f"{x:.17g}" for x in points.reshape(-1))
    return f"""<mujoco><option ccd_tolerance="1e-13" ccd_iterations="200" gravity="0 0 0"/>
<asset><mesh name="m" vertex="{words}"/></asset><worldbody>
<body name="a"><freejoint name="fa"/><geom name="ga" {other}/></body>
<body name="b"><freejoint name="fb"/><geom name="gb" type="mesh" mesh="m"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    "other",
    [
        pytest.param('type="box" size="0.2 0.15 0.1"', marks=pytest.mark.slow),
        pytest.param('type="capsule" size="0.05 0.2"', marks=pytest.mark.slow),
        pytest.param('type="mesh" mesh="m"', marks=pytest.mark.slow),
    ],
)
def test_depths_of_mujoco(other: str) -> None:
    """Of bodies that are in each other by some millimetres; those of MuJoCo differ by up to 3e-4 m
    from the least, which other tests find.
    """
    mujoco = pytest.importorskip("mujoco")
    text = scene_of(CLOUD, other)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    problem = read_mjcf(text).problem()
    system, p = problem.system, prepared(problem.system, problem.params)
    gap = jax.jit(lambda q: system.gap(0.0, q, p))
    draw, compared = np.random.default_rng(3), 0
    for k in range(400):
        turns = [Rotation.random(random_state=7 * k + i).as_quat(scalar_first=True) for i in (0, 1)]
        way = draw.normal(size=3)
        place = draw.uniform(0.1, 0.6) * way / np.linalg.norm(way)
        q = np.concatenate([np.zeros(3), turns[0], place, turns[1]])
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        depths = [x.dist for x in data.contact]
        if depths and -0.01 < min(depths) < -1e-4:
            compared += 1
            found = float(gap(q)[0])
            assert abs(found - min(depths)) < 3e-4, k
    assert compared > 0


@pytest.mark.slow
def test_faces_that_lie_on_each_other() -> None:
    """A block on a larger one of other axes, and over its edge: the corners of what both share are at its
    height, other places stand back.
    """
    wide = CORNERS * (3.0, 3.0, 1.0)
    program = Program(assemble(massive("a"), massive("b"), contact("c", hull("a", WEDGE), hull("b", wide))))
    for place, angle in (((0.0, 0.0), 0.3), ((0.0, 0.0), 0.0), ((0.58, 0.1), 0.2), ((0.6, 0.45), 0.0)):
        for height in (0.02, 0.0, -1e-4):
            turn = Rotation.from_rotvec((0.0, 0.0, angle))
            q = np.array([*place, 0.1 + height, *turn.as_quat(scalar_first=True), 0, 0, 0, 1, 0, 0, 0])
            gap, rate, _, _ = (np.asarray(x) for x in program.run(q, np.ones(12)))
            near = gap < 0.05
            assert np.all(np.isfinite(rate))
            assert 4 <= np.sum(near) <= 8
            np.testing.assert_allclose(gap[near], height, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_derivatives_by_size(coordinates: str) -> None:
    """Of a hull that strikes another: forward, reverse, and secants of the same steps."""
    strikes = contact("c", hull("a", ROCK), hull("ground", CLOUD), friction=0.3, restitution=0.2)
    problem = assemble(
        massive("a"), strikes, gravity=(0.0, 0.0, -9.81), coordinates=coordinates,
        start={"a": ((0.0, 0.0, 0.75), (0.1, 0.2, 0.3))},
    )  # fmt: skip

    def end(size: jax.Array) -> jax.Array:
        own = problem.params["c"]
        first = dataclasses.replace(own.first, vertices=size * own.first.vertices)
        params = {**problem.params, "c": dataclasses.replace(own, first=first)}
        moved = dataclasses.replace(problem, params=params)
        run = nsjax.simulate(*moved, schemes.moreau(), dt=2e-3, steps=120, gradient="discrete")
        return run.q[-1, 2]

    one = jnp.ones(())
    forward = float(jax.jit(lambda x: jax.jvp(end, (x,), (one,))[1])(one))
    assert abs(forward) > 1e-3
    assert abs(forward - float(jax.jit(jax.grad(end))(one))) < 1e-9 * max(1.0, abs(forward))
    near = (float(jax.jit(end)(one + 1e-8)) - float(jax.jit(end)(one - 1e-8))) / 2e-8
    assert abs(near - forward) < 1e-5 * max(1.0, abs(forward))


def test_faces_of_large_hulls_are_those_of_a_table() -> None:
    """The face above which the other hull is highest: heights of all vertices above all faces, compared
    in numpy, in positions that overlap, touch and are apart.
    """
    draw = np.random.default_rng(4)

    def rock(many: int, size: Any) -> tuple[np.ndarray, Any]:
        x = draw.normal(size=(many, 3))
        points, faces = prepared_hull("rock", x / np.linalg.norm(x, axis=1)[:, None] * size)
        return points.T, faces

    (a, own), (b, others) = rock(300, (1.0, 0.5, 0.3)), rock(200, (0.4, 0.9, 0.2))
    assert len(own) * b.shape[1] > convex_pairs.TABLE
    solid = convex_pairs.Solid
    found = jax.jit(lambda x, y: convex_pairs._least_deep(solid(x, own, 0.0), solid(y, others, 0.0)))
    for far in (0.0, 0.3, 0.6, 1.0, 3.0):
        turned = Rotation.random(random_state=draw).as_matrix() @ b
        moved = turned + far * draw.normal(size=3)[:, None]
        room, normal = found(a, moved)
        best = -np.inf
        for points, faces, against, way in ((moved, others, a, 1.0), (a, own, moved, -1.0)):
            x, y, z = (points[:, k] for k in np.array(faces).T)
            n = np.cross((y - x).T, (z - x).T)
            n /= np.linalg.norm(n, axis=1)[:, None]
            heights = np.min(n @ against, axis=1) - np.sum(n * x.T, axis=1)
            if np.max(heights) > best:
                best, direction = np.max(heights), way * n[np.argmax(heights)]
        assert abs(float(room) - best) < 1e-14
        assert np.max(np.abs(np.asarray(normal) - direction)) < 1e-14


def almost(cube: np.ndarray) -> Any:
    """Function of ``(q, v)``: rates of the rows of two hulls, those of the gaps, and the gaps."""
    system, params, _ = assemble(massive("a"), massive("b"), contact("c", hull("a", cube), hull("b", cube)))
    t, p = jnp.zeros(()), prepared(system, params)

    def found(q: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
        held = refreshed(system, t, q, p)
        rate = contact_rows(system, t, q, held).rate(v)
        return rate, row_rates(system, t, q, v, held)[: rate.shape[0]], system.gap(t, q, held)

    return jax.jit(found)


@pytest.mark.slow
def test_rates_of_hulls_that_almost_touch() -> None:
    """Cubes beside each other, whole faces, edges or corners apart by less than rounding gives a direction:
    rates of the rows are those of the gaps.
    """
    draw, edge = np.random.default_rng(0), 0.019
    rows = almost(0.5 * edge * np.array(list(itertools.product((-1.0, 1.0), repeat=3))))
    for k, gap in itertools.product(range(6), (1e-12, 6e-10, 6e-9, 1e-7)):
        turn = Rotation.random(random_state=k)
        apart = turn.apply([edge + gap, draw.choice([edge, 0.01, 0.0]), draw.choice([0.0, 0.005])])
        centre, way = 0.03 * draw.normal(size=3), turn.as_quat(scalar_first=True)
        q = np.concatenate([centre, way, centre + apart, way])
        rate, wanted, gaps = (np.asarray(x) for x in rows(q, draw.normal(size=12)))
        assert np.max(np.abs(rate - wanted)) < 1e-9 * np.max(np.abs(wanted))  # the promise of rows
        assert abs(np.min(gaps) - gap) < 1e-15
