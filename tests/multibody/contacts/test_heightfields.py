"""Terrain under points, balls, capsules and boxes: a plane as terrain, distances by minimisation over all
triangles, derivatives, valleys that hold a ball, and the same of MuJoCo.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nsjax
from nsjax import schemes
from nsjax.core.operators import prepared
from nsjax.multibody import (
    assemble,
    box,
    capsule,
    contact,
    corners,
    heightfield,
    plane,
    point,
    points,
    read_mjcf,
    sphere,
)
from tests.multibody.contacts.held_features import INERTIA, Program, massive

SIZES, HALF = (9, 7), (1.6, 1.2)
X, Y = (np.linspace(-h, h, n) for h, n in zip(HALF, SIZES, strict=True))
WAVES = 0.25 * np.sin(2.0 * X)[:, None] * np.cos(3.0 * Y)[None, :]
SLOPE = 0.3 * X[:, None] - 0.4 * Y[None, :] + 0.1
AT, TURNED = (0.2, -0.1, 0.3), (0.2, -0.4, 0.3)
NORMAL = Rotation.from_rotvec(TURNED).apply(np.array([-0.3, 0.4, 1.0]) / np.sqrt(1.25))
FOOT = Rotation.from_rotvec(TURNED).apply((0.0, 0.0, 0.1)) + AT
LIST = 0.1 * np.array([(1.0, 0.0, 0.0), (0.0, 1.0, 0.5), (0.0, -0.5, -1.0)])


SHAPES = {
    "tip": (point("a", (0.1, 0.0, 0.0)), 1), "tips": (points("a", LIST), 1),
    "ball": (sphere("a", 0.15, at=(0.0, 0.1, 0.0)), 3), "limb": (capsule("a", 0.1, 0.2), 3),
    "crate": (box("a", 0.2, 0.1, 0.15, turned=(0.1, 0.2, 0.3)), 1),
    "corners": (corners("a", 0.1, 0.2, 0.1), 1),
}  # fmt: skip
"""Shapes of a body, and the contacts of each of their points."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", [("limb",), pytest.param(("tips", "ball", "crate"), marks=pytest.mark.slow)], ids="_".join
)
def test_a_tilted_plane_is_a_plane(names: tuple[str, ...]) -> None:
    """Gaps, rates and slips are those of the same plane, for bodies above and in it."""
    terrain = heightfield("ground", SLOPE, *HALF, at=AT, turned=TURNED)
    flat = plane(at=tuple(FOOT), normal=tuple(NORMAL))
    both = (("", terrain), ("flat_", flat))
    parts = [contact(f"{p}{x}", SHAPES[x][0], y, friction=0.3) for p, y in both for x in names]
    slope, draw = Program(assemble(massive("a"), *parts)), np.random.default_rng(2)
    for k in range(20):
        place = FOOT + draw.uniform(-0.2, 0.2, size=3) + draw.uniform(-0.1, 0.1) * NORMAL
        turn = Rotation.random(random_state=k).as_quat(scalar_first=True)
        found = [np.asarray(x) for x in slope.run(np.concatenate([place, turn]), draw.normal(size=6))]
        assert np.max(np.abs(found[1] - found[2])) < 1e-12
        for name in names:
            rows, same, every = slope.rows[name], slope.rows[f"flat_{name}"], SHAPES[name][1]
            assert np.sum(rows) == every * np.sum(same)
            for x in (found[0], found[1], found[3]):
                np.testing.assert_allclose(x[rows][::every], x[same], rtol=0, atol=1e-12)
            # one face alone holds a ball
            assert np.all(found[0][rows].reshape(-1, every)[:, 1:] > 2.0)


def triangles_of(heights: np.ndarray) -> np.ndarray:
    """All triangles (n, 3, 3): of every cell two, between its corners (i, j) and (i + 1, j + 1)."""
    grid = np.stack([*np.meshgrid(X, Y, indexing="ij"), heights], axis=-1)
    a, b, c, d = grid[:-1, :-1], grid[1:, :-1], grid[:-1, 1:], grid[1:, 1:]
    return np.concatenate([np.stack(x, axis=2).reshape(-1, 3, 3) for x in ((a, b, d), (a, d, c))])


