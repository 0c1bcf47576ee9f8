"""A joint, a load, an element and a coupling that the package does not have, by one entry of a registry
each; and who compares the names of kinds.
"""

from __future__ import annotations

import ast
import dataclasses
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, ball, beam, body, couplings, elements, hinge, joints, loads, section
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.couplings.coupling_kind import CouplingKind, coupled
from nsjax.multibody.elements import ElementKind, halves
from nsjax.multibody.joints.joint_kind import JointKind, across, axis_of, joint, separation, tilts
from nsjax.multibody.loads.load_kind import LoadKind
from nsjax.multibody.numbers import Load
from nsjax.multibody.parts import made

SLOW = pytest.mark.slow


def both_ways(end, x):
    """Derivative of a run's end, forward and reverse."""
    return forwards(end, x), float(jax.jit(jax.grad(end))(x))


def forwards(end, x):
    """Derivative of a run's end, forward."""
    return float(jax.jit(lambda x: jax.jvp(end, (x,), (jnp.ones(()),))[1])(x))


# a joint: a pin in a slot, which moves along the axis of the first body and turns about a second one


def slot(name, first, second, *, axis, second_axis=None, **given):
    return joint("slot", name, first, second, None, False, axis=axis, second_axis=second_axis, **given)


def slot_rows(scene, part, numbers):
    turn, gone = scene.frame(part.bodies[0]).turn, separation(scene, part, numbers)
    if scene.dimension == 2:
        return [plane.dot(plane.perp(plane.turned(turn, axis_of(numbers, 2))), gone)]
    off = [space.dot(space.turned(turn, x), gone) for x in across(axis_of(numbers, 3))]
    return off + tilts(scene, part, dataclasses.replace(numbers, axis=numbers.second_axis))


SLOT = JointKind(
    name="slot", rows={2: ("across",), 3: ("across1", "across2", "tilt1", "tilt2")}, residuals=slot_rows,
    sizes={2: (2, 2), 3: (2, 2)}, slides=1, turns=("second_axis",),
)  # fmt: skip
MASS, INERTIA, ARM, G = 1.3, 0.2, 0.5, 9.81


def fallen(time, arm=ARM):
    """Angle below the level of the same, by another integrator: its mass centre falls straight down,
    ``(J + m l^2 cos^2 x) x'' = m g l cos x + m l^2 sin x cos x x'^2``.
    """

    def rates(t, y):
        s, c = np.sin(y[0]), np.cos(y[0])
        push = MASS * G * arm * c + MASS * arm * arm * s * c * y[1] ** 2
        return [y[1], push / (INERTIA + MASS * arm * arm * c * c)]

    return solve_ivp(rates, (0.0, time), [0.0, 0.0], rtol=1e-11, atol=1e-12).y[0, -1]


def test_a_new_joint(monkeypatch) -> None:
    """A pendulum whose pin runs along a level slot; it starts from the side, at rest."""
    monkeypatch.setitem(joints.KINDS, SLOT.name, SLOT)
    bob = body("bob", mass=MASS, inertia=INERTIA, com=ARM)
    problem = assemble(bob, slot("s", "ground", "bob", axis=(1.0, 0.0)), gravity=G)
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=1e-3, steps=300)
    traj.raise_for_status()
    place = np.asarray(traj.body("bob").position[-1])
    angle = fallen(0.3)
    # order 2: errors of a swing of about a second in steps of a millisecond
    assert abs(place[0] - ARM * (1.0 - np.cos(angle))) < 3e-6
    assert np.max(np.abs(place[1:])) < 3e-6
    assert len(problem.system.labels.q) == 2
    assert problem.system.labels.q[0] == "s.position [m]"

    def end(arm):
        moved = problem.replace(**{"bob.com": arm})
        return nsjax.simulate(*moved, schemes.generalized_alpha(), dt=1e-3, steps=100).q[-1, -1]

    forward, reverse = both_ways(end, jnp.asarray(ARM))
    assert abs(forward - reverse) < 1e-10
    wide = (fallen(0.1, ARM + 1e-4) - fallen(0.1, ARM - 1e-4)) / 2e-4
    assert abs(abs(forward) - abs(wide)) < 1e-4


# a load: two bodies that attract each other


def attraction(name, first, second, *, strength):
    return made("attraction", name, (first, second), Load(value=strength))


