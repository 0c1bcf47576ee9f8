"""Positions of all shapes at the rows of a run, from which animations are drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.arguments import check_is, check_one_run
from nsjax.core.errors import InputError, call, check_whole
from nsjax.core.operators import prepared, refreshed
from nsjax.core.system import Problem, System
from nsjax.jaxtools.compilation import compiled_once
from nsjax.jaxtools.owned import compiled_for
from nsjax.shapes import KINDS, ROLES, Picture, PlacedPicture, Shape
from nsjax.trajectory import Trajectory
from nsjax.types import Array, PyTree, is_traced

FRAMES = 240
"""Default number of rows of a run that are drawn: ten seconds at 24 a second."""


@dataclasses.dataclass(frozen=True)
class MovedShape:
    """A shape at all rows that are drawn, in arrays of numpy.

    Args:
        points: (rows, n, d) [m], or (1, n, d) in the axes of a body.
        name, kind, role, faces, quantity: see `nsjax.shapes.Shape`; levels have become lines and meshes.
        values: (rows, n) numbers that give its colour; None: the colour of its role.
        marks: displacements of the points in shares of the picture's diagonal, or of some diagonals of what
            is drawn at one instant if these are less; None: none.
        pose: (rows, d, d + 1) rotations and places of the axes of the points; None: those of the world.
    """

    points: np.ndarray
    name: str
    kind: str
    role: str
    faces: tuple[tuple[int, int, int], ...]
    values: np.ndarray | None = None
    quantity: str = ""
    marks: np.ndarray | None = None
    pose: np.ndarray | None = None

    @property
    def world(self) -> np.ndarray:
        """Points (rows, n, d) in the axes of the world [m]."""
        return self.points if self.pose is None else placed(self.points, self.pose)

    def grown(self, size: float) -> MovedShape:
        """The shape with its marks, in a picture of a diagonal [m]."""
        if self.marks is None:
            return self
        return dataclasses.replace(self, points=self.points + size * self.marks, marks=None)

    @property
    def still(self) -> bool:
        """Whether the shape neither moves nor changes its colour."""
        moving = [x for x in (self.points, self.values, self.pose) if x is not None]
        return all(np.array_equal(x, np.broadcast_to(x[:1], x.shape), True) for x in moving)


def placed(points: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Points (..., n, d) of axes with the poses (..., d, d + 1)."""
    return points @ np.swapaxes(pose[..., :-1], -1, -2) + pose[..., None, :, -1]


@dataclasses.dataclass(frozen=True)
class Motion:
    """A run as it is drawn.

    Args:
        t: (rows,) times [s].
        shapes: shapes of the picture.
        places: (rows, nc, d) points where contacts act [m]; None: no contacts are drawn.
        forces: (rows, nc, d) contact forces on the bodies, means over the time since the row before [N];
            None if the run has not saved impulses.
        magnified, note, axes: see `nsjax.shapes.Picture`.
        low, high: (d,) smallest and largest coordinates of all shapes but levels [m].
    """

    t: np.ndarray
    shapes: tuple[MovedShape, ...]
    places: np.ndarray | None
    forces: np.ndarray | None
    magnified: float
    note: str
    axes: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray

    @property
    def dimension(self) -> int:
        """Number of coordinates of a point, 2 or 3."""
        return len(self.low)

    @property
    def size(self) -> float:
        """Diagonal of everything that is drawn [m]."""
        return float(np.linalg.norm(self.high - self.low))


def chosen_rows(traj: Trajectory, frames: int) -> np.ndarray:
    """Indices of at most ``frames`` rows, evenly apart, from the first to the last finite row."""
    finite = np.all(np.isfinite(traj.q), axis=1)
    last = len(finite) - 1 if finite.all() else int(np.argmin(finite)) - 1
    if last < 0:
        raise InputError(
            "pictures: the start of the run is not finite; nothing can be drawn: check the state"
        )
    return np.unique(np.linspace(0, last, min(frames, last + 1)).round().astype(int))


def motion(problem: Problem, traj: Trajectory, *, frames: int = FRAMES, who: str = "animate") -> Motion:
    """A run as it is drawn, evaluated in one call over its rows.

    Args:
        problem: the problem that was run.
        traj: one run of it (not a batch).
        frames: largest number of rows that are drawn.
        who: name of the caller, for error sentences.

    Raises:
        InputError: for a system without shapes, a batch, or the run of another system.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> from nsjax.motion import motion
        >>> ball = models.bouncing_ball()
        >>> traj = nsjax.simulate(ball, schemes.moreau(), dt=1e-3, steps=500)
        >>> seen = motion(ball, traj, frames=11)
        >>> len(seen.t), seen.dimension
        (11, 2)
    """
    _check(problem, traj, frames, who)
    rows = chosen_rows(traj, frames)
    t, q = np.asarray(traj.t)[rows], np.asarray(traj.q)[rows]
    seen, found = _drawn(traj.system, traj.params, t, q, who, contacts=True)
    forces = None if found.contacts is None else _forces(traj, rows, found)
    return dataclasses.replace(seen, forces=forces)


