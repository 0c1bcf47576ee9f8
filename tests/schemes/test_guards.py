"""Runs that stop at a function of the state, and states that are reset, beside closed forms and
event-driven runs.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipkinc

import nsjax
from nsjax import models, schemes
from nsjax import multibody as mb
from nsjax.core import State
from tests.slopes import with_slopes

SLOW = pytest.mark.slow
G = 9.81
SIZES = 0.02 / (1.0 + 0.037 * np.arange(20))
"""Twenty step sizes [s]."""


def mass(q, p):
    return jnp.eye(2)


def weight(t, q, v, p):
    return jnp.array([0.0, -1.0]) * p["gravity"]


def thrown(up=4.0, gravity=G) -> tuple[nsjax.System, dict, State]:
    """A point without contacts, thrown from a height of one metre."""
    system = nsjax.System(nq=2, nv=2, mass=mass, force=weight)
    state = State(t=0.0, q=jnp.array([0.0, 1.0]), v=jnp.array([1.5, 1.0]) * jnp.array([1.0, up]))
    return system, {"gravity": gravity, "level": 0.3}, state


def above(t, q, v, p):
    return q[1] - p["level"]


def flight(up, gravity, level=0.3):
    """Instant and state at which the point falls through the level."""
    t = (up + jnp.sqrt(up**2 + 2.0 * gravity * (1.0 - level))) / gravity
    return jnp.stack([t, 1.5 * t, level + 0.0 * t, 1.5 + 0.0 * t, up - gravity * t])


def end(traj) -> jax.Array:
    return jnp.concatenate([traj.t[-1:], traj.q[-1], traj.v[-1]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "reversed_too"), [("moreau", False), *(pytest.param(x, True, marks=SLOW) for x in (
        "moreau", "ggl_unified", "half_explicit", "hht", "bathe", "ed_alpha", "nsga_decoupled",
    ))],
)  # fmt: skip
def test_a_point_stops_at_a_height(scheme, reversed_too) -> None:
    """Instant and state, and their derivatives, forward and reverse: worst over twenty step sizes.
    Parabolas are exact.
    """
    made = getattr(schemes, scheme)()

    def run(x, dt):
        return end(nsjax.simulate(*thrown(x[0], x[1]), made, dt=dt, steps=120, every=40, stop=above))

    x = jnp.array([4.0, G])
    exact, slopes = flight(*x), jax.jacfwd(lambda x: flight(*x))(x)
    both = with_slopes(run)
    for dt in SIZES:
        found, forward = both(x, dt)
        np.testing.assert_allclose(found, exact, atol=2e-11)
        np.testing.assert_allclose(forward, slopes, atol=1e-8)
    if reversed_too:  # as a reset is soon
        reverse = jax.jit(jax.jacrev(run))(x, SIZES[3])
        np.testing.assert_allclose(reverse, slopes, atol=1e-8)


def test_a_run_ends_at_its_stop() -> None:
    """Rows up to the stop, which is the last; the next run goes on from there."""
    run = {"dt": 0.01, "steps": 300}
    traj = nsjax.simulate(*thrown(), schemes.moreau(), **run, stop=above)
    assert bool(traj.stopped)
    assert int(traj.status) == 0
    assert len(traj.t) == int(np.ceil(float(flight(4.0, G)[0]) / 0.01)) + 1
    np.testing.assert_allclose(traj.t[:-1], 0.01 * np.arange(len(traj.t) - 1), atol=1e-14)
    np.testing.assert_allclose(end(traj), flight(4.0, G), atol=1e-12)
    rest = nsjax.simulate(*thrown(), schemes.moreau(), **run, carry=traj.carry, stop=above)
    assert not bool(rest.stopped)
    assert len(rest.t) == 301
    np.testing.assert_allclose(rest.t, traj.t[-1] + 0.01 * np.arange(301), atol=1e-12)
    t = float(rest.t[-1])
    np.testing.assert_allclose(rest.q[-1], [1.5 * t, 1.0 + 4.0 * t - G * t * t / 2], atol=1e-9)


@pytest.mark.slow
def test_lanes_stop_at_their_own_time() -> None:
    """Rows after a stop repeat it; a stop that never comes leaves the run whole."""

    def run(up):
        traj = nsjax.simulate(*thrown(up), schemes.moreau(), dt=0.01, steps=100, every=10, stop=above)
        return traj.t, traj.q, traj.v, traj.stopped

    ups = jnp.array([1.0, 2.5, 4.0, 9.0])
    t, q, v, stopped = jax.jit(jax.vmap(run))(ups)
    assert stopped.tolist() == [True, True, True, False]
    for k, up in enumerate(ups[:3]):
        exact = flight(up, G)
        np.testing.assert_allclose(jnp.concatenate([t[k, -1:], q[k, -1], v[k, -1]]), exact, atol=1e-11)
        after = np.asarray(t[k]) > float(exact[0]) - 1e-9
        assert np.ptp(np.asarray(q[k])[after], axis=0).max() == 0.0
        alone = run(up)[1]  # outside transformations the rows end
        np.testing.assert_allclose(alone, q[k][: len(alone)], atol=1e-13)
    assert float(t[3, -1]) == pytest.approx(1.0)


def test_a_run_into_a_file_stops(tmp_path) -> None:
    """As `simulate` does, bit for bit; also after a crash."""
    problem, path = ball(), tmp_path / "run.npz"
    run = {"dt": 0.01, "steps": 300}
    traj = nsjax.simulate(*problem, schemes.moreau(), **run, stop=(gap, 2))
    found = nsjax.simulate_to_file(problem, schemes.moreau(), path, **run, stop=(gap, 2))
    assert len(found.t) == len(traj.t) < 300
    np.testing.assert_array_equal(found.q, traj.q)
    nsjax.save(tmp_path / "own.npz", problem, traj, scheme=schemes.moreau())
    for name in ("run.npz", "own.npz"):
        saved = nsjax.load(tmp_path / name, problem).traj
        assert bool(saved.stopped)
        np.testing.assert_array_equal(saved.q, traj.q)
    runs = [nsjax.simulate(*problem, schemes.moreau(), **run, carry=x.carry) for x in (traj, saved)]
    np.testing.assert_array_equal(runs[0].q, runs[1].q)

    def crash(done: int, total: int) -> None:
        if done > 30:
            raise RuntimeError("crash")

    path.unlink()
    with pytest.raises(RuntimeError, match="crash"):
        nsjax.simulate_to_file(
            problem, schemes.moreau(), path, **run, stop=(gap, 2), period=0.0, progress=crash
        )
    with pytest.raises(
        nsjax.InputError, match="the run stops at a function, which files do not hold; give it"
    ):
        nsjax.resume(path, problem)
    np.testing.assert_array_equal(nsjax.resume(path, problem, stop=(gap, 2)).q, traj.q)
    path.unlink()
    with pytest.raises(RuntimeError, match="crash"):
        nsjax.simulate_to_file(problem, schemes.moreau(), path, **run, period=0.0, progress=crash)
    with pytest.raises(
        nsjax.InputError, match=r"the run has no stop, but stop = .* is given; leave it out"
    ):
        nsjax.resume(path, problem, stop=gap)


@SLOW
def test_lanes_of_a_sweep_stop_at_their_own_time() -> None:
    """Values and derivatives beside the closed form."""
    (system, params, state), ups = thrown(), jnp.array([1.0, 2.5, 4.0])
    problem = nsjax.Problem(system=system, params=params, state=state)
    run = {"dt": 0.01, "steps": 100, "every": 50, "stop": above, "reduce": end}

    def ends(ups):
        start = {"state.v": jnp.stack([1.5 * jnp.ones(3), ups], axis=1)}
        found = nsjax.sweep(problem, schemes.moreau(), start, **run)
        return found.values

    exact = jax.vmap(lambda up: flight(up, G))
    np.testing.assert_allclose(ends(ups), exact(ups), atol=1e-11)
    slopes = jax.jit(jax.jacfwd(ends))(ups)
    np.testing.assert_allclose(slopes, jax.jacfwd(exact)(ups), atol=1e-8)


def pendulum(angle=0.0, rate=2.0) -> tuple[nsjax.System, dict, State]:
    return (
        nsjax.System(nq=1, nv=1, mass=one, force=swing), {"square": 9.0},
        State(t=0.0, q=jnp.array([1.0]) * angle, v=jnp.array([1.0]) * rate),
    )  # fmt: skip


def one(q, p):
    return jnp.eye(1)


def swing(t, q, v, p):
    return -p["square"] * jnp.sin(q)


def before_angle(t, q, v, p):
    return 0.6 - q[0]


@SLOW
def test_a_pendulum_stops_at_an_angle() -> None:
    """The time to it is an elliptic integral; the error falls with the square of the step, and so does that
    of the derivative by the speed at the bottom.
    """
    made = schemes.half_explicit()

    def exact(rate):
        k = rate / 6.0
        return ellipkinc(np.arcsin(np.sin(0.3) / k), k * k) / 3.0

    @jax.jit
    def both(rate, dt):
        f = lambda r: nsjax.simulate(  # noqa: E731
            *pendulum(0.0, r), made, dt=dt, steps=100, every=100, stop=before_angle
        ).t[-1]
        return f(rate), jax.grad(f)(rate)

    slope = (exact(2.4 + 1e-5) - exact(2.4 - 1e-5)) / 2e-5
    for dt in SIZES:
        found, derivative = both(2.4, dt)
        assert abs(found - exact(2.4)) < 0.6 * dt**2
        assert abs(derivative - slope) < 1.5 * dt**2


def rising(t, q, v, p):
    return v[0]


def gap(t, q, v, p):
    return q[0] - p.radius


def ball(restitution=0.8, height=1.0, radius=0.05) -> nsjax.Problem:
    return models.bouncing_ball(height=height).replace(restitution=restitution, radius=radius)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["moreau", pytest.param("half_explicit", marks=SLOW)])
def test_a_ball_stops_at_its_third_apex(scheme) -> None:
    """Where impacts are located, instant and height are exact, and so are their derivatives."""
    made = schemes.localized(getattr(schemes, scheme)())

    def exact(x):
        e, h = x
        fall = jnp.sqrt(2.0 * (h - 0.05) / G)
        return jnp.stack([fall * (1.0 + 2.0 * e + 2.0 * e**2 + e**3), 0.05 + e**6 * (h - 0.05)])

    def run(x, dt):
        traj = nsjax.simulate(
            *ball(x[0], x[1]).replace({"state.q": x[1:]}), made, dt=dt, steps=220, every=220,
            stop=(rising, 3),
        )  # fmt: skip
        return jnp.stack([traj.t[-1], traj.q[-1, 0]])

    x = jnp.array([0.8, 1.0])
    both = with_slopes(run)
    for dt in SIZES:
        found, forward = both(x, dt)
        np.testing.assert_allclose(found, exact(x), atol=1e-9)
        np.testing.assert_allclose(forward, jax.jacfwd(exact)(x), atol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.jacrev(run))(x, SIZES[5]), jax.jacfwd(exact)(x), atol=1e-6)


@pytest.mark.parametrize("scheme", ["moreau", *(pytest.param(x, marks=SLOW) for x in (
    "half_explicit", "generalized_alpha", "ggl_decoupled", "nsga_decoupled",
))])  # fmt: skip
def test_a_stop_at_an_impact_is_just_before_it(scheme) -> None:
    """Of any scheme, also without located impacts; twenty step sizes."""
    exact = np.sqrt(2.0 / G)
    for dt in SIZES:
        traj = nsjax.simulate(*ball(), getattr(schemes, scheme)(), dt=dt, steps=100, stop=gap)
        assert bool(traj.stopped)
        np.testing.assert_allclose(
            [traj.t[-1], traj.q[-1, 0], traj.v[-1, 0]], [exact, 0.05, -G * exact], atol=1e-9
        )
        assert int(np.sum(traj.impacts)) == 0
    again = nsjax.simulate(*ball(), getattr(schemes, scheme)(), dt=dt, steps=20, carry=traj.carry, stop=gap)
    assert not bool(again.stopped)
    assert float(np.max(again.v)) == pytest.approx(0.8 * G * exact, rel=0.05)


def faster(t, q, v, p):
    return 2.0 - v[0]


@SLOW
def test_a_stop_that_an_impact_throws_over_is_at_the_impact() -> None:
    """Speeds jump over it: the run ends just after the impact; its instant is that of the impact."""
    exact = np.sqrt(2.0 * 0.95 / G)

    def run(height, dt):
        traj = nsjax.simulate(
            *ball().replace({"state.q": height[None]}), schemes.localized(schemes.moreau()), dt=dt,
            steps=100, every=100, stop=faster,
        )  # fmt: skip
        return jnp.stack([traj.t[-1], traj.q[-1, 0], traj.v[-1, 0]])

    both = with_slopes(run)
    for dt in SIZES[::4]:
        found, slope = both(jnp.array(1.0), dt)
        np.testing.assert_allclose(found, [exact, 0.05, 0.8 * G * exact], atol=1e-7)
        np.testing.assert_allclose(slope, [1.0 / (G * exact), 0.0, 0.8 / exact], atol=1e-5)


def test_a_stop_that_never_falls_is_said() -> None:
    with pytest.warns(UserWarning, match="was negative from the start to the end.*change its sign"):
        traj = nsjax.simulate(*thrown(), schemes.moreau(), dt=0.01, steps=10, stop=lambda t, q, v, p: -q[1])
    assert not bool(traj.stopped)
    assert len(traj.t) == 11
    assert "did not stop" in str(traj)
    assert "stopped" in str(nsjax.simulate(*thrown(), schemes.moreau(), dt=0.01, steps=300, stop=above))


def floor(t, q, v, p):
    return q[1]


def bounce(t, q, v, p):
    return q, v * jnp.array([1.0, -p["rebound"]])


def test_a_reset_is_an_impact() -> None:
    """A point that a reset throws back, four times, beside the closed form: states and derivatives."""

    def exact(x, time):
        up, e = x
        t = (up + jnp.sqrt(up**2 + 2.0 * G)) / G
        speed = e * (G * t - up)
        for _ in range(3):
            t, speed = t + 2.0 * speed / G, e * speed
        s = time - t
        return jnp.stack([1.5 * time, speed * s - G * s * s / 2, 1.5, speed - G * s])

    def run(x, dt):
        system, p, state = thrown(x[0])
        traj = nsjax.simulate(
            system, p | {"rebound": x[1]}, state, schemes.moreau(), dt=dt, steps=180, every=180,
            resets=[(floor, bounce)],
        )  # fmt: skip
        return jnp.concatenate([traj.q[-1], traj.v[-1]])

    x, both = jnp.array([4.0, 0.8]), with_slopes(run)
    for time in (3.4, 3.6):
        found, forward = both(x, time / 180)
        np.testing.assert_allclose(found, exact(x, time), atol=1e-8)
        np.testing.assert_allclose(forward, jax.jacfwd(exact)(x, time), atol=1e-6)
    reverse = jax.jit(jax.jacrev(run))(x, 3.6 / 180)
    np.testing.assert_allclose(reverse, jax.jacfwd(exact)(x, 3.6), atol=1e-6)


def kick(t, q, v, p):
    return q, v + 0.3 * jnp.sign(v)


def down(t, q, v, p):
    return q[0]


@pytest.mark.slow
def test_a_clock_beside_an_event_driven_run() -> None:
    """A damped pendulum that is kicked each time that it passes the bottom in one sense: order two."""

    def damped(t, q, v, p):
        return -9.0 * jnp.sin(q) - 0.4 * v

    system = nsjax.System(nq=1, nv=1, mass=one, force=damped)

    def known(rate):
        t, y = 0.0, np.array([0.5, rate])
        event = lambda t, y: y[0]  # noqa: E731
        event.direction, event.terminal = -1.0, True
        while t < 5.0:
            part = solve_ivp(
                lambda t, y: [y[1], -9.0 * np.sin(y[0]) - 0.4 * y[1]], (t, 5.0), y, method="DOP853",
                rtol=1e-12, atol=1e-13, events=event,
            )  # fmt: skip
            t, y = part.t[-1], part.y[:, -1].copy()
            if part.status == 1:
                y[1] -= 0.3
                y[0] = -1e-15
        return y

    def run(rate, steps):
        start = State(t=0.0, q=jnp.array([0.5]), v=jnp.array([1.0]) * rate)
        traj = nsjax.simulate(
            system, {}, start, schemes.half_explicit(), dt=5.0 / steps, steps=steps, every=steps,
            resets=[(down, kick)],
        )  # fmt: skip
        return jnp.concatenate([traj.q[-1], traj.v[-1]])

    exact = known(0.7)
    slope = (known(0.7 + 1e-4) - known(0.7 - 1e-4)) / 2e-4
    errors = []
    for steps in (250, 500):
        found, derivative = run(0.7, steps), jax.jacfwd(run)(0.7, steps)
        errors.append([np.max(np.abs(found - exact)), np.max(np.abs(derivative - slope))])
    assert np.all(np.array(errors[1]) < 0.35 * np.array(errors[0]))
    assert np.max(errors[1]) < 1e-3


MU = 0.3


def sled() -> nsjax.Problem:
    """A carriage that slides with a load resting on the floor, which rubs."""
    return mb.assemble(
        mb.body("a", mass=0.5), mb.slide("x", "ground", "a"), mb.body("b", mass=0.5),
        mb.slide("y", "a", "b", axis=(0.0, 1.0)),
        mb.contact("foot", mb.point("b"), mb.plane(), friction=MU), gravity=G,
    )  # fmt: skip


def along(t, q, v, p):
    return 0.3 - q[0]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [
    "moreau", *(pytest.param(x, marks=SLOW) for x in ("generalized_alpha", "nsga_decoupled", "changes")),
])  # fmt: skip
def test_a_stop_beside_a_contact_that_slides(scheme) -> None:
    made = schemes.localized(schemes.half_explicit(), changes=True)
    made = made if scheme == "changes" else getattr(schemes, scheme)()
    slowing = 0.5 * G * MU

    def exact(v):
        t = (v - jnp.sqrt(v**2 - 0.6 * slowing)) / slowing
        return jnp.stack([t, v - slowing * t])

    def run(v, dt):
        start = sled().replace({"state.v": jnp.stack([v, 0.0 * v])})
        traj = nsjax.simulate(*start, made, dt=dt, steps=80, every=80, stop=along)
        return jnp.stack([traj.t[-1], traj.v[-1, 0]])

    both = with_slopes(run)
    for dt in 0.2 * SIZES:
        found, slope = both(2.0, dt)
        # velocity jumps of nsga leave an error of the order of the step in friction
        near = 2e-5 if scheme == "nsga_decoupled" else 1e-10
        np.testing.assert_allclose(found, exact(2.0), atol=near)
        np.testing.assert_allclose(slope, jax.jacfwd(exact)(2.0), atol=near)


@SLOW
@pytest.mark.parametrize("scheme", ["moreau", "half_explicit", "generalized_alpha"])
def test_a_stop_among_joints_that_are_constraints(scheme) -> None:
    """A rod in absolute coordinates stops at the angle and instant of the rod in its joint coordinate, to
    the order of the scheme.
    """

    def rod(coordinates):
        return mb.assemble(
            mb.body("rod", mass=1.0, inertia=0.1, com=0.5), mb.hinge("pin", "ground", "rod"), gravity=G,
            coordinates=coordinates,
        )  # fmt: skip

    def tilted(t, q, v, p):
        return 0.8 + q[-1]

    problems = {x: rod(x) for x in ("joint", "absolute")}
    for dt in SIZES[::5] / 4.0:
        run = {"dt": dt, "steps": 300, "stop": tilted}
        found = [nsjax.simulate(*x, getattr(schemes, scheme)(), **run) for x in problems.values()]
        assert all(bool(x.stopped) for x in found)
        assert abs(found[0].t[-1] - found[1].t[-1]) < (2.0 * dt if scheme == "moreau" else 20.0 * dt**2)
        assert found[1].q[-1, -1] == pytest.approx(-0.8, abs=1e-11)


@pytest.mark.parametrize("name", [pytest.param("pin.position", marks=SLOW), "rod.angle"])
def test_a_stop_by_the_name_of_a_quantity(name) -> None:
    """Also of a problem with inputs."""
    rod = mb.assemble(
        mb.body("rod", mass=1.0, inertia=0.1, com=0.5), mb.hinge("pin", "ground", "rod"),
        mb.actuator("motor", "pin", 0.0), gravity=G, start={"rod": 0.4},
    )  # fmt: skip
    run = {"dt": 2e-3, "steps": 400}
    known = nsjax.simulate(*rod, schemes.moreau(), **run, stop=lambda t, q, v, p: q[0])
    for more in ({}, {"inputs": {"motor": 0.0}}):
        found = nsjax.simulate(*rod, schemes.moreau(), **run, **more, stop=name)
        assert bool(found.stopped)
        assert float(found.t[-1]) == pytest.approx(float(known.t[-1]), abs=1e-12)
    assert abs(found.q[-1, 0]) < 1e-12


@SLOW
def test_lanes_with_impacts_stop_at_their_own_apex() -> None:
    made = schemes.localized(schemes.moreau())

    def run(e):
        traj = nsjax.simulate(*ball(e), made, dt=0.01, steps=300, every=300, stop=(rising, 2))
        return jnp.stack([traj.t[-1], traj.q[-1, 0]])

    lanes = jnp.array([0.5, 0.7, 0.9])
    fall = np.sqrt(2.0 / G)
    exact = np.stack([fall * (1.0 + 2.0 * lanes + lanes**2), 0.05 + lanes**4], axis=1)
    np.testing.assert_allclose(jax.jit(jax.vmap(run))(lanes), exact, atol=1e-9)
    slopes = np.stack([fall * (2.0 + 2.0 * lanes), 4.0 * lanes**3], axis=1)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.jacfwd(run)))(lanes), slopes, atol=1e-6)
