"""What schemes of second order keep of it: between impacts, and with motion prescribed in time.

Everything is compared with DOP853 on equations written here, in minimal coordinates where the model has
constraints. Step sizes never nest; all slopes are least squares in logarithmic axes.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from nsjax import State, System, models, schemes
from nsjax.contact import ContactLaw
from tests.design import each_family
from tests.points import unit_mass
from tests.references import slope
from tests.schemes.mixed_runs import run

G = 9.81
QUICK = ("generalized_alpha 1",)
VARIANTS = {
    "generalized_alpha 0": lambda: schemes.generalized_alpha(0.0),
    "generalized_alpha 1": lambda: schemes.generalized_alpha(1.0),
    "ed_alpha 0.5": lambda: schemes.ed_alpha(0.5),
}
# Rows (contacts, constraints) taken at a midpoint cost these schemes their second order, by their
# docstrings; all others take them at the end of the step.
PREDICTED = ("moreau", "moreau_theta", "ggl_decoupled")  # at q_i + dt/2 v_i
IMPLICIT = ("ggl_unified",)  # at (q_i + q_{i+1}) / 2
# Contact forces are impulses over whole steps, of first order; contacts hold on position level. After a
# plastic impact the stored acceleration, of the motion before it, may lift the body by O(dt^2) for a step.
IMPULSES = ("nsga_coupled", "nsga_decoupled", "nsga_neglected")


def make(name: str, **options):
    return VARIANTS[name]() if name in VARIANTS else schemes.REGISTRY[name].factory(**options)


def orders(name: str, *, rows: bool) -> tuple[int, int, int]:
    """Orders of (q, v, force), with contacts or constraints at work or without."""
    if rows and name in PREDICTED + IMPLICIT:
        return 1, 1, 1
    return schemes.REGISTRY[name.split(" ")[0]].order


def chosen(names, quick=QUICK):
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in names]


def integrate(rate, t0: float, x0, times) -> np.ndarray:
    """States at the increasing ``times``; DOP853 at its tightest tolerance, without interpolation."""
    rows = []
    for time in times:
        x0 = solve_ivp(rate, (t0, time), x0, method="DOP853", rtol=3e-14, atol=1e-15).y[:, -1]
        t0 = time
        rows.append(x0)
    return np.array(rows)


# ------------------------------------------------------------- one impact, then flight or sliding
# A mass with a position-dependent mass matrix, driven and damped in a nonlinear way, falls into a bowl
# y = x^2 / 2. Normal and tangent carry the same factor sqrt(1 + x^2), so that friction is Coulomb's.

MU = 0.2
START = np.array([-0.9, 0.6, 2.5, 0.3])


def bowl_mass(q, p):
    one = 1.0 + 0.0 * q[0]
    return jnp.stack([1.0 + 0.3 * q[0] ** 2, 0.1 * one, 0.1 * one, one]).reshape(2, 2)


def bowl_force(t, q, v, p):
    xp = np if isinstance(q, np.ndarray) and isinstance(v, np.ndarray) else jnp
    along = -0.3 * q[0] * v[0] ** 2 - 0.2 * v[0] ** 3 + 2 * xp.sin(8 * t) + 0.5 * v[1] * v[0]
    return xp.stack([along, -G - 0.5 * v[1] - 0.5 * v[0] ** 2])


def bowl_gap(t, q, p):
    return (q[1] - 0.5 * q[0] ** 2)[None]


def bowl_slip(t, q, v, p):
    return (v[0] + q[0] * v[1])[None, None]


def bowl_law(p):
    return ContactLaw(restitution=p["restitution"], restitution_tangential=0.0, friction=MU)


BOWL = System(
    nq=2, nv=2, nc=1, nt=1, mass=bowl_mass, force=bowl_force, gap=bowl_gap, slip=bowl_slip, law=bowl_law
)


def bowl_terms(t, x):
    """Free acceleration, and acceleration and normal row per newton of normal force when slipping to
    the right.
    """
    mass = np.array([[1 + 0.3 * x[0] ** 2, 0.1], [0.1, 1]])
    normal = np.array([-x[0], 1.0])
    free = np.linalg.solve(mass, bowl_force(t, x[:2], x[2:], None))
    return free, np.linalg.solve(mass, normal - MU * np.array([1.0, x[0]])), normal


def flying(t, x):
    return [*x[2:], *bowl_terms(t, x)[0]]


def bowl_normal_force(t, x) -> float:
    """Keeps the gap's rate constant: ``n' a = vx^2``. It does not see the gap, which the impact, found
    at the end of a step, leaves a little below zero.
    """
    free, unit, normal = bowl_terms(t, x)
    return (x[2] ** 2 - normal @ free) / (normal @ unit)


def sliding(t, x):
    free, unit, _ = bowl_terms(t, x)
    return [*x[2:], *(free + unit * bowl_normal_force(t, x))]


@functools.cache
def landing() -> tuple[float, np.ndarray]:
    """Time and state of the impact."""

    def height(t, x):
        return x[1] - 0.5 * x[0] ** 2

    height.terminal, height.direction = True, -1
    found = solve_ivp(flying, (0, 1), START, method="DOP853", rtol=3e-14, atol=1e-15, events=height)
    return float(found.t[-1]), found.y[:, -1]


def after_impact(x, restitution: float) -> np.ndarray:
    """Newton's law along the normal; slips to the right throughout."""
    _, unit, normal = bowl_terms(0.0, x)
    impulse = -(1 + restitution) * (normal @ x[2:]) / (normal @ unit)
    v = x[2:] + unit * impulse
    assert min(x[2] + x[0] * x[3], v[0] + x[0] * v[1], impulse) > 0
    return np.concatenate([x[:2], v])