def moved(system: System, params: PyTree, t: np.ndarray, q: np.ndarray) -> Motion:
    """Positions (rows, nq) as they are drawn, without forces. ``system``, ``params``: of a problem with
    shapes; ``t``, ``q``: (rows,), (rows, nq) times [s] and positions. Raises `InputError` for a system
    without shapes, and where nothing is finite.

    Example:
        >>> import numpy as np
        >>> from nsjax import models
        >>> from nsjax.motion import moved
        >>> ball = models.bouncing_ball()
        >>> moved(ball.system, ball.params, np.zeros(1), np.asarray(ball.state.q)[None]).dimension
        2
    """
    return _drawn(system, params, t, q, "picture", contacts=False)[0]


def _drawn(
    system: System, params: PyTree, t: np.ndarray, q: np.ndarray, who: str, contacts: bool
) -> tuple[Motion, Picture]:
    """Shapes at some rows, with places of ``contacts`` or without, and the picture from which they are."""
    make = _mechanisms if isinstance(system.shapes, PlacedPicture) else _others
    made = make(system, params, t, q, _places(system, params, t, q), contacts)
    once, every = jax.tree.map(np.asarray, made)  # below, JAX would compile each operation
    drawn = [
        y
        if y.pose is None
        else dataclasses.replace(y, points=x.points[None], marks=None if x.marks is None else x.marks[None])
        for x, y in zip(once, every.shapes, strict=True)
    ]
    found = dataclasses.replace(every, shapes=tuple(drawn))
    shapes = _checked(found, who)
    low, high = _ends(shapes, who)
    size = _symbol_size(shapes, low, high)
    shapes = tuple(x.grown(size) for x in shapes)
    low, high = _ends(shapes, who)
    shapes = tuple(y for x in shapes for y in (_levelled(x, low, high) if x.kind == "plane" else (x,)))
    factor = 1.0 if found.magnified is None else float(found.magnified[0])
    places = None if found.contacts is None else found.contacts.points
    seen = Motion(
        t=t, shapes=shapes, places=places, forces=None, magnified=factor, note=found.note,
        axes=found.axes, low=low, high=high,
    )  # fmt: skip
    return seen, found


def _check(problem: Problem, traj: Trajectory, frames: int, who: str) -> None:
    for name, value, cls in (("problem", problem, Problem), ("traj", traj, Trajectory)):
        check_is(who, name, value, cls)
    if is_traced((traj.t, traj.q)):
        raise InputError(f"{who}: draws the numbers of a finished run; call it outside transformations")
    check_one_run(who, traj, problem, driven=True)
    if problem.system.shapes is None:
        raise InputError(
            f"{who}: the system {problem.system.name or 'without a name'} has no shapes; give "
            "System(shapes=...), a function (t, q, p) that returns an nsjax.shapes.Picture"
        )
    check_whole(f"{who}: frames", frames, 1)


@compiled_for("system", make=compiled_once)
def _places(system: System, params: PyTree, t: Array, q: Array) -> PyTree:
    """Places of bodies at all rows, of a picture in two steps."""
    if not isinstance(system.shapes, PlacedPicture):
        return None
    places, ready = system.shapes.places, prepared(system, params)
    return lax.map(lambda row: places(*row, ready), (t, q))


def _pictures(
    system: System, params: PyTree, t: Array, q: Array, places: PyTree, contacts: bool
) -> tuple[tuple[Shape, ...], Picture]:
    """Shapes of the first row; pictures of all rows as one, whose shapes with a pose have no points."""
    ready, own = prepared(system, params), system.shapes
    assert own is not None

    @jax.jit  # the first row and all rows are traced once
    def at(t: Array, q: Array, place: PyTree) -> Picture:
        if isinstance(own, PlacedPicture):
            return own.drawn(place, t, q, ready)
        found = call("shapes", own, t, q, refreshed(system, t, q, ready))
        if not isinstance(found, Picture):
            raise InputError(
                f"shapes returns {type(found).__name__}; it must return an nsjax.shapes.Picture"
            )
        return found

    def moving(found: Picture) -> Picture:
        kept = [
            x if x.pose is None else dataclasses.replace(x, points=jnp.zeros(0), marks=None)
            for x in found.shapes
        ]
        places = found.contacts if contacts else None
        return dataclasses.replace(found, shapes=tuple(kept), contacts=places)

    rows = (t, q, places)
    first = at(*jax.tree.map(lambda x: x[0], rows))
    if len(t) == 1:  # one picture compiles in less time without a loop
        return first.shapes, jax.tree.map(lambda x: jnp.asarray(x)[None], moving(first))
    # row by row: stresses inside a large mesh take a thousand times the memory of what is drawn
    return first.shapes, lax.map(lambda row: moving(at(*row)), rows)


