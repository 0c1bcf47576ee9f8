"""Rotations against scipy and closed forms: the properties R1 to R6 every `retract` must have."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from nsjax.math import direction, norm, rotations
from tests.references.rigid_box import scipy_rotation

EPS = np.finfo(float).eps  # one ulp of 1

rotate = jax.jit(jax.vmap(rotations.rotate))
between = jax.jit(jax.vmap(rotations.rotation_between))
exponential = jax.jit(jax.vmap(rotations.exponential))
product = jax.jit(jax.vmap(rotations.multiply))
matrices = jax.jit(jax.vmap(rotations.matrix))


def wxyz(r: Rotation) -> np.ndarray:
    return r.as_quat()[..., [3, 0, 1, 2]]


def unit(rng, n: int) -> np.ndarray:
    p = rng.normal(size=(n, 4))
    return p / np.linalg.norm(p, axis=1, keepdims=True)


def vectors(rng, sizes) -> np.ndarray:
    """Rotation vectors of the given sizes in random directions."""
    d = rng.normal(size=(len(sizes), 3))
    return np.asarray(sizes)[:, None] * d / np.linalg.norm(d, axis=1, keepdims=True)


def length(p) -> np.ndarray:
    """Lengths in extended precision, so that they are not rounded here."""
    return np.sqrt(np.sum(np.asarray(p, np.longdouble) ** 2, axis=-1))


# Sizes of increments: nothing, series, the limit of the series (0.2), direct formula, several turns.
SIZES = np.concatenate(
    [[0.0], np.geomspace(1e-300, 1e-3, 30), np.linspace(0.05, 0.35, 200), np.geomspace(0.4, 20, 300)]
)


# ------------------------------------------------------------------------------ against scipy


def test_exponential_is_the_rotation_vector_of_scipy():
    xi = vectors(np.random.default_rng(1), SIZES)
    # Rounding of the half angle (up to 10 rad) is the largest error.
    np.testing.assert_allclose(exponential(xi), wxyz(Rotation.from_rotvec(xi)), rtol=0, atol=10 * EPS)


def test_exponential_is_accurate_relative_to_small_increments():
    # Increments of a time step may be tiny; the vector part must then keep its digits.
    xi = vectors(np.random.default_rng(2), np.geomspace(1e-300, 1e-9, 40))
    np.testing.assert_allclose(np.asarray(exponential(xi))[:, 1:], xi / 2, rtol=2 * EPS)


def test_matrix_and_product_are_those_of_scipy():
    rng = np.random.default_rng(3)
    a, b = unit(rng, 500), unit(rng, 500)
    np.testing.assert_allclose(matrices(a), scipy_rotation(a).as_matrix(), rtol=0, atol=8 * EPS)
    # a o b turns by b first: compare rotations (scipy may change signs) and, beside, the sign.
    ab = np.asarray(product(a, b))
    both = scipy_rotation(a) * scipy_rotation(b)
    np.testing.assert_allclose(matrices(ab), both.as_matrix(), rtol=0, atol=16 * EPS)
    w = a[:, 0] * b[:, 0] - np.sum(a[:, 1:] * b[:, 1:], axis=1)
    np.testing.assert_allclose(ab[:, 0], w, rtol=0, atol=4 * EPS)
    np.testing.assert_allclose(
        matrices(jax.vmap(rotations.conjugate)(a)), scipy_rotation(a).inv().as_matrix(), rtol=0,
        atol=8 * EPS,
    )  # fmt: skip


def test_rotate_turns_about_body_axes():
    rng = np.random.default_rng(4)
    p, xi = unit(rng, len(SIZES)), vectors(rng, SIZES)
    expected = scipy_rotation(p) * Rotation.from_rotvec(xi)
    np.testing.assert_allclose(matrices(rotate(p, xi)), expected.as_matrix(), rtol=0, atol=32 * EPS)


def test_rotation_between_is_the_rotation_vector_of_scipy():
    rng = np.random.default_rng(5)
    a, b = unit(rng, 1000), unit(rng, 1000)
    expected = (scipy_rotation(a).inv() * scipy_rotation(b)).as_rotvec()
    away = np.linalg.norm(expected, axis=1) < np.pi - 1e-6  # at half a turn both signs are right
    assert away.sum() > 990
    np.testing.assert_allclose(np.asarray(between(a, b))[away], expected[away], rtol=0, atol=32 * EPS)


def test_rotation_between_takes_back_what_rotate_did():
    # From rounding size over the switch of formulas (2e-6 rad) to within 1e-9 of half a turn.
    sizes = np.concatenate(
        [
            [0.0], np.geomspace(1e-18, 3, 300), 1.999999e-6 * np.linspace(0.5, 1.5, 101),
            np.pi - np.geomspace(1e-9, 0.1, 50),
        ]
    )  # fmt: skip
    rng = np.random.default_rng(6)
    p, xi = unit(rng, len(sizes)), vectors(rng, sizes)
    # The product of two quaternions is good to a few ulp, its angle to twice that.
    np.testing.assert_allclose(between(p, rotate(p, xi)), xi, rtol=0, atol=16 * EPS)
    # From the identity nothing is lost even relative to the increment.
    one = np.tile([1.0, 0, 0, 0], (len(sizes), 1))
    back = np.asarray(between(one, rotate(one, xi)))
    error = np.linalg.norm(back - xi, axis=1)
    assert np.all(error <= 8 * EPS * np.maximum(sizes, 1e-300))
    # p and -p are one rotation; a turn by more than pi comes back as the shorter one.
    np.testing.assert_allclose(between(-p, rotate(p, xi)), xi, rtol=0, atol=16 * EPS)
    far = vectors(rng, np.full(50, 4.0))
    shorter = far * (4.0 - 2 * np.pi) / 4.0
    np.testing.assert_allclose(between(p[:50], rotate(p[:50], far)), shorter, rtol=0, atol=16 * EPS)


# ------------------------------------------------------------------------------ R1 to R6


def test_r1_no_increment_changes_nothing():
    p = unit(np.random.default_rng(7), 1000)
    np.testing.assert_allclose(rotate(p, np.zeros((1000, 3))), p, rtol=0, atol=EPS)


def test_r2_rate_of_rotate_is_the_kinematic_equation():
    # dp/dt = p o (0, Omega) / 2, the product written as vector algebra.
    rng = np.random.default_rng(8)
    p, omega = unit(rng, 300), rng.normal(size=(300, 3)) * 10
    zero = np.zeros((300, 3))
    _, rate = jax.jvp(lambda xi: rotate(p, xi), (zero,), (omega,))
    w = -np.sum(p[:, 1:] * omega, axis=1, keepdims=True) / 2
    v = (p[:, :1] * omega + np.cross(p[:, 1:], omega)) / 2
    np.testing.assert_allclose(
        rate, np.concatenate([w, v], axis=1), rtol=0, atol=50 * EPS
    )  # |Omega| / 2 to 25


def test_r3_increments_are_reversible():
    rng = np.random.default_rng(9)
    sizes = np.concatenate([SIZES[SIZES < 7], np.linspace(0, 2 * np.pi, 500)])
    p, xi = unit(rng, len(sizes)), vectors(rng, sizes)
    np.testing.assert_allclose(rotate(rotate(p, xi), -xi), p, rtol=0, atol=1e-15)


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-3, 0.2, 1.0])
def test_r4_length_stays_one_by_construction(size):
    rng = np.random.default_rng(10)
    xi = vectors(rng, np.full(10_000, 1.0)) * size * rng.uniform(0, 1, (10_000, 1))
    start = jnp.asarray(unit(rng, 1)[0])
    step = jax.jit(lambda p: jax.lax.scan(lambda p, d: (rotations.rotate(p, d),) * 2, p, xi))
    _, path = step(start)
    assert np.max(np.abs(length(path) - 1)) <= 2 * EPS
    # A quaternion off the sphere is brought back by a single step, and the rotation is the same.
    off = rotate(np.asarray(start)[None] * 1.3, xi[:1])
    assert abs(length(off)[0] - 1) <= 2 * EPS
    np.testing.assert_allclose(off[0], path[0], rtol=0, atol=4 * EPS)


def test_r5_results_do_not_depend_on_the_world_frame():
    rng = np.random.default_rng(11)
    p, frame, xi = unit(rng, 1000), unit(rng, 1000), vectors(rng, rng.uniform(0, 3, 1000))
    np.testing.assert_allclose(
        rotate(product(frame, p), xi), product(frame, rotate(p, xi)), rtol=0, atol=8 * EPS
    )


def third_of(f):
    return jax.jacrev(jax.jacfwd(jax.jacrev(f)))


@jax.jit
def derivatives_of_exponential(x):
    f = rotations.exponential
    once = jax.jacrev(f)
    return f(x), once(x), jax.jacfwd(f)(x), jax.jacfwd(once)(x), third_of(f)(x)


@pytest.mark.slow
def test_r6_three_derivatives_at_no_increment():
    # exp(xi) = (1 - |xi|^2 / 8, xi / 2 - xi |xi|^2 / 48) + O(xi^4)
    d = np.eye(3)
    zero = jnp.zeros(3)
    first = np.concatenate([np.zeros((1, 3)), d / 2])
    second = np.concatenate([-d[None] / 4, np.zeros((3, 3, 3))])
    sym = np.einsum("ij,kl->ijkl", d, d) + np.einsum("ik,jl->ijkl", d, d) + np.einsum("il,jk->ijkl", d, d)
    third = np.concatenate([np.zeros((1, 3, 3, 3)), -sym / 24])
    p = jnp.asarray(unit(np.random.default_rng(12), 1)[0])
    turn = functools.partial(rotations.rotate, p)
    # The whole retract, normalisation included, is p times that: linear in the quaternion.
    left = np.stack([np.asarray(rotations.multiply(p, e)) for e in np.eye(4)], axis=1)

    _, reverse, forward, both, thrice = derivatives_of_exponential(zero)
    whole = jax.jit(third_of(turn))(zero)
    np.testing.assert_allclose(forward, first, rtol=0, atol=EPS)
    np.testing.assert_allclose(reverse, first, rtol=0, atol=EPS)
    np.testing.assert_allclose(both, second, rtol=0, atol=EPS)
    np.testing.assert_allclose(thrice, third, rtol=0, atol=EPS)
    np.testing.assert_allclose(whole, np.einsum("ab,bjkl->ajkl", left, third), rtol=0, atol=8 * EPS)


def test_r6_no_jump_where_series_and_formula_meet():
    limit = 2 * np.sqrt(rotations.SERIES_LIMIT)
    heading = vectors(np.random.default_rng(13), [1.0])[0]
    below, above = limit * (1 - 1e-12), limit * (1 + 1e-12)
    assert 0.25 * below**2 < rotations.SERIES_LIMIT < 0.25 * above**2
    # sin(s) / s at s = 0.1 loses a factor 1 / s = 10 of accuracy per derivative, and is of size one half.
    pairs = zip(*(derivatives_of_exponential(r * heading) for r in (below, above)), strict=True)
    for order, (one, other) in zip((0, 1, 1, 2, 3), pairs, strict=True):
        assert np.abs(np.asarray(one) - np.asarray(other)).max() <= 1e-12 + 10**order * 4 * EPS


def test_derivative_of_rotate_is_the_tangent_operator():
    # Omega = T dxi with T = I - (1 - cos a) / a^2 X + (a - sin a) / a^3 X^2, X the cross product with xi.
    rng = np.random.default_rng(14)
    sizes = np.concatenate([np.linspace(0.02, 0.4, 40), np.linspace(0.5, 6, 20)])
    p, xi, rate = unit(rng, len(sizes)), vectors(rng, sizes), rng.normal(size=(len(sizes), 3))
    q, dq = jax.jvp(lambda x: rotate(p, x), (xi,), (rate,))
    omega = 2 * np.asarray(product(jax.vmap(rotations.conjugate)(q), dq))[:, 1:]
    a = sizes[:, None]
    once = np.cross(xi, rate)
    # 2 sin^2(a / 2) is 1 - cos a without cancellation; (a - sin a) / a^3 loses 1 / a^2 <= 2500 ulp.
    tangent = rate - 2 * np.sin(a / 2) ** 2 / a**2 * once + (a - np.sin(a)) / a**3 * np.cross(xi, once)
    np.testing.assert_allclose(omega, tangent, rtol=0, atol=100 * EPS)


# ------------------------------------------------------------------------------ poses, norms


def test_poses_move_in_the_world_and_turn_in_the_body():
    rng = np.random.default_rng(15)
    n = 200
    q = np.concatenate([rng.normal(size=(n, 3)), unit(rng, n)], axis=1)
    xi = np.concatenate([rng.normal(size=(n, 3)), vectors(rng, rng.uniform(0, 3, n))], axis=1)
    moved = np.asarray(jax.vmap(rotations.move_pose)(q, xi))
    np.testing.assert_array_equal(moved[:, :3], q[:, :3] + xi[:, :3])
    turned = scipy_rotation(q[:, 3:]) * Rotation.from_rotvec(xi[:, 3:])
    np.testing.assert_allclose(matrices(moved[:, 3:]), turned.as_matrix(), rtol=0, atol=32 * EPS)
    back = jax.vmap(rotations.pose_between)(q, moved)
    np.testing.assert_allclose(back, xi, rtol=0, atol=32 * EPS)


def test_derivative_of_pose_between_at_the_same_pose_is_the_identity():
    q = jnp.concatenate([jnp.arange(3.0), jnp.asarray(unit(np.random.default_rng(16), 1)[0])])
    both = lambda xi: rotations.pose_between(q, rotations.move_pose(q, xi))  # noqa: E731
    for mode in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(jax.jit(mode(both))(jnp.zeros(6)), np.eye(6), rtol=0, atol=4 * EPS)


def test_norm_and_direction_away_from_zero():
    rng = np.random.default_rng(17)
    x = rng.normal(size=(20, 3)) * np.geomspace(1e-100, 1e100, 20)[:, None]
    np.testing.assert_allclose(norm(x), np.linalg.norm(x, axis=1), rtol=4 * EPS)
    np.testing.assert_allclose(norm(x, axis=0), np.linalg.norm(x, axis=0), rtol=8 * EPS)
    unit_x = x / np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(direction(x), unit_x, rtol=8 * EPS)

    @jax.jit
    @jax.vmap
    def derivatives(y):
        return jax.grad(norm)(y), jax.jacfwd(direction)(y), jax.jacrev(direction)(y), jax.hessian(norm)(y)

    gradient, *projectors = derivatives(x)
    np.testing.assert_allclose(gradient, unit_x, rtol=8 * EPS)
    size = np.linalg.norm(x, axis=1)[:, None, None]
    middle = (size[:, 0, 0] > 1e-50) & (size[:, 0, 0] < 1e50)  # the second derivative forms |x|^3
    expected = np.eye(3) - unit_x[:, :, None] * unit_x[:, None, :]
    for found in projectors:
        np.testing.assert_allclose((found * size)[middle], expected[middle], rtol=0, atol=8 * EPS)


def test_norm_and_direction_have_derivatives_at_zero():
    # The derivative there is a choice: zero, and never nan, in both modes, twice, and next to nonzero rows.
    @jax.jit
    def derivatives(x):
        along = jax.jvp(norm, (x,), (jnp.ones_like(x),))[1]
        both = jax.jacfwd(direction)(x), jax.jacrev(direction)(x)
        return norm(x), direction(x), along, jax.grad(norm)(x), jax.hessian(norm)(x), *both

    for n in (1, 2, 3):
        for value in derivatives(jnp.zeros(n)):
            np.testing.assert_array_equal(value, np.zeros(value.shape))
    rows = jnp.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(
        jax.grad(lambda x: jnp.sum(norm(x)))(rows), [[0, 0], [0.6, 0.8]], rtol=4 * EPS
    )
    np.testing.assert_array_equal(direction(jnp.array([[-2.0], [0.0], [1e-300]])), [[-1.0], [0.0], [1.0]])
