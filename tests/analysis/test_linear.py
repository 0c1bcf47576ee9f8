"""Modes of systems that were written down with known roots: saddles, flutter, gyroscopes, free bodies."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.analysis import equilibria, equilibrium, modes
from nsjax.core import Problem, State, System
from nsjax.multibody import assemble, beam, body, fixed, force, hinge, joint_spring, section, slide
from nsjax.types import Array, record
from tests.multibody.flexible.beam_cases import cantilever

GRAVITY = 9.81


@record()
class Matrices:
    """Of ``M x'' + C x' + K x = 0`` and of constraints ``G x = 0``."""

    M: Array
    C: Array
    K: Array
    G: Array


def _mass(q, p):
    return p.M


def _force(t, q, v, p):
    return -p.C @ v - p.K @ q


def _constraint(t, q, p):
    return p.G @ q


def linear(M, C, K, G=None) -> Problem:
    n = len(M)
    given = {} if G is None else {"nb": len(G), "constraint": _constraint}
    system = System(nq=n, nv=n, mass=_mass, force=_force, **given)
    G = np.zeros((0, n)) if G is None else G
    return Problem(
        system=system, params=Matrices(M=M, C=C, K=K, G=G), state=State(t=0.0, q=np.zeros(n), v=np.zeros(n))
    )


def mixed(rng, n):
    """A random symmetric matrix about 1, to change coordinates and to be a mass."""
    X = rng.normal(size=(n, n))
    return np.eye(n) + 0.3 * (X @ X.T) / n


def roots(M, C, K) -> np.ndarray:
    """All eigenvalues, from the companion matrix of plain numpy."""
    n = len(M)
    first = np.linalg.solve(M, np.concatenate([K, C], axis=1))
    return np.linalg.eigvals(np.block([[np.zeros((n, n)), np.eye(n)], [-first]]))


def shown(values: np.ndarray, slack: float) -> np.ndarray:
    """Those of no negative imaginary part."""
    return values[values.imag > -slack]


def same(found: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    """Two sets of numbers, in any order."""
    assert len(found) == len(wanted)
    left = list(wanted)
    for x in found:
        k = int(np.argmin(np.abs(np.array(left) - x)))
        assert abs(left.pop(k) - x) <= tolerance, (found, wanted)


def test_inverted_pendulum_grows() -> None:
    """A rod of length ``L``: ``lambda^2 = 3 g / (2 L)``, 3.74 and its opposite."""
    coordinates = "joint"
    L = 1.05
    problem = assemble(
        body("rod", mass=1.0, inertia=L * L / 12.0, com=L / 2.0), hinge("pin", "ground", "rod"),
        gravity=GRAVITY, coordinates=coordinates, start={"rod": np.pi / 2.0},
    )  # fmt: skip
    wanted = np.sqrt(1.5 * GRAVITY / L)
    found = modes(problem)
    assert found.growth == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_allclose(np.sort(found.values.real), [-wanted, wanted], rtol=1e-12)
    np.testing.assert_array_equal(found.values.imag, 0.0)


def test_a_column_above_its_load_grows() -> None:
    """Hinged rigid links with springs: two links of 1 m under an end load ``P`` buckle at ``0.382 k``
    (``2 - phi`` of the golden ratio); above it one mode grows, though it is not among the slowest.
    """
    k = 5.0

    def column(share):
        P = share * 0.5 * (3.0 - np.sqrt(5.0)) * k
        return assemble(
            *(body(x, mass=1.0, inertia=1.0 / 12.0, com=0.5) for x in "ab"),
            hinge("low", "ground", "a"), hinge("high", "a", "b", at=1.0),
            joint_spring("one", "low", stiffness=k), joint_spring("two", "high", stiffness=k),
            force("P", ("b", 1.0), (-P, 0.0)),
        )  # fmt: skip

    def exact(share):
        P = share * 0.5 * (3.0 - np.sqrt(5.0)) * k
        M = np.array([[4.0 / 3.0, 0.5], [0.5, 1.0 / 3.0]])
        K = np.array([[2.0 * k - P, -k], [-k, k - P]])
        return -np.linalg.eigvals(np.linalg.solve(M, K))

    below, above = (modes(column(x), 1) for x in (0.99, 3.0))
    assert below.growth == 0.0
    assert above.growth == pytest.approx(np.sqrt(np.max(exact(3.0))), rel=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_undamped_saddles(seed: int) -> None:
    """Given squares, one of them repeated, one zero, some below zero, in random coordinates."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    squares = rng.uniform(-9.0, 30.0, n)
    squares[0], squares[1] = 0.0, squares[2]
    X = mixed(rng, n)
    found = modes(linear(X @ X.T, np.zeros((n, n)), X @ np.diag(squares) @ X.T), 2 * n)
    rates = np.sqrt(np.abs(squares))
    wanted = [z for w, s in zip(rates, squares, strict=True) for z in ([1j * w] if s >= 0 else [w, -w])]
    same(found.values, np.array(wanted), 1e-12 * 30.0)
    assert np.count_nonzero(found.values == 0.0) == 1
    assert found.growth == pytest.approx(np.sqrt(max(0.0, -squares.min())), rel=1e-10)
    # shapes: (lambda^2 M + K) x = 0
    M, K = X @ X.T, X @ np.diag(squares) @ X.T
    for value, shape in zip(found.values, found.shapes, strict=True):
        assert np.max(np.abs((value**2 * M + K) @ shape)) < 1e-10


@pytest.mark.parametrize("seed", range(6))
def test_any_damping_and_stiffness(seed: int) -> None:
    """Random damped, gyroscopic and circulatory systems, some held by constraints, against the companion
    matrix of plain numpy; ``count`` leaves the growth alone.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 7))
    M, A, B = mixed(rng, n), rng.normal(size=(n, n)), rng.normal(size=(n, n))
    C = {0: A @ A.T / n, 1: A - A.T, 2: 0.0 * A}[seed % 3]
    K = B + B.T if seed < 3 else B
    G = rng.normal(size=(1, n)) if seed % 2 else None
    found = modes(linear(M, C, K, G), 2 * n)
    free = np.eye(n) if G is None else np.linalg.svd(G)[2][1:].T
    wanted = roots(*(free.T @ x @ free for x in (M, C, K)))
    size = np.max(np.abs(wanted))
    same(found.values, shown(wanted, 1e-9 * size), 1e-9 * size)
    assert modes(linear(M, C, K, G), 1).growth == pytest.approx(np.max(wanted.real), abs=1e-9 * size)


