"""Forces of a medium, water or air, on an ellipsoid: drag, lift and added mass."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.math import norm
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.spatial_vectors import cross
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.loads.fluid_drag import axes_of, medium_numbers
from nsjax.multibody.loads.load_kind import Driven, End, LoadKind, end_of, refuse_ground
from nsjax.multibody.numbers import Load, Number
from nsjax.multibody.parts import Part, made, number, record_of
from nsjax.types import Array, is_traced, record

COEFFICIENTS = (0.5, 0.25, 1.5, 1.0, 1.0)
"""Default coefficients of MuJoCo: blunt and slender drag, drag of turns, Kutta lift, Magnus lift."""


@record()
class Ellipsoid:
    """Numbers of a medium and of an ellipsoid in it.

    Args:
        semiaxes: (3,) [m].
        coefficients: (5,) of blunt drag, slender drag, drag of turns, Kutta lift, Magnus lift.
        turned: rotation of the ellipsoid against body axes, a rotation vector (3,) [rad].
        density: density of the medium [kg/m^3].
        viscosity: dynamic viscosity of the medium [Pa s].
        wind: velocity of the medium (3,) [m/s].
        added: added volumes [m^3] and moments [m^5] of the medium (6,).
    """

    semiaxes: Array
    coefficients: Array
    turned: Number | None = None
    density: Number | None = None
    viscosity: Number | None = None
    wind: Number | None = None
    added: Array | None = None


def ellipsoid_drag(
    name: str, body: End, semiaxes: Any, *, density: Any = None, viscosity: Any = None, wind: Any = None,
    turned: Any = None, coefficients: Any = COEFFICIENTS, added: Any = None,
) -> Part:  # fmt: skip
    """The force and moment of a medium (water, air) on an ellipsoid of a body in space.

    With the semiaxes ``r``, their largest, middle and smallest value ``a >= b >= c``, and ``A`` the area of
    the ellipsoid seen along its velocity ``u`` relative to the medium, in the axes of the ellipsoid::

        drag     F = -(3 pi d mu + rho |u| (C_b A + C_s (pi a b - A))) u,    d = 2 (r_1 + r_2 + r_3) / 3
                 M = -(pi d^3 mu + rho |L|) w,    L_i = w_i (C_a I_i + C_s (I_max - I_i))
                 I_i = 8 pi r_i max(r_j, r_k)^4 / 15,    I_max = 8 pi b a^4 / 15
        lift     F = C_K rho A cos(alpha) (n x u) x u + C_M rho V w x u
        added    F = p x w,    M = p x u + l x w,    p_i = rho m_i u_i,    l_i = rho j_i w_i

    for the angular velocity ``w``, the volume ``V``, and the normal ``n`` of the surface where the velocity
    is along it, with the angle ``alpha`` between them.

    Args:
        name: of the load.
        body: the centre of the ellipsoid: a body's name for its origin, or ``("fin", point)`` in body axes
            [m].
        semiaxes: ``r`` (3,) [m].
        density: density ``rho`` of the medium [kg/m^3].
        viscosity: dynamic viscosity ``mu`` of the medium [Pa s].
        wind: velocity of the medium, (3,) in the axes of the ground [m/s]; None: at rest.
        turned: rotation of the ellipsoid against body axes, a rotation vector (3,) [rad].
        coefficients: ``C_b, C_s, C_a, C_K, C_M``.
        added: added volumes ``m`` [m^3] and moments ``j`` [m^5] of the medium, (6,); None: none.

    Raises:
        InputError: for semiaxes that are not positive, other shapes, a negative density or viscosity, if
            neither of the two is given, and for a load on the ground.

    Limits: no buoyancy; of the added mass the forces of velocities alone, not those of accelerations.

    Source: the ellipsoid model of MuJoCo's passive forces (documentation, "Computation", "Fluid forces"),
    after [Andersen, Pesavento & Wang, J. Fluid Mech. 541, 2005].

    Example:
        >>> from nsjax.multibody import ellipsoid_drag
        >>> ellipsoid_drag("water", "fin", (0.2, 0.1, 0.02), density=1000.0).bodies
        ('fin',)
    """
    medium = medium_numbers("ellipsoid_drag", name, density, viscosity, wind, turned)
    size = number("ellipsoid_drag", name, "semiaxes", semiaxes)
    if np.shape(size) != (3,) or (not is_traced(size) and not np.all(size > 0.0)):
        raise InputError(f"ellipsoid_drag {name!r}: semiaxes = {semiaxes}; give three positive numbers [m]")
    own = Ellipsoid(
        semiaxes=size,
        coefficients=_some("coefficients", name, coefficients, 5),
        added=None if added is None else _some("added", name, added, 6),
        **medium,
    )
    who, at = end_of("ellipsoid_drag", name, body)
    refuse_ground("ellipsoid_drag", name, who)
    return made("ellipsoid_drag", name, (who,), record_of(Load, "ellipsoid_drag", name, at=at, own=own))


def _some(what: str, name: str, given: Any, count: int) -> Any:
    found = number("ellipsoid_drag", name, what, given)
    if np.shape(found) != (count,):
        raise InputError(
            f"ellipsoid_drag {name!r}: {what} = {given}; an ellipsoid in a medium has {count} of them"
        )
    return found


def _or_one(x: Array) -> Array:
    """A denominator; one in place of zero, at rest."""
    return jnp.where(x > 0.0, x, 1.0)


def _viscous(x: Any, u: Array, w: Array) -> tuple[Array, Array]:
    """Drag of a slow motion, as that of a sphere with the mean of the diameters."""
    across = 2.0 / 3.0 * jnp.sum(x.semiaxes)
    return -3.0 * math.pi * across * x.viscosity * u, -math.pi * across**3 * x.viscosity * w


def _dense(x: Any, u: Array, w: Array) -> tuple[Array, Array]:
    """Drag of a fast motion, lift and added mass."""
    r = x.semiaxes
    blunt, slender, turning, kutta, magnus = x.coefficients
    most, product = jnp.max(r), jnp.roll(r, -1) * jnp.roll(r, -2)
    middle = jnp.sum(r) - most - jnp.min(r)
    normal = product**2 * u
    square, along, speed = jnp.sum(normal * normal), jnp.sum(normal * u), norm(u)
    area = math.pi * norm(normal) / jnp.sqrt(_or_one(along))
    lean = along / _or_one(speed * square)
    push = magnus * 4.0 / 3.0 * math.pi * jnp.prod(r) * cross(w, u)
    push = push + kutta * lean * area * cross(cross(normal, u), u)
    push = push - speed * (blunt * area + slender * (math.pi * most * middle - area)) * u
    beside = jnp.maximum(jnp.roll(r, -1), jnp.roll(r, -2))
    moments, largest = 8.0 / 15.0 * math.pi * r * beside**4, 8.0 / 15.0 * math.pi * middle * most**4
    turn = -norm(w * (turning * moments + slender * (largest - moments))) * w
    if x.added is not None:
        pushed, turned = x.added[:3] * u, x.added[3:] * w
        push = push + cross(pushed, w)
        turn = turn + cross(pushed, u) + cross(turned, w)
    return x.density * push, x.density * turn


def _pushes(scene: Scene, part: Part, numbers: Any, driven: Driven) -> Iterator[Push]:
    a, body, own = scene.algebra, part.bodies[0], numbers.own
    if scene.dimension == 2:
        raise InputError(
            f"ellipsoid_drag {part.name!r}: the mechanism is planar, and an ellipsoid is in space; take "
            "fluid_drag"
        )
    axes, frame = axes_of(scene, body, own), scene.frame(body)
    arm = scene.arm(body, numbers.at)
    passing = a.subtract(scene.motion(body, arm), a.vector(own.wind))
    u, w = a.array(a.turned_back(axes, passing)), a.array(a.turned_back(axes, frame.spin))
    push, turn = jnp.zeros(3), jnp.zeros(3)
    for given, law in ((own.viscosity, _viscous), (own.density, _dense)):
        if given is not None:
            more, moment = law(own, u, w)
            push, turn = push + more, turn + moment
    yield body, a.turned(axes, push), a.add(frame.origin, arm), a.turned(axes, turn)


ELLIPSOID_DRAG = LoadKind(name="ellipsoid_drag", pushes=_pushes)
