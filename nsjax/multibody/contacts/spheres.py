"""Many free spheres between fixed planes: contacts of all pairs, found anew in every step."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import shapes
from nsjax.contact import ContactLaw
from nsjax.core import InputError, Labels, Problem, State, System
from nsjax.core.arguments import numbers
from nsjax.core.slots import ContactSet
from nsjax.linalg import BlockDiagonal
from nsjax.multibody.contacts.candidates import ROOM, CandidatePairs, listed, pairs_within
from nsjax.multibody.contacts.closest_points import lengthened
from nsjax.multibody.contacts.gap_functions import REACH
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.parts import number
from nsjax.types import Array, record

DRAWN_RINGS, DRAWN_AROUND = 7, 10
"""Number of rings of a drawn sphere, and of points around each ring."""


@record()
class SphereNumbers:
    """Parameters of `spheres`, arrays by sphere (n,) and by wall (w, ...).

    Args:
        radius (n,), mass (n,), inertia (n,): [m], [kg], moment of inertia about the centre [kg m^2].
        normal (w, 3), level (w,): walls ``normal . x = level``; spheres are on the side of larger values.
        gravity: (3,) [m/s^2].
        friction, restitution: of all contacts.
        reach: gap up to which a pair is a candidate [m].
        near: candidate pairs of the step, set by `System.refresh`.
    """

    radius: Array
    mass: Array
    inertia: Array
    normal: Array
    level: Array
    gravity: Array
    friction: Array | float
    restitution: Array | float
    reach: Array | float
    near: CandidatePairs | None = None


@dataclasses.dataclass(frozen=True)
class Spheres(ContactSet):
    """Functions of the system, and its `System.contact_set`; wall ``w`` is body ``count + w``."""

    count: int
    walls: int
    capacity: int
    changing = True

    def _apart(self, x: Array) -> Array:
        """Positions or velocities of bodies as rows (count, 6)."""
        return x.reshape(self.count, 6)

    def inertia(self, q: Array, w: Array, p: SphereNumbers) -> Array:
        """Product ``M w`` of the mass matrix with a vector."""
        weights = jnp.stack([p.mass] * 3 + [p.inertia] * 3, axis=1)
        return (weights * self._apart(w)).reshape(-1)

    def force(self, t: Array, q: Array, v: Array, p: SphereNumbers) -> Array:
        """Weight; spheres have no gyroscopic torque."""
        weight = p.mass[:, None] * p.gravity
        return jnp.concatenate([weight, jnp.zeros_like(weight)], axis=1).reshape(-1)

    def potential(self, t: Array, q: Array, p: SphereNumbers) -> Array:
        """The potential of the weight [J]."""
        return -jnp.sum(p.mass[:, None] * p.gravity * self._apart(q)[:, :3])

    def refresh(self, t: Array, q: Array, p: SphereNumbers) -> SphereNumbers:
        """Parameters with the pairs whose gaps are below ``reach``."""
        n, x = self.count, self._apart(q)[:, :3]
        room = max(1, min(ROOM * self.capacity, n * (n - 1) // 2))
        found = pairs_within(x, 2.0 * jnp.max(p.radius) + p.reach, room)
        one, other = jnp.minimum(found.first, found.second), jnp.maximum(found.first, found.second)
        near = found.here & self._near(x, one, other, p)
        height = self._heights(x, p)
        ball, wall = np.divmod(np.arange(n * self.walls), max(self.walls, 1))
        slots = listed(
            jnp.concatenate([one, ball]), jnp.concatenate([other, n + wall]),
            jnp.concatenate([near, (height < p.reach).reshape(-1)]), n + self.walls, self.capacity,
            jnp.where(found.count > room, -(-found.count // ROOM), 0),
        )  # fmt: skip
        return dataclasses.replace(p, near=slots)

    def _near(self, x: Array, one: Any, other: Any, p: SphereNumbers) -> Array:
        """Whether the gap of two spheres is below ``reach``."""
        square = jnp.sum((x[one] - x[other]) ** 2, axis=-1)
        return square < (p.radius[one] + p.radius[other] + p.reach) ** 2

    def _heights(self, x: Array, p: SphereNumbers) -> Array:
        """Gaps (n, w) of spheres and walls."""
        return jnp.sum(x[:, None] * p.normal, axis=2) - p.level - p.radius[:, None]

    def near_counts(self, q: Array, p: SphereNumbers) -> dict[str, Array]:
        """Capacity () that would hold all pairs near at a position."""
        assert p.near is not None
        x, every = self._apart(q)[:, :3], np.arange(self.count)
        balls = lax.map(lambda k: jnp.sum(self._near(x, k, every, p) & (every > k)), jnp.arange(self.count))
        count = jnp.sum(balls) + jnp.sum(self._heights(x, p) < p.reach)
        return {"spheres": jnp.maximum(count, p.near.needed)}

    def allowed(self, t: Array, q: Array, p: SphereNumbers) -> Array:
        """Mask (nc,) of the slots that hold a pair."""
        assert p.near is not None
        return p.near.used

    def _meeting(self, q: Array, p: SphereNumbers) -> tuple[Array, Array, Array]:
        """Gaps (nc,), normals (nc, 3) towards the first of a pair, radii (nc, 2), zero for a wall."""
        assert p.near is not None
        n, x, near = self.count, self._apart(q)[:, :3], p.near
        ball, wall = near.second < n, jnp.clip(near.second - n, 0, max(self.walls - 1, 0))
        other = jnp.where(ball, near.second, 0)
        # empty slots use two distinct points, so that the direction is defined
        apart = jnp.where(near.used[:, None], x[near.first] - x[other], 1.0)
        length, unit = lengthened(apart.T, jnp.array([1.0, 0.0, 0.0])[:, None])
        radii = jnp.stack([p.radius[near.first], jnp.where(ball, p.radius[other], 0.0)], axis=1)
        if self.walls:
            height = jnp.sum(p.normal[wall] * x[near.first], axis=1) - p.level[wall]
            length = jnp.where(ball, length, height)
            unit = jnp.where(ball, unit, p.normal[wall].T)
        gap = length - radii[:, 0] - radii[:, 1]
        return jnp.where(near.used, gap, p.reach), unit.T, radii

    def gap(self, t: Array, q: Array, p: SphereNumbers) -> Array:
        """Gaps between surfaces [m]; ``reach`` in empty slots."""
        return self._meeting(q, p)[0]

    def slip(self, t: Array, q: Array, v: Array, p: SphereNumbers) -> Array:
        """Slip velocity of the first surface relative to the second along two tangents [m/s]."""
        assert p.near is not None
        _, normal, radii = self._meeting(q, p)
        moving = jnp.concatenate([self._apart(v), jnp.zeros((1, 6))])
        one, other = (moving[k] for k in self.bodies(p).T)
        spin = radii[:, :1] * one[:, 3:] + radii[:, 1:] * other[:, 3:]
        surface = one[:, :3] - other[:, :3] - space.cross(spin, normal, axis=1)
        slips = jnp.stack([jnp.sum(t * surface, axis=1) for t in _tangents(normal)], axis=1)
        return jnp.where(p.near.used[:, None], slips, 0.0)

    def law(self, p: SphereNumbers) -> ContactLaw:
        """The law of all contacts."""
        return ContactLaw(restitution=p.restitution, friction=p.friction)

    def bodies(self, p: SphereNumbers) -> Array:
        """Numbers (nc, 2) of the spheres of every slot; ``count`` for walls and empty slots."""
        assert p.near is not None
        first = jnp.where(p.near.used, p.near.first, self.count)
        second = jnp.where(p.near.used, p.near.second, self.count)
        return jnp.stack([first, jnp.where(second < self.count, second, self.count)], axis=1)

    def directions(self, t: Array, q: Array, p: SphereNumbers) -> Array:
        """Directions of gap rate and slips, see `nsjax.core.slots.ContactSet`."""
        assert p.near is not None
        _, normal, radii = self._meeting(q, p)
        sides = []
        for k, sign in ((0, 1.0), (1, -1.0)):
            rows = [jnp.concatenate([sign * normal, jnp.zeros_like(normal)], axis=1)]
            for tangent in _tangents(normal):
                turn = -radii[:, k : k + 1] * space.cross(normal, tangent, axis=1)
                rows.append(jnp.concatenate([sign * tangent, turn], axis=1))
            sides.append(jnp.stack(rows, axis=1))
        return jnp.where(p.near.used[:, None, None, None], jnp.stack(sides, axis=1), 0.0)

    def picture(self, t: Array, q: Array, p: SphereNumbers) -> shapes.Picture:
        """The picture: spheres of a few hundred triangles each, which do not turn, and the walls."""
        angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, DRAWN_RINGS)
        unit = shapes.lathe(np.sin(angles), np.cos(angles), around=DRAWN_AROUND)
        axes = jnp.broadcast_to(jnp.eye(3), (self.count, 3, 3))
        pose = jnp.concatenate([axes, self._apart(q)[:, :3, None]], axis=2)
        balls = shapes.Shape(
            points=p.radius[:, None, None] * unit, pose=pose,
            name=tuple(f"sphere {k + 1}" for k in range(self.count)), kind="mesh",
            faces=shapes.lathe_faces(DRAWN_RINGS, DRAWN_AROUND),
        )  # fmt: skip
        walls = (
            shapes.level(p.level[k] * p.normal[k], p.normal[k], f"wall {k + 1}") for k in range(self.walls)
        )
        return shapes.Picture(shapes=(*walls, balls))

    def identity(self, p: SphereNumbers) -> Array:
        """Identities (nc,) of the pairs."""
        assert p.near is not None
        return p.near.identity

    def overflow(self, p: SphereNumbers) -> Array:
        """Whether there were more candidates than slots."""
        assert p.near is not None
        return p.near.lost

    def system(self) -> System:
        """The system."""
        places, rates = (
            tuple(f"{k}{i} [{u}]" for i in range(self.count) for k, u in names)
            for names in (
                [
                    ("x", "m"), ("y", "m"), ("z", "m"), ("turn_x", "rad"), ("turn_y", "rad"),
                    ("turn_z", "rad"),
                ],
                [("vx", "m/s"), ("vy", "m/s"), ("vz", "m/s")] + [(f"omega_{k}", "rad/s") for k in "xyz"],
            )
        )  # fmt: skip
        return System(
            name="spheres", nq=6 * self.count, nv=6 * self.count, nc=self.capacity, nt=2,
            inertia=self.inertia, force=self.force, potential=self.potential, gap=self.gap, slip=self.slip,
            law=self.law, refresh=self.refresh, allowed=self.allowed, structure=BlockDiagonal(6),
            contact_set=self, shapes=self.picture, labels=Labels(q=places, v=rates),
        )  # fmt: skip


def _tangents(normal: Array) -> tuple[Array, ...]:
    """Two unit vectors (k, 3) perpendicular to unit normals (k, 3)."""
    return tuple(x.T for x in space.tangents(normal.T))


def spheres(
    radius: Any, mass: Any, positions: Any, velocities: Any = None, *, walls: Any = (), gravity: Any = 9.81,
    friction: float = 0.0, restitution: float = 0.0, capacity: int | None = None,
    reach: float | None = None,
) -> Problem:  # fmt: skip
    """Free homogeneous spheres that touch each other and fixed planes, with friction.

    In every step a cell search lists up to ``capacity`` candidate pairs. Impulses, certificate and memory
    have the size of this list: there is no matrix over all bodies and contacts. What a scheme remembers of
    a contact belongs to its pair of bodies, not to its slot in the list; so do the impulses of the last
    step, from which the next solution starts.

    Args:
        radius, mass: a number, or one for each sphere [m], [kg].
        positions: (n, 3) centres at the start [m].
        velocities: (n, 3), or (n, 6) with angular velocities in fixed axes; None: at rest.
        walls: planes ``(normal, level)`` with ``normal . x = level``; spheres are on the side of the unit
            normal.
        gravity: (3,), or a number for the downward direction (-z) [m/s^2].
        friction, restitution: of all contacts.
        capacity: slots for candidate pairs. None: seven for each sphere, enough for a dense heap of equal
            spheres (six touch each, and some more are near). More candidates set the status bit
            `nsjax.status.CANDIDATES_LOST`.
        reach: gap up to which a pair is a candidate [m]: at least the distance by which a gap closes in
            half a step. None: a fifth of the smallest radius.

    Returns:
        A `Problem` with ``q = (x, turn)`` and ``v = (velocity, angular velocity)`` of six numbers a sphere,
        in fixed axes. The turns are integrals of the angular velocities, not rotation vectors: contacts of
        a sphere do not depend on its orientation.

    Raises:
        InputError: for arrays that do not fit, walls without unit normals, spheres that overlap at the
            start (the deepest pair is named).

    Limits: `nsjax.schemes.moreau` alone; no derivatives, no list of impacts (`events`), and no notes on
    grazing or on impacts that move each other. Per-contact rows of a trajectory are those of the pairs in
    the list at the row (`pairs_of`). Heaps are solved to the default ``contact_tolerance`` of the scheme; a
    tolerance of 1e-3 costs less. Cells have the size of the largest diameter; the same bit is set where
    neighbouring cells hold more than eight times ``capacity`` of pairs, as those of spheres of very unequal
    sizes may: then `contact_group` takes less.

    Example:
        >>> import nsjax
        >>> from nsjax import schemes
        >>> from nsjax.multibody import spheres
        >>> floor = ((0.0, 0.0, 1.0), 0.0)
        >>> pile = spheres(0.1, 1.0, [(0.0, 0.0, 0.1), (0.0, 0.0, 0.3)], walls=[floor], friction=0.3)
        >>> traj = nsjax.simulate(pile, schemes.moreau(), dt=1e-3, steps=10)
        >>> [round(float(x), 6) for x in traj.force_normal[-1][:2]]
        [9.81, 19.62]
    """
    x = _finite("positions", positions)
    if x.ndim != 2 or x.shape[1] != 3 or not len(x):
        raise InputError(f"spheres: positions have shape {x.shape}; give (n, 3)")
    n = len(x)
    radius, mass = (_each(name, value, n) for name, value in (("radius", radius), ("mass", mass)))
    normal, level = _planes(walls)
    _check_overlap(x, radius, normal, level)
    v = np.zeros((n, 6))
    if velocities is not None:
        speed = _finite("velocities", velocities)
        if speed.shape not in ((n, 3), (n, 6)):
            raise InputError(f"spheres: velocities have shape {speed.shape}; give ({n}, 3) or ({n}, 6)")
        v[:, : speed.shape[1]] = speed
    pull = _finite("gravity", gravity)
    if pull.shape not in ((), (3,)):
        raise InputError(f"spheres: gravity has shape {pull.shape}; give one number or (3,)")
    friction = number("spheres", "contacts", "friction", friction, 0.0)
    restitution = number("spheres", "contacts", "restitution", restitution, 0.0)
    given: dict[str, Any] = {
        "radius": radius, "mass": mass, "inertia": 0.4 * mass * radius**2, "normal": normal, "level": level,
        "gravity": np.array([0.0, 0.0, -float(pull)]) if pull.ndim == 0 else pull,
        "friction": friction, "restitution": restitution,
        "reach": REACH * float(np.min(radius)) if reach is None else reach,
    }  # fmt: skip
    made = Spheres(count=n, walls=len(level), capacity=7 * n if capacity is None else capacity)
    place = np.concatenate([x, np.zeros((n, 3))], axis=1)
    start = State(t=0.0, q=jnp.asarray(place.reshape(-1)), v=jnp.asarray(v.reshape(-1)))
    return Problem(system=made.system(), params=SphereNumbers(**given), state=start)


def _each(name: str, value: Any, n: int) -> np.ndarray:
    array = numbers("spheres", name, value)
    if array.shape not in ((), (n,)) or not np.all(array > 0.0):
        raise InputError(
            f"spheres: {name} = {array.tolist()}; give a positive number, or one for each of {n} spheres"
        )
    return np.broadcast_to(array, (n,)).copy()


def _finite(name: str, value: Any) -> np.ndarray:
    array: np.ndarray = numbers("spheres", name, value)
    if not np.all(np.isfinite(array)):
        raise InputError(f"spheres: {name} has values that are not finite; give finite numbers")
    return array


def _planes(walls: Any) -> tuple[np.ndarray, np.ndarray]:
    pairs = walls if isinstance(walls, list | tuple) else [walls]
    for k, wall in enumerate(pairs):
        if not isinstance(wall, list | tuple) or [np.size(x) for x in wall] != [3, 1]:
            raise InputError(f"spheres: wall {k} = {wall!r}; give (normal, level), ((0.0, 0.0, 1.0), 0.0)")
    walls = [tuple(_finite(f"wall {k}", x) for x in wall) for k, wall in enumerate(pairs)]
    normals = np.array([normal for normal, _ in walls]).reshape(-1, 3)
    for k, length in enumerate(np.linalg.norm(normals, axis=1)):
        if abs(length - 1.0) > 1e-6:
            raise InputError(
                f"spheres: the normal {normals[k].tolist()} of wall {k} has length {length:g}; make it 1"
            )
    return normals, np.array([float(level) for _, level in walls])


def _check_overlap(x: np.ndarray, radius: np.ndarray, normal: np.ndarray, level: np.ndarray) -> None:
    """Refuse a start with overlapping spheres or walls."""
    one, other = np.triu_indices(len(x), 1)
    gap = np.linalg.norm(x[one] - x[other], axis=1) - radius[one] - radius[other]
    # largest overlap of spheres at the start [m], as in `nsjax.core.start_checks.violation`
    overlap = 1e-9
    names = [
        f"spheres {i} and {j}" for i, j in zip(one[gap < -overlap], other[gap < -overlap], strict=True)
    ]
    height = x @ normal.T - level - radius[:, None]
    names += [f"sphere {i} and wall {w}" for i, w in np.argwhere(height < -overlap)]
    depth = np.concatenate([gap[gap < -overlap], height[height < -overlap]])
    if len(depth):
        worst = int(np.argmin(depth))
        raise InputError(
            f"spheres: {names[worst]} overlap by {-depth[worst]:.6g} at the start, the deepest of "
            f"{len(depth)}; move them apart"
        )


def pairs_of(problem: Problem, q: Any, t: float = 0.0) -> np.ndarray:
    """Bodies (k, 2) of the candidate pairs at a position, in the order of the slots; with ``n`` spheres,
    wall ``w`` is body ``n + w``.

    Args:
        problem: a problem made by `spheres`.
        q: position (6 n,), as ``traj.q[-1]``.
        t: time [s].

    Example:
        >>> from nsjax.multibody import pairs_of, spheres
        >>> floor = ((0.0, 0.0, 1.0), 0.0)
        >>> pile = spheres(0.1, 1.0, [(0.0, 0.0, 0.1), (0.0, 0.0, 0.3)], walls=[floor])
        >>> sorted(pairs_of(pile, pile.state.q).tolist())
        [[0, 1], [0, 2]]
    """
    refresh: Any = problem.system.refresh
    near = jax.jit(refresh)(jnp.asarray(t), jnp.asarray(q), problem.params).near
    return np.stack([near.first, near.second], axis=1)[np.asarray(near.used)]
