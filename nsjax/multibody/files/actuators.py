"""Actuators of a model file: motors, position and velocity servos in hinges, slides and tendons."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.multibody.coordinates.tree_joints import AtOnce
from nsjax.multibody.files.source import Source, gathered
from nsjax.multibody.files.tree import HINGE, SLIDE
from nsjax.multibody.loads import actuator
from nsjax.multibody.loads.servos import within
from nsjax.multibody.parts import Part
from nsjax.types import Array, record


@record()
class Servo:
    """Numbers of an actuator: the effort is ``gear (g . (1, l, l') u + b . (1, l, l'))`` with the length
    ``l = gear q``.

    Args:
        control: u, constant; clipped to ``control_range`` (2,).
        gear: joint to motor.
        gain, bias: g, b (3,).
        control_range, force_range: (2,), or None for no bounds.
    """

    control: Array | float
    gear: Array | float
    gain: Any
    bias: Any
    control_range: Any = None
    force_range: Any = None

    @property
    def target(self) -> str:
        """Name of the number that a controller gives."""
        return "control"


@dataclasses.dataclass(frozen=True)
class Serve(AtOnce):
    """The law of a `Servo`."""

    def __call__(self, t: Array, x: Array, rate: Array, own: Servo) -> Array:
        """Effort at a joint's coordinate and rate."""
        length, speed = own.gear * x, own.gear * rate
        gain, bias = (k[0] + k[1] * length + k[2] * speed for k in (own.gain, own.bias))
        push = gain * within(jnp.asarray(own.control, float), own.control_range) + bias
        return own.gear * within(push, own.force_range)


def actuators(source: Source, lines: set[str]) -> tuple[list[Part], list[str]]:
    """Those that map, and sentences about the others. Those that the file switches off are none.

    Args:
        source: what is read.
        lines: names of the tendons that are parts.
    """
    parts, said = [], []
    model = source.model
    for k in range(0 if source.off("actuation") else model.nu):
        if (
            0 <= int(model.actuator_group[k]) < 31
            and int(model.opt.disableactuator) >> int(model.actuator_group[k]) & 1
        ):
            continue
        why = _obstacle(source, k, lines)
        if why:
            said.append((f"actuators that {why} are left out", source.called("actuator", k)))
            continue
        parts.append(
            actuator(source.names["actuator", k], driven_by(source, k), law=Serve(), own=_servo(source, k))
        )
    return parts, gathered(said)


def driven_by(source: Source, k: int) -> str:
    """Name of the joint or tendon in which an actuator acts."""
    in_tendon = int(source.model.actuator_trntype[k]) == source.mujoco.mjtTrn.mjTRN_TENDON
    return source.names["tendon" if in_tendon else "joint", int(source.model.actuator_trnid[k][0])]


def _obstacle(source: Source, k: int, lines: set[str]) -> str:
    """What of an actuator does not map; empty if all does."""
    model, mujoco = source.model, source.mujoco
    in_tendon = int(model.actuator_trntype[k]) == mujoco.mjtTrn.mjTRN_TENDON
    if not in_tendon and int(model.actuator_trntype[k]) != mujoco.mjtTrn.mjTRN_JOINT:
        return "do not act on a joint or tendon"
    if in_tendon and driven_by(source, k) not in lines:
        return "act on a tendon that is left out"
    if not in_tendon and int(model.jnt_type[int(model.actuator_trnid[k][0])]) not in (HINGE, SLIDE):
        return "act on a ball or free joint"
    if int(model.actuator_dyntype[k]) != mujoco.mjtDyn.mjDYN_NONE:
        return "have an activation with dynamics of its own"
    plain = (mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtGain.mjGAIN_AFFINE)
    if int(model.actuator_gaintype[k]) not in plain:
        return "have a gain that is neither fixed nor affine"
    if int(model.actuator_biastype[k]) not in (mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE):
        return "have a bias that is not affine"
    for what in ("damping", "armature", "dampingpoly"):
        if np.any(getattr(model, f"actuator_{what}", np.zeros(model.nu))[k]):
            return f"have a {what} of their own"
    return ""


def _servo(source: Source, k: int) -> Servo:
    model, mujoco = source.model, source.mujoco
    gain, bias = (np.array(x[k][:3], float) for x in (model.actuator_gainprm, model.actuator_biasprm))
    if int(model.actuator_gaintype[k]) == mujoco.mjtGain.mjGAIN_FIXED:
        gain[1:] = 0.0
    if int(model.actuator_biastype[k]) == mujoco.mjtBias.mjBIAS_NONE:
        bias[:] = 0.0
    clamped = model.actuator_ctrllimited & (not source.off("clampctrl"))
    bounds = {
        "control_range": (clamped, model.actuator_ctrlrange),
        "force_range": (model.actuator_forcelimited, model.actuator_forcerange),
    }
    ranges = {
        name: np.array(values[k], float).reshape(-1)[:2] if np.any(limited[k]) else None
        for name, (limited, values) in bounds.items()
    }
    return Servo(control=0.0, gear=float(model.actuator_gear[k][0]), gain=gain, bias=bias, **ranges)
