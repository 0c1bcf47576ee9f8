"""Books of energy: work, friction, drives and impacts against closed forms."""

from __future__ import annotations

import dataclasses
import functools
import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import State, System, models, schemes
from nsjax.analysis import energy_balance, observed_order
from nsjax.math import rotations
from nsjax.schemes.mixed import framework as mixed
from tests.design import each_family, slow_but
from tests.points import unit_mass
from tests.references.slider_crank import Data, _Mechanism

# Energy books against closed forms, an independent integration, and the balance itself.
G = 9.81
STEPS = np.array([101, 139, 197, 277, 389, 547, 769, 1087])  # they do not nest


def run(problem, scheme, dt, steps, **options) -> nsjax.Trajectory:
    scheme = schemes.REGISTRY[scheme].factory() if isinstance(scheme, str) else scheme
    traj = nsjax.simulate(*problem, scheme, dt=dt, steps=steps, **options)
    traj.raise_for_status()
    return traj


def residuals(problem, scheme, duration: float, steps=STEPS) -> list[float]:
    """Largest error of the balance from the start to any row."""
    books = (energy_balance(run(problem, scheme, duration / n, int(n))) for n in steps)
    return [np.abs(np.cumsum(b.residual)).max() for b in books]


# ------------------------------------------------------------------------ order between impacts


@each_family("scheme")
def test_residual_has_the_order_of_the_scheme_with_a_constraint_and_a_torque(scheme: str) -> None:
    problem = models.slider_crank_bilateral(torque=1.0)
    found = observed_order(1 / STEPS, residuals(problem, scheme, 0.02))
    # the correction of the position makes the unified scheme first order as soon as a constraint acts
    expected = 1 if scheme == "ggl_unified" else schemes.REGISTRY[scheme].order[1]
    assert found == pytest.approx(expected, abs=0.1)


DATA = Data(friction=0.1, torque=1.0)
ANGLE, SPEED, PRESSED = 0.3, 150.0, 3e-3
"""The slider is pressed on the upper wall from this start and for this time."""


@functools.cache
def pressed_reference() -> tuple[float, float]:
    """Work of friction and of the torque, by the crank angle as the only coordinate."""
    mechanism = _Mechanism(DATA)

    def rate(t, z):
        x = mechanism.on_wall(1, z[0], z[1])
        slip = mechanism.slip(x)
        a, _, normal = mechanism.held(x, 1, math.copysign(1.0, slip))
        assert normal > 1.0
        return z[1], a, -DATA.friction * normal * abs(slip), DATA.torque * z[1]

    end = solve_ivp(rate, (0, PRESSED), (ANGLE, SPEED, 0, 0), method="DOP853", rtol=1e-12, atol=1e-13)
    return end.y[2, -1], end.y[3, -1]


def pressed() -> nsjax.Problem:
    x = _Mechanism(DATA).on_wall(1, ANGLE, SPEED)
    return models.slider_crank(
        torque=DATA.torque, friction=DATA.friction, initial_q=(x[0], x[1], 0.0), initial_v=(x[2], x[3], 0.0)
    )


