"""Random contact problems and a reader of the FCLIB data, shared by the tests."""

from __future__ import annotations

import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact import ContactProblem, RowGroups, solve

solve_jit = jax.jit(functools.partial(solve, tolerance=1e-11))


def random_problem(
    seed: int, nc: int = 3, nt: int = 1, nb: int = 0, nv: int | None = None, mu: float | None = None
) -> ContactProblem:
    """``G = W' M^-1 W`` of random directions; singular if ``nv`` is below the number of rows.

    The free velocity lies in the range of ``W'``, as it does for mechanical systems.
    """
    rng = np.random.default_rng(seed)
    m = nc * (1 + nt) + nb
    nv = m + 1 if nv is None else nv
    w = rng.normal(size=(m, nv))
    g = w @ np.diag(rng.uniform(0.5, 2.0, nv)) @ w.T
    friction = rng.uniform(0.0, 1.0, nc) if mu is None else np.full(nc, mu)
    return ContactProblem(
        rows=RowGroups.of(nc, nt, nb), delassus=jnp.asarray(g), free=jnp.asarray(w @ rng.normal(size=nv)),
        friction=jnp.asarray(friction), mask=jnp.asarray(rng.uniform(size=nc) < 0.8),
    )  # fmt: skip


def check_law(problem: ContactProblem, x: np.ndarray, tolerance: float) -> None:
    """The laws written out contact by contact, independent of prox functions."""
    u = np.asarray(problem.free + problem.delassus @ x)
    d = 1 + problem.nt
    size_x = max(np.abs(x).max(), 1e-300)
    size_u = np.abs(problem.free).max() + np.abs(problem.delassus).max() * size_x
    ex, eu = tolerance * size_x, tolerance * size_u
    for k in range(problem.nc):
        xn, un = x[k * d], u[k * d]
        xt, ut = x[k * d + 1 : (k + 1) * d], u[k * d + 1 : (k + 1) * d]
        if not problem.mask[k]:
            assert not x[k * d : (k + 1) * d].any()
            continue
        radius = float(problem.friction[k]) * xn
        assert xn >= -ex
        assert un >= -eu
        assert abs(xn * un) <= 2 * (ex * size_u + eu * size_x)
        assert np.linalg.norm(xt) <= radius + ex
        if problem.nt and np.linalg.norm(xt) < radius - ex:
            assert np.linalg.norm(ut) <= eu
        elif problem.nt:
            dissipation = xt @ ut + np.linalg.norm(xt) * np.linalg.norm(ut)
            assert abs(dissipation) <= 4 * (ex * size_u + eu * size_x)
    assert np.all(np.abs(u[problem.nc * d :]) <= eu)


def fclib_problem(folder: pathlib.Path, name: str) -> ContactProblem:
    """A problem of the folder ``data/fclib``; its README gives the format."""
    import scipy.sparse

    data = np.load(folder / "fclib" / f"{name}.npz")
    parts = (data["W_data"], data["W_indices"], data["W_indptr"])
    w = scipy.sparse.csc_matrix(parts, shape=tuple(data["W_shape"])).toarray()
    nc = len(data["mu"])
    return ContactProblem(
        rows=RowGroups.of(nc, int(data["dim"]) - 1), delassus=jnp.asarray(w), free=jnp.asarray(data["q"]),
        friction=jnp.asarray(data["mu"]), mask=jnp.ones(nc, bool),
    )  # fmt: skip


def fclib_residual(problem: ContactProblem, x: np.ndarray) -> float:
    """Residual of the FCLIB README: ``|r - proj_K(r - u_hat)| / |q|``, step 1, De Saxce's form."""
    d = 1 + problem.nt
    q, mu = np.asarray(problem.free), np.asarray(problem.friction)
    r = np.asarray(x).reshape(-1, d)
    shifted = (np.asarray(problem.delassus) @ np.asarray(x) + q).reshape(-1, d).copy()
    shifted[:, 0] += mu * np.linalg.norm(shifted[:, 1:], axis=1)
    z = r - shifted
    size = np.linalg.norm(z[:, 1:], axis=1)
    length = (z[:, 0] + mu * size) / (1 + mu**2)
    tangent = z[:, 1:] / np.where(size > 0, size, 1)[:, None]
    surface = np.column_stack([length, (mu * length)[:, None] * tangent])
    inside, polar = size <= mu * z[:, 0], mu * size <= -z[:, 0]
    projected = np.where(inside[:, None], z, np.where(polar[:, None], 0.0, surface))
    return float(np.linalg.norm(r - projected) / np.linalg.norm(q))
