"""Pictures of joints, of what acts in them, and of wheels: pins, supports, guides, stops, drives."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.multibody import symbols
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.couplings import KINDS as COUPLINGS
from nsjax.multibody.joints import KINDS as JOINTS
from nsjax.multibody.joints import kind_of
from nsjax.multibody.joints.joint_kind import axis_of
from nsjax.multibody.loads import has_line
from nsjax.multibody.parts import GROUND, Part
from nsjax.multibody.topology import Topology
from nsjax.shapes import Shape
from nsjax.types import Array, PyTree


def axis_in_ground(scene: Scene, part: Part, x: Any) -> Array:
    """Unit axis of a joint in the axes of the ground; of a hinge in the plane, the x axis."""
    a = scene.algebra
    return a.array(a.turned(scene.frame(part.bodies[0]).turn, axis_of(x, scene.dimension)))


def ends_of(scene: Scene, part: Part, x: Any) -> tuple[Array, Array]:
    """Joint points of the first and of the second body [m]."""
    return scene.position(part.bodies[0], x.at), scene.position(part.bodies[1], x.on)


def around_axis(scene: Scene, part: Part, x: Any) -> list[Array]:
    """Two unit vectors in the plane in which a hinge turns."""
    if scene.dimension == 2:
        return list(jnp.eye(2))
    return symbols.sides(axis_in_ground(scene, part, x))[1:]


def slides(part: Part) -> bool:
    """Whether a joint is a slide: a guide and a block in it."""
    kind = kind_of(part)
    return kind.slides == 1 and not kind.turns


def rolls(part: Part) -> bool:
    """Whether a joint is a wheel or ball that rolls."""
    return kind_of(part).drawn == "wheel"


def frames(topology: Topology) -> set[str]:
    """Bodies that are drawn as frames in which another body slides between two stops."""
    held = (x for x in topology.joints if slides(x) and x.bodies[0] != GROUND)
    return {x.bodies[0] for x in held}


def _slide(scene: Scene, part: Part, x: Any, framed: Set[str], solid: Set[str]) -> list[Shape]:
    """Guide, block and stops of a slide."""
    (one, other), (start, end) = part.bodies, ends_of(scene, part, x)
    axes, found = symbols.sides(axis_in_ground(scene, part, x)), []
    half, high = symbols.BLOCK
    if other not in solid and other not in framed and other != GROUND:
        found.append(_block(end, axes, other))
    limits = [(k, getattr(x, name)) for k, name in ((-1.0, "lower"), (1.0, "upper"))]
    given = [(k, y) for k, y in limits if y is not None]
    reach = half if other not in solid else 0.0
    if one in framed:
        found += _frame(start, end, axes, limits, part.bodies)
    elif scene.dimension == 2:
        low = symbols.FRAME if other in framed else high if other not in solid else 0.0
        reached = [] if other in framed else [end]
        rail = jnp.stack([start, start + axes[1], *reached])
        marks = jnp.broadcast_to(-low * axes[1], rail.shape)
        found.append(
            Shape(points=rail, name=part.name, kind="plane", role=symbols.role_of(one), marks=marks)
        )
    else:
        marks = jnp.stack([-axes[0], axes[0]]) * 0.07
        found.append(Shape(points=jnp.stack([start, end]), name=part.name, role="ground", marks=marks))
    if one not in framed:
        found += [symbols.wall(start + y * axes[0], -k * axes[0], part.name, -reach) for k, y in given]
    return found


def _block(point: Array, axes: list[Array], name: str) -> Shape:
    """The block of a body in its slide."""
    half, high = symbols.BLOCK
    if len(axes) == 2:
        marks = shapes.rectangle(half, high) @ jnp.stack(axes)
        return Shape(
            points=jnp.broadcast_to(point, marks.shape), name=name, kind="area", role=symbols.role_of(name),
            marks=marks,
        )  # fmt: skip
    marks = shapes.box((half, high, high)) @ jnp.stack(axes)
    return Shape(
        points=jnp.broadcast_to(point, marks.shape), name=name, kind="mesh", role=symbols.role_of(name),
        faces=shapes.BOX_FACES, marks=marks,
    )  # fmt: skip


def _frame(
    start: Array, end: Array, axes: list[Array], limits: list[Any], names: tuple[str, ...]
) -> list[Shape]:
    """A body around the block that slides in it, as far as its stops or the block. Where its own point is
    not between the stops, it is a tube from there to the nearer stop, out of which the other body comes.
    """
    half, high = symbols.BLOCK[0], symbols.FRAME
    points = [end if y is None else start + y * axes[0] for _, y in limits]
    rods = []
    if all(y is not None for _, y in limits):
        (_, low), (_, up) = limits
        tube = (low > 0.0) | (up < 0.0)
        stop = start + jnp.where(low > 0.0, low, up) * axes[0]
        points = [jnp.where(tube, x, y) for x, y in zip((start, stop), points, strict=True)]
        rod = jnp.stack([jnp.where(tube, stop, end), end])
        rods = [Shape(points=rod, name=names[1], kind="line", role=symbols.role_of(names[1]))]
    order = np.array([0, 1, 1, 0, 0])
    marks = np.array([[-half, -high], [half, -high], [half, high], [-half, high], [-half, -high]])
    kind = "area" if len(axes) == 2 else "line"
    moved = jnp.asarray(marks) @ jnp.stack(axes[:2])
    return [Shape(points=jnp.stack(points)[order], name=names[0], kind=kind, marks=moved), *rods]


def _hinge(scene: Scene, part: Part, x: Any) -> list[Shape]:
    """Support, bolt and stops of a hinge."""
    point, found = ends_of(scene, part, x)[0], []
    if GROUND in part.bodies:
        axes = symbols.upright(scene.dimension)
        found.append(symbols.drawn_at(point, axes, symbols.SUPPORT, part.name, "ground"))
    if scene.dimension == 3:
        axis, rings = axis_in_ground(scene, part, x), shapes.cylinder_rings(0.016, 0.03)
        marks = shapes.lathe(*rings, around=symbols.AROUND)
        pose, faces = symbols.placed_axes(point, symbols.sides(axis)), shapes.lathe_faces(4, symbols.AROUND)
        bolt = Shape(
            points=jnp.zeros(marks.shape), name=part.name, kind="mesh", role="joint", faces=faces,
            marks=marks, pose=pose,
        )  # fmt: skip
        found.append(bolt)
    limits = [y for y in (x.lower, x.upper) if y is not None]
    if limits:
        found.append(_stops(scene, part, x, point, limits))
    return found


def _stops(scene: Scene, part: Part, x: Any, point: Array, limits: list[Any]) -> Shape:
    """Strokes where the second body's x axis points at the limits of its hinge, unless it is the axis."""
    along = _x_axis(scene, part.bodies[1])
    now = scene.coordinate(part.name)
    rows = []
    for limit in limits:
        gone = limit - now
        if scene.dimension == 2:
            c, s = jnp.cos(gone), jnp.sin(gone)
            turned = jnp.stack([c * along[0] - s * along[1], s * along[0] + c * along[1]])
        else:
            axis = axis_in_ground(scene, part, x)
            turned = space.about(axis, gone) @ (along - axis * jnp.sum(axis * along))
        size = jnp.sqrt(jnp.sum(turned * turned))
        unit = turned / jnp.where(size > 0.0, size, 1.0)
        rows += [0.03 * unit, 0.075 * unit, jnp.full_like(unit, jnp.nan)]
    marks = jnp.stack(rows)
    points = jnp.broadcast_to(point, marks.shape)
    return Shape(points=points, name=f"{part.name} stops", role="joint", marks=marks)


