"""Contact problems of steps in which free bodies land, bounce, slide and come to rest, drawn at random.

As those of a run: the points of a face, an edge or a rim of one or two bodies touch the ground or each
other, so that rows depend on each other (a body has six velocities, four contacts twelve rows). What
restitution adds to normal rows alone is no motion of the bodies: rows that stick contradict each other, by
as much as the bodies still move. Nothing here comes from the package.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

PATCHES = ("face", "edge", "rim", "line", "corner", "scattered")
"""Which points of a body touch."""


@dataclasses.dataclass(frozen=True)
class Drawn:
    """Data of a problem with ``u = F + G x``: matrix (m, m), free velocity (m,), coefficients (k,)."""

    delassus: np.ndarray
    free: np.ndarray
    friction: np.ndarray

    @property
    def contacts(self) -> int:
        return len(self.friction)


def skew(r: np.ndarray) -> np.ndarray:
    """``skew(r) w = r x w``."""
    return np.array([[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]])


def patch(rng: np.random.Generator, kind: str, size: float) -> np.ndarray:
    """Points (k, 3) that lie on a plane z = 0, around the origin."""
    a, b = size * rng.uniform(0.5, 1.0, 2)
    if kind == "face":
        points = np.array([[a, b], [-a, b], [-a, -b], [a, -b]])
    elif kind == "edge":
        points = np.array([[a, 0.0], [-a, 0.0]])
    elif kind == "rim":
        turn = rng.uniform(0.0, 2.0 * np.pi)
        angle = turn + 0.5 * np.pi * np.arange(4)
        points = a * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    elif kind == "line":
        points = np.stack([a * np.linspace(-1.0, 1.0, 3), np.zeros(3)], axis=1)
    elif kind == "corner":
        points = np.array([[a, b]])
    else:
        points = size * rng.uniform(-1.0, 1.0, (rng.integers(2, 6), 2))
    return np.concatenate([points, np.zeros((len(points), 1))], axis=1)


def frame(rng: np.random.Generator, normal: np.ndarray) -> np.ndarray:
    """Rows: the normal and two tangents, turned about it at random."""
    helper = np.eye(3)[np.argmin(np.abs(normal))]
    one = np.cross(normal, helper)
    one, two = one / np.linalg.norm(one), np.cross(normal, one / np.linalg.norm(one))
    angle = rng.uniform(0.0, 2.0 * np.pi)
    return np.stack(
        [normal, np.cos(angle) * one + np.sin(angle) * two, np.cos(angle) * two - np.sin(angle) * one]
    )


def rows_of(axes: np.ndarray, arm: np.ndarray) -> np.ndarray:
    """Rows (3, 6) of the velocity of a point of a body with the velocity (linear, angular)."""
    return np.concatenate([axes, -axes @ skew(arm)], axis=1)


def drawn(seed: int, most: int = 5) -> Drawn:
    """A problem of one or two bodies with up to ``most`` contacts.

    Motion before the step has any size from that of an impact to rounding of a body at rest; every tenth of
    them has none, every tenth coefficients and restitution at the ends of their ranges.
    """
    rng = np.random.default_rng(seed)
    up = np.array([0.0, 0.0, 1.0])
    while True:
        two = rng.uniform() < 0.4
        w, size = [], 0.05
        # of body one on the ground: a face lies at half an edge below the mass centre
        low = patch(rng, str(rng.choice(PATCHES)), size) + np.array([*rng.normal(size=2) * 0.002, -size])
        tilt = 10.0 ** rng.uniform(-8.0, 0.0) * rng.normal(size=3) * (rng.uniform() < 0.8)
        low = low + np.cross(tilt, low) * (np.arange(3) == 2)
        for r in low:
            w.append(np.concatenate([rows_of(frame(rng, up), r), np.zeros((3, 6))], axis=1))
        if two:
            normal = rng.normal(size=3) * np.array([1.0, 1.0, 0.3])
            normal = normal / np.linalg.norm(normal)
            axes = frame(rng, normal)
            met = patch(rng, str(rng.choice(PATCHES)), size) @ axes[[1, 2, 0]] + size * normal
            away = met - 2.0 * size * normal + rng.normal(size=3) * 0.01
            for r, s in zip(met, away, strict=True):
                turned = frame(rng, normal)
                w.append(np.concatenate([-rows_of(turned, r), rows_of(turned, s)], axis=1))
            if rng.uniform() < 0.5:
                for r in patch(rng, str(rng.choice(PATCHES[:4])), size) - size * up:
                    w.append(np.concatenate([np.zeros((3, 6)), rows_of(frame(rng, up), r)], axis=1))
        if len(w) <= most:
            break
    stacked = np.concatenate(w)
    inertia = rng.uniform(1.0, 3.0, 2)[:, None] / 1200.0 * rng.uniform(0.7, 1.3, (2, 3))
    mass = rng.uniform(0.5, 2.0, 2)
    weights = np.concatenate(
        [np.concatenate([np.full(3, m), m * i]) for m, i in zip(mass, inertia, strict=True)]
    )
    e, mu = rng.uniform(0.0, 0.9), rng.uniform(0.0, 1.0)
    if rng.uniform() < 0.1:
        e, mu = rng.choice([0.0, 0.9]), rng.choice([0.0, 1.0])
    dt = rng.choice([1e-3, 1e-4])
    speed = 10.0 ** rng.uniform(-9.0, 0.5) * (rng.uniform() < 0.9)
    v = speed * rng.normal(size=12) * np.tile([1.0] * 3 + [20.0] * 3, 2) * rng.choice([1e-2, 1.0], 12)
    drift = -9.81 * dt * np.tile([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], 2)
    normal_row = np.tile([1.0, 0.0, 0.0], len(w))
    free = stacked @ (v + drift) + e * normal_row * (stacked @ v)
    return Drawn(delassus=stacked / weights @ stacked.T, free=free, friction=np.full(len(w), mu))


def contradicting(seed: int) -> Drawn:
    """A problem in the plane, two contacts and a last bilateral row, that may have no answer: more rows
    than velocities, free velocities that no motion has.
    """
    rng = np.random.default_rng(seed)
    motions = rng.integers(1, 4)
    w = rng.normal(size=(5, motions))
    if rng.uniform() < 0.3:  # a wedge
        w[2:4] = w[:2] * np.where(np.arange(motions) == 0, -1.0, 1.0)
    free = w @ rng.normal(size=motions) + rng.normal(size=5) * rng.choice([0.0, 0.1, 1.0])
    return Drawn(
        delassus=w @ w.T, free=free, friction=rng.uniform(0.0, 1.0, 2) * rng.choice([0.0, 1.0, 2.0])
    )


def has_answer(problem: Drawn) -> bool:
    """Whether a problem of `contradicting` has an answer: all combinations of open, sticking and sliding
    contacts are tried, by linear programming, as branches are linear there and impulses need not be unique.
    """
    from scipy.optimize import linprog

    g, f, mu, one = problem.delassus, problem.free, problem.friction, np.eye(5)

    def holds(branches: tuple[str, ...]) -> bool:
        # rows a x + b = 0, and a x + b >= 0
        zero, positive = [(g[4], f[4])], []
        for k, branch in enumerate(branches):
            n, t = 2 * k, 2 * k + 1
            if branch == "open":
                zero += [(one[n], 0.0), (one[t], 0.0)]
                positive.append((g[n], f[n]))
                continue
            zero.append((g[n], f[n]))
            positive.append((one[n], 0.0))
            if branch == "stick":
                zero.append((g[t], f[t]))
                positive += [(mu[k] * one[n] - one[t], 0.0), (mu[k] * one[n] + one[t], 0.0)]
            else:
                way = 1.0 if branch == "forth" else -1.0
                zero.append((one[t] + way * mu[k] * one[n], 0.0))
                positive.append((way * g[t], way * f[t]))
        found = linprog(
            np.zeros(5), bounds=(None, None),
            A_eq=np.array([a for a, _ in zero]), b_eq=-np.array([b for _, b in zero]),
            A_ub=-np.array([a for a, _ in positive]), b_ub=np.array([b for _, b in positive]),
        )  # fmt: skip
        return bool(found.status == 0)

    kinds = ("open", "stick", "forth", "back")
    return any(holds(branches) for branches in itertools.product(kinds, repeat=2))
