"""Bodies and joints of a model file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from nsjax.multibody.contacts.groups import unused
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.files.medium import resistance
from nsjax.multibody.files.source import Place, Source
from nsjax.multibody.joints import ball, fixed, hinge, slide
from nsjax.multibody.loads import force, joint_spring, torque
from nsjax.multibody.parts import Part, body
from nsjax.types import Array

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


def bodies(source: Source) -> Iterator[Part]:
    """Bodies with the joints on which they hang, in the order of the file."""
    for b in range(1, source.model.nbody):
        if not source.merged(b):
            yield from _body(source, b)


def _body(source: Source, b: int) -> Iterator[Part]:
    model, name = source.model, source.names["body", b]
    above = source.place(int(model.body_parentid[b]))
    first = int(model.body_jntadr[b])
    joints = range(first, first + int(model.body_jntnum[b]))
    frame = Place(above.body, above.turn @ source.turn(model.body_quat[b]), above.point(model.body_pos[b]))
    parents = frame
    for k in joints:
        last = k == joints[-1]
        child = name if last else unused(f"{name}_{source.names['joint', k]}", set(source.names.values()))
        yield _massive(source, b, child) if last else body(child, mass=0.0)
        yield from _joint(source, k, parents, child)
        parents = Place(child, np.eye(3), np.zeros(3))
    if not joints:
        yield _massive(source, b, name)
        turned = source.rotation_vector(frame.turn)
        yield fixed(f"{name}_held", frame.body, name, at=nonzero(frame.origin), turned=turned)
    carried = (
        -float(model.body_gravcomp[b]) * float(model.body_mass[b]) * np.array(model.opt.gravity, float)
    )
    passive = not (source.off("spring") and source.off("damper"))  # without both, no passive force acts
    if np.any(carried) and passive and not source.off("gravity"):
        yield force(f"{name}_carried", (name, np.array(model.body_ipos[b])), carried)
    yield from resistance(source, b, name)


def _massive(source: Source, b: int, name: str) -> Part:
    """A body with its mass and inertia. Moments of inertia of merged bodies without mass are added, which
    are the same about every point.
    """
    model, name_of = source.model, source.names["body", b]
    inertia = _moments(source, b, np.eye(3))
    for k in range(1, model.nbody):
        if source.merged(k) and np.any(model.body_inertia[k]) and source.place(k).body == name_of:
            inertia = _matrix(inertia) + _matrix(_moments(source, k, source.place(k).turn))
    armature = None
    if model.body_jntnum[b] and int(model.jnt_type[model.body_jntadr[b]]) == FREE:
        armature = float(model.dof_armature[model.body_dofadr[b]]) or None
    centre = np.array(model.body_ipos[b])
    return body(name, mass=float(model.body_mass[b]), inertia=inertia, com=centre, armature=armature)


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
            still = _ball_rest(source, k) if stiffness else None
            yield joint_spring(
                f"{name}_spring", name, stiffness=stiffness or None, rest=still, damping=damping or None
            )
        return
    axis, ref = parents.turn @ model.jnt_axis[k], float(model.qpos0[model.jnt_qposadr[k]])
    axis = axis / np.linalg.norm(axis)
    turn, given = parents.turn, _limits(source, k)
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


def _limits(source: Source, k: int) -> dict[str, Any]:
    given = limits(source, k)
    return {} if given is None else {"limits": given, "restitution": source.restitution}


def _ball_rest(source: Source, k: int) -> np.ndarray | None:
    """Rotation vector of the body relative to its parent at which the spring of its ball is free."""
    q = int(source.model.jnt_qposadr[k])
    return source.rotation_vector(source.turn(ball_pose(source, k, source.model.qpos_spring[q : q + 4])))


def ball_pose(source: Source, k: int, quaternion: Any) -> np.ndarray:
    """Quaternion of a ball as the rotation of the body relative to the part above, from that of the file,
    which is relative to the pose of the body in its parent.
    """
    model, b, found = source.model, int(source.model.jnt_bodyid[k]), np.array(quaternion, float)
    if k > int(model.body_jntadr[b]):
        return found
    for quat in _quats_above(source, b):
        product = np.zeros(4)
        source.mujoco.mju_mulQuat(product, quat, found)
        found = product
    return found


def _quats_above(source: Source, b: int) -> Iterator[np.ndarray]:
    """Quaternions of a body, then of the merged bodies above to which it is fixed."""
    yield np.array(source.model.body_quat[b])
    above = int(source.model.body_parentid[b])
    while source.merged(above):
        yield np.array(source.model.body_quat[above])
        above = int(source.model.body_parentid[above])


def nonzero(point: np.ndarray) -> np.ndarray | None:
    """The point, or None for the origin, which costs no operations."""
    return np.array(point, float) if np.any(point) else None
