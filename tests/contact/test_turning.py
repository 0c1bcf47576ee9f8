"""Contacts that stop sliding in space while other rows hold them across: their friction resists to turning
by ``mu x_N / |u|``, and its row becomes one that depends on the others.
"""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from nsjax.contact import ContactProblem, RowGroups
from nsjax.contact.solvers import newton_step

SPEEDS = 10.0 ** -np.arange(2.0, 17.0)


@jax.jit
def pushed(problem, x, change):
    """Impulses' derivative along a change of the free velocities, and their reverse product with it."""
    step = newton_step(problem, x)

    def answer(free):
        return step(dataclasses.replace(problem, free=free))

    _, push = jax.linearize(answer, problem.free)
    return push(change), jax.linear_transpose(push, change)(change)[0]


@pytest.mark.parametrize("seed", range(20))
def test_the_motion_is_that_of_a_contact_that_is_guided(seed: int) -> None:
    """A guide holds the contact across its sliding, every other one with a part of the normal as well: the
    sliding then does not turn at any speed. A change of the rate across that is not one of the motion (that
    of restitution) makes forces, which move nothing if the guide takes them up alone.
    """
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(3, 3))
    inverse_mass = np.linalg.inv(a @ a.T + np.eye(3))
    mu, angle = rng.uniform(0.1, 0.6), rng.uniform(0.0, 2.0 * np.pi)
    along = np.array([np.cos(angle), np.sin(angle)])
    across = np.array([-along[1], along[0]])
    wt = np.vstack([np.eye(3), [rng.normal() if seed % 2 else 0.0, *across]])
    g, normal = wt @ inverse_mass @ wt.T, rng.uniform(0.5, 2.0)
    x = np.array([normal, *(-mu * normal * along), rng.normal()])
    moves = rng.normal(size=3)
    change, aside = wt @ moves, np.concatenate([[0.0], rng.normal() * across, [0.0]])
    # sliding along a fixed direction: u_N = u_B = 0, x_T = -mu x_N along
    push = np.array([np.array([1.0, *(-mu * along), 0.0]), [0.0, 0.0, 0.0, 1.0]]).T
    held = wt[[0, 3]]
    y = np.linalg.solve(held @ inverse_mass @ wt.T @ push, -held @ moves)
    wanted = moves + inverse_mass @ wt.T @ push @ y
    for speed in SPEEDS:
        u = np.array([0.0, *(speed * along), 0.0])
        problem = ContactProblem(
            rows=RowGroups.of(1, 2, 1), delassus=g, free=u - g @ x, friction=np.array([mu]),
            mask=np.array([True]),
        )  # fmt: skip
        for d in (change, change + aside):
            dx, back = (np.asarray(z) for z in pushed(problem, x, d))
            off = np.abs(moves + inverse_mass @ wt.T @ dx - wanted).max()
            # 1e-9 and 1e-10: rounding over what is left of a row across, which is no less than 1e-5
            if d is change or seed % 2 == 0:
                assert off <= 1e-9, (speed, off)
            assert abs(dx @ d - back @ d) <= 1e-10 * (np.abs(dx * d).sum() + np.abs(back * d).sum())
