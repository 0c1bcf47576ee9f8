"""Muscles of a model file: force by length and speed, passive force, and how the activation follows."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.multibody.files.source import MINVAL, Source
from nsjax.multibody.joint_forces import AtOnce, Controlled
from nsjax.types import Array, record


@record()
class Muscle(Controlled):
    """Numbers of a muscle with the effort ``-gear F0 (u FL(L) FV(V) + FP(L))`` at the length
    ``l = gear q``, with ``L = start + (l - shortest) / optimum`` and ``V = l' / (optimum fastest)``.

    Args:
        force: ``F0`` at the optimum length, at rest [N].
        passive: 1 with the passive force ``FP``, 0 without.
        optimum: length at which the muscle is strongest [m].
        shortest, start: a length [m], and L there.
        least, most: L between which it pulls actively.
        fastest: speed of shortening at which it does not pull [optimum lengths per second].
        stretched: ``FP`` at ``most``.
        lengthened: largest ``FV``, of a muscle that is pulled.

    The others as in `nsjax.multibody.joint_forces.Controlled`; ``control`` is the activation.

    Source: MuJoCo's documentation, chapter "Modeling", section "Muscles".
    """

    force: Any
    passive: Any
    optimum: Any
    shortest: Any
    start: Any
    least: Any
    most: Any
    fastest: Any
    stretched: Any
    lengthened: Any


@dataclasses.dataclass(frozen=True)
class Contract(AtOnce):
    """The law of a `Muscle`."""

    def __call__(self, t: Array, x: Array, rate: Array, own: Muscle) -> Array:
        """Effort at a coordinate and rate."""
        length = own.start + (own.gear * x - own.shortest) / _some(own.optimum)
        speed = own.gear * rate / _some(own.optimum * own.fastest)
        active = by_length(length, own) * by_speed(speed, own)
        return own.effort(-own.force * (own.command * active + own.passive * passively(length, own)))


def _some(x: Any) -> Array:
    """A length or difference, never zero."""
    return jnp.maximum(jnp.asarray(x, float), MINVAL)


def by_length(x: Array, own: Muscle) -> Array:
    """Active force ``FL`` at the length x: four parabolas, 1 at x = 1, zero beyond both ends."""
    low, high = 0.5 * (own.least + 1.0), 0.5 * (1.0 + own.most)

    def half(gone: Array, over: Array) -> Array:
        return 0.5 * (gone / _some(over)) ** 2

    rising = jnp.where(x <= low, half(x - own.least, low - own.least), 1.0 - half(1.0 - x, 1.0 - low))
    falling = jnp.where(x <= high, 1.0 - half(x - 1.0, high - 1.0), half(own.most - x, own.most - high))
    return jnp.where((own.least <= x) & (x <= own.most), jnp.where(x <= 1.0, rising, falling), 0.0)


def by_speed(v: Array, own: Muscle) -> Array:
    """Factor ``FV`` at the speed v: zero at -1, 1 at rest, at most ``lengthened``."""
    more = own.lengthened - 1.0
    pulled = jnp.where(v <= more, own.lengthened - (more - v) ** 2 / _some(more), own.lengthened)
    return jnp.where(v <= -1.0, 0.0, jnp.where(v <= 0.0, (v + 1.0) ** 2, pulled))


def passively(x: Array, own: Muscle) -> Array:
    """Passive force ``FP`` at the length x: a parabola from 1 to half way to ``most``, a line beyond."""
    high = 0.5 * (1.0 + own.most)
    part = _some(high - 1.0)
    line = 0.5 + (x - high) / part
    found = jnp.where(x <= high, 0.5 * ((x - 1.0) / part) ** 2, line)
    return own.stretched * jnp.where(x <= 1.0, 0.0, found)


@record()
class Excitation:
    """How the activation a of a muscle follows its command u, ``da/dt = (u - a) / T``, both in [0, 1]: with
    ``T = rising (0.5 + 1.5 a)`` if u > a, else ``T = falling / (0.5 + 1.5 a)``.

    Args:
        rising, falling: time constants [s].
        width: difference ``u - a`` over which the one goes over into the other; 0: at once.

    Source: Millard and others, *Flexing computational muscle*, J. Biomech. Eng. 135 (2013).
    """

    rising: Any
    falling: Any
    width: Any = 0.0

    def rate(self, u: Array, a: Array) -> Array:
        """``da/dt`` [1/s]."""
        scale = 0.5 + 1.5 * jnp.clip(a, 0.0, 1.0)
        gone, width = jnp.clip(u, 0.0, 1.0) - a, jnp.asarray(self.width, float)
        smooth = width >= MINVAL
        x = jnp.clip(gone / jnp.where(smooth, width, 1.0) + 0.5, 0.0, 1.0)
        share = jnp.where(
            smooth, x**3 * (3.0 * x * (2.0 * x - 5.0) + 10.0), jnp.where(gone > 0.0, 1.0, 0.0)
        )
        slow = self.falling / scale
        return gone / _some(slow + (self.rising * scale - slow) * share)


def contracts(source: Source, k: int) -> bool:
    """Whether an actuator is a muscle in its gain or bias."""
    model, mujoco = source.model, source.mujoco
    active = int(model.actuator_gaintype[k]) == mujoco.mjtGain.mjGAIN_MUSCLE
    return active or int(model.actuator_biastype[k]) == mujoco.mjtBias.mjBIAS_MUSCLE


def obstacle(source: Source, k: int) -> str:
    """Reason for which a muscle has no equivalent; empty if it has one."""
    model, mujoco = source.model, source.mujoco
    if int(model.actuator_gaintype[k]) != mujoco.mjtGain.mjGAIN_MUSCLE:
        return "have the passive force of a muscle alone"
    bias = int(model.actuator_biastype[k])
    if bias == mujoco.mjtBias.mjBIAS_AFFINE:
        return "are muscles with an affine bias"
    alike = np.array_equal(model.actuator_gainprm[k][:9], model.actuator_biasprm[k][:9])
    if bias == mujoco.mjtBias.mjBIAS_MUSCLE and not alike:
        return "are muscles whose passive force has other numbers than the active one"
    return ""


def muscle_of(source: Source, k: int, given: dict[str, Any]) -> Muscle:
    """Numbers of the muscle that is actuator ``k``, from the file and ``given`` control, gear, bounds."""
    model, mujoco = source.model, source.mujoco
    places = getattr(model, "actuator_outadr", None)
    at = k if places is None else int(places[k])
    first, last, force, scale, least, most, fastest, stretched, lengthened = (
        float(x) for x in model.actuator_gainprm[k][:9]
    )
    shortest, longest = (float(x) for x in model.actuator_lengthrange[at])
    if force < 0.0:
        force = scale / max(MINVAL, float(model.actuator_acc0[at]))
    return Muscle(
        force=force, passive=float(int(model.actuator_biastype[k]) == mujoco.mjtBias.mjBIAS_MUSCLE),
        optimum=(longest - shortest) / max(MINVAL, last - first), shortest=shortest, start=first,
        least=least, most=most, fastest=fastest, stretched=stretched, lengthened=lengthened, **given,
    )  # fmt: skip


def excitation(source: Source, k: int) -> Excitation:
    """How the activation of a muscle follows."""
    rising, falling, width = (float(x) for x in source.model.actuator_dynprm[k][:3])
    return Excitation(rising=rising, falling=falling, width=width)