def distance(centre: np.ndarray, heights: np.ndarray) -> float:
    """Of a point from all triangles: by their planes and by their edges, each a convex function."""
    found = np.inf
    for a, b, c in triangles_of(heights):
        rows = np.stack([b - a, c - a], axis=1)
        u = np.linalg.lstsq(rows, centre - a, rcond=None)[0]
        if np.all(u >= 0.0) and np.sum(u) <= 1.0:
            found = min(found, float(np.linalg.norm(a + rows @ u - centre)))
        for one, other in ((a, b), (b, c), (c, a)):
            way = other - one
            s = np.clip((centre - one) @ way / (way @ way), 0.0, 1.0)
            found = min(found, float(np.linalg.norm(one + s * way - centre)))
    return found


@pytest.fixture(scope="module")
def waves() -> Program:
    terrain = heightfield("b", WAVES, *HALF)
    parts = [contact("ball", sphere("a", 0.15), terrain, friction=0.3), contact("tip", point("a"), terrain)]
    return Program(assemble(massive("a"), massive("b"), *parts))


@pytest.mark.slow
def test_waves_by_minimisation(waves: Program) -> None:
    """Of a ball above and in terrain of another body that lies and turns anyhow."""
    draw, most = np.random.default_rng(4), [0.0, 0.0]
    for k in range(30):
        local = np.array([*draw.uniform(-0.9, 0.9, size=2) * HALF, 0.0])
        u = np.interp(local[0], X, np.arange(SIZES[0])), np.interp(local[1], Y, np.arange(SIZES[1]))
        local[2] = WAVES[int(u[0]), int(u[1])] + draw.uniform(-0.1, 0.35)
        turn, place = Rotation.random(random_state=k), draw.normal(size=3)
        centre = place + turn.apply(local)
        q = np.concatenate([centre, (1.0, 0.0, 0.0, 0.0), place, turn.as_quat(scalar_first=True)])
        gap, rate, reverse, _ = (np.asarray(x) for x in waves.run(q, draw.normal(size=12)))
        asked = distance(local, WAVES)
        ball, tip = gap[waves.rows["ball"]][0] + 0.15, gap[waves.rows["tip"]][0]
        most = [max(most[0], abs(abs(ball) - asked)), max(most[1], abs(abs(tip) - asked))]
        assert np.max(np.abs(rate - reverse)) < 1e-12
    assert max(most) < 1e-12


VALLEY = 0.5 * np.abs(np.linspace(-1.0, 1.0, 5))[:, None] * np.ones((5, 3))


def dropped(coordinates: str = "joint") -> Any:
    """A ball above a valley, beside its bottom."""
    floor = contact("floor", sphere("a", 0.2), heightfield("ground", VALLEY, 1.0, 1.0), friction=0.3)
    return assemble(
        massive("a"), floor, gravity=(0.0, 0.0, -9.81), coordinates=coordinates,
        start={"a": ((0.02, 0.3, 0.3),)},
    )  # fmt: skip


def by_steepness(problem: Any, gradient: str) -> Any:
    """Height of the ball after 0.16 s, of a factor of all heights."""

    def end(steep: jax.Array) -> jax.Array:
        own = problem.params["floor"]
        second = dataclasses.replace(own.second, heights=steep * VALLEY)
        moved = dataclasses.replace(
            problem, params={**problem.params, "floor": dataclasses.replace(own, second=second)}
        )
        run = nsjax.simulate(*moved, schemes.moreau(), dt=2e-3, steps=80, gradient=gradient)
        return run.q[-1, 2]

    return end


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_derivatives_by_heights(coordinates: str) -> None:
    """Of the height of a ball that lands in the valley."""
    end = by_steepness(dropped(coordinates), "discrete")
    one = jnp.ones(())
    forward = float(jax.jit(lambda x: jax.jvp(end, (x,), (one,))[1])(one))
    assert abs(forward) > 1e-3
    assert abs(forward - float(jax.jit(jax.grad(end))(one))) < 1e-10
    near = [float(jax.jit(end)(one + x)) for x in (1e-7, -1e-7)]
    assert abs((near[0] - near[1]) / 2e-7 - forward) < 1e-6