def pulls(scene, part, numbers, driven):
    a, (first, second) = scene.algebra, part.bodies
    one, other = scene.point(first), scene.point(second)
    gone = a.subtract(other, one)
    pull = a.scale(numbers.value / a.size(gone) ** 3, gone)
    yield first, pull, one, None
    yield second, a.negative(pull), other, None


def well(scene, part, numbers, driven):
    first, second = part.bodies
    return -numbers.value / scene.algebra.size(
        scene.algebra.subtract(scene.point(second), scene.point(first))
    )


ATTRACTION = LoadKind(name="attraction", pushes=pulls, energy=well)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("coordinates", "dimension"), [("joint", 2), pytest.param("absolute", 3, marks=SLOW)]
)
def test_a_new_load(monkeypatch, coordinates, dimension) -> None:
    """A planet on a circle, at ``sqrt(k / (m r^3))``; its energies stay."""
    monkeypatch.setitem(loads.KINDS, ATTRACTION.name, ATTRACTION)
    k, m, r = 2.0, 0.5, 1.2
    rate = np.sqrt(k / (m * r**3))
    ends = (r, 0.0, 0.0), (0.0, r * rate, 0.0)
    planet = body("planet", mass=m, inertia=0.1 if dimension == 2 else (0.1, 0.1, 0.1))
    problem = assemble(
        planet, attraction("sun", "ground", "planet", strength=k), coordinates=coordinates,
        start={"planet": ends},
    )  # fmt: skip
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=2e-3, steps=200)
    place = np.asarray(traj.body("planet").position)
    turned = rate * np.asarray(traj.t)
    np.testing.assert_allclose(place[:, 0], r * np.cos(turned), atol=3e-6)  # order 2
    np.testing.assert_allclose(place[:, 1], r * np.sin(turned), atol=3e-6)
    np.testing.assert_allclose(traj.load("sun").energy, -k / r, atol=1e-5)

    def end(strength):
        run = nsjax.simulate(
            *problem.replace(**{"sun.value": strength}), schemes.generalized_alpha(), dt=2e-3, steps=20
        )
        return run.q[-1, 0]

    forward, reverse = both_ways(end, jnp.asarray(k))
    assert abs(forward - reverse) < 1e-11
    assert abs(forward + 0.5 * 0.04**2 / (m * r * r)) < 2e-5  # -t^2 / (2 m r^2) at first


# an element: a cable that carries tension and compression alone


def cable_piece(x, part):
    piece, _ = halves(x)
    own = {"length": piece.elastic.length, "axial": jnp.asarray(x.section.EA, float)}
    return dataclasses.replace(piece, own=own)


def stretches(own, poses):
    gone = poses[1:, :3] - poses[:-1, :3]
    length = jnp.sqrt(jnp.sum(gone * gone, axis=1))
    return gone / length[:, None], length / own["length"] - 1.0


def cable_forces(own, points, poses, rates, part):
    along, strain = stretches(own, poses)
    pull = (own["axial"] * strain)[:, None] * along
    none = jnp.zeros((1, 3))
    forces = jnp.concatenate([pull, none]) - jnp.concatenate([none, pull])
    return jnp.concatenate([forces, jnp.zeros_like(forces)], axis=1)


def cable_energy(own, points, poses, part):
    return 0.5 * jnp.sum(own["axial"] * own["length"] * stretches(own, poses)[1] ** 2)


CABLE = ElementKind(name="cable", piece=cable_piece, forces=cable_forces, energy=cable_energy)


