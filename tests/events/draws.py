"""Random motions of the test bed: all numbers of a mechanism, its end, and what is differentiated."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from tests.events import mechanisms

SEED = 20240611

COUNTS = {
    "point2": 60, "point3": 50, "sphere": 40, "box2": 40, "box4": 20, "discs": 20, "rod": 25, "chain3": 15,
    "pendulum2": 20, "pendulum4": 10,
}  # fmt: skip
"""Motions per mechanism: 300."""

COLUMNS = {
    "point2": ("z", "vx", "vz", "e", "mu", "g", "slope", "belt"),
    "point3": ("z", "vx", "vy", "vz", "e", "mu", "g", "slope"),
    "sphere": ("z", "vx", "vy", "wy", "wz", "e", "mu", "g"),
    "box2": ("z", "theta", "vx", "omega", "e", "mu", "g", "slope"),
    "box4": ("z", "theta", "vx", "omega", "e", "mu", "g", "slope"),
    "discs": ("x2", "z2", "vx1", "w1", "e", "mu", "g", "m2"),
    "rod": ("z", "vx", "phi0", "w0", "e", "mu", "g", "length"),
    "chain3": ("z", "vx", "phi0", "w1", "e", "mu", "g", "length"),
    "pendulum2": ("phi0", "phi1", "w0", "e", "mu", "g", "wall", "length"),
    "pendulum4": ("phi0", "phi3", "w0", "e", "mu", "g", "wall", "length"),
}
"""Numbers to which the end is differentiated, beside the end time itself."""


@dataclasses.dataclass(frozen=True)
class Motion:
    """One motion.

    Args:
        name: mechanism. index: of the draw within it. kind: "generic", "jammed" or what is special.
        p: numbers of the mechanism. end: duration [s].
        fixed: columns to which it has no derivative by its start: contacts that begin closed, bounds.
    """

    name: str
    index: int
    kind: str
    p: tuple[float, ...]
    end: float
    fixed: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """For instance ``box2/17``."""
        return f"{self.name}/{'j' if self.kind == 'jammed' else ''}{self.index}"

    def number(self, name: str) -> float:
        """A number by its name."""
        return self.p[mechanisms.ALL[self.name].names.index(name)]


class _Draw:
    """Numbers of one draw."""

    def __init__(self, name: str, index: int, group: int = 0) -> None:
        self.rng = np.random.default_rng([SEED, list(mechanisms.ALL).index(name), group, index])
        self.numbers = dict.fromkeys(mechanisms.ALL[name].names, 0.0)
        self.fixed: list[str] = []
        self.end = self.uniform(0.3, 1.1)
        self.kind = "generic"
        u = self.rng.random(2)
        e = 0.0 if u[0] < 0.15 else 1.0 if u[0] > 0.93 else self.uniform(0.05, 0.98)
        mu = 0.0 if u[1] < 0.15 else self.uniform(0.05, 1.2)
        self.set(e=e, mu=mu, g=9.81 * self.uniform(0.7, 1.3), freq=self.uniform(2.0, 15.0))

    def uniform(self, low: float, high: float) -> float:
        """Between two bounds."""
        return float(self.rng.uniform(low, high))

    def maybe(self, chance: float, low: float, high: float) -> float:
        """Zero, or with a chance between two bounds."""
        value = self.uniform(low, high)
        return value if self.rng.random() < chance else 0.0

    def set(self, **numbers: float) -> None:
        """Sets those that the mechanism has."""
        self.numbers.update({k: v for k, v in numbers.items() if k in self.numbers})

    def on_floor(self, *fixed: str) -> None:
        """The motion begins in contact."""
        self.fixed += fixed
        self.set(amp=0.0)


def _point(d: _Draw, index: int) -> None:
    d.set(
        x=d.uniform(-0.2, 0.2), z=d.uniform(0.05, 0.7), vx=d.uniform(-3.0, 3.0), vy=d.uniform(-2.0, 2.0),
        vz=d.uniform(-1.0, 1.0), slope=d.maybe(0.6, -0.6, 0.6), wall=d.uniform(0.4, 1.3),
        drag=d.maybe(0.4, 0.1, 1.0), k=d.maybe(0.4, 5.0, 100.0), belt=d.maybe(0.4, -1.0, 1.0),
        across=d.maybe(0.4, -1.0, 1.0), amp=d.maybe(0.4, 0.005, 0.05), y=d.uniform(-0.2, 0.2),
    )  # fmt: skip
    if index % 3 == 0:
        d.set(z=0.0, vz=0.0)
        d.on_floor("z", "vz")
    special = {4: "straight", 9: "reversal", 14: "rest", 19: "push", 24: "corner"}.get(index % 25)
    if special:
        d.kind = special
    if special in ("straight", "reversal"):
        d.set(vy=0.0, across=0.0)
    if special in ("reversal", "rest", "push"):
        d.set(z=0.0, vz=0.0, vy=0.0, across=0.0, belt=0.0, k=0.0, wall=5.0)
        d.on_floor("z", "vz")
    if special == "reversal":
        d.set(vx=-d.uniform(1.0, 2.0), slope=d.uniform(0.4, 0.6), mu=d.uniform(0.05, 0.3))
    if special == "rest":  # below the angle of friction: nothing moves
        d.set(vx=0.0, slope=0.2, mu=0.6)
    if special == "push":  # at rest, and slides off at once
        d.set(vx=0.0, slope=0.5, mu=0.2)
        d.fixed += ["vx", "vy", "belt"]
    if special == "corner":  # floor and wall at one time
        d.set(vx=2.0, x=0.0, drag=0.0, k=0.0, slope=0.0, amp=0.0, vz=0.0)
        d.set(wall=2.0 * math.sqrt(2.0 * d.numbers["z"] / d.numbers["g"]))


def _sphere(d: _Draw, index: int) -> None:
    r = d.uniform(0.05, 0.15)
    d.set(
        radius=r, kappa=d.uniform(0.2, 0.6), z=r + d.uniform(0.05, 0.6), vx=d.uniform(-2.0, 3.0),
        vy=d.uniform(-1.0, 1.0), vz=d.uniform(-1.0, 1.0), wx=d.uniform(-20.0, 20.0),
        wy=d.uniform(-20.0, 20.0), wz=d.uniform(-20.0, 20.0),
        slope=d.maybe(0.5, -0.4, 0.4), wall=d.uniform(0.4, 1.0),
        belt=d.maybe(0.3, -1.0, 1.0),
    )  # fmt: skip
    if index % 3 == 0:
        d.set(z=r, vz=0.0)
        d.on_floor("z")
    if index % 10 == 4:
        d.kind = "straight"
        d.set(vy=0.0, wx=0.0, wz=0.0)
    if index % 20 == 9:
        d.kind = "rolls"
        d.set(z=r, vz=0.0, vx=1.0, vy=0.0, wx=0.0, wy=1.0 / r, belt=0.0, slope=0.2, mu=0.8, wall=2.0)
        d.on_floor("z")


def _box(d: _Draw, index: int) -> None:
    a, b = d.uniform(0.08, 0.2), d.uniform(0.08, 0.2)
    d.set(
        a=a, b=b, kappa=1.0 / 3.0, theta=d.uniform(-0.6, 0.6), vx=d.uniform(-1.5, 1.5),
        vz=d.uniform(-1.0, 0.5), omega=d.uniform(-3.0, 3.0), slope=d.maybe(0.4, -0.4, 0.4),
        belt=d.maybe(0.3, -1.0, 1.0), amp=d.maybe(0.3, 0.002, 0.02),
    )  # fmt: skip
    c, s = math.cos(d.numbers["theta"]), abs(math.sin(d.numbers["theta"]))
    d.set(z=b * c + a * s + d.uniform(0.03, 0.3))
    start = {3: "flat drop", 6: "flat slide", 9: "flat rest", 12: "tipping"}.get(index % 14)
    if start:
        d.kind = start
        d.set(theta=0.0, omega=0.0)
    if start in ("flat slide", "flat rest", "tipping"):
        d.set(z=b, vz=0.0)
        d.on_floor("z", "theta", "omega")
    if start == "flat rest":
        d.set(vx=0.0, belt=0.0, slope=0.1, mu=0.6)
    if start == "tipping":  # friction of the belt turns the tall box over
        d.set(a=0.06, b=0.2, z=0.2, vx=3.0, mu=1.0, belt=0.0, slope=0.0, e=0.0)
    if index % 14 == 1:
        d.kind = "rocking"
        d.set(e=0.0, mu=d.maybe(0.7, 0.6, 1.2), vx=0.0, vz=0.0, omega=0.0, belt=0.0, slope=0.0, amp=0.0)
        d.set(z=b * c + a * s + 1e-3)
    d.end = min(d.end, 0.7)


def _discs(d: _Draw, index: int) -> None:
    r1, r2 = d.uniform(0.06, 0.15), d.uniform(0.06, 0.15)
    d.set(
        r1=r1, r2=r2, m2=d.uniform(0.3, 3.0), x1=0.0, z1=r1 + d.uniform(0.02, 0.4), x2=d.uniform(0.3, 0.6),
        z2=r2 + d.uniform(0.02, 0.4), vx1=d.uniform(0.0, 2.0), vz1=d.uniform(-1.0, 1.0),
        vx2=d.uniform(-2.0, 0.5), vz2=d.uniform(-1.0, 1.0), w1=d.uniform(-10.0, 10.0),
        w2=d.uniform(-10.0, 10.0), belt=d.maybe(0.3, -1.0, 1.0),
    )  # fmt: skip
    if index % 3 == 1:
        d.set(z1=r1, vz1=0.0, z2=r2, vz2=0.0)
        d.on_floor("z2")
    if index % 10 == 4:
        d.kind = "stack"
        d.set(x2=0.0, z1=0.3, z2=0.7, vx1=0.0, vx2=0.0, vz1=0.0, vz2=0.0, w1=0.0, w2=0.0, belt=0.0)
    if index % 10 == 9:
        d.kind = "touching"
        d.set(z1=r1, z2=r2, vz1=0.0, vz2=0.0, vx2=0.0, w2=0.0, belt=0.0, w1=0.0)
        d.set(x2=2.0 * math.sqrt(r1 * r2))
        d.on_floor("z2", "x2")
    d.end = min(d.end, 0.8)


def _free_chain(d: _Draw, index: int) -> None:
    links = 1 + ("phi1" in d.numbers)
    d.set(
        x=0.0, z=0.0, vx=d.uniform(-1.0, 1.0), vz=d.uniform(-1.0, 0.5), drag=d.maybe(0.3, 0.1, 0.5),
        length=d.uniform(0.2, 0.4), belt=d.maybe(0.3, -1.0, 1.0), amp=d.maybe(0.3, 0.002, 0.02),
    )  # fmt: skip
    for i in range(links):
        d.set(**{f"phi{i}": 1.57 + d.uniform(-0.9, 0.9), f"w{i}": d.uniform(-5.0, 5.0)})
    heights = np.cumsum([0.0] + [-math.cos(d.numbers[f"phi{i}"]) for i in range(links)])
    d.set(z=d.uniform(0.05, 0.3) - d.numbers["length"] * float(min(heights)))
    if index % 10 == 4:
        d.kind = "flat drop"
        d.set(z=0.2, **{f"phi{i}": math.pi / 2 for i in range(links)})
        d.set(**{f"w{i}": 0.0 for i in range(links)})
    d.end = min(d.end, 0.6)


def _hung_chain(d: _Draw, index: int) -> None:
    links = sum(n.startswith("phi") for n in d.numbers)
    length = d.uniform(0.2, 0.35)
    d.set(
        wall=d.uniform(0.02, 0.15), drag=d.maybe(0.3, 0.1, 0.5), length=length,
        amp=d.maybe(0.3, 0.002, 0.02), belt=d.maybe(0.2, -0.5, 0.5),
    )  # fmt: skip
    first = d.uniform(-1.2, -0.3)
    for i in range(links):
        d.set(**{f"phi{i}": first + d.uniform(-0.2, 0.2), f"w{i}": d.uniform(-1.0, 1.0)})
    if index % 10 == 4:
        d.kind = "straight"
        d.set(**{f"phi{i}": first for i in range(links)}, **{f"w{i}": 0.0 for i in range(links)})
    d.end = min(d.end, 0.8)


_MAKERS = {
    "point2": _point, "point3": _point, "sphere": _sphere, "box2": _box, "box4": _box, "discs": _discs,
    "rod": _free_chain, "chain3": _free_chain, "pendulum2": _hung_chain, "pendulum4": _hung_chain,
}  # fmt: skip


def _finish(d: _Draw, name: str, index: int) -> Motion:
    n = d.numbers
    if n["e"] == 0.0:
        d.fixed.append("e")  # a bound: below it no law
    if n["mu"] == 0.0:
        d.fixed.append("mu")
    fixed = tuple(c for c in COLUMNS[name] if c in d.fixed)
    return Motion(name, index, d.kind, tuple(n.values()), d.end, fixed)


def draw(name: str, index: int) -> Motion:
    """Motion ``index`` of a mechanism."""
    d = _Draw(name, index)
    _MAKERS[name](d, index)
    return _finish(d, name, index)


def jam(name: str, index: int) -> Motion:
    """A body of little inertia that slides on its leading corner with much friction."""
    d = _Draw(name, index, 1)
    _MAKERS[name](d, 0)
    d.kind = "jammed"
    a, b, theta = 0.1, 0.15, d.uniform(0.1, 0.5)
    d.set(a=a, b=b, theta=theta, z=a * math.sin(theta) + b * math.cos(theta), omega=0.0, vz=0.0, belt=0.0)
    d.set(kappa=d.uniform(0.02, 0.1), mu=d.uniform(2.0, 6.0), vx=-d.uniform(1.0, 4.0))
    d.on_floor("z", "theta", "omega")
    return _finish(d, name, index)


def everything(names: tuple[str, ...] | None = None) -> list[Motion]:
    """All motions, mechanisms in turn, so that the first ones are a sample of all."""
    rows = [[draw(n, k) for k in range(c)] for n, c in COUNTS.items() if names is None or n in names]
    found = [(k / len(row), m) for row in rows for k, m in enumerate(row)]
    return [m for _, m in sorted(found, key=lambda x: x[0])]
