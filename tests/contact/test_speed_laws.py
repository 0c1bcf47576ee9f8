"""Contact laws that depend on the speed against event-driven runs and closed forms."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import InputError, State, System, schemes, status
from nsjax import multibody as mb
from nsjax.analysis import contact_phases, energy_balance
from nsjax.contact import ContactLaw, SpeedLaw
from nsjax.types import record
from tests.design import each_family

G = 9.81
STEPS = [10.0 ** (-2.0 - k / 10.0) for k in range(20)]
"""Step sizes [s] from 1e-2 to 1.3e-4."""


def mass(q: Any, p: Any) -> Any:
    """That of a block, or of a ball."""
    return p["m"] * jnp.eye(2)


def force(t: Any, q: Any, v: Any, p: Any) -> Any:
    """Weight, and a spring in the floor's direction."""
    return jnp.stack([-p["k"] * q[0], -p["m"] * G])


def gap(t: Any, q: Any, p: Any) -> Any:
    """Height above the floor."""
    return q[1:]


def slip(t: Any, q: Any, v: Any, p: Any) -> Any:
    """Velocity against a belt."""
    return (v[:1] - p["belt"])[:, None]


def law(p: Any) -> SpeedLaw:
    """With all its numbers."""
    return SpeedLaw(
        restitution=p["e"], friction=p["rest"], friction_sliding=p["fast"], friction_speed=p["speed"],
        restitution_speed=p["fall"],
    )  # fmt: skip


def dry(t: Any, q: Any, v: Any, p: Any) -> Any:
    """Rate that a guide with dry friction opposes."""
    return v[:1]


def bound(p: Any) -> Any:
    """Its bound [N]."""
    return p["dry"][None]


BLOCK = System(nq=2, nv=2, nc=1, nt=1, mass=mass, force=force, gap=gap, slip=slip, law=law)
GUIDED = dataclasses.replace(BLOCK, nd=1, dry_friction=dry, dry_friction_bound=bound)
NUMBERS = {
    "m": 2.0, "k": 0.0, "belt": 0.0, "e": 0.8, "rest": 0.4, "fast": 0.2, "speed": 0.5, "fall": 2.0,
    "dry": 1.0,
}  # fmt: skip


def coefficient(p: dict[str, float], s: Any) -> Any:
    """Stribeck's curve."""
    return p["fast"] + (p["rest"] - p["fast"]) * np.exp(-((s / p["speed"]) ** 2))


def run(system: System, p: Any, start: Any, scheme: Any, dt: float, time: float) -> Any:
    """The run from the start (x, y, vx, vy); its last row alone."""
    steps = round(time / dt)
    state = State(t=0.0, q=jnp.asarray(start[:2], float), v=jnp.asarray(start[2:], float))
    return nsjax.simulate(system, p, state, scheme, dt=time / steps, steps=steps, every=steps)


def slowed(p: dict[str, float], v: float, time: float, guide: float = 0.0) -> float:
    """Velocity of a block that slides without a stop."""
    rate = lambda t, y: -coefficient(p, y) * G - guide / p["m"]  # noqa: E731
    return solve_ivp(rate, (0.0, time), [v], rtol=1e-11, atol=1e-13).y[0, -1]


@each_family("name", "moreau")
def test_friction_falls_with_the_speed(name: str) -> None:
    """A block slows down as an integration says, in both senses, to first order in the step: the worst of
    twenty step sizes, related to the step, is below half the change of the coefficient in a second.
    """
    scheme = getattr(schemes, name)()
    for sense in (1.0, -1.0):
        exact = sense * slowed(NUMBERS, 2.0, 0.5)
        off = [
            abs(float(run(BLOCK, NUMBERS, (0, 0, sense * 2.0, 0), scheme, dt, 0.5).v[-1, 0]) - exact) / dt
            for dt in STEPS
        ]
        assert max(off) < 0.05