@pytest.mark.slow
@pytest.mark.parametrize("derivatives_too", [False, pytest.param(True, marks=SLOW)])
def test_a_new_element(monkeypatch, derivatives_too: bool) -> None:
    """A cable of two elements that is stretched and let go: both free nodes swing as masses on springs."""
    monkeypatch.setitem(elements.KINDS, CABLE.name, CABLE)
    axial, line, pulled = 50.0, 0.4, 0.01
    s = section(EA=axial, EI=1.0, GJ=1.0, GA=1.0, line_mass=line, line_inertia=0.01)
    wire = beam("wire", (0, 0, 0), (2.0, 0, 0), elements=2, section=s, element="cable", mass="lumped")
    problem = assemble(
        wire, ball("end", "ground", "wire.start"), start={"wire.2": (2.0 + pulled, 0.0, 0.0)}
    )
    mass = np.array([line, line / 2.0])  # of the free nodes
    stiffness = axial * np.array([[2.0, -1.0], [-1.0, 1.0]])
    squares, ways = np.linalg.eig(stiffness / mass[:, None])
    parts = np.linalg.solve(ways, np.array([0.0, pulled]))
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(rho_inf=1.0), dt=1e-3, steps=200)
    swing = ways @ (parts[:, None] * np.cos(np.sqrt(squares)[:, None] * np.asarray(traj.t)))
    found = np.stack([traj.body(f"wire.{k}").position[:, 0] - k for k in (1, 2)])
    # order 2; the strain is linear in the displacements along the cable
    np.testing.assert_allclose(found, swing, atol=2e-6)
    start = float(problem.system.potential(0.0, jnp.asarray(problem.state.q), problem.params))
    assert abs(start - 0.5 * axial * pulled**2) < 1e-12
    if not derivatives_too:
        return

    def end(stiff):
        moved = problem.replace(**{"wire.section.EA": stiff})
        return nsjax.simulate(*moved, schemes.generalized_alpha(rho_inf=1.0), dt=1e-3, steps=20).q[-1, 14]

    forward = forwards(end, jnp.asarray(axial))
    assert abs(forward - float(jax.jit(jax.grad(end))(jnp.asarray(axial)))) < 1e-12
    rest = 0.02 * np.sqrt(squares)  # d cos(w t) / d EA = -t sin(w t) w / (2 EA)
    wanted = -float((ways @ (parts * np.sin(rest) * rest / (2.0 * axial)))[1])
    assert abs(forward - wanted) < 1e-3 * abs(wanted)


# a coupling: a sine


@pytest.mark.slow
def test_a_new_coupling(monkeypatch) -> None:
    sine = CouplingKind(name="sine", value=lambda numbers, x: numbers.ratio * jnp.sin(x))
    monkeypatch.setitem(couplings.KINDS, "sine", sine)
    parts = [
        body("a", mass=1.0, inertia=0.3), hinge("A", "ground", "a", motion=lambda t: t),
        body("b", mass=1.0, inertia=0.5), hinge("B", "ground", "b", at=1.0),
        coupled("sine", "law", "B", "A", ratio=0.4),
    ]  # fmt: skip
    traj = nsjax.simulate(*assemble(*parts), schemes.ggl_decoupled(), dt=1e-3, steps=50)
    np.testing.assert_allclose(traj.joint("B").position, 0.4 * np.sin(traj.t), atol=1e-10)


ROOT = pathlib.Path(nsjax.__file__).parent / "multibody"
NAMES = {*joints.KINDS, *loads.KINDS, *elements.KINDS, *couplings.KINDS, "free"} - {"beam"}
EXCEPTIONS = {
    "files/source.py": "sizes and names of the other program's elements, an actuator among them",
    "files/starts.py": "actuator is what the other program calls a motor",
    "reactions.py": "force and torque are quantities of a row",
    "sensors.py": "distance is what a sensor measures, force and torque are quantities of a row",
}
"""Files that compare words that are names of kinds, and why."""


def compared(file: pathlib.Path) -> list[str]:
    """Names of kinds that a file compares, looks up or asks for."""
    found = []
    for x in ast.walk(ast.parse(file.read_text())):
        if isinstance(x, ast.Compare):
            asked = [x.left, *x.comparators]
        elif isinstance(x, ast.Dict):
            asked = [k for k in x.keys if k is not None]
        elif isinstance(x, ast.Call) and getattr(x.func, "attr", "") == "all_of":
            asked = list(x.args)
        else:
            continue
        words = [y.value for part in asked for y in ast.walk(part) if isinstance(y, ast.Constant)]
        found += [f"{file.name}:{x.lineno} {word}" for word in words if word in NAMES]
    return found


def test_no_kind_is_compared_by_its_name() -> None:
    """Nothing outside of a kind's own file knows it, beside its entry in the registry."""
    found = {}
    for file in sorted(ROOT.rglob("*.py")):
        name = file.relative_to(ROOT).as_posix()
        words = compared(file)
        if words and name not in EXCEPTIONS:
            found[name] = words
    assert not found
    assert all(compared(ROOT / name) for name in EXCEPTIONS)
