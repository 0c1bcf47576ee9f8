"""Functions that make shapes of bodies, and the part `contact` between two shapes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from nsjax.core import InputError
from nsjax.core.arguments import check_switches
from nsjax.core.errors import optional
from nsjax.multibody import numbers
from nsjax.multibody.contacts import curves, hulls
from nsjax.multibody.contacts.all_shapes import PAIRS
from nsjax.multibody.contacts.shape import Shape
from nsjax.multibody.contacts.turning_friction import along_grain, coefficients
from nsjax.multibody.meshes import checked
from nsjax.multibody.parts import GROUND, Part, made, number, unit
from nsjax.types import is_traced


def point(body: str, at: Any = None) -> Shape:
    """A point of a body.

    Args:
        body: name of the body.
        at: position in body axes [m]; a number lies on the x axis, None is the origin.

    Example:
        >>> from nsjax.multibody import point
        >>> point("rod", 0.3).numbers.at
        0.3
    """
    return Shape("sphere", body, numbers.Ball(radius=None, at=number("point", body, "at", at)))


def points(body: str, at: Any) -> Shape:
    """Points of a body, each with a contact of its own.

    Args:
        body: name of the body.
        at: (k, 2) or (k, 3) positions in body axes [m].

    Raises:
        InputError: for an array that is not (n, 2) or (n, 3).

    Example:
        >>> from nsjax.multibody import points
        >>> points("table", [(-0.5, 0.0), (0.5, 0.0)]).numbers.at.shape
        (2, 2)
    """
    at = number("points", body, "at", at)
    if np.ndim(at) != 2:
        raise InputError(f"points of {body!r}: at has shape {np.shape(at)}; give (n, 2) or (n, 3)")
    return Shape("points", body, numbers.Points(at=at))


def corners(body: str, half_length: Any, half_height: Any, half_depth: Any = None, at: Any = None) -> Shape:
    """The four corners of a rectangle, or the eight of a box, around the origin of body axes or ``at``.

    The order is upper left, upper right, lower left, lower right; in space the four corners of positive
    depth come first.

    Args:
        body: name of the body.
        half_length, half_height, half_depth: half edges along x, y, z of the body [m].
        at: centre in body axes [m].

    Example:
        >>> from nsjax.multibody import contact, corners, walls
        >>> guide = contact("guide", corners("slider", 0.05, 0.025), walls(-0.026, 0.026), restitution=0.4)
        >>> guide.bodies
        ('slider', 'ground')
    """
    given = {"half_length": half_length, "half_height": half_height, "half_depth": half_depth}
    kept = {k: number("corners", body, k, v, 0.0) for k, v in given.items()}
    return Shape("corners", body, numbers.Corners(**kept, at=number("corners", body, "at", at)))


def sphere(body: str, radius: Any, at: Any = None) -> Shape:
    """A sphere of a ``radius`` [m], or disc in the plane, of the ``body`` with its centre ``at`` a point in
    body axes [m].

    Example:
        >>> from nsjax.multibody import sphere
        >>> sphere("ball", 0.1).numbers.radius
        0.1
    """
    kept = number("sphere", body, "radius", radius, 0.0)
    return Shape("sphere", body, numbers.Ball(radius=kept, at=number("sphere", body, "at", at)))


def box(
    body: str, half_length: Any, half_height: Any, half_depth: Any = None, *, at: Any = None,
    turned: Any = None,
) -> Shape:  # fmt: skip
    """A rectangle, or a box in space, around the origin of body axes or ``at``.

    Args:
        body: name of the body.
        half_length, half_height, half_depth: half edges along the axes x, y, z of the box [m].
        at: centre in body axes [m].
        turned: rotation of the axes of the box relative to the body: an angle [rad] in the plane, a
            rotation vector (3,) in space.

    Example:
        >>> from nsjax.multibody import box, contact, plane
        >>> contact("floor", box("crate", 0.3, 0.2, 0.1), plane(), friction=0.5).bodies
        ('crate', 'ground')
    """
    given = {"half_length": half_length, "half_height": half_height, "half_depth": half_depth}
    kept = {k: number("box", body, k, v, 0.0) for k, v in given.items()}
    more = {"at": number("box", body, "at", at), "turned": number("box", body, "turned", turned)}
    return Shape("box", body, numbers.Corners(**kept, **more))


def _round(kind: str, body: str, radius: Any, half_length: Any, at: Any, axis: Any) -> Shape:
    half_length = number(kind, body, "half_length", half_length, 0.0)
    kept = numbers.Round(
        radius=number(kind, body, "radius", radius, 0.0), at=number(kind, body, "at", at),
        axis=unit(kind, body, "axis", axis), half_length=half_length,
    )  # fmt: skip
    return Shape(kind, body, kept)


def capsule(body: str, radius: Any, half_length: Any, *, at: Any = None, axis: Any = None) -> Shape:
    """A cylinder with half spheres at its ends; in the plane a rectangle with half discs.

    Args:
        body: name of the body.
        radius: [m].
        half_length: half the distance between the centres of the half spheres [m].
        at: centre in body axes [m].
        axis: unit vector in body axes; None: the x axis of the body.

    Raises:
        InputError: for an axis that is no unit vector.

    Example:
        >>> from nsjax.multibody import capsule
        >>> capsule("limb", 0.02, 0.15, axis=(0.0, 1.0)).numbers.half_length
        0.15
    """
    return _round("capsule", body, radius, half_length, at, axis)


def cylinder(body: str, radius: Any, half_length: Any, *, at: Any = None, axis: Any = None) -> Shape:
    """A cylinder with flat ends, in space.

    Args:
        body, radius, at, axis: see `capsule`.
        half_length: of the cylinder [m].

    Raises:
        InputError: see `capsule`.

    Example:
        >>> from nsjax.multibody import contact, cylinder, plane
        >>> contact("table", cylinder("can", 0.03, 0.06, axis=(0.0, 0.0, 1.0)), plane()).bodies
        ('can', 'ground')
    """
    return _round("cylinder", body, radius, half_length, at, axis)


def hull(body: str, points: Any) -> Shape:
    """The convex hull of points of a body, in space; points within it are left out.

    The parameter of the hull is ``vertices`` (n, 3) in body axes [m], in the order of the points; its faces
    are triangles between them, computed here.

    Args:
        body: name of the body.
        points: (k, 3) in body axes [m].

    Raises:
        InputError: for points that span no volume, or are traced.

    Limits: the faces stay as they are when vertices are varied: the hull must stay convex. On a plane its
    vertices are the contacts, at most eight: the deepest one, and those on which the hull would rest if it
    were tilted by three degrees. It also meets hulls, boxes, capsules, cylinders, spheres and points. Two
    hulls compare all faces of each with all vertices of the other; hulls of hundreds of vertices are slow.

    Example:
        >>> from nsjax.multibody import contact, hull, plane
        >>> solid = hull("rock", [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.1, 0.1, 0.1)])
        >>> solid.numbers.vertices.shape
        (4, 3)
        >>> contact("floor", solid, plane(), friction=0.5).bodies
        ('rock', 'ground')
    """
    points = number("hull", body, "points", points)
    if is_traced(points):
        raise InputError(
            f"hull of {body!r}: points = {points} are traced; give numbers, and vary vertices with "
            "problem.replace"
        )
    vertices, faces = hulls.prepared(body, points)
    return Shape("hull", body, numbers.Hull(vertices=vertices, faces=faces))


def convex_pieces(
    body: str, points: Any, faces: Any, *, concavity: float = 0.05, most: int = 32
) -> list[Shape]:  # fmt: skip
    """A closed surface, of a cup or a hook, as convex pieces that fill it: a `hull` each, in space.

    Give each piece a contact of its own, and all of them as ``shape`` to `body`.

    Args:
        body: name of the body.
        points: (n, 3) in body axes [m].
        faces: (m, 3) indices of the points of each triangle, counter-clockwise seen from outside.
        concavity: largest depth of a hollow that is filled, in (0, 1), relative to the size of the shape.
        most: largest number of pieces; with fewer than needed, neighbours become one.

    Raises:
        InputError: for points and faces that are none, for a concavity and a number out of range, and for a
            surface that encloses no volume.
        MissingPackageError: without the package `coacd`, ``pip install 'nsjax[pieces]'``.

    Limits: the pieces are found once, in seconds for thousands of triangles, and kept for equal arguments.
    They approximate the surface, and meet the surface of other pieces: a body that slides along a seam
    feels no edge, since pieces are flush, up to the concavity.

    Source: Wei and others, *Approximate convex decomposition for 3D meshes with collision-aware concavity
    and tree search*, ACM Trans. Graph. 41 (2022).

    Example:
        >>> from nsjax.multibody import convex_pieces
        >>> convex_pieces("cup", [(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)])
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: surface of 'cup' encloses no volume; give a closed one, of triangles
    """
    given, triangles = checked(f"surface of {body!r}", points, faces)
    if not 0.0 < concavity < 1.0:
        raise InputError(f"surface of {body!r}: concavity = {concavity!r}; give a number in (0, 1)")
    if not most >= 1:
        raise InputError(f"surface of {body!r}: most = {most!r}; give a number of pieces, at least 1")
    if not volume(given, triangles) > 0.0:
        raise InputError(f"surface of {body!r} encloses no volume; give a closed one, of triangles")
    found = _pieces(given.tobytes(), triangles.astype(np.int64).tobytes(), float(concavity), int(most))
    return [hull(body, x) for x in found]


def volume(points: np.ndarray, faces: Any) -> float:
    """Volume that a closed surface encloses [m^3], and rounding for an open or flat one."""
    faces = np.asarray(faces)
    a, b, c = (points[faces[:, k]] - points.mean(axis=0) for k in range(3))
    enclosed = float(np.sum(a * np.cross(b, c))) / 6.0
    least = 1e-9 * float(np.prod(np.maximum(np.ptp(points, axis=0), 1e-300)))
    return enclosed if abs(enclosed) > least else 0.0


@functools.lru_cache(maxsize=64)
def _pieces(points: bytes, faces: bytes, concavity: float, most: int) -> tuple[np.ndarray, ...]:
    """Vertices of the pieces, kept in memory."""
    coacd = optional("convex pieces need", "pieces", "coacd")
    coacd.set_log_level("error")
    given = np.frombuffer(points, float).reshape(-1, 3)
    surface = coacd.Mesh(given, np.frombuffer(faces, np.int64).reshape(-1, 3))
    found = coacd.run_coacd(surface, threshold=concavity, max_convex_hull=most, seed=0)
    return tuple(_exact(np.array(vertices, float), given) for vertices, _ in found)


def _exact(vertices: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Vertices with the rounding of 32 bits, moved to the points of the surface and into its box."""
    size = float(np.max(np.ptp(points, axis=0)))
    apart = np.linalg.norm(vertices[:, None] - points[None], axis=2)
    nearest = np.argmin(apart, axis=1)
    same = np.min(apart, axis=1) < 1e-6 * size
    found = np.where(same[:, None], points[nearest], vertices)
    return np.clip(found, points.min(axis=0), points.max(axis=0))


