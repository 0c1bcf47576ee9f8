"""Second derivatives of phases in which contacts slide, against closed forms."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import ContactLaw, State, System, schemes

TIME, HEAVY, WEIGHT = 0.4, 1.3, 9.81
MODES = {"forward": jax.jacfwd, "reverse": jax.jacrev}
INSIDE = {
    "half_explicit": schemes.half_explicit, "moreau": schemes.moreau,
    "generalized_alpha": schemes.generalized_alpha,
}  # fmt: skip
CHANGES = schemes.localized(schemes.half_explicit(), changes=True)


def law(p):
    return ContactLaw(restitution=0.0, friction=p[0])


# --------------------------------------------------------------- a block whose mass couples height and way
# q = (x, y), floor y = 0; p = (friction, coupling c of the mass, push F [N], first speed [m/s], drag k).


def coupled_mass(q, p):
    return HEAVY * np.eye(2) + p[1] * np.array([[0.0, 1.0], [1.0, 0.0]])


def pushed(t, q, v, p):
    return jnp.stack([p[2] - p[4] * v[0] * v[0], -WEIGHT + 0.0 * v[0]])


BLOCK = System(
    nq=2, nv=2, nc=1, nt=1, mass=coupled_mass, force=pushed, gap=lambda t, q, p: q[1:],
    slip=lambda t, q, v, p: v[:1, None], law=law,
)  # fmt: skip
SLIDES = jnp.array([0.4, 0.35, 0.6, 3.0])


def block_end(scheme, gradient, drag: float, steps: int, x: jax.Array, system: System = BLOCK) -> jax.Array:
    """Way and speed after a phase of sliding."""
    state = State(t=0.0, q=jnp.zeros(2), v=jnp.stack([x[3], 0.0 * x[3]]))
    traj = nsjax.simulate(
        system, jnp.append(x, drag), state, scheme, dt=TIME / steps, steps=steps, every=steps,
        gradient=gradient,
    )  # fmt: skip
    return jnp.stack([traj.q[-1, 0], traj.v[-1, 0]])


def block_exact(x: jax.Array, drag: float = 0.0) -> jax.Array:
    """By Newton's law with ``y = 0``: ``(M + mu c) x'' = F - mu G - k x'^2``, always in one direction."""
    mu, c, push, speed = x
    whole = HEAVY + mu * c
    brake = (mu * WEIGHT - push) / whole
    if not drag:
        return jnp.stack([speed * TIME - brake * TIME**2 / 2.0, speed - brake * TIME])
    k = drag / whole
    at, rate = jnp.arctan(speed * jnp.sqrt(k / brake)), jnp.sqrt(k * brake)
    way = jnp.log(jnp.cos(at - rate * TIME) / jnp.cos(at)) / k
    return jnp.stack([way, jnp.sqrt(brake / k) * jnp.tan(at - rate * TIME)])


block_bend = jax.jit(jax.hessian(block_exact))


def bend(scheme, gradient, mode: str, drag: float, steps: int) -> jax.Array:
    run = functools.partial(block_end, scheme, gradient, drag, steps)
    return jax.jit(jax.jacfwd(MODES[mode](run)))(SLIDES)


@pytest.mark.slow
@pytest.mark.parametrize(("inner", "mode"), list(zip(INSIDE, itertools.cycle(MODES), strict=False)))
def test_a_block_that_slides(inner: str, mode: str) -> None:
    """Constant accelerations are exact, so second derivatives are: rounding is 1e-15."""
    found = bend(INSIDE[inner](), "discrete", mode, 0.0, 5)
    np.testing.assert_allclose(found, block_bend(SLIDES), atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inner", "wanted"), [("half_explicit", 2), ("generalized_alpha", 2), ("moreau", 1)]
)
def test_a_block_that_slides_against_drag(inner: str, wanted: int) -> None:
    """Second derivatives have the order of the motion with a force that the speed changes."""
    exact = jax.hessian(functools.partial(block_exact, drag=0.3))(SLIDES)
    coarse, fine = (bend(INSIDE[inner](), "discrete", "forward", 0.3, n) - exact for n in (20, 40))
    order = jnp.log2(jnp.max(jnp.abs(coarse)) / jnp.max(jnp.abs(fine)))
    assert float(order) == pytest.approx(wanted, abs=0.1)


# ------------------------------------------------------------------ a disc that slides until it rolls
# q = (x, y, angle), floor y = 0; p = (friction, inertia by mass and radius squared), x = (p, speed).

RADIUS = 0.2
DISC = System(
    nq=3, nv=3, nc=1, nt=1,
    mass=lambda q, p: jnp.diag(jnp.stack([1.0 + 0.0 * p[1], 1.0 + 0.0 * p[1], p[1] * RADIUS**2])),
    force=lambda t, q, v, p: jnp.stack([0.0 * v[0], -WEIGHT + 0.0 * v[0], 0.0 * v[0]]),
    gap=lambda t, q, p: q[1:2], slip=lambda t, q, v, p: (v[:1] + RADIUS * v[2:])[:, None], law=law,
)  # fmt: skip


def disc_exact(x: jax.Array) -> jax.Array:
    """It slides with ``-mu g`` until ``v + R w = 0``, then rolls with the same speed."""
    mu, share, speed = x
    until = speed / (mu * WEIGHT * (1.0 + 1.0 / share))
    rolling = speed - mu * WEIGHT * until
    way = speed * until - mu * WEIGHT * until**2 / 2.0 + rolling * (TIME - until)
    return jnp.stack([way, -rolling / RADIUS])


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_disc_that_slides_until_it_rolls(mode: str) -> None:
    """The end of sliding is located to 1e-12 m of its event function: second derivatives to 1e-9."""

    def run(x: jax.Array) -> jax.Array:
        state = State(t=0.0, q=jnp.zeros(3), v=jnp.stack([x[2], 0.0 * x[2], 0.0 * x[2]]))
        traj = nsjax.simulate(DISC, x[:2], state, CHANGES, dt=TIME / 7, steps=7, every=7)
        return jnp.stack([traj.q[-1, 0], traj.v[-1, 2]])

    x = jnp.array([0.3, 0.5, 1.5])
    assert 0.1 < float(x[2] / (x[0] * WEIGHT * 3.0)) < TIME - 0.1
    np.testing.assert_allclose(run(x), disc_exact(x), rtol=1e-10)
    found = jax.jit(jax.jacfwd(MODES[mode](run)))(x)
    np.testing.assert_allclose(found, jax.hessian(disc_exact)(x), rtol=1e-9, atol=1e-9)
