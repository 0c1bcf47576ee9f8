"""Poisson's law of restitution beside its two phases by enumeration of all contact modes."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import nsjax
from nsjax import ContactLaw, Problem, State, System, models, schemes
from nsjax import multibody as mb
from nsjax.contact import PoissonLaw
from nsjax.types import Array
from tests.slopes import with_slopes

SLOW = pytest.mark.slow
HALF, HIGH = 0.3, 0.5
"""Half width and half height [m] of a block that stands on two corners."""

MASSES = np.array([1.0, 1.0, 0.15, 0.4])
"""Masses and inertia; the last is that of one foot, which slides in the block: no row depends on others."""


def mass(q: Any, p: Any) -> Any:
    return jnp.diag(MASSES)


def force(t: Any, q: Any, v: Any, p: Any) -> Any:
    return jnp.zeros(4)


def gap(t: Any, q: Any, p: Any) -> Any:
    return jnp.stack([q[1] - HALF * q[2], q[1] + HALF * q[2]])


def slip(t: Any, q: Any, v: Any, p: Any) -> Any:
    return jnp.stack([v[0] + (HIGH + 0.1) * v[2], v[0] + HIGH * v[2] + v[3]])[:, None]


def poisson(p: Any) -> Any:
    return PoissonLaw(restitution=p["e"], friction=p["mu"])


BLOCK = System(nq=4, nv=4, nc=2, nt=1, mass=mass, force=force, gap=gap, slip=slip, law=poisson)


def after(x: Any, scheme: Any = None) -> Array:
    """Velocity after the impact of both corners, from ``x``: velocity (4,), ``e`` (2,), ``mu`` (2,)."""
    start = State(t=0.0, q=jnp.array([0.0, -1e-12, 0.0, 0.0]), v=x[:4])
    params = {"e": x[4:6], "mu": x[6:]}
    return nsjax.simulate(
        BLOCK, params, start, scheme or schemes.moreau(), dt=1e-9, steps=1, gradient="discrete"
    ).v[-1]


def phase(u: np.ndarray, g: np.ndarray, mu: np.ndarray, back: np.ndarray) -> list[np.ndarray]:
    """All impulses (rows,) of a phase whose normal impulses are at least ``back``, by enumeration.

    Rows are normal and tangent of each contact. A contact gives ``back`` and moves apart, or more and
    stays; it sticks or slides in one of two senses.
    """
    n, found, small = len(mu), [], 1e-9
    for modes in itertools.product(itertools.product((0, 1), (0, 1, -1)), repeat=n):
        a, b = np.zeros((2 * n, 2 * n)), np.zeros(2 * n)
        for k, (stays, slides) in enumerate(modes):
            if stays:
                a[2 * k], b[2 * k] = g[2 * k], -u[2 * k]
            else:
                a[2 * k, 2 * k], b[2 * k] = 1.0, back[k]
            if slides:
                a[2 * k + 1, 2 * k + 1], a[2 * k + 1, 2 * k] = 1.0, slides * mu[k]
            else:
                a[2 * k + 1], b[2 * k + 1] = g[2 * k + 1], -u[2 * k + 1]
        x = np.linalg.lstsq(a, b, rcond=None)[0]
        w = u + g @ x
        fine = np.abs(a @ x - b).max() < small
        for k, (_, slides) in enumerate(modes):
            fine &= x[2 * k] >= back[k] - small and w[2 * k] >= -small
            fine &= abs(x[2 * k + 1]) <= mu[k] * x[2 * k] + small
            fine &= slides * w[2 * k + 1] >= -small
        if fine:
            found.append(x)
    return found


ROWS = np.array([
    [0.0, 1.0, -HALF, 0.0], [1.0, 0.0, HIGH + 0.1, 0.0], [0.0, 1.0, HALF, 0.0], [1.0, 0.0, HIGH, 1.0],
])  # fmt: skip


def enumerated(x: np.ndarray, rows: np.ndarray = ROWS, masses: Any = MASSES) -> list[np.ndarray]:
    """All velocities after an impact by Poisson's law."""
    n, nv = len(rows) // 2, len(masses)
    v, e, mu = x[:nv], x[nv : nv + n], x[nv + n :]
    response = np.linalg.solve(np.diag(masses), rows.T)
    ends = []
    for pressed in phase(rows @ v, rows @ response, mu, np.zeros(n)):
        middle = v + response @ pressed
        for more in phase(rows @ middle, rows @ response, mu, e * pressed[::2]):
            ends.append(middle + response @ more)
    return ends


