"""Beams as parts: sections, inertia, loads, starts, contacts of their nodes, and printed motions."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import multibody as mb
from nsjax import schemes
from nsjax.analysis import equilibrium
from nsjax.linalg import BlockTridiagonal, Dense
from nsjax.math import rotations
from tests.design import each_family
from tests.multibody.flexible.beam_cases import COLUMN

# Beams as parts: sections, sentences, inertia, forces, starts and contacts of their nodes.
ROUND = mb.circular(0.05, E=2.1e9, rho=7850.0)


def arm(**given):
    return mb.beam("arm", (0, 0, 0), (2, 0, 0), **{"elements": 4, "section": ROUND, **given})


def test_sections_of_closed_forms() -> None:
    G = 2.1e9 / 2.6
    assert pytest.approx(np.pi * 0.05**2 * 2.1e9) == ROUND.EA
    assert pytest.approx(np.pi / 2 * 0.05**4 * G) == ROUND.GJ
    square = mb.rectangular(0.02, 0.02, E=2e11, nu=0.25)
    assert pytest.approx(0.1405770 * 0.02**4 * 8e10, rel=1e-5) == square.GJ  # Timoshenko's table: 0.1406
    flat = mb.rectangular(0.03, 0.01, E=2e11, nu=0.25)
    np.testing.assert_allclose(flat.EI, 2e11 / 12 * np.array([0.03 * 0.01**3, 0.01 * 0.03**3]))
    assert pytest.approx(0.2633 * 0.03 * 0.01**3 * 8e10, rel=2e-4) == flat.GJ  # the same table: 0.263


def test_springs_between_neighbours_keep_the_chain() -> None:
    other = mb.body("weight", mass=1.0, inertia=(1.0, 1.0, 1.0))
    near = mb.spring("leg", "arm.end", "weight", stiffness=1.0)
    far = mb.spring("leg", "arm.start", "weight", stiffness=1.0)
    start = {"weight": ((3.0, 0.0, 0.0), (0.0, 0.0, 0.0))}
    assert mb.assemble(arm(), other, near, start=start).system.structure == BlockTridiagonal(6)
    assert mb.assemble(arm(), other, far, start=start).system.structure == Dense()


def test_a_beam_moved_as_a_whole() -> None:
    """Place, turn and velocity of a beam are those of a rigid body drawn with it."""
    turn, w = np.array([0.0, 0.0, np.pi / 2]), np.array([0.0, 0.0, 2.0])
    problem = mb.assemble(arm(), start={"arm": (((1.0, 0.0, 0.0), turn), (*[0.0] * 3, *w))})
    q, v = problem.state.q.reshape(-1, 7), problem.state.v.reshape(-1, 6)
    np.testing.assert_allclose(q[-1, :3], (1.0, 2.0, 0.0), atol=1e-15)
    np.testing.assert_allclose(v[-1, :3], (-4.0, 0.0, 0.0), atol=1e-15)
    s, p = problem.system, problem.system.prepare(problem.params)
    assert float(s.potential(0.0, problem.state.q, p)) < 1e-20
    assert np.allclose(rotations.matrix(jnp.asarray(q[0, 3:])) @ w, w)


def test_contacts_of_all_nodes() -> None:
    problem = mb.assemble(
        arm(), mb.contact("floor", mb.sphere("arm", 0.05), mb.plane(at=(0.0, 0.0, -0.3)), friction=0.2),
        start={"arm": (((0.0, 0.0, 0.0), (0.0, 0.1, 0.0)), (1.0, 0, 0, 0, 0, 0))},
    )  # fmt: skip
    s, p = problem.system, problem.system.prepare(problem.params)
    assert (s.nc, s.nt) == (5, 2)
    q, v = problem.state.q, problem.state.v
    np.testing.assert_allclose(s.gap(0.0, q, p), 0.25 - np.linspace(0, 2, 5) * np.sin(0.1), atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(s.slip(0.0, q, v, p), axis=1), 1.0, rtol=1e-14)


@pytest.mark.slow
def test_force_beside_the_axis() -> None:
    """A force at a point off the axis has a moment about the node, in the axes of the node."""
    end = ("arm.end", (0.0, 0.1, 0.0))
    loaded = mb.assemble(arm(), mb.force("f", end, (1.0, 0.0, 0.0)))
    s, p = loaded.system, loaded.system.prepare(loaded.params)
    push = np.asarray(jax.jit(s.force)(0.0, loaded.state.q, loaded.state.v, p)).reshape(-1, 6)
    np.testing.assert_allclose(push[-1], (1.0, 0.0, 0.0, 0.0, 0.0, -0.1), atol=1e-12)


@pytest.mark.slow
def test_contacts_of_all_nodes_of_several_beams() -> None:
    """As many beams alike as rigid bodies whose contacts are evaluated at once."""
    heights = (0.0, 0.1, 0.2, 0.3, 0.4)
    beams = [
        mb.beam(f"arm{k}", (0, 0, h), (2, 0, h), elements=4, section=ROUND) for k, h in enumerate(heights)
    ]
    floor = mb.plane(at=(0.0, 0.0, -0.3))
    touching = [mb.contact(f"floor{k}", mb.sphere(f"arm{k}", 0.05), floor) for k in range(len(beams))]
    problem = mb.assemble(*beams, *touching)
    s, p = problem.system, problem.system.prepare(problem.params)
    gaps = np.asarray(s.gap(0.0, problem.state.q, p)).reshape(5, 5)
    np.testing.assert_allclose(gaps, np.repeat(np.add(heights, 0.25)[:, None], 5, axis=1), atol=1e-14)


# Loads along beams, stations, and ends that move as prescribed.
SOFT = mb.section(**COLUMN)


def column(**given):
    return mb.beam(
        "arm", (0, 0, 0), (1, 0, 0), section=SOFT, first_axis=(0, 0, 1), **{"elements": 4, **given}
    )


def pushes(problem, t=0.0, q=None):
    s, p = problem.system, problem.system.prepare(problem.params)
    q = problem.state.q if q is None else q
    return np.asarray(jax.jit(s.force)(t, q, jnp.zeros(s.nv), p)).reshape(-1, 6)


def test_resultants_of_a_load_along_a_beam() -> None:
    """``f = t (1 + x)``: its force 3/2 t and its moment 5/6 t about the start, exactly with linear shapes;
    a second load follows the nodes, all turned by a right angle.
    """
    shape = jnp.asarray(np.outer(1.0 + np.linspace(0.0, 1.0, 5), (0.0, 1.0, 0.0)))
    problem = mb.assemble(
        column(), mb.line_load("wind", "arm", law=lambda t, own: t * own, own=shape),
        mb.line_load("jet", "arm", (0.0, 0.0, 2.0), follower=True),
        start={"arm": (((0.0, 0.0, 0.0), (np.pi / 2, 0.0, 0.0)), None)},
    )  # fmt: skip
    found, x = pushes(problem, t=2.0), np.linspace(0.0, 1.0, 5)
    np.testing.assert_allclose(found[:, 3:], 0.0, atol=1e-9)  # of stiffness 1e6, rounding
    np.testing.assert_allclose(found[:, :3].sum(axis=0), (0.0, 3.0 - 2.0, 0.0), atol=1e-8)
    assert x @ found[:, 1] == pytest.approx(2.0 * 5.0 / 6.0 - 1.0, abs=1e-8)


@pytest.mark.slow
def test_deflection_under_a_load_along_the_cantilever() -> None:
    """The sum of the closed forms of its nodal forces: a force P at a moves the tip by ``P (a^3/3 - a
    l^2/12 + a^2 (L - a)/2) / EI + P a / GA``, exactly for linear elements of one point.
    """
    weight, step = 1e-4, 0.25
    problem = mb.assemble(
        column(), mb.fixed("clamp", "ground", "arm.start"), mb.line_load("w", "arm", (0.0, 0.0, 0.0))
    )
    found = equilibrium(problem, {"w.value": (0.0, weight, 0.0)})
    wanted = 0.0
    for k in range(1, 5):
        a, P = k * step, weight * step * (0.5 if k == 4 else 1.0)
        wanted += P * (a**3 / 3.0 - a * step**2 / 12.0 + 0.5 * a**2 * (1.0 - a)) + P * a / COLUMN["GA"]
    assert found.positions[-1].reshape(-1, 7)[-1, 1] == pytest.approx(wanted, rel=1e-8)


@pytest.mark.slow
def test_stations_are_nodes() -> None:
    stations = {"third": 1.0 / 3.0, "half": 0.5}
    problem = mb.assemble(column(stations=stations), mb.force("f", "arm.third", (1.0, 0.0, 0.0)))
    assert problem.params["arm"].points.shape == (6, 3)
    found = pushes(problem)
    np.testing.assert_allclose(found[:, 0], [0, 0, 1, 0, 0, 0], atol=1e-9)
    np.testing.assert_allclose(problem.params["arm"].points[3], (0.5, 0.0, 0.0), atol=1e-15)
    assert dict(column(stations=stations).option("stations")) == {"third": 2, "half": 3}


@pytest.mark.slow
def test_an_end_that_moves_as_prescribed() -> None:
    """The clamp is closed where the beam is moved as a whole by the path, at the rate of the path."""

    def path(t):
        return (0.1 * t, 0.2 * t, 0.0), (0.0, 0.0, 3.0 * t)

    problem = mb.assemble(column(elements=1), mb.fixed("clamp", "ground", "arm.start", path=path))
    v = np.asarray(problem.state.v).reshape(-1, 6)
    np.testing.assert_allclose(v, [(0.1, 0.2, 0, 0, 0, 3), (0.1, 3.2, 0, 0, 0, 3)], atol=1e-9)
    s, p, t = problem.system, problem.system.prepare(problem.params), 0.5
    turn = np.asarray(rotations.exponential(jnp.asarray([0.0, 0.0, 3.0 * t])))
    place = np.array([0.1 * t, 0.2 * t, 0.0])
    other = place + np.array([np.cos(3.0 * t), np.sin(3.0 * t), 0.0])
    q = jnp.asarray(np.concatenate([place, turn, other, turn]))
    rows = jax.jit(s.constraint)
    np.testing.assert_allclose(rows(t, q, p), 0.0, atol=1e-14)
    assert np.max(np.abs(rows(t + 0.1, q, p))) > 0.01


# Every registered scheme on a small beam against its equations of motion solved by another program; some
# on beams of incremental elements, whose history every scheme brings up to date in its own way.
DT, STEPS = 1e-3, 20
SUPPLE = {"EA": 2e3, "GA": 2e3, "EI": 5.0, "GJ": 5.0, "line_mass": 1.0, "line_inertia": 1e-2}
"""Highest frequency below 1 / DT: explicit schemes are stable."""


@functools.cache
def swinging(stiff: bool = False, per: int | None = None):
    """A clamped beam of three nodes that is thrown to the side and twisted; ``per`` of them an incremental
    element.
    """
    given = {} if per is None else {"element": "incremental", "element_nodes": per}
    problem = mb.assemble(
        mb.beam("arm", (0, 0, 0), (1, 0, 0), elements=1 if per == 3 else 2,
             section=mb.section(**(COLUMN if stiff else SUPPLE)), first_axis=(0, 0, 1), **given),
        mb.fixed("clamp", "ground", "arm.start"), gravity=9.81,
    )  # fmt: skip
    v = np.array([[0.0] * 6, [0, 0.5, 0.2, 1.0, -0.8, 2.0], [0, 2.0, 0.8, 2.0, -1.6, 4.0]])
    return problem.replace(initial_v=v.reshape(-1))


def _history_rates(q, v, per: int) -> list:
    """Of the Gauss points: they turn with the interpolated angular velocity of the nodes (in the axes of
    the ground), whose slope is the rate of curvature.
    """
    nodes, points = q[:21].reshape(3, 7), q[21:].reshape(-1, 7)
    spins = jax.vmap(lambda x, w: rotations.matrix(x[3:]) @ w)(nodes, v.reshape(3, 6)[:, 3:])
    if per == 2:
        pairs = [(0.5 * (spins[k] + spins[k + 1]), 0.5 * (spins[k + 1] - spins[k])) for k in (0, 1)]
    else:

        def quadratic(x):
            return spins[0] * x * (x - 1) / 2 + spins[1] * (1 - x * x) + spins[2] * x * (x + 1) / 2

        pairs = [jax.jvp(quadratic, (x,), (1.0,)) for x in (-1.0 / 3.0**0.5, 1.0 / 3.0**0.5)]
    found = []
    for (w, slope), point in zip(pairs, points, strict=True):
        p0, p1 = point[0], point[1:4]
        found += [-0.5 * jnp.dot(p1, w)[None], 0.5 * (p0 * w + jnp.cross(w, p1))]
        found.append(rotations.matrix(point[:4]).T @ slope)
    return found


@functools.cache
def exact(per: int | None = None) -> np.ndarray:
    """Position of the free nodes after as many steps of DT: Newton-Euler equations with the first node left
    out, by Dormand and Prince's eighth order.
    """
    problem = swinging(per=per)
    s, p = problem.system, problem.system.prepare(problem.params)
    first, zero, n = jnp.asarray(problem.state.q[:7]), jnp.zeros(6), s.nq - 7

    @jax.jit
    def rates(t, y):
        q, v = y[:n], y[n:]
        push = s.force(t, jnp.concatenate([first, q]), jnp.concatenate([zero, v]), p)[6:]
        mass = jax.vmap(lambda x: s.inertia(jnp.concatenate([first, q]), x, p))(jnp.eye(18)[6:])[:, 6:]
        moved = []
        for k in range(2):
            w, p0, p1 = v[6 * k + 3 : 6 * k + 6], q[7 * k + 3], q[7 * k + 4 : 7 * k + 7]
            moved += [v[6 * k : 6 * k + 3], -0.5 * jnp.dot(p1, w)[None], 0.5 * (p0 * w + jnp.cross(p1, w))]
        if per is not None:
            moved += _history_rates(jnp.concatenate([first, q]), jnp.concatenate([zero, v]), per)
        return jnp.concatenate([*moved, jnp.linalg.solve(mass, push)])

    start = np.concatenate([problem.state.q[7:], problem.state.v[6:]])
    found = solve_ivp(rates, (0.0, STEPS * DT), start, method="DOP853", rtol=1e-11, atol=1e-12)
    return found.y[:14, -1]


def _errors(name: str, per: int | None = None) -> list[float]:
    """At one instant from steps of DT and of half of it, the latter in two runs of one program."""
    problem, scheme, found = swinging(per=per), schemes.REGISTRY[name].factory(), []
    for halves in (1, 2):
        carry = None
        for _ in range(halves):
            traj = nsjax.simulate(*problem, scheme, dt=DT / halves, steps=STEPS, carry=carry)
            traj.raise_for_status()
            carry = traj.carry
        found.append(np.abs(np.asarray(traj.q)[-1, 7:21] - exact(per)).max())
    return found


@each_family("name")
def test_order(name: str) -> None:
    """A half of the step has a half or a quarter of the error."""
    found = _errors(name)
    assert found[0] < 1e-4  # of a motion by 0.04
    assert found[0] > 0.75 * 2.0 ** schemes.REGISTRY[name].order[0] * found[1], found


# Motions of beams against exact momenta, published numbers and convergence in the step.
pytestmark = pytest.mark.slow


def _pulse(t):
    """Triangle from 0 to 200 at 2.5 s and back."""
    return jnp.where(t < 2.5, 80.0 * t, jnp.where(t < 5.0, 80.0 * (5.0 - t), 0.0))


def _push(t, scene, own):
    return jnp.stack([_pulse(t) / 10.0, 0.0 * t, 0.0 * t])


def _turn(t, scene, own):
    return jnp.stack([0.0 * t, -_pulse(t) / 2.0, -_pulse(t)])


def _spins(problem, traj, q):
    """Angular momentum about the origin (rows, 3)."""
    s, p = problem.system, problem.system.prepare(problem.params)
    momenta = jax.jit(jax.vmap(lambda q, v: s.inertia(q, v, p)))(traj.q, traj.v)
    momenta = np.asarray(momenta).reshape(len(q), -1, 6)
    turns = np.asarray(jax.vmap(jax.vmap(rotations.matrix))(jnp.asarray(q[:, :, 3:])))
    own = np.einsum("tnij,tnj->tni", turns, momenta[:, :, 3:])
    return (np.cross(q[:, :, :3], momenta[:, :, :3]) + own).sum(axis=1)


@pytest.mark.parametrize(
    ("given", "shares"),
    [
        ({}, (0.5, 0.5)),
        ({"element": "incremental"}, (0.5, 0.5)),
        ({"element": "incremental", "element_nodes": 3}, (1 / 6, 4 / 6, 1 / 6)),
    ],
)
def test_flying_beam(given: dict, shares: tuple[float, ...]) -> None:
    """V6 (Simo and Vu-Quoc 1988): exact momentum and path of the centre, books of energy and spin. Printed
    are numbers of ten quadratic elements.
    """
    soft = mb.section(EA=1e4, GA=1e4, EI=500.0, GJ=500.0, line_mass=1.0, line_inertia=10.0)
    problem = mb.assemble(
        mb.beam("flying", (6, 0, 0), (0, 8, 0), elements=10, section=soft, **given),
        mb.force("F", "flying.start", law=_push), mb.torque("M", "flying.start", law=_turn),
    )  # fmt: skip
    dt = 0.025
    traj = nsjax.simulate(*problem, schemes.newmark(), dt=dt, time=10.0)
    five = round(5.0 / dt)
    per = len(shares) - 1
    mass = np.zeros(10 * per + 1)
    for k in range(10):
        mass[per * k : per * (k + 1) + 1] += shares
    q = np.asarray(traj.q).reshape(len(traj.t), -1, 7)[:, : len(mass)]
    momentum = np.einsum("n,tni->ti", mass, np.asarray(traj.v).reshape(len(q), -1, 6)[:, :, :3])
    np.testing.assert_allclose(momentum[five:] - [50.0, 0.0, 0.0], 0.0, atol=1e-10)
    centre = np.einsum("n,tni->ti", mass, q[:, :, :3]) / 10.0
    np.testing.assert_allclose(centre[[five, -1], 0], (15.5, 40.5), atol=1e-10)
    energy = np.asarray(traj["energy"])[five:]
    assert energy[0] == pytest.approx(724.2, rel=2e-2)
    assert np.ptp(energy) < 1e-3 * energy[0]
    np.testing.assert_allclose(q[five, 0, :3], (19.213, 1.632, -2.135), atol=0.02 * 19.4)
    if per == 2:
        np.testing.assert_allclose(q[-1, 0, :3], (42.80, 3.71, -4.40), atol=0.02 * 43.2)
    spin = _spins(problem, traj, q)[five:]
    assert np.max(np.abs(spin - spin[0])) < 2e-4 * np.linalg.norm(spin[0])  # printed: 4e-5, quadratic


def _spun_up(t):
    """The prescribed angle of V5: 6 rad/s from 15 s on."""
    w = 15.0 / (2.0 * np.pi)
    rising = 6.0 / 15.0 * (t**2 / 2.0 + w**2 * (jnp.cos(t / w) - 1.0))
    return jnp.where(t < 15.0, rising, 6.0 * t - 45.0)


def test_spin_up_of_an_arm() -> None:
    """V5 (Simo and Vu-Quoc 1986): largest lag of the tip, extension ``omega^2 rho A L^3 / (3 EA)``."""
    stiff = mb.section(EA=2.8e7, GA=1e7, EI=1.4e4, GJ=1.4e4, line_mass=1.2, line_inertia=6e-4)
    problem = mb.assemble(
        mb.beam("arm", (0, 0, 0), (10, 0, 0), elements=10, section=stiff),
        mb.hinge("drive", "ground", "arm.start", axis=(0, 0, 1), motion=_spun_up),
    )
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(0.9), dt=0.005, time=20.0)
    t, q = np.asarray(traj.t), np.asarray(traj.q)
    tip, angle = q.reshape(len(t), -1, 7)[:, -1], np.asarray(jax.vmap(_spun_up)(t))
    along = np.cos(angle) * tip[:, 0] + np.sin(angle) * tip[:, 1] - 10.0
    across = np.cos(angle) * tip[:, 1] - np.sin(angle) * tip[:, 0]
    assert across.min() == pytest.approx(-0.573, abs=1e-3)
    assert t[across.argmin()] == pytest.approx(6.76, abs=0.02)
    assert along[t > 15.5].mean() == pytest.approx(5.143e-4, rel=2e-3)  # ten elements: 5.140e-4
