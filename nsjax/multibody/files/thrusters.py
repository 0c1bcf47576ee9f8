"""Actuators of a model file at sites, and in balls and free joints: forces and moments on a body."""

from __future__ import annotations

from typing import Any

import numpy as np

from nsjax.multibody.files.source import Source
from nsjax.multibody.files.tree import BALL, FREE, nonzero
from nsjax.multibody.loads import thruster
from nsjax.multibody.parts import GROUND, Part
from nsjax.types import Fn

SITE = -1
"""Stands for a site among the numbers of the kinds of joints."""


def _acts_on(source: Source, k: int) -> int | None:
    """What an actuator acts on: `SITE`, `BALL` or `FREE`; None for others."""
    model, kinds = source.model, source.mujoco.mjtTrn
    transmission, on = int(model.actuator_trntype[k]), int(model.actuator_trnid[k][0])
    if transmission == kinds.mjTRN_SITE:
        return SITE
    joint = int(model.jnt_type[on]) if transmission == kinds.mjTRN_JOINT else None
    return joint if joint in (BALL, FREE) else None


def thrusts(source: Source, k: int) -> bool:
    """Whether an actuator pushes a body, not a coordinate."""
    return _acts_on(source, k) is not None


def obstacle(source: Source, k: int) -> str:
    """Reason for which such an actuator has no equivalent part; empty if it has one."""
    model, where, on = source.model, _acts_on(source, k), source.model.actuator_trnid[k]
    if where == SITE and int(on[1]) >= 0:
        return "act at a site relative to another one (refsite)"
    if int(getattr(model, "actuator_outnum", np.ones(k + 1))[k]) > 1:
        return "have several efforts"
    if where == SITE:
        held = source.place(int(model.site_bodyid[int(on[0])])).body == GROUND
        return "act at a site of the ground" if held else ""
    if int(model.body_jntnum[int(model.jnt_bodyid[int(on[0])])]) > 1:
        return "act on a ball beside other joints of its body"
    # only fixed gains and biases, and those of rates, are without the turn of the ball
    if where == BALL and (model.actuator_biasprm[k][1] or model.actuator_gainprm[k][1]):
        return "serve the position of a ball"
    return ""


def thruster_of(source: Source, k: int, law: Fn, own: Any) -> Part:
    """The actuator as a part.

    Args:
        source: the model file.
        k: number of the actuator.
        law, own: law of its effort, before the gears.
    """
    model, where, on = source.model, _acts_on(source, k), int(source.model.actuator_trnid[k][0])
    name, gears = source.names["actuator", k], source.gears(k)
    if where == SITE:
        place = source.place(int(model.site_bodyid[on]))
        turn = place.turn @ source.turn(model.site_quat[on])
        end = place.body, place.point(model.site_pos[on])
        given = {"axis": nonzero(turn @ gears[:3]), "moment": nonzero(turn @ gears[3:])}
        return thruster(name, end, law=law, own=own, **_some(given))
    body = int(model.jnt_bodyid[on])
    if where == FREE:
        given = {"axis": nonzero(gears[:3]), "moment": nonzero(gears[3:])}
        return thruster(name, source.names["body", body], law=law, own=own, follower=False, **_some(given))
    against = source.place(int(model.body_parentid[body])).body
    return thruster(
        name, source.names["body", body], law=law, own=own, moment=gears[:3], against=against
    )  # fmt: skip


def _some(given: dict[str, Any]) -> dict[str, Any]:
    """The numbers, of which at least one is given."""
    return given if any(x is not None for x in given.values()) else {"moment": np.zeros(3)}
