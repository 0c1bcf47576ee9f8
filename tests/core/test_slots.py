"""Places of few among many: what is taken and put is what numbers alone say, by sums and by gathers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.core.slots import SUMMED, ContactSlots, Slots

DRAWS = [(n, k, share, seed) for seed, (n, k) in enumerate([(1, 1), (5, 3), (6, 6), (70, 8), (300, 20)])
         for share in (0.0, 0.05, 0.6, 1.0)]  # fmt: skip
QUICK = [pytest.param(*x, marks=[pytest.mark.slow] * (x[0] > 6)) for x in DRAWS]


def _expected(mask: np.ndarray, places: int) -> np.ndarray:
    """Numbers of the first true entries, as many as there are places; all where they all fit."""
    return np.arange(len(mask)) if places >= len(mask) else np.flatnonzero(mask)[:places]


@pytest.mark.parametrize("sums", [True, False])
@pytest.mark.parametrize(("n", "k", "share", "seed"), QUICK)
def test_places(n: int, k: int, share: float, seed: int, sums: bool) -> None:
    """Contacts stand in their order; empty places and contacts without a place get what is said, for
    numbers of several shapes and types, and for rows of the contacts.
    """
    rng = np.random.default_rng(seed)
    mask, which = rng.random(n) < share, None
    slots = Slots.first(jnp.asarray(mask), k, sums=sums)
    which = _expected(mask, k)
    wide = (1200 if n == 300 else 2,)
    assert sums or n < 300 or n * k * wide[0] > SUMMED  # the gather is tried, too
    np.testing.assert_array_equal(slots.which[: len(which)], which)
    for x, none in ((rng.random((n, *wide)), 7.0), (rng.integers(0, 9, n), 3), (rng.random(n) < 0.5, True)):
        few = np.full((slots.places, *x.shape[1:]), none, x.dtype)
        few[: len(which)] = x[which]
        np.testing.assert_array_equal(slots.take(jnp.asarray(x), none), few)
        others = np.array(x)[::-1].copy()
        whole = others.copy()
        whole[which] = x[which]
        np.testing.assert_array_equal(slots.put(jnp.asarray(few), jnp.asarray(others)), whole)
        assert slots.take(jnp.asarray(x)).dtype == x.dtype
    x = rng.random(3 * n)
    few = np.zeros((slots.places, 3))
    few[: len(which)] = x.reshape(-1, 3)[which]
    np.testing.assert_array_equal(slots.rows(3).take(jnp.asarray(x)), few.reshape(-1))


def test_moves_are_transposes() -> None:
    """``put`` is the transpose of ``take``, and no entry moves where each has the place of its number."""
    slots = Slots.first(jnp.array([False, True, True, False, True]), 2)
    x = jnp.arange(5.0)
    back = jax.linear_transpose(slots.take, x)(jnp.array([1.0, 2.0]))[0]
    np.testing.assert_array_equal(back, slots.put(jnp.array([1.0, 2.0])))
    assert Slots.every(5).take(x) is x
    assert Slots.every(5).put(x) is x


@pytest.mark.parametrize("laws", [0, 2])
def test_contacts_with_common_ones_and_laws(laws: int) -> None:
    """Contacts that every step has, and laws that follow none, stay where they are."""
    # contacts 0 to 4 in two places; one common contact; a law for itself; laws 0 to 2 in `laws` places
    contacts = Slots.first(jnp.array([False, True, False, True, False]), 2)
    own = Slots.first(jnp.array([True, False, True]), laws) if laws else None
    slots = ContactSlots(contacts=contacts, laws=own, common=1)
    x = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 50.0, 60.0, 7.0, 8.0, 9.0][: 10 if laws else 6])
    few = np.array([1.0, 3.0, 50.0, 60.0, 7.0, 9.0][: 6 if laws else 3])
    np.testing.assert_array_equal(slots.take(jnp.asarray(x)), few)
    whole = np.array([-1.0, 1.0, -1.0, 3.0, -1.0, 50.0, 60.0, 7.0, -1.0, 9.0][: len(x)])
    np.testing.assert_array_equal(slots.put(jnp.asarray(few), 1, -1.0), whole)
    np.testing.assert_array_equal(slots.put(jnp.asarray(few[:3])), [0.0, 1.0, 0.0, 3.0, 0.0, 50.0])
    np.testing.assert_array_equal(slots.which, [1, 3, 5])
    assert slots.dropped == (4 if laws else 3)
