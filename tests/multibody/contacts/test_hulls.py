"""Convex hulls on planes and under spheres: gaps by minimisation over the points of a hull,
derivatives, what comes to rest, and the same of MuJoCo.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize
from scipy.spatial.transform import Rotation

import nsjax
from nsjax import schemes
from nsjax.core.operators import prepared
from nsjax.multibody import assemble, contact, hull, plane, point, read_mjcf, sphere
from tests.multibody.contacts.held_features import Program, massive

NORMAL = (0.0, 0.6, 0.8)
CLOUD = np.random.default_rng(3).normal(size=(40, 3)) * (0.3, 0.2, 0.1)
CUBE = np.array(np.meshgrid(*[(-0.5, 0.5)] * 3, indexing="ij")).reshape(3, -1).T
TETRAHEDRON = 0.1 * np.array([(1.0, 1.0, 1.0), (1.0, -1.0, -1.0), (-1.0, 1.0, -1.0), (-1.0, -1.0, 1.0)])
RADIUS = 0.15


@pytest.fixture(scope="module")
def program() -> Program:
    return Program(
        assemble(
            massive("a"), massive("b"), contact("floor", hull("a", CLOUD), plane(normal=NORMAL)),
            contact("tip", hull("a", TETRAHEDRON), plane(normal=NORMAL)),
            contact("ball", sphere("b", RADIUS, at=(0.0, 0.1, 0.0)), hull("a", CLOUD), friction=0.3),
            contact("cube", point("b"), hull("a", CUBE)),
        )
    )  # fmt: skip


def distance(points: np.ndarray, centre: np.ndarray) -> float:
    """Of a point outside from a hull: the least of a convex function of weights of its points, which are
    not negative and sum to one, by non-negative least squares with the sum as a heavy row.
    """
    heavy = 1e4
    rows = np.vstack([(points - centre).T, heavy * np.ones(len(points))])
    weights = optimize.nnls(rows, np.array([0.0, 0.0, 0.0, heavy]), maxiter=1000)[0]
    active = points[weights > 1e-9]
    base, span = active[0], (active[1:] - active[0]).T
    rest = centre - base
    if span.size:
        rest = rest - span @ np.linalg.lstsq(span, rest, rcond=None)[0]
    return float(np.linalg.norm(rest))


def placed(q: np.ndarray, points: Any) -> np.ndarray:
    return q[:3] + Rotation.from_quat(q[3:], scalar_first=True).apply(points)


def states(count: int) -> Any:
    draw = np.random.default_rng(1)
    for _ in range(count):
        quarter = [x / np.linalg.norm(x) for x in draw.normal(size=(2, 4))]
        away = draw.normal(size=3)
        far = away / np.linalg.norm(away) * draw.uniform(1.2, 1.5)
        place = draw.normal(size=3)
        yield np.concatenate([place, quarter[0], place + far, quarter[1]]), draw.normal(size=12)


def test_gaps_and_rates(program: Program) -> None:
    for q, v in states(20):
        gap, rate, reverse, _ = (np.asarray(x) for x in program.run(q, v))
        heights = placed(q[:7], CLOUD) @ NORMAL
        floor = gap[program.rows["floor"]]
        assert len(floor) == 8
        assert abs(np.min(floor) - np.min(heights)) < 1e-14
        heights = np.sort(placed(q[:7], TETRAHEDRON) @ NORMAL)
        assert np.max(np.abs(np.sort(gap[program.rows["tip"]]) - heights)) < 1e-14
        centre = placed(q[7:], [(0.0, 0.1, 0.0)])[0]
        asked = distance(placed(q[:7], CLOUD), centre) - RADIUS
        assert abs(gap[program.rows["ball"]][0] - asked) < 1e-9
        assert abs(gap[program.rows["cube"]][0] - distance(placed(q[:7], CUBE), q[7:10])) < 1e-9
        assert np.max(np.abs(rate - reverse)) < 1e-13
        wide = (program.anew(q, 1e-6 * v) - program.anew(q, -1e-6 * v)) / 2e-6
        alone = program.rows["ball"] | program.rows["cube"] | program.rows["tip"]
        assert np.max(np.abs(np.asarray(wide) - rate)[alone]) < 1e-7


@pytest.mark.parametrize(
    ("centre", "asked"),
    [
        ((0.1, 0.2, 0.8), 0.3),  # over the diagonal of a face
        ((0.0, 0.0, 0.8), 0.3), ((0.8, 0.9, 0.0), 0.5), ((0.5, 0.8, 0.9), 0.5), ((0.6, 0.7, 0.7), 0.3),
        ((0.5, 0.1, 0.2), 0.0), ((0.5, 0.5, 0.1), 0.0), ((0.5, 0.5, 0.5), 0.0),
        ((0.45, 0.1, -0.2), -0.05), ((0.0, 0.0, 0.0), -0.5), ((0.45, 0.45, 0.45), -0.05),
    ],
)  # fmt: skip
def test_faces_edges_and_vertices(program: Program, centre: Any, asked: float) -> None:
    q = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, *centre, 1.0, 0.0, 0.0, 0.0])
    found = [np.asarray(x) for x in program.run(q, np.ones(12))]
    assert abs(found[0][program.rows["cube"]][0] - asked) < 1e-14
    assert all(np.all(np.isfinite(x)) for x in found)


@pytest.mark.slow
def test_derivatives_of_a_run() -> None:
    """Height of a tetrahedron that strikes the floor with an edge, without turning, by its size: its centre
    is then at ``0.1 size``.
    """
    problem = assemble(
        massive("a"), contact("floor", hull("a", TETRAHEDRON), plane(), restitution=0.3, friction=0.4),
        gravity=(0.0, 0.0, -9.81), coordinates="absolute", start={"a": ((0.0, 0.0, 0.12), (0.1, 0.2, 0.3))},
    )  # fmt: skip
    first, steps, duration = problem.params["floor"].first.vertices, 600, 0.12

    def end(size: jax.Array) -> jax.Array:
        own = problem.params["floor"]
        wider = dataclasses.replace(own, first=dataclasses.replace(own.first, vertices=size * first))
        moved = dataclasses.replace(problem, params={**problem.params, "floor": wider})
        run = nsjax.simulate(*moved, schemes.moreau(), dt=duration / steps, steps=steps, every=steps)
        return run.q[-1, 2]

    def exact(size: jax.Array) -> jax.Array:
        t = (0.3 + jnp.sqrt(0.3**2 + 2.0 * 9.81 * (0.12 - 0.1 * size))) / 9.81
        left = duration - t
        return 0.1 * size + 0.3 * (9.81 * t - 0.3) * left - 0.5 * 9.81 * left**2

    one = jnp.ones(())
    forward = float(jax.jit(lambda x: jax.jvp(end, (x,), (one,))[1])(one))
    assert abs(forward - float(jax.jit(jax.grad(end))(one))) < 1e-10
    # of first order: 0.3 / steps was measured at 600 and 1200 steps
    assert abs(forward - float(jax.grad(exact)(one))) < 1.0 / steps


MESHES = """<mujoco><option gravity="0 0 -9.81"/>
<asset><mesh name="m" vertex="0 0 0  0.4 0 0  0 0.3 0  0 0 0.2  0.4 0.3 0.1"/></asset><worldbody>
<geom name="floor" type="plane" size="5 5 1" zaxis="0.1 0.2 1"/>
<body name="rock" pos="0.1 0.2 0.12" euler="20 -30 40"><freejoint name="free"/>
<geom name="skin" type="mesh" mesh="m"/></body></worldbody></mujoco>"""


def test_the_hull_of_a_mesh() -> None:
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(MESHES)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    model.geom_margin[:] = 1.0
    mujoco.mj_forward(model, data)
    asked = min(x.dist for x in data.contact)
    file = read_mjcf(MESHES)
    assert not any("mesh" in x for x in file.left_out)
    problem = file.problem()
    gap = problem.system.gap(0.0, problem.state.q, prepared(problem.system, problem.params))
    assert len(gap) == 5
    assert abs(float(jnp.min(gap)) - asked) < 1e-8
