"""Set-valued forces of given bounds: dry friction of guides and joints, brakes, motors that stall."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import ContactLaw, State, System, schemes
from nsjax.analysis import energy_balance
from nsjax.core import Scheme
from tests.design import each_family


def scheme_of(name: str) -> Scheme:
    """A registered scheme, or Moreau's with impacts located."""
    return schemes.localized(schemes.moreau()) if name == "localized" else schemes.REGISTRY[name].factory()


@dataclasses.dataclass(frozen=True)
class Guide:
    """A mass on a spring in a guide with dry friction of the bound ``f``; a motor of speed ``u``."""

    def mass(self, q, p):
        return p["m"] * jnp.eye(1)

    def force(self, t, q, v, p):
        return -p["k"] * q - p["push"]

    def potential(self, t, q, p):
        return jnp.sum(0.5 * p["k"] * q * q + p["push"] * q)

    def dry_friction(self, t, q, v, p):
        return v - p["u"]

    def bound(self, p):
        return p["f"]


G = Guide()
GUIDE = System(
    nq=1, nv=1, nd=1, mass=G.mass, force=G.force, potential=G.potential, dry_friction=G.dry_friction,
    dry_friction_bound=G.bound,
)  # fmt: skip
NUMBERS = {"k": 50.0, "f": 1.5, "m": 2.0, "x": 0.5}
EARLY, LATE = 1.7, 9.0
COUNTS = (200, 331, 443, 701, 1201)


def spring(numbers: dict, time: float) -> jax.Array:
    """``(x, v)`` at ``time``, in closed form: half periods around ``-/+ f/k``, until it sticks. Which
    half period that is, `NUMBERS` tell.
    """
    k, f, m, x = (numbers[name] for name in ("k", "f", "m", "x"))
    omega, half, side, reach = jnp.sqrt(k / m), 0, 1.0, NUMBERS["x"]
    edge = NUMBERS["f"] / NUMBERS["k"]
    period = np.pi * np.sqrt(NUMBERS["m"] / NUMBERS["k"])
    while reach > edge:
        centre = side * f / k
        if (half + 1) * period > time:
            phase = omega * time - np.pi * half
            return jnp.stack(
                [centre + (x - centre) * jnp.cos(phase), -(x - centre) * omega * jnp.sin(phase)]
            )
        x, side, half, reach = 2.0 * centre - x, -side, half + 1, reach - 2.0 * edge
    return jnp.stack([x, 0.0 * x])


@functools.cache
def runner(name: str):
    """``(numbers, dt, steps) -> Trajectory``; the number of steps does not compile anew."""
    scheme = scheme_of(name)

    def run(numbers: dict, dt: float, steps: int, every: int | None = None) -> nsjax.Trajectory:
        p = {"push": 0.0, "u": 0.0, **{n: numbers[n] for n in ("k", "f", "m")}}
        start = State(t=0.0, q=jnp.reshape(numbers["x"], (1,)), v=jnp.zeros(1))
        return nsjax.simulate(GUIDE, p, start, scheme, dt=dt, steps=steps, every=every or steps)

    return run


