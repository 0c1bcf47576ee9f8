"""Actuators of a model file: motors, servos, thrusters, and the activations of their controls."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from nsjax.core import Problem
from nsjax.core.filters import with_actuator_dynamics
from nsjax.multibody.files import muscles
from nsjax.multibody.files.source import MINVAL, Source, gathered
from nsjax.multibody.files.tree import BALL, FREE, nonzero
from nsjax.multibody.joint_forces import AtOnce, Controlled
from nsjax.multibody.loads import actuator, thruster
from nsjax.multibody.parts import GROUND, Part
from nsjax.types import Array, Fn, record

# Actuators of a model file at sites, and in balls and free joints: forces and moments on a body.


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
    """The actuator number ``k`` as a part; ``law``, ``own``: law of its effort, before the gears."""
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


# Actuators of a model file: motors, position and velocity servos in hinges, slides and tendons, thrusters
# at sites, and the activations (filters and integrators) of their controls.


OWN = (
    "state", "initial_q", "initial_v", "initial_time", "params", "model", "commands", "time_constants",
    "ranges",
)  # fmt: skip
"""First words of number names that are no names of parts; `Activations.place` leaves these unchanged."""


@record()
class Servo(Controlled):
    """Numbers of an actuator with the effort ``gear (g . (1, l, l') u + b . (1, l, l'))`` at the length
    ``l = gear q``. ``gain``, ``bias``: ``g`` and ``b`` (3,).

    The others as in `nsjax.multibody.joint_forces.Controlled`.
    """

    gain: Any
    bias: Any


@dataclasses.dataclass(frozen=True)
class Serve(AtOnce):
    """The law of a `Servo`."""

    def __call__(self, t: Array, x: Array, rate: Array, own: Servo) -> Array:
        """Effort at a joint's coordinate and rate."""
        length, speed = own.gear * x, own.gear * rate
        gain, bias = (k[0] + k[1] * length + k[2] * speed for k in (own.gain, own.bias))
        return own.effort(gain * own.command + bias)


@dataclasses.dataclass(frozen=True, eq=False)
class Activations:
    """Controls that act through an activation, by the names of actuators.

    Args:
        time_constants: time constants of filters [s]; None: the activation integrates the control; of a
            muscle `nsjax.multibody.files.muscles.Excitation`.
        ranges: bounds (2,) of the controls before the activations, where there are any.
        at: activations at the file's reference position (key None), and in its key frames by name.
    """

    time_constants: dict[str, Any] = dataclasses.field(default_factory=dict)
    ranges: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    at: dict[str | None, dict[str, float]] = dataclasses.field(default_factory=dict)

    def key(self, name: str) -> str:
        """Path of an actuator's control in the params of the problem with activations."""
        return self.place(f"{name}.own.control")

    def place(self, number: str) -> str:
        """Path of a number of the parts in the params of the problem with activations."""
        head = number.split(".")[0]
        if not self.time_constants or head in OWN:
            return number
        commanded = head in self.time_constants and number == f"{head}.own.control"
        return f"commands.{head}" if commanded else f"model.{number}"

    def added(self, problem: Problem, start: str | None) -> Problem:
        """A problem whose controls act through these activations, from the start of the given name."""
        if not self.time_constants:
            return problem
        return with_actuator_dynamics(
            problem, self.time_constants, self.at.get(start, {}), ranges=self.ranges
        )


def activations(source: Source, driven: set[str], keys: Sequence[str]) -> Activations:
    """Activations of the actuators of a file. ``driven``: names of the actuators that are parts; ``keys``:
    names of the key frames, in the order of the file.
    """
    model, mujoco = source.model, source.mujoco
    found, clamped = Activations(at={key: {} for key in keys}), not source.off("clampctrl")
    for k in range(source.actuators):
        name, kind = source.names["actuator", k], int(model.actuator_dyntype[k])
        if name not in driven or kind == mujoco.mjtDyn.mjDYN_NONE:
            continue
        constant = max(float(model.actuator_dynprm[k][0]), MINVAL)
        found.time_constants[name] = None if kind == mujoco.mjtDyn.mjDYN_INTEGRATOR else constant
        if kind == mujoco.mjtDyn.mjDYN_MUSCLE:
            found.time_constants[name] = muscles.excitation(source, k)
        bounds = (
            _range(model.actuator_ctrllimited, model.actuator_ctrlrange, source.control(k))
            if clamped
            else None
        )
        if bounds is not None:
            found.ranges[name] = bounds
        for n, key in enumerate(keys):
            found.at[key][name] = float(model.key_act[n][int(model.actuator_actadr[k])])
    return found


