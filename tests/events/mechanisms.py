"""The mechanisms of the test bed for the event-driven reference: plain numbers, rows by hand.

Nothing here is shared with the models of `tests.events.topologies`; `test_bed` compares the two.
"""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass
class Contacts:
    """Contacts at one state: gap rate ``N v + cn``, its rate ``N a + kn``; slip ``T v + ct``, its rate
    ``T a + kt``.

    Args:
        gap, cn, kn: (nc,).
        n: (nc, nv). t: (nc, nt, nv).
        ct, kt: (nc, nt).
    """

    gap: np.ndarray
    n: np.ndarray
    cn: np.ndarray
    kn: np.ndarray
    t: np.ndarray
    ct: np.ndarray
    kt: np.ndarray


class Mechanism:
    """Numbers ``p`` in the order of ``names``; the masses are constant and diagonal."""

    names: tuple[str, ...] = ()
    nv = 2
    nc = 2
    nt = 1
    nb = 0

    def __init__(self, p) -> None:
        for name, value in zip(self.names, p, strict=True):
            setattr(self, name, float(value))
        self.mass = self.masses()

    def masses(self) -> np.ndarray:
        """Diagonal of the mass matrix."""
        return np.ones(self.nv)

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Position and velocity."""
        raise NotImplementedError

    def force(self, t, q, v) -> np.ndarray:
        """All but contacts and joints."""
        raise NotImplementedError

    def contacts(self, t, q, v) -> Contacts:
        """Gaps and rows."""
        raise NotImplementedError

    def joints(self, q, v) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residuals (nb,), rows (nb, nv), and what is missing in their second rate (nb,)."""
        return np.zeros(0), np.zeros((0, self.nv)), np.zeros(0)

    def empty(self) -> Contacts:
        """Zeros, to be filled."""
        nc, nt, nv = self.nc, self.nt, self.nv
        return Contacts(
            gap=np.zeros(nc), n=np.zeros((nc, nv)), cn=np.zeros(nc), kn=np.zeros(nc),
            t=np.zeros((nc, nt, nv)), ct=np.zeros((nc, nt)), kt=np.zeros((nc, nt)),
        )  # fmt: skip

    def moving(self, t) -> tuple[float, float, float]:
        """Displacement of the moving support, its rate and second rate."""
        w = self.freq
        s, c = np.sin(w * t), np.cos(w * t)
        return self.amp * s, self.amp * w * c, -self.amp * w * w * s


class Point2(Mechanism):
    """Planar point over a belt and beside a moving wall, on a spring; the belt is inclined."""

    names = ("x", "z", "vx", "vz", "e", "mu", "g", "slope", "wall", "drag", "k", "belt", "amp", "freq")

    def start(self):
        return np.array([self.x, self.z]), np.array([self.vx, self.vz])

    def force(self, t, q, v):
        pull = self.g * np.sin(self.slope) - self.k * q[0] - self.drag * v[0]
        return np.array([pull, -self.g * np.cos(self.slope) - self.drag * v[1]])

    def contacts(self, t, q, v):
        y = self.empty()
        d, rate, second = self.moving(t)
        y.gap[:] = q[1], self.wall + d - q[0]
        y.n[0, 1], y.n[1, 0] = 1.0, -1.0
        y.cn[1], y.kn[1] = rate, second
        y.t[0, 0, 0] = y.t[1, 0, 1] = 1.0
        y.ct[0, 0] = -self.belt
        return y


class Point3(Mechanism):
    """Spatial point over an inclined belt and beside a moving wall."""

    names = (
        "x", "y", "z", "vx", "vy", "vz", "e", "mu", "g", "slope", "wall", "drag", "belt", "across",
        "amp", "freq",
    )  # fmt: skip
    nv, nt = 3, 2

    def start(self):
        return np.array([self.x, self.y, self.z]), np.array([self.vx, self.vy, self.vz])

    def force(self, t, q, v):
        g = self.g
        return np.array([g * np.sin(self.slope), 0.0, -g * np.cos(self.slope)]) - self.drag * v

    def contacts(self, t, q, v):
        y = self.empty()
        d, rate, second = self.moving(t)
        y.gap[:] = q[2], self.wall + d - q[0]
        y.n[0, 2], y.n[1, 0] = 1.0, -1.0
        y.cn[1], y.kn[1] = rate, second
        y.t[0, 0, 0] = y.t[0, 1, 1] = y.t[1, 0, 1] = y.t[1, 1, 2] = 1.0
        y.ct[0] = -self.belt, -self.across
        return y