DIVISIONS = np.array((97, 139, 197, 281, 397, 557, 787, 1103))


@functools.cache
def interval_errors(name: str, restitution: float) -> np.ndarray:
    """Errors of (q, v, force) on the interval after the impact alone, and of (q, v) of the whole run.

    The impact falls into every grid at the same part of a step, which makes its error of first order a
    smooth function of dt. The interval begins 0.05 s later, from the scheme's own state.
    """
    rate = flying if restitution else sliding
    struck, x = landing()
    errors = []
    for n in DIVISIONS:
        dt = struck / (n + 0.3)
        first, last = int(np.ceil((struck + 0.05) / dt)), int((struck + 0.27) / dt)
        problem = (BOWL, {"restitution": restitution}, State(t=0.0, q=START[:2], v=START[2:]))
        traj = run(problem, make(name), dt, last)
        assert traj.impacts.sum() == 1
        assert np.all((traj.force_normal[first:] > 0) == (restitution == 0))
        states, end = np.concatenate([traj.q, traj.v], axis=1), float(traj.t[last])
        own = integrate(rate, float(traj.t[first]), states[first], [end])[0]
        whole = integrate(rate, struck, after_impact(x, restitution), [end])[0]
        force = abs(traj.force_normal[last, 0] - bowl_normal_force(end, own))
        errors.append([*_parts(states[last] - own), force, *_parts(states[last] - whole)])
    return np.array(errors)


def _parts(difference) -> tuple[float, float]:
    """Largest errors of position and velocity."""
    return np.abs(difference[:2]).max(), np.abs(difference[2:]).max()


def slopes(steps, errors) -> np.ndarray:
    return np.array([slope(steps, column) for column in errors.T])


@pytest.mark.parametrize(
    "name", chosen([*QUICK, "generalized_alpha 0", "half_explicit", "bathe", "ed_alpha 0.5"], ())
)
def test_order_two_is_regained_in_flight_after_an_impact(name):
    found = slopes(1 / DIVISIONS, interval_errors(name, 0.6))
    np.testing.assert_allclose(found[:2], 2, atol=0.1)
    np.testing.assert_allclose(found[3:], 1, atol=0.1)


@pytest.mark.parametrize(
    "name",
    chosen([*QUICK, "generalized_alpha 0", "half_explicit", "bathe", "ed_alpha 0.5", "ggl_unified"], ()),
)
def test_order_is_regained_in_sliding_after_a_plastic_impact(name):
    found = slopes(1 / DIVISIONS, interval_errors(name, 0.0))
    np.testing.assert_allclose(found[:3], orders(name, rows=True), atol=0.1)
    np.testing.assert_allclose(found[3:], 1, atol=0.1)