# pictures of mechanisms have many operations, each for a few points; those of solids have much to compute
_mechanisms = compiled_for("system", "contacts", make=compiled_once)(_pictures)
_others = compiled_for("system", "contacts")(_pictures)


def _each(shapes: tuple[Shape, ...]) -> Iterator[Any]:
    """Shapes at all rows, one by one."""
    for x in shapes:
        if isinstance(x.name, str):
            yield x
            continue
        for k, name in enumerate(x.name):
            yield dataclasses.replace(jax.tree.map(lambda y, k=k: y[:, k], x), name=name)


def _checked(found: Picture, who: str) -> tuple[MovedShape, ...]:
    """The shapes of a picture, each once; refuses shapes that cannot be drawn."""
    shapes = []
    for x in _each(found.shapes):
        if x.kind not in KINDS or x.role not in ROLES:
            raise InputError(
                f"{who}: shape {x.name!r} has kind = {x.kind!r}, role = {x.role!r}; choose from "
                f"{', '.join(KINDS)} and from {', '.join(ROLES)}"
            )
        if x.points.ndim != 3 or x.points.shape[2] not in (2, 3):
            raise InputError(
                f"{who}: shape {x.name!r} has points {x.points.shape[1:]}; give (n, 2) or (n, 3)"
            )
        if x.values is not None and (x.kind != "mesh" or x.values.shape[1:] != x.points.shape[1:2]):
            raise InputError(
                f"{who}: shape {x.name!r} is a {x.kind} of {x.points.shape[1]} points with values "
                f"{x.values.shape[1:]}; a mesh alone has colours, one value per point"
            )
        values = None if x.values is None else np.asarray(x.values)
        marks = None if x.marks is None else np.asarray(x.marks)
        pose = None if x.pose is None else np.asarray(x.pose)
        moved = np.asarray(x.points), x.name, x.kind, x.role, x.faces, values, x.quantity, marks, pose
        shapes.append(MovedShape(*moved))
    sizes = {x.points.shape[2] for x in shapes}
    if len(sizes) != 1:
        raise InputError(
            f"{who}: shapes have points of {sorted(sizes)} coordinates; draw all in the plane, or all in "
            "space"
        )
    return tuple(x for k, x in enumerate(shapes) if not any(_same(x, y) for y in shapes[:k]))


def _same(x: MovedShape, y: MovedShape) -> bool:
    """Whether two shapes are the same, as those of a body or floor that is in two contacts."""
    alike = x.kind == y.kind and (x.name == y.name or x.kind == "plane")
    pairs = ((x.points, y.points), (x.marks, y.marks), (x.pose, y.pose))
    return alike and all(
        a is b or (a is not None and b is not None and np.array_equal(a, b, True)) for a, b in pairs
    )


def _ends(shapes: tuple[MovedShape, ...], who: str) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest coordinates (d,) of all shapes but levels, and of the feet of near levels."""
    d = shapes[0].points.shape[2]
    points = [x.world.reshape(-1, d) for x in shapes if x.kind != "plane"]
    points = points or [x.points[:, :1].reshape(-1, d) for x in shapes]
    every = np.concatenate(points)
    every = every[np.all(np.isfinite(every), axis=1)]
    if not len(every):
        raise InputError(f"{who}: shapes returns no finite point; nothing can be drawn: check params")
    low, high = every.min(axis=0), every.max(axis=0)
    if not np.any(high > low):
        low, high = low - 0.5, high + 0.5
    feet = [_foot(x, low, high)[0] for x in shapes if x.kind == "plane"]
    near = [x for x in feet if np.linalg.norm(x - 0.5 * (low + high)) <= np.linalg.norm(high - low)]
    both = np.stack([low, high, *near])
    return both.min(axis=0), both.max(axis=0)


def _symbol_size(shapes: tuple[MovedShape, ...], low: np.ndarray, high: np.ndarray) -> float:
    """Diagonal by which symbols grow [m]: that of the picture, of a walking robot that of its own size."""
    size, d = float(np.linalg.norm(high - low)), len(low)
    moving = [x.world.reshape(-1, x.points.shape[1], d) for x in shapes if x.kind != "plane"]
    if not moving:
        return size
    rows = max(len(x) for x in moving)
    least, most = np.full((rows, d), np.inf), np.full((rows, d), -np.inf)
    for x in moving:
        least = np.minimum(least, np.where(np.isfinite(x), x, np.inf).min(axis=1))
        most = np.maximum(most, np.where(np.isfinite(x), x, -np.inf).max(axis=1))
    own = float(np.max(np.linalg.norm(np.where(most >= least, most - least, 0.0), axis=1)))
    # a mass that swings on a slide reaches twice as far as it is ever from its spring's end
    several = 2.5
    return min(size, several * own) if own > 0.0 else size


def _foot(x: MovedShape, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Point (rows, d) of a level that is nearest to the middle of all shapes."""
    point, normal = x.points[:, 0], x.points[:, 1] - x.points[:, 0]
    middle = 0.5 * (low + high)
    return middle - np.sum((middle - point) * normal, axis=1)[:, None] * normal


