"""Structures, and one that somebody else has written, against dense linear algebra."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import ContactLaw, InputError, State, System, schemes
from nsjax.linalg import Arrow, BlockTridiagonal, Dense, Lattice, Pattern, Sparse, bordered, eliminated

# Recovered tangents, eliminations and their derivatives against dense linear algebra.
RNG = np.random.default_rng(3)
TREE = Pattern.of_elements(7, [(0, 1), (1, 2), (1, 3), (3, 4), (3, 5), (0, 6)])


def chain(nodes: int, block: int) -> Pattern:
    return Pattern.of_matrix(
        np.kron(np.eye(nodes) + np.eye(nodes, k=1) + np.eye(nodes, k=-1), np.ones((block, block)))
    )


def wheel(size: int, heads: tuple[int, ...], rest: Pattern) -> Pattern:
    """``rest`` behind and between heads that touch everything."""
    full, tail = np.ones((size, size)), np.setdiff1d(np.arange(size), heads)
    inside = np.eye(rest.size)
    for i, j in rest.pairs:
        inside[i, j] = inside[j, i] = 1.0
    full[np.ix_(tail, tail)] = inside
    return Pattern.of_matrix(full)


def mask(pattern: Pattern, copies: int) -> np.ndarray:
    one = np.eye(pattern.size)
    for i, j in pattern.pairs:
        one[i, j] = one[j, i] = 1.0
    return np.kron(np.ones((copies, copies)), one)


def box(nodes: tuple[int, int, int], block: int) -> Pattern:
    """Nodes whose places differ by one at most in every direction."""
    at = np.indices(nodes).reshape(3, -1).T
    near = np.all(np.abs(at[:, None] - at[None]) <= 1, axis=2)
    return Pattern.of_matrix(np.kron(near, np.ones((block, block))))


PINNED = Pattern(5, tuple((i - 1, j - 1) for i, j in chain(3, 2).pairs if i > 0))
"""A chain of three nodes with two unknowns, the first of which has one."""

CASES = [
    (BlockTridiagonal(1), chain(6, 1)), (BlockTridiagonal(3), chain(2, 3)),
    (BlockTridiagonal(2).stacked(2), chain(5, 2)), (BlockTridiagonal(2, lacking=1), PINNED),
    (BlockTridiagonal(2, lacking=1).stacked(2), PINNED), (Lattice((2, 4, 2), 2), box((2, 4, 2), 2)),
    (Lattice((2, 2, 3), 1).stacked(2), box((2, 2, 3), 1)), (Sparse(TREE), TREE),
    (Sparse(TREE).stacked(2), TREE), (Sparse(Pattern(3, ())), Pattern(3, ())),
    (Arrow((0, 1), BlockTridiagonal(2)), wheel(8, (0, 1), chain(3, 2))),
    (Arrow((0, 3, 4, 7), BlockTridiagonal(2)).stacked(2), wheel(8, (0, 3, 4, 7), chain(2, 2))),
    (Arrow((7,), Sparse(TREE)), wheel(8, (7,), TREE)),
    (Arrow((2,), Sparse(TREE)).stacked(2), wheel(8, (2,), TREE)),
]  # fmt: skip


@functools.partial(jax.jit, static_argnums=0)
def answers(structure, a, c, x, b):
    """``A^-1 b`` for the tangent of ``a x + c sin x`` and its derivatives by ``c``, forward and reverse."""

    def solution(c):
        return eliminated(structure, lambda x: jnp.sum(a * x[None], axis=1) + c * jnp.sin(x), x).solve(b)

    weights = jnp.arange(1.0, x.shape[0] + 1)
    gradient = jax.grad(lambda c: jnp.sum(weights * solution(c)))
    forward = jax.jacfwd(solution)(c)
    return solution(c), forward, gradient(c), jax.jacfwd(gradient)(c), jax.vmap(solution)(c[None])[0]


@pytest.mark.parametrize(
    ("structure", "pattern"),
    [x if k == 9 else pytest.param(*x, marks=pytest.mark.slow) for k, x in enumerate(CASES)],
)
def test_tangent_solution_and_derivatives(structure, pattern) -> None:
    n = pattern.size * getattr(structure, "copies", 1)
    # unsymmetric, diagonally dominant
    a = mask(pattern, n // pattern.size) * RNG.normal(size=(n, n)) + 8.0 * np.eye(n)
    x, b, weights = RNG.normal(size=n), RNG.normal(size=n), np.arange(1.0, n + 1)
    inverse, bend = np.linalg.inv(a + 0.5 * np.diag(np.cos(x))), np.diag(np.cos(x))
    y = inverse @ b
    # J y = b with J' = diag(cos x)
    first = -inverse @ bend @ y
    second = -2.0 * inverse @ bend @ first
    expected = y, first, weights @ first, weights @ second, y
    for ours, wanted in zip(answers(structure, a, jnp.asarray(0.5), x, b), expected, strict=True):
        np.testing.assert_allclose(ours, wanted, atol=1e-13)  # rounding of sums of a dozen terms


def test_ordering_and_colours_are_those_of_a_narrow_band() -> None:
    """A chain whose nodes are numbered at random has band 1 again, and three colours."""
    from nsjax.linalg.elimination import plan

    shuffled = RNG.permutation(50)
    way = plan(Pattern.of_elements(50, itertools.pairwise(shuffled)))
    assert way.width == 1
    assert way.colours.max() == 2
    assert sorted(way.order) == list(range(50))


def test_patterns_are_compared_by_content() -> None:
    assert Sparse(Pattern.of_elements(3, [(0, 1), (1, 2)])) == Sparse(
        Pattern.of_matrix(np.eye(3, k=1) + np.eye(3, k=-1))
    )
    assert hash(chain(4, 2)) == hash(chain(4, 2))


def test_sizes_that_do_not_fit() -> None:
    assert BlockTridiagonal(2).misfit(6) is None
    assert "not a multiple of the block 2" in str(BlockTridiagonal(2).misfit(7))
    assert BlockTridiagonal(3, lacking=2).misfit(7) is None
    assert "the block 2 without 2" in str(BlockTridiagonal(2, lacking=2).misfit(6))
    assert "lattice has (2, 2, 3) nodes of 2" in str(Lattice((2, 2, 3), 2).misfit(12))
    assert "pattern of 7 unknowns" in str(Sparse(TREE).misfit(8))
    assert "promise structure=" in str(Dense().misfit(2001))
    assert "an arrow around Dense(" in str(Arrow((0,), Dense()).misfit(4))  # type: ignore[arg-type]
    assert "heads = (1, 0)" in str(Arrow((1, 0), BlockTridiagonal(1)).misfit(4))
    assert "heads = (4,)" in str(Arrow((4,), BlockTridiagonal(1)).misfit(4))
    assert "behind the 1 heads of an arrow, nv = 4" in str(Arrow((0,), BlockTridiagonal(3)).misfit(5))


def test_unknowns_before_a_structure() -> None:
    assert bordered(Dense(), 3) == Dense()
    assert bordered(BlockTridiagonal(2), 2) == Arrow((0, 1), BlockTridiagonal(2))
    assert bordered(Arrow((0, 5), BlockTridiagonal(2)), 2) == Arrow((0, 1, 2, 7), BlockTridiagonal(2))


# A structure that somebody else has written: unknowns that know nothing of each other.
@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Divided:
    """An eliminated diagonal matrix."""

    diagonal: jax.Array

    def solve(self, b):
        return b / (self.diagonal if b.ndim == 1 else self.diagonal[:, None])


@dataclasses.dataclass(frozen=True)
class Diagonal:
    """One directional derivative tells all."""

    constant = False
    dense = False

    def misfit(self, size):
        return None

    def stacked(self, copies):
        raise NotImplementedError

    def tangent(self, f, x):
        return jax.jvp(f, (x,), (jnp.ones_like(x),))[1]

    def times(self, matrix, x):
        return matrix * x

    def eliminate(self, matrix, columns):
        return Divided(matrix), Divided(matrix).solve(columns)


def mass(q, p):
    return jnp.diag(2.0 + jnp.sin(q))


def inertia(q, w, p):
    return (2.0 + jnp.sin(q)) * w


def force(t, q, v, p):
    return -p["k"] * q**3 - 9.81


def gap(t, q, p):
    return q + 0.3


def law(p):
    return ContactLaw(restitution=0.5)


DENSE = System(nq=4, nv=4, nc=4, mass=mass, inertia=inertia, force=force, gap=gap, law=law)
START = State(t=0.0, q=np.linspace(0.0, 0.3, 4), v=np.zeros(4))


@pytest.mark.parametrize("name", [pytest.param("half_explicit", marks=pytest.mark.slow)])
def test_it_serves_like_those_of_the_package(name: str) -> None:
    """The same motion and derivative as with dense matrices."""
    scheme = schemes.REGISTRY[name].factory()
    own = dataclasses.replace(DENSE, mass=None, structure=Diagonal())

    def end(k, system):
        return nsjax.simulate(system, {"k": k}, START, scheme, dt=1e-3, steps=500, every=500).q[-1]

    for f in (jax.jit(end, static_argnums=1), jax.jit(jax.jacfwd(end), static_argnums=1)):
        np.testing.assert_allclose(f(5.0, own), f(5.0, DENSE), rtol=1e-10)


def test_what_it_promises_is_looked_at() -> None:
    def coupled(t, q, v, p):
        return force(t, q, v, p) + jnp.roll(q, 1)

    own = dataclasses.replace(DENSE, mass=None, force=coupled, structure=Diagonal())
    with pytest.raises(InputError, match="force over the positions is not Diagonal"):
        nsjax.simulate(own, {"k": 5.0}, START, schemes.moreau(), dt=1e-3, steps=1)