def _rolling(scene: Scene, part: Part, x: Any) -> list[Shape]:
    """The wheel or ball that rolls, and its plane."""
    name, centre = part.bodies[1], scene.position(part.bodies[1], x.on)
    up = (0.0, 1.0) if scene.dimension == 2 else (0.0, 0.0, 1.0)
    a = scene.algebra
    normal = a.turned(
        scene.frame(part.bodies[0]).turn, a.vector(np.asarray(up) if x.axis is None else x.axis)
    )
    foot = scene.position(part.bodies[0], x.at)
    found = [shapes.level(foot, a.array(normal), part.name)]
    if scene.dimension == 2:
        return [*found, symbols.disc(centre, None, x.own.radius, name, _x_axis(scene, name))]
    if x.second_axis is None:
        faces = shapes.lathe_faces(2 * shapes.RINGS + 1)
        points = centre + shapes.lathe(*shapes.ball_rings(x.own.radius))
        return [*found, Shape(points=points, name=name, kind="mesh", faces=faces)]
    axis = a.array(a.turned(scene.frame(name).turn, a.vector(x.second_axis)))
    return [*found, symbols.disc(centre, axis, x.own.radius, name, None)]


def _x_axis(scene: Scene, name: str) -> Array:
    return scene.position(name, 1.0) - scene.position(name)


