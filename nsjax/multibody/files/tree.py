"""Bodies and joints of a model file, the medium around them, and equality constraints."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nsjax.multibody.contacts.groups import unused
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.couplings import coupling
from nsjax.multibody.files.source import MINVAL, Place, Source, gathered
from nsjax.multibody.joints import ball, fixed, hinge, slide
from nsjax.multibody.loads import ellipsoid_drag, fluid_drag, force, joint_spring, torque
from nsjax.multibody.meshes import Mesh
from nsjax.multibody.parts import Part, body
from nsjax.types import Array

# The medium of a model file, water or air, as loads on its bodies.


def resistance(source: Source, b: int, name: str) -> Iterator[Part]:
    """Loads of the medium on a body: on a box of its inertia, or on ellipsoids of its geometries."""
    model, mass = source.model, float(source.model.body_mass[b])
    if not acts(source) or mass < MINVAL or not model.body_weldid[b]:
        return
    geoms = ellipsoids(source, b)
    for k, g in enumerate(geoms):
        yield _on_ellipsoid(source, g, f"{name}_medium{k if len(geoms) > 1 else ''}", name)
    if geoms:
        return
    moments = np.array(model.body_inertia[b], float)
    box = np.sqrt(np.maximum(MINVAL, np.sum(moments) - 2.0 * moments) / mass * 6.0)
    turned = source.rotation_vector(source.turn(model.body_iquat[b]))
    end = name, np.array(model.body_ipos[b])
    yield fluid_drag(f"{name}_medium", end, box, turned=turned, **_medium(source))


def acts(source: Source) -> bool:
    """Whether the file has a medium that acts; disabled springs and dampers together switch it off."""
    option = source.model.opt
    return bool(option.density or option.viscosity) and not (source.off("spring") and source.off("damper"))


def ellipsoids(source: Source, b: int) -> list[int]:
    """Numbers of the geometries of a body on whose ellipsoids the medium acts (``fluidshape``)."""
    model, first = source.model, int(source.model.body_geomadr[b])
    geoms = range(first, first + int(model.body_geomnum[b]))
    return [g for g in geoms if model.geom_fluid[g][0] > 0.0]


def _on_ellipsoid(source: Source, g: int, name: str, body: str) -> Part:
    model, kinds = source.model, source.mujoco.mjtGeom
    size, kind = np.array(model.geom_size[g], float), int(model.geom_type[g])
    if kind == kinds.mjGEOM_SPHERE:
        size = np.full(3, size[0])
    elif kind in (kinds.mjGEOM_CAPSULE, kinds.mjGEOM_CYLINDER):
        half = size[1] + (size[0] if kind == kinds.mjGEOM_CAPSULE else 0.0)
        size = np.array([size[0], size[0], half])
    given, turned = np.array(model.geom_fluid[g], float), source.turn(model.geom_quat[g])
    return ellipsoid_drag(
        name, (body, np.array(model.geom_pos[g])), size, turned=source.rotation_vector(turned),
        coefficients=given[1:6], added=given[6:12] if np.any(given[6:12]) else None, **_medium(source),
    )  # fmt: skip


def _medium(source: Source) -> dict[str, Any]:
    option = source.model.opt
    wind = np.array(option.wind, float) if np.any(option.wind) else None
    density, viscosity = float(option.density) or None, float(option.viscosity) or None
    return {"density": density, "viscosity": viscosity, "wind": wind}


# Bodies and joints of a model file.


FREE, BALL, SLIDE, HINGE = range(4)
"""Numbers of the kinds of joints in `mujoco.mjtJoint`."""


@dataclasses.dataclass(frozen=True)
class Drag:
    """Law of the damping of a free body, against the velocity of its origin or, if ``turning``, against its
    spin; ``own`` is the coefficient [N s/m] or [N m s].
    """

    body: str
    turning: bool

    @property
    def damps(self) -> tuple[str, slice]:
        """The body, and which of its velocities, if it is free, ``own`` damps one by one."""
        return self.body, slice(3, 6) if self.turning else slice(0, 3)

    def __call__(self, t: Array, scene: Scene, own: Any) -> Array:
        """Force [N] or moment [N m]."""
        return -own * (scene.spin(self.body) if self.turning else scene.velocity(self.body))


def bodies(source: Source, shown: Mapping[str, Mesh]) -> Iterator[Part]:
    """Bodies with the joints on which they hang, in the order of the file, with meshes for pictures."""
    for b in range(1, source.model.nbody):
        if not source.merged(b):
            yield from _body(source, b, shown)


def _body(source: Source, b: int, shown: Mapping[str, Mesh]) -> Iterator[Part]:
    model, name = source.model, source.names["body", b]
    above = source.place(int(model.body_parentid[b]))
    first = int(model.body_jntadr[b])
    joints = range(first, first + int(model.body_jntnum[b]))
    frame = Place(above.body, above.turn @ source.turn(model.body_quat[b]), above.point(model.body_pos[b]))
    parents = frame
    for k in joints:
        last = k == joints[-1]
        child = name if last else unused(f"{name}_{source.names['joint', k]}", set(source.names.values()))
        yield _massive(source, b, child, shown) if last else body(child, mass=0.0)
        yield from _joint(source, k, parents, child)
        parents = Place(child, np.eye(3), np.zeros(3))
    if not joints:
        yield _massive(source, b, name, shown)
        turned = source.rotation_vector(frame.turn)
        yield fixed(f"{name}_held", frame.body, name, at=nonzero(frame.origin), turned=turned)
    carried = (
        -float(model.body_gravcomp[b]) * float(model.body_mass[b]) * np.array(model.opt.gravity, float)
    )
    passive = not (source.off("spring") and source.off("damper"))  # without both, no passive force acts
    if np.any(carried) and passive and not source.off("gravity"):
        yield force(f"{name}_carried", (name, np.array(model.body_ipos[b])), carried)
    yield from resistance(source, b, name)


def _massive(source: Source, b: int, name: str, shown: Mapping[str, Mesh]) -> Part:
    """A body with its mass and inertia. Moments of merged bodies without mass are added."""
    model, name_of = source.model, source.names["body", b]
    inertia = _moments(source, b, np.eye(3))
    for k in range(1, model.nbody):
        if source.merged(k) and np.any(model.body_inertia[k]) and source.place(k).body == name_of:
            inertia = _matrix(inertia) + _matrix(_moments(source, k, source.place(k).turn))
    armature = None
    if model.body_jntnum[b] and int(model.jnt_type[model.body_jntadr[b]]) == FREE:
        armature = float(model.dof_armature[model.body_dofadr[b]]) or None
    centre = np.array(model.body_ipos[b])
    return body(
        name, mass=float(model.body_mass[b]), inertia=inertia, com=centre, armature=armature,
        shape=shown.get(name),
    )  # fmt: skip


def _moments(source: Source, b: int, placed: np.ndarray) -> np.ndarray:
    """Moments of inertia (3,) or (3, 3) of a body in axes in which its own have the rotation ``placed``."""
    turn = placed @ source.turn(source.model.body_iquat[b])
    moments = np.array(source.model.body_inertia[b], float)
    if np.array_equal(turn, np.eye(3)):
        return moments
    made: np.ndarray = turn @ np.diag(moments) @ turn.T
    return (made + made.T) / 2.0


def _matrix(moments: np.ndarray) -> np.ndarray:
    return np.diag(moments) if moments.ndim == 1 else moments


def _joint(source: Source, k: int, parents: Place, child: str) -> Iterator[Part]:
    """A joint between a part and ``child``, with its springs and damping; ``parents`` are the axes of the
    body, before this joint moves, in the axes of that part.
    """
    model, kind, name = source.model, int(source.model.jnt_type[k]), source.names["joint", k]
    point = np.array(model.jnt_pos[k])
    damping = 0.0 if source.off("damper") else float(model.dof_damping[model.jnt_dofadr[k]])
    at, on = nonzero(parents.point(point)), nonzero(point)
    stiffness = 0.0 if source.off("spring") else float(np.reshape(model.jnt_stiffness[k], -1)[0])
    if kind == FREE:
        if damping:
            yield force(f"{name}_damping", child, law=Drag(child, turning=False), own=damping)
            yield torque(f"{name}_turning", child, law=Drag(child, turning=True), own=damping)
        return
    if kind == BALL:
        own = float(model.dof_armature[model.jnt_dofadr[k]])
        yield ball(name, parents.body, child, at=at, on=on, armature=own or None)
        if stiffness or damping:
            still = None  # rotation vector relative to the parent at which the spring is free
            if stiffness:
                q = int(source.model.jnt_qposadr[k])
                free = ball_pose(source, k, source.model.qpos_spring[q : q + 4])
                still = source.rotation_vector(source.turn(free))
            yield joint_spring(
                f"{name}_spring", name, stiffness=stiffness or None, rest=still, damping=damping or None
            )
        return
    axis, ref = parents.turn @ model.jnt_axis[k], float(model.qpos0[model.jnt_qposadr[k]])
    axis = axis / np.linalg.norm(axis)
    turn, ends = parents.turn, limits(source, k)
    given = {} if ends is None else {"limits": ends, "restitution": source.restitution}
    if kind == HINGE and ref:
        back = np.zeros(4)
        source.mujoco.mju_axisAngle2Quat(back, axis, -ref)
        turn = source.turn(back) @ turn
    if kind == SLIDE and ref:
        at = parents.point(point) - ref * axis
    make, dof = (hinge if kind == HINGE else slide), int(model.jnt_dofadr[k])
    armature = float(model.dof_armature[dof])
    friction = 0.0 if source.off("frictionloss") else float(model.dof_frictionloss[dof])
    yield make(
        name, parents.body, child, at=at, on=on, axis=axis, turned=source.rotation_vector(turn),
        armature=armature or None, friction=friction or None, **given,
    )  # fmt: skip
    if stiffness or damping:
        rest = float(model.qpos_spring[model.jnt_qposadr[k]]) if stiffness else None
        yield joint_spring(
            f"{name}_spring", name, stiffness=stiffness or None, rest=rest, damping=damping or None
        )


def limits(source: Source, k: int) -> tuple[float, float] | None:
    """Lower and upper limit of a hinge or slide; None without."""
    model = source.model
    if source.off("limit") or not model.jnt_limited[k] or int(model.jnt_type[k]) not in (HINGE, SLIDE):
        return None
    lower, upper = (float(x) for x in model.jnt_range[k])
    return lower, upper


def ball_pose(source: Source, k: int, quaternion: Any) -> np.ndarray:
    """Quaternion of a ball as the rotation of the body relative to the part above, from that of the file,
    which is relative to the pose of the body in its parent.
    """
    model, b, found = source.model, int(source.model.jnt_bodyid[k]), np.array(quaternion, float)
    if k > int(model.body_jntadr[b]):
        return found
    while True:  # the body, then the merged bodies above to which it is fixed
        product = np.zeros(4)
        source.mujoco.mju_mulQuat(product, np.array(source.model.body_quat[b]), found)
        found, b = product, int(source.model.body_parentid[b])
        if not source.merged(b):
            return found


def nonzero(point: np.ndarray) -> np.ndarray | None:
    """The point, or None for the origin, which costs no operations."""
    return np.array(point, float) if np.any(point) else None


# Equality constraints of a model file: joints that close loops, couplings of joints and of tendons.


def equalities(source: Source, lines: set[str]) -> tuple[list[Part], list[str]]:
    """Parts of connect, weld, joint and tendon constraints, and sentences about the others."""
    said: list[tuple[str, str]] = []
    count = 0 if source.off("equality") else source.model.neq
    return [part for k in range(count) for part in _equality(source, k, lines, said)], gathered(said)


def _equality(source: Source, k: int, lines: set[str], said: list[tuple[str, str]]) -> Iterator[Part]:
    model, mujoco, who = source.model, source.mujoco, source.called("equality", k)
    kind, active = int(model.eq_type[k]), None if model.eq_active0[k] else False
    if kind == mujoco.mjtEq.mjEQ_JOINT:
        yield from _of_joints(source, k, said)
        return
    if kind == mujoco.mjtEq.mjEQ_TENDON:
        yield from _of_tendons(source, k, lines, said)
        return
    if kind not in (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD):
        named = mujoco.mjtEq(kind).name.removeprefix("mjEQ_").lower()
        what = f"equality constraints of the kind {named} are left out: take connect, weld, joint or tendon"
        said.append((what, who))
        return
    ends, (at, on, turn) = _ends(source, k), _data(source, k)
    one, other = (source.place(b) for b in ends)
    if one.body == other.body:
        said.append((f"equality constraints that join {one.body!r} to itself are left out", who))
        return
    name, points = source.names["equality", k], {"at": one.point(at), "on": other.point(on)}
    loose = kind == mujoco.mjtEq.mjEQ_WELD and not float(model.eq_data[k][10])  # torquescale
    if kind == mujoco.mjtEq.mjEQ_CONNECT or loose:
        yield ball(name, one.body, other.body, loop=True, active=active, **points)
        return
    turned = source.rotation_vector(one.turn @ turn @ other.turn.T)
    yield fixed(name, one.body, other.body, turned=turned, loop=True, active=active, **points)


def _of_joints(source: Source, k: int, said: list[tuple[str, str]]) -> Iterator[Part]:
    """A polynomial coupling of the coordinates of two hinges or slides, or one coordinate held fixed."""
    model, joints = source.model, _pair(source, k)
    who = " of ".join(source.called("joint", j) for j in joints)
    if any(int(model.jnt_type[j]) not in (HINGE, SLIDE) for j in joints):
        said.append(("couplings of balls or free joints are left out", who))
        return
    at = [float(model.qpos0[model.jnt_qposadr[j]]) for j in joints]
    yield _coupling(source, k, [source.names["joint", j] for j in joints], at)


def _of_tendons(
    source: Source, k: int, lines: set[str], said: list[tuple[str, str]]
) -> Iterator[Part]:  # fmt: skip
    """A polynomial coupling of the lengths of two tendons, or one length held fixed."""
    tendons = _pair(source, k)
    names = [source.names["tendon", j] for j in tendons]
    if not lines.issuperset(names):
        who = " of ".join(source.called("tendon", j) for j in tendons)
        said.append(("couplings of tendons that are left out are left out", who))
        return
    yield _coupling(source, k, names, [float(source.model.tendon_length0[j]) for j in tendons])


def _pair(source: Source, k: int) -> list[int]:
    """Numbers of the one or two joints or tendons that an equality couples."""
    pair = source.model.eq_obj1id[k], source.model.eq_obj2id[k]
    return [int(j) for j in pair if j >= 0]


def _coupling(source: Source, k: int, names: list[str], at: list[float]) -> Part:
    """A coupling from the polynomial of the file."""
    factors = _law(source, k, at).coef if len(names) > 1 else np.array([_law(source, k, at)(0.0)])
    most = int(np.max(np.flatnonzero(factors), initial=0))
    active = None if source.model.eq_active0[k] else False
    return coupling(source.names["equality", k], *names, polynomial=factors[: most + 1], active=active)


def _law(source: Source, k: int, at: list[float]) -> np.polynomial.Polynomial:
    """``y(x)`` from the polynomial of the file about the reference position; y0 alone if it is held."""
    law = np.polynomial.Polynomial(np.array(source.model.eq_data[k][:5], float))
    if len(at) == 1:
        return np.polynomial.Polynomial([law.coef[0] + at[0]])
    return law(np.polynomial.Polynomial([-at[-1], 1.0])) + at[0]


def following(source: Source) -> list[tuple[int, int | None, np.polynomial.Polynomial]]:
    """Joints that follow others, leaders before their followers: number of the joint, that of its leader,
    None for a joint that is held, and its coordinate as a function of the leader's. Joints in a circle, and
    with several leaders, are left out.
    """
    model, joint = source.model, source.mujoco.mjtEq.mjEQ_JOINT
    found, twice = dict[int, Any](), set[int]()
    for k in range(0 if source.off("equality") else model.neq):
        if int(model.eq_type[k]) != joint or not model.eq_active0[k]:
            continue
        pair = _pair(source, k)
        if all(int(model.jnt_type[j]) in (HINGE, SLIDE) for j in pair):
            twice |= {pair[0]} & found.keys()
            at = [float(model.qpos0[model.jnt_qposadr[j]]) for j in pair]
            found[pair[0]] = (pair[0], pair[1] if len(pair) > 1 else None, _law(source, k, at))
    ordered: list[Any] = []
    waiting = [x for j, x in found.items() if j not in twice]
    while waiting:
        later = {x[0] for x in waiting} | twice
        ready = [x for x in waiting if x[1] not in later]
        if not ready:
            break
        ordered += ready
        waiting = [x for x in waiting if x not in ready]
    return ordered


def _ends(source: Source, k: int) -> tuple[int, int]:
    """Numbers of the two bodies of an equality constraint."""
    model = source.model
    pair = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    if int(model.eq_objtype[k]) == source.mujoco.mjtObj.mjOBJ_SITE:
        return int(model.site_bodyid[pair[0]]), int(model.site_bodyid[pair[1]])
    return pair


def _data(source: Source, k: int) -> tuple[Any, Any, np.ndarray]:
    """Points on both bodies, and rotation (3, 3) of the second body relative to the first."""
    model, data = source.model, np.array(source.model.eq_data[k], float)
    if int(model.eq_objtype[k]) == source.mujoco.mjtObj.mjOBJ_SITE:
        pair = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
        one, other = (source.turn(model.site_quat[s]) for s in pair)
        return np.array(model.site_pos[pair[0]]), np.array(model.site_pos[pair[1]]), one @ other.T
    if int(model.eq_type[k]) == source.mujoco.mjtEq.mjEQ_CONNECT:
        return data[:3], data[3:6], np.eye(3)
    return data[3:6], data[:3], source.turn(data[6:10])