def landed(steep: float, time: float) -> float:
    """Height of the same ball before it meets the second face, in closed form: it falls on a plane of the
    slope ``steep / 2``, sticks in the impact, and rolls.
    """
    (x, z), r, g, inertia, slope = (0.02, 0.3), 0.2, 9.81, INERTIA[1], 0.5 * steep
    wide = np.hypot(1.0, slope)
    fall = np.sqrt(2.0 * (z - slope * x - r * wide) / g)
    carried = r * r / (r * r + inertia)
    speed = -g * fall * slope / wide * carried
    assert abs(speed * (1.0 / carried - 1.0)) < 0.3 * g * fall / wide  # it sticks
    left = time - fall
    gone = speed * left - 0.5 * g * slope / wide * carried * left**2
    assert x + gone / wide > 0.0
    return float(z - 0.5 * g * fall**2 + gone * slope / wide)


@pytest.mark.slow
def test_derivative_through_a_landing() -> None:
    """With the instant of the impact it is that of the closed form. Steps whose instants stay where they
    are change by another sign: -0.014 for secants of 1e-7, in steps of 2 ms.
    """
    problem, time, wide = dropped(), 0.16, 1e-4
    end = by_steepness(problem, "saltation")
    asked = (landed(1.0 + wide, time) - landed(1.0 - wide, time)) / (2.0 * wide)
    assert abs(asked - 0.0317366) < 1e-7
    found = float(jax.jit(lambda x: jax.jvp(end, (x,), (jnp.ones(()),))[1])(jnp.ones(())))
    assert abs(found - asked) < 1e-3  # order 1


HILLS = """<mujoco><option gravity="0 0 -9.81" ccd_tolerance="1e-12"/>
<asset><hfield name="h" nrow="4" ncol="5" size="0.8 0.6 0.4 0.1"
elevation="0 1 0.2 0.5 0.3  0.4 0.1 0.9 0.2 0.6  0.8 0.3 0.5 0.7 0  0.1 0.6 0.2 0.4 0.9"/></asset>
<worldbody>
<geom name="hills" type="hfield" hfield="h" pos="0.1 0.2 0.3" euler="10 20 -15"/>
<body name="rock" pos="0 0 1"><freejoint name="free"/><geom name="skin" type="sphere" size="0.1"/></body>
</worldbody></mujoco>"""


def test_terrain_of_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(HILLS)
    data = mujoco.MjData(model)
    file = read_mjcf(HILLS)
    assert not any("hfield" in x for x in file.left_out)
    problem = file.problem()
    system, p = problem.system, prepared(problem.system, problem.params)
    gap = jax.jit(lambda q: system.gap(0.0, q, p))
    draw, compared = np.random.default_rng(6), 0
    turn, place = data.geom_xmat[0].reshape(3, 3), None
    for _ in range(40):
        mujoco.mj_kinematics(model, data)
        turn, place = data.geom_xmat[0].reshape(3, 3), data.geom_xpos[0]
        local = np.array([*draw.uniform(-0.5, 0.5, size=2), draw.uniform(0.15, 0.5)])
        data.qpos[:] = [*(place + turn @ local), 1.0, 0.0, 0.0, 0.0]
        mujoco.mj_forward(model, data)
        found = float(np.min(gap(data.qpos)))
        depths = [x.dist for x in data.contact]
        if found > -0.05:
            assert (found < 0.0) == bool(depths)
        if depths and found > -0.05:
            compared += 1
            assert abs(found - min(depths)) < 1e-7
    assert compared > 5


@pytest.mark.slow
def test_beside_the_grid_is_no_contact(waves: Program) -> None:
    for x, y in ((1.7, 0.0), (-1.65, 0.0), (0.0, 1.25), (0.0, -5.0), (3.0, 3.0)):
        q = np.array([x, y, -0.5, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
        found = [np.asarray(x) for x in waves.run(q, np.ones(12))]
        assert np.all(found[0] > 1.0)
        assert all(np.all(np.isfinite(x)) for x in found)