PRESSED_ORDERS = {
    # whatever the order of the force at the end of a step: its time integral has that of the velocity
    "generalized_alpha": (2, 2),
    "hht": (2, 2),
    "newmark": (2, 2),
    "bathe": (2, 2),
    "averaged": (2, 2),
    "half_explicit": (2, 2),
    "ed_alpha": (2, 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", PRESSED_ORDERS)
def test_work_of_friction_and_torque_against_a_minimal_coordinate(scheme: str) -> None:
    averaged = functools.partial(schemes.half_explicit, averaged_force=True)
    make = averaged if scheme == "averaged" else schemes.REGISTRY[scheme].factory
    friction, torque = pressed_reference()
    errors = []
    for n in STEPS:
        books = energy_balance(run(pressed(), make(gap_tolerance=1e-6), PRESSED / n, int(n)))
        assert not books.impact.any()
        assert abs(books.normal).max() < 1e-12  # forces of wall and slider do no work, to solver tolerance
        errors.append(
            (
                np.abs(np.cumsum(books.residual)).max(),
                abs(books.work["friction"].sum() - friction),
                abs(books.force.sum() - torque),
            )
        )
    residual, by_friction, by_torque = (observed_order(1 / STEPS, e) for e in zip(*errors, strict=True))
    assert residual == pytest.approx(PRESSED_ORDERS[scheme][0], abs=0.1)
    assert by_friction == pytest.approx(PRESSED_ORDERS[scheme][1], abs=0.1)
    assert by_torque == pytest.approx(2, abs=0.1)
    assert abs(friction) > 0.1
    assert errors[-1][1] < 1e-4 * abs(friction)


MOMENTS = np.array([1.0, 2.0, 3.0])
TORQUE = np.array([0.5, -0.3, 0.2])


def _top_mass(q, p):
    return np.diag(MOMENTS)


def _top_force(t, q, v, p):
    return p["torque"] * TORQUE - jnp.cross(v, MOMENTS * v)


TOP = System(
    nq=4, nv=3, mass=_top_mass, force=_top_force, retract=rotations.rotate,
    difference=rotations.rotation_between,
)  # fmt: skip
SPIN = State(t=0.0, q=np.array([1.0, 0.0, 0.0, 0.0]), v=np.array([0.2, 4.0, 0.1]))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["moreau", "half_explicit"])
def test_a_free_top_turns_without_work_and_a_torque_works_as_integrated(scheme: str) -> None:
    """Gyroscopic torques have no power; a torque fixed in the body against Euler's equations."""
    free = energy_balance(run((TOP, {"torque": 0.0}, SPIN), scheme, 1e-2, 100))
    # torques of 10 N m at 4 rad/s over 0.01 s: rounding of the power
    assert np.abs(free.force).max() < 1e-15

    def rate(t, y):
        return (*((TORQUE - np.cross(y[:3], MOMENTS * y[:3])) / MOMENTS), TORQUE @ y[:3])

    exact = solve_ivp(rate, (0, 1), (*SPIN.v, 0), method="DOP853", rtol=1e-12, atol=1e-13).y[3, -1]
    books = [energy_balance(run((TOP, {"torque": 1.0}, SPIN), scheme, 1 / n, int(n))) for n in STEPS]
    errors = [abs(b.force.sum() - exact) for b in books]
    assert observed_order(1 / STEPS, errors) == pytest.approx(2, abs=0.1)
    assert observed_order(1 / STEPS, [abs(np.cumsum(b.residual)).max() for b in books]) > 1.9
    assert abs(exact) > 0.1


# ------------------------------------------------------------------------ exact to rounding


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["moreau", pytest.param("generalized_alpha", marks=pytest.mark.slow)])
def test_sliding_block_closes_and_friction_work_is_the_closed_form(scheme: str) -> None:
    slope, mu, mass, speed, time = 0.2, 0.5, 46.8, 2.0, 0.2
    problem = models.block(dimension=2, slope=slope, friction=mu, initial_v=(speed, 0.0, 0.0))
    books = energy_balance(run(problem, scheme, time / 400, 400))
    a = G * (math.sin(slope) - mu * math.cos(slope))
    way = speed * time + 0.5 * a * time**2
    # energies of 100 J over 400 steps; contacts solved to 1e-11
    assert np.abs(books.residual).max() < 1e-12
    assert books.friction.sum() == pytest.approx(-mu * mass * G * math.cos(slope) * way, rel=1e-10)
    assert not books.impact.any()


# ------------------------------------------------------------------------ explicit time


def _spring(t, q, v, p):
    return -(2.0 + jnp.sin(3.0 * t)) * q


def _spring_energy(t, q, p):
    return 0.5 * (2.0 + jnp.sin(3.0 * t)) * q[0] ** 2


def test_a_spring_that_stiffens_gains_energy_by_itself() -> None:
    system = System(nq=1, nv=1, mass=unit_mass, force=_spring, potential=_spring_energy)
    state = State(t=0.0, q=np.ones(1), v=np.zeros(1))

    def rate(t, y):
        return y[1], -(2 + np.sin(3 * t)) * y[0], 1.5 * np.cos(3 * t) * y[0] ** 2

    exact = solve_ivp(rate, (0, 2), (1, 0, 0), method="DOP853", rtol=1e-12, atol=1e-13).y[2, -1]
    errors = [
        abs(energy_balance(run((system, {}, state), "newmark", 2 / n, int(n))).force.sum() - exact)
        for n in STEPS
    ]
    assert abs(exact) > 0.5
    assert observed_order(1 / STEPS, errors) == pytest.approx(2, abs=0.1)


def _weight(t, q, v, p):
    return jnp.full(1, -G)


def _weight_energy(t, q, p):
    return G * q[0]


def _lift(t, q, p):
    return q - 0.2 * jnp.sin(5.0 * t)


@pytest.mark.parametrize("scheme", slow_but(["moreau", "newmark"], "moreau"))
def test_a_moving_constraint_does_the_work_of_a_hoist(scheme: str) -> None:
    system = System(
        nq=1, nv=1, nb=1, mass=unit_mass, force=_weight, potential=_weight_energy, constraint=_lift
    )
    state = State(t=0.0, q=np.zeros(1), v=np.ones(1))
    orders = {"newmark": 2, "moreau": 1}
    time = 0.4
    exact = G * 0.2 * math.sin(5 * time) + 0.5 * (math.cos(5 * time) ** 2 - 1)
    errors = [
        abs(energy_balance(run((system, {}, state), scheme, time / n, int(n))).constraint.sum() - exact)
        for n in STEPS
    ]
    assert observed_order(1 / STEPS, errors) > orders[scheme] - 0.1
    assert errors[-1] < 0.01 * exact


# ------------------------------------------------------------------------ refusals


