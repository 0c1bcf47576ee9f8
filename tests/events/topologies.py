"""The mechanisms of the test bed as models: every number is data, one `System` each."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp

from nsjax import ContactLaw, State, System
from tests.events import mechanisms


def _law(p):
    return ContactLaw(restitution=p["e"], friction=p["mu"])


def _moved(t, p):
    return p["amp"] * jnp.sin(p["freq"] * t)


def _point_mass(q, p):
    return jnp.eye(len(q))


def _point_force(t, q, v, p):
    pull = p["g"] * jnp.sin(p["slope"])
    spring = p["k"] * q[0] if "k" in p else 0.0
    f = jnp.zeros(len(q)).at[0].add(pull - spring).at[-1].add(-p["g"] * jnp.cos(p["slope"]))
    return f - p["drag"] * v


def _point_gap(t, q, p):
    return jnp.stack([q[-1], p["wall"] + _moved(t, p) - q[0]])


def _slip2(t, q, v, p):
    return jnp.stack([v[0] - p["belt"], v[1]])[:, None]


def _slip3(t, q, v, p):
    return jnp.stack([jnp.stack([v[0] - p["belt"], v[1] - p["across"]]), v[1:3]])


def _sphere_mass(q, p):
    spin = p["kappa"] * p["radius"] ** 2
    return jnp.diag(jnp.concatenate([jnp.ones(3), jnp.full(3, spin)]))


def _sphere_force(t, q, v, p):
    g, a = p["g"], p["slope"]
    return jnp.zeros(6).at[0].set(g * jnp.sin(a)).at[2].set(-g * jnp.cos(a))


def _sphere_gap(t, q, p):
    return jnp.stack([q[2] - p["radius"], p["wall"] - q[0] - p["radius"]])


def _sphere_slip(t, q, v, p):
    down, side = jnp.array([0.0, 0.0, -1.0]), jnp.array([1.0, 0.0, 0.0])
    low = v[:3] + p["radius"] * jnp.cross(v[3:], down)
    near = v[:3] + p["radius"] * jnp.cross(v[3:], side)
    return jnp.stack([low[:2] - jnp.stack([p["belt"], 0.0 * p["belt"]]), near[1:]])


def _box_mass(q, p):
    return jnp.diag(jnp.stack([1.0, 1.0, p["kappa"] * (p["a"] ** 2 + p["b"] ** 2)]))


def _box_force(t, q, v, p):
    g, a = p["g"], p["slope"]
    return jnp.stack([g * jnp.sin(a), -g * jnp.cos(a), 0.0 * g])


@dataclasses.dataclass(frozen=True)
class _Corners:
    """Corners of a box by the signs of their coordinates."""

    signs: tuple[tuple[int, int], ...]

    def _arms(self, q, p):
        s = jnp.array(self.signs, float) * jnp.stack([p["a"], p["b"]])
        c, d = jnp.cos(q[2]), jnp.sin(q[2])
        return c * s[:, 0] - d * s[:, 1], d * s[:, 0] + c * s[:, 1]

    def gap(self, t, q, p):
        """Heights."""
        return q[1] + self._arms(q, p)[1] - _moved(t, p)

    def slip(self, t, q, v, p):
        """Along the belt."""
        return (v[0] - v[2] * self._arms(q, p)[1] - p["belt"])[:, None]


def _discs_mass(q, p):
    m, r1, r2 = p["m2"], p["r1"], p["r2"]
    return jnp.diag(jnp.stack([1.0, 1.0, 0.5 * r1**2, m, m, 0.5 * m * r2**2]))


def _discs_force(t, q, v, p):
    return jnp.zeros(6).at[1].set(-p["g"]).at[4].set(-p["g"] * p["m2"])


def _discs_gap(t, q, p):
    apart = jnp.sqrt(jnp.sum((q[3:5] - q[:2]) ** 2))
    return jnp.stack([q[1] - p["r1"], q[4] - p["r2"], apart - p["r1"] - p["r2"]])


def _discs_slip(t, q, v, p):
    d = q[3:5] - q[:2]
    n = d / jnp.sqrt(jnp.sum(d**2))
    w = v[3:5] - v[:2]
    between = n[0] * w[1] - n[1] * w[0] - v[2] * p["r1"] - v[5] * p["r2"]
    floor = v[0] + v[2] * p["r1"] - p["belt"], v[3] + v[5] * p["r2"] - p["belt"]
    return jnp.stack([*floor, between])[:, None]


@dataclasses.dataclass(frozen=True)
class _Chain:
    """Links of equal length between planar masses, free or hung at the origin."""

    bodies: int
    pinned: bool

    @property
    def links(self) -> int:
        """Number of links."""
        return self.bodies if self.pinned else self.bodies - 1

    def force(self, t, q, v, p):
        """Weight and drag."""
        return jnp.tile(jnp.stack([0.0 * p["g"], -p["g"]]), self.bodies) - p["drag"] * v

    def constraint(self, t, q, p):
        """Lengths of the links, squared."""
        r = q.reshape(-1, 2)
        d = jnp.diff(jnp.concatenate([jnp.zeros((1, 2)), r]) if self.pinned else r, axis=0)
        return 0.5 * (jnp.sum(d**2, axis=1) - p["length"] ** 2) / p["length"]

    def gap(self, t, q, p):
        """Wall of a hung chain, floor of a free one."""
        return p["wall"] + _moved(t, p) - q[0::2] if self.pinned else q[1::2] - _moved(t, p)

    def slip(self, t, q, v, p):
        """Along it."""
        return ((v[1::2] if self.pinned else v[0::2]) - p["belt"])[:, None]

    def start(self, p):
        """Position and velocity."""
        phi = jnp.stack([p[f"phi{i}"] for i in range(self.links)])
        w = jnp.stack([p[f"w{i}"] for i in range(self.links)])
        d = p["length"] * jnp.stack([jnp.sin(phi), -jnp.cos(phi)], axis=1)
        u = p["length"] * w[:, None] * jnp.stack([jnp.cos(phi), jnp.sin(phi)], axis=1)
        r, v = jnp.cumsum(d, axis=0), jnp.cumsum(u, axis=0)
        if not self.pinned:
            head, speed = jnp.stack([p["x"], p["z"]]), jnp.stack([p["vx"], p["vz"]])
            r = jnp.concatenate([head[None], head + r])
            v = jnp.concatenate([speed[None], speed + v])
        return r.reshape(-1), v.reshape(-1)


@dataclasses.dataclass(frozen=True)
class Start:
    """Names of the entries of position and velocity among the numbers; empty for zero."""

    q: tuple[str, ...]
    v: tuple[str, ...]

    def __call__(self, p):
        zero = jnp.zeros(())
        return tuple(jnp.stack([p[n] if n else zero for n in names]) for names in (self.q, self.v))


def _planar(force, gap, slip, mass, nv, nc, nt=1):
    return System(nq=nv, nv=nv, nc=nc, nt=nt, mass=mass, force=force, gap=gap, slip=slip, law=_law)


def _box(corners):
    c = _Corners(corners)
    return _planar(_box_force, c.gap, c.slip, _box_mass, 3, len(corners)), Start(
        ("x", "z", "theta"), ("vx", "vz", "omega")
    )


def _chain(bodies, pinned):
    c = _Chain(bodies, pinned)
    system = System(
        nq=2 * bodies, nv=2 * bodies, nc=bodies, nt=1, nb=c.links, mass=_point_mass, force=c.force,
        gap=c.gap, slip=c.slip, constraint=c.constraint, law=_law,
    )  # fmt: skip
    return system, c.start


_XZ = Start(("x", "z"), ("vx", "vz"))
_XYZ = Start(("x", "y", "z"), ("vx", "vy", "vz"))
_SPIN = Start(("x", "y", "z", "", "", ""), ("vx", "vy", "vz", "wx", "wy", "wz"))
_TWO = Start(("x1", "z1", "", "x2", "z2", ""), ("vx1", "vz1", "w1", "vx2", "vz2", "w2"))

MODELS = {
    "point2": (_planar(_point_force, _point_gap, _slip2, _point_mass, 2, 2), _XZ),
    "point3": (_planar(_point_force, _point_gap, _slip3, _point_mass, 3, 2, 2), _XYZ),
    "sphere": (_planar(_sphere_force, _sphere_gap, _sphere_slip, _sphere_mass, 6, 2, 2), _SPIN),
    "box2": _box(mechanisms.Box.corners), "box4": _box(mechanisms.Box4.corners),
    "discs": (_planar(_discs_force, _discs_gap, _discs_slip, _discs_mass, 6, 3), _TWO),
    "rod": _chain(2, False), "chain3": _chain(3, False), "pendulum2": _chain(2, True),
    "pendulum4": _chain(4, True),
}  # fmt: skip
"""System and start by the name of a mechanism."""


def build(name: str, p) -> tuple[dict, State]:
    """Parameters and start out of the numbers of `mechanisms.ALL`."""
    numbers = dict(zip(mechanisms.ALL[name].names, p, strict=True))
    q, v = MODELS[name][1](numbers)
    return numbers, State(t=0.0, q=q, v=v)
