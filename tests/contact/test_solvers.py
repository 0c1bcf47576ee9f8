"""The contact solver: laws, closed forms, robustness, methods, lanes."""

from __future__ import annotations

import csv
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.contact import reference_solvers
from experiments.contact.reference_solvers import local_contact
from nsjax import InputError
from nsjax.contact import (
    METHODS,
    ContactProblem,
    RowGroups,
    complementarity_gap,
    cone_violation,
    natural_residual,
    solve,
)
from nsjax.contact.branches import branch_residual, branches, tangent
from tests.contact.problems import check_law, fclib_problem, fclib_residual, random_problem, solve_jit

HARD = {"BoxesStack1-i100000-32", "RockPile_tob1", "spheres-in-a-box-98-i10000-256-10"}
FAST = settings(max_examples=25, deadline=None, derandomize=True)


@jax.jit
def certificates(problem: ContactProblem, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    return natural_residual(problem, x), cone_violation(problem, x), complementarity_gap(problem, x)


@pytest.mark.parametrize(
    ("nc", "nt", "nb", "singular"),
    [pytest.param(3, 1, 0, False, marks=pytest.mark.slow), (2, 1, 2, False), (3, 2, 0, True)],
)
def test_answers_fulfil_the_laws(nc: int, nt: int, nb: int, singular: bool) -> None:
    nv = (nc * (1 + nt) + nb) // 2 + 1 if singular else None
    for seed in range(20):
        problem = random_problem(seed, nc, nt, nb, nv)
        answer = solve_jit(problem)
        assert answer.residual <= 1e-11
        # the certificate bounds the natural map; single products may be ten times larger
        check_law(problem, np.asarray(answer.x), 1e-9)
        residual, violation, gap = certificates(problem, answer.x)
        assert residual <= 1.0001e-11
        size = float(np.max(np.abs(answer.x))) + 1e-300
        assert violation <= 1e-9 * max(size, 1.0)
        assert gap <= 1e-8 * max(size, 1.0) ** 2


def test_certificates_see_wrong_answers() -> None:
    problem = random_problem(1, 3, 2, mu=0.5)
    good = solve_jit(problem).x
    for wrong in (0.9 * good, good + 0.01, -good, jnp.zeros_like(good)):
        residual, violation, gap = certificates(problem, wrong)
        assert residual > 1e-3
        assert violation + gap > 1e-3


def test_sliding_contact_of_the_specification() -> None:
    """`notation.md` section 8: slip with x_N = 1 / (1 - c mu), u_T > 0."""
    for c, mu in ((0.15, 0.5), (0.4, 0.9), (-0.7, 0.3)):
        g = np.array([[1.0, c], [c, 1 + 4 * c * c]])
        problem = ContactProblem(
            rows=RowGroups.of(1, 1), delassus=g, free=np.array([-1.0, 3.0]),
            friction=np.array([mu]), mask=np.array([True]),
        )  # fmt: skip
        normal = 1 / (1 - c * mu)
        x = jax.jit(solve, static_argnames="tolerance")(problem, tolerance=1e-14).x
        np.testing.assert_allclose(x, [normal, -mu * normal], rtol=1e-13)


@pytest.mark.parametrize("coupling", [0.1, 0.3, 0.6, 0.9])
def test_simplified_derivative_converges_at_the_predicted_rate(coupling: float) -> None:
    """The friction force lags by one iteration: rate mu |G_NT| / G_NN; the exact one needs three."""
    mu = 0.5
    c = coupling / mu
    problem = ContactProblem(
        rows=RowGroups.of(1, 1), delassus=jnp.array([[1.0, c], [c, 1 + 4 * c * c]]),
        free=jnp.array([-1.0, 60.0]), friction=jnp.array([mu]), mask=jnp.array([True]),
    )  # fmt: skip
    exact = solve(problem, method="newton", max_iterations=200)
    slow = reference_solvers.solve(problem, "newton_simplified", max_iterations=2000)
    assert exact.iterations <= 3
    np.testing.assert_allclose(slow.x, exact.x, rtol=1e-9)
    predicted = np.log(1e-11) / np.log(coupling)
    assert 0.7 * predicted <= slow.iterations <= 1.3 * predicted + 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "nt"), [(x, k % 3) for k, x in enumerate(sorted({**METHODS, **reference_solvers.METHODS}))]
)
def test_all_methods_find_the_same_motion(method: str, nt: int) -> None:
    """Velocities are unique for moderate friction; impulses need not be."""
    for seed in range(5):
        problem = random_problem(seed, 3, nt, mu=0.2)
        one = solve_jit(problem)
        solver = solve if method in METHODS else reference_solvers.solve
        other = jax.jit(functools.partial(solver, method=method, max_iterations=20_000))(problem)
        assert other.residual <= 1e-11
        scale = float(jnp.max(jnp.abs(problem.free)))
        np.testing.assert_allclose(
            problem.velocity(other.x), problem.velocity(one.x), atol=1e-8 * scale, rtol=0
        )


