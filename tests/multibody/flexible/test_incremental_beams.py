"""Beams of incremental elements: their history in ``q``, forces, inertia, loads and sentences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.fem import carried, committed, incremental_strains, point_strains, started
from nsjax.linalg import BlockTridiagonal
from nsjax.math import rotations
from nsjax.multibody import assemble, beam, circular
from tests.design import slow_but
from tests.fem.cantilevers import arc

RNG = np.random.default_rng(5)
ROUND = circular(0.05, E=2.1e9, rho=7850.0)


BOTH = [pytest.param(2, marks=pytest.mark.slow), 3]


def arm(per: int, **given):
    given = {"elements": 4 if per == 2 else 2, "section": ROUND, **given}
    return beam("arm", (0, 0, 0), (2, 0, 0), element="incremental", element_nodes=per, **given)


def ready(problem):
    return problem.system, problem.system.prepare(problem.params)


def element(nodes: int):
    """Places of a bent element, its poses turned anyhow, Gauss points at rest, increments."""
    places = jnp.asarray(arc(nodes - 1, radius=2.0, angle=0.4))
    poses = jnp.concatenate([places, jnp.tile(jnp.asarray([1.0, 0, 0, 0]), (nodes, 1))], axis=1)
    rest = jnp.tile(jnp.asarray([1.0, 0, 0, 0, 0, 0, 0]), (nodes - 1, 1))
    return places, poses, rest


@pytest.mark.slow
@pytest.mark.parametrize("nodes", BOTH)
def test_the_history_is_that_of_the_paper(nodes: int) -> None:
    """Three increments: axes, curvatures and strains of the Gauss points are those of `committed`, which
    takes Rodrigues vectors in the axes of the ground.
    """
    places, poses, points = element(nodes)
    drawn = started(places, jnp.asarray([0.1, 0.0, 1.0]))
    history = drawn
    for _ in range(3):
        turns, gone = RNG.normal(size=(nodes, 3)) * 0.3, RNG.normal(size=(nodes, 3)) * 0.1
        alphas = [2.0 * np.tan(np.linalg.norm(w) / 2.0) / np.linalg.norm(w) * w for w in turns]
        spatial = [rotations.matrix(p[3:]) @ a for p, a in zip(poses, alphas, strict=True)]
        steps = jnp.asarray(np.concatenate([gone, np.array(spatial)], axis=1))
        history = jax.jit(committed)(places, steps, history)
        xi = jnp.asarray(np.concatenate([gone, turns], axis=1))
        points = jax.jit(carried)(points, poses, xi)
        poses, places = jax.vmap(rotations.move_pose)(poses, xi), places + gone
    axes = jax.vmap(rotations.matrix)(points[:, :4]) @ drawn.axes
    np.testing.assert_allclose(axes, history.axes, atol=1e-14)
    wanted = incremental_strains(places, jnp.zeros((nodes, 6)), history)
    np.testing.assert_allclose(point_strains(poses, points, drawn), wanted, atol=1e-13)
    assert float(jnp.max(jnp.abs(wanted))) > 0.1


@pytest.mark.parametrize("per", [2, 3])
def test_inertia_of_a_free_beam(per: int) -> None:
    """Consistent mass: that of a rigid rod for rigid motions; of quadratic shapes also for a velocity that
    grows with the square of the place, ``rho A L^5 / 5 / 2``.
    """
    problem = assemble(arm(per))
    s, p = ready(problem)
    mass, length, x = float(ROUND.line_mass) * 2.0, 2.0, np.linspace(0.0, 2.0, 5)

    def energy(across, spin):
        v = np.zeros((5, 6))
        v[:, 1], v[:, 5] = across, spin
        return 0.5 * v.reshape(-1) @ np.asarray(s.inertia(problem.state.q, v.reshape(-1), p))

    rotary = float(ROUND.line_inertia) * length
    assert energy(1.0, 0.0) == pytest.approx(0.5 * mass, rel=1e-14)
    assert energy(x, 1.0) == pytest.approx(0.5 * (mass * length**2 / 3.0 + rotary), rel=1e-14)
    exact = 0.5 * mass * length**4 / 5.0
    # linear shapes between the places of a parabola lie above it: by 3.6 % in the energy of four
    assert energy(x**2, 0.0) == pytest.approx(exact, rel=1e-14 if per == 3 else 0.06)
    assert s.structure == (BlockTridiagonal(6) if per == 2 else BlockTridiagonal(12, lacking=6))


@pytest.mark.parametrize("per", slow_but([2, 3], 3))
def test_starts(per: int) -> None:
    """Moved as a whole there is no strain; nodes given on a circle have its curvature at once."""
    turn, radius = np.array([0.0, 0.0, 2.5]), 5.0
    turned = assemble(arm(per), start={"arm": (((1.0, 0.0, 0.0), turn), None)})
    s, p = ready(turned)
    assert float(s.potential(0.0, turned.state.q, p)) < 1e-15
    angles = np.linspace(0.0, 2.0, 5) / radius
    nodes = {
        f"arm.{k}": (((radius * np.sin(a), radius - radius * np.cos(a), 0.0), (0.0, 0.0, a)), None)
        for k, a in enumerate(angles)
    }
    bent = assemble(arm(per), start=nodes)
    bend = np.asarray(bent.state.q[35:]).reshape(-1, 7)[:, 4:]
    size = 0.25 if per == 2 else 0.5  # |dx / dxi|
    # 2 tan(a / 2) of half an element's turn, 0.05 and 0.1: a (1 + a^2 / 12)
    np.testing.assert_allclose(
        bend / size, np.tile((0.0, 0.0, 1.0 / radius), (4, 1)), rtol=1e-3, atol=1e-15
    )
