"""Prescribed motions that are splines through measured values, or read numbers of their joint."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import multibody as mb
from nsjax import schemes

SLOW = pytest.mark.slow
BASE, BOX, BALL, STIFFNESS, DAMPING = 0.5, 1.0, 0.2, 100.0, 0.5
TIMES = np.linspace(0.0, 2.0, 41)
VALUES = 0.02 * np.sin(2.0 * np.pi * TIMES) ** 2 * (1.0 + 0.3 * np.random.default_rng(1).normal(size=41))
TABLE = nsjax.signal(TIMES, VALUES, "cubic", ends="clamped")


def damper(motion=None, inertial=None, coordinates: str = "joint", own=None) -> nsjax.Problem:
    """A box on a spring with a ball between stops, on a base that moves, or among the inertial forces of
    its motion.
    """
    parts, loads = [], []
    if motion is not None:
        parts = [mb.body("base", mass=BASE, inertia=1.0)]
        parts += [mb.slide("shaker", "ground", "base", motion=motion, own=own)]
    for name, mass in (("box", BOX), ("ball", BALL)) if inertial is not None else ():
        law = lambda t, scene, own: jnp.stack([-own["mass"] * bend(own["place"])(t), 0.0])  # noqa: E731
        loads.append(mb.force(f"on_{name}", name, law=law, own={"mass": mass, "place": inertial}))
    return mb.assemble(
        *parts, mb.body("box", mass=BOX, inertia=1.0), mb.body("ball", mass=BALL, inertia=1.0),
        mb.slide("rail", "base" if parts else "ground", "box"),
        mb.slide("groove", "box", "ball", limits=(-0.01, 0.01), restitution=0.7),
        mb.joint_spring("spring", "rail", stiffness=STIFFNESS, damping=DAMPING), *loads,
        coordinates=coordinates,
    )  # fmt: skip


def bend(table):
    """Second derivative of a table by the time."""
    return jax.grad(jax.grad(table.at))


def force_of_drive(run, motion) -> np.ndarray:
    """Force on the base: its acceleration, less what the spring does."""
    rail = run.joint("rail")
    a = jax.vmap(bend(motion))(jnp.asarray(run.t))
    return BASE * np.asarray(a) - STIFFNESS * rail.position - DAMPING * rail.rate


@pytest.mark.slow
def test_a_measured_excitation_as_motion_and_as_inertial_force() -> None:
    """An impact damper: the same motion and the same force of the drive by both readings, and from the
    multiplier of the scheme, but in the rows of steps with an impact.
    """
    run = {"dt": 1e-3, "time": 1.99}
    moved = nsjax.simulate(*damper(TABLE), schemes.bathe(), **run)
    pushed = nsjax.simulate(*damper(inertial=TABLE), schemes.bathe(), **run)
    for x in (moved, pushed):
        x.raise_for_status()
    assert int(moved.impacts.sum()) == int(pushed.impacts.sum()) > 8
    np.testing.assert_allclose(moved.q[:, 1:], pushed.q, atol=1e-12)
    force = np.asarray(moved.joint("shaker").force)[:, 0]
    assert np.max(np.abs(force)) > 5.0
    np.testing.assert_allclose(force, force_of_drive(pushed, TABLE), atol=1e-9)
    smooth = np.flatnonzero(np.sum(moved.impacts, axis=1) == 0)[1:]
    np.testing.assert_allclose(force[smooth], moved.constraint_force[smooth, 0], atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "coordinates"),
    [("moreau", "joint"), *(pytest.param(*x, marks=SLOW) for x in (
        ("half_explicit", "absolute"), ("ggl_unified", "joint"), ("generalized_alpha", "joint"),
        ("nsga_decoupled", "joint"),
    ))],
)  # fmt: skip
def test_a_table_is_the_closed_form_from_which_it_is(scheme, coordinates) -> None:
    """A cubic polynomial is its own spline, with its rates at the ends."""
    shape = np.polynomial.Polynomial([0.0, 0.02, 0.3, -0.5])
    times = np.linspace(0.0, 0.4, 9)
    table = nsjax.signal(times, shape(times), "cubic", ends=shape.deriv()(times[[0, -1]]))
    runs = [
        nsjax.simulate(*damper(x, coordinates=coordinates), getattr(schemes, scheme)(), dt=1e-3, steps=390)
        for x in (table, lambda t: jnp.polyval(shape.coef[::-1], t))
    ]  # fmt: skip
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-11)
    one, other = (np.asarray(x.joint("shaker").force) for x in runs)
    assert np.max(np.abs(one)) > 0.5
    np.testing.assert_allclose(one, other, atol=1e-9)


@SLOW
def test_derivatives_by_the_values_of_a_table() -> None:
    """Through impacts, forward and reverse, in two directions beside wide secants of a scheme that locates
    impacts.
    """
    problem, scheme = damper(TABLE), schemes.localized(schemes.half_explicit())
    rng = np.random.default_rng(2)
    ways = np.stack([VALUES, 1e-3 * np.sin(np.pi * TIMES) ** 2 * (1.0 + 0.1 * rng.normal(size=41))])

    @jax.jit
    def end(part):
        now = problem.replace({"shaker.motion.values": VALUES + part @ ways})
        run = nsjax.simulate(*now, scheme, dt=1e-3, steps=900, every=900, events=20)
        return jnp.concatenate([run.q[-1], run.v[-1]]), run.events.count

    zero, count = jnp.zeros(2), int(end(jnp.zeros(2))[1])
    assert count >= 3
    forward, reverse = (f(lambda x: end(x)[0])(zero) for f in (jax.jacfwd, jax.jacrev))
    np.testing.assert_allclose(forward, reverse, atol=1e-9 * np.max(np.abs(forward)))
    width = 2e-4
    for k, e in enumerate(width * np.eye(2)):
        (high, m), (low, n) = end(zero + e), end(zero - e)
        assert m == n == count
        np.testing.assert_allclose(
            (high - low) / (2 * width), forward[:, k], atol=2e-3 * np.max(np.abs(forward[:, k]))
        )


def swing(t, own):
    return own["size"] * jnp.sin(own["rate"] * t)


OWN = {"size": 0.02, "rate": 9.0}


def place(size, rate, coordinates="joint"):
    """Place after 0.3 s of a cart that swings with this amplitude and frequency."""
    problem = damper(swing, coordinates=coordinates, own=OWN)
    now = problem.replace({"shaker.own.size": size, "shaker.own.rate": rate})
    return nsjax.simulate(*now, schemes.half_explicit(), dt=1e-3, steps=300).q[-1, 0]


def test_numbers_of_a_motion_have_names() -> None:
    base = mb.body("base", mass=BASE, inertia=1.0)
    drive = mb.slide("shaker", "ground", "base", motion=swing, own=OWN)
    now = mb.assemble(base, drive).replace({"shaker.own.size": 0.03, "shaker.own.rate": 8.0})
    run = nsjax.simulate(*now, schemes.half_explicit(), dt=1e-3, steps=300)
    np.testing.assert_allclose(run.q[-1, 0], 0.03 * np.sin(8.0 * 0.3), atol=1e-5)


@SLOW
@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_derivatives_by_numbers_of_a_motion(coordinates) -> None:
    size, rate = OWN["size"], OWN["rate"]
    both = jax.grad(lambda *x: place(*x, coordinates), argnums=(0, 1))(size, rate)
    known = np.sin(rate * 0.3), size * 0.3 * np.cos(rate * 0.3)
    np.testing.assert_allclose(both, known, rtol=2e-3)


@SLOW
@pytest.mark.parametrize("dimension", [2, 3])
def test_a_path_that_is_a_spline(dimension) -> None:
    """A clamp that moves and turns by a table is that by the polynomials of its columns."""
    columns = 3 if dimension == 2 else 6
    rng = np.random.default_rng(dimension)
    shapes = [np.polynomial.Polynomial(x) for x in 0.3 * rng.normal(size=(columns, 4))]
    shapes = [x - x(0.0) for x in shapes]
    times = np.linspace(0.0, 0.3, 5)
    values = np.stack([x(times) for x in shapes], axis=1)
    ends = np.stack([x.deriv()(times[[0, -1]]) for x in shapes], axis=1)

    def along(t):
        found = jnp.stack([jnp.polyval(x.coef[::-1], t) for x in shapes])
        return (found[:2], found[2]) if dimension == 2 else (found[:3], found[3:])

    inertia = 0.1 if dimension == 2 else (0.1, 0.2, 0.25)
    runs = []
    for path in (nsjax.signal(times, values, "cubic", ends=ends), along):
        problem = mb.assemble(
            mb.body("arm", mass=1.0, inertia=inertia),
            mb.fixed("clamp", "ground", "arm", path=path),
            gravity=9.81,
        )
        runs.append(nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=290))
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-11)
    one, other = (np.asarray(x.joint("clamp").force) for x in runs)
    np.testing.assert_allclose(one, other, atol=1e-8)


@SLOW
def test_different_mechanisms_with_tables_share_a_class() -> None:
    """Each follows its own table, and those with numbers theirs."""
    late = nsjax.signal(TIMES, 0.5 * VALUES, "cubic", ends="clamped")
    problems = [damper(TABLE), damper(late)]
    many = nsjax.side_by_side(*problems)
    found = many.simulate(schemes.moreau(), dt=1e-3, steps=300)
    for x, run in zip(problems, found, strict=True):
        known = nsjax.simulate(*x, schemes.moreau(), dt=1e-3, steps=300)
        np.testing.assert_allclose(run.q, known.q, atol=1e-12)
