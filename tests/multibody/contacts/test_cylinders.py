"""Cylinders with flat ends against boxes, capsules and each other: what they share, and what rests."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, body, box, capsule, contact, cylinder
from tests.design import slow_but
from tests.multibody.contacts.contact_program import Contacts

AT, ON, AXIS, OTHER, TURNED = (
    (0.05, -0.1, 0.1), (-0.1, 0.1, 0.2), (0.6, 0.0, 0.8), (0.0, 0.28, 0.96), (0.3, -0.5, 0.8),
)  # fmt: skip
RADIUS, LENGTH, SECOND, HALF, BAR = 0.2, 0.3, (0.25, 0.15), (0.5, 0.3, 0.2), (0.08, 0.4)
"""Radius and half length of the cylinder, of the other one, half edges of the box, radius and half length
of the capsule.
"""

DRUM = cylinder("a", RADIUS, LENGTH, at=AT, axis=AXIS)


CONTACTS = {
    "box": contact("box", DRUM, box("b", *HALF, at=ON, turned=TURNED), friction=0.3),
    "drums": contact("drums", DRUM, cylinder("b", *SECOND, at=ON, axis=OTHER), friction=0.3),
    "bar": contact("bar", capsule("b", *BAR, at=ON, axis=OTHER), DRUM, friction=0.3),
}


@functools.cache
def program_of(pair: str) -> Contacts:
    bodies = [body(x, mass=1.0, inertia=(1.0, 1.0, 1.0)) for x in "ab"]
    return Contacts(assemble(*bodies, CONTACTS[pair]))


@pytest.mark.parametrize("pair", slow_but(CONTACTS, "bar"))
def test_numbers_stay_numbers(pair: str) -> None:
    """Where axes are parallel and middles meet."""
    program = program_of(pair)
    draw, still = np.random.default_rng(4), np.array([1.0, 0, 0, 0])
    turn = Rotation.align_vectors([OTHER], [AXIS])[0]
    for how in (Rotation.identity(), turn):
        for place in (np.zeros(3), np.array(ON), ON + 0.45 * np.array(OTHER), np.array(HALF)):
            q = [*(place - how.apply(AT)), *how.as_quat(scalar_first=True), *np.zeros(3), *still]
            assert all(np.all(np.isfinite(x)) for x in program.run(np.array(q), draw.normal(size=12)))


def pose(middle: Any, turn: Rotation, how: Rotation) -> np.ndarray:
    """The first body with the middle of its cylinder there, the shape of the second at the origin."""
    one = np.concatenate([np.asarray(middle) - turn.apply(AT), turn.as_quat(scalar_first=True)])
    return np.concatenate([one, -how.apply(ON), how.as_quat(scalar_first=True)])


def aligned(axis: Any, wanted: Any) -> Rotation:
    return Rotation.align_vectors([wanted], [axis])[0]


Z, X = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)
FLAT = Rotation.from_rotvec(TURNED).inv()
ON_BOX, SIDE = HALF[2], SECOND[0]
LIES: dict[str, tuple[str, Any, Any, Rotation, Any]] = {
    "stands on a box": ("box", (0.1, 0.05, ON_BOX + LENGTH), Z, FLAT, (5, (0.1, 0.05), 2.0 * RADIUS)),
    "lies on a box": ("box", (0.1, 0.05, ON_BOX + RADIUS), X, FLAT, (2, (0.1, 0.05), 2.0 * LENGTH)),
    "over a border": (
        "box", (HALF[0], 0.0, ON_BOX + RADIUS), X, FLAT, (2, (HALF[0] - 0.5 * LENGTH, 0.0), LENGTH),
    ),
    "stands over a border": (
        "box", (HALF[0], 0.0, ON_BOX + LENGTH), Z, FLAT, (3, (HALF[0] - 0.5 * RADIUS, 0.0), 2.0 * RADIUS),
    ),
    "stands on a drum": (
        "drums", (0.0, 0.0, SECOND[1] + LENGTH), Z, aligned(OTHER, Z), (4, (0.0, 0.0), 2.0 * RADIUS),
    ),
    "side by side": (
        "drums", (SIDE + RADIUS, 0.0, 0.0), Z, aligned(OTHER, Z), (2, (SIDE, 0.0), 2.0 * SECOND[1]),
    ),
    "a bar on an end": (
        "bar", (0.0, 0.0, -LENGTH - BAR[0]), Z, aligned(OTHER, X), (2, (0.0, 0.0), 2.0 * RADIUS),
    ),
    "a bar beside": (
        "bar", (RADIUS + BAR[0], 0.0, 0.0), Z, aligned(OTHER, Z), (2, (BAR[0], 0.0), 2.0 * LENGTH),
    ),
}  # fmt: skip
"""Pair, middle and axis of the cylinder, turn of the other; how many rows at least, middle and length of
what is shared.
"""


@pytest.mark.parametrize("name", slow_but(LIES, *(x for x in LIES if LIES[x][0] == "bar")))
def test_what_is_shared(name: str) -> None:
    """Rows without a gap span what two surfaces share, and push along its normal."""
    pair, middle, axis, how, (rows, centre, length) = LIES[name]
    found = program_of(pair).run(pose(middle, aligned(AXIS, axis), how), np.zeros(12))
    gap, places = np.asarray(found[0]), np.asarray(found[5])
    assert abs(np.min(gap)) <= 1e-9
    assert np.sum(np.abs(gap) <= 1e-9) >= rows
    places = places[:, np.abs(gap) <= 1e-9]
    wide = np.max(places, axis=1) - np.min(places, axis=1)
    assert np.max(wide) == pytest.approx(length, rel=0.1)
    ends = 0.5 * (np.max(places, axis=1) + np.min(places, axis=1))
    assert np.allclose(ends[:2], centre, atol=0.1 * length)


@pytest.mark.slow
def test_cylinders_at_rest() -> None:
    """One that stands, and one that lies on a box: each carries its weight, and stays."""
    parts = assemble(
        body("can", mass=2.0, inertia=(0.01, 0.01, 0.01)),
        body("roll", mass=1.0, inertia=(0.01, 0.01, 0.01)),
        contact("stand", cylinder("can", 0.05, 0.1, axis=Z), box("ground", 1.0, 1.0, 0.1), friction=0.4),
        contact("lie", cylinder("roll", 0.05, 0.1, axis=X), box("ground", 1.0, 1.0, 0.1), friction=0.4),
        gravity=9.81, start={"can": (0.3, 0.0, 0.2), "roll": (-0.3, 0.0, 0.15)},
    )  # fmt: skip
    traj = nsjax.simulate(*parts, schemes.moreau(), dt=1e-3, steps=50)
    traj.raise_for_status()
    assert np.max(np.abs(traj.v)) <= 1e-8
    loads = [np.sum(np.asarray(traj.contacts(x).force)[-1].reshape(-1, 3)[:, 0]) for x in ("stand", "lie")]
    assert np.allclose(loads, [2.0 * 9.81, 9.81], rtol=1e-6)
    # rolls along y: no slip, the spin that goes with the speed, which stays
    v = np.concatenate([np.zeros(6), [0.0, 0.5, 0.0], [-10.0, 0.0, 0.0]])
    state = dataclasses.replace(parts.state, v=v)
    run = nsjax.simulate(parts.system, parts.params, state, schemes.moreau(), dt=1e-3, steps=50)
    assert np.max(np.abs(np.asarray(run.v)[-1, 6:] - np.asarray(state.v)[6:])) <= 1e-8
