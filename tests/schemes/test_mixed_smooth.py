"""Smooth motion: orders of all schemes against DOP853, free fall, a free rigid body."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from nsjax import State, System, schemes
from nsjax.math import rotations
from tests.common.own import OWN
from tests.design import slow_but
from tests.points import unit_mass
from tests.references import slope
from tests.schemes.mixed_runs import MAKE, G, run

# ------------------------------------------------------------------------ smooth nonlinear motion
# Two arms, masses and lengths one, damped in a nonlinear way and driven: mass matrix, gyroscopic terms,
# velocity and time all enter.


def arms_mass(q, p):
    c = jnp.cos(q[0] - q[1])
    return jnp.stack([2.0 + 0.0 * c, c, c, 1.0 + 0.0 * c]).reshape(2, 2)


def arms_force(t, q, v, p):
    xp = np if isinstance(q, np.ndarray) and isinstance(v, np.ndarray) else jnp
    s = xp.sin(q[0] - q[1])
    first = -s * v[1] ** 2 - 2 * G * xp.sin(q[0]) - p * v[0] + 2.0 * xp.sin(5.0 * t)
    second = s * v[0] ** 2 - G * xp.sin(q[1]) - p * v[1] ** 3
    return xp.stack([first, second])


ARMS = System(nq=2, nv=2, mass=arms_mass, force=arms_force)


@functools.cache
def arms_reference() -> np.ndarray:
    def rate(t, x):
        c = np.cos(x[0] - x[1])
        return [*x[2:], *np.linalg.solve([[2, c], [c, 1]], arms_force(t, x[:2], x[2:], 0.3))]

    x = solve_ivp(rate, (0, 1), [1.2, -0.4, 0.5, 1.0], method="DOP853", rtol=3e-14, atol=1e-15).y[:, -1]
    return np.concatenate([x, rate(1.0, x)[2:]])


def arms_errors(scheme, divisions) -> np.ndarray:
    """Errors of position, velocity, and of the acceleration that the scheme remembers, if any."""
    errors = []
    for n in divisions:
        start = State(t=0.0, q=np.array([1.2, -0.4]), v=np.array([0.5, 1.0]))
        traj = run((ARMS, 0.3, start), scheme, 1 / n, n, every=n, save=[])
        a = getattr(traj.carry.carry.memory, "a", np.nan)
        x = np.split(arms_reference(), 3)
        found = zip((traj.q[-1], traj.v[-1], a), x, strict=True)
        errors.append([np.abs(np.asarray(y) - z).max() for y, z in found])
    return np.array(errors)


DIVISIONS = np.array((211, 293, 409, 571, 797, 1117, 1559, 2179))  # not nested


FORECAST = {"moreau, midpoint": lambda: schemes.moreau(force_velocity="midpoint")}
ALL = {name: entry.factory for name, entry in {**schemes.REGISTRY, **OWN}.items()} | MAKE | FORECAST


def order_of(name: str) -> tuple[int, int]:
    """That of position and velocity: variants of the mixed framework and forecasts have two."""
    return {**schemes.REGISTRY, **OWN}[name].order[:2] if name not in {**MAKE, **FORECAST} else (2, 2)


@pytest.mark.parametrize("name", slow_but(ALL, "moreau", "generalized_alpha", "nsga_decoupled"))
def test_order_on_smooth_motion(name):
    errors = arms_errors(ALL[name](), DIVISIONS)
    found = [slope(1 / DIVISIONS, errors[:, k]) for k in (0, 1)]
    np.testing.assert_allclose(found, order_of(name), atol=0.1)
    # half-explicit and ED-alpha have an acceleration of first order; the theta-method stores none
    if name in MAKE and name not in ("half_explicit", "moreau_theta") and "ed_alpha" not in name:
        assert slope(1 / DIVISIONS, errors[:, 2]) == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize("gamma", [0.5, 0.6])
def test_newmark_is_of_second_order_for_gamma_one_half_alone(gamma):
    errors = arms_errors(schemes.newmark(0.3025, gamma), DIVISIONS)
    assert slope(1 / DIVISIONS, errors[:, 0]) == pytest.approx(2 if gamma == 0.5 else 1, abs=0.05)


FALL = System(nq=1, nv=1, mass=unit_mass, force=lambda t, q, v, p: jnp.full(1, -G))


@pytest.mark.parametrize("name", [name for name in MAKE if name != "moreau_theta"])
def test_free_fall_is_exact(name):
    start = State(t=0.0, q=np.array([1.0]), v=np.array([2.0]))
    traj = run((FALL, (), start), MAKE[name](), 1e-2, 100)
    np.testing.assert_allclose(traj.q[:, 0], 1 + 2 * traj.t - G * traj.t**2 / 2, rtol=0, atol=1e-12)


# ------------------------------------------------------------------------------- free rigid body

INERTIA = np.array([1.0, 2.0, 3.0])
SPIN = (0.3, 5.0, 0.2)


def spin_mass(q, p):
    return np.diag(INERTIA)


def gyroscopic(t, q, w, p):
    return jnp.cross(INERTIA * w, w)


BODY = System(
    nq=4, nv=3, mass=spin_mass, force=gyroscopic,
    retract=rotations.rotate, difference=rotations.rotation_between,
)  # fmt: skip


@functools.cache
def body_reference() -> np.ndarray:
    def rate(t, y):
        p, w = y[:4], y[4:]
        turn = 0.5 * np.array([-p[1:] @ w, *(p[0] * w + np.cross(p[1:], w))])
        return np.concatenate([turn, np.cross(INERTIA * w, w) / INERTIA])

    t = np.linspace(0.08, 2, 25)
    return solve_ivp(
        rate, (0, 2), [1, 0, 0, 0, *SPIN], method="DOP853", rtol=3e-14, atol=1e-15, t_eval=t
    ).y.T


def body_errors(name: str, steps: int) -> tuple[float, float, float]:
    """Largest errors of attitude [rad] and angular velocity at 25 times, relative change of energy."""
    start = State(t=0.0, q=np.array([1.0, 0, 0, 0]), v=np.array(SPIN))
    scheme = schemes.ggl_unified(stage_tolerance=1e-16) if name == "ggl_unified" else ALL[name]()
    traj = run((BODY, (), start), scheme, 2 / steps, steps, every=steps // 25, save=[])
    q, w, exact = traj.q[1:], traj.v[1:], body_reference()
    assert np.abs(np.linalg.norm(q, axis=1) - 1).max() < 3e-15
    apart = np.minimum(*(np.linalg.norm(q - s * exact[:, :4], axis=1) for s in (1, -1)))
    energy = (INERTIA * w[-1] ** 2).sum() / (INERTIA * np.square(SPIN)).sum() - 1
    return float((4 * np.arcsin(apart / 2)).max()), float(np.abs(w - exact[:, 4:]).max()), float(energy)


@pytest.mark.parametrize(
    ("name", "figures"),  # rotations.md section 7, at 0.0025 s
    [
        pytest.param("generalized_alpha 0.5", (3.9e-5, 1.2e-4, -2.0e-5), marks=pytest.mark.slow),
        ("generalized_alpha 0.8", (2.7e-5, 7.3e-5, -1.3e-5)),
        pytest.param("generalized_alpha 1", (2.5e-5, 6.6e-5, -1.2e-5), marks=pytest.mark.slow),
        ("ggl_unified", (2.4e-5, 7.3e-5, 0.0)),
        pytest.param("moreau", (3.1e-5, 1.3e-4, 1.2e-5), marks=pytest.mark.slow),
        pytest.param("moreau_theta", (2.5e-5, 6.6e-5, -1.2e-5), marks=pytest.mark.slow),
        pytest.param("half_explicit", (4.0e-5, 1.5e-4, 7e-8), marks=pytest.mark.slow),
        pytest.param("generalized_alpha 0", (1.5e-4, 5.6e-4, -8.4e-5), marks=pytest.mark.slow),
        pytest.param("hht", (3.4e-5, 1.1e-4, -1.8e-5), marks=pytest.mark.slow),
        pytest.param("bathe", (1.1e-5, 3.3e-5, -6.0e-6), marks=pytest.mark.slow),
        pytest.param("ed_alpha 0", (1.3e-5, 2.3e-5, -8.0e-6), marks=pytest.mark.slow),
    ],
)
def test_free_rigid_body(name, figures):
    coarse, fine = body_errors(name, 400), body_errors(name, 800)
    np.testing.assert_allclose(fine, figures, rtol=0.05, atol=2e-14)
    assert np.log2(coarse[0] / fine[0]) == pytest.approx(2, abs=0.03)
    assert np.log2(coarse[1] / fine[1]) == pytest.approx(2, abs=0.03)


def test_traced_numbers_pass() -> None:
    assert jax.jit(lambda rho: schemes.generalized_alpha(rho).coef.rho_inf)(0.3) == 0.3
