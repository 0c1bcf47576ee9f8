"""Beams of incremental elements: their history in ``q``, forces, inertia, loads and sentences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.core import InputError
from nsjax.fem import carried, committed, incremental_strains, point_forces, point_strains, started
from nsjax.linalg import BlockTridiagonal
from nsjax.math import rotations
from nsjax.multibody import assemble, beam, circular, fixed, line_load
from tests.fem.cantilevers import arc

RNG = np.random.default_rng(5)
ROUND = circular(0.05, E=2.1e9, rho=7850.0)
STIFF = jnp.asarray([3.0, 2.0, 5.0, 1.0, 0.7, 0.4])


BOTH = [pytest.param(2, marks=pytest.mark.slow), 3]


def arm(per: int, **given):
    given = {"elements": 4 if per == 2 else 2, "section": ROUND, **given}
    return beam("arm", (0, 0, 0), (2, 0, 0), element="incremental", element_nodes=per, **given)


def ready(problem):
    return problem.system, problem.system.prepare(problem.params)


def moved(problem, size: float = 0.05):
    """The state after two increments of its own."""
    s, q = problem.system, problem.state.q
    for _ in range(2):
        q = jax.jit(s.retract)(q, jnp.asarray(RNG.normal(size=s.nv) * size))
    return q


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


@pytest.mark.parametrize("nodes", BOTH)
def test_damping_takes_the_energy_of_strain_rates(nodes: int) -> None:
    """Power of the forces of damping: ``-w tau rate . stiffness rate``, rates along the increments."""
    places, poses, points = element(nodes)
    drawn, rates = started(places, jnp.asarray([0.1, 0.0, 1.0])), jnp.asarray(RNG.normal(size=(nodes, 6)))
    push = [point_forces(poses, rates, points, drawn, STIFF, tau) for tau in (None, 0.2)]

    def strains(s):
        ahead = jax.vmap(rotations.move_pose)(poses, s * rates)
        return point_strains(ahead, carried(points, poses, s * rates), drawn)

    rate = jax.jvp(strains, (0.0,), (1.0,))[1]
    power = float(jnp.sum((push[1] - push[0]) * rates))
    wanted = -0.2 * float(jnp.sum(drawn.weight[:, None] * STIFF * rate**2))
    assert power == pytest.approx(wanted, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("per", BOTH)
def test_forces_are_those_of_the_potential(per: int) -> None:
    """Along increments from a state that was reached by others."""
    problem = assemble(arm(per, curvature=(0.1, 0.0, 0.2)), gravity=9.81)
    s, p = ready(problem)
    q = moved(problem)
    slope = jax.jit(jax.grad(lambda x: s.potential(0.0, s.retract(q, x), p)))(jnp.zeros(s.nv))
    found = jax.jit(s.force)(0.0, q, jnp.zeros(s.nv), p)
    np.testing.assert_allclose(found, -slope, atol=1e-9 * float(jnp.max(jnp.abs(slope))))


@pytest.mark.parametrize("per", BOTH)
def test_many_turns_leave_no_strain(per: int) -> None:
    """V7: ten turns about a skew axis in steps of 60 degrees, in which all nodes turn alike."""
    problem = assemble(arm(per))
    s, p = ready(problem)
    axis, centre = np.array([1.0, 2.0, 2.0]) / 3.0, np.array([0.3, -0.2, 1.0])
    turn = np.asarray(rotations.matrix(rotations.exponential(jnp.asarray(axis * np.pi / 3.0))))
    step, q = jax.jit(s.retract), problem.state.q
    for _ in range(60):
        poses = np.asarray(q[:35]).reshape(5, 7)
        own = np.asarray(jax.vmap(rotations.matrix)(jnp.asarray(poses[:, 3:])))
        gone = (poses[:, :3] - centre) @ (turn - np.eye(3)).T
        spins = np.einsum("nji,j->ni", own, axis * np.pi / 3.0)
        q = step(q, jnp.asarray(np.concatenate([gone, spins], axis=1).reshape(-1)))
    np.testing.assert_allclose(
        q[:35].reshape(5, 7)[:, :3], problem.state.q[:35].reshape(5, 7)[:, :3], atol=1e-13
    )
    # strains of rounding, asked: 1e-10, of stiffnesses up to 1.7e7
    assert float(s.potential(0.0, q, p)) < 0.5 * 2.0 * 1.7e7 * (1e-13) ** 2


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


@pytest.mark.parametrize("per", BOTH)
def test_resultants_of_a_load_along_a_beam(per: int) -> None:
    """``f = 1 + x`` on a length of 2: its force 4 and its moment 14/3 about the start, exactly."""
    values = np.outer(1.0 + np.linspace(0.0, 2.0, 5), (0.0, 1.0, 0.0))
    problem = assemble(arm(per), line_load("wind", "arm", values))
    s, p = ready(problem)
    push = np.asarray(jax.jit(s.force)(0.0, problem.state.q, jnp.zeros(s.nv), p)).reshape(5, 6)
    np.testing.assert_allclose(push[:, :3].sum(axis=0), (0.0, 4.0, 0.0), atol=1e-8)
    assert np.linspace(0.0, 2.0, 5) @ push[:, 1] == pytest.approx(14.0 / 3.0, abs=1e-8)
    # quadratic shapes: 1/6, 4/6, 1/6 of an element's length where the load is even
    middle = 4.0 / 6.0 * 1.5 if per == 3 else 0.5 * 1.5
    assert push[1, 1] == pytest.approx(middle, abs=1e-8)


@pytest.mark.parametrize("per", [3])
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


@pytest.mark.slow
def test_names_and_sizes() -> None:
    problem = assemble(arm(3), beam("leg", (2, 0, 0), (4, 0, 0), elements=2, section=ROUND),
                       fixed("weld", "arm.end", "leg.start"))  # fmt: skip
    s = problem.system
    assert (s.nq, s.nv) == (7 * 8 + 7 * 4, 48)
    assert s.labels.q[55:58] == ("leg.2.qz", "arm.gauss0.qw", "arm.gauss0.qx")
    assert s.labels.q[-1] == "arm.gauss3.bend3 [rad]"
    assert s.structure == BlockTridiagonal(12)
    q0, xi = problem.state.q, jnp.asarray(RNG.normal(size=48) * 0.1)
    np.testing.assert_allclose(jax.jit(lambda x: s.difference(q0, s.retract(q0, x)))(xi), xi, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: beam("arm", (0, 0, 0), (2, 0, 0), elements=1, section=ROUND, element="exact"),
         "element = 'exact'; choose one of objective, incremental"),
        (lambda: arm(4), ": element_nodes = 4 .* elements; give 2, or 3"),
        (lambda: beam("arm", (0, 0, 0), (2, 0, 0), elements=1, section=ROUND, element_nodes=3),
         "element_nodes = 3 of objective elements; give 2, or 3 of incremental"),
        (lambda: arm(3, stations={"near": 0.1}), "6 nodes in elements of three; give an odd number"),
        (lambda: beam("arm", [(0, 0, 0), (0.2, 0, 0), (1, 0, 0)], section=ROUND, element="incremental",
                      element_nodes=3), "the middle node 1 lies at 0.2 of its element"),
    ],
)  # fmt: skip
def test_sentences(make, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()
