"""A chain of hinged bodies in absolute coordinates, as a user would write it."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import Problem, State, System
from nsjax.linalg import Dense, Interleaved


@dataclasses.dataclass(frozen=True)
class Chain:
    """Links of length ``l`` hinged to one another and, if ``grounded``, to the origin; ``loop``: the last
    end is pinned, too; ``floor``: their ends hit a floor.
    """

    links: int
    grounded: bool = True
    loop: bool = False
    floor: bool = False

    def _ends(self, q, p):
        x = q.reshape(self.links, 3)
        half = 0.5 * p["length"] * jnp.stack([jnp.cos(x[:, 2]), jnp.sin(x[:, 2])], axis=1)
        return x[:, :2] - half, x[:, :2] + half

    def _weights(self, p):
        return jnp.stack([p["mass"], p["mass"], p["inertia"]])

    def mass(self, q, p):
        """Mass matrix."""
        return jnp.diag(jnp.tile(self._weights(p), self.links))

    def inertia(self, q, w, p):
        """Its product."""
        return (w.reshape(self.links, 3) * self._weights(p)).reshape(-1)

    def force(self, t, q, v, p):
        """Weight."""
        return jnp.tile(
            jnp.stack([0.0 * p["mass"], -p["mass"] * p["gravity"], 0.0 * p["mass"]]), self.links
        )

    def potential(self, t, q, p):
        """Of the weight."""
        return p["mass"] * p["gravity"] * jnp.sum(q.reshape(self.links, 3)[:, 1])

    def constraint(self, t, q, p):
        """Hinges, link by link, then the pin."""
        head, tail = self._ends(q, p)
        first = head[:1] if self.grounded else head[:0]
        rows = [first, head[1:] - tail[:-1]]
        if self.loop:
            rows.append(tail[-1:] - p["pin"])
        return jnp.concatenate(rows).reshape(-1)

    def gap(self, t, q, p):
        """Heights of the ends over the floor."""
        return self._ends(q, p)[1][:, 1] + p["floor"]

    def slip(self, t, q, v, p):
        """Velocities of the ends along it."""
        x, u = q.reshape(self.links, 3), v.reshape(self.links, 3)
        return (u[:, 0] - 0.5 * p["length"] * jnp.sin(x[:, 2]) * u[:, 2])[:, None]

    def law(self, p):
        """Of the floor."""
        return nsjax.ContactLaw(restitution=p["restitution"], friction=p["friction"])


def chain(
    links: int, interleaved: bool, *, grounded=True, loop=False, floor=False, bend=0.3, depth=0.3
) -> Problem:
    """A chain that begins at rest, its links inclined by up to ``bend``."""
    c = Chain(links, grounded, loop, floor)
    functions = {"gap": c.gap, "slip": c.slip, "law": c.law, "nc": links, "nt": 1} if floor else {}
    system = System(
        nq=3 * links, nv=3 * links, nb=2 * (links - (not grounded) + loop), inertia=c.inertia,
        force=c.force, mass=None if interleaved else c.mass, potential=c.potential, constraint=c.constraint,
        structure=Interleaved(3, joint=2, grounded=grounded) if interleaved else Dense(), **functions,
    )  # fmt: skip
    angles = bend * np.cos(2.0 * np.arange(links))
    along = 0.2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    ends = np.cumsum(along, axis=0)
    q = np.concatenate([ends - 0.5 * along, angles[:, None]], axis=1).reshape(-1)
    p = {
        "mass": 1.0, "inertia": 0.01, "gravity": 9.81, "length": 0.2, "floor": depth, "restitution": 0.4,
        "friction": 0.2, "pin": jnp.asarray(ends[-1]),
    }  # fmt: skip
    return Problem(system=system, params=p, state=State(t=0.0, q=q, v=np.zeros(3 * links)))
