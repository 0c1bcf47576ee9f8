"""Flexible slider-crank: equations against energies, particles, statics and the rigid mechanism."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, models, schemes
from nsjax.fem import Modes, unit_rod
from nsjax.io.codec import describe, rebuild
from nsjax.models.slider_crank_flexible import rod_data
from tests.design import slow_but

RODS = {
    "tangential": {"elements": 2},
    "pinned": {"elements": 2, "frame": "pinned"},
    "clamped_free": {"elements": 3, "modes": 4},
    "pinned_pinned": {"elements": 3, "frame": "pinned", "modes": 4},
    "free_free": {"elements": 3, "modes": Modes("free_free", 4)},
    "articulated_free": {"elements": 3, "modes": Modes("articulated_free", 4)},
}


@functools.partial(jax.jit, static_argnames=("system",))
def equations(system, p, q, v, w):
    """Everything that the tests look at, compiled once per rod."""
    p, t = system.prepare(p), jnp.asarray(0.1)
    topology = system.mass.__self__
    derived = nsjax.from_lagrangian(topology.kinetic, topology.potential, topology.drive)
    return {
        "mass": system.mass(q, p), "force": system.force(t, q, v, p), "derived mass": derived.mass(q, p),
        "derived force": derived.force(t, q, v, p), "inertia": system.inertia(q, w, p),
        "kinetic": topology.kinetic(q, v, p), "potential": system.potential(t, q, p),
        "observed": system.observe(t, q, v, None, p), "gap": system.gap(t, q, p),
        "slip": system.slip(t, q, v, p), "rod": p.rod,
    }  # fmt: skip


def state(system, bent=1e-3):
    """A moving state of no symmetry; deformations of a millimetre."""
    rng = np.random.default_rng(3)
    n = system.nv - 3
    q = np.concatenate([rng.normal(size=3), bent * rng.normal(size=n)])
    v = np.concatenate([50 * rng.normal(size=3), bent * 1e3 * rng.normal(size=n)])
    return q, v, rng.normal(size=n + 3)


@pytest.mark.parametrize("rod", slow_but(RODS, "pinned"))
def test_closed_form_is_that_of_the_energies(rod):
    system, p, _ = models.slider_crank_flexible(torque=0.7, **RODS[rod])
    q, v, w = state(system)
    found = equations(system, p, q, v, w)
    scale = np.abs(found["force"]).max()  # elastic forces of the order of 1e10 N
    np.testing.assert_allclose(found["mass"], found["derived mass"], rtol=1e-11, atol=1e-16)
    np.testing.assert_allclose(found["force"], found["derived force"], rtol=1e-11, atol=1e-15 * scale)
    # without elastic forces nothing hides the inertia
    soft = dataclasses.replace(p, young=0.0)
    found = equations(system, soft, q, v, w)
    scale = np.abs(found["force"]).max()
    np.testing.assert_allclose(found["force"], found["derived force"], rtol=1e-11, atol=1e-11 * scale)
    np.testing.assert_allclose(found["inertia"], found["mass"] @ w, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found["kinetic"], 0.5 * v @ found["mass"] @ v, rtol=1e-12)


@pytest.mark.parametrize("rod", ["tangential", "free_free"])
def test_kinetic_energy_of_particles(rod):
    """Twenty thousand particles along the rod, moved by the definition of the floating frame in numpy."""
    system, p, _ = models.slider_crank_flexible(gravity=0.0, **RODS[rod])
    q, v, w = state(system)
    found = equations(system, p, q, v, w)
    elements, basis = RODS[rod]["elements"], np.asarray(found["rod"].basis)

    def positions(q, x):
        nodes = (basis @ q[3:]).reshape(-1, 3)
        k = np.minimum((x * elements).astype(int), elements - 1)
        s, h = x * elements - k, 1 / elements  # Hermite interpolation, written out
        u = (1 - s) * nodes[k, 0] + s * nodes[k + 1, 0]
        bent = (2 * s**3 - 3 * s**2 + 1) * nodes[k, 1] + h * (s**3 - 2 * s**2 + s) * nodes[k, 2]
        bent += (3 * s**2 - 2 * s**3) * nodes[k + 1, 1] + h * (s**3 - s**2) * nodes[k + 1, 2]
        along = p.rod_length * x + u
        c, sn = np.cos(q[1]), np.sin(q[1])
        joint = p.crank_length * np.array([np.cos(q[0]), np.sin(q[0])])
        return joint[0] + c * along - sn * bent, joint[1] + sn * along + c * bent

    count, step = 20_000, 1e-7
    x = (np.arange(count) + 0.5) / count
    for at, mass in ((x, p.rod_mass / count), (np.array([1.0]), p.slider_mass)):
        ahead, back = positions(q + step * v, at), positions(q - step * v, at)
        square = sum(((a - b) / (2 * step)) ** 2 for a, b in zip(ahead, back, strict=True))
        found["kinetic"] = found["kinetic"] - 0.5 * mass * np.sum(square)
    crank = p.crank_inertia + p.crank_mass * p.crank_length**2 / 4
    section = p.rod_inertia - p.rod_mass * p.rod_length**2 / 12
    rest = 0.5 * (crank * v[0] ** 2 + section * v[1] ** 2 + p.slider_inertia * v[2] ** 2)
    # midpoint rule over the particles 1e-9, central differences 1e-9, of energies of 50 J
    assert found["kinetic"] == pytest.approx(rest, abs=1e-6)
    end = positions(q, np.array([1.0]))
    np.testing.assert_allclose([found["observed"]["x"], found["observed"]["y"]], np.ravel(end), rtol=1e-13)


def test_undeformed_rod_is_the_rigid_mechanism():
    system, p, _ = models.slider_crank_flexible(torque=0.7, **RODS["articulated_free"])
    rigid, data, _ = models.slider_crank(torque=0.7)
    q, v, w = state(system, bent=0.0)
    found = equations(system, p, q, v, w)
    np.testing.assert_allclose(found["mass"][:3, :3], rigid.mass(q[:3], data), rtol=1e-13, atol=1e-17)
    force = rigid.force(0.0, q[:3], v[:3], data)
    np.testing.assert_allclose(found["force"][:3], force, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found["gap"], rigid.gap(0.0, q[:3], data), atol=1e-16)
    np.testing.assert_allclose(found["slip"], rigid.slip(0.0, q[:3], v[:3], data), atol=1e-13)


def test_cantilever():
    """A load across the end of the rod in the tangential frame: moment P L, energy P^2 L^3 / (6 EI)."""
    system, p, _ = models.slider_crank_flexible(**RODS["tangential"])
    q, v, w = state(system)
    stiffness = np.asarray(equations(system, p, q, v, w)["rod"].stiffness)
    load = np.zeros(system.nv - 3)
    load[-2] = 3.0
    q = np.concatenate([np.zeros(3), np.linalg.solve(stiffness, load)])
    seen = equations(system, p, q, v, w)["observed"]
    bending = float(rod_data(p).bending)
    assert bending == pytest.approx(2.459243e4, rel=1e-6)  # slider_crank.md section 3
    assert float(rod_data(p).axial) == pytest.approx(3.184180e6, rel=1e-6)
    # small differences of the nodal forces of a beam a thousand times stiffer than the load
    assert seen["root_moment"] == pytest.approx(3.0 * p.rod_length, rel=1e-9)
    assert seen["elastic_energy"] == pytest.approx(9.0 * p.rod_length**3 / (6 * bending), rel=1e-9)
    assert seen["y"] == pytest.approx(p.rod_length**3 / bending, rel=1e-9)


def test_amplitudes_of_nodal_coordinates_are_those_of_the_modes():
    """The shape of the second mode as deformation: amplitude of the second mode, and of no other."""
    modal = models.slider_crank_flexible(elements=2, modes=4)
    nodal = models.slider_crank_flexible(elements=2)
    rod = equations(modal.system, modal.params, *state(modal.system))["rod"]
    free = nodal.system.mass.__self__.basis.free
    scale = np.where(free % 3 == 2, 1 / nodal.params.rod_length, 1.0)  # slopes of a rod of that length
    q = np.concatenate([np.zeros(3), 1e-3 * scale * np.asarray(rod.basis)[free, 1]])
    seen = equations(nodal.system, nodal.params, q, 0 * q, 0 * q)["observed"]
    found = [float(seen[f"mode{k}"]) for k in range(1, 7)]
    np.testing.assert_allclose(found, [0, 1e-3, 0, 0, 0, 0], atol=1e-15)  # rounding


def test_choices():
    problem = models.slider_crank_flexible(elements=3, frame="pinned", modes=2, initial_q=(0.1, 0.0, 0.0))
    assert problem.system == models.slider_crank_flexible(elements=3, modes=Modes("pinned_pinned", 2),
                                                          frame="pinned").system  # fmt: skip
    assert problem.system != models.slider_crank_flexible(elements=3, modes=2).system
    assert problem.state.q.tolist() == [0.1, 0.0, 0.0, 0.0, 0.0]
    assert models.slider_crank_flexible(elements=2).system.labels.q[3:6] == (
        "u1 [m]",
        "w1 [m]",
        "slope1 [rad]",
    )
    assert models.slider_crank_flexible(elements=2, frame="pinned").system.labels.q[3] == "slope0 [rad]"
    arrays: dict[str, np.ndarray] = {}
    saved = describe("choices", dict(problem.system.choices), arrays)
    assert models.slider_crank_flexible(**rebuild(saved, arrays, {})).system == problem.system
    with pytest.raises(InputError, match="must exceed rod_mass"):
        models.slider_crank_flexible(rod_inertia=1e-4)
    with pytest.raises(InputError, match="frame = 'fixed'"):
        models.slider_crank_flexible(frame="fixed", modes=3)
    with pytest.raises(InputError, match="elements = 0"):
        models.slider_crank_flexible(elements=0)


# --------------------------------------------------------------------------------------- motion


@pytest.mark.slow
def test_rigid_limit():
    """Before the first impact at 2.69 ms; Figure 21 shows what impacts add."""
    rigid = nsjax.simulate(*models.slider_crank(), schemes.bathe(), dt=1e-5, steps=260)
    stiff = models.slider_crank_flexible(elements=4, young=1e15)
    flexible = nsjax.simulate(*stiff, schemes.bathe(), dt=1e-5, steps=260)
    flexible.raise_for_status()
    # the rod starts undeformed; the first steps, too coarse for its vibrations, bring it under its load of
    # some 500 N and change the speed by 2e-6 of 150 rad/s: 8.4e-7 rad at the end
    for name in ("theta1", "theta2", "x"):
        np.testing.assert_allclose(flexible[name], rigid[name], rtol=0, atol=2e-6)


def test_unit_rod_is_shared():
    assert unit_rod(7) is unit_rod(7)