def hole(body: str, radius: Any, *, at: Any = None, axis: Any = None, half_length: Any = None) -> Shape:
    """A hollow in which a sphere, or a disc in the plane, has its clearance.

    Args:
        body: name of the body.
        radius: of the hollow [m].
        at: centre of the hollow in body axes [m].
        axis: unit vector in body axes; None: a round hole in the plane, a socket in space. An axis makes a
            hollow cylinder (a slot in the plane), without ends for ``half_length`` None.
        half_length: half length of the axis of a slot with round ends [m].

    Raises:
        InputError: for a half length without an axis, and an axis that is no unit vector.

    Example:
        >>> from nsjax.multibody import contact, hole, sphere
        >>> bearing = contact("bearing", sphere("shaft", 0.0099), hole("ground", 0.01), friction=0.1)
    """
    if half_length is not None and axis is None:
        raise InputError(
            f"hole of {body!r}: half_length = {half_length} without axis; give axis, or neither"
        )
    return _round("hole", body, radius, half_length, at, axis)


def profile(body: str, curve: Any, *, samples: int = curves.SAMPLES) -> Shape:
    """A closed curve in the plane, a cam, filled: the periodic cubic spline through points.

    Args:
        body: name of the body.
        curve: points (n, 2) in body axes [m], with or without the first one repeated as the last; or a
            function of an angle in [0, 2 pi] that returns ``(x, y)``.
        samples: number of angles at which a function is evaluated.

    Raises:
        InputError: for curves that are open or cross themselves.

    Limits: the curve must be smooth: a corner is rounded over about two points. Where two points of the
    curve are equally near, the contact is at one of them.

    Example:
        >>> import numpy as np
        >>> from nsjax.multibody import profile
        >>> egg = profile("cam", lambda a: (0.03 * np.cos(a), 0.02 * np.sin(a)), samples=32)
        >>> egg.numbers.control.shape
        (32, 2)
    """
    control = curves.control_points(f"profile of {body!r}", curve, samples)
    return Shape("profile", body, numbers.Profile(control=control))


