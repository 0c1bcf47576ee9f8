"""Bolts that break, clutches that lock, grippers that attach: two mechanisms, beside closed forms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nsjax
from nsjax import multibody as mb
from nsjax import schemes
from tests.slopes import with_slopes

SLOW = pytest.mark.slow
MASS, RATE, BREAKS = 2.0, 40.0, 12.0
SIZES = 0.01 / (1.0 + 0.037 * np.arange(20))


def still(t):
    return 0.0 * t


def pulled(joint, coordinates: str, own) -> nsjax.Problem:
    """A box that a growing force pulls at, on a joint."""
    law = lambda t, scene, own: jnp.stack([own["rate"] * t, 0.0 * t])  # noqa: E731
    return mb.assemble(
        mb.body("box", mass=MASS, inertia=0.1), joint, mb.force("pull", "box", law=law, own=own),
        coordinates=coordinates,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["moreau", *(pytest.param(x, marks=SLOW) for x in (
    "half_explicit", "generalized_alpha", "ggl_unified", "nsga_decoupled",
))])  # fmt: skip
def test_a_bolt_breaks_at_its_force(scheme) -> None:
    """The instant, where the box is later, and the derivatives of both by the force and its rate, of one
    program with both mechanisms; worst over twenty step sizes.
    """
    made = getattr(schemes, scheme)()

    def run(x, dt):
        own = {"breaks": x[0], "rate": x[1]}
        bolted = pulled(mb.slide("bolt", "ground", "box", motion=still), "absolute", own)
        force = mb.reaction(bolted, "bolt")

        def strength(t, q, v, p):
            return p["pull"].own["breaks"] - jnp.linalg.norm(force(t, q, v, p))

        first = nsjax.simulate(*bolted, made, dt=dt, steps=80, every=80, stop=strength)
        free = pulled(mb.slide("rail", "ground", "box"), "joint", own)
        second = nsjax.simulate(*mb.change(first, free).problem, made, dt=0.2 / 40, steps=40, every=40)
        return jnp.stack([first.t[-1], second.q[-1, 0], second.v[-1, 0]])

    def exact(x):
        t = x[0] / x[1]
        v = x[1] / MASS * (t * 0.2 + 0.02)
        return jnp.stack([t, x[1] / MASS * (t * 0.02 + 0.008 / 6.0), v])

    x = jnp.array([BREAKS, RATE])
    both = with_slopes(run)
    for dt in SIZES:
        found, slopes = both(x, dt)
        np.testing.assert_allclose(found[0], exact(x)[0], atol=1e-9)
        np.testing.assert_allclose(found, exact(x), atol=2e-4)
        np.testing.assert_allclose(slopes, jax.jacfwd(exact)(x), atol=2e-4)
    if scheme in ("moreau", "half_explicit"):  # reverse compiles as long as the rest
        np.testing.assert_allclose(jax.jit(jax.jacrev(run))(x, SIZES[7]), jax.jacfwd(exact)(x), atol=2e-4)


ONE, OTHER, TORQUE, FAST, SLIP = 2.0, 1.0, 3.0, 6.0, 1e-4


def discs(speed, *joints, friction=None) -> nsjax.Problem:
    return mb.assemble(
        mb.body("one", mass=1.0, inertia=ONE), mb.body("other", mass=1.0, inertia=OTHER),
        mb.hinge("a", "ground", "one"), *joints, start={"a": (0.0, speed)},
    )  # fmt: skip


def faster(t, q, v, p):
    return v[0] - v[1] - SLIP  # friction that sticks stays at zero


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["moreau", pytest.param("half_explicit", marks=SLOW)])
def test_a_clutch_slips_and_locks(scheme) -> None:
    """Slip time, heat and common speed, and their derivatives by the torque and the speed."""
    made = getattr(schemes, scheme)()

    def run(x, dt):
        slipping = discs(x[1], mb.hinge("plates", "one", "other", friction=x[0]))
        first = nsjax.simulate(*slipping, made, dt=dt, steps=150, every=150, stop=faster)
        turned = first.body("other").rotation[-1] - first.body("one").rotation[-1]
        locked = discs(x[1], mb.fixed("locked", "one", "other", turned=turned))
        found = mb.change(first, locked)
        heat = ONE * x[1] ** 2 / 2 - (ONE * first.v[-1, 0] ** 2 + OTHER * first.v[-1, 1] ** 2) / 2
        return jnp.stack([first.t[-1], heat, found.problem.state.v[0], found.loss])

    def exact(x):
        both = ONE * OTHER / (ONE + OTHER)
        left, loss = x[1] - SLIP, both * SLIP**2 / 2
        return jnp.stack(
            [both * left / x[0], both * x[1] ** 2 / 2 - loss, ONE * x[1] / (ONE + OTHER), loss]
        )

    x = jnp.array([TORQUE, FAST])
    both = with_slopes(run)
    for dt in 2.0 * SIZES:
        found, slopes = both(x, dt)
        np.testing.assert_allclose(found, exact(x), atol=1e-10)
        np.testing.assert_allclose(slopes, jax.jacfwd(exact)(x), atol=1e-8)


def test_a_dog_clutch_locks_with_an_impact() -> None:
    """Impulses and loss of the plastic impact of two discs."""
    apart = discs(FAST, mb.hinge("b", "ground", "other"))
    end = nsjax.simulate(*apart, schemes.moreau(), dt=1e-2, steps=10)
    found = mb.change(end, discs(0.0, mb.fixed("dog", "one", "other", turned=-end.q[-1, 0])))
    both = ONE * OTHER / (ONE + OTHER)
    np.testing.assert_allclose(found.problem.state.v, [ONE * FAST / (ONE + OTHER)], rtol=1e-12)
    np.testing.assert_allclose(
        [found.impulses[x][1] for x in ("one", "other")], [-both * FAST, both * FAST]
    )
    np.testing.assert_allclose(found.loss, both * FAST**2 / 2, rtol=1e-12)
    again = nsjax.simulate(*found.problem, schemes.moreau(), dt=1e-2, steps=10)
    np.testing.assert_allclose(again.t[[0, -1]], [0.1, 0.2])
    back = mb.change(again, apart)  # and opens again, without an impulse
    np.testing.assert_allclose(back.problem.state.v, [4.0, 4.0], rtol=1e-12)
    np.testing.assert_allclose(back.problem.state.q, [again.q[-1, 0], again.q[-1, 0] - 0.6], atol=1e-12)
    np.testing.assert_allclose(float(back.loss), 0.0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["joint", pytest.param("absolute", marks=SLOW)])
def test_a_gripper_attaches_in_space(coordinates) -> None:
    """Two bodies that fly and turn become one: momenta are those of both, and open again as one."""
    moments = {"hand": (0.2, 0.3, 0.4), "box": (0.05, 0.06, 0.08)}
    masses = {"hand": 2.0, "box": 0.5}
    parts = [mb.body(x, mass=masses[x], inertia=moments[x], com=(0.1, 0.0, 0.0)) for x in masses]
    free = [mb.free(f"fly_{x}", "ground", x) for x in masses] if hasattr(mb, "free") else []
    apart = mb.assemble(*parts, *free, coordinates=coordinates, gravity=0.0)
    rng = np.random.default_rng(5)
    q = np.array(apart.state.q)
    q[:3], q[7:10] = rng.normal(size=3), rng.normal(size=3)
    turns = [Rotation.random(random_state=rng.integers(100)) for _ in masses]
    for k, turn in enumerate(turns):
        q[7 * k + 3 : 7 * k + 7] = np.roll(turn.as_quat(), 1)
    start = nsjax.State(t=0.0, q=q, v=rng.normal(size=12))
    flown = nsjax.simulate(apart.system, apart.params, start, schemes.moreau(), dt=1e-3, steps=20)
    hand, box = (flown.body(x) for x in masses)
    one, other = (Rotation.from_matrix(np.asarray(x.rotation[-1])) for x in (hand, box))
    held = mb.fixed(
        "grip", "hand", "box", at=one.inv().apply(box.position[-1] - hand.position[-1]),
        turned=(one.inv() * other).as_rotvec(),
    )  # fmt: skip
    found = mb.change(flown, mb.assemble(*parts, *free[:1], held, coordinates=coordinates, gravity=0.0))

    def total(run, row):
        linear, turning = np.zeros(3), np.zeros(3)
        for x in masses:
            seen = run.body(x)
            turn = np.asarray(seen.rotation[row])
            arm = turn @ np.array([0.1, 0.0, 0.0])
            spin = np.asarray(seen.spin[row])
            momentum = masses[x] * (np.asarray(seen.velocity[row]) + np.cross(spin, arm))
            linear = linear + momentum
            own = turn @ (np.array(moments[x]) * (turn.T @ spin))
            turning = turning + np.cross(np.asarray(seen.position[row]) + arm, momentum) + own
        return np.concatenate([linear, turning])

    after = nsjax.simulate(*found.problem, schemes.moreau(), dt=1e-3, steps=1)
    np.testing.assert_allclose(total(after, 0), total(flown, -1), atol=1e-9)
    assert float(found.loss) > 0.01
    for name in masses:
        np.testing.assert_allclose(after.body(name).position[0], flown.body(name).position[-1], atol=1e-9)
        np.testing.assert_allclose(after.body(name).rotation[0], flown.body(name).rotation[-1], atol=1e-9)
    linear, turning = found.impulses["hand"]
    np.testing.assert_allclose(linear, -found.impulses["box"][0], atol=1e-10)
    assert np.linalg.norm(turning) > 0.0
