"""Dependent rows: against least squares of numpy; and contacts without a gap of their own."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.contact.branches import dependent_answer
from nsjax.contact.jump import _answer

ANSWER = jax.jit(dependent_answer)
PULL = jax.jit(lambda a, use, f, c: jax.vjp(lambda f: dependent_answer(a, use, f), f)[1](c)[0])


def drawn(seed: int, m: int = 9) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Row-scaled ``W' W`` of a random rank, of which some rows are switched to the unit matrix."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(m, int(rng.integers(2, m + 1))))
    if seed % 2:  # rows that are equal, opposite, or empty of a part
        w[5], w[7] = -w[1], 3.0 * w[2]
    use = rng.uniform(size=m) < 0.8
    g = w @ w.T
    return np.where(use[:, None], g / np.diag(g)[:, None], np.eye(m)), use, rng


@pytest.mark.parametrize("seed", range(4))
def test_thirty_rows(seed: int) -> None:
    """The least answer, and no call of a library, which a time loop pays for and some compilers refuse."""
    a, use, rng = drawn(seed, 30)
    f = a @ rng.normal(size=len(a))
    np.testing.assert_allclose(ANSWER(a, use, f), np.linalg.pinv(a, rcond=1e-9) @ f, atol=1e-7)
    assert "custom_call" not in PULL.lower(a, use, f, f).as_text()


@pytest.mark.parametrize("seed", range(40))
def test_rows_that_can_be_fulfilled_are(seed: int) -> None:
    a, use, rng = drawn(seed)
    f = a @ rng.normal(size=len(a))
    x = np.asarray(ANSWER(a, use, f))
    # rounding over the least pivot of a random draw
    np.testing.assert_allclose(a @ x, f, atol=1e-9)
    # of least size among all with the same rows: nothing of it moves nothing
    _, s, vt = np.linalg.svd(a)
    assert np.abs(vt[s < 1e-9 * s[0]] @ x).max(initial=0.0) <= 1e-9
    np.testing.assert_allclose(x, np.linalg.pinv(a, rcond=1e-9) @ f, atol=1e-8)


@pytest.mark.parametrize("seed", range(40))
def test_what_cannot_be_fulfilled_stays_small_and_dual(seed: int) -> None:
    a, use, rng = drawn(seed)
    f, c = rng.normal(size=(2, len(a)))
    x, back = np.asarray(ANSWER(a, use, f)), np.asarray(PULL(a, use, f, c))
    s = np.linalg.svd(a, compute_uv=False)
    least = s[s > 1e-9 * s[0]][-1]
    # the independent rows alone may be worse than all, by the number of their choices at most
    assert np.abs(x).max() <= 1e3 * np.linalg.norm(f) / least
    assert abs(c @ x - back @ f) <= 1e-12 * (np.abs(c * x).sum() + np.abs(back * f).sum())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_derivatives_follow_the_rows(seed: int) -> None:
    """First and second derivatives of the least answer of rows that move and keep their rank, against those
    of numpy's inverse: products of inverses of one over the least pivot, and of rounding.
    """
    rng = np.random.default_rng(seed)
    m, rank = 7, 4 + seed % 2  # of six rows and the unit row, so that two or one depend on the others
    use = jnp.asarray(np.arange(m) != seed)
    w, turn, c, more = (jnp.asarray(rng.normal(size=(m, k))) for k in (rank, rank, 1, 1))

    def rows(s: jax.Array) -> tuple[jax.Array, jax.Array]:
        moved = w + s * turn
        g = moved @ moved.T
        a = jnp.where(use[:, None], g / jnp.diag(g)[:, None], jnp.eye(m))
        return a, (a @ (c + s * more))[:, 0]

    def found(s: jax.Array) -> jax.Array:
        a, f = rows(s)
        return dependent_answer(a, use, f)

    def exact(s: jax.Array) -> jax.Array:
        a, f = rows(s)
        return jnp.linalg.pinv(a, rtol=1e-9) @ f

    for ways in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(ways(found)(0.0), jax.jacfwd(exact)(0.0), rtol=1e-8, atol=1e-8)
        bend = jax.jacfwd(ways(found))(0.0)
        np.testing.assert_allclose(bend, jax.jacfwd(jax.jacfwd(exact))(0.0), rtol=1e-7, atol=1e-7)


def leaning(angle: float) -> np.ndarray:
    """Rows of a rod between two point masses that stick to a floor: along the floor, across it, and along
    the rod; four coordinates, and the rows along floor and rod depend on each other where it lies flat.
    """
    along = np.array([-np.cos(angle), -np.sin(angle), np.cos(angle), np.sin(angle)])
    across, beside = np.eye(4)[[1, 3]], np.eye(4)[[0, 2]]
    w = np.stack([across[0], beside[0], across[1], beside[1], along])
    return w @ w.T / np.sum(w * w, axis=1)[:, None]


@pytest.mark.parametrize("angle", np.geomspace(1e-7, 0.5, 60))
def test_a_rod_that_leans_a_little(angle: float) -> None:
    """Only four of five rows are independent, however small the pivot of the fourth is."""
    a = leaning(angle)
    use, rng = np.ones(5, bool), np.random.default_rng(3)
    for f in (a @ rng.normal(size=(5, 8))).T:
        x = np.asarray(ANSWER(a, use, f))
        np.testing.assert_allclose(a @ x, f, atol=1e-13)
        assert np.abs(x).max() < 10.0


def test_the_last_rows_count_first() -> None:
    """Two equal rows that ask for different things: the last one is heard."""
    a, f = np.ones((2, 2)), np.array([5.0, 1.0])
    x = ANSWER(a, np.ones(2, bool), f)
    np.testing.assert_allclose(x, [0.5, 0.5], atol=1e-15)


@pytest.mark.slow
def test_a_contact_without_a_gap_has_none_to_keep() -> None:
    """A bounded row that comes to rest beside an open contact, and beside one that does as well."""
    g = jnp.array([[2.0, 0.0], [0.0, 0.0]])
    for first, wanted in ((False, 0.0), (True, 0.5)):
        resting = jnp.array([first, True])

        def found(gap, resting=resting):
            return _answer(g, resting, jnp.stack([gap, 0.0]))

        for derivative in (jax.jacfwd(found), jax.jacrev(found)):
            assert np.array_equal(derivative(0.3), [wanted, 0.0])