# ------------------------------------------------------------------ prescribed motion: constraints

INSTANTS = 10
PER_INSTANT = np.array((13, 17, 23, 31, 43, 59, 83, 113))


def support(t, order: int = 0):
    """Place of the pendulum's support and its derivatives."""
    if isinstance(t, float | np.ndarray):
        return (0.2 * np.sin(3 * t), 0.6 * np.cos(3 * t), -1.8 * np.sin(3 * t))[order]
    return 0.2 * jnp.sin(3 * t)


def pendulum_force(t, q, v, p):
    return jnp.stack([-0.3 * v[0], -G - 0.3 * v[1]])


def rod(t, q, p):
    return 0.5 * ((q[0] - support(t)) ** 2 + q[1] ** 2 - 1.0)[None]


PENDULUM = System(nq=2, nv=2, nb=1, mass=unit_mass, force=pendulum_force, constraint=rod)


def pendulum_lift(t, z):
    """(q, v), angular acceleration, and force of the unit rod from angle and angular velocity."""
    out, along = np.array([np.sin(z[0]), -np.cos(z[0])]), np.array([np.cos(z[0]), np.sin(z[0])])
    carried = np.array([support(t, 2), 0.0])
    v = np.array([support(t, 1), 0.0]) + along * z[1]
    load = np.array([0.0, -G]) - 0.3 * v
    turn = along @ (load - carried)
    acceleration = carried + along * turn - out * z[1] ** 2
    return np.concatenate([out + np.array([support(t), 0.0]), v]), turn, out @ (acceleration - load)


def pendulum_rate(t, q, v):
    return (q[..., 0] - support(t)) * (v[..., 0] - support(t, 1)) + q[..., 1] * v[..., 1]


def pull(t, order: int = 0):
    """Prescribed position of the dragged mass and its derivatives."""
    if isinstance(t, float | np.ndarray):
        c, s = np.cos(2 * t), np.sin(2 * t)
        return (0.5 * c + 0.5 * np.sin(t), -s + 0.5 * np.cos(t), -2 * c - 0.5 * np.sin(t))[order]
    return 0.5 * jnp.cos(2 * t) + 0.5 * jnp.sin(t)


def drag_mass(q, p):
    one, c = 1.0 + 0.0 * q[0], 0.2 * jnp.cos(q[1] - q[0])
    return jnp.stack([one, c, c, one]).reshape(2, 2)


def drag_force(t, q, v, p):
    spring = 4 * jnp.sin(q[1] - q[0]) + 1.2 * (v[1] - v[0])
    return jnp.stack([spring, -spring])


def drag_constraint(t, q, p):
    return (q[0] - pull(t))[None]


DRAG = System(nq=2, nv=2, nb=1, mass=drag_mass, force=drag_force, constraint=drag_constraint)


def drag_lift(t, z):
    """(q, v), acceleration of the second mass, and force on the first from the second's motion."""
    spring = 4 * np.sin(z[0] - pull(t)) + 1.2 * (z[1] - pull(t, 1))
    coupling = 0.2 * np.cos(z[0] - pull(t))
    a = -spring - coupling * pull(t, 2)
    force = pull(t, 2) + coupling * a - spring
    return np.array([pull(t), z[0], pull(t, 1), z[1]]), a, force


def drag_rate(t, q, v):
    return v[..., 0] - pull(t, 1)


DRIVEN = {
    "moved support": (PENDULUM, pendulum_lift, pendulum_rate, (1.0, 0.5)),
    "dragged mass": (DRAG, drag_lift, drag_rate, (0.9, -1.0)),
}


