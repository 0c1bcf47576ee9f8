"""Surfaces of beams that meet each other and solids: gaps against fine sampling of their axes and closed
forms, derivatives against differences and the velocities of the points that meet, states without direction.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from nsjax.multibody import (
    assemble,
    beam,
    body,
    box,
    capsule,
    circular,
    contact,
    cylinder,
    hole,
    plane,
    tube,
)
from nsjax.multibody.contacts import curves
from nsjax.multibody.contacts import shape as solid_distance
from tests.multibody.contacts.contact_program import Contacts
from tests.multibody.flexible.test_tubes import bezier, circle

SECTION = circular(0.05, E=2.1e9, rho=7850.0)
R, S = 0.05, 0.03
"""Radii of the first and of the other tubes."""

ON, AXIS, HALF, TURNED = (0.1, 0.3, -0.4), (0.0, 0.6, 0.8), (0.5, 0.3, 0.2), (0.3, -0.5, 0.8)
NORMAL = (0.48, 0.6, 0.64)
BENT = circle(4, radius=0.8, part=0.25)
STATES = 6
FAR = 0.4
"""Gap beyond which nearest points are not unique: half the smallest radius of a curve."""


def scene() -> Any:
    """A bent beam, a straight one, a ring, and solids of a body that all stand among them."""
    return assemble(
        beam("bent", BENT, section=SECTION, first_axis=(0, 0, 1.0)),
        beam("straight", (-0.6, 0.3, 0.0), (0.7, 0.2, 0.1), elements=3, section=SECTION),
        beam("ring", circle(8, radius=0.5), section=SECTION, first_axis=(0, 0, 1.0)),
        body("b", mass=1.0, inertia=(1.0, 1.0, 1.0)),
        contact("crossed", tube("bent", R), tube("straight", S), friction=0.3),
        contact("around", tube("bent", R), tube("ring", S)),
        contact("floor", tube("ring", R), plane("b", at=ON, normal=NORMAL)),
        contact("box", tube("bent", R), box("b", *HALF, at=ON, turned=TURNED)),
    )  # fmt: skip


BEAMS = {"bent": (0, 5), "straight": (5, 9), "ring": (9, 18)}
PAIRS = {
    "crossed": ("bent", "straight"), "around": ("bent", "ring"), "floor": ("ring", ""), "box": ("bent", ""),
}  # fmt: skip


def poses(n: int, near: float = 1.0) -> np.ndarray:
    """Coordinates (n, nq): every beam moved and turned as a whole, and all nodes a little."""
    draw, found = np.random.default_rng(11), []
    curves = (BENT, np.linspace((-0.6, 0.3, 0.0), (0.7, 0.2, 0.1), 4), circle(8, radius=0.5))
    for _ in range(n):
        row = []
        for points in curves:
            turn, shift = Rotation.from_rotvec(0.6 * draw.normal(size=3)), near * draw.normal(size=3) * 0.4
            own = 0.01 * draw.normal(size=(len(points), 3))
            turns = Rotation.from_rotvec(0.03 * draw.normal(size=(len(points), 3))) * turn
            places, quats = turn.apply(points + own) + shift, turns.as_quat(scalar_first=True)
            if np.allclose(points[0], points[-1]):
                places[-1], quats[-1] = places[0], quats[0]
            row.append(np.concatenate([places, quats], axis=1).ravel())
        turn = Rotation.random(random_state=draw).as_quat(scalar_first=True)
        found.append(np.concatenate([*row, draw.normal(size=3) * 0.5, turn]))
    return np.array(found)


def whole(q: np.ndarray, draw: Any) -> np.ndarray:
    """Velocities of one rigid motion of everything; angular ones in body axes."""
    speed, spin = draw.normal(size=(2, 3))
    rows = q.reshape(-1, 7)
    turns = Rotation.from_quat(rows[:, 3:], scalar_first=True)
    own = turns.inv().apply(np.tile(spin, (len(rows), 1)))
    return np.concatenate([speed + np.cross(spin, rows[:, :3]), own], axis=1).ravel()


@pytest.fixture(scope="module")
def program() -> Contacts:
    return Contacts(scene())


def curve(q: np.ndarray, name: str, n: int) -> np.ndarray:
    """Fine points (m, 3) of the axis of a beam, by Bezier's form."""
    first, last = BEAMS[name]
    rows = q[: 18 * 7].reshape(-1, 7)[first:last]
    points = {"bent": BENT, "ring": circle(8, radius=0.5)}.get(name)
    if points is None:
        points = np.linspace((-0.6, 0.3, 0.0), (0.7, 0.2, 0.1), 4)
    x = curves.curve_of(points)
    tangents = Rotation.from_quat(rows[:, 3:], scalar_first=True).apply(x.tangents)
    u = np.linspace(0.0, len(rows) - 1.0, n)
    return np.array([bezier(rows[:, :3], tangents, x, float(s)) for s in u])


