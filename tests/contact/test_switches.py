"""Forces that jump on surfaces: derivatives against closed forms and event-driven integration, notes."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import ContactLaw, State, System, gradient_notes, schemes
from nsjax.multibody import actuator, assemble, body, force, hinge, joint_spring, spring
from tests.design import slow_but

STEPS, GRAVITY = 150, 9.81


def sledge_mass(q, p):
    return p["m"] * jnp.eye(2)


def sledge_force(t, q, v, p):
    """A push and a load that change where the sledge passes ``x = c``."""
    past = q[0] > p["c"]
    return jnp.stack(
        [
            jnp.where(past, p["after"], p["before"]),
            -p["m"] * GRAVITY - jnp.where(past, p["load"], 0.0),
        ]
    )


def sledge_gap(t, q, p):
    return q[1:]


def sledge_slip(t, q, v, p):
    return v[None, :1]


def sledge_law(p):
    return ContactLaw(restitution=0.0, restitution_tangential=0.0, friction=p["mu"])


def sledge_switch(t, q, v, p):
    return q[:1] - p["c"]


SLEDGE = System(
    nq=2, nv=2, nc=1, nt=1, mass=sledge_mass, force=sledge_force, gap=sledge_gap, slip=sledge_slip,
    law=sledge_law, switch=sledge_switch,
)  # fmt: skip
NUMBERS = {"m": 1.3, "c": 0.1, "before": 6.0, "after": 3.5, "load": 4.0, "mu": 0.3, "v0": 1.2, "x0": -0.2}


def sledge_exact(x, time):
    """Position, velocity and normal impulse of the sledge after ``time``."""
    first = x["before"] / x["m"] - x["mu"] * GRAVITY
    then = x["after"] / x["m"] - x["mu"] * (GRAVITY + x["load"] / x["m"])
    fast = jnp.sqrt(x["v0"] ** 2 + 2.0 * first * (x["c"] - x["x0"]))
    left = time - (fast - x["v0"]) / first
    pressed = x["m"] * GRAVITY * time + x["load"] * left
    return jnp.stack([x["c"] + fast * left + then * left**2 / 2.0, fast + then * left, pressed])


def sledge_run(x, time, scheme):
    start = State(t=0.0, q=jnp.stack([x["x0"], 0.0 * time]), v=jnp.stack([x["v0"], 0.0 * time]))
    run = nsjax.simulate(SLEDGE, x, start, scheme, dt=time / STEPS, steps=STEPS, every=STEPS)
    return jnp.stack([run.q[-1, 0], run.v[-1, 0], run.impulse_normal[-1, 0]])


def jacobians(run, exact, times, numbers, modes=("forward", "reverse")):
    """Largest differences of derivatives at some times from exact ones, over the largest entry."""
    wanted = jax.lax.map(functools.partial(jax.jacfwd(exact), numbers), times)
    size = max(float(jnp.max(jnp.abs(x))) for x in jax.tree.leaves(wanted))
    for mode in modes:
        along = {"forward": jax.jacfwd, "reverse": jax.jacrev}[mode](run)
        found = jax.jit(lambda times: jax.lax.map(functools.partial(along, numbers), times))(times)  # noqa: B023
        yield max(
            float(jnp.max(jnp.abs(a - b))) / size
            for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
        )


SCHEMES = {
    "moreau": schemes.moreau(), "generalized_alpha": schemes.generalized_alpha(),
    "half_explicit": schemes.half_explicit(), "unified": schemes.ggl_unified(),
    "nsga": schemes.nsga_coupled(), "localized": schemes.localized(schemes.half_explicit()),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEMES)
def test_sledge_on_a_rough_floor(name: str) -> None:
    """The friction jumps with the load. Twenty step sizes; the error is at most a few steps of the jump."""
    times = jnp.linspace(0.35, 0.5, 20)
    run = functools.partial(sledge_run, scheme=SCHEMES[name])
    forward, reverse = jacobians(run, sledge_exact, times, NUMBERS)
    assert forward < 0.02
    assert abs(reverse - forward) < 1e-10


def slide_mass(q, p):
    return jnp.eye(1)


def timed_force(t, q, v, p):
    return jnp.where(t > p["t0"], p["F"], 0.0) - p["c"] * v


def timed_switch(t, q, v, p):
    return (t - p["t0"])[None]


def dry_force(t, q, v, p):
    return -p["F"] * jnp.sign(v) - jnp.where(t > p["t0"], 0.5 * p["F"], 0.0)


def dry_switch(t, q, v, p):
    return jnp.concatenate([v, timed_switch(t, q, v, p)])


def turned_force(t, q, v, p):
    return jnp.where(v > p["t0"], -p["F"], -2.0 * p["F"])


def turned_switch(t, q, v, p):
    return v - p["t0"]


def slide(given, surface=None):
    return System(nq=1, nv=1, mass=slide_mass, force=given, switch=surface)


def timed_exact(x, time):
    """With ``c = 0``: ``c`` has no derivative here."""
    left = time - x["t0"]
    return x["v0"] * time + x["F"] * left**2 / 2.0


def dry_exact(x, time):
    """The load comes at ``t0``, still in motion; it is too small to move the mass at rest."""
    v1 = x["v0"] - x["F"] * x["t0"]
    return x["v0"] * x["t0"] - x["F"] * x["t0"] ** 2 / 2.0 + v1**2 / (3.0 * x["F"]) + 0.0 * time


def turned_exact(x, time):
    first = (x["v0"] - x["t0"]) / x["F"]
    left = time - first
    return x["v0"] * first - x["F"] * first**2 / 2.0 + x["t0"] * left - x["F"] * left**2


SLIDES = {
    "at a time": (slide(timed_force, timed_switch), slide(timed_force), timed_exact, 0.13),
    "dry friction": (slide(dry_force, dry_switch), slide(dry_force), dry_exact, 0.13),
    "at a speed": (slide(turned_force, turned_switch), slide(turned_force), turned_exact, 0.5),
}


@pytest.mark.parametrize("name", slow_but(SLIDES, "dry friction"))
@pytest.mark.parametrize("scheme", ["moreau", pytest.param("half_explicit", marks=pytest.mark.slow)])
def test_times_speeds_and_motion_on_the_surface(name: str, scheme: str) -> None:
    """A jump at a time; at a speed; and a force that drives the motion back, so that it stays at rest."""
    system, bare, exact, t0 = SLIDES[name]
    numbers = {"F": 2.0, "t0": t0, "v0": 0.9}

    def end(x, time, system=system):
        start = State(t=0.0, q=jnp.zeros(1), v=x["v0"][None])
        p = {"F": x["F"], "t0": x["t0"], "c": 0.0}
        run = nsjax.simulate(system, p, start, SCHEMES[scheme], dt=time / STEPS, steps=STEPS, every=STEPS)
        return run.q[-1, 0]

    times = jnp.linspace(0.45, 0.6, 20)
    forward, reverse = jacobians(end, exact, times, numbers)
    assert forward < 0.02
    assert abs(reverse - forward) < 1e-10
    (plain,) = jacobians(functools.partial(end, system=bare), exact, times, numbers, ("forward",))
    assert plain > 0.2


def motor_law(t, angle, rate, own):
    return jnp.where(angle > own, 0.3, -0.3)


def motor_switch(t, angle, rate, own):
    return angle - own


def stop_law(e, rate, own):
    return jnp.where(e > own[0], 2.0 + 0.3 * rate, 0.0)


def stop_switch(e, rate, own):
    return e - own[0]


def wind_law(t, scene, own):
    height = scene.position("rod", (0.5, 0.0))[1]
    return jnp.stack([0.0 * height, jnp.where(height > own, 1.5, 0.0)])


def wind_switch(t, scene, own):
    return scene.position("rod", (0.5, 0.0))[1] - own


def cord_law(e, rate, own):
    return jnp.where(e > own[0], own[1], 0.0)


NEAR = {"motor": 0.2, "stop": 0.45, "wind": 0.3, "cord": 0.12, "rate": 11.0}
EYE = (0.7, 0.3)


def rod(x, coordinates, switched=True):
    """A rod on a hinge with four loads that jump at four angles."""
    where = (lambda f: f) if switched else (lambda f: None)
    return assemble(
        body("rod", mass=0.8, inertia=0.05, com=0.25),
        hinge("pin", "ground", "rod"),
        actuator("motor", "pin", law=motor_law, own=x["motor"], switch=where(motor_switch)),
        joint_spring("stop", "pin", law=stop_law, own=x["stop"][None], switch=where(stop_switch)),
        force("wind", ("rod", 0.5), law=wind_law, own=x["wind"], switch=where(wind_switch)),
        spring(
            "cord", ("ground", EYE), ("rod", 0.5), length=0.4, law=cord_law,
            own=jnp.stack([x["cord"], 1.1]), switch=where(stop_switch),
        ),
        gravity=GRAVITY, coordinates=coordinates, start={"rod": (0.0, x["rate"])},
    )  # fmt: skip


def rod_exact(x, time):
    """Angle and rate by event-driven integration, side by side of every surface."""

    def surfaces(y):
        tip = 0.5 * np.array([np.cos(y[0]), np.sin(y[0])])
        length = np.hypot(*(tip - EYE))
        return np.array([y[0] - x["motor"], y[0] - x["stop"], tip[1] - x["wind"], length - 0.4 - x["cord"]])

    def change(t, y, on):
        tip = 0.5 * np.array([np.cos(y[0]), np.sin(y[0])])
        apart = tip - EYE
        pull = -(1.1 if on[3] else 0.0) * apart / np.hypot(*apart)
        moment = 0.3 if on[0] else -0.3
        moment -= (2.0 + 0.3 * y[1]) if on[1] else 0.0
        moment += (1.5 if on[2] else 0.0) * tip[0] - 0.8 * GRAVITY * 0.25 * np.cos(y[0])
        moment += tip[0] * pull[1] - tip[1] * pull[0]
        return [y[1], moment / (0.05 + 0.8 * 0.0625)]

    t, y = 0.0, np.array([0.0, x["rate"]])
    on = surfaces(y) > 0.0
    crossed = 0
    while t < time:
        events = [lambda t, y, on, k=k: surfaces(y)[k] * (-1.0 if on[k] else 1.0) for k in range(4)]
        for event in events:
            event.terminal, event.direction = True, 1.0
        found = solve_ivp(change, (t, time), y, args=(on,), events=events, rtol=1e-11, atol=1e-12)
        t, y = found.t[-1], found.y[:, -1]
        if found.status == 1:
            k = int(np.argmax([len(e) for e in found.t_events]))
            on = on ^ (np.arange(4) == k)
            crossed += 1
    return y, crossed


@pytest.mark.slow
@pytest.mark.parametrize(("coordinates", "scheme"), [("joint", "moreau"), ("absolute", "nsga")])
def test_laws_of_a_mechanism(coordinates: str, scheme: str) -> None:
    """A motor, a spring in a joint, a force that sees the scene, and a spring between points."""
    time, steps = 0.3, 600
    numbers = {name: jnp.asarray(x) for name, x in NEAR.items()}
    chosen = SCHEMES[scheme]
    if coordinates == "absolute" and scheme == "moreau":
        chosen = schemes.ggl_decoupled()

    def end(x, switched=True):
        run = nsjax.simulate(
            *rod(x, coordinates, switched), chosen, dt=time / steps, steps=steps, every=steps
        )
        return jnp.stack([run.sensor("pin.position")[-1], run.sensor("pin.rate")[-1]])

    _, crossed = rod_exact(NEAR, time)
    assert crossed >= 4
    wanted = {}
    for name in NEAR:
        both = [rod_exact(NEAR | {name: NEAR[name] + d}, time)[0] for d in (1e-5, -1e-5)]
        wanted[name] = (both[0] - both[1]) / 2e-5
    size = max(np.max(np.abs(x)) for x in wanted.values())

    def error(found):
        return max(float(np.max(np.abs(found[name] - wanted[name]))) for name in NEAR) / size

    found = jax.jit(jax.jacfwd(end))(numbers)
    assert error(found) < 0.01
    assert error(jax.jit(jax.jacfwd(functools.partial(end, switched=False)))(numbers)) > 0.1
    if coordinates == "joint":
        back = jax.jit(jax.jacrev(end))(numbers)
        for name in NEAR:
            np.testing.assert_allclose(found[name], back[name], atol=1e-10 * size)


def noted(problem, scheme=None, steps=300, dt=1e-3):
    run = nsjax.simulate(*problem, scheme or schemes.moreau(), dt=dt, steps=steps, every=steps, notes=True)
    return int(run.force_notes[-1])


@pytest.mark.parametrize("coordinates", ["joint", pytest.param("absolute", marks=pytest.mark.slow)])
def test_jumps_are_noted_unless_declared(coordinates: str) -> None:
    numbers = {name: jnp.asarray(x) for name, x in NEAR.items()}
    scheme = schemes.moreau() if coordinates == "joint" else schemes.ggl_decoupled()
    assert noted(rod(numbers, coordinates, switched=False), scheme) == gradient_notes.JUMP
    assert noted(rod(numbers, coordinates), scheme) == 0


MEANS = {
    "half_explicit": schemes.half_explicit, "theta": schemes.moreau_theta, "bathe": schemes.bathe,
    "unified": schemes.ggl_unified,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("scheme", MEANS)
def test_a_force_that_drives_the_motion_back_is_noted_unless_declared(scheme: str) -> None:
    """Means of forces inside a step may be zero, so that the velocity never changes its sign."""
    x = {"F": 2.0, "t0": 1.0}
    for surface, wanted in ((None, gradient_notes.JUMP), (dry_switch, 0)):
        problem = (slide(dry_force, surface), x, State(t=0.0, q=jnp.zeros(1), v=jnp.full(1, 0.1013)))
        assert noted(problem, MEANS[scheme](), steps=60) == wanted


def stiff_law(e, rate, own):
    """Smooth, or with kinks at most, and as stiff as a step allows."""
    k, c, a = own
    return k * e + c * rate + a * jnp.tanh(e / 1e-3) + jnp.where(e > 0.0, 3.0 * k * e, 0.0)


def lamp_law(t, scene, own):
    turned = scene.coordinate("pin")
    return own * jnp.stack([jnp.sin(40.0 * t), jnp.abs(jnp.sin(9.0 * turned))])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_smooth_laws_are_not_noted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, c, a = 10.0 ** rng.uniform(0, 5), 10.0 ** rng.uniform(-2, 1), 10.0 ** rng.uniform(-1, 2)
    problem = assemble(
        body("rod", mass=1.0, inertia=0.05, com=0.25), hinge("pin", "ground", "rod"),
        joint_spring("torsion", "pin", law=stiff_law, own=jnp.array([k, c, a])),
        force("lamp", ("rod", 0.5), law=lamp_law, own=jnp.asarray(rng.normal() * 5.0)), gravity=GRAVITY,
        start={"rod": (0.3 * rng.normal(), rng.normal())},
    )  # fmt: skip
    assert noted(problem) == 0


@pytest.mark.slow
def test_a_surface_that_is_grazed_is_noted() -> None:
    """The mass turns 1e-6 m beyond the surface, in a step in which its speed passes zero."""

    def thrown(t, q, v, p):
        return jnp.where(q > p["c"], -2.2, -2.0)

    def height(t, q, v, p):
        return q - p["c"]

    system = slide(thrown, height)
    for beyond, wanted in ((1e-6, gradient_notes.SWITCHED), (1e-2, 0)):
        problem = (system, {"c": 0.25 - beyond}, State(t=0.0, q=jnp.zeros(1), v=jnp.ones(1)))
        assert noted(problem, steps=700) == wanted