@pytest.mark.slow
@each_family("name", "moreau")
def test_derivatives_of_sliding(name: str) -> None:
    """By the numbers of the law, the mass and the speed, against differences of the integration; forward
    equal to reverse.
    """
    scheme, keys = getattr(schemes, name)(), ("rest", "fast", "speed", "m")

    def end(x: jax.Array) -> jax.Array:
        p = NUMBERS | dict(zip(keys, x, strict=False))
        return run(GUIDED, p, jnp.stack([0.0, 0.0, x[4], 0.0]), scheme, 1e-3, 0.4).v[-1, 0]

    at = np.array([*(NUMBERS[k] for k in keys), 2.0])

    def exact(x: np.ndarray) -> float:
        return slowed(NUMBERS | dict(zip(keys, x, strict=False)), x[4], 0.4, NUMBERS["dry"])

    wanted = [(exact(at + d) - exact(at - d)) / 2e-4 for d in 1e-4 * np.eye(5)]
    forward, reverse = (f(end)(jnp.asarray(at)) for f in (jax.jacfwd, jax.jacrev))
    # the coefficients of a step are those of its start
    np.testing.assert_allclose(forward, wanted, rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(reverse, forward, rtol=1e-9, atol=1e-12)


def stick_slip(p: dict[str, float], time: float) -> tuple[np.ndarray, float]:
    """Instants at which a block on a belt behind a spring begins to slide, and its largest position; it
    starts at rest on the belt, at x = 0.
    """
    t, x, begun, largest = 0.0, 0.0, list[float](), 0.0
    most = p["rest"] * p["m"] * G / p["k"]
    while True:
        t, x = t + (most - x) / p["belt"], most
        if t >= time:
            return np.array(begun), largest
        begun.append(t)

        def slides(_: float, y: np.ndarray) -> list[float]:
            pull = coefficient(p, p["belt"] - y[1]) * G
            return [y[1], pull - p["k"] / p["m"] * y[0]]

        def sticks(_: float, y: np.ndarray) -> float:
            return y[1] - p["belt"]

        sticks.terminal, sticks.direction = True, 1.0  # type: ignore[attr-defined]
        found = solve_ivp(  # the velocity is a little below that of the belt, where it would stick at once
            slides,
            (t, t + 9.0),
            [x, p["belt"] - 1e-7],
            events=sticks,
            rtol=1e-10,
            atol=1e-12,
            max_step=0.01,
        )
        t, x, largest = found.t[-1], found.y[0, -1], max(largest, found.y[0].max())


@pytest.mark.parametrize("name", ["moreau", pytest.param("bathe", marks=pytest.mark.slow)])
def test_stick_and_slip_on_a_belt(name: str) -> None:
    """Static over dynamic friction: the block sticks to the belt until the spring pulls it back. Its period
    and the largest elongation, which grows on while the block slides slowly, are those of the event-driven
    run.
    """
    p = NUMBERS | {"k": 50.0, "belt": 0.1, "rest": 0.4, "fast": 0.2, "speed": 0.02}
    begun, largest = stick_slip(p, 12.0)
    period = np.diff(begun)[-1]
    state = State(t=0.0, q=jnp.zeros(2), v=jnp.array([0.1, 0.0]))
    traj = nsjax.simulate(BLOCK, p, state, getattr(schemes, name)(), dt=1e-3, time=12.0)
    assert int(traj.status) == 0
    x, stuck = np.asarray(traj.q[:, 0]), np.abs(np.asarray(traj.v[:, 0]) - p["belt"]) < 1e-9
    leaves = np.flatnonzero(stuck[:-1] & ~stuck[1:])
    found = np.diff(leaves[x[leaves] > 0.9 * p["rest"] * p["m"] * G / p["k"]])[-1] * 1e-3
    assert found == pytest.approx(period, rel=3e-3)
    assert x.max() == pytest.approx(largest, rel=3e-3)


def bounces(h: Any, e: Any, fall: Any, count: int) -> Any:
    """Time of the last of ``count`` impacts of a ball, and its speed afterwards."""
    t, u = jnp.sqrt(2.0 * h / G), jnp.sqrt(2.0 * h * G)
    for k in range(count):
        u = e * (1.0 + u / fall) ** -0.25 * u
        t = t + (2.0 * u / G if k < count - 1 else 0.0)
    return t, u


@each_family("name", "moreau")
def test_impacts_lose_more_the_faster_they_are(name: str) -> None:
    """Height after three impacts against the closed form: the worst of ten step sizes, in velocities times
    the step, which is as late as impacts are seen.
    """
    scheme, time = getattr(schemes, name)(), 1.4
    t, u = bounces(1.0, 0.8, 2.0, 3)
    exact = float(u * (time - t) - 0.5 * G * (time - t) ** 2)
    off = [
        abs(float(run(BLOCK, NUMBERS, (0.0, 1.0, 0.0, 0.0), scheme, dt, time).q[-1, 1]) - exact) / dt
        for dt in STEPS[:10]
    ]
    assert max(off) < 2.0 * np.sqrt(2.0 * G)


@pytest.mark.parametrize(
    ("name", "system"),
    [
        pytest.param(x, y, marks=pytest.mark.slow)
        for x, y in (
            ("moreau", GUIDED),
            ("generalized_alpha", BLOCK),
            ("ggl_unified", BLOCK),
            ("nsga_decoupled", GUIDED),
        )
    ],
)
def test_restitution_falls_with_the_speed(name: str, system: System) -> None:
    """Height of a ball after three impacts, and its derivatives by height, restitution and speed of the
    fall, against the closed form; forward equal to reverse. Beside a guide with dry friction as without.
    """
    scheme, time = schemes.localized(getattr(schemes, name)()), 1.4

    def height(x: jax.Array) -> jax.Array:
        t, u = bounces(*x, 3)
        return u * (time - t) - 0.5 * G * (time - t) ** 2

    at = jnp.array([1.0, 0.8, 2.0])
    exact, slopes = height(at), jax.jacfwd(height)(at)
    assert 0.0 < float(bounces(*at, 3)[0]) < time < float(bounces(*at, 4)[0])

    def end(x: jax.Array) -> jax.Array:
        p = NUMBERS | {"e": x[1], "fall": x[2]}
        return run(system, p, jnp.stack([0.0, x[0], 0.0, 0.0]), scheme, 2e-3, time).q[-1, 1]

    # impacts are located: what is left is their speed, which is taken at the start of a step
    assert float(end(at)) == pytest.approx(float(exact), abs=2e-3)
    forward, reverse = (f(end)(at) for f in (jax.jacfwd, jax.jacrev))
    np.testing.assert_allclose(forward, slopes, rtol=2e-2, atol=1e-2)
    np.testing.assert_allclose(reverse, forward, rtol=1e-9, atol=1e-11)


@record()
class Graded(ContactLaw):
    """A law of a user: restitution 0.9 below 1 m/s, 0.5 above."""

    @property
    def by_speed(self) -> bool:
        return True

    def at_speed(self, rates: Any) -> ContactLaw:
        return ContactLaw(restitution=jnp.where(rates[:, 0] < -1.0, 0.5, 0.9), friction=self.friction)


def graded(p: Any) -> Graded:
    """With the friction of the parameters."""
    return Graded(friction=p["rest"])


@each_family("name", "moreau")
def test_law_of_a_user(name: str) -> None:
    """Impacts on both sides of a jump of the restitution."""
    system = dataclasses.replace(BLOCK, law=graded)
    h, dt = 0.1, 1e-4  # 1.40 m/s, then 0.70 m/s
    traj = run(system, NUMBERS, (0.0, h, 0.0, 0.0), getattr(schemes, name)(), dt, 0.3)
    t = np.sqrt(2.0 * h / G)
    u = 0.5 * np.sqrt(2.0 * h * G)
    t, u = t + 2.0 * u / G, 0.9 * u
    assert float(traj.v[-1, 1]) == pytest.approx(u - G * (0.3 - t), abs=20.0 * dt)


def mechanism(coordinates: str, dimension: int, **law: Any) -> nsjax.Problem:
    """A sliding body that has been thrown onto the floor, beside a hinge with limits."""
    plane = dimension == 2
    up = (0.0, 1.0) if plane else (0.0, 0.0, 1.0)
    inertia = 0.01 if plane else (0.01, 0.011, 0.012)
    axis = {} if plane else {"axis": (0.0, 1.0, 0.0)}
    floor = mb.contact("floor", mb.point("b"), mb.plane(normal=up), **law)
    side = mb.contact("side", mb.point("c"), mb.plane(normal=up, at=(0.0,) * (dimension - 1) + (-9.0,)))
    start = (0.0, 0.3, 0.0) if plane else (0.0, 0.0, 0.3)
    speed = (1.0, 0.0, 0.0) if plane else (0.6, 0.8, 0.0, 0.0, 0.0, 0.0)
    return mb.assemble(
        mb.body("b", mass=2.0, inertia=inertia), mb.body("c", mass=1.0, inertia=inertia, com=0.2),
        floor, side,
        mb.hinge("pin", "ground", "c", limits=(-3.0, 3.0), **axis), start={"b": (start, speed)},
        coordinates=coordinates, gravity=G,
    )  # fmt: skip


LAW = {
    "restitution": 0.8, "friction": 0.4, "friction_sliding": 0.2, "friction_speed": 0.5,
    "restitution_speed": 2.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("dimension", "coordinates"),
    [
        (2, "joint"),
        *(
            pytest.param(*x, marks=pytest.mark.slow)
            for x in ((2, "absolute"), (3, "joint"), (3, "absolute"))
        ),
    ],
)
def test_numbers_of_mechanisms(dimension: int, coordinates: str) -> None:
    """A body without rotation moves as the block by hand, in the plane and along a diagonal in space."""
    problem, dt = mechanism(coordinates, dimension, **LAW), 1e-3
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=dt, steps=600)
    block = run(BLOCK, NUMBERS, (0.0, 0.3, 1.0, 0.0), schemes.moreau(), dt, 0.6)
    names = ("x", "y") if dimension == 2 else ("x", "z")
    found = [float(traj[f"b.{x}"][-1]) for x in names]
    if dimension == 3:
        assert float(traj["b.y"][-1]) == pytest.approx(found[0] / 0.6 * 0.8, abs=1e-9)
        found[0] /= 0.6
    np.testing.assert_allclose(found, block.q[-1], atol=1e-9)