def outside(q: np.ndarray, points: np.ndarray) -> dict[str, np.ndarray]:
    """Distances of points outside of the shapes of the body, by other formulas than the library's."""
    turn = Rotation.from_quat(q[-4:], scalar_first=True)
    x = turn.inv().apply(points - q[-7:-4]) - ON
    inner = Rotation.from_rotvec(TURNED).inv().apply(x)
    height, wide = x @ AXIS, np.linalg.norm(np.cross(x, AXIS), axis=1)
    return {
        "floor": x @ NORMAL, "box": np.linalg.norm(np.maximum(np.abs(inner) - HALF, 0.0), axis=1),
        "capsule": np.hypot(np.maximum(np.abs(height) - 0.4, 0.0), wide) - S,
        "cylinder": np.hypot(np.maximum(np.abs(height) - 0.3, 0.0), np.maximum(wide - 0.2, 0.0)),
        "hole": 6.0 - wide,
    }  # fmt: skip


@pytest.mark.slow
def test_solids(program: Contacts) -> None:
    """Distances of points from every solid, and their gradients, which are the directions."""
    mechanism, (q,) = program.mechanism, poses(1)
    p = jax.tree.map(lambda x: jnp.asarray(x, float), program.params)
    shapes = {
        "box": box("b", *HALF, at=ON, turned=TURNED), "capsule": capsule("b", S, 0.4, at=ON, axis=AXIS),
        "cylinder": cylinder("b", 0.2, 0.3, at=ON, axis=AXIS), "hole": hole("b", 6.0, at=ON, axis=AXIS),
    }  # fmt: skip
    points = np.random.default_rng(3).normal(size=(200, 3))
    wanted = outside(q, points)
    for name, shape in shapes.items():

        def at(x: jax.Array, name: str = name, shape: Any = shape) -> Any:
            scene = mechanism.scene(jnp.zeros(()), jnp.asarray(q), None, p)
            made = solid_distance.solid(scene, "b", name, shape.numbers)
            (distance, direction), slope = made.at(x), jax.grad(made.away)(x)
            return distance, direction, slope

        distance, direction, slope = jax.jit(jax.vmap(at))(points)
        out = wanted[name] > 0.0
        assert np.sum(out) > 100
        np.testing.assert_allclose(distance[out], wanted[name][out], atol=1e-12)
        assert np.all(np.asarray(distance)[~out] <= 1e-12)
        np.testing.assert_allclose(slope, direction, atol=1e-9)


@pytest.mark.slow
def test_gaps(program: Contacts) -> None:
    """The smallest gap of every pair is that of finely sampled axes, which is off by ``h^2 / (2 d)``."""
    n = 1201
    h, checked = 1.4 / (n - 1), dict.fromkeys(PAIRS, 0)
    for q in poses(STATES):
        gap = np.asarray(program.run(q, np.zeros(program.system.nv))[0])
        fine = {name: curve(q, name, n) for name in BEAMS}
        away = {name: outside(q, points) for name, points in fine.items()}
        for name, (one, other) in PAIRS.items():
            found = float(np.min(gap[program.rows[name]]))
            if other:
                apart = fine[one][:, None] - fine[other][None]
                wanted = float(np.sqrt(np.min(np.sum(apart * apart, axis=2)))) - R - S
            else:
                wanted = float(np.min(away[one][name])) - R
            if not other and name != "floor" and wanted + R < 0.05:
                continue  # inside of a solid the other formulas do not hold, and kinks are near
            checked[name] += 1
            # where all of an element is about as near, a place is off by what `along.SOUND` allows
            slack = h * h / max(wanted + R, 0.05) + 3e-6 * 0.5
            assert -slack <= found - wanted <= 3e-6 * 0.5, name
    assert min(checked.values()) >= 3


