"""Pictures of the shapes of contacts: functions ``(scene, name, body, numbers)``."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.multibody.contacts import profiles
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.spatial_vectors import rotation_of
from nsjax.multibody.parts import GROUND
from nsjax.shapes import Shape
from nsjax.types import Array

KNOT = 4
"""Points drawn for each control point of a profile."""


def _turn(scene: Scene, body: str) -> Any:
    """Rotation of a body as `nsjax.shapes.placed` takes it: a matrix, or an angle in the plane."""
    frame = scene.frame(body)
    if scene.dimension == 3 or frame.turn is None:
        return frame.turn
    return jnp.arctan2(plane.value(frame.turn[0]), plane.value(frame.turn[1]))


def on_body(scene: Scene, body: str, place: Any, local: Any, own: Any = None) -> Array:
    """Points of a shape around the point ``place`` of a body, rotated by ``own`` relative to the body."""
    if own is not None:
        local = shapes.placed(local, jnp.zeros(scene.dimension), own)
    return shapes.placed(local, scene.position(body, place), _turn(scene, body))


def _angle(axis: Any) -> Any:
    """Angle of an axis of the plane."""
    return None if axis is None else jnp.arctan2(jnp.asarray(axis[1]), jnp.asarray(axis[0]))


def _round(scene: Scene, body: str, kind: str, x: Any) -> Array:
    """Points of a sphere, capsule, cylinder or hole: of an outline in the plane, of a mesh in space."""
    axis = getattr(x, "axis", None)
    half = getattr(x, "half_length", None)
    long = axis is not None if kind == "hole" else kind in ("capsule", "cylinder")
    if scene.dimension == 2:
        if not long or half is None:
            return on_body(scene, body, x.at, shapes.disc(x.radius, kind == "sphere"))
        return on_body(scene, body, x.at, shapes.stadium(half, x.radius), _angle(axis))
    if not long or half is None:
        heights, radii = shapes.ball_rings(x.radius)
    elif kind == "capsule":
        heights, radii = shapes.capsule_rings(x.radius, half)
    else:
        heights, radii = shapes.cylinder_rings(x.radius, half)
    return on_body(scene, body, x.at, shapes.lathe(heights, radii, axis))


def role_of(body: str) -> str:
    """Role, in a picture, of shapes on a body."""
    return "ground" if body == GROUND else "body"


def of_points(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """Points as dots."""
    points = on_body(scene, body, None, jnp.asarray(x.at, float))
    return (Shape(points=points, name=name, kind="dots", role=role_of(body)),)


def of_sphere(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """A ball or disc; without a radius a dot."""
    if x.radius is None:
        points = scene.position(body, x.at)[None]
        return (Shape(points=points, name=name, kind="dots", role=role_of(body)),)
    return _turned(scene, name, body, x, "sphere")


def of_capsule(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """A capsule."""
    return _turned(scene, name, body, x, "capsule")


def of_cylinder(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """A cylinder."""
    return _turned(scene, name, body, x, "cylinder")


def of_hole(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """The border of a hollow."""
    return _turned(scene, name, body, x, "hole")


def _turned(scene: Scene, name: str, body: str, x: Any, kind: str) -> tuple[Shape, ...]:
    """A body of revolution, or its section in the plane."""
    points, role = _round(scene, body, kind, x), role_of(body)
    if scene.dimension == 2:
        shown = "line" if kind == "hole" else "area"
        return (Shape(points=points, name=name, kind=shown, role=role),)
    faces = shapes.lathe_faces(points.shape[0] // shapes.AROUND)
    role = "ground" if kind == "hole" else role
    return (Shape(points=points, name=name, kind="mesh", role=role, faces=faces),)


def of_box(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """A box or rectangle."""
    if scene.dimension == 2:
        local = shapes.rectangle(x.half_length, x.half_height)
        points = on_body(scene, body, x.at, local, x.turned)
        return (Shape(points=points, name=name, kind="area", role=role_of(body)),)
    half = jnp.stack([jnp.asarray(k, float) for k in (x.half_length, x.half_height, x.half_depth)])
    points = on_body(scene, body, x.at, shapes.box(half), rotation_of(x.turned))
    return (Shape(points=points, name=name, kind="mesh", role=role_of(body), faces=shapes.BOX_FACES),)


def of_hull(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """The triangles of a hull."""
    points = on_body(scene, body, None, jnp.asarray(x.vertices, float))
    return (Shape(points=points, name=name, kind="mesh", role=role_of(body), faces=x.faces),)


def of_profile(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """A cam."""
    control = jnp.asarray(x.control, float)
    knots = np.arange(KNOT * control.shape[0] + 1) / KNOT
    points = jax.vmap(lambda s: profiles.evaluated(control, s)[0])(knots)
    return (Shape(points=on_body(scene, body, None, points), name=name, kind="area", role=role_of(body)),)


def of_plane(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """The border of a half space."""
    a = scene.algebra
    up = np.eye(scene.dimension)[-1] if x.normal is None else x.normal
    normal = a.array(a.turned(scene.frame(body).turn, a.vector(jnp.asarray(up, float))))
    return (shapes.level(scene.position(body, x.at), normal, name),)


def of_walls(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """The two walls of a guide."""
    a = scene.algebra
    normal = a.array(a.turned(scene.frame(body).turn, (None, 1.0)))
    heights = ((x.lower, normal, "lower"), (x.upper, -normal, "upper"))
    zero = jnp.zeros(())
    return tuple(
        shapes.level(scene.position(body, jnp.stack([zero, jnp.asarray(y, float)])), n, f"{name} {which}")
        for y, n, which in heights
    )


def no_picture(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """Nothing: a beam is drawn itself."""
    return ()