def draws(count: int) -> np.ndarray:
    """Velocities, of which some strike one corner alone, and coefficients."""
    rng = np.random.default_rng(3)
    v = rng.normal(size=(count, 4)) - np.array([0.0, 1.5, 0.0, 0.0])
    v[::3, 1] = -HALF * np.abs(v[::3, 2])  # one corner rests
    return np.concatenate(
        [v, rng.uniform(0.1, 1.0, (count, 2)), rng.uniform(0.05, 0.5, (count, 2))], axis=1
    )


@pytest.mark.slow
def test_impacts_of_two_corners_with_friction() -> None:
    """The answer is one of the enumeration."""
    x = draws(24)
    found = np.asarray(jax.jit(jax.vmap(after))(jnp.asarray(x)))
    struck = 0
    for one, v in zip(x, found, strict=True):
        ends = enumerated(one)
        assert ends
        assert min(np.abs(end - v).max() for end in ends) < 1e-7, one
        struck += np.abs(v - one[:4]).max() > 0.01
    assert struck > 20


@SLOW
def test_their_derivatives() -> None:
    """Forward and reverse, by velocities and coefficients, beside differences of the enumeration."""
    x = draws(24)[[1, 2, 4, 5, 7]]
    forward = np.asarray(jax.jit(jax.vmap(jax.jacfwd(after)))(jnp.asarray(x)))
    reverse = np.asarray(jax.jit(jax.vmap(jax.jacrev(after)))(jnp.asarray(x)))
    np.testing.assert_allclose(forward, reverse, atol=1e-10)
    compared = 0
    for one, slopes in zip(x, forward, strict=True):
        step = 1e-6
        around = [[enumerated(one + s * step * np.eye(8)[k]) for s in (1, -1)] for k in range(8)]
        if any(np.ptp(np.array(ends), axis=0).max() > 1e-6 for pair in around for ends in pair):
            continue  # several answers
        secant = np.stack([(a[0] - b[0]) / (2.0 * step) for a, b in around], axis=1)
        np.testing.assert_allclose(slopes, secant, atol=1e-5)
        compared += 1
    assert compared >= 3


def ball(law: Any) -> Problem:
    system, params, state = models.bouncing_ball(height=1.0)

    def own(p: Any) -> Any:
        return law(restitution=p.restitution, friction=p.friction)

    made = dataclasses.replace(system, law=own, name="", choices=())
    return Problem(system=made, params=params, state=state)


OTHERS = ["ggl_decoupled", "half_explicit", "generalized_alpha", "bathe", "hht", "newmark", "ed_alpha"]


@pytest.mark.parametrize("name", ["moreau", *(pytest.param(x, marks=SLOW) for x in OTHERS)])
def test_a_ball_bounces_as_by_newton(name: str) -> None:
    """With what follows of the step for schemes of impulses: a part of first order in it; and it rests."""
    ends = []
    for dt in (1e-3, 5e-4):
        both = [
            nsjax.simulate(*ball(law), getattr(schemes, name)(), dt=dt, time=1.0, every=round(1.0 / dt))
            for law in (ContactLaw, PoissonLaw)
        ]
        ends.append(float(np.abs(both[0].q[-1] - both[1].q[-1]).max()))
    assert ends[0] < 0.02
    assert ends[1] < 0.75 * ends[0] + 1e-9
    rests = nsjax.simulate(*ball(PoissonLaw), getattr(schemes, name)(), dt=2e-3, time=8.0, every=4000)
    np.testing.assert_allclose(rests.q[-1, 0], 0.05, atol=2e-4)


@pytest.mark.parametrize("name", ["moreau_theta", "ggl_unified", "nsga_decoupled"])
def test_schemes_with_one_problem_refuse_it(name: str) -> None:
    with pytest.raises(
        nsjax.InputError, match="the contacts have Poisson's law, whose impacts are two contact"
    ):
        nsjax.simulate(*ball(PoissonLaw), getattr(schemes, name)(), dt=1e-3, steps=2)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["joint", pytest.param("absolute", marks=SLOW)])
