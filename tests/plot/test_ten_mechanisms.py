"""Pictures of ten mechanisms: bodies reach their joints, and springs, stops and supports are drawn."""

from __future__ import annotations

import dataclasses
import warnings

import jax
import numpy as np
import pytest
from scipy.spatial import ConvexHull

from nsjax import Problem
from nsjax import multibody as mb
from nsjax.core.operators import prepared
from nsjax.motion import Motion, MovedShape, motion
from nsjax.multibody import LeftOutWarning
from tests.design import slow_but
from tests.plot.coasting import coasting
from tests.plot.ten_mechanisms import FROM_FILES, PLANE_OR_SPACE, mechanism

NEAR = 0.08
"""Largest distance of a joint on the ground from its support or rail, as a share of the diagonal."""


QUICK = ("rope and belt",)


@pytest.fixture(scope="module", params=slow_but([*PLANE_OR_SPACE, *FROM_FILES], *QUICK))
def drawn(request, tmp_path_factory) -> tuple[Problem, Motion, dict]:
    """A mechanism, its picture, and the joint points of its parts by (part, body)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        problem = mechanism(request.param, tmp_path_factory.mktemp("files"))
    made, params = problem.system.parts, problem.params

    def places(q, p):
        scene = made.scene(0.0, q, None, prepared(problem.system, p))
        held = [x for x in made.topology.parts if x.kind != "rolling" and hasattr(p.get(x.name), "on")]
        return {
            (x.name, body): scene.position(body, at)
            for x in held
            if len(x.bodies) == 2
            for body, at in zip(x.bodies, (p[x.name].at, p[x.name].on), strict=True)
        }

    found = jax.tree.map(np.asarray, jax.jit(places)(np.asarray(problem.state.q), params))
    return problem, motion(problem, coasting(problem, rows=2)), found


def distance(x: MovedShape, point: np.ndarray) -> float:
    """Distance of a point from a convex area or solid (zero within it), from a line, or from points."""
    points = x.world[0]
    if x.kind in ("area", "mesh"):
        faces = ConvexHull(points).equations
        if np.max(faces[:, :-1] @ point + faces[:, -1]) <= 0.0:
            return 0.0
    if x.kind == "dots" or len(points) < 2:
        return float(np.min(np.linalg.norm(points - point, axis=1)))
    start, gone = points[:-1], np.diff(points, axis=0)
    square = np.sum(gone * gone, axis=1)
    share = np.sum((point - start) * gone, axis=1) / np.where(square > 0.0, square, 1.0)
    nearest = start + np.clip(share, 0.0, 1.0)[:, None] * gone
    return float(np.nanmin(np.linalg.norm(nearest - point, axis=1)))


def test_every_joint_point_lies_on_both_bodies(drawn) -> None:
    problem, seen, places = drawn
    joints = {x.name for x in problem.system.parts.topology.joints}
    for (name, body), point in places.items():
        if name not in joints:
            continue
        if body == "ground":
            own = [x for x in seen.shapes if x.role == "ground" and x.name.startswith(name)]
            assert own, name
            assert min(distance(x, point) for x in own) < NEAR * seen.size
        elif not body.startswith("arm."):  # nodes of the beam
            own = [x for x in seen.shapes if x.name == body and x.kind in ("area", "mesh", "line")]
            assert own, (name, body)
            assert min(distance(x, point) for x in own) < 1e-9 * seen.size, (name, body)


def test_every_spring_ends_at_its_bodies_and_every_stop_is_drawn(drawn) -> None:
    problem, seen, places = drawn
    topology, params = problem.system.parts.topology, problem.params
    names = {x.name for x in seen.shapes}
    for part in topology.loads:
        assert part.name in names
        if part.kind == "spring":
            coil = next(x for x in seen.shapes if (x.name, x.role) == (part.name, "spring"))
            for body in part.bodies:
                gone = np.linalg.norm(coil.world[0] - places[part.name, body], axis=1)
                assert np.nanmin(gone) < 1e-9 * seen.size, (part.name, body)
    for joint in topology.joints:
        x = params[joint.name]
        if joint.kind == "hinge" and (x.lower is not None or x.upper is not None):
            assert f"{joint.name} stops" in names


def test_a_bearing_with_clearance_is_where_the_coupler_ends() -> None:
    problem = mechanism("four-bar", None)
    seen = motion(problem, coasting(problem, rows=2))
    ring = next(x for x in seen.shapes if (x.name, x.kind) == ("coupler", "line")).world[0]
    link = next(x for x in seen.shapes if (x.name, x.kind) == ("coupler", "area"))
    assert max(distance(link, point) for point in ring) == 0.0
    journal = next(x for x in seen.shapes if x.name == "rocker" and len(x.world[0]) > 49).world[0]
    gap = 0.01 - 0.0099
    assert np.linalg.norm(ring[:-1].mean(axis=0) - journal[-2]) < gap + 2e-4


def test_the_block_of_an_impact_damper_meets_its_stops_at_the_limits() -> None:
    """The faces of frame and block coincide where the displacement is at its limit."""
    problem = PLANE_OR_SPACE["impact damper"]()
    for limit in (-0.02, 0.02):
        q = np.array([0.01, limit])
        traj = dataclasses.replace(coasting(problem, rows=2), q=np.stack([q, q]))
        seen = motion(problem, traj)
        frame, block = (
            next(x for x in seen.shapes if (x.name, x.kind) == (name, "area")).world[0]
            for name in ("table", "ball")
        )
        side = np.max if limit > 0 else np.min
        assert side(frame[:, 0]) == pytest.approx(side(block[:, 0]), abs=1e-12)


def test_a_body_has_the_shape_that_it_is_given() -> None:
    """An L of two plates in place of a link; its mass and motion are those of the body without it."""
    plates = [mb.box("arm", 0.2, 0.02, at=(0.2, 0.0)), mb.box("arm", 0.02, 0.1, at=(0.4, 0.1))]
    bare = mb.assemble(mb.body("arm", mass=1.0, inertia=0.1, com=0.2), mb.hinge("pin", "ground", "arm"))
    problem = mb.assemble(
        mb.body("arm", mass=1.0, inertia=0.1, com=0.2, shape=plates), mb.hinge("pin", "ground", "arm")
    )
    seen = motion(problem, coasting(problem, rows=2))
    areas = [x.world[0] for x in seen.shapes if x.name == "arm"]
    np.testing.assert_allclose([np.ptp(x, axis=0) for x in areas], [[0.4, 0.04], [0.04, 0.2]], rtol=1e-12)
    found = [jax.jit(x.system.mass)(x.state.q, x.params) for x in (bare, problem)]
    np.testing.assert_array_equal(*found)


def cross_slides(mass: float) -> Problem:
    """A plate on two slides and a hinge, with a body between each two."""
    return mb.assemble(
        mb.body("x", mass=mass), mb.body("y", mass=mass), mb.body("plate", mass=1.0, inertia=0.02),
        mb.slide("along", "ground", "x"), mb.slide("up", "x", "y", axis=(0.0, 1.0)),
        mb.hinge("turn", "y", "plate"),
        mb.contact("edge", mb.box("plate", 0.4, 0.2), mb.plane(at=(0.0, -1.0))),
    )  # fmt: skip


def test_bodies_without_mass_are_parts_of_their_joints() -> None:
    """Their blocks are smaller and no bodies of the picture; the place is that of the joint."""
    seen = [motion(x, coasting(x, rows=2)) for x in (cross_slides(0.0), cross_slides(0.1))]
    roles = [{x.name: x.role for x in each.shapes if x.name in ("x", "y")} for each in seen]
    assert roles == [{"x": "joint", "y": "joint"}, {"x": "body", "y": "body"}]
    small, large = (next(x.world[0] for x in each.shapes if x.name == "y") for each in seen)
    np.testing.assert_allclose(np.ptp(small, axis=0) / np.ptp(large, axis=0), 0.6, rtol=0.1)
    np.testing.assert_allclose(small[:-1].mean(axis=0), large[:-1].mean(axis=0), atol=1e-9)


def spiral(problem: Problem, q: np.ndarray | None = None) -> float:
    """Width of the spiral of the first joint [m]."""
    traj = coasting(problem, rows=2)
    seen = motion(problem, traj if q is None else dataclasses.replace(traj, q=q))
    return float(np.ptp(next(x for x in seen.shapes if x.name == "torsion0").world[0][:, 0]))


def arms(count: int, free: bool = False) -> Problem:
    """Pendulums side by side, with springs in their joints; free: on a trunk that moves freely."""
    trunk = [mb.body("trunk", mass=1.0, inertia=1.0, shape=mb.box("trunk", 1.0, 0.05))] if free else []
    base = "trunk" if free else "ground"
    return mb.assemble(
        *trunk,
        *(mb.body(f"arm{k}", mass=1.0, inertia=0.1, com=0.5) for k in range(count)),
        *(mb.hinge(f"pin{k}", base, f"arm{k}", at=(k / max(1, count - 1), 0.0)) for k in range(count)),
        *(mb.joint_spring(f"torsion{k}", f"pin{k}", stiffness=1.0) for k in range(count)),
    )  # fmt: skip


def test_symbols_are_smaller_where_there_are_many() -> None:
    """Sixteen joints in place of four, in a picture of the same width: half the size."""
    assert spiral(arms(16)) == pytest.approx(0.5 * spiral(arms(4)), rel=0.15)


def test_symbols_of_a_robot_that_walks_far_follow_the_robot() -> None:
    """Over a hundred metres they have at most 2.5 times the size that they have where it stands."""
    robot = arms(2, free=True)
    here = np.tile(np.asarray(robot.state.q), (2, 1))
    far = here + np.array([[0.0, 0, 0, 0, 0], [100.0, 0, 0, 0, 0]])
    assert spiral(robot, far) == pytest.approx(2.5 * spiral(robot, here), rel=0.1)
