"""Shapes of any form by their signed distances on a regular grid, between which a cubic spline
interpolates: normals of contacts and their rates of change are continuous.

The distance of a point beyond the grid is that from the foot of the nearest point of the grid's border.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import shapes
from nsjax.core import InputError
from nsjax.multibody import symbols
from nsjax.multibody.contacts.closest_pairs import POINTS, corners_of
from nsjax.multibody.contacts.closest_points import ShapeContacts, lengthened, within
from nsjax.multibody.contacts.hulls import vertices_of
from nsjax.multibody.contacts.shape import PairKind, Shape, ShapeKind, turn_of
from nsjax.multibody.contacts.signed_distances import Faces, Given, outline, triangles
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.spatial_vectors import rotation_of
from nsjax.multibody.parts import Part, number
from nsjax.types import Array, is_traced, record


@record(static=("faces",))
class DistanceField:
    """Signed distances [m] on a grid, as control points of a cubic spline.

    Args:
        control: (nx, ny) or (nx, ny, nz) [m]; those within the outermost ones stand at points of the grid.
        corner: position of the first control point in the axes of the shape [m].
        spacing: of the grid [m].
        at: origin of these axes in body axes [m].
        turned: their rotation relative to the body: an angle, or a rotation vector (3,) [rad].
        surface: points (n, d) that pictures show [m].
        faces: triangles between them.
    """

    control: Array
    corner: Array
    spacing: Array | float
    surface: Array
    at: Array | None = None
    turned: Array | float | None = None
    faces: Faces = ()


def distance_field(
    body: str, surface: Any, faces: Any = None, *, spacing: Any = None, margin: Any = None,
    region: Any = None, at: Any = None, turned: Any = None,
) -> Shape:  # fmt: skip
    """A shape of any form, convex or not, by the distances of a grid of points from its surface.

    A cubic spline ``f`` goes through the distances. The gap of a sphere of radius ``r`` with its centre at
    ``x`` is ``f(x) - r``, the normal of the contact ``f' / |f'|``: both are smooth, whatever the surface
    is. Distances are exact, and computed once for equal arguments.

    Args:
        body: name of the body.
        surface: the surface in the axes of the shape [m]. In the plane vertices (n, 2) of a closed polygon,
            or a function of an angle in [0, 2 pi] that returns ``(x, y)``, a smooth closed curve; in space
            points (n, 3) of a closed surface; with ``region`` a function of points (k, d) that returns
            their signed distances (k,), positive outside.
        faces: (m, 3) indices of the points of each triangle, counter-clockwise seen from outside.
        spacing: of the grid [m]; None: the longest edge of the box around the surface over 128 in the
            plane, over 32 in space.
        margin: by which the grid surpasses this box [m]; None: a quarter of the longest edge.
        region: lowest and highest corner of the grid [m], for a function of points.
        at: origin of the axes of the shape in body axes [m].
        turned: rotation of these axes relative to the body: an angle in the plane, a rotation vector (3,)
            in space [rad].

    Raises:
        InputError: for outlines that cross themselves, surfaces that are not closed, and functions that
            return no distances.

    Limits: where the distance is smooth, the gap has an error of order four in the spacing, and normals of
    order three. Within two spacings of points that are equally near to two places of the surface, of
    corners of the surface among them, the spline rounds the kink of the distance: the error there is a
    fraction of the spacing. A sphere that touches at two places has one contact, along the mean of both
    normals: a groove or cup narrower than a sphere is made of several fields, one for each smooth piece of
    its surface, each with a contact of its own. `contact` warns of a sphere that does not fit into all
    hollows by four spacings. Boxes touch with their corners, hulls with their vertices and capsules with
    both ends only. Radii lie between the spacing and the margin. ``control``, ``at`` and ``turned`` can be
    varied and differentiated; reverse derivatives by ``control`` are slow.

    Source: [Ericson, *Real-Time Collision Detection*, 5.1] (distances).

    Example:
        >>> from nsjax.multibody import contact, corners, distance_field, sphere
        >>> notch = [(0, 0), (3, 0), (3, 2), (2, 2), (2, 1), (1, 1), (1, 2), (0, 2)]
        >>> ground = distance_field("ground", notch, spacing=0.05)
        >>> ground.numbers.control.shape
        (93, 73)
        >>> contact("floor", corners("crate", 0.2, 0.1), ground, friction=0.5).bodies
        ('crate', 'ground')
        >>> slopes = [[(0, 0), (-2, 2), (-2, -2)], [(0, 0), (2, -2), (2, 2)]]  # of a groove
        >>> ball = sphere("ball", 0.2)
        >>> len([contact(f"slope{k}", ball, distance_field("ground", x)) for k, x in enumerate(slopes)])
        2
    """
    who = f"distance_field of {body!r}"
    given = {"spacing": spacing, "margin": margin, "at": at, "turned": turned}
    kept = {k: number("distance_field", body, k, x) for k, x in given.items()}
    if is_traced((surface, kept["spacing"], kept["margin"])):
        raise InputError(
            f"{who}: the surface is traced; give numbers, and vary control with problem.replace"
        )
    form: Any
    if region is None:
        closed = faces is not None
        form = triangles(who, surface, faces) if closed else outline(who, surface)
        low, high = np.min(form.points, axis=0), np.max(form.points, axis=0)
    else:
        form = Given(surface, who)
        low, high = _region(who, region)
    longest = float(np.max(high - low))
    step = longest / (128.0 if len(low) == 2 else 32.0) if kept["spacing"] is None else kept["spacing"]
    wide = 0.0 if region is not None else 0.25 * longest if kept["margin"] is None else kept["margin"]
    many = tuple(int(n) for n in np.ceil((high - low + 2.0 * wide) / step * (1.0 - 1e-12)) + 1)
    if np.prod(many, dtype=float) > 2**22:
        raise InputError(
            f"{who}: spacing = {step} makes a grid of {' x '.join(map(str, many))} points; give a larger "
            "spacing"
        )
    first = 0.5 * (low + high) - 0.5 * step * (np.array(many) - 1.0)
    control = _control(form, tuple(first), step, many)
    corner, (points, drawn) = first - step, form.drawn
    shown: Any = points if len(points) else _near_surface(control, corner, step)
    own = DistanceField(
        control=control, corner=corner, spacing=step, surface=shown, faces=drawn, at=kept["at"],
        turned=kept["turned"],
    )  # fmt: skip
    return Shape("distance_field", body, own)


def _region(who: str, region: Any) -> np.ndarray:
    """Lowest and highest corner (2, d) of a grid."""
    ends = np.asarray(region, float)
    if ends.ndim != 2 or ends.shape[0] != 2 or ends.shape[1] not in (2, 3) or not np.all(ends[0] < ends[1]):
        raise InputError(
            f"{who}: region = {region}; give its lowest and its highest corner, (2,) or (3,) each"
        )
    return ends


@functools.lru_cache(maxsize=8)  # the largest take 32 MB each
def _control(form: Any, first: tuple[float, ...], step: float, many: tuple[int, ...]) -> Any:
    """Control points of the distances, one more than the grid has at each border."""
    axes = [x + step * np.arange(n) for x, n in zip(first, many, strict=True)]
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(many))
    found = form.distance(places).reshape(many)
    for k, n in enumerate(many):
        rows = (4.0 * np.eye(n + 2) + np.eye(n + 2, k=1) + np.eye(n + 2, k=-1)) / 6.0
        rows[0, :5] = rows[-1, -5:] = (1.0, -4.0, 6.0, -4.0, 1.0)
        found = np.moveaxis(np.tensordot(np.linalg.inv(rows)[:, 1:-1], found, (1, k)), 0, k)
    return np.ascontiguousarray(found)


def _near_surface(control: np.ndarray, corner: np.ndarray, step: float) -> np.ndarray:
    """Points of the grid next to the surface, moved to it along the gradient."""
    inner = (slice(1, -1),) * control.ndim
    slopes = np.stack(np.gradient(control, step), axis=-1)[inner]
    near = np.abs(control[inner]) < 0.5 * step
    places = corner + step * (np.argwhere(near) + 1.0)
    slope = slopes[near]
    size = np.maximum(np.sum(slope * slope, axis=1), 0.25)
    return places - (control[inner][near] / size)[:, None] * slope


# The spline, and the distance of a point from the shape.


def _weights(s: Array) -> tuple[Array, Array]:
    """Weights (4,) of the control points around a cell, and their derivatives, at a share of its edge."""
    r = 1.0 - s
    value = [r * r * r, 4.0 + s * s * (3.0 * s - 6.0), 4.0 + r * r * (3.0 * r - 6.0), s * s * s]
    slope = [-r * r, s * (3.0 * s - 4.0), r * (4.0 - 3.0 * r), s * s]
    return jnp.stack(value) / 6.0, jnp.stack(slope) / 2.0


def interpolated(x: DistanceField, point: Array) -> tuple[Array, Array]:
    """Value and gradient (d,) of the spline at a point (d,) of the grid."""
    control = jnp.asarray(x.control, float)
    share = (point - jnp.asarray(x.corner)) / x.spacing
    cell = jnp.clip(jnp.floor(share).astype(int), 1, np.array(control.shape) - 3)
    slopes: list[Array] = []
    value = lax.dynamic_slice(control, tuple(cell - 1), (4,) * control.ndim)
    for k in range(control.ndim):
        wide = (4,) + (1,) * (control.ndim - 1 - k)
        own, rate = (w.reshape(wide) for w in _weights(share[k] - cell[k]))
        slopes = [jnp.sum(own * y, axis=0) for y in slopes] + [jnp.sum(rate * value, axis=0)]
        value = jnp.sum(own * value, axis=0)
    return value, jnp.stack(slopes) / x.spacing


def distance_from(x: DistanceField, point: Array) -> tuple[Array, Array]:
    """Distance of a point (d,) in the axes of the shape, and its direction.

    Beyond the grid, with the nearest point ``y`` of the grid: ``|x - y + f(y) n(y)|``, the distance from
    the foot of ``y``. It is that of the surface or larger, and positive.
    """
    half = 0.5 * x.spacing * (np.array(np.shape(x.control)) - 3.0)
    middle = jnp.asarray(x.corner) + x.spacing + half
    apart = point - middle
    inside = middle + within(apart, half)
    value, slope = interpolated(x, inside)
    _, normal = lengthened(slope, np.eye(point.shape[0])[0])
    beyond = point - inside
    away, way = lengthened(beyond + value * normal, normal)
    out = jnp.any(jnp.abs(apart) > half)  # within the grid, ``beyond`` is zero but for rounding
    return jnp.where(out, away, value), jnp.where(out, way, normal)


# Contacts of points and balls.


def _count(part: Part, numbers: Any, dimension: int) -> int:
    kind = part.option("shapes")[0]
    if kind in ("points", "hull"):
        return len(numbers.first.at if kind == "points" else numbers.first.vertices)
    return {"sphere": 1, "capsule": 2}.get(kind) or corners_of(part, numbers, dimension)


def _meet(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    a, x, first = scene.algebra, numbers.second, numbers.first
    points = {**POINTS, "hull": vertices_of}[part.option("shapes")[0]](scene, part.bodies[0], first)
    own, body = turn_of(x.turned, scene.dimension), scene.frame(part.bodies[1]).turn
    origin = scene.point(part.bodies[1], x.at)
    many = _count(part, numbers, scene.dimension)
    local = _columns(scene, a.turned_back(own, a.turned_back(body, a.subtract(points, origin))), many)
    away, normal = jax.vmap(lambda y: distance_from(x, y), 1, (0, 1))(local)
    normal = _columns(scene, a.turned(body, a.turned(own, a.vector(normal))), many)
    radius = getattr(first, "radius", None)
    radius, points = 0.0 if radius is None else radius, _columns(scene, points, many)
    return ShapeContacts(away - radius, points - radius * normal, points - away * normal, normal)


def _columns(scene: Scene, x: Any, many: int) -> Array:
    """Vectors of the algebra as an array (d, many)."""
    if scene.dimension == 3:
        return scene.algebra.many(x, many)
    return jnp.stack([jnp.broadcast_to(scene.algebra.value(y), (many,)) for y in x])


def _check(name: str, first: Any, second: Any) -> None:
    """Refuse balls that are smaller than a cell, or reach beyond the grid."""
    radius, control = getattr(first, "radius", None), second.control
    if radius is None or is_traced((radius, control)):
        return
    if radius < second.spacing:
        raise InputError(
            f"contact {name!r}: the radius {radius:.4g} is below the spacing {second.spacing:.4g} of the "
            f"distance_field; give it spacing={0.5 * radius:.4g}"
        )
    reach = min(float(np.min(y)) for k in range(control.ndim) for y in np.moveaxis(control, k, 0)[[1, -2]])
    if radius > reach:
        wider = f"give distance_field a margin={1.1 * radius:.4g}, or a larger region"
        raise InputError(
            f"contact {name!r}: the radius {radius:.4g} is above {reach:.4g}, the distance of the grid's "
            f"border from the shape; {wider if reach > 0.0 else 'give a shape that ends within the grid'}"
        )
    if _narrow(second, radius):
        warnings.warn(
            f"contact {name!r}: hollows of the distance_field are narrower than the radius {radius:.4g} "
            "and four spacings; a sphere that touches them at two places has one contact, along the mean "
            "of both normals: give each smooth piece of the surface a distance_field and a contact of its "
            "own, or a smaller spacing",
            stacklevel=4,
        )


def _narrow(x: DistanceField, radius: float) -> bool:
    """Whether the surface at the distance ``radius`` from the shape has hollows whose radius is less than
    four spacings: the largest curvature is that of the distance, by differences, over its slope. Kinks
    between normals that are forty degrees apart are such hollows: the slope jumps over two spacings.
    """
    value, many = np.asarray(x.control), np.ndim(x.control)
    for k in range(many):
        y = np.moveaxis(value, k, 0)
        value = np.moveaxis(y[:-2] + 4.0 * y[1:-1] + y[2:], 0, k) / 6.0
    near, slopes = np.abs(value - radius) < x.spacing, np.gradient(value)
    bent = np.stack([np.stack([y[near] for y in np.gradient(z)], axis=-1) for z in slopes], axis=-1)
    steep = np.sqrt(sum(y[near] ** 2 for y in slopes))
    return bool(np.any(-np.linalg.eigvalsh(0.5 * (bent + np.swapaxes(bent, -1, -2)))[:, 0] > 0.25 * steep))


def _lacks(body: str, x: Any, dimension: int) -> str | None:
    own = np.ndim(x.control)
    if own == dimension:
        return None
    return f"a distance_field with {own} axes in a mechanism with {dimension}; give points (n, {dimension})"


def _drawn(scene: Scene, name: str, body: str, x: Any) -> tuple[shapes.Shape, ...]:
    """The outline or the triangles, or points of the surface."""
    kind = "mesh" if x.faces else "area" if scene.dimension == 2 else "dots"
    own = x.turned if scene.dimension == 2 else rotation_of(x.turned)
    points = jnp.asarray(x.surface, float)
    return (symbols.on_body(scene, name, body, x.at, points, own, kind=kind, faces=x.faces),)


PAIRS = tuple(
    PairKind(x, "distance_field", _meet, 1 if x == "sphere" else _count, check=_check, unit_slope=False)
    for x in ("sphere", "points", "corners", "box", "capsule", "hull")
)

KIND = ShapeKind("distance_field", _drawn, PAIRS, lacks=_lacks)