@functools.cache
def driven_reference(model: str) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) and force of the constraint at tenths of a second."""
    _, lift, _, z = DRIVEN[model]
    times = [float(t) for t in np.arange(1, INSTANTS + 1) / INSTANTS]
    path = integrate(lambda t, z: [z[1], lift(float(t), z)[1]], 0.0, z, times)
    lifted = [lift(t, z) for t, z in zip(times, path, strict=True)]
    return np.array([x for x, _, _ in lifted]), np.array([force for _, _, force in lifted])


@pytest.mark.parametrize("model", DRIVEN)
@each_family("name", "moreau")
def test_constraints_that_depend_on_time(name, model):
    system, lift, rate, z = DRIVEN[model]
    start, _, _ = lift(0.0, z)
    exact, force = driven_reference(model)
    errors = []
    for per in PER_INSTANT:
        n = INSTANTS * int(per)
        traj = run((system, (), State(t=0.0, q=start[:2], v=start[2:])), make(name), 1 / n, n)
        q, v, t = traj.q, traj.v, traj.t
        off = np.abs(np.concatenate([q, v], axis=1)[per::per] - exact)
        missed = np.abs(traj.constraint_force[per::per, 0] - force).max()
        errors.append([off[:, :2].max(), off[:, 2:].max(), missed])
        # the constraint on velocity level, g_q v + g_t = 0, where the scheme takes its rows
        middle = t[:-1] + 0.5 / n
        if name in PREDICTED:
            kept = rate(middle, q[:-1] + 0.5 / n * v[:-1], v[1:])
        elif name in IMPLICIT:
            kept = rate(middle, 0.5 * (q[:-1] + q[1:]), v[1:])
        else:
            kept = rate(t, q, v)
        # the stage solver stops at an estimate of the next update, 1e-12 (1 + |v|) with |v| < 5
        assert np.abs(kept).max() < 3e-11
        if schemes.REGISTRY[name].position_level:
            held = jax.vmap(system.constraint, (0, 0, None))(jnp.asarray(t), jnp.asarray(q), ())
            assert np.abs(held).max() < 3e-11
    np.testing.assert_allclose(slopes(1 / PER_INSTANT, np.array(errors)), orders(name, rows=True), atol=0.1)


# --------------------------------------------------------------------- prescribed motion: a wall

AMPLITUDE, FREQUENCY = 0.02, 15.0  # the table accelerates by up to 4.5 m/s^2 and keeps the ball


@each_family("name", "moreau")
def test_ball_rests_on_a_table_that_vibrates(name):
    # Velocity-level contact lets the gap drift. From the table's lowest place it drifts downwards in the
    # schemes that take the rows at the end; those with a midpoint swing about zero and open the contact.
    midpoint = name in PREDICTED + IMPLICIT
    scheme = make(name, **({"gap_tolerance": 1e-3} if midpoint else {}))
    problem = models.bouncing_ball(
        restitution=0.5, radius=0.0, table_amplitude=AMPLITUDE, table_frequency=FREQUENCY
    ).replace(initial_time=-0.5 * np.pi / FREQUENCY, initial_q=[-AMPLITUDE], initial_v=[0.0])
    errors = []
    for per in PER_INSTANT:
        n = INSTANTS * int(per)
        traj = run(problem, scheme, 1 / n, n)
        phase = FREQUENCY * traj.t[per::per]
        push = G - AMPLITUDE * FREQUENCY**2 * np.sin(phase)
        off = (
            traj.q[per::per, 0] - AMPLITUDE * np.sin(phase),
            traj.v[per::per, 0] - AMPLITUDE * FREQUENCY * np.cos(phase),
            traj.force_normal[per::per, 0] - push,
        )
        errors.append([np.abs(x).max() for x in off])
        assert np.all(traj.force_normal[1:] > 0)
        assert traj.impacts.sum() == 0
    errors = np.array(errors)
    expected = orders(name, rows=True)
    if name in IMPULSES:
        assert errors[:, 0].max() < 1e-12  # the criterion of the position correction
        errors[:, 0], expected = 1.0 / PER_INSTANT, (1, 1, 1)
    if not midpoint:  # the velocity is that of the table to rounding
        assert errors[:, 1].max() < 1e-14
        errors[:, 1] = 1.0 / PER_INSTANT ** expected[1]
    np.testing.assert_allclose(slopes(1 / PER_INSTANT, errors), expected, atol=0.1)