def test_gyroscopic_saddle_is_stable() -> None:
    """A hilltop with ``K = -k`` both ways that spins: stable for ``g > 2 sqrt(k)``, with the roots
    ``(g +- sqrt(g^2 - 4 k)) / 2``, whose real parts are zero and no rounding; below it grows with
    ``sqrt(k - g^2 / 4)``.
    """
    k, J = 3.0, np.array([[0.0, -1.0], [1.0, 0.0]])
    for g in (2.0 * np.sqrt(k) + 0.5, 2.0 * np.sqrt(k) - 0.5):
        found = modes(linear(np.eye(2), g * J, -k * np.eye(2)))
        inner = g * g - 4.0 * k
        if inner > 0.0:
            np.testing.assert_array_equal(found.values.real, 0.0)
            wanted = [0.5 * (g - np.sqrt(inner)), 0.5 * (g + np.sqrt(inner))]
            np.testing.assert_allclose(found.values.imag, wanted, rtol=1e-12)
        else:
            np.testing.assert_allclose(found.values.imag, 0.5 * g, rtol=1e-12)
            assert found.growth == pytest.approx(np.sqrt(k - g * g / 4.0), rel=1e-12)


@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_bodies_that_move_freely(damping: float) -> None:
    """Masses in a row with springs of very different stiffness between them: one zero, one value, neither
    growth nor its rounding; a damper to the ground makes it a decay.
    """
    stiffness = np.array([1.0, 1e6, 40.0])
    D = np.diff(np.eye(4), axis=0)
    K, inner = D.T @ np.diag(stiffness) @ D, D.T @ (damping * np.eye(3)) @ D
    found = modes(linear(np.eye(4), inner, K), 8)
    assert found.values[0] == 0.0
    assert np.count_nonzero(found.values == 0.0) == 1
    assert found.growth == 0.0
    if damping:
        held = modes(linear(np.eye(4), inner + np.diag([damping, 0, 0, 0]), K), 8)
        assert np.count_nonzero(held.values == 0.0) == 1  # places are free, velocities are not
        assert held.growth == 0.0
        slow = held.values[np.argsort(np.abs(held.values))[1]]
        exact = roots(np.eye(4), inner + np.diag([damping, 0, 0, 0]), K)
        assert abs(slow - exact[np.argsort(np.abs(exact))[1]]) < 1e-6


