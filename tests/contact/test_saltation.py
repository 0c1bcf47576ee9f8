"""Time shifts of events: values, derivatives against saltation matrices, gates and masks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import State, System
from nsjax.contact import jump
from nsjax.core.step import Formed, SystemState
from tests.gradients import balls, particle
from tests.points import no_force, unit_mass

PLANE = System(nq=2, nv=2, mass=unit_mass, force=no_force)


def turn(q, xi):
    """A configuration that is scaled and turned by its increment: anything but an addition."""
    return jnp.exp(xi[0]) * jnp.stack([q[0] + q[1] * xi[1], q[1] - jnp.sin(xi[1]) * q[0]])


CURVED = System(nq=2, nv=2, mass=unit_mass, force=no_force, retract=turn)


def saltation_matrix(reset, before, after, normal, rate):
    """``DR + (F+ - DR F-) dg / (dg/dt)`` in x = (q, v); `saltation.md` section 2."""
    return reset + np.outer(after - reset @ before, normal) / rate


@pytest.mark.parametrize("seed", range(3))
def test_one_event_gives_the_saltation_matrix(seed: int) -> None:
    """Any reset, any motion before and after, an event in position and velocity."""
    rng = np.random.default_rng(seed)
    reset, normal = rng.normal(size=(4, 4)), rng.normal(size=4)
    before, after = rng.normal(size=4), rng.normal(size=4)
    rate = float(normal @ before)

    def step(x):
        g = (normal @ x)[None]
        shift = jump.event_shift(g, jnp.array([rate]), jnp.array([True]), jnp.asarray(False))
        s = State(t=jnp.asarray(0.0), q=x[:2], v=x[2:])
        s = jump.shift_state(PLANE, s, before[:2], before[2:], shift.mean)
        y = reset @ jnp.concatenate([s.q, s.v])
        s = State(t=s.t, q=y[:2], v=y[2:])
        s = jump.shift_state(PLANE, s, after[:2], after[2:], -shift.mean)
        return jnp.concatenate([s.q, s.v])

    x = jnp.asarray(rng.normal(size=4))
    np.testing.assert_array_equal(step(x), reset @ x)
    exact = saltation_matrix(reset, before, after, normal, rate)
    # sums of a few products, divided by the rate
    tolerance = 1e-14 * (1 + 1 / abs(rate))
    for found in jax.jit(lambda x: (jax.jacfwd(step)(x), jax.jacrev(step)(x)))(x):
        np.testing.assert_allclose(found, exact, rtol=tolerance, atol=10 * tolerance)


def test_shifts_are_zero_bit_for_bit() -> None:
    state = State(t=jnp.asarray(0.3), q=jnp.array([0.1, -0.7]), v=jnp.array([1e-9, 4.0]))
    tau = jnp.asarray(3.7)  # even where the shift is not zero, values are not touched
    for system in (PLANE, CURVED):
        moved = jump.shift_state(system, state, jnp.array([2.0, 5.0]), jnp.array([7.0, 1.0]), tau)
        for a, b in zip(jax.tree.leaves(moved), jax.tree.leaves(state), strict=True):
            np.testing.assert_array_equal(a, b)


def test_shift_along_the_retraction() -> None:
    """The derivative is that of the configuration moved along the velocity, and of the time."""
    q, v, a = jnp.array([0.4, -0.7]), jnp.array([2.0, 5.0]), jnp.array([7.0, 1.0])

    def shifted(tau):
        s = jump.shift_state(CURVED, State(t=jnp.asarray(0.3), q=q, v=v), v, a, tau)
        return s.t, s.q, s.v

    change = jax.jvp(shifted, (jnp.asarray(0.0),), (jnp.asarray(1.0),))[1]
    along = jax.jvp(lambda s: turn(q, s * v), (0.0,), (1.0,))[1]
    assert float(change[0]) == 1.0
    np.testing.assert_allclose(change[1], along, rtol=1e-15)
    np.testing.assert_array_equal(change[2], a)


def test_masks_and_the_mean() -> None:
    """Events share their mean; contacts without event have no shift, whatever their rate: no NaN."""

    def shift(g, rate):
        events = jnp.array([True, False, True])
        return jump.event_shift(g, rate, events, jnp.asarray(True))

    g, dg = jnp.array([-0.1, 0.2, -0.3]), jnp.array([2.0, jnp.nan, 3.0])
    rate = jnp.array([-4.0, 0.0, -1.0])
    at = shift(g, rate)
    np.testing.assert_array_equal(at.tau, 0.0)
    np.testing.assert_array_equal(at.mean, 0.0)
    change = jax.jvp(lambda g: (lambda s: (s.tau, s.mean))(shift(g, rate)), (g,), (dg,))[1]
    np.testing.assert_allclose(change[0], [0.5, 0.0, 3.0])  # -dg / rate
    np.testing.assert_allclose(change[1], 1.75)
    none = jump.event_shift(g, jnp.zeros(3), jnp.zeros(3, bool), jnp.asarray(False))
    assert float(none.mean) == 0.0
    back = jax.jacrev(lambda g: shift(g, rate).mean)(g)
    np.testing.assert_allclose(back, [0.125, 0.0, 0.5])  # each -1 / rate, over two events


def test_independent_impacts_have_a_shift_each() -> None:
    """Two balls in one step: the product of their saltation matrices, which the mean shift alone misses."""
    e, g = 0.8, 9.81
    v = np.array([-3.0, -5.0])
    q = jnp.array([-1e-3, -2e-3])

    def step(x, apart):
        shift = jump.event_shift(x[:2], v, jnp.array([True, True]), jnp.asarray(apart))
        s = State(t=jnp.asarray(0.0), q=x[:2], v=x[2:])
        s = jump.shift_state(balls.SYSTEM, s, v, jnp.full(2, -g), shift.mean)
        s = State(t=s.t, q=s.q, v=-e * s.v)
        s = jump.shift_state(balls.SYSTEM, s, -e * v, jnp.full(2, -g), -shift.mean)
        dv = -(1 + e) * np.diag(v)
        # the rate of dv along the fall, (1 + e) g, with the sign of -da: accelerations do not change
        s = jump.shift_apart(balls.SYSTEM, s, shift, -dv, (1 + e) * g * np.eye(2))
        return jnp.concatenate([s.q, s.v])

    x = jnp.concatenate([q, v])
    exact = np.zeros((4, 4))
    for k in range(2):
        one = saltation_matrix(
            np.diag([1.0, -e]), np.array([v[k], -g]), np.array([-e * v[k], -g]), np.array([1.0, 0.0]), v[k]
        )
        exact[np.ix_([k, 2 + k], [k, 2 + k])] = one
    np.testing.assert_allclose(jax.jacfwd(step)(x, True), exact, rtol=1e-14, atol=1e-14)
    assert np.max(np.abs(jax.jacfwd(step)(x, False) - exact)) > 0.1


def test_settled_contacts_keep_their_gap() -> None:
    """The derivative of the gap of a contact that has come to rest is projected out, along M^-1 W_N."""
    p, _ = particle.build(jnp.asarray([0.0, 0.0, 1.0, 0.0, 0.5, 0.2, 9.81, 0.1, 100.0, 0.0]))
    system, t = particle.SYSTEM, jnp.asarray(0.0)
    at = jnp.array([0.3, -1e-4])
    still = SystemState(system=system, params=p, state=State(t=t, q=at, v=jnp.zeros(2)))
    rows, inertia = still.rows(), still.inertia()
    f = Formed(at=still, inertia=inertia, rows=rows, response=rows.directions())

    def settled(q, resting):
        q = jump.settle(f, still.moved(q=q), resting)
        return q, q

    derivative = jax.jit(jax.jacfwd(settled, has_aux=True))
    for resting, exact in (
        ([True, False], [1.0, 0.0]),
        ([True, True], [0.0, 0.0]),
        ([False] * 2, [1.0] * 2),
    ):
        change, q = derivative(at, jnp.array(resting))
        np.testing.assert_array_equal(q, at)
        # relative regularisation 1e-9 of the contact solver
        np.testing.assert_allclose(change, np.diag(exact), atol=1e-8)


def test_second_derivatives_are_refused() -> None:
    """A shift is linear in its argument with frozen coefficients: its second derivative would be wrong."""

    def end(x):
        shift = jump.event_shift(x**2, x, jnp.array([True]), jnp.asarray(False))
        s = State(t=jnp.asarray(0.0), q=x, v=x)
        return jump.shift_state(PLANE, s, x, x, shift.mean).q[0]

    x = jnp.array([0.5])
    assert np.isfinite(jax.grad(end)(x)[0])
    with pytest.raises(NotImplementedError, match=r"schemes\.localized"):
        jax.hessian(end)(x)
