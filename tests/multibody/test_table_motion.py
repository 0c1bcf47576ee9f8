"""Joints that follow a table: force, acceleration and multiplier are those of one motion."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, body, fixed, slide, spring
from nsjax.multibody.parts import lacks_acceleration

SLOW = pytest.mark.slow
MASS, DT, STEPS = 2.0, 2e-3, 150
TIMES = np.linspace(0.0, 0.4, 41)
TABLE = 0.05 * np.sin(2.0 * np.pi * 3.0 * TIMES) ** 3


def table(t):
    """Straight between points that are five steps apart."""
    return jnp.interp(t, TIMES, TABLE)


def curve(t):
    return 0.05 * jnp.sin(2.0 * jnp.pi * 3.0 * t) ** 3


def along(t):
    return jnp.stack([table(t), 0.0 * t]), 0.0 * t


def driven(kind: str, motion) -> nsjax.Problem:
    """A cart that follows the motion, and a spring that pulls at it."""
    joint = (
        fixed("drive", "ground", "cart", path=along)
        if kind == "path"
        else slide("drive", "ground", "cart", axis=(1.0, 0.0), motion=motion)
    )
    coil = spring("coil", ("ground", (-1.0, 0.0)), "cart", stiffness=30.0, length=1.0)
    coordinates = "absolute" if kind == "absolute" else "joint"
    return assemble(body("cart", mass=MASS, inertia=0.1), joint, coil, gravity=0.0, coordinates=coordinates)


@pytest.mark.parametrize(
    ("kind", "scheme"),
    [("path", "moreau"), *(pytest.param(*x, marks=SLOW) for x in (
        ("joint", "moreau"), ("absolute", "moreau"), ("joint", "generalized_alpha"),
    ))],
)  # fmt: skip
def test_every_reading_of_a_table(kind, scheme) -> None:
    """The force of the joint is the multiplier of the motion; it makes the momentum, and the acceleration
    that is read is that of all forces.
    """
    problem = driven(kind, table)
    traj = nsjax.simulate(*problem, getattr(schemes, scheme)(), dt=DT, steps=STEPS)
    traj.raise_for_status()
    rows = {"path": "drive.x"}.get(kind, "drive.motion")
    of_row = np.asarray(traj.constraint_force)[1:, traj.system.labels.constraints.index(rows)]
    force = np.asarray(traj.joint("drive").force)[1:, 0]
    np.testing.assert_allclose(force, of_row, rtol=1e-12, atol=1e-10)
    place = np.asarray(traj.body("cart").position)[1:, 0]
    np.testing.assert_allclose(
        MASS * np.asarray(traj.sensor("cart.acceleration"))[1:, 0], force - 30.0 * place, atol=1e-9
    )
    if scheme == "moreau":  # the forces of its steps are their impulses over the step
        cart = traj.body("cart")
        x, v = (np.asarray(y)[:, 0] for y in (cart.position, cart.velocity))
        middle = x[:-1] + 0.5 * DT * v[:-1]
        np.testing.assert_allclose(DT * np.sum(force - 30.0 * middle), MASS * (v[-1] - v[0]), atol=1e-10)
    # most of the force is that of the rate, which jumps in every fifth step
    assert np.max(np.abs(force)) > 50.0 * np.max(np.abs(30.0 * place))


def test_a_curve_is_read_at_the_instant() -> None:
    """As its acceleration says: ``m x'' + k x``, without the lag of the scheme."""
    traj = nsjax.simulate(*driven("joint", curve), schemes.moreau(), dt=DT, steps=STEPS)
    t = np.asarray(traj.t)
    bend = jax.vmap(jax.grad(jax.grad(curve)))(jnp.asarray(t))
    force = np.asarray(traj.joint("drive").force)[:, 0]
    place = np.asarray(traj.body("cart").position)[:, 0]
    np.testing.assert_allclose(force, MASS * np.asarray(bend) + 30.0 * place, atol=1e-9)


@pytest.mark.parametrize(
    ("motion", "wanted"),
    [
        (table, True), (jax.jit(table), True), (along, True), (lambda t: jnp.clip(t, 0.0, 1.0), True),
        (lambda t: jnp.where(t < 1.0, 0.0, 2.0 * (t - 1.0)), True), (lambda t: 2.0 * t + 1.0, False),
        (lambda t: 0.3, False), (lambda t: t * t, False), (curve, False),
        (lambda t: table(t) + curve(t), False), (lambda t: (jnp.stack([curve(t), t]), t), False),
    ],
)  # fmt: skip
def test_which_motions_lack_an_acceleration(motion, wanted) -> None:
    assert lacks_acceleration(motion) is wanted