def test_a_rod_strikes_a_rough_floor(coordinates: str) -> None:
    """As a mechanism, at several speeds in one batch: sliding, sticking and turning sliding."""
    angle, e, mu = 1.0, 0.8, 0.3
    rod = mb.assemble(
        mb.body("rod", mass=1.0, inertia=1.0 / 12.0),
        mb.contact(
            "floor", mb.point("rod", at=(-0.5, 0.0)), mb.plane(), restitution=e, friction=mu, poisson=True
        ),
        start={"rod": (0.0, 0.5 * np.sin(angle) - 1e-12, angle)}, coordinates=coordinates,
    )  # fmt: skip
    rows = np.array([
        [0.0, 1.0, -0.5 * np.cos(angle)], [1.0, 0.0, 0.5 * np.sin(angle)],
    ])  # fmt: skip
    speeds = np.array([[x, -1.0, w] for x in (-2.0, -0.2, 0.0, 0.3, 1.0) for w in (-1.0, 0.5)])

    def run(v: Array) -> Array:
        start = rod.replace({"state.v": v})
        return nsjax.simulate(*start, schemes.moreau(), dt=1e-9, steps=1).v[-1]

    found = jax.jit(jax.vmap(run))(jnp.asarray(speeds))
    for v, after in zip(speeds, found, strict=True):
        ends = enumerated(np.array([*v, e, mu]), rows, [1.0, 1.0, 1.0 / 12.0])
        assert min(np.abs(np.asarray(after) - x).max() for x in ends) < 1e-7, v


def test_what_poisson_does_not_go_with_is_refused() -> None:
    parts = [mb.body("one", mass=1.0, inertia=1.0), mb.body("two", mass=1.0, inertia=1.0)]

    def floor(body: str, **given: Any) -> Any:
        return mb.contact(f"{body}_floor", mb.point(body), mb.plane(), friction=0.3, **given)

    with pytest.raises(nsjax.InputError, match="Poisson's restitution, and 'two_floor' has Newton's"):
        mb.assemble(*parts, floor("one", poisson=True), floor("two"))
    fast = {"friction_sliding": 0.2, "friction_speed": 0.1}
    with pytest.raises(nsjax.InputError, match="restitution and friction or restitution that depend"):
        mb.assemble(parts[0], floor("one", poisson=True, **fast))


def balls(coordinates: str, **given: Any) -> Problem:
    """Two balls above the floor, which are islands in absolute coordinates."""
    floor = [
        mb.contact(f"{x}_floor", mb.sphere(x, 0.1), mb.plane(), restitution=0.5, **given) for x in "ab"
    ]
    return mb.assemble(
        *(mb.body(x, mass=1.0, inertia=0.01) for x in "ab"), *floor, gravity=9.81, coordinates=coordinates,
        start={"a": (0.0, 0.3, 0.0), "b": (1.0, 0.4, 0.0)},
    )  # fmt: skip


@SLOW
def test_mechanisms_have_no_islands() -> None:
    """Both kinds of coordinates have one motion."""
    joint, absolute = (
        nsjax.simulate(*balls(x, poisson=True), schemes.moreau(), dt=1e-2, steps=60, every=60).q[-1]
        for x in ("joint", "absolute")
    )
    np.testing.assert_allclose(joint, absolute, atol=1e-12)


@pytest.mark.slow
def test_islands_are_refused() -> None:
    system, params, state = balls("absolute")
    assert system.islands == 2
    apart = dataclasses.replace(system, law=lambda p: PoissonLaw(restitution=0.5))
    with pytest.raises(
        nsjax.InputError, match="does not work with contacts in islands or between changing"
    ):
        nsjax.simulate(apart, params, state, schemes.moreau(), dt=1e-2, steps=2)


ROD = 1.0 / 12.0
"""Moment of inertia of a rod of unit mass and length [kg m^2]."""


