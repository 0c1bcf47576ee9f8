"""Balls that bounce on a table, on each other, at rest or moving: one or two dimensions."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.core import InputError, Labels, Problem, State, System
from nsjax.forms import quantity
from nsjax.math import norm
from nsjax.models.common import constructor, contact_law, vector
from nsjax.types import Array, is_traced, record


@record()
class BouncingBall:
    """Parameters of `bouncing_ball`; the field names are its keyword names."""

    restitution: Array | float = 0.8
    restitution_tangential: Array | float = 0.0
    friction: Array | float = 0.0
    gravity: Array | float = 9.81
    slope: Array | float = 0.0
    mass: Array | float = quantity(default=1.0, least=0.0)
    radius: Array | float = quantity(default=0.05, least=0.0)
    table_amplitude: Array | float = 0.0
    table_frequency: Array | float = 0.0


@dataclasses.dataclass(frozen=True)
class Balls:
    """Topology: number of balls and dimension. Its methods are the functions of the system.

    One dimension: ``q = (y_1, ..., y_n)``, heights of the centres, the balls one above the other.
    Two dimensions: ``q = (x_1, y_1, phi_1, x_2, ...)``; discs (solid spheres) that also roll.
    Contacts: every ball with the table, then neighbours (1D) or all pairs (2D).
    """

    balls: int
    dimension: int

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of balls that may touch."""
        n = self.balls
        if self.dimension == 1:
            return tuple((i, i + 1) for i in range(n - 1))
        return tuple((i, j) for i in range(n) for j in range(i + 1, n))

    @property
    def grounded(self) -> int:
        """Number of balls that may touch the table: in a column only the lowest."""
        return 1 if self.dimension == 1 else self.balls

    def _each(self, value: Array | float) -> Array:
        return jnp.broadcast_to(jnp.asarray(value, float), (self.balls,))

    def mass(self, q: Array, p: BouncingBall) -> Array:
        """Mass matrix, constant and diagonal; a ball has the inertia 2/5 m r^2 of a sphere."""
        m = self._each(p.mass)
        if self.dimension == 2:
            m = jnp.stack([m, m, 0.4 * m * self._each(p.radius) ** 2], axis=1).reshape(-1)
        return m[:, None] * np.eye(m.shape[0])

    def force(self, t: Array, q: Array, v: Array, p: BouncingBall) -> Array:
        """Weight; with a slope the axes are along and normal to the table."""
        m = self._each(p.mass)
        down = -m * p.gravity * jnp.cos(p.slope)
        if self.dimension == 1:
            return down
        along = m * p.gravity * jnp.sin(p.slope)
        return jnp.stack([along, down, 0.0 * m], axis=1).reshape(-1)

    def potential(self, t: Array, q: Array, p: BouncingBall) -> Array:
        """Potential energy of gravity, zero for centres in the table's plane."""
        m, g = self._each(p.mass), p.gravity
        if self.dimension == 1:
            return jnp.sum(m * g * jnp.cos(p.slope) * q)
        xy = q.reshape(self.balls, 3)
        return jnp.sum(m * g * (jnp.cos(p.slope) * xy[:, 1] - jnp.sin(p.slope) * xy[:, 0]))

    def gap(self, t: Array, q: Array, p: BouncingBall) -> Array:
        """Distances between balls and table, then between balls (nc,)."""
        r = self._each(p.radius)
        table = p.table_amplitude * jnp.sin(p.table_frequency * t)
        if self.dimension == 1:
            ground = q[:1] - r[:1] - table
            return jnp.concatenate([ground, q[1:] - q[:-1] - r[1:] - r[:-1]])
        xy = q.reshape(self.balls, 3)[:, :2]
        ground = xy[:, 1] - r - table
        pairs = [norm(xy[j] - xy[i])[None] - r[i] - r[j] for i, j in self.pairs]
        return jnp.concatenate([ground, *pairs])

    def slip(self, t: Array, q: Array, v: Array, p: BouncingBall) -> Array:
        """Slip velocities at the contact points, in two dimensions only."""
        r = self._each(p.radius)
        qs, vs = q.reshape(self.balls, 3), v.reshape(self.balls, 3)
        slips = [vs[:, 0] + r * vs[:, 2]]
        for i, j in self.pairs:
            d = qs[j, :2] - qs[i, :2]
            n = d / norm(d)
            relative = vs[j, :2] - vs[i, :2]
            along = -n[1] * relative[0] + n[0] * relative[1]
            slips.append((along - r[i] * vs[i, 2] - r[j] * vs[j, 2])[None])
        return jnp.concatenate(slips)[:, None]

    def observe(self, t: Array, q: Array, v: Array, output: Any, p: BouncingBall) -> dict[str, Array]:
        """Height of the table and its velocity."""
        phase = p.table_frequency * t
        return {
            "table": p.table_amplitude * jnp.sin(phase),
            "table_velocity": p.table_amplitude * p.table_frequency * jnp.cos(phase),
        }

    def _bodies(self, q: Array) -> tuple[Array, Array]:
        """Centres (balls, 2) and angles (balls,)."""
        if self.dimension == 1:
            return jnp.stack([0.0 * q, q], axis=1), 0.0 * q
        found = q.reshape(self.balls, 3)
        return found[:, :2], found[:, 2]

    def picture(self, t: Array, q: Array, p: BouncingBall) -> shapes.Picture:
        """The picture: balls, table and contact normals."""
        r, (xy, angles) = self._each(p.radius), self._bodies(q)
        table = p.table_amplitude * jnp.sin(p.table_frequency * t)
        found = [shapes.level(jnp.stack([0.0 * t, table]), (0.0, 1.0), "table")]
        for k in range(self.balls):
            outline = shapes.placed(shapes.disc(r[k]), xy[k], angles[k])
            name = "ball" if self.balls == 1 else f"ball {k + 1}"
            found.append(shapes.Shape(points=outline, name=name, kind="area"))
        up = jnp.asarray([0.0, 1.0])
        normals = [up] * self.grounded
        points = [xy[k] - r[k] * up for k in range(self.grounded)]
        for i, j in self.pairs:
            normals.append((xy[j] - xy[i]) / norm(xy[j] - xy[i]))
            points.append(xy[i] + r[i] * normals[-1])
        n = jnp.stack(normals)
        across = (
            jnp.stack([-n[:, 1], n[:, 0]], axis=1)
            * np.where(np.arange(len(normals)) < self.grounded, -1.0, 1.0)[:, None]
        )
        places = shapes.Places(
            points=jnp.stack(points), normals=n, tangents=across[:, None][:, : self.dimension - 1]
        )
        return shapes.Picture(shapes=tuple(found), contacts=places)

    def labels(self) -> Labels:
        """Names and units; the names of a single ball have no number."""
        number = [""] if self.balls == 1 else [str(k + 1) for k in range(self.balls)]
        one = {1: (("y [m]",), ("vy [m/s]",)), 2: (
            ("x [m]", "y [m]", "phi [rad]"), ("vx [m/s]", "vy [m/s]", "omega [rad/s]"),
        )}  # fmt: skip
        q, v = one[self.dimension]
        name = lambda entry, k: entry.replace(" [", f"{k} [")  # noqa: E731
        ground = [f"ball {k} on table".replace("  ", " ") for k in number[: self.grounded]]
        return Labels(
            q=tuple(name(entry, k) for k in number for entry in q),
            v=tuple(name(entry, k) for k in number for entry in v),
            contacts=(*ground, *(f"balls {i + 1} and {j + 1}" for i, j in self.pairs)),
            observables=("table [m]", "table_velocity [m/s]"),
        )

    def system(self) -> System:
        """The system of this topology."""
        size = self.balls * (1 if self.dimension == 1 else 3)
        planar = self.dimension == 2
        return System(
            name="bouncing_ball", choices=(("balls", self.balls), ("dimension", self.dimension)), nq=size,
            nv=size, nc=self.grounded + len(self.pairs), nt=1 if planar else 0, mass=self.mass,
            force=self.force, potential=self.potential, gap=self.gap, slip=self.slip if planar else None,
            law=contact_law, observe=self.observe, shapes=self.picture, labels=self.labels(),
        )  # fmt: skip