class Sphere(Mechanism):
    """Sphere with spin over an inclined belt and beside a wall; its angles do not matter."""

    names = (
        "x", "y", "z", "vx", "vy", "vz", "wx", "wy", "wz", "e", "mu", "g", "slope", "wall", "radius",
        "kappa", "belt",
    )  # fmt: skip
    nv, nt = 6, 2

    def masses(self):
        return np.array([1.0] * 3 + [self.kappa * self.radius**2] * 3)

    def start(self):
        v = [self.vx, self.vy, self.vz, self.wx, self.wy, self.wz]
        return np.array([self.x, self.y, self.z, 0.0, 0.0, 0.0]), np.array(v)

    def force(self, t, q, v):
        f = np.zeros(6)
        f[0], f[2] = self.g * np.sin(self.slope), -self.g * np.cos(self.slope)
        return f

    def contacts(self, t, q, v):
        y, r = self.empty(), self.radius
        y.gap[:] = q[2] - r, self.wall - q[0] - r
        y.n[0, 2], y.n[1, 0] = 1.0, -1.0
        y.t[0, 0, 0], y.t[0, 0, 4] = 1.0, -r
        y.t[0, 1, 1], y.t[0, 1, 3] = 1.0, r
        y.t[1, 0, 1], y.t[1, 0, 5] = 1.0, r
        y.t[1, 1, 2], y.t[1, 1, 4] = 1.0, -r
        y.ct[0, 0] = -self.belt
        return y


class Box(Mechanism):
    """Planar box over an inclined belt that moves up and down; contacts at its corners."""

    names = (
        "x", "z", "theta", "vx", "vz", "omega", "e", "mu", "g", "slope", "a", "b", "kappa", "belt", "amp",
        "freq",
    )  # fmt: skip
    nv = 3
    corners: tuple[tuple[int, int], ...] = ((-1, -1), (1, -1))

    def masses(self):
        return np.array([1.0, 1.0, self.kappa * (self.a**2 + self.b**2)])

    def start(self):
        return np.array([self.x, self.z, self.theta]), np.array([self.vx, self.vz, self.omega])

    def force(self, t, q, v):
        return np.array([self.g * np.sin(self.slope), -self.g * np.cos(self.slope), 0.0])

    def contacts(self, t, q, v):
        y = self.empty()
        d, rate, second = self.moving(t)
        c, s, w2 = np.cos(q[2]), np.sin(q[2]), v[2] ** 2
        for i, (k, h) in enumerate(self.corners):
            px, pz = k * self.a * c - h * self.b * s, k * self.a * s + h * self.b * c
            y.gap[i] = q[1] + pz - d
            y.n[i] = 0.0, 1.0, px
            y.t[i, 0] = 1.0, 0.0, -pz
            y.kn[i], y.kt[i, 0] = -w2 * pz - second, -w2 * px
        y.cn[:] = -rate
        y.ct[:, 0] = -self.belt
        return y


class Box4(Box):
    """All four corners."""

    nc = 4
    corners = ((-1, -1), (1, -1), (1, 1), (-1, 1))


class Discs(Mechanism):
    """Two planar discs with spin over a belt: floor and first, floor and second, first and second."""

    names = (
        "x1", "z1", "x2", "z2", "vx1", "vz1", "vx2", "vz2", "w1", "w2", "e", "mu", "g", "r1", "r2", "m2",
        "belt",
    )  # fmt: skip
    nv, nc = 6, 3

    def masses(self):
        m = self.m2
        return np.array([1.0, 1.0, 0.5 * self.r1**2, m, m, 0.5 * m * self.r2**2])

    def start(self):
        q = [self.x1, self.z1, 0.0, self.x2, self.z2, 0.0]
        return np.array(q), np.array([self.vx1, self.vz1, self.w1, self.vx2, self.vz2, self.w2])

    def force(self, t, q, v):
        return np.array([0.0, -self.g, 0.0, 0.0, -self.g * self.m2, 0.0])

    def contacts(self, t, q, v):
        y, r1, r2 = self.empty(), self.r1, self.r2
        d, w = q[3:5] - q[:2], v[3:5] - v[:2]
        size = np.hypot(*d)
        n = d / size
        across = np.array([-n[1], n[0]])
        turn = (w @ across) / size
        y.gap[:] = q[1] - r1, q[4] - r2, size - r1 - r2
        y.n[0, 1] = y.n[1, 4] = y.t[0, 0, 0] = y.t[1, 0, 3] = 1.0
        y.t[0, 0, 2], y.t[1, 0, 5] = r1, r2
        y.n[2, 3:5], y.n[2, :2] = n, -n
        y.t[2, 0, 3:5], y.t[2, 0, :2], y.t[2, 0, 2], y.t[2, 0, 5] = across, -across, -r1, -r2
        y.kn[2], y.kt[2, 0] = size * turn**2, -(w @ n) * turn
        y.ct[:2, 0] = -self.belt
        return y