def actuators(source: Source, lines: set[str]) -> tuple[list[Part], list[str]]:
    """Actuators as parts, and sentences about those left out; no parts if the file switches actuation off.
    ``lines``: names of the tendons that are parts.
    """
    parts, said = [], []
    model = source.model
    for k in range(0 if source.off("actuation") else source.actuators):
        if (
            0 <= int(model.actuator_group[k]) < 31
            and int(model.opt.disableactuator) >> int(model.actuator_group[k]) & 1
        ):
            continue
        why, who = _obstacle(source, k, lines), source.called("actuator", k)
        if why:
            said.append((f"actuators that {why} are left out", who))
            continue
        said += [(f"actuators whose {what} is left out", who) for what in _lost(source, k)]
        own = servo_of(source, k)
        law: Fn = muscles.Contract() if isinstance(own, muscles.Muscle) else Serve()
        parts.append(
            thruster_of(source, k, law, dataclasses.replace(own, gear=1.0, joint_range=None))
            if thrusts(source, k)
            else actuator(source.names["actuator", k], driven_by(source, k), law=law, own=own)
        )
    return parts, gathered(said)


def acting_on(source: Source, joint: int) -> list[int]:
    """Numbers of the actuators that act on the coordinate of a joint, in the joint or by a tendon."""
    model, kinds, found = source.model, source.mujoco.mjtTrn, []
    direct = (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT))
    for k in range(source.actuators):
        on, kind = int(model.actuator_trnid[k][0]), int(model.actuator_trntype[k])
        if kind in direct:
            found += [k] * (on == joint)
        elif kind != kinds.mjTRN_TENDON or _winds(source, on, joint):
            found.append(k)
    return found


def acting_in(source: Source, tendon: int) -> list[int]:
    """Numbers of the actuators in a tendon."""
    model, kind = source.model, int(source.mujoco.mjtTrn.mjTRN_TENDON)
    pairs = zip(model.actuator_trntype, model.actuator_trnid, strict=True)
    return [k for k, (own, on) in enumerate(pairs) if int(own) == kind and int(on[0]) == tendon]


def _winds(source: Source, tendon: int, joint: int) -> bool:
    """Whether a tendon runs through sites, or has a joint among its coordinates."""
    model, first = source.model, int(source.model.tendon_adr[tendon])
    wraps = range(first, first + int(model.tendon_num[tendon]))
    if int(model.wrap_type[first]) != source.mujoco.mjtWrap.mjWRAP_JOINT:
        return True
    return any(int(model.wrap_objid[w]) == joint for w in wraps)


def driven_by(source: Source, k: int) -> str:
    """Name of the joint or tendon in which an actuator acts."""
    in_tendon = int(source.model.actuator_trntype[k]) == source.mujoco.mjtTrn.mjTRN_TENDON
    return source.names["tendon" if in_tendon else "joint", int(source.model.actuator_trnid[k][0])]


def _obstacle(source: Source, k: int, lines: set[str]) -> str:
    """Reason for which an actuator has no equivalent part; empty if it has one."""
    model, mujoco = source.model, source.mujoco
    in_tendon = int(model.actuator_trntype[k]) == mujoco.mjtTrn.mjTRN_TENDON
    if thrusts(source, k):
        why = obstacle(source, k)
        if why:
            return why
    elif not in_tendon and int(model.actuator_trntype[k]) != mujoco.mjtTrn.mjTRN_JOINT:
        return "do not act on a joint, tendon or site"
    if in_tendon and driven_by(source, k) not in lines:
        return "act on a tendon that is left out"
    dynamics = mujoco.mjtDyn
    known = (
        dynamics.mjDYN_NONE,
        dynamics.mjDYN_FILTER,
        dynamics.mjDYN_FILTEREXACT,
        dynamics.mjDYN_INTEGRATOR,
        dynamics.mjDYN_MUSCLE,
    )
    if int(model.actuator_dyntype[k]) not in known or int(model.actuator_actnum[k]) > 1:
        return "have an activation that is neither a filter, an integrator nor that of a muscle"
    plain = (mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtGain.mjGAIN_AFFINE)
    if muscles.contracts(source, k):
        if why := muscles.obstacle(source, k):
            return why
    elif int(model.actuator_gaintype[k]) not in plain:
        return "have a gain that is neither fixed, affine nor that of a muscle"
    elif int(model.actuator_biastype[k]) not in (mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE):
        return "have a bias that is not affine"
    for what in ("damping", "armature", "dampingpoly"):
        if np.any(getattr(model, f"actuator_{what}", np.zeros(source.actuators))[k]):
            return f"have a {what} of their own"
    return ""


