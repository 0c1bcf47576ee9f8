"""Tendons of a model file: sums of joint coordinates, and lengths by sites, geometries and pulleys."""

from __future__ import annotations

from typing import Any

import numpy as np

from nsjax.multibody.contacts import shape_parts
from nsjax.multibody.files.actuators import acting_in
from nsjax.multibody.files.source import Source, gathered
from nsjax.multibody.files.tree import HINGE, SLIDE
from nsjax.multibody.loads import joint_tendon, tendon
from nsjax.multibody.parts import Part

POLYNOMIALS = ("stiffnesspoly", "dampingpoly")


def tendons(source: Source) -> tuple[list[Part], list[str]]:
    """Tendons as parts, and sentences about tendons and numbers that are left out."""
    parts, said = [], []
    for k in range(source.model.ntendon):
        who, why = source.called("tendon", k), _tendon_obstacle(source, k)
        if why:
            said.append((f"tendons that {why} are left out: they neither pull nor bind", who))
            continue
        parts.append(_part(source, k))
        said += [(f"tendons whose {what} is left out", who) for what in _lost_of_tendon(source, k)]
    return parts, gathered(said)


def _wraps(source: Source, k: int) -> range:
    first = int(source.model.tendon_adr[k])
    return range(first, first + int(source.model.tendon_num[k]))


def _tendon_obstacle(source: Source, k: int) -> str:
    """Reason for which a tendon has no equivalent part; empty if it has one."""
    model, kinds = source.model, source.mujoco.mjtWrap
    joints = [w for w in _wraps(source, k) if int(model.wrap_type[w]) == kinds.mjWRAP_JOINT]
    if any(int(model.jnt_type[int(model.wrap_objid[w])]) not in (HINGE, SLIDE) for w in joints):
        return "run over a ball or free joint"
    if any(_past(source, w) and _inside(source, w) is None for w in _wraps(source, k)):
        return "wind about a geometry within which their side site lies in some positions"
    return ""


def _lost_of_tendon(source: Source, k: int) -> list[str]:
    model = source.model
    lost = ["armature"] * bool(np.any(getattr(model, "tendon_armature", np.zeros(k + 1))[k]))
    bounded = getattr(model, "tendon_actfrclimited", np.zeros(k + 1))[k]
    if bounded and len(acting_in(source, k)) > 1:
        lost.append("bound of the sum of all actuators")
    if any(np.any(getattr(model, f"tendon_{x}", np.zeros(k + 1))[k]) for x in POLYNOMIALS):
        lost.append("stiffness or damping of higher order")
    return lost


def _numbers(source: Source, k: int) -> dict[str, Any]:
    """Stiffness, damping, limits and friction of a tendon that the file gives and does not switch off."""
    model, found = source.model, dict[str, Any]()
    if model.tendon_stiffness[k] and not source.off("spring"):
        least, most = (float(x) for x in model.tendon_lengthspring[k])
        found |= {
            "stiffness": float(model.tendon_stiffness[k]),
            "length": least if least == most else (least, most),
        }
    if model.tendon_damping[k] and not source.off("damper"):
        found["damping"] = float(model.tendon_damping[k])
    if model.tendon_limited[k] and not source.off("limit"):
        found["limits"] = tuple(float(x) for x in model.tendon_range[k])
        found["restitution"] = source.restitution
    if model.tendon_frictionloss[k] and not source.off("frictionloss"):
        found["friction"] = float(model.tendon_frictionloss[k])
    return found


def _part(source: Source, k: int) -> Part:
    model, kinds = source.model, source.mujoco.mjtWrap
    name, given, wraps = source.names["tendon", k], _numbers(source, k), _wraps(source, k)
    if int(model.wrap_type[wraps[0]]) == kinds.mjWRAP_JOINT:
        factors: dict[str, float] = {}
        for w in wraps:
            joint = source.names["joint", int(model.wrap_objid[w])]
            factors[joint] = factors.get(joint, 0.0) + float(model.wrap_prm[w])
        return joint_tendon(name, factors, **given)
    path: list[Any] = []
    for w in wraps:
        kind = int(model.wrap_type[w])
        if kind == kinds.mjWRAP_PULLEY:
            path.append(float(model.wrap_prm[w]))
        elif kind == kinds.mjWRAP_SITE:
            path.append(_site(source, int(model.wrap_objid[w])))
        else:
            path.append(_around(source, w))
    return tendon(name, *path, **given)


def _site(source: Source, site: int) -> tuple[str, np.ndarray]:
    """A site as a point of a part."""
    place = source.place(int(source.model.site_bodyid[site]))
    return place.body, place.point(source.model.site_pos[site])


def _past(source: Source, w: int) -> bool:
    """Whether an element of a tendon is a geometry with a site at its side."""
    kinds = source.mujoco.mjtWrap
    around = int(source.model.wrap_type[w]) in (kinds.mjWRAP_SPHERE, kinds.mjWRAP_CYLINDER)
    return around and float(source.model.wrap_prm[w]) >= 0.0


def _around(source: Source, w: int) -> Any:
    """The shape about which a tendon winds, with the point at its side or within it."""
    model, g = source.model, int(source.model.wrap_objid[w])
    place, radius = source.place(int(model.geom_bodyid[g])), float(model.geom_size[g][0])
    at = place.point(model.geom_pos[g])
    if int(model.wrap_type[w]) == source.mujoco.mjtWrap.mjWRAP_SPHERE:
        shape = shape_parts.sphere(place.body, radius, at=at)
    else:
        turn = place.turn @ source.turn(model.geom_quat[g])
        axis = turn[:, 2] / np.linalg.norm(turn[:, 2])
        shape = shape_parts.cylinder(place.body, radius, float(model.geom_size[g][1]), at=at, axis=axis)
    if not _past(source, w):
        return shape
    return shape, "inside" if _inside(source, w) else _site(source, int(source.model.wrap_prm[w]))


def _inside(source: Source, w: int) -> bool | None:
    """Whether the site at the side of a geometry lies within it; None if that differs between positions."""
    model, g, site = source.model, int(source.model.wrap_objid[w]), int(source.model.wrap_prm[w])
    data, drawn = source.mujoco.MjData(model), np.random.default_rng(0)
    together = int(model.site_bodyid[site]) == int(model.geom_bodyid[g])
    positions, found = 1 if together else 50, set[bool]()
    for k in range(positions):
        data.qpos[:] = model.qpos0
        source.mujoco.mj_integratePos(model, data.qpos, drawn.uniform(-3.0, 3.0, model.nv), 1.0 * (k > 0))
        source.mujoco.mj_kinematics(model, data)
        apart = data.site_xpos[site] - data.geom_xpos[g]
        found.add(bool(np.linalg.norm(apart) < model.geom_size[g][0]))
    return found.pop() if len(found) == 1 else None