def _wheel(scene: Scene, part: Part, x: Any, radius: Any) -> Shape:
    """A wheel around a hinge, of its second body."""
    name, centre = part.bodies[1], ends_of(scene, part, x)[1]
    if scene.dimension == 2:
        return symbols.disc(centre, None, radius, name, _x_axis(scene, name))
    return symbols.disc(centre, axis_in_ground(scene, part, x), radius, name, None)


def wheels(scene: Scene, topology: Topology, p: PyTree) -> list[Shape]:
    """Gears and belts that couple two hinges, pinions, and drums of tendons."""
    found: list[Shape] = []
    for part in topology.parts:
        joints = [topology.of[y] for y in part.option("joints") or ()]
        if has_line(part):  # over drums; its factors need not be radii
            for turning in (y for y in joints if kind_of(y).winds):
                x = p[turning.name]
                point, axes = ends_of(scene, turning, x)[0], around_axis(scene, turning, x)
                found.append(symbols.drawn_at(point, axes, symbols.DRUM, part.name, "spring"))
        elif (drawn := COUPLINGS[part.kind].drawn if part.kind in COUPLINGS else "") == "pinion":
            found.append(_wheel(scene, joints[1], p[joints[1].name], jnp.abs(p[part.name].ratio)))
        elif drawn == "gears" and all(y.kind in JOINTS and kind_of(y).winds for y in joints):
            found += _gear(scene, part.name, joints, p)
    return found


def _gear(scene: Scene, name: str, joints: list[Part], p: PyTree) -> list[Shape]:
    """Two wheels that meet, or with a belt where they turn in the same direction."""
    ratio = jnp.asarray(p[name].ratio, float)
    centres = [ends_of(scene, y, p[y.name])[1] for y in joints]
    gone = centres[1] - centres[0]
    apart = jnp.sqrt(jnp.sum(gone * gone)) * jnp.where(ratio < 0.0, 1.0, 0.5)
    radii = apart / (1.0 + jnp.abs(ratio)) * jnp.stack([jnp.ones(()), jnp.abs(ratio)])
    found = [_wheel(scene, y, p[y.name], r) for y, r in zip(joints, radii, strict=True)]
    if scene.dimension == 2:
        belt = symbols.hull(jnp.stack(centres), radii, name, 0.0)
        points = jnp.where(ratio > 0.0, belt.points, jnp.nan)
        found.append(Shape(points=points, name=name, role="spring"))
    return found


def joint(scene: Scene, part: Part, x: Any, framed: Set[str], solid: Set[str]) -> list[Shape]:
    """The picture of a joint, without the dot at its point."""
    kind = kind_of(part)
    if kind.drawn == "line":
        return [Shape(points=jnp.stack(ends_of(scene, part, x)), name=part.name)]
    found: list[Shape] = []
    if rolls(part):
        return _rolling(scene, part, x)
    if slides(part):
        found += _slide(scene, part, x, framed, solid)
    elif kind.winds:
        found += _hinge(scene, part, x)
    elif GROUND in part.bodies:
        along, up = symbols.upright(scene.dimension)
        found.append(symbols.wall(ends_of(scene, part, x)[0], along if kind.rigid else up, part.name))
    if part.option("motion") is not None:
        found.append(drive(scene, part, x, part.name))
    return found


def drive(scene: Scene, part: Part, x: Any, name: str) -> Shape:
    """The arrow of a motor, or of a prescribed motion, in a joint."""
    if slides(part):
        axes, point = symbols.sides(axis_in_ground(scene, part, x)), ends_of(scene, part, x)[1]
        return symbols.drawn_at(point, axes, symbols.PUSH, name, "joint", at=(0.0, 0.06))
    point = ends_of(scene, part, x)[0]
    return symbols.drawn_at(point, around_axis(scene, part, x), symbols.DRIVE, name, "joint")


def spring_in(scene: Scene, part: Part, x: Any, joint: Part, y: Any) -> list[Shape]:
    """A spring in a joint: a coil along a slide, a spiral around a pin."""
    if not slides(joint):
        point = ends_of(scene, joint, y)[0]
        flat = kind_of(joint).winds
        axes = around_axis(scene, joint, y) if flat else symbols.upright(scene.dimension)
        return [symbols.drawn_at(point, axes, symbols.SPIRAL, part.name, "spring")]
    start, end = ends_of(scene, joint, y)
    axis = axis_in_ground(scene, joint, y)
    symbol = symbols.bellows(x, part.option("law"))
    anchor = 0.55  # about the largest displacement of a picture that shows this slide alone
    found = [symbols.between(start, end, symbol, part.name, axis, anchor)]
    if joint.bodies[0] == GROUND:
        found.append(symbols.wall(start, axis, part.name, -anchor))
    return found
