"""A carriage with dry friction, limits, contacts, a constraint, a motor and brakes, and draws of it.

A carriage (``x``) in a guide with dry friction carries a hammer (``y``) that strikes a floor on which it
slides, and drives a counterweight (``z = ratio x``, a constraint) by a gear. A motor that stalls holds the
hammer back; a stop limits the travel of the carriage.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import ContactLaw, State, System

NAMES = (
    "mass", "hammer", "counter", "gear", "stiffness", "damping", "push", "omega", "gravity", "dry", "stall",
    "wanted", "stop", "friction", "restitution", "restitution_tangential",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Carriage:
    """Functions of the system, with ``nt`` tangents."""

    nt: int

    def mass(self, q, p):
        return jnp.diag(jnp.stack([p["mass"], p["hammer"], p["counter"]]))

    def force(self, t, q, v, p):
        drive = p["push"] * jnp.sin(p["omega"] * t) - p["stiffness"] * q[0] - p["damping"] * v[0]
        return jnp.stack([drive, -p["hammer"] * p["gravity"], -0.3 * p["damping"] * v[2] * jnp.abs(v[2])])

    def gap(self, t, q, p):
        return jnp.stack([q[1] - 0.01 * jnp.cos(3.0 * q[0]), p["stop"] - q[0]])

    def slip(self, t, q, v, p):
        along = jnp.stack([v[0], v[1] + 0.2 * v[0]])
        return jnp.stack([along, 0.5 * v[1] - 0.3 * along], axis=1)[:, : self.nt]

    def constraint(self, t, q, p):
        return q[2:] - p["gear"] * q[:1]

    def law(self, p):
        own = {name: p[name] for name in ("restitution", "restitution_tangential", "friction")}
        return ContactLaw(**own)

    def dry_friction(self, t, q, v, p):
        return jnp.stack([v[0], v[1] - p["wanted"]])

    def bound(self, p):
        return jnp.stack([p["dry"], p["stall"]])


def carriage(nt: int) -> System:
    """The system with ``nt`` tangents."""
    c = Carriage(nt)
    return System(
        nq=3, nv=3, nc=2, nt=nt, nb=1, nd=2, mass=c.mass, force=c.force, gap=c.gap,
        slip=c.slip if nt else None, constraint=c.constraint, law=c.law,
        dry_friction=c.dry_friction, dry_friction_bound=c.bound,
    )  # fmt: skip


def drawn(seed: int) -> tuple[dict[str, Any], State]:
    """Numbers and a start. Every third draw is degenerate: coefficients and bounds of zero or one, a start
    at rest, closed, or with both contacts far away.
    """
    rng = np.random.default_rng(seed)
    p = dict(zip(NAMES, rng.uniform(0.5, 1.5, len(NAMES)), strict=True))
    p |= {"stiffness": 20.0 * p["stiffness"], "push": 6.0 * p["push"], "omega": 9.0 * p["omega"]}
    p |= {"gravity": 9.81, "wanted": rng.normal(), "stop": rng.uniform(0.02, 0.3)}
    p |= {name: rng.uniform() for name in ("friction", "restitution", "restitution_tangential", "stall")}
    x, y = rng.uniform(-0.1, 0.0), rng.uniform(0.011, 0.06)
    v = rng.normal(size=2)
    if seed % 3 == 0:
        for name in ("friction", "restitution", "restitution_tangential", "dry", "stall", "wanted"):
            p[name] = rng.choice([0.0, p[name], 1.0])
        x, y = rng.choice([x, 0.0]), rng.choice([y, 5.0])
        v = v * rng.choice([0.0, 1.0], 2)
        p["stop"] = rng.choice([p["stop"], 50.0])
        if rng.uniform() < 0.4:  # on the floor
            y, v[1] = 0.01 * np.cos(3.0 * x), -0.03 * np.sin(3.0 * x) * v[0]
    q = np.array([x, y, p["gear"] * x])
    return p, State(t=rng.uniform(), q=q, v=np.array([v[0], v[1], p["gear"] * v[0]]))


def bounces_at_start(params: dict[str, Any], state: State) -> bool:
    """Whether a draw starts on the floor with restitution: what is lifted a little then bounces, and the
    motion has no derivative.
    """
    gap = state.q[1] - 0.01 * np.cos(3.0 * state.q[0])
    return bool(abs(gap) < 1e-9 and params["restitution"] > 0.0)