@pytest.mark.parametrize("method", ["auto_few", "auto_rare"])
def test_numbers_that_are_none_end_at_once(method: str) -> None:
    """Lanes of a batch that do not take a branch may have them; the others would wait for their steps."""
    solved = jax.jit(functools.partial(solve, method=method))
    whole = dataclasses.replace(random_problem(1, 2, 1), mask=jnp.ones(2, bool))
    for name in ("delassus", "free", "friction"):
        broken = getattr(whole, name).at[0].set(jnp.nan)
        found = solved(dataclasses.replace(whole, **{name: broken}))
        # a contact with a row that is none counts as open; the velocity that it answers is none, too
        assert name == "delassus" or not found.residual <= 1e-11, name
        assert found.iterations <= 200, name


def test_unknown_method_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown method 'newtn'; did you mean 'newton'"):
        solve(random_problem(0), method="newtn")


def test_tangent_is_the_derivative_of_the_branch_rows() -> None:
    """The hand-written matrix against automatic differentiation of the rows it belongs to."""
    for nt in (1, 2):
        problem = random_problem(3, 3, nt, mu=0.4)
        rng, r = np.random.default_rng(0), problem.scaling()

        @jax.jit
        def both(x, problem=problem, r=r):
            now = branches(problem, x, problem.velocity(x), r)

            def rows(x):
                u = problem.velocity(x)
                z = problem.contacts(x - r * u)[:, 1:]
                n = z / jnp.linalg.norm(z, axis=1, keepdims=True)
                slope = jnp.where(now.slip[:, None], problem.friction[:, None] * n, 0.0)
                return branch_residual(problem, x, u, r, dataclasses.replace(now, slope=slope))

            z = problem.contacts(x - r * problem.velocity(x))[:, 1:]
            outside = problem.friction * problem.contacts(x)[:, 0] > jnp.linalg.norm(z, axis=1)
            return tangent(problem, x, r, now, 0.0), jax.jacfwd(rows)(x), now.slip & outside

        for _ in range(10):
            x = rng.normal(size=problem.free.shape)
            x = np.where(np.arange(x.shape[0]) % (1 + nt) == 0, np.abs(x), x)
            by_hand, automatic, capped = both(x)
            # where the disk is not larger than |z| (the curvature is capped there on purpose)
            if nt == 2 and np.any(capped):
                continue
            np.testing.assert_allclose(by_hand, automatic, rtol=1e-10, atol=1e-12)


@FAST
@given(st.integers(0, 10_000), st.sampled_from([1, 2, 3]))
def test_local_contact_is_exact(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(d, d + 1))
    g, q = jnp.asarray(w @ w.T + 1e-3 * np.eye(d)), jnp.asarray(rng.normal(size=d) - np.eye(d)[0])
    mu = rng.uniform(0.0, 0.5) * float(g[0, 0]) / (np.abs(g[0, 1:]).max(initial=0.0) + 1e-12)
    mu = min(mu, 2.0)
    x = local(g, q, jnp.asarray(mu))
    problem = ContactProblem(
        rows=RowGroups.of(1, d - 1), delassus=g, free=q, friction=jnp.array([mu]), mask=jnp.array([True])
    )
    assert natural_residual(problem, x) <= 1e-12