def tube(beam: str, radius: Any) -> Shape:
    """The surface of a whole beam of circular section: all points at a radius from its axis.

    The axis is smooth: a cubic between neighbouring nodes, tangential to directions that turn with the
    nodes. A contact acts on the two nodes beside it, with forces and moments.

    Args:
        beam: name of the beam.
        radius: [m].

    As the first shape of a contact, a tube has one contact around each of its nodes, at the point within
    half an element that is nearest to the other shape. A beam that lies on a plane or on another beam thus
    rests on all of its nodes; crossing beams and rolling rings touch at the nearest points of both axes.
    Give the beam with the shorter elements as the first shape. Sections are circles perpendicular to the
    axis, so that the gap between two surfaces is the distance of the axes less both radii; both forces act
    in the middle of the gap, and change neither momentum nor moment of momentum.

    Limits: a `sphere` or `point` has one contact, searched from the nearest node. Where the slope of a
    distance changes by less than 1e-3 over an element, the contact is at a fixed point of the beam near a
    node, whose gap exceeds the least one by at most 3e-6 of an element. Within half an element one contact
    is found; its point on a second beam is searched from the nearest of the nodes and middles of elements
    there. A beam does not meet itself. A beam whose last node coincides with its first is a ring, which a
    joint `fixed` between its ends closes. The reference shape of the nodes, when the mechanism is made,
    decides their directions.

    Example:
        >>> from nsjax.multibody import contact, sphere, tube
        >>> contact("nose", sphere("follower", 0.01), tube("ring", 0.005)).bodies
        ('follower', 'ring')
        >>> contact("crossing", tube("upper", 0.01), tube("lower", 0.01), friction=0.2).bodies
        ('upper', 'lower')
    """
    return Shape("tube", beam, numbers.Tube(radius=number("tube", beam, "radius", radius, 0.0)))