@pytest.mark.slow
def test_rates_and_momenta(program: Contacts) -> None:
    """The rate of every gap is that of the points that meet; a rigid motion of everything changes no gap
    and slips nowhere: impulses of contact keep momentum and moment of momentum.
    """
    draw = np.random.default_rng(4)
    for q in poses(STATES):
        v = draw.normal(size=program.system.nv)
        ring = v[: 18 * 6].reshape(-1, 6)
        ring[17] = ring[9]  # its seam is closed
        gap, rate, second, slip, toward = (np.asarray(x) for x in program.run(q, v)[:5])
        assert all(np.all(np.isfinite(x)) for x in (rate, second, slip))
        off = np.abs(rate - toward)[(gap < FAR) & (gap > 0.0)]
        assert np.max(off) <= 1e-8 * np.max(np.abs(rate))
        still = program.run(q, whole(q, draw))
        assert np.max(np.abs(still[1])) <= 1e-11
        assert np.max(np.abs(still[3])) <= 1e-11


def rods(second: Any, n: int = 3) -> Any:
    """Two straight beams, the second from where it is given, and a body without a role."""
    return assemble(
        beam("one", (-0.9, 0.0, 0.0), (0.9, 0.0, 0.0), elements=n, section=SECTION),
        beam("two", *second, elements=n + 1, section=SECTION),
        contact("c", tube("one", R), tube("two", S), friction=0.2),
    )  # fmt: skip


DIAGONAL = ((-0.7, -0.7, 0.3), (0.7, 0.7, 0.3))


@pytest.fixture(scope="module")
def straight() -> Contacts:
    return Contacts(rods(DIAGONAL))


def placed(ends: Any, n: int = 4) -> np.ndarray:
    """Coordinates of both rods, the second turned to other ends of the same distance."""
    one = np.linspace((-0.9, 0.0, 0.0), (0.9, 0.0, 0.0), n)
    two = np.linspace(*np.asarray(ends, float), n + 1)
    drawn = np.array([0.7, 0.7, 0.0]) / np.hypot(0.7, 0.7)
    way = (two[-1] - two[0]) / np.linalg.norm(two[-1] - two[0])
    turn = Rotation.align_vectors([way], [drawn])[0].as_quat(scalar_first=True)
    rows = [np.concatenate([x, [1.0, 0, 0, 0]]) for x in one] + [np.concatenate([x, turn]) for x in two]
    return np.concatenate(rows)


@pytest.mark.slow
def test_straight_rods_in_closed_form(straight: Contacts) -> None:
    """Crossed, askew, over an end, crossing within a degree, parallel, in one line, through each other."""
    length = np.hypot(0.7, 0.7)

    def at(middle: Any, way: Any) -> tuple[np.ndarray, np.ndarray]:
        way = length * np.asarray(way, float) / np.linalg.norm(way)
        return np.asarray(middle) - way, np.asarray(middle) + way

    cases = {
        "crossed": (at((0.13, 0.0, 0.3), (0, 1, 0)), 0.3, 1),
        "askew": (at((0.1, 0.2, 0.3), (1, 2, 0)), 0.3, 1),
        "over an end": (at((0.0, 0.1 + length, 0.3), (0, 1, 0)), np.hypot(0.1, 0.3), 1),
        "almost parallel": (at((0.0, 0.0, 0.3), (1, 0.01, 0)), 0.3, 4),
        "parallel": (at((0.0, 0.0, 0.3), (1, 0, 0)), 0.3, 4),
        "in one line": (at((1.1 + length, 0.0, 0.0), (1, 0, 0)), 0.2, 1),
        "through": (at((0.1, 0.0, 0.0), (0, 1, 0)), 0.0, 1),
        "inside": (at((0.0, 0.0, 0.0), (1, 0, 0)), 0.0, 4),
        "at an end": (at((0.9, length, 0.0), (0, 1, 0)), 0.0, 1),
    }  # fmt: skip
    draw = np.random.default_rng(2)
    for name, (ends, distance, places) in cases.items():
        q = placed(ends)
        gap, *rates = (np.asarray(x) for x in straight.run(q, draw.normal(size=straight.system.nv)))
        assert all(np.all(np.isfinite(x)) for x in rates), name
        slack = 3e-6 * 0.6 if name == "almost parallel" else 1e-12
        assert abs(np.min(gap) - distance + R + S) <= slack, name
        assert np.sum(np.abs(gap - np.min(gap)) <= 1e-3) == places, name
        first = np.repeat([1.0, 0.0], [24, 30])  # the first rod moves
        row = [straight.run(q, first * np.tile(np.concatenate([e, np.zeros(3)]), 9))[1] for e in np.eye(3)]
        assert np.all(np.linalg.norm(np.asarray(row), axis=0) > 0.99), name  # a unit normal everywhere
