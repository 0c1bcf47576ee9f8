"""Shapes that are not convex as unions of convex pieces: an L, a cup and a ring, also from files."""

from __future__ import annotations

import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import ConvexHull

import nsjax
from nsjax import schemes
from nsjax.core.operators import prepared, refreshed
from nsjax.multibody import (
    LeftOutWarning,
    assemble,
    body,
    contact,
    convex_pieces,
    hull,
    plane,
    read_mjcf,
    sphere,
)
from nsjax.multibody.contacts.shape_parts import volume
from tests.design import slow_but
from tests.multibody.contacts.hollow_solids import CUP, RING, L

pytest.importorskip("coacd", reason="the package coacd is not installed")


FILES = {"L": (L, 2), "cup": (CUP, 3), "ring": (RING, 14)}


@pytest.mark.parametrize("name", slow_but(FILES, "L"))
def test_pieces_fill_the_surface(name: str) -> None:
    """Their volumes add up to that of the surface, of which they hold a fraction of the hull's hollow."""
    (points, faces), most = FILES[name]
    found = convex_pieces("a", points, faces)
    assert 1 < len(found) <= most
    own, whole = volume(points, faces), ConvexHull(points).volume
    filled = sum(ConvexHull(x.numbers.vertices).volume for x in found)
    assert abs(filled - own) < 0.1 * (whole - own)
    assert convex_pieces("a", points, faces)[0].numbers.vertices is not None
    one = convex_pieces("a", points, faces, most=1)
    assert len(one) == 1
    assert ConvexHull(one[0].numbers.vertices).volume == pytest.approx(whole, rel=1e-2)


def gap(shapes: Any, at: Any) -> float:
    """Least gap of a ball of radius 0.1 at a place, with shapes of the ground."""
    problem = assemble(
        body("ball", mass=1.0, inertia=(0.004,) * 3),
        *(contact(f"c{k}", sphere("ball", 0.1), x) for k, x in enumerate(shapes)),
        gravity=9.81, start={"ball": at},
    )  # fmt: skip
    system, q = problem.system, jnp.asarray(problem.state.q)
    t, p = jnp.zeros(()), prepared(system, problem.params)
    return float(jnp.min(system.gap(t, q, refreshed(system, t, q, p))))


@pytest.mark.slow
def test_gaps_are_those_of_the_surface() -> None:
    """In the hollow of the cup and in the hole of the ring, where their hulls are full."""
    for (points, faces), at, wanted in ((CUP, (1.5, 1.4, 0.5), 0.3), (RING, (0.0, 0.0, 0.2), 0.395)):
        found = gap(convex_pieces("ground", points, faces), at)
        assert wanted - 0.05 < found < wanted + 5e-3  # within the concavity; the ring's hole has 24 edges
        assert gap([hull("ground", points)], at) < 0.0


CUP_FILE = (
    "<mujoco><asset><mesh name='cup' vertex='{}' face='{}'/></asset><worldbody>"
    "<geom name='cup' type='mesh' mesh='cup' euler='90 0 0' pos='0 0 0'/>"
    "<body name='ball' pos='{}'><freejoint/><geom name='ball' size='0.08' mass='1'/></body></worldbody>"
    "</mujoco>"
)  # fmt: skip


def written(at: Any) -> str:
    points, faces = CUP
    vertices, triangles = (" ".join(map(str, x.ravel().tolist())) for x in (0.2 * points, faces))
    return CUP_FILE.format(vertices, triangles, " ".join(map(str, at)))


@pytest.mark.slow
def test_a_ball_falls_into_a_cup_of_a_file() -> None:
    """And rests on its floor; on the hull it lies on the rim. The file says that its hollow is filled."""
    pytest.importorskip("mujoco", reason="the package mujoco is not installed")
    ends = []
    for concavity in (0.05, None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LeftOutWarning)
            file = read_mjcf(written((0.3, -0.1, 0.5)), concavity=concavity)
        assert any("touch as their hulls" in x for x in file.left_out) == (concavity is None)
        run = nsjax.simulate(*file.problem(), schemes.moreau(), dt=2e-3, steps=300)
        run.raise_for_status()
        ends.append(np.asarray(run.body("ball").position[-1]))
    with_hollow, filled = ends
    assert with_hollow[2] == pytest.approx(0.28, abs=5e-3)
    assert filled[2] == pytest.approx(0.48, abs=5e-3)


@pytest.mark.slow
def test_a_cup_stands_on_its_floor() -> None:
    """With a ball in it: what carries both is the floor."""
    points, faces = CUP
    shapes = convex_pieces("cup", 0.2 * points[:, [2, 0, 1]], faces)
    problem = assemble(
        body("cup", mass=2.0, inertia=(0.05, 0.05, 0.05), com=(0.1, 0.3, 0.15), shape=shapes),
        body("ball", mass=1.0, inertia=(0.004,) * 3),
        *(contact(f"floor{k}", x, plane(), friction=0.5) for k, x in enumerate(shapes)),
        *(contact(f"in{k}", sphere("ball", 0.08), x, friction=0.5) for k, x in enumerate(shapes)),
        gravity=9.81, start={"ball": (0.1, 0.3, 0.3)},
    )  # fmt: skip
    run = nsjax.simulate(*problem, schemes.moreau(), dt=2e-3, steps=150)
    run.raise_for_status()
    assert float(run.body("ball").position[-1][2]) == pytest.approx(0.28, abs=2e-3)
    floor = sum(float(np.sum(run.contacts(f"floor{k}").impulse[-1][..., 0])) for k in range(len(shapes)))
    assert floor == pytest.approx(3.0 * 9.81 * 2e-3, rel=0.05)
