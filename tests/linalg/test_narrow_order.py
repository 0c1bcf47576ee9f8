"""Orders of small bandwidth, against closed forms and scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.linalg.elimination import narrow_order

ORDER = jax.jit(narrow_order, static_argnums=2)


def bandwidth(place: np.ndarray, pairs: np.ndarray) -> int:
    return int(np.max(np.abs(place[pairs[:, 0]] - place[pairs[:, 1]])))


def order(pairs: np.ndarray, blocks: int, on: np.ndarray | None = None) -> np.ndarray:
    on = np.ones(len(pairs), bool) if on is None else on
    place = np.asarray(ORDER(jnp.asarray(pairs), jnp.asarray(on), blocks))
    assert sorted(place) == list(range(blocks))
    return place


def lattice(*sides: int) -> np.ndarray:
    """Pairs of neighbours of a lattice whose nodes are numbered at random."""
    nodes = np.random.default_rng(0).permutation(int(np.prod(sides))).reshape(sides)
    axes = [np.moveaxis(nodes, k, 0) for k in range(len(sides))]
    return np.concatenate([np.stack([x[:-1].ravel(), x[1:].ravel()], axis=1) for x in axes])


@pytest.mark.slow
def test_chains_and_rings() -> None:
    """A chain, and two chains: one. A ring: two."""
    chain = lattice(40)
    assert bandwidth(order(chain, 40), chain) == 1
    two = np.concatenate([chain, 40 + chain])
    assert bandwidth(order(two, 80), two) == 1
    ring = np.concatenate([chain, [[x for x in range(40) if np.sum(chain == x) == 1]]])
    assert bandwidth(order(ring, 40), ring) == 2


@pytest.mark.parametrize("sides", [(4, 25), (10, 10), (6, 6, 6), (3, 3, 20)])
def test_lattices(sides: tuple[int, ...]) -> None:
    """About as by scipy's own implementation, which breaks ties in another way (12 for 10 in the rod, else
    equal).
    """
    graphs, sparse = pytest.importorskip("scipy.sparse.csgraph"), pytest.importorskip("scipy.sparse")
    pairs, n = lattice(*sides), int(np.prod(sides))
    matrix = sparse.coo_matrix((np.ones(len(pairs)), tuple(pairs.T)), (n, n))
    theirs = np.argsort(graphs.reverse_cuthill_mckee((matrix + matrix.T).tocsr(), True))
    assert bandwidth(order(pairs, n), pairs) <= 1.2 * bandwidth(theirs, pairs)


def test_ground_and_pairs_that_do_not_count() -> None:
    """Pairs with the ground, with itself, and those left out do not shape the order."""
    chain = lattice(30)
    more = np.array([[3, 30], [30, 7], [5, 5], [chain[0, 0], chain[-1, 1]]])
    pairs, on = np.concatenate([chain, more]), np.arange(len(chain) + 4) < len(chain) + 3
    assert bandwidth(order(pairs, 30, on), chain) == 1


def test_nothing_is_coupled() -> None:
    assert list(order(np.array([[0, 6], [6, 6]]), 6)) == [0, 1, 2, 3, 4, 5]
