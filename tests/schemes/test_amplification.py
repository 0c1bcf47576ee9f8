"""Amplification matrices of the real steps against closed forms: [R&S appendices A, B]; `schemes.md` 10."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import nsjax
from nsjax import schemes
from nsjax.analysis import (
    amplification_matrix,
    numerical_damping,
    observed_order,
    relative_period_error,
    spectral_radius,
)
from tests.design import slow_but

OMEGAS = np.array([1e-3, 0.1, 0.7, 2.0 * np.pi * 0.1, 3.0, 10.0, 500.0, 2e4 * np.pi])
# eight everywhere, so that every scheme is compiled once
STEPS = 2.0 * np.pi * np.array([0.01, 0.1, 0.3, 1.0, 10.0, 1e4, 1.0, 1.0])
ENTRIES, EPSILON = 1e-12, np.finfo(float).eps

POINTS = [(-1.0, 0.5), (-1.0, 0.0), (-1.0, -0.5), (0.5, 0.5), (0.0, 1 / 3), (0.0, 0.1), (0.2, 0.4)]


def assert_matrix(found: Any, asked: np.ndarray, omegas: Any = 1.0) -> None:
    """Equal to 1e-12 of the largest entry. In the stiff limit the start acceleration -Omega^2 q of the
    generalized-alpha family is rounded before it cancels: ``omegas`` grants two units of that.
    """
    found = np.asarray(found)
    assert found.shape == asked.shape
    scale = np.max(np.abs(asked), axis=(-2, -1))
    error = np.max(np.abs(found - asked), axis=(-2, -1)) / scale
    np.testing.assert_array_less(error, np.maximum(ENTRIES, 2.0 * EPSILON * np.asarray(omegas) ** 2))


def newmark_numbers(alpha_m: float, alpha_f: float) -> tuple[float, float]:
    """Beta, gamma of [R&S (98), (102)]."""
    return 0.25 * (1 - alpha_m + alpha_f) ** 2, 0.5 - alpha_m + alpha_f


def generalized_alpha_step(
    omega: float, zeta: float, alpha_m: float, alpha_f: float, beta: float, gamma: float
) -> np.ndarray:
    """Solves [R&S (20)-(24)] with dt = 1 for ``(q, v, A, a)`` at the end of the step."""
    equilibrium = np.array([omega**2, 2 * zeta * omega])
    left = np.array(
        [
            [1, 0, -beta, 0], [0, 1, -gamma, 0], [0, 0, 1 - alpha_m, -(1 - alpha_f)], [*equilibrium, 0, 1],
        ]
    )  # fmt: skip
    right = np.array(
        [
            [1, 1, 0.5 - beta], [0, 1, 1 - gamma], [*(-alpha_f * equilibrium), -alpha_m], [0, 0, 0],
        ]
    )  # fmt: skip
    return np.linalg.solve(left, right)[:3]


def formula_96(omega: float, am: float, af: float, b: float, g: float) -> np.ndarray:
    """[R&S (95), (96)] as printed, for ``X = (q, dt v, dt^2 A)`` (erratum 5)."""
    w = omega**2
    d = 1 - am + (1 - af) * b * w
    rows = [
        [1 - am - af * b * w, 1 - am, (0.5 - b) * (1 - am) - b * am],
        [-g * w, 1 - am - (1 - af) * (g - b) * w, (1 - g) * (1 - am) - g * am - (1 - af) * (g / 2 - b) * w],
        [-w, -(1 - af) * w, -(1 - af) * (0.5 - b) * w - am],
    ]
    return np.array(rows) / d


@pytest.mark.parametrize("point", POINTS)
def test_generalized_alpha_matrix(point: tuple[float, float]) -> None:
    numbers = newmark_numbers(*point)
    scheme = schemes.generalized_alpha(alpha_m=point[0], alpha_f=point[1])
    for zeta in (0.0, 0.05, 0.8):
        asked = np.stack([generalized_alpha_step(w, zeta, *point, *numbers) for w in OMEGAS])
        assert_matrix(amplification_matrix(scheme, OMEGAS, zeta), asked, OMEGAS)
    printed = np.stack([formula_96(w, *point, *numbers) for w in OMEGAS])
    assert_matrix(amplification_matrix(scheme, OMEGAS), printed, OMEGAS)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8, 1.0])
def test_spectral_radius_sets_all_parameters(rho: float) -> None:
    point = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    asked = np.stack([formula_96(w, *point, *newmark_numbers(*point)) for w in OMEGAS])
    assert_matrix(amplification_matrix(schemes.generalized_alpha(rho), OMEGAS), asked, OMEGAS)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5])
def test_hht_matrix(alpha: float) -> None:
    asked = np.stack([formula_96(w, 0.0, alpha, *newmark_numbers(0.0, alpha)) for w in OMEGAS])
    assert_matrix(amplification_matrix(schemes.hht(alpha), OMEGAS), asked, OMEGAS)


@pytest.mark.parametrize(("beta", "gamma"), [(0.25, 0.5), (1 / 6, 0.5), (0.3, 0.6), (0.5, 1.0)])
def test_newmark_matrix(beta: float, gamma: float) -> None:
    asked = np.stack([formula_96(w, 0.0, 0.0, beta, gamma) for w in OMEGAS])
    assert_matrix(amplification_matrix(schemes.newmark(beta, gamma), OMEGAS), asked, OMEGAS)


def bathe_matrix(omega: float) -> np.ndarray:
    """`schemes.md` section 10: [R&S (106)] with its rows reversed."""
    w = omega**2
    rows = [
        [144 - 19 * w, 144 - 5 * w, 28],
        [w**2 - 96 * w, 144 - 47 * w, 48 - 4 * w],
        [19 * w**2 - 144 * w, 5 * w**2 - 144 * w, -28 * w],
    ]
    return np.array(rows) / ((16 + w) * (9 + w))


def test_bathe_matrix() -> None:
    asked = np.stack([bathe_matrix(w) for w in OMEGAS])
    assert_matrix(amplification_matrix(schemes.bathe(), OMEGAS), asked)


def bathe_stability(z: complex) -> complex:
    return (12 + 5 * z) / ((3 - z) * (4 - z))


def ed_stability(rho: float, ar: float, z: complex) -> complex:
    alpha = (1 - rho) / (1 + rho)
    upper = 2 + (1 - 2 * alpha * ar) * z + ar * (1 - alpha) * z**2
    return upper / (2 - (1 + 2 * alpha * ar) * z + ar * (1 + alpha) * z**2)


def theta_stability(theta: float, z: complex) -> complex:
    return (1 + (1 - theta) * z) / (1 - theta * z)


CASES = [
    ("bathe", schemes.bathe(), bathe_stability),
    ("trapezoidal", schemes.newmark(), lambda z: (2 + z) / (2 - z)),
    *[
        (f"ed {rho} {ar}", schemes.ed_alpha(rho, ar), lambda z, rho=rho, ar=ar: ed_stability(rho, ar, z))
        for rho, ar in [(0.0, 1 / 6), (0.5, 1 / 6), (0.8, 1 / 6), (1.0, 1 / 6), (0.0, 0.05), (0.0, 0.3)]
    ],
    *[
        (f"theta {theta}", schemes.moreau_theta(theta), lambda z, theta=theta: theta_stability(theta, z))
        for theta in (0.5, 0.6, 1.0)
    ],
]


@pytest.mark.parametrize(("scheme", "stability"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
@pytest.mark.parametrize("zeta", [0.0, 0.3])
def test_stability_function(scheme: nsjax.Scheme, stability: Any, zeta: float) -> None:
    matrices = np.asarray(amplification_matrix(scheme, OMEGAS, zeta))
    for omega, matrix in list(zip(OMEGAS, matrices, strict=True))[:6]:
        z = omega * complex(-zeta, np.sqrt(1 - zeta**2))
        roots = [stability(z), stability(z.conjugate())]
        # the algorithmic acceleration of the trapezoidal rule has a root of its own, zero as well
        asked = np.poly(roots + [0.0] * (len(matrix) - 2)).real
        minors = 0.5 * (np.trace(matrix) ** 2 - np.trace(matrix @ matrix))
        found = [1.0, -np.trace(matrix), minors, -np.linalg.det(matrix)][: len(matrix) + 1]
        scale = max(1.0, np.max(np.abs(matrix)))
        np.testing.assert_allclose(found, asked, atol=1e-11 * scale)


def test_explicit_matrices() -> None:
    # velocity Verlet, and the leap from midpoint to midpoint seen at the step ends
    one, w = np.ones_like(OMEGAS), OMEGAS**2
    verlet = np.array([[1 - w / 2, one], [-w * (1 - w / 4), 1 - w / 2]]).transpose(2, 0, 1)
    assert_matrix(amplification_matrix(schemes.half_explicit(), OMEGAS), verlet)
    midpoint = np.array([[1 - w / 2, 1 - w / 4], [-w, 1 - w / 2]]).transpose(2, 0, 1)
    assert_matrix(amplification_matrix(schemes.moreau(), OMEGAS), midpoint)


TABLE = [
    (schemes.newmark(), "1 1 1 1 1 1", "3.2075e-2"),
    (schemes.generalized_alpha(0.5), "1.000000 0.997733 0.944296 0.748527 0.551112 0.500494", "4.6715e-2"),
    (schemes.hht(0.5), "1.000000 0.998061 0.950263 0.768470 0.991827 1.000000", "4.2951e-2"),
    (schemes.bathe(), "1.000000 0.999494 0.973944 0.648466 0.079384 0.000080", "1.6179e-2"),
    (schemes.ed_alpha(0.0, 0.3), "0.999999 0.993166 0.708028 0.134369 0.010643 0.000011", "-2.3162e-2"),
]
"""Radii and period errors of matrices whose entries are tested above: what makes them of a matrix."""


@pytest.mark.parametrize(("scheme", "radii", "period"), TABLE)
def test_table(scheme: nsjax.Scheme, radii: str, period: str) -> None:
    found = spectral_radius(scheme, STEPS)[:6]
    # half a unit of the last printed digit; "1" stands for an exact one
    half = [5e-7 if "." in text else 1e-9 for text in radii.split()]
    asked = np.array([float(text) for text in radii.split()])
    assert np.all(np.abs(found - asked) <= 1.001 * np.array(half)), found - asked
    unit = 10.0 ** (int(period.split("e")[1]) - 4)
    assert abs(relative_period_error(scheme, STEPS)[1] - float(period)) <= 0.5001 * unit


def exact_and_found(rho: float, omegas: np.ndarray, zeta: float) -> tuple[np.ndarray, np.ndarray, Any]:
    """Generators of ``(q, dt v)``, their exponentials, and the step of ED-alpha from a consistent start."""
    w, one = omegas, np.ones_like(omegas)
    generator = np.array([[0 * one, one], [-(w**2), -2 * zeta * w]]).transpose(2, 0, 1)
    matrix = np.asarray(amplification_matrix(schemes.ed_alpha(rho), omegas, zeta))
    found = matrix[:, :2, :2] + matrix[:, :2, 2:] * generator[:, 1:]
    return generator, np.stack([scipy.linalg.expm(a) for a in generator]), found


@pytest.mark.parametrize("rho", [0.0, 1e-6, *np.random.default_rng(38).uniform(0.0, 1.0, 2), 1.0])
@pytest.mark.parametrize("zeta", [0.0, 0.4])
def test_ed_alpha_has_order_three_on_linear_problems_for_every_damping(rho: float, zeta: float) -> None:
    """[R&S] section 2.6. By hand, with ``e^z D(z) - N(z)`` of the stability function ``N / D`` for 1/6: the
    terms up to ``z^3`` vanish for every alpha, that of ``z^4`` is ``alpha/72``, and that of ``z^5`` is
    1/720 for ``alpha = 0``. The next term is smaller by |z|, with a coefficient of the same size.
    """
    omegas = np.array([0.2, 0.1, 0.05, 0.025, 0.4, 0.3, 0.15, 0.08])
    generator, exact, found = exact_and_found(rho, omegas, zeta)
    alpha = (1 - rho) / (1 + rho)
    leading = alpha / 72 * np.linalg.matrix_power(generator, 4) + np.linalg.matrix_power(generator, 5) * (
        0.0 if alpha else 1 / 720
    )
    size = np.linalg.norm(generator, axis=(1, 2), ord=2)
    left = np.abs(exact - found - leading).max(axis=(1, 2))
    np.testing.assert_array_less(left, (alpha + size) * size**5 / 72 + 1e-14)
    if alpha > 0.1:  # and the order is not higher than said
        assert np.all(np.abs(exact - found).max(axis=(1, 2)) > 0.3 * alpha / 72 * omegas**4)


FORCED = nsjax.System(
    nq=1, nv=1, mass=lambda q, p: jnp.eye(1),
    force=lambda t, q, v, p: jnp.cos(p["rate"] * t) - p["stiffness"] * q,
)  # fmt: skip


@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("rate", "order"), [(0.0, 3), (1.7, 2)])
def test_order_of_ed_alpha_with_a_constant_and_a_changing_load(rho: float, rate: float, order: int) -> None:
    state, stiffness, end = nsjax.State(t=0.0, q=jnp.zeros(1), v=jnp.ones(1)), 2.0, 2.0
    w = np.sqrt(stiffness)
    gain = 1 / (stiffness - rate**2)
    steps, errors = (40, 80, 160), []
    for n in steps:
        params = {"rate": rate, "stiffness": stiffness}
        traj = nsjax.simulate(FORCED, params, state, schemes.ed_alpha(rho), dt=end / n, steps=n)
        t = np.asarray(traj.t)
        exact = gain * (np.cos(rate * t) - np.cos(w * t)) + np.sin(w * t) / w
        errors.append(np.abs(np.asarray(traj.q)[:, 0] - exact).max())
    asked = 4 if (rho == 1.0 and order == 3) else order
    assert observed_order(1.0 / np.array(steps), errors) == pytest.approx(asked, abs=0.15)


def test_damping() -> None:
    omegas = np.geomspace(1e-3, 1e-2, 8)
    for scheme in (schemes.generalized_alpha(0.5), schemes.bathe(), schemes.ed_alpha(), schemes.newmark()):
        np.testing.assert_allclose(numerical_damping(scheme, omegas, 0.2), 0.2, rtol=1e-4)
        assert np.all(np.abs(relative_period_error(scheme, omegas, 0.2)) < 1e-4)
    assert numerical_damping(schemes.newmark(), 2.0) == pytest.approx(0.0, abs=1e-13)
    # more than critically damped: no complex root
    assert np.isnan(numerical_damping(schemes.newmark(), 0.1, 1.5))


def test_shapes_and_traced_numbers() -> None:
    grid = np.array([[0.1, 1.0, 2.0], [3.0, 4.0, 5.0]])
    assert amplification_matrix(schemes.bathe(), grid).shape == (2, 3, 3, 3)
    assert amplification_matrix(schemes.moreau(), 0.5).shape == (2, 2)
    assert spectral_radius(schemes.bathe(), grid, np.zeros((2, 1))).shape == (2, 3)
    assert relative_period_error(schemes.bathe(), grid).shape == (2, 3)

    def entry(rho: Any) -> Any:
        return amplification_matrix(schemes.generalized_alpha(rho), 0.9)[2, 2]

    swept = jax.jit(jax.vmap(entry))(jnp.array([0.2, 0.4]))
    np.testing.assert_allclose(swept, [entry(0.2), entry(0.4)], rtol=1e-14)
    # the matrix is a derivative already, and implicit stages have only one
    with pytest.raises(nsjax.InputError, match="first derivatives"):
        jax.grad(entry)(0.4)


def test_memory_is_checked() -> None:
    with pytest.raises(nsjax.InputError, match="choose one of algorithmic, true, none"):
        amplification_matrix(schemes.bathe(), 0.1, memory="both")
    with pytest.raises(nsjax.InputError, match=r"does not have the accelerations.* choose none"):
        amplification_matrix(schemes.moreau(), 0.1, memory="true")
    scheme = schemes.bathe()
    silent = dataclasses.replace(scheme, traits=dataclasses.replace(scheme.traits, accelerations=None))
    with pytest.raises(nsjax.InputError, match="choose one of algorithmic, true, none"):
        amplification_matrix(silent, 0.1)
    said = amplification_matrix(schemes.bathe(), 0.1)
    np.testing.assert_array_equal(amplification_matrix(silent, 0.1, memory="true"), said)
    # the trapezoidal rule keeps its algorithmic and its true acceleration equal
    found = np.linalg.eigvals(np.asarray(amplification_matrix(schemes.newmark(), 0.5, memory="none")))
    assert np.max(np.abs(found)) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize(
    "name", slow_but(["nsga_decoupled", "nsga_neglected", "nsga_coupled"], "nsga_decoupled")
)
def test_nonsmooth_generalized_alpha_is_generalized_alpha_on_smooth_motion(name: str) -> None:
    rho = 0.8
    omegas = OMEGAS[:6]
    ours = amplification_matrix(getattr(schemes, name)(rho), omegas, 0.1)
    asked = np.asarray(amplification_matrix(schemes.generalized_alpha(rho), omegas, 0.1))
    assert_matrix(ours, asked, omegas)
