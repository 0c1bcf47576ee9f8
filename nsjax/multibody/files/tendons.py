"""Tendons of a model file: sums of coordinates of joints, and lengths through sites and pulleys."""

from __future__ import annotations

from typing import Any

import numpy as np

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
        who, why = source.called("tendon", k), _obstacle(source, k)
        if why:
            said.append((f"tendons that {why} are left out: they neither pull nor bind", who))
            continue
        parts.append(_part(source, k))
        said += [(f"tendons whose {what} is left out", who) for what in _lost(source, k)]
    return parts, gathered(said)


def _wraps(source: Source, k: int) -> range:
    first = int(source.model.tendon_adr[k])
    return range(first, first + int(source.model.tendon_num[k]))


def _obstacle(source: Source, k: int) -> str:
    """Reason for which a tendon has no equivalent part; empty if it has one."""
    model, kinds = source.model, source.mujoco.mjtWrap
    known = {int(kinds.mjWRAP_JOINT), int(kinds.mjWRAP_PULLEY), int(kinds.mjWRAP_SITE)}
    if any(int(model.wrap_type[w]) not in known for w in _wraps(source, k)):
        return "wind about a geometry"
    joints = [w for w in _wraps(source, k) if int(model.wrap_type[w]) == kinds.mjWRAP_JOINT]
    if any(int(model.jnt_type[int(model.wrap_objid[w])]) not in (HINGE, SLIDE) for w in joints):
        return "run over a ball or free joint"
    return ""


def _lost(source: Source, k: int) -> list[str]:
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
        if int(model.wrap_type[w]) == kinds.mjWRAP_PULLEY:
            path.append(float(model.wrap_prm[w]))
            continue
        site = int(model.wrap_objid[w])
        place = source.place(int(model.site_bodyid[site]))
        path.append((place.body, place.point(model.site_pos[site])))
    return tendon(name, *path, **given)
