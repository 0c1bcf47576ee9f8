"""A rigid box on a rough plane, integrated from event to event, in the plane and in space.

Between impacts the corners that touch stick, which makes the motion a smooth one with constraints; it is
checked that their forces stay inside the friction cone. At an impact, without rebound, the corners that
stick and those that open are found by trying all cases. States are those of `nsjax.models.block`: position
and angle with their rates, or position and unit quaternion (scalar first) with the velocity of the centre
and the angular velocity in the axes of the body. The plane is where the last coordinate vanishes.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

G = 9.81

# Corners in the order of the model: all plus first, the last axis fastest.
SIGNS = {d: np.array(list(itertools.product([1.0, -1.0], repeat=d))) for d in (2, 3)}


def scipy_rotation(p) -> Rotation:
    """Quaternions ``wxyz`` as scipy's rotations, which count ``xyzw``."""
    return Rotation.from_quat(np.asarray(p)[..., [1, 2, 3, 0]])


def angle_between(p, q) -> np.ndarray:
    return (scipy_rotation(p).inv() * scipy_rotation(q)).magnitude()


class Impact(NamedTuple):
    time: float
    active: list[int]
    stuck: list[int]
    before: np.ndarray
    after: np.ndarray


class Reference:
    """Rigid box on a rough plane in numpy: corners that stick or are open, impacts without rebound.

    Corners have velocities ``A v`` and accelerations ``A a + b``, normal component last. While the
    corners in ``stuck`` rest, their forces follow from ``A a + b = 0`` (least squares, as corners of one
    edge depend on each other) and must stay inside the friction cone, which is checked.
    """

    def __init__(self, size, friction: float, angle: float = 0.0, mass: float = 46.8):
        self.size, self.friction, self.angle, self.m = np.asarray(size, float), friction, angle, mass
        self.d = len(self.size)
        self.x = 0.5 * SIGNS[self.d] * self.size
        square = self.size**2
        self.j = mass / 12 * (square.sum() - square if self.d == 3 else np.array([square.sum()]))
        self.mass = np.concatenate([np.full(self.d, mass), self.j])
        self.nq, self.nv = (7, 6) if self.d == 3 else (3, 3)
        self.margin = np.inf  # least relative distance of a force or impulse from the cone's surface

    def turn(self, q) -> np.ndarray:
        if self.d == 3:
            return scipy_rotation(q[3:]).as_matrix()
        c, s = np.cos(q[2]), np.sin(q[2])
        return np.array([[c, -s], [s, c]])

    def corners(self, q) -> np.ndarray:
        return q[: self.d] + self.x @ self.turn(q).T

    def gaps(self, q) -> np.ndarray:
        return self.corners(q)[:, -1]

    def rows(self, q, v) -> tuple[np.ndarray, np.ndarray]:
        """A (corners, d, nv) and b (corners, d)."""
        turn = self.turn(q)
        if self.d == 2:
            r = self.x @ turn.T
            side = np.stack([-r[:, 1], r[:, 0]], axis=1)
            a = np.concatenate([np.broadcast_to(np.eye(2), (4, 2, 2)), side[:, :, None]], axis=2)
            return a, -(v[2] ** 2) * r
        columns = [np.cross(e, self.x) @ turn.T for e in np.eye(3)]  # R (e x X)
        a = np.concatenate([np.broadcast_to(np.eye(3), (8, 3, 3)), np.stack(columns, axis=2)], axis=2)
        return a, np.cross(v[3:], np.cross(v[3:], self.x)) @ turn.T

    def force(self, v) -> np.ndarray:
        h = np.zeros(self.nv)
        h[0], h[self.d - 1] = self.m * G * np.sin(self.angle), -self.m * G * np.cos(self.angle)
        if self.d == 3:
            h[3:] = -np.cross(v[3:], self.j * v[3:])
        return h

    def acceleration(self, q, v, stuck) -> tuple[np.ndarray, np.ndarray]:
        """Acceleration and forces (stuck corners, d)."""
        a, b = self.rows(q, v)
        a, b = a[stuck].reshape(-1, self.nv), b[stuck].reshape(-1)
        free = self.force(v) / self.mass
        force = np.linalg.lstsq(a / self.mass @ a.T, -(a @ free + b), rcond=1e-10)[0]
        return free + a.T @ force / self.mass, force.reshape(-1, self.d)

    def rate(self, y, stuck) -> np.ndarray:
        q, v = y[: self.nq], y[self.nq :]
        acceleration = self.acceleration(q, v, stuck)[0]
        if self.d == 2:
            return np.concatenate([v, acceleration])
        p, w = q[3:], v[3:]
        turned = np.concatenate([[-p[1:] @ w], p[0] * w + np.cross(p[1:], w)]) / 2
        return np.concatenate([v[:3], turned, acceleration])

    def inside(self, forces) -> bool:
        tangential = np.linalg.norm(forces[:, :-1], axis=1)
        room = self.friction * forces[:, -1] - tangential
        self.margin = min(self.margin, room.min() / np.abs(forces).max())
        return bool(np.all(room >= 0))

    def impact(self, q, v, active) -> tuple[np.ndarray, list[int]]:
        """Velocity after the impact, and the corners that stay, by trying all cases open / stick."""
        a, _ = self.rows(q, v)
        found = []
        for count in range(len(active), 0, -1):
            for stuck in itertools.combinations(active, count):
                rows = a[list(stuck)].reshape(-1, self.nv)
                impulse = np.linalg.lstsq(rows / self.mass @ rows.T, -rows @ v, rcond=1e-10)[0]
                after = v + rows.T @ impulse / self.mass
                margin = self.margin
                lifts = all(a[k, -1] @ after >= -1e-9 for k in active)
                if lifts and self.inside(impulse.reshape(-1, self.d)):
                    found.append((after, list(stuck)))
                else:
                    self.margin = margin  # a case that is none does not count
        assert found, "no case of sticking and open corners fulfils the law"
        for after, _ in found:
            np.testing.assert_allclose(after, found[0][0], rtol=0, atol=1e-8)
        return found[0]

    def path(self, q, v, stuck, time: float, rows: int):
        """State at ``rows + 1`` equal times, and the impacts between."""
        times = np.linspace(0, time, rows + 1)
        y, t, impacts = np.concatenate([q, v]), 0.0, []
        out = np.empty((rows + 1, self.nq + self.nv))
        while True:
            others = [k for k in range(len(self.x)) if k not in stuck]

            def touch(t, y, others=others):
                return self.gaps(y[: self.nq])[others].min()

            touch.terminal, touch.direction = True, -1
            # A corner that has just been left rises from zero: look only after a first short stretch.
            first = solve_ivp(lambda t, y, s=stuck: self.rate(y, s), (t, min(t + 1e-3, time)), y,
                              method="DOP853", rtol=1e-12, atol=1e-13, dense_output=True)  # fmt: skip
            second = solve_ivp(lambda t, y, s=stuck: self.rate(y, s), (first.t[-1], time), first.y[:, -1],
                               method="DOP853", rtol=1e-12, atol=1e-13, dense_output=True, events=touch,
                               max_step=0.02)  # fmt: skip
            end = second.t[-1]
            for piece, low in ((first, t), (second, first.t[-1])):
                here = (times >= low) & (times <= piece.t[-1])
                if here.any():
                    out[here] = piece.sol(times[here]).T
            for state in second.y.T:
                assert self.inside(self.acceleration(state[: self.nq], state[self.nq :], stuck)[1])
            if second.status != 1:
                return times, out[:, : self.nq], out[:, self.nq :], impacts
            y, t = second.y[:, -1], end
            active = sorted({*stuck, *np.flatnonzero(np.abs(self.gaps(y[: self.nq])) < 1e-9)})
            before = y[self.nq :].copy()
            y[self.nq :], stuck = self.impact(y[: self.nq], before, active)
            impacts.append(
                Impact(t, list(map(int, active)), list(map(int, stuck)), before, y[self.nq :].copy())
            )
            if np.abs(y[self.nq :]).max() < 1e-9:  # at rest, as it will stay
                out[times > t] = y
                return times, out[:, : self.nq], out[:, self.nq :], impacts


def standing(ref: Reference, attitude) -> np.ndarray:
    """Pose with this attitude (rotation vector or angle) and the lowest corner on the plane."""
    if ref.d == 3:
        attitude = Rotation.from_rotvec(attitude).as_quat()[[3, 0, 1, 2]]
    q = np.concatenate([np.zeros(ref.d), np.atleast_1d(attitude)])
    q[ref.d - 1] -= ref.gaps(q).min()
    return q
