"""Gaps of all pairs of convex solids: the smallest is their distance, its rate is that of the points that
meet, and motions of both as one body change nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

from nsjax.multibody import assemble, body, box, capsule, contact, cylinder, hull, sphere
from tests.multibody.contacts.contact_program import Contacts
from tests.multibody.contacts.convex_solids import Solid, distance

CLOUD = np.random.default_rng(3).normal(size=(40, 3)) * (0.3, 0.2, 0.1)
ROCK = np.random.default_rng(8).normal(size=(25, 3)) * (0.2, 0.2, 0.25)
AT = {2: (0.05, -0.1), 3: (0.05, -0.1, 0.1)}
AXIS = {2: np.array([0.6, 0.8]), 3: np.array([0.6, 0.0, 0.8])}
TURNED = {2: 0.4, 3: (0.3, -0.5, 0.8)}
HALF = (0.3, 0.2, 0.15)


def made(kind: str, name: str, d: int) -> tuple[Any, Solid]:
    """A shape of a body, and the same in numpy."""
    at, axis, half = np.array(AT[d]), AXIS[d], np.array(HALF[:d])
    ends = at + 0.25 * np.array([[-1.0], [1.0]]) * axis
    turn = (
        Rotation.from_rotvec(TURNED[3]).as_matrix()
        if d == 3
        else Rotation.from_rotvec((0.0, 0.0, TURNED[2])).as_matrix()[:2, :2]
    )
    corners = np.stack(np.meshgrid(*[(-1.0, 1.0)] * d), axis=-1).reshape(-1, d) * half
    points = CLOUD if name == "b" else ROCK
    return {
        "sphere": lambda: (sphere(name, 0.15, at=at), Solid(at[None], ball=0.15)),
        "capsule": lambda: (capsule(name, 0.08, 0.25, at=at, axis=axis), Solid(ends, ball=0.08)),
        "box": lambda: (box(name, *half, at=at, turned=TURNED[d]), Solid(at + corners @ turn.T)),
        "cylinder": lambda: (
            cylinder(name, 0.2, 0.25, at=at, axis=axis), Solid(ends, disc=0.2, axis=axis),
        ),
        "hull": lambda: (hull(name, points), Solid(points)),
    }[kind]()  # fmt: skip


GROUPS = {
    "round": (3, 1e-8, [("sphere", x) for x in ("sphere", "capsule", "box", "cylinder", "hull")]),
    "capsules": (3, 1e-8, [("capsule", "capsule"), ("capsule", "box"), ("capsule", "hull")]),
    "drums": (3, 1e-6, [("cylinder", "box"), ("cylinder", "cylinder"), ("capsule", "cylinder")]),
    "hulls": (3, 1e-6, [("hull", "hull"), ("box", "hull"), ("cylinder", "hull")]),
    "flat": (2, 1e-8, [("sphere", "capsule"), ("sphere", "box"), ("capsule", "box")]),
}
"""Dimension, what gaps may be off by where an iteration ends, and pairs."""

FIRST_ROWS = "capsule_hull", "box_hull", "hull_hull"
NEAR = 1e-4
"""Boxes are looked at so near: features that they hold are those of a contact."""


def problem(d: int, pairs: Any) -> Any:
    inertia: Any = 1.0 if d == 2 else (1.0, 1.0, 1.0)
    both = [contact("_".join(x), *(made(k, n, d)[0] for k, n in zip(x, "ab", strict=True)), friction=0.3)
            for x in pairs]  # fmt: skip
    return assemble(*(body(x, mass=1.0, inertia=inertia) for x in "ab"), *both, coordinates="absolute")


def drawn(rng: np.random.Generator, d: int) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Coordinates of both bodies, and their places and turns."""
    poses, rows = [], []
    for _ in "ab":
        place, turn = rng.normal(size=d), Rotation.random(random_state=rng)
        if d == 2:
            angle = rng.uniform(-3.0, 3.0)
            turn = Rotation.from_rotvec((0.0, 0.0, angle))
        rows.append([*place, *([angle] if d == 2 else turn.as_quat(scalar_first=True))])
        poses.append((place, turn.as_matrix()[:d, :d]))
    return np.array(rows), poses


def whole(rng: np.random.Generator, poses: Any, d: int) -> np.ndarray:
    """Velocities of one rigid motion of both bodies."""
    speed, spin = rng.normal(size=d), rng.normal(size=3) * ((0.0, 0.0, 1.0) if d == 2 else 1.0)
    found: list[float] = []
    for place, turn in poses:
        found += [*(speed + np.cross(spin, [*place, *[0.0] * (3 - d)])[:d])]
        found += [*(spin @ turn)] if d == 3 else [spin[2]]
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
def test_gaps_rates_and_momenta(name: str) -> None:
    d, slack, pairs = GROUPS[name]
    program, rng = Contacts(problem(d, pairs)), np.random.default_rng(4)
    solids = {"_".join(x): [made(k, n, d)[1] for k, n in zip(x, "ab", strict=True)] for x in pairs}
    compared = dict.fromkeys(solids, 0)
    for _ in range(10):
        q, poses = drawn(rng, d)
        v = rng.normal(size=program.system.nv)
        gap, rate, second, slip, toward, _ = (np.asarray(x) for x in program.run(q.reshape(-1), v))
        assert all(np.all(np.isfinite(x)) for x in (gap, rate, second, slip))
        for pair, both in solids.items():
            own = np.flatnonzero(program.rows[pair])
            # of hulls the first row is that of the nearest points, others are of the face that it is on
            least = own[0] if pair in FIRST_ROWS else own[np.argmin(gap[own])]
            wanted = distance(*both, poses)
            if wanted < 0.01:
                continue
            compared[pair] += 1
            assert abs(gap[least] - wanted) <= slack, pair
            assert abs(rate[least] - toward[least]) <= 10.0 * slack * np.linalg.norm(v), pair
        still = program.run(q.reshape(-1), whole(rng, poses, d))
        assert np.max(np.abs(still[1])) <= 1e-11
        # elsewhere a slip is that of two points that are apart
        assert name != "drums" or np.max(np.abs(still[3])) <= 1e-11
    assert min(compared.values()) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
def test_boxes_that_almost_touch(d: int) -> None:
    """Moved along a line until they do: gap and rate as above, to what corners beside edges add."""
    program, rng = Contacts(problem(d, [("box", "box")])), np.random.default_rng(d)
    one, other = (made("box", x, d)[1] for x in "ab")
    for _ in range(8):
        q, poses = drawn(rng, d)
        way = rng.normal(size=d)
        way /= np.linalg.norm(way)

        def at(s: float, poses: Any = poses, way: Any = way) -> Any:
            return [(poses[1][0] + s * way, poses[0][1]), poses[1]]

        s = brentq(lambda s: distance(one, other, at(s)) - NEAR, 0.3 * NEAR, 3.0, xtol=1e-9)
        q[0, :d] = at(s)[0][0]
        v = rng.normal(size=program.system.nv)
        gap, rate, _, _, toward, _ = (np.asarray(x) for x in program.run(q.reshape(-1), v))
        k = int(np.argmin(gap))
        assert abs(gap[k] - NEAR) <= NEAR**1.5
        touch = gap <= 2.0 * NEAR
        # normals of edges turn with the boxes, which counts by the gap
        assert np.max(np.abs(rate - toward)[touch]) <= 10.0 * NEAR
