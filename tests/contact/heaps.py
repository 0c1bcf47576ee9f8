"""Contact problems of heaps: towers, rows and heaps of boxes that touch by whole faces, drawn at random.

Contacts of faces depend on each other, and a row between two walls is wedged: its contacts can push without
moving anything. Nothing here comes from the package.
"""

from __future__ import annotations

import numpy as np

from tests.contact.drawn import PATCHES, Drawn, frame, patch, rows_of

SIZE = 0.05
UP = np.array([0.0, 0.0, 1.0])


def heap(seed: int, bodies: int, most: int, walls: bool, restitution: bool) -> Drawn:
    """A problem of up to ``most`` contacts of ``bodies`` boxes, whose masses differ by up to four hundred.

    Without restitution all problems have an answer: free velocities are those of a motion, from which
    kinetic energy does not grow. With it and without walls also: all boxes may rise.
    """
    rng = np.random.default_rng(seed)
    w: list[np.ndarray] = []

    def touch(
        one: int, axes: np.ndarray, r: np.ndarray, other: int | None = None, s: np.ndarray = UP
    ) -> None:
        row = np.zeros((3, 6 * bodies))
        row[:, 6 * one : 6 * one + 6] = rows_of(axes, r)
        if other is not None:
            row[:, 6 * other : 6 * other + 6] -= rows_of(axes, s)
        w.append(row)

    def face(normal: np.ndarray) -> np.ndarray:
        return (
            patch(rng, str(rng.choice(PATCHES[:4])), SIZE) @ frame(rng, normal)[[1, 2, 0]] - SIZE * normal
        )

    shape = rng.choice(["tower", "row", "heap"])
    for body in range(bodies):
        ground = body == 0 or shape == "row" or (shape == "heap" and rng.uniform() < 0.4)
        below = body - 1 if shape == "tower" else int(rng.integers(max(body, 1)))
        tilt = 10.0 ** rng.uniform(-8.0, -1.0) * rng.normal(size=3) * (rng.uniform() < 0.7)
        normal = UP + 0.3 * rng.normal(size=3) * (rng.uniform() < 0.2)
        normal = normal / np.linalg.norm(normal)
        for r in face(normal):
            turned = r + np.cross(tilt, r)
            away = turned + 2.0 * SIZE * normal
            touch(body, frame(rng, normal), turned, None if ground else below, away)
        if shape == "row" and body > 0:
            side = np.array([1.0, 0.0, 0.0]) + 0.05 * rng.normal(size=3) * (rng.uniform() < 0.5)
            side = side / np.linalg.norm(side)
            for r in face(side):
                touch(body, frame(rng, side), r, body - 1, r + 2.0 * SIZE * side)
    if walls:
        for body, sign in ((0, 1.0), (bodies - 1, -1.0)):
            side = np.array([sign, 0.0, 0.0])
            for r in face(side):
                touch(body, frame(rng, side), r)
    del w[most:]
    stacked, k = np.concatenate(w), len(w)
    mass = 10.0 ** rng.uniform(-1.0, 1.0, bodies) * rng.uniform(0.5, 2.0, bodies)
    inertia = mass[:, None] * SIZE**2 * rng.uniform(0.3, 0.8, (bodies, 3))
    weights = np.concatenate([np.repeat(mass[:, None], 3, axis=1), inertia], axis=1).reshape(-1)
    friction = (
        rng.uniform(0.0, 1.0, k) if rng.uniform() < 0.5 else np.full(k, rng.choice([0.0, 0.3, 0.8, 1.0]))
    )
    e = rng.uniform(0.0, 0.9) * restitution
    speed = 10.0 ** rng.uniform(-9.0, 0.5) * (rng.uniform() < 0.9)
    v = speed * rng.normal(size=6 * bodies) * np.tile([1.0] * 3 + [20.0] * 3, bodies)
    drift = -9.81e-3 * np.tile([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], bodies)
    return Drawn(
        delassus=stacked / weights @ stacked.T,
        free=stacked @ (v + drift) + e * np.tile([1.0, 0.0, 0.0], k) * (stacked @ v), friction=friction,
    )  # fmt: skip
