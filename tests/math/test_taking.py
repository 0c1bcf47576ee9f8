"""Entries at known places without a gather."""

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.math import picked, taken
from nsjax.math.elementary import SLICES, TERMS


def test_places_of_any_order_repeated_or_none() -> None:
    seeded = np.random.default_rng(0)
    x = jnp.asarray(seeded.normal(size=(7, 2)))
    tried = [seeded.integers(0, 7, size=n) for n in (0, 1, 2, 5, 12, 30)]
    for places in [*tried, np.arange(7), np.array([3, 3, 3, 4, 5, 0, 0]), np.array([6, 5, 4])]:
        np.testing.assert_array_equal(taken(x, places), np.asarray(x)[places])


def test_no_gather_forward_and_no_scatter_backward() -> None:
    x, places = jnp.arange(9.0), np.array([1, 2, 3, 0, 0, 7, 8, 4])
    f = lambda x: jnp.sum(taken(x, places) ** 3)  # noqa: E731
    text = jax.jit(jax.grad(f)).lower(x).as_text()
    assert "gather" not in text
    assert "scatter" not in text
    np.testing.assert_allclose(jax.grad(f)(x), 3 * np.bincount(places, minlength=9) * np.arange(9.0) ** 2)


def test_places_without_order_are_gathered() -> None:
    places = np.random.default_rng(1).permutation(10 * SLICES)
    f = lambda x: taken(x, places)  # noqa: E731
    x = jnp.arange(10.0 * SLICES)
    assert len(jax.jit(f).lower(x).as_text().splitlines()) < 60
    np.testing.assert_array_equal(f(x), places)


def test_entries_of_long_matrices_are_no_sums() -> None:
    """The same entries along the last axis by either form."""
    places = np.array([0, 1, 2, 0, 4, 5, 0, 7, 8, 0, 10, 11])
    for n in (TERMS // 12, 1 + TERMS // 12):
        x = jnp.asarray(np.random.default_rng(n).normal(size=(3, 3, n)))
        np.testing.assert_array_equal(picked(x, places), np.asarray(x)[..., places])
        text = jax.jit(lambda x: picked(x, places)).lower(x).as_text()
        assert ("reduce" in text) == (n * 12 <= TERMS)
