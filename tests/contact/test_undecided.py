"""What is undecided to rounding is decided alike in every program: derivatives do not hang on it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.contact import Bounded, ContactProblem, GivenForces, RowGroup, RowGroups, solve

DRAWS = 60
MASS = np.diag([1.3, 0.8])


def answer(data, nt: int):
    """Impulses and velocity of a mass on a floor (``y``), at a wall (``x``) and in a guide (``x``) whose
    friction has a bound: rows of the floor, the wall and the guide.
    """
    free, bound, grip = data
    rows = np.zeros((3, 1 + nt, 2))
    rows[0, 0], rows[1, 0] = [0.0, 1.0], [-1.0, 0.0]
    rows[0, 1:, 0], rows[1, 1:, 1], rows[2, 1:2, 0] = 1.0, 1.0, 1.0
    w = np.concatenate([rows[:2].reshape(-1, 2), rows[2, 1:2]])
    problem = ContactProblem(
        rows=RowGroups.of(2, nt, bounded=RowGroup(Bounded(), 1)),
        delassus=jnp.asarray(w @ np.linalg.inv(MASS) @ w.T), free=w @ free,
        friction=jnp.stack([grip, grip, 1.0]), mask=jnp.ones(3, bool),
        given=GivenForces(normal=jnp.where(np.arange(3) == 2, bound, 0.0)),
    )  # fmt: skip
    x = solve(problem).x
    return x, free + np.linalg.inv(MASS) @ w.T @ x


@pytest.mark.slow
@pytest.mark.parametrize("nt", [1, 2])
def test_derivatives_without_load_or_bound(nt: int) -> None:
    """Nothing pushes along the wall's normal: velocities there are rounding, of either sign. The wall is
    then open, and friction of a bound of zero has no direction.
    """
    rng = np.random.default_rng(nt)
    both = jax.jit(lambda data, change: jax.jvp(lambda d: answer(d, nt), (data,), (change,)))
    for draw in range(DRAWS):
        held = draw % 2 == 0
        bound = rng.uniform(0.1, 1.0) if held else 0.0
        grip = 0.0 if draw % 3 else rng.uniform(0.1, 0.5)
        down = rng.uniform(0.05, 0.5)
        change = (rng.normal(size=2), rng.normal(), rng.normal())
        found = []
        for noise in (0.0, 1e-17, -1e-17, 3e-16 * down, -3e-16 * down):
            data = np.array([noise, -down]), bound, grip
            found.append(both(data, change))
        (x, v), (dx, dv) = found[0]
        assert np.abs(v).max() < 1e-12
        for (y, u), (dy, du) in found:
            np.testing.assert_allclose(y, x, atol=1e-12)
            np.testing.assert_allclose(u, v, atol=1e-12)
            np.testing.assert_allclose(dy, dx, atol=1e-8)
            np.testing.assert_allclose(du, dv, atol=1e-8)
        # held by the guide, or free to move where nothing holds it
        sticks = held or grip > 0.0
        assert abs(dv[0] - (0.0 if sticks else change[0][0])) < 1e-8, draw
        assert abs(dv[1]) < 1e-8, draw


@pytest.mark.slow
def test_a_face_that_slides_and_turns() -> None:
    """Four corners of a box share its weight in more than one way. Where it slides and turns at once, each
    share has another friction torque: two answers fulfil all laws, with different velocities. Where it
    slides alone they have the same.
    """
    lengths, height, mass, inertia, friction = (0.1, 0.05), 0.05, 2.0, 0.01, 0.3
    corners = np.array([(sx * lengths[0], sy * lengths[1], -height) for sx in (1, -1) for sy in (1, -1)])
    axes = np.eye(3)[[2, 0, 1]]  # up, and along the floor
    rows = np.vstack([np.hstack([axes, np.cross(r, axes)]) for r in corners])
    response = np.linalg.inv(np.diag([mass] * 3 + [inertia] * 3)) @ rows.T
    twist = np.array([1.0, -1.0, -1.0, 1.0])  # pushes no way and turns no way

    def both(spin: float) -> tuple[np.ndarray, np.ndarray]:
        free = np.array([0.7, 0.2, -0.01, 0.0, 0.0, spin])
        problem = ContactProblem(
            rows=RowGroups.of(4, 2), delassus=jnp.asarray(rows @ response), free=jnp.asarray(rows @ free),
            friction=jnp.full(4, friction), mask=jnp.ones(4, bool),
        )  # fmt: skip
        first = solve(problem)
        force = np.array(first.x).reshape(4, 3)
        other = force * (1.0 + 0.2 * twist * np.min(force[:, 0]) / force[:, 0])[:, None]
        second = solve(problem, start=jnp.asarray(other.reshape(-1)))
        assert first.residual <= 1e-11
        assert second.residual <= 1e-11
        assert np.max(np.abs(second.x - first.x)) > 0.05 * np.max(force)
        assert np.min(np.asarray(second.x).reshape(4, 3)[:, 0]) > 0.0
        return free + response @ np.asarray(first.x), free + response @ np.asarray(second.x)

    one, other = both(0.16)
    assert np.max(np.abs(one[[2, 3, 4]])) < 1e-10
    assert np.max(np.abs(other[[2, 3, 4]])) < 1e-10
    assert np.max(np.abs(one - other)) > 1e-6
    one, other = both(0.0)
    np.testing.assert_allclose(one, other, atol=1e-10)