def _hatched(x: MovedShape, start: np.ndarray, end: np.ndarray, size: float) -> tuple[MovedShape, ...]:
    """A level of the plane as a line, and the strokes behind it."""
    gone = end - start
    hatch = 0.022  # distance of the strokes behind a level, as a share of the diagonal
    count = max(2, round(float(np.nanmax(np.linalg.norm(gone, axis=1))) / (hatch * size)))
    along = gone / np.linalg.norm(gone, axis=1)[:, None]
    back = 0.5 * hatch * size * np.stack([along[:, 1] - along[:, 0], -along[:, 0] - along[:, 1]], axis=1)
    heads = start[:, None] + np.arange(0.5, count)[:, None] / count * gone[:, None]
    strokes = np.stack([heads, heads + back[:, None], np.full_like(heads, np.nan)], axis=2)
    line = MovedShape(np.stack([start, end], axis=1), x.name, "line", x.role, ())
    strokes = strokes.reshape(len(start), -1, 2)
    return line, MovedShape(strokes, f"{x.name} hatching", "line", x.role, ())


def _levelled(x: MovedShape, low: np.ndarray, high: np.ndarray) -> tuple[MovedShape, ...]:
    """The level as a hatched line, or a square of two triangles, around its `_foot`."""
    normal, foot = x.points[:, 1] - x.points[:, 0], _foot(x, low, high)
    size = float(np.linalg.norm(high - low))
    margin = 1.15  # factor by which levels (floors, walls) reach farther than all other shapes
    reach = 0.5 * margin * size
    if len(low) == 2:
        along = np.stack([-normal[:, 1], normal[:, 0]], axis=1)
        ends = np.array([[-reach], [reach]])
        if x.points.shape[1] > 2:  # as far as its further points come
            ways = np.sum((x.points[:, 2:] - foot[:, None]) * along[:, None], axis=2)
            beyond = 0.07  # how far a level with points reaches beyond these, as a share of the diagonal
            ends = np.array([[ways.min() - beyond * size], [ways.max() + beyond * size]])
        return _hatched(x, foot + ends[1] * along, foot + ends[0] * along, size)
    other = np.eye(3)[np.argmin(np.abs(normal), axis=1)]
    first = np.cross(normal, other)
    first = reach * first / np.linalg.norm(first, axis=1)[:, None]
    second = np.cross(normal, first)
    corners = np.stack(
        [foot - first - second, foot + first - second, foot + first + second, foot - first + second], 1
    )
    return (MovedShape(corners, x.name, "mesh", x.role, ((0, 1, 2), (0, 2, 3))),)


def _forces(traj: Trajectory, rows: np.ndarray, found: Picture) -> np.ndarray | None:
    """Contact forces (rows, nc, d) [N], means over the time since the row that was drawn before."""
    if traj.impulse_normal is None or found.contacts is None:
        return None
    spent = np.diff(np.asarray(traj.t)[rows], prepend=np.nan)
    spent[0] = np.inf  # nothing has acted at the start

    def means(impulse: np.ndarray) -> np.ndarray:
        whole = np.cumsum(np.nan_to_num(np.asarray(impulse)), axis=0)[rows]
        gone = np.diff(whole, axis=0, prepend=whole[:1])
        return gone / spent.reshape(-1, *[1] * (gone.ndim - 1))

    forces = means(np.asarray(traj.impulse_normal))[..., None] * found.contacts.normals
    if traj.impulse_tangential is not None and found.contacts.tangents.shape[2]:
        sliding = means(np.asarray(traj.impulse_tangential))[..., None] * found.contacts.tangents
        forces = forces + np.sum(sliding, axis=2)
    return np.where(np.isfinite(forces), forces, 0.0)