# What the energy books say of impacts: closed forms, no creation of energy, families of schemes.
@each_family("scheme", "moreau")
def test_loss_of_a_bounce(scheme: str) -> None:
    """``m v^2 (1 - e^2)/2`` with the speed of free fall: exact in parabolas for the mixed schemes, to
    first order for those whose step contains the impact.
    """
    e = 0.6
    traj = run(models.bouncing_ball(restitution=e), scheme, 1e-3, 600)
    books = energy_balance(traj)
    (row,) = np.flatnonzero(books.impact)
    exact = G * (1.0 - (traj.q[row, 0] - 0.05)) * (1 - e**2)
    parabola = isinstance(traj.carry.carry.memory, mixed.Memory)
    assert books.lost_normal.sum() == pytest.approx(exact, rel=1e-11 if parabola else 5e-3)
    assert books.lost_normal.sum() == -books.work["impact_normal"].sum()
    assert books.lost_normal[row, 0] == books.lost_normal.sum()


@pytest.mark.slow
@pytest.mark.parametrize("inside", ["half_explicit", "moreau"])
def test_a_located_bounce_loses_its_energy_at_its_instant(inside: str) -> None:
    """Parabolas are exact, so that the loss is that of the fall from 1 m, whatever the step."""
    scheme = schemes.localized(schemes.REGISTRY[inside].factory())
    for steps in (37, 120):
        problem = models.bouncing_ball(restitution=0.6, height=1.0)
        books = energy_balance(run(problem, scheme, 0.6 / steps, steps, events=2))
        # the instant is found to 1e-11 m of the gap
        assert books.lost_normal.sum() == pytest.approx(G * (1.0 - 0.6**2), abs=1e-9)
        assert abs(books.residual).max() < 1e-12
        assert books.impact.sum() == 1


@pytest.mark.slow
def test_books_of_located_impacts_beside_forces_close_to_second_order() -> None:
    """Drag, and a slider-crank, whose force at the end of a step is not that at its impact."""
    scheme = schemes.localized(schemes.half_explicit())

    def worst(problem: tuple, time: float, steps: int) -> float:
        traj = run(problem, scheme, time / steps, steps, events=20)
        books = energy_balance(traj)
        assert books.impact.any()
        return float(abs(books.residual)[books.impact].max())

    ball, params, state = models.bouncing_ball(restitution=0.6, height=1.0)
    dragged = dataclasses.replace(ball, force=lambda t, q, v, p: ball.force(t, q, v, p) - 0.3 * v)
    for problem, time, steps in (((dragged, params, state), 0.6, 6), (models.slider_crank(), 4e-3, 40)):
        # the part of the step before the impact differs from run to run: the worst of four counts
        grids = [[n * k for k in (10, 11, 12, 13)] for n in (steps, 2 * steps)]
        coarse, fine = (max(worst(problem, time, n) for n in grid) for grid in grids)
        assert fine < 0.4 * coarse


@pytest.mark.slow
def test_a_shaken_table_feeds_energy_that_is_no_gain_of_the_impact() -> None:
    amplitude, frequency, e = 0.02, 30.0, 0.6
    problem = models.bouncing_ball(
        restitution=e, height=0.1, table_amplitude=amplitude, table_frequency=frequency
    )
    traj = run(problem, "newmark", 1e-4, 2000)
    books = energy_balance(traj)
    row = np.flatnonzero(books.impact)[0]
    table = amplitude * frequency * math.cos(frequency * traj.t[row])
    fall = 0.1 - (traj.q[row, 0] - 0.05)
    speed = -math.sqrt(2 * G * fall) - table
    impulse = -(1 + e) * speed
    assert books.lost_normal[row, 0] == pytest.approx(0.5 * speed**2 * (1 - e**2), rel=1e-10)
    assert books.impact_normal[row, 0] + books.lost_normal[row, 0] == pytest.approx(
        impulse * table, rel=1e-10
    )


TWO = {"balls": 2, "dimension": 2, "initial_q": (0.0, 0.15, 0.0, 0.105, 0.17, 0.0),
       "initial_v": (1.0, 0.0, 3.0, -1.0, 0.0, 0.0)}  # fmt: skip


@each_family("scheme")
def test_no_scheme_creates_energy_at_an_impact_of_balls(scheme: str) -> None:
    """With a common restitution, friction included; a frictionless one of 1 keeps the energy."""
    # contacts are solved to 1e-11 of impulses and rates, energies of the impacts are 1 J or less; but the
    # law of nonsmooth generalized-alpha refers to the velocity at the start of the step, and its impulse
    # acts at the end: forces and curvature change the rate by up to 1e-3 of itself in between
    rounding = 1e-3 if scheme.startswith("nsga") else 1e-10
    for e, friction in [(0.0, 0.3), (0.5, 0.3), (0.5, 0.0), (1.0, 0.3), (1.0, 0.0)]:
        law = {"restitution": e, "restitution_tangential": e, "friction": friction}
        books = energy_balance(run(models.bouncing_ball(**TWO, **law), scheme, 5e-4, 800))
        assert books.impact.any()
        lost = books.lost_normal.sum(axis=1) + books.lost_friction.sum(axis=1)
        assert lost.min() > -rounding
        if e < 1.0:
            assert lost.max() > 1e-3
        if e == 1.0 and friction == 0.0:
            assert lost.max() < 10 * rounding