@constructor(BouncingBall)
def bouncing_ball(
    params: BouncingBall, *, balls: int = 1, dimension: int = 1, height: Any = 1.0, speed: Any = 0.0,
    initial_q: Any = None, initial_v: Any = None, initial_time: Any = 0.0,
) -> Problem:  # fmt: skip
    """Balls on a table that is level, sloped or shaken, with restitution and friction.

    The textbook example of nonsmooth mechanics: impacts at known times, accumulating for
    ``restitution < 1``. In one dimension the balls are in a column; in two they also roll, with
    Coulomb friction on the table and on each other.

    Args:
        balls: number of balls.
        dimension: 1 or 2.
        height: initial gap between each ball and the table or ball below it [m], scalar or (balls,).
        speed: initial vertical velocity [m/s], scalar or (balls,).
        initial_q, initial_v, initial_time: full initial state instead of height and speed. In 1D
            ``q`` are the centres' heights, in 2D ``(x, y, phi)`` per ball.
        restitution, restitution_tangential, friction: of each contact; friction acts in two
            dimensions only. Scalars or one number per contact (tables first, then pairs).
        gravity: [m/s^2].
        slope: inclination of the table [rad]; axes stay along and normal to it, downhill is +x.
        mass: [kg], scalar or (balls,).
        radius: [m], scalar or (balls,).
        table_amplitude, table_frequency: the table moves as ``A sin(w t)`` [m], [rad/s].

    Raises:
        InputError: for an unknown parameter, number of balls, or dimension.

    Source: none of the papers; Newton's impact law, and parabolas of flight between impacts.

    Limits: the potential energy is that of gravity; it does not count the energy that a moving table
    feeds in.

    Example:
        >>> from nsjax import models
        >>> problem = models.bouncing_ball(height=2.0, restitution=0.5)
        >>> problem.state.q.round(9).tolist()
        [2.05]
    """
    if balls < 1 or dimension not in (1, 2):
        raise InputError(
            f"bouncing_ball: balls = {balls}, dimension = {dimension}; at least one ball, dimension 1 or 2"
        )
    if initial_q is None:
        initial_q = _start(balls, dimension, height, params.radius)
    if initial_v is None:
        initial_v = _spread(vector(speed, balls), balls, dimension)
    state = State(t=initial_time, q=vector(initial_q), v=vector(initial_v))
    return Problem(system=Balls(balls, dimension).system(), params=params, state=state)


def _spread(vertical: Any, balls: int, dimension: int) -> Any:
    """Vertical components as a full vector."""
    if dimension == 1:
        return vertical
    xp = jnp if is_traced(vertical) else np
    zero = xp.zeros(balls)
    return xp.stack([zero, vertical, zero], axis=1).reshape(-1)


def _start(balls: int, dimension: int, height: Any, radius: Any) -> Any:
    """Centres of balls in a column (1D), or side by side with a gap of one diameter (2D)."""
    h, r = vector(height, balls), vector(radius, balls)
    xp = jnp if is_traced((h, r)) else np
    if dimension == 1:
        return xp.cumsum(h + 2.0 * r) - r
    x = xp.cumsum(4.0 * r) - 4.0 * r[0]
    return xp.stack([x, h + r, xp.zeros(balls)], axis=1).reshape(-1)