def _lost(source: Source, k: int) -> list[str]:
    """Properties of an actuator that are left out."""
    model, lost = source.model, []
    delay = getattr(model, "actuator_delay", None)
    if delay is not None and np.any(delay[k]):
        lost.append("delay")
    if (
        int(model.actuator_dyntype[k]) == source.mujoco.mjtDyn.mjDYN_NONE
        or not model.actuator_actlimited[k]
    ):
        return lost
    bounds, control = _range(model.actuator_actlimited, model.actuator_actrange, k), None
    if int(model.actuator_dyntype[k]) != source.mujoco.mjtDyn.mjDYN_INTEGRATOR and not source.off(
        "clampctrl"
    ):
        control = _range(model.actuator_ctrllimited, model.actuator_ctrlrange, source.control(k))
    if control is None or control[0] < bounds[0] or control[1] > bounds[1]:
        lost.append("stop of its activation (it goes on beyond actrange, and the effort does not)")
    return lost


def _range(limited: Any, values: Any, k: int) -> Any:
    """Bounds (2,) of an actuator; None without."""
    return np.array(values[k], float).reshape(-1)[:2] if np.any(limited[k]) else None


def _total(source: Source, k: int) -> Any:
    """Bounds (2,) of the effort of a joint or tendon whose only actuator this is; else None."""
    model, on = source.model, int(source.model.actuator_trnid[k][0])
    if thrusts(source, k):
        return None
    if int(model.actuator_trntype[k]) == source.mujoco.mjtTrn.mjTRN_TENDON:
        kind, together = "tendon", acting_in(source, on)
    else:
        kind, together = "jnt", acting_on(source, on)
    limited = getattr(model, f"{kind}_actfrclimited", np.zeros(on + 1, bool))
    if len(together) > 1 or not limited[on]:
        return None
    return np.array(getattr(model, f"{kind}_actfrcrange")[on], float)


def servo_of(source: Source, k: int) -> Servo | muscles.Muscle:
    """Numbers of an actuator from the file."""
    given = _bounds(source, k)
    if muscles.contracts(source, k):
        return muscles.muscle_of(source, k, given)
    model, mujoco = source.model, source.mujoco
    gain, bias = (np.array(x[k][:3], float) for x in (model.actuator_gainprm, model.actuator_biasprm))
    if int(model.actuator_gaintype[k]) == mujoco.mjtGain.mjGAIN_FIXED:
        gain[1:] = 0.0
    if int(model.actuator_biastype[k]) == mujoco.mjtBias.mjBIAS_NONE:
        bias[:] = 0.0
    return Servo(gain=gain, bias=bias, **given)


def _bounds(source: Source, k: int) -> dict[str, Any]:
    """Control, gear and bounds of an actuator from the file."""
    model, mujoco = source.model, source.mujoco
    if int(model.actuator_dyntype[k]) != mujoco.mjtDyn.mjDYN_NONE:  # the activation acts as control
        control = _range(model.actuator_actlimited, model.actuator_actrange, k)
    else:
        clamped = model.actuator_ctrllimited & (not source.off("clampctrl"))
        control = _range(clamped, model.actuator_ctrlrange, source.control(k))
    force, total = _range(model.actuator_forcelimited, model.actuator_forcerange, k), _total(source, k)
    in_tendon = int(model.actuator_trntype[k]) == mujoco.mjtTrn.mjTRN_TENDON
    if in_tendon and total is not None:  # this bound acts on the actuator, before the gear
        force, total = total if force is None else np.clip(force, *total), None
    return dict(
        control=0.0, gear=source.gear(k), control_range=control, force_range=force, joint_range=total
    )
