"""Beams as parts: sections, sentences, inertia, forces, starts and contacts of their nodes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.linalg import BlockTridiagonal, Dense
from nsjax.math import rotations
from nsjax.multibody import (
    assemble,
    beam,
    body,
    circular,
    contact,
    force,
    plane,
    rectangular,
    sphere,
    spring,
)

ROUND = circular(0.05, E=2.1e9, rho=7850.0)


def arm(**given):
    return beam("arm", (0, 0, 0), (2, 0, 0), **{"elements": 4, "section": ROUND, **given})


def test_sections_of_closed_forms() -> None:
    G = 2.1e9 / 2.6
    assert pytest.approx(np.pi * 0.05**2 * 2.1e9) == ROUND.EA
    assert pytest.approx(np.pi / 2 * 0.05**4 * G) == ROUND.GJ
    square = rectangular(0.02, 0.02, E=2e11, nu=0.25)
    assert pytest.approx(0.1405770 * 0.02**4 * 8e10, rel=1e-5) == square.GJ  # Timoshenko's table: 0.1406
    flat = rectangular(0.03, 0.01, E=2e11, nu=0.25)
    np.testing.assert_allclose(flat.EI, 2e11 / 12 * np.array([0.03 * 0.01**3, 0.01 * 0.03**3]))
    assert pytest.approx(0.2633 * 0.03 * 0.01**3 * 8e10, rel=2e-4) == flat.GJ  # the same table: 0.263


def test_springs_between_neighbours_keep_the_chain() -> None:
    other = body("weight", mass=1.0, inertia=(1.0, 1.0, 1.0))
    near = spring("leg", "arm.end", "weight", stiffness=1.0)
    far = spring("leg", "arm.start", "weight", stiffness=1.0)
    start = {"weight": ((3.0, 0.0, 0.0), (0.0, 0.0, 0.0))}
    assert assemble(arm(), other, near, start=start).system.structure == BlockTridiagonal(6)
    assert assemble(arm(), other, far, start=start).system.structure == Dense()


def test_a_beam_moved_as_a_whole() -> None:
    """Place, turn and velocity of a beam are those of a rigid body drawn with it."""
    turn, w = np.array([0.0, 0.0, np.pi / 2]), np.array([0.0, 0.0, 2.0])
    problem = assemble(arm(), start={"arm": (((1.0, 0.0, 0.0), turn), (*[0.0] * 3, *w))})
    q, v = problem.state.q.reshape(-1, 7), problem.state.v.reshape(-1, 6)
    np.testing.assert_allclose(q[-1, :3], (1.0, 2.0, 0.0), atol=1e-15)
    np.testing.assert_allclose(v[-1, :3], (-4.0, 0.0, 0.0), atol=1e-15)
    s, p = problem.system, problem.system.prepare(problem.params)
    assert float(s.potential(0.0, problem.state.q, p)) < 1e-20
    assert np.allclose(rotations.matrix(jnp.asarray(q[0, 3:])) @ w, w)


def test_contacts_of_all_nodes() -> None:
    problem = assemble(
        arm(), contact("floor", sphere("arm", 0.05), plane(at=(0.0, 0.0, -0.3)), friction=0.2),
        start={"arm": (((0.0, 0.0, 0.0), (0.0, 0.1, 0.0)), (1.0, 0, 0, 0, 0, 0))},
    )  # fmt: skip
    s, p = problem.system, problem.system.prepare(problem.params)
    assert (s.nc, s.nt) == (5, 2)
    q, v = problem.state.q, problem.state.v
    np.testing.assert_allclose(s.gap(0.0, q, p), 0.25 - np.linspace(0, 2, 5) * np.sin(0.1), atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(s.slip(0.0, q, v, p), axis=1), 1.0, rtol=1e-14)


@pytest.mark.slow
def test_force_beside_the_axis() -> None:
    """A force at a point off the axis has a moment about the node, in the axes of the node."""
    end = ("arm.end", (0.0, 0.1, 0.0))
    loaded = assemble(arm(), force("f", end, (1.0, 0.0, 0.0)))
    s, p = loaded.system, loaded.system.prepare(loaded.params)
    push = np.asarray(jax.jit(s.force)(0.0, loaded.state.q, loaded.state.v, p)).reshape(-1, 6)
    np.testing.assert_allclose(push[-1], (1.0, 0.0, 0.0, 0.0, 0.0, -0.1), atol=1e-12)


@pytest.mark.slow
def test_contacts_of_all_nodes_of_several_beams() -> None:
    """As many beams alike as rigid bodies whose contacts are evaluated at once."""
    heights = (0.0, 0.1, 0.2, 0.3, 0.4)
    beams = [
        beam(f"arm{k}", (0, 0, h), (2, 0, h), elements=4, section=ROUND) for k, h in enumerate(heights)
    ]
    floor = plane(at=(0.0, 0.0, -0.3))
    touching = [contact(f"floor{k}", sphere(f"arm{k}", 0.05), floor) for k in range(len(beams))]
    problem = assemble(*beams, *touching)
    s, p = problem.system, problem.system.prepare(problem.params)
    gaps = np.asarray(s.gap(0.0, problem.state.q, p)).reshape(5, 5)
    np.testing.assert_allclose(gaps, np.repeat(np.add(heights, 0.25)[:, None], 5, axis=1), atol=1e-14)
