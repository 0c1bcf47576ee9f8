"""Identities of Rodrigues vectors, of closed forms and of derivatives taken by other means."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.math import rodrigues, rotations

RNG = np.random.default_rng(3)
A1, A2, W, M = (jnp.asarray(x) for x in RNG.normal(size=(4, 3)))
ROUNDING = 1e-14


def close(a, b) -> None:
    np.testing.assert_allclose(a, b, atol=ROUNDING)


def test_the_matrix_is_the_exponential_of_its_angle() -> None:
    size = jnp.linalg.norm(A1)
    turn = rotations.matrix(rotations.exponential(2.0 * jnp.arctan(size / 2.0) * A1 / size))
    close(rodrigues.matrix(A1), turn)
    A = rodrigues.skew(A1)
    close(rodrigues.matrix(A1), jnp.linalg.solve(jnp.eye(3) - A / 2, jnp.eye(3) + A / 2))


def test_the_spin_of_a_change() -> None:
    rate = jax.jvp(rodrigues.matrix, (A1,), (W,))[1] @ rodrigues.matrix(A1).T
    close(rate, rodrigues.skew(rodrigues.spin(A1) @ W))


def test_identities_of_the_spin() -> None:
    Q, X = rodrigues.matrix(A1), rodrigues.spin(A1)
    close(X.T @ Q, X)
    close(Q.T @ X, X.T)
    A = rodrigues.skew(A1)
    close(X @ (jnp.eye(3) - A / 2.0 + jnp.outer(A1, A1) / 4.0), np.eye(3))


def test_axes_that_stay_across_each_other() -> None:
    """The appendix of [GN]: first and second derivatives of ``e_A . e_B`` (84)-(100)."""
    ea, eb = M, W

    def row(a, b):
        return (rodrigues.matrix(a) @ ea) @ (rodrigues.matrix(b) @ eb)

    QA, QB = (rodrigues.matrix(a) @ e for a, e in ((A1, ea), (A2, eb)))
    XA, XB = rodrigues.spin(A1), rodrigues.spin(A2)
    first = -(rodrigues.skew(QA) @ XA).T @ QB
    close(jax.jit(jax.grad(row))(A1, A2), first)
    # the spin's own change, and the axis moved: d(e_A x e_B) = (w_A x e_A) x e_B = e^_B e^_A w_A
    w = rodrigues.skew(QA) @ QB
    cross = -0.5 * rodrigues.scale(A1) * (jnp.outer(XA.T @ w, A1) - rodrigues.skew(w))
    second = cross + XA.T @ rodrigues.skew(QB) @ rodrigues.skew(QA) @ XA
    close(jax.jit(jax.hessian(row))(A1, A2), second)
    mixed = (rodrigues.skew(QA) @ XA).T @ (rodrigues.skew(QB) @ XB)
    close(jax.jit(jax.jacfwd(jax.grad(row), argnums=1))(A1, A2), mixed)


def test_hinge_angle() -> None:
    """[GN (102), (109)] on the constraint: ``d theta = e_3 . (Xi_A dalpha_A - Xi_B dalpha_B)``."""
    axis = jnp.asarray([1.0, 2.0, 2.0]) / 3.0
    b = jnp.asarray([2.0, 1.0, -2.0]) / 3.0
    common = rodrigues.matrix(A2)
    turn = common @ rodrigues.matrix(2.0 * jnp.tan(0.7 / 2.0) * axis)
    odd = turn - turn.T
    turned = 2.0 * jnp.stack([odd[2, 1], odd[0, 2], odd[1, 0]]) / (1.0 + jnp.trace(turn))

    def angle(a, b_):
        there, here = rodrigues.matrix(b_) @ b, rodrigues.matrix(a) @ b
        return jnp.arctan2(jnp.cross(there, here) @ (rodrigues.matrix(a) @ axis), there @ here)

    close(angle(turned, A2), 0.7)
    along = common @ axis
    close(jax.jit(jax.grad(angle))(turned, A2), rodrigues.spin(turned).T @ along)
    close(jax.jit(jax.grad(angle, argnums=1))(turned, A2), -rodrigues.spin(A2).T @ along)