@pytest.mark.slow
@each_family("name", "generalized_alpha", beside=("localized",))
def test_spring_with_dry_friction(name: str) -> None:
    """Two reversals, and, later, rest: the error is of first order, since a step in which the velocity
    changes its sign keeps the friction of one side. A reversal moved by a step moves the state by
    2 f/m dt (t - t_reversal) at most, 1.6 dt and 1.5 dt here.
    """
    run = runner(name)
    for n in COUNTS:
        traj = run(NUMBERS, EARLY / n, n)
        traj.raise_for_status()
        error = np.array([traj.q[-1, 0], traj.v[-1, 0]]) - spring(NUMBERS, EARLY)
        assert np.max(np.abs(error)) < 3.2 * EARLY / n
    rest = spring(NUMBERS, LATE)
    for n in (850, 1700):
        dt = LATE / n
        traj = run(NUMBERS, dt, n, n // 17)
        assert abs(traj.q[-1, 0] - rest[0]) < 1.6 * dt
        last = slice(-4, None)
        np.testing.assert_allclose(traj.v[last], 0.0, atol=1e-11)
        # at rest it does not creep, and the guide carries the spring: in the mean, since Newmark's undamped
        # accelerations change their sign in every step, and the forces with them. The nonsmooth
        # generalized-alpha family annuls the smooth motion h^2 a / 2 of a step but for (omega h)^2 of it.
        creep = (5.0 * dt) ** 2 if name.startswith("nsga") else 0.0
        assert np.ptp(traj.q[last]) <= 1e-10 + 3 * (n // 17) * creep * dt**2 / 2 * 25.0 * 0.02
        held = traj.mean_dry_friction_force[last, 0]
        np.testing.assert_allclose(held, 50.0 * traj.q[last, 0], rtol=1e-8 + creep)
        assert np.max(np.abs(traj.dry_friction_force)) <= 1.5 * (1 + 1e-9)


def derivatives(name: str, counts: tuple[int, ...]) -> list[float]:
    """Largest ``error / dt`` of the derivatives by all numbers, relative to the largest of each."""
    run = runner(name)

    wanted = jax.jacfwd(spring)(NUMBERS, EARLY)
    off = []
    for n in counts:
        found = jax.jacfwd(lambda x, n=n: run_end(run, x, n))(NUMBERS)
        parts = [np.max(np.abs(found[k] - wanted[k])) / np.max(np.abs(wanted[k])) for k in NUMBERS]
        off.append(max(parts) * n / EARLY)
    return off


def run_end(run, numbers: dict, n: int) -> jax.Array:
    """Position and velocity at `EARLY`."""
    traj = run(numbers, EARLY / n, n)
    return jnp.concatenate([traj.q[-1], traj.v[-1]])


@each_family("name", beside=("localized",))
def test_derivatives_through_reversals(name: str) -> None:
    """Of first order: d/d(k, f, m, x) of the state after two reversals against the closed form."""
    assert max(derivatives(name, (331, 1201))) < 25.0


@each_family("name", "generalized_alpha", beside=("ggl_unified",))
def test_energy_balance(name: str) -> None:
    """The first three keep linear systems' energy exactly: the books close to rounding. The others' forces
    differ from their means by the order of the step.
    """
    n = 1699
    books = energy_balance(runner(name)(NUMBERS, EARLY / n, n, 1))
    exact = name in ("moreau_theta", "newmark", "ggl_unified")
    assert np.max(np.abs(books.residual)) < (1e-13 if exact else 2e-5)
    x = runner(name)(NUMBERS, EARLY / n, n, 1).q[:, 0]
    # friction takes its bound times the way, but for a step at each of two reversals
    assert books.dry_friction.sum() == pytest.approx(-1.5 * np.sum(np.abs(np.diff(x))), rel=2e-4)
    assert books.friction.shape == (n + 1, 0)


@each_family("name", "moreau", beside=("localized",))
def test_motor_that_stalls(name: str) -> None:
    """It holds its speed against a load below its bound; above it, it is turned back."""
    scheme = scheme_of(name)
    p = {"k": 0.0, "f": 1.5, "m": 2.0, "u": 0.4, "push": 1.0}
    start = State(t=0.0, q=np.zeros(1), v=np.array([0.4]))
    holds = nsjax.simulate(GUIDE, p, start, scheme, dt=1e-2, steps=50, every=10)
    np.testing.assert_allclose(holds.v, 0.4, rtol=1e-9)
    np.testing.assert_allclose(holds.dry_friction_force[1:], 1.0, rtol=1e-9)
    stalls = nsjax.simulate(GUIDE, p | {"push": 2.1}, start, scheme, dt=1e-2, steps=50, every=10)
    np.testing.assert_allclose(stalls.v[:, 0], 0.4 - 0.3 * stalls.t, rtol=1e-9)
    np.testing.assert_allclose(stalls.dry_friction_force[1:], 1.5, rtol=1e-12)
    free = nsjax.simulate(GUIDE, p | {"f": 0.0}, start, scheme, dt=1e-2, steps=50, every=10)
    np.testing.assert_allclose(free.v[:, 0], 0.4 - 0.5 * free.t, rtol=1e-9)
    assert not np.any(free.dry_friction_impulse)


@dataclasses.dataclass(frozen=True)
class Carriage:
    """A ball (x, y, z) that bounces on a rough floor, braked along x, on a rod along y if held."""

    nt: int
    held: bool

    def mass(self, q, p):
        return p["m"] * jnp.eye(3)

    def force(self, t, q, v, p):
        return jnp.stack([p["push"] + 0.0 * t, 0.0 * t, -9.81 * p["m"]])

    def gap(self, t, q, p):
        return q[2:]

    def slip(self, t, q, v, p):
        return v[None, : self.nt]

    def law(self, p):
        return ContactLaw(restitution=p["e"], friction=p["mu"])

    def dry_friction(self, t, q, v, p):
        return v[:1]

    def bound(self, p):
        return p["f"] * jnp.ones(1)

    def constraint(self, t, q, p):
        return q[1:2]

    def system(self) -> System:
        """With or without tangents and the rod."""
        more = {"slip": self.slip} if self.nt else {}
        rod = {"nb": 1, "constraint": self.constraint} if self.held else {}
        return System(
            nq=3, nv=3, nc=1, nt=self.nt, nd=1, mass=self.mass, force=self.force, gap=self.gap,
            law=self.law, dry_friction=self.dry_friction, dry_friction_bound=self.bound, **more, **rod,
        )  # fmt: skip


CARRIAGE = {"m": 2.0, "e": 0.5, "mu": 0.2, "f": 1.2, "push": 0.0}


@each_family("name")
@pytest.mark.parametrize(
    "nt", [1, pytest.param(0, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_beside_contacts(name: str, nt: int) -> None:
    """Sliding on the floor under a brake, in closed form: both forces act until it stops."""
    system = Carriage(nt, held=nt == 1).system()
    start = State(t=0.0, q=np.zeros(3), v=np.array([1.0, 0.0, 0.0]))
    traj = nsjax.simulate(system, CARRIAGE, start, scheme_of(name), dt=2e-3, steps=100, every=10)
    traj.raise_for_status()
    slows = 1.2 / 2.0 + (0.2 * 9.81 if nt else 0.0)
    np.testing.assert_allclose(traj.v[:, 0], 1.0 - slows * traj.t, rtol=1e-9)
    np.testing.assert_allclose(traj.dry_friction_force[1:, 0], -1.2, rtol=1e-9)
    assert traj.force_tangential.shape[1:] == (1, nt)
    assert traj.gap.shape[1:] == (1,)
    still = dataclasses.replace(start, v=np.zeros(3))
    held = nsjax.simulate(
        system, CARRIAGE | {"mu": 0.0, "push": 0.7}, still, scheme_of(name), dt=2e-3, steps=100, every=10
    )
    held.raise_for_status()
    np.testing.assert_allclose(held.v, 0.0, atol=1e-11)
    np.testing.assert_allclose(held.dry_friction_force[1:, 0], -0.7, rtol=1e-9)
    if nt:
        np.testing.assert_allclose(traj.mean_force_tangential[1:, 0, 0], -0.2 * 9.81 * 2.0, rtol=1e-6)


@each_family("name", beside=("localized",))
def test_an_impact_is_not_answered_by_a_brake(name: str) -> None:
    """The ball bounces once: along x the brake takes its bound over the time, the impact mu times its
    normal impulse, and nothing else.
    """
    start = State(t=0.0, q=np.array([0.0, 0.0, 0.5]), v=np.array([3.0, 0.0, 0.0]))
    steps, dt = 400, 1e-3
    system = Carriage(1, held=False).system()
    traj = nsjax.simulate(system, CARRIAGE, start, scheme_of(name), dt=dt, steps=steps, events=4)
    traj.raise_for_status()
    assert traj.events.count == 1
    struck = np.sum(traj.impulse_normal)
    fall = np.sqrt(2 * 9.81 * 0.5)
    assert struck == pytest.approx(2.0 * 1.5 * fall, rel=2e-2)  # the rate is known to a step
    assert np.sum(traj.dry_friction_impulse) == pytest.approx(-1.2 * steps * dt, rel=1e-9)
    lost = 1.2 * steps * dt / 2.0 + 0.2 * struck / 2.0
    assert traj.v[-1, 0] == pytest.approx(3.0 - lost, rel=1e-9)


@pytest.mark.slow
def test_lanes_and_files(tmp_path) -> None:
    """Batches and saved runs know bounded rows."""
    run = runner("moreau")
    bounds = jnp.array([0.5, 1.5, 30.0])
    lanes = jax.vmap(lambda f: run({**NUMBERS, "f": f}, EARLY / 200, 200, 50).dry_friction_force)(bounds)
    for f, lane in zip(bounds, lanes, strict=True):
        np.testing.assert_allclose(
            lane, run({**NUMBERS, "f": f}, EARLY / 200, 200, 50).dry_friction_force, atol=1e-12
        )
    np.testing.assert_allclose(lanes[2, 1:, 0], 25.0, rtol=1e-9)  # it never moves
    p = {"k": 50.0, "f": 1.5, "m": 2.0, "push": 0.0, "u": 0.0}
    problem = nsjax.Problem(system=GUIDE, params=p, state=State(t=0.0, q=np.array([0.5]), v=np.zeros(1)))
    scheme = schemes.generalized_alpha()
    traj = nsjax.simulate(*problem, scheme, dt=1e-2, steps=40)
    nsjax.save(tmp_path / "run.npz", problem, traj, scheme=scheme)
    saved = nsjax.load(tmp_path / "run.npz", problem=problem)
    np.testing.assert_array_equal(saved.traj.dry_friction_force, traj.dry_friction_force)
    on = nsjax.simulate(*problem, scheme, dt=1e-2, steps=20, carry=saved.traj.carry)
    whole = nsjax.simulate(*problem, scheme, dt=1e-2, steps=60)
    np.testing.assert_array_equal(on.q[-1], whole.q[-1])