def rod_system() -> System:
    """A falling rod in the plane, whose lower end strikes a rough floor by Poisson's law."""

    def end(q: Any) -> Any:
        return jnp.stack([q[0] - 0.5 * jnp.cos(q[2]), q[1] - 0.5 * jnp.sin(q[2])])

    def rate(q: Any, v: Any) -> Any:
        return jax.jvp(end, (q,), (v,))[1]

    return System(
        nq=3, nv=3, nc=1, nt=1, mass=lambda q, p: jnp.diag(jnp.array([1.0, 1.0, ROD])),
        force=lambda t, q, v, p: jnp.array([0.0, -9.81, 0.0]), gap=lambda t, q, p: end(q)[1:],
        slip=lambda t, q, v, p: rate(q, v)[None, :1], law=poisson,
    )  # fmt: skip


def rod_by_events(x: np.ndarray, time: float) -> np.ndarray:
    """State (6,) after the first impact, by the closed form of the flight and the enumerated impact.

    Args:
        x: height of the centre, angle, velocity (3,), ``e``, ``mu``.
        time: of the end, before a second impact.
    """
    height, angle, vx, vy, w, e, mu = x

    def lower(t: float) -> float:
        return height + vy * t - 4.905 * t**2 - 0.5 * np.sin(angle + w * t)

    struck = scipy.optimize.brentq(lower, 0.0, time, xtol=1e-15)
    at = angle + w * struck
    rows = np.array([[0.0, 1.0, -0.5 * np.cos(at)], [1.0, 0.0, 0.5 * np.sin(at)]])
    before = np.array([vx, vy - 9.81 * struck, w, e, mu])
    (after,) = enumerated(before, rows, [1.0, 1.0, ROD])
    left = time - struck
    place = np.array([vx * struck, height + vy * struck - 4.905 * struck**2, at]) + after * left
    place[1] -= 4.905 * left**2
    assert place[1] > 0.5 * abs(np.sin(place[2]))
    return np.concatenate([place, after - np.array([0.0, 9.81 * left, 0.0])])


THROWN = {
    "slides": [1.0, 0.9, 1.5, 0.0, 0.4, 0.6, 0.1],
    "sticks": [1.0, 1.2, -0.3, 0.0, -0.2, 0.5, 0.6],
    "turns": [1.0, 1.0, -0.55, 0.0, 0.1, 0.8, 0.3],
}
"""Height, angle, velocity, ``e`` and ``mu``: sliding throughout, sticking, sliding that turns."""


BACKWARDS = ("moreau", "bathe", "localized moreau")


@SLOW
@pytest.mark.parametrize("name", [
    "moreau", "ggl_decoupled", "half_explicit", "bathe", "ed_alpha", "localized moreau",
    "localized generalized_alpha",
])  # fmt: skip
def test_derivatives_of_a_run(name: str) -> None:
    """Through the impact of a rod, beside the event-driven motion: of first order in the step, and exact
    where impacts are located.
    """
    time, steps = 0.5, 1000
    scheme = getattr(schemes, name.split()[-1])()
    exact = name.startswith("localized")
    system = rod_system()

    def run(x: Array) -> Array:
        start = State(t=0.0, q=jnp.array([0.0, x[0], x[1]]), v=x[2:5])
        end = nsjax.simulate(
            system, {"e": x[5], "mu": x[6]}, start, schemes.localized(scheme) if exact else scheme,
            dt=time / steps, steps=steps, every=steps,
        )  # fmt: skip
        return jnp.concatenate([end.q[-1], end.v[-1]])

    drawn = np.array(list(THROWN.values()))
    values, forward = map(np.asarray, jax.jit(jax.vmap(with_slopes(run)))(drawn))
    if name in BACKWARDS:
        reverse = jax.jit(jax.vmap(jax.jacrev(run)))(drawn)
        np.testing.assert_allclose(forward, reverse, rtol=1e-8, atol=1e-8)
    for k, x in enumerate(drawn):
        step = 1e-6 * np.eye(7)
        slopes = [(rod_by_events(x + h, time) - rod_by_events(x - h, time)) / 2e-6 for h in step]
        secant = np.stack(slopes, axis=1)
        one, part = (1e-6, 1e-6) if exact else (10.0 * time / steps, 5.0 * time / steps)
        np.testing.assert_allclose(values[k], rod_by_events(x, time), atol=one)
        np.testing.assert_allclose(forward[k], secant, atol=part * np.abs(secant).max())