def plane(body: str = GROUND, *, at: Any = None, normal: Any = None) -> Shape:
    """A half space, or half plane.

    Args:
        body: name of the body.
        at: a point of the border in body axes [m]; None: the origin.
        normal: unit outward normal in body axes; None: along y in the plane, along z in space.

    Raises:
        InputError: for a normal that is no unit vector.

    Example:
        >>> from nsjax.multibody import plane
        >>> plane(normal=(0.6, 0.8)).body
        'ground'
    """
    kept = unit("plane", body, "normal", normal)
    return Shape("plane", body, numbers.Plane(at=number("plane", body, "at", at), normal=kept))


def walls(lower: Any, upper: Any, body: str = GROUND) -> Shape:
    """The two walls of a guide along the x axis of its body, in the plane. Corners meet the wall on their
    own side of the body, points the upper wall first.

    Args:
        lower, upper: heights of the walls [m].
        body: name of the body that carries the walls.

    Raises:
        InputError: for walls in the wrong order.

    Limits: the body between the walls must not turn over; two `plane` shapes have no such limit.

    Example:
        >>> from nsjax.multibody import walls
        >>> walls(-0.026, 0.026).numbers.upper
        0.026
    """
    low, high = number("walls", body, "lower", lower), number("walls", body, "upper", upper)
    if not is_traced((low, high)) and not np.all(np.asarray(low) < np.asarray(high)):
        raise InputError(f"walls of {body!r}: lower = {low}, upper = {high}; lower must be below upper")
    return Shape("walls", body, numbers.Walls(lower=low, upper=high))