@pytest.mark.slow
def test_a_beam_above_its_load_grows() -> None:
    """A cantilever under an end load along it, above Euler's load of ``pi^2 EI / (4 L^2)``: the straight
    position grows. Growth as of the first mode of a clamped column, ``lambda^2`` linear in the load from
    ``-omega_1^2`` at zero through zero at the buckling load, to a few percent (shapes change little).
    """
    problem = cantilever()
    first = modes(problem, 1).values[0].imag
    load = np.pi**2 / 4.0
    for share, sign in ((0.5, -1.0), (1.5, 1.0)):
        pressed = equilibrium(problem, {"tip.value": (-share * load, 0.0, 0.0)}).problem
        found = modes(pressed, 2)
        if sign < 0.0:
            assert found.growth == 0.0
        else:
            assert found.growth == pytest.approx(first * np.sqrt(share - 1.0), rel=0.05)


def slowest_by_long_double(problem: Problem) -> float:
    """Slowest frequency [Hz] of a clamped beam: ``K^-1 M`` by elimination with 64 binary digits."""
    ramp, q = equilibria.ramp_of(problem, None)
    found = equilibria._linearised(ramp.system, ramp.t, jnp.asarray(q), ramp.start)
    M, _, K, held, _ = (np.asarray(x) for x in found)
    free = np.flatnonzero(~np.any(held != 0.0, axis=0))  # the clamp holds the six velocities of a node
    assert len(free) == len(K) - 6
    K, M = (x[np.ix_(free, free)].astype(np.longdouble) for x in (K, M))
    both, n = np.concatenate([K, M], axis=1), len(K)
    for k in range(n):
        pivot = k + np.argmax(np.abs(both[k:, k]))
        both[[k, pivot]] = both[[pivot, k]]
        both[k] = both[k] / both[k, k]
        others = np.arange(n) != k
        both[others] = both[others] - both[others, k : k + 1] * both[k]
    x = np.ones(n, np.longdouble)
    for _ in range(200):
        x = both[:, n:] @ x
        size = np.max(np.abs(x))
        x = x / size
    return float(1.0 / np.sqrt(size) / (2.0 * np.pi))


@pytest.mark.slow
@pytest.mark.parametrize("elements", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_slow_modes_beside_stiff_ones(elements: int) -> None:
    """A blade at 0.9 of the load at which it falls over, 1e9 N beside 10 N m^2: it was 0.0 Hz."""
    weak, twist, length = 10.0, 8.0, 10.0
    stiff = section(EA=1e9, GA=1e9, EI=(1e6, weak), GJ=twist, line_mass=1, line_inertia=1e-3)
    blade = assemble(
        beam("arm", (0, 0, 0), (length, 0, 0), elements=elements, section=stiff),
        fixed("clamp", "ground", "arm.start"),
        force("tip", "arm.end", (0.0, 0.0, 0.0)),
    )
    critical = 4.0126 * np.sqrt(weak * twist) / length**2  # Prandtl 1899
    loaded = equilibrium(blade, {"tip.value": (0.0, 0.0, 0.9 * critical)}, steps=4).problem
    found = modes(loaded, 3).frequencies
    assert found[0] == pytest.approx(slowest_by_long_double(loaded), rel=2e-4)
    # without load it vibrates as a beam does, sqrt(3.516^2 EI / m L^4), slower in bending than in torsion
    bare = modes(blade, 1).frequencies[0]
    assert bare == pytest.approx(3.516 * np.sqrt(weak) / length**2 / (2.0 * np.pi), rel=4.0 / elements**2)
    assert 0.3 * bare < found[0] < 0.7 * bare


def test_modes_are_a_table() -> None:
    """A mass of 1 kg on 100 N/m and 2 N s/m: a tenth of critical damping."""
    problem = assemble(
        body("mass", mass=1.0), slide("rail", "ground", "mass"),
        joint_spring("coil", "rail", stiffness=100.0, damping=2.0),
    )  # fmt: skip
    found = modes(problem)
    assert found.damping_ratios.tolist() == pytest.approx([0.1])
    lines = str(found).splitlines()
    assert lines[0].split("  ")[0] == "mode"
    assert lines[1].split() == ["1", f"{np.sqrt(99.0) / (2.0 * np.pi):.5g}", "0.1", "1", "rail.speed", "+1"]
    assert found._repr_html_().startswith("<pre>")