class Chain(Mechanism):
    """Planar unit masses joined by links, over a belt or beside a moving wall; free or hung at a pivot.

    Angles of the links from the downward vertical; the first of a free chain leads from the first mass to
    the second.
    """

    bodies = 2
    pinned = False

    def __init_subclass__(cls) -> None:
        links = cls.bodies if cls.pinned else cls.bodies - 1
        cls.links = links
        angles = tuple(f"phi{i}" for i in range(links)) + tuple(f"w{i}" for i in range(links))
        head = () if cls.pinned else ("x", "z", "vx", "vz")
        cls.names = (*head, *angles, "e", "mu", "g", "drag", "length", "wall", "belt", "amp", "freq")
        cls.nv, cls.nc, cls.nb = 2 * cls.bodies, cls.bodies, links

    def start(self):
        q, v = [], []
        if self.pinned:
            r, u = np.zeros(2), np.zeros(2)
        else:
            r, u = np.array([self.x, self.z]), np.array([self.vx, self.vz])
            q, v = [r], [u]
        for i in range(self.links):
            phi, w = getattr(self, f"phi{i}"), getattr(self, f"w{i}")
            along = np.array([np.sin(phi), -np.cos(phi)])
            r = r + self.length * along
            u = u + self.length * w * np.array([np.cos(phi), np.sin(phi)])
            q.append(r)
            v.append(u)
        return np.concatenate(q), np.concatenate(v)

    def force(self, t, q, v):
        f = -self.drag * v
        f[1::2] -= self.g
        return f

    def joints(self, q, v):
        rows, second = np.zeros((self.nb, self.nv)), np.zeros(self.nb)
        residual, length = np.zeros(self.nb), self.length
        for i in range(self.nb):
            far = i if self.pinned else i + 1
            d, w = q[2 * far : 2 * far + 2], v[2 * far : 2 * far + 2]
            if far:
                near = slice(2 * far - 2, 2 * far)
                d, w = d - q[near], w - v[near]
                rows[i, near] = -d / length
            rows[i, 2 * far : 2 * far + 2] = d / length
            residual[i] = (d @ d - length**2) / (2 * length)
            second[i] = w @ w / length
        return residual, rows, second

    def contacts(self, t, q, v):
        y = self.empty()
        d, rate, second = self.moving(t)
        k = np.arange(self.bodies)
        if self.pinned:
            y.gap[:] = self.wall + d - q[0::2]
            y.n[k, 2 * k], y.t[k, 0, 2 * k + 1] = -1.0, 1.0
            y.cn[:], y.kn[:] = rate, second
        else:
            y.gap[:] = q[1::2] - d
            y.n[k, 2 * k + 1], y.t[k, 0, 2 * k] = 1.0, 1.0
            y.cn[:], y.kn[:] = -rate, -second
        y.ct[:, 0] = -self.belt
        return y


class Rod(Chain):
    """Two free masses."""


class Chain3(Chain):
    """Three free masses."""

    bodies = 3


class Pendulum2(Chain):
    """Two masses hung beside a wall."""

    bodies, pinned = 2, True


class Pendulum4(Chain):
    """Four masses hung beside a wall."""

    bodies, pinned = 4, True


ALL: dict[str, type[Mechanism]] = {
    "point2": Point2, "point3": Point3, "sphere": Sphere, "box2": Box, "box4": Box4, "discs": Discs,
    "rod": Rod, "chain3": Chain3, "pendulum2": Pendulum2, "pendulum4": Pendulum4,
}  # fmt: skip