@pytest.mark.slow
def test_derivative_of_a_mechanism() -> None:
    """By numbers of the law, equal to that of the block by hand, forward and reverse."""
    problem = mechanism("joint", 2, **LAW)
    dt = 1e-3
    keys = ("friction_speed", "friction_sliding", "friction")

    def end(x: jax.Array) -> jax.Array:
        named = dict(zip((f"floor.{k}" for k in keys), x, strict=True))
        traj = nsjax.simulate(*problem.replace(named), schemes.moreau(), dt=dt, steps=600, every=600)
        return traj["b.x"][-1]

    def by_hand(x: jax.Array) -> jax.Array:
        p = NUMBERS | dict(zip(("speed", "fast", "rest"), x, strict=True))
        return run(BLOCK, p, (0.0, 0.3, 1.0, 0.0), schemes.moreau(), dt, 0.6).q[-1, 0]

    at = jnp.array([0.5, 0.2, 0.4])
    wanted = jax.jacfwd(by_hand)(at)
    np.testing.assert_allclose(jax.jacrev(end)(at), wanted, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(jax.jacfwd(end)(at), wanted, rtol=1e-7, atol=1e-10)


@pytest.mark.slow
def test_lane_of_nonsense() -> None:
    """A speed that is not positive, or no number, is refused in its lane, and its neighbours run."""
    lanes = jnp.array([0.5, -1.0, jnp.nan])
    start = (0.0, 0.0, 2.0, 0.0)
    of = lambda x: run(BLOCK, NUMBERS | {"speed": x}, start, schemes.moreau(), 1e-2, 0.2)  # noqa: E731
    traj = jax.jit(jax.vmap(of))(lanes)
    assert int(traj.status[0]) == 0
    assert int(traj.status[1]) & status.REFUSED_LAW
    assert int(traj.status[2]) & status.REFUSED_NOT_FINITE
    alone = run(BLOCK, NUMBERS, start, schemes.moreau(), 1e-2, 0.2)
    np.testing.assert_allclose(traj.v[0], alone.v, atol=1e-13)


def constant(p: Any) -> ContactLaw:
    """The law without a fall."""
    return ContactLaw(restitution=p["e"], friction=p["rest"])


@each_family("name", "moreau")
def test_without_a_fall(name: str) -> None:
    """Equal coefficients at all speeds give the run of the plain law."""
    start, scheme = (0.0, 0.1, 1.0, 0.0), getattr(schemes, name)()
    plain = run(dataclasses.replace(BLOCK, law=constant), NUMBERS, start, scheme, 1e-3, 0.4)
    own = run(BLOCK, NUMBERS | {"fast": 0.4, "fall": 1e300}, start, scheme, 1e-3, 0.4)
    np.testing.assert_allclose(own.q, plain.q, atol=1e-12)


def test_reports() -> None:
    """A contact that slides with less friction than would hold it counts as sliding, one at rest as
    sticking; the energy that impacts lose is that of the closed form.
    """
    start = State(t=0.0, q=jnp.zeros(2), v=jnp.array([2.0, 0.0]))
    traj = nsjax.simulate(BLOCK, NUMBERS, start, schemes.moreau(), dt=1e-3, time=2.0)
    (phase,) = contact_phases(traj)
    stop = solve_ivp(
        lambda t, y: -coefficient(NUMBERS, y) * G, (0.0, 2.0), [2.0], dense_output=True,
        events=lambda t, y: y[0], rtol=1e-9,
    ).t_events[0][0]  # fmt: skip
    assert phase.slip == pytest.approx(stop / 2.0, abs=5e-3)
    start = State(t=0.0, q=jnp.array([0.0, 1.0]), v=jnp.zeros(2))
    traj = nsjax.simulate(BLOCK, NUMBERS, start, schemes.moreau(), dt=1e-4, time=0.6)
    u = np.sqrt(2.0 * G)
    e = NUMBERS["e"] * (1.0 + u / NUMBERS["fall"]) ** -0.25
    lost = energy_balance(traj).impact_normal.sum()
    assert abs(lost) == pytest.approx(0.5 * NUMBERS["m"] * u * u * (1.0 - e * e), rel=1e-3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"speed": 0.0}, "friction_speed = 0.0; it must be positive"),
        ({"fast": -0.1}, "friction_sliding = -0.1; it must not be negative"),
        ({"fall": -1.0}, "restitution_speed = -1.0; it must be positive"),
    ],
)
def test_refused(given: dict[str, float], words: str) -> None:
    """Numbers out of range, before any work."""
    with pytest.raises(InputError, match=words):
        run(BLOCK, NUMBERS | given, (0.0, 0.1, 1.0, 0.0), schemes.moreau(), 1e-3, 0.4)