local = jax.jit(local_contact)


@FAST
@given(st.integers(0, 10_000))
def test_permutation_of_contacts(seed: int) -> None:
    problem = random_problem(seed, 3, 2, mu=0.3)
    order = np.random.default_rng(seed).permutation(3)
    rows = (order[:, None] * 3 + np.arange(3)).reshape(-1)
    permuted = dataclasses.replace(
        problem, delassus=problem.delassus[rows][:, rows], free=problem.free[rows],
        friction=problem.friction[order], mask=problem.mask[order],
    )  # fmt: skip
    u = problem.velocity(solve_jit(problem).x)
    np.testing.assert_allclose(permuted.velocity(solve_jit(permuted).x), u[rows], atol=1e-9)


@FAST
@given(st.integers(0, 10_000), st.floats(0.0, 6.3))
def test_rotation_of_tangents(seed: int, angle: float) -> None:
    problem = random_problem(seed, 3, 2, mu=0.3)
    c, s = np.cos(angle), np.sin(angle)
    turn = np.kron(np.eye(3), np.array([[1, 0, 0], [0, c, -s], [0, s, c]]))
    turned = dataclasses.replace(
        problem, delassus=turn @ problem.delassus @ turn.T, free=turn @ problem.free
    )
    u = problem.velocity(solve_jit(problem).x)
    np.testing.assert_allclose(turned.velocity(solve_jit(turned).x), turn @ u, atol=1e-9)


@FAST
@given(st.integers(0, 10_000), st.floats(-9, 9), st.floats(-9, 9))
def test_scaling_of_impulses_and_velocities(seed: int, a: float, b: float) -> None:
    """Units of force and velocity do not matter."""
    problem = random_problem(seed, 3, 2, mu=0.3)
    g, u = 10.0**a, 10.0**b
    scaled = dataclasses.replace(problem, delassus=g * problem.delassus, free=u * problem.free)
    x, y = solve_jit(problem), solve_jit(scaled)
    assert y.residual <= 1e-11
    np.testing.assert_allclose(
        scaled.velocity(y.x) / u, problem.velocity(x.x), atol=1e-9 * np.abs(problem.free).max()
    )


@FAST
@given(st.integers(0, 10_000), st.sampled_from([0, 1, 2]), st.floats(0.0, 1.0))
def test_impacts_with_a_common_restitution_dissipate(seed: int, nt: int, e: float) -> None:
    """`notation.md` section 3: dT = x . (u+ + u-) / 2 <= 0 if e_N = e_T = e for all contacts."""
    problem = random_problem(seed, 3, nt)
    before = problem.free
    impact = dataclasses.replace(problem, free=(1 + e) * before)
    x = solve_jit(impact).x
    after = before + problem.delassus @ x
    energy = 0.5 * jnp.sum(x * (before + after))
    scale = jnp.sum(jnp.abs(x)) * jnp.max(jnp.abs(before))
    assert energy <= 1e-9 * scale


def fclib_names(folder) -> list[str]:
    with open(folder / "fclib" / "index.csv") as file:
        return [row["name"] for row in csv.DictReader(file)]


def padded(problem: ContactProblem, nc: int) -> ContactProblem:
    """The problem with masked-out contacts added, so that many problems share one program."""
    d, old = 1 + problem.nt, problem.nc
    g = np.eye(nc * d)
    g[: old * d, : old * d] = problem.delassus
    return ContactProblem(
        rows=RowGroups.of(nc, problem.nt), delassus=jnp.asarray(g),
        free=jnp.asarray(np.append(problem.free, -np.ones((nc - old) * d))),
        friction=jnp.asarray(np.append(problem.friction, np.ones(nc - old))),
        mask=jnp.asarray(np.arange(nc) < old),
    )  # fmt: skip