def contact(
    name: str, first: Shape, second: Shape, *, restitution: Any = 0.0, restitution_tangential: Any = 0.0,
    friction: Any = None, friction_sliding: Any = None, friction_speed: Any = None,
    restitution_speed: Any = None, grain: Any = None, poisson: Any = False,
) -> Part:  # fmt: skip
    """A contact between two shapes.

    Args:
        name: of the contact.
        first, second: two shapes, in the order of their entry in the table of pairs.
        restitution, restitution_tangential: ``e_N``, ``e_T`` in [0, 1]; numbers, or one per point.
        friction: Coulomb's ``mu``; None: frictionless, which makes a smaller problem if all contacts are.
            ``(sliding, torsional, rolling)``: ``mu``, and the lengths ``mu_s`` and ``mu_r`` [m] of
            friction against spinning about the normal and against rolling; a plain zero leaves its rows
            out. In ``params[name]`` these are ``friction``, ``torsional`` and ``rolling``.
        friction_sliding, friction_speed: friction falls from ``friction`` at rest to this coefficient, and
            has fallen by 63 % at this sliding speed [m/s] (`nsjax.contact.SpeedLaw`). None: it does not
            depend on the speed.
        restitution_speed: restitution falls with the speed of impacts from this one on [m/s]; None: it does
            not.
        grain: in space, a direction (3,) in the axes of the second body, or ``(body, direction)`` in those
            of another: friction is then a pair ``(mu_1, mu_2)``, along the grain (as seen in the tangent
            plane) and across it. In ``params[name]`` these are ``friction`` and ``friction_across``. Where
            it turns into the normal, any tangent takes its place.
        poisson: restitution is that of impulses, of compression and expansion, in place of velocities
            (`nsjax.contact.PoissonLaw`, with the schemes that take it). All contacts of a mechanism have
            one law; stops of joints follow it.

    Raises:
        InputError: for shapes that do not meet, or stand on one body, and negative coefficients.

    With a grain, forces lie in an ellipse, and dissipate most among its forces (MuJoCo's elliptic cones)::

        (lambda_1 / mu_1)^2 + (lambda_2 / mu_2)^2 <= lambda_N^2,
        lambda_i = -lambda_N mu_i^2 u_i / |(mu_1 u_1, mu_2 u_2)|   where it slides

    so that the force is not against the sliding unless along an axis of the ellipse. This is Coulomb's law
    of the slips ``(u_1, mu_2 u_2 / mu_1)``, which all schemes and certificates see: entries
    ``force_tangential`` of a run are ``(lambda_1, mu_1 lambda_2 / mu_2)``; ``traj.contact`` and pictures
    have the forces.

    The guide's table of pairs tells which shapes meet, and in how many contacts. One contact is at the
    nearest points; the others support a body that lies on a face or along a side.

    With the angular velocity ``w`` of the first body against the second, the moments about the normal
    ``n`` and about both tangents ``t`` follow the normal force ``lambda_N``, and in impacts its impulse::

        |m_n| <= mu_s lambda_N,   m_n = -mu_s lambda_N sign(w . n)   where it spins
        |m_t| <= mu_r lambda_N,   m_t = -mu_r lambda_N sign(w . t)   where it rolls

    ``traj.dry_friction_force`` and ``traj.dry_friction_impulse`` hold these moments as ``"floor.spin"``,
    ``"floor.roll1"`` and ``"floor.roll2"``; in the plane as ``"floor.roll"``.

    Limits: those of the pair, listed in the same table. Torsional and rolling friction work with schemes of
    Moreau, theta and Gear, Gupta, Leimkuhler, between rigid bodies, without a capacity of groups. Each
    row has a bound of its own: rolling between the directions of both tangents is resisted by up to
    ``sqrt(2) mu_r lambda_N``.

    Example:
        >>> from nsjax.multibody import contact, plane, sphere
        >>> contact("floor", sphere("ball", 0.1), plane(), restitution=0.8).bodies
        ('ball', 'ground')
    """
    for shape in (first, second):
        if not isinstance(shape, Shape):
            raise InputError(
                f"contact {name!r}: {shape!r} is no shape; give point(body), sphere(body, radius), plane() "
                "or another one"
            )
    known = PAIRS.get((first.kind, second.kind))
    if known is None:
        partners = ", ".join(other for one, other in PAIRS if one == first.kind) or "no shape"
        hint = "exchange them" if (second.kind, first.kind) in PAIRS else f"{first.kind} meets {partners}"
        raise InputError(
            f"contact {name!r}: no pair of {first.kind} and {second.kind}, in this order; {hint}"
        )
    if known.check is not None:
        known.check(name, first.numbers, second.numbers)
    if first.body == second.body:
        raise InputError(f"contact {name!r}: both shapes stand on {first.body!r}; name two bodies")
    law = {"restitution": restitution, "restitution_tangential": restitution_tangential}
    kept = {k: number("contact", name, k, v, 0.0) for k, v in law.items()}
    of_direction, options = along_grain(name, friction, grain, first, second)
    kept |= of_direction or coefficients(name, friction)
    check_switches(f"contact {name!r}", poisson=poisson)
    options |= {"poisson": True} if poisson else {}
    falls = {"friction_sliding": friction_sliding, "friction_speed": friction_speed}
    if any(x is not None for x in falls.values()) and None in (friction, *falls.values()):
        raise InputError(
            f"contact {name!r}: friction = {friction}, friction_sliding = {friction_sliding} and "
            f"friction_speed = {friction_speed}; give all three: the coefficient at rest, that of fast "
            "sliding, and the speed of the fall"
        )
    falls |= {"restitution_speed": restitution_speed}
    kept |= {k: number("contact", name, k, x, 0.0) for k, x in falls.items()}
    both = numbers.Contact(first=first.numbers, second=second.numbers, **kept)
    return made(
        "contact", name, (first.body, second.body), both, shapes=(first.kind, second.kind), **options
    )