@pytest.mark.slow
def test_small_fclib_problems(reference_data) -> None:
    """Rover and crank problems: strong coupling on which plain Newton cycles."""
    needed_fallback = 0
    for name in fclib_names(reference_data):
        problem = fclib_problem(reference_data, name)
        if problem.nc > 11:
            continue
        answer = solve_jit(padded(problem, 11))
        x = answer.x[: problem.nc * (1 + problem.nt)]
        assert not np.any(answer.x[x.shape[0] :])
        assert natural_residual(problem, x) <= 1e-10, name
        assert fclib_residual(problem, x) <= 1e-8, name
        needed_fallback += int(answer.rounds > 0)
    assert needed_fallback >= 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["OneObject-i1028-138", "LMGC_100_PR_PerioBox-i00361-60-03000", "BoxesStack1-i100000-32"]
)
def test_medium_fclib_problems(reference_data, name: str) -> None:
    """Dependent contacts: 51 of 69, 72 of 180 and 78 of 156 independent rows."""
    problem = fclib_problem(reference_data, name)
    assert natural_residual(problem, solve_jit(problem).x) <= 1e-8


@pytest.mark.parametrize("contradiction", [5e-11, 1e-10, pytest.param(1e-9, marks=pytest.mark.slow)])
def test_rod_between_two_sticking_masses(contradiction: float) -> None:
    """The rod asks for a length rate against two masses that stick: one must slip, however small it is.

    By hand: ``u_T1 = contradiction > 0``, hence ``x_T1 = -mu``; then ``x_b`` from the velocity of the
    first mass, ``x_T2`` from that of the second. The other way round is outside the cone of the first.
    """
    wt = np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0], [-1, 0, 1, 0]], float)
    problem = ContactProblem(
        rows=RowGroups.of(2, 1, 1), delassus=jnp.asarray(wt @ wt.T),
        free=jnp.array([-1.0, -0.1, -1.0, 0.2, 0.3 + contradiction]), friction=jnp.full(2, 0.5),
        mask=jnp.ones(2, bool),
    )  # fmt: skip
    answer = solve_jit(problem)
    assert answer.residual <= 1e-11
    # the tolerance, and the contradiction itself, which the hand calculation leaves out
    np.testing.assert_allclose(answer.x, [1.0, -0.5, 1.0, 0.4, -0.6], atol=1e-10 + 2 * contradiction)


@pytest.mark.slow
def test_all_fclib_problems(reference_data) -> None:
    reached = {}
    for name in fclib_names(reference_data):
        problem = fclib_problem(reference_data, name)
        reached[name] = float(natural_residual(problem, solve_jit(problem).x))
    print(reached)
    assert all(value <= 1e-8 for name, value in reached.items() if name not in HARD)
    # Asymmetric data (2.5e-3), friction 1, rank 743 of 1389: not solved; what is reached depends on
    # rounding (4e-6 to 8e-5 seen). The bound is what plain Gauss-Seidel reaches in 20 s, 9e-4.
    assert reached["RockPile_tob1"] <= 9e-4


@pytest.mark.parametrize(
    ("where", "method"), [("delassus", "auto"), pytest.param("free", "newton", marks=pytest.mark.slow)]
)
def test_a_contact_without_a_number_is_no_answer(where: str, method: str) -> None:
    """Of two blocks that land, the first has a velocity or a mass that is no number."""
    free, delassus = np.array([-1.0, 0.3, -1.0, 0.3]), np.diag([1.0, 1.2, 1.0, 1.2])
    if where == "free":
        free[0] = np.nan
    else:
        delassus[0, 0] = np.nan
    problem = ContactProblem(
        rows=RowGroups.of(2, 1), delassus=jnp.asarray(delassus), free=jnp.asarray(free),
        friction=jnp.full(2, 0.5), mask=jnp.array([True, True]),
    )  # fmt: skip
    assert not solve(problem, method=method).residual <= 1e-11
    alone = dataclasses.replace(problem, mask=jnp.array([False, True]))
    if where == "free":  # a contact that takes no part may hold anything
        assert solve(alone, method=method).residual <= 1e-11
