"""Resistance of a medium, water or air, against a body."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.forms import form_of, quantity
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.loads.load_kind import Driven, End, LoadKind, end_of, refuse_ground, signed_square
from nsjax.multibody.numbers import Load, Number
from nsjax.multibody.parts import Part, made, number, record_of
from nsjax.types import Array, is_traced, record


@record()
class Fluid:
    """Numbers of a medium, and of the box that replaces a body in it.

    Args:
        box: edges of the box (3,) [m].
        turned: rotation of the box against body axes: an angle [rad], or a rotation vector (3,) [rad].
        density: density of the medium [kg/m^3].
        viscosity: dynamic viscosity of the medium [Pa s].
        wind: velocity of the medium (2,) or (3,) [m/s].
    """

    box: Array
    turned: Number | None = quantity("rad", None, shape="turn")
    density: Number | None = quantity("kg/m^3", None, least=0.0)
    viscosity: Number | None = quantity("Pa s", None, least=0.0)
    wind: Number | None = None


def fluid_drag(
    name: str, body: End, box: Any, *, density: Any = None, viscosity: Any = None, wind: Any = None,
    turned: Any = None,
) -> Part:  # fmt: skip
    """The force and moment by which a medium (water, air) resists the motion of a body.

    A box with edges ``a, b, c`` replaces the body. In the axes of the box, let ``u`` be the velocity of its
    centre relative to the medium, ``w`` its angular velocity, and ``d = (a + b + c) / 3``. Force and moment
    along the first axis are::

        F_1 = -3 pi d mu u_1   - rho b c |u_1| u_1 / 2
        M_1 = -pi d^3 mu w_1   - rho a (b^4 + c^4) |w_1| w_1 / 64

    The other axes follow by cyclic exchange of the edges.

    Args:
        name: of the load.
        body: the centre of the box: a body's name for its origin, or ``("fin", point)`` in body axes [m].
            For a body whose centre of mass is not its origin, give the centre of mass.
        box: edges (3,) [m]; in the plane the third edge is the depth.
        density: density ``rho`` of the medium [kg/m^3].
        viscosity: dynamic viscosity ``mu`` of the medium [Pa s].
        wind: velocity of the medium, (2,) or (3,) in the axes of the ground [m/s]; None: at rest.
        turned: rotation of the box against body axes: an angle, or a rotation vector (3,) [rad].

    Raises:
        InputError: for edges that are not positive, for a negative density or viscosity, if neither of the
            two is given, and for a load on the ground.

    Limits: no buoyancy, no lift, no added mass of the medium.

    Source: the inertia model of MuJoCo's passive forces (documentation, "Computation", "Fluid forces").

    Example:
        >>> from nsjax.multibody import fluid_drag
        >>> fluid_drag("water", "fin", (0.2, 0.1, 0.02), density=1000.0).bodies
        ('fin',)
    """
    medium = medium_numbers("fluid_drag", name, density, viscosity, wind, turned)
    edges = number("fluid_drag", name, "box", box)
    if np.shape(edges) != (3,) or (not is_traced(edges) and not np.all(edges > 0.0)):
        raise InputError(f"fluid_drag {name!r}: box = {box}; give three positive edges [m]")
    own = Fluid(box=edges, **medium)
    who, at = end_of("fluid_drag", name, body)
    refuse_ground("fluid_drag", name, who)
    return made("fluid_drag", name, (who,), record_of(Load, "fluid_drag", name, at=at, own=own))


def medium_numbers(
    kind: str, name: str, density: Any, viscosity: Any, wind: Any, turned: Any
) -> dict[str, Number | None]:
    """Numbers of a medium and of the rotation of a shape in it, for a load of this kind. Raises
    `InputError` if neither density nor viscosity is given, or one of them is negative.
    """
    if density is None and viscosity is None:
        raise InputError(f"{kind} {name!r}: give a density, a viscosity, or both")
    given = {"turned": turned, "density": density, "viscosity": viscosity, "wind": wind}
    return {k: number(kind, name, k, v, form=form_of(Fluid, k)) for k, v in given.items()}


def _resistance(fluid: Fluid, u: Array, w: Array) -> tuple[Array, Array]:
    """Force [N] and moment [N m], (3,) in the axes of the box, at the velocities ``u`` and ``w`` (3,)."""
    box = fluid.box
    b, c = jnp.roll(box, -1), jnp.roll(box, -2)
    push, turn = jnp.zeros(3), jnp.zeros(3)
    if fluid.viscosity is not None:
        mean = jnp.sum(box) / 3.0
        push = push - 3.0 * math.pi * mean * fluid.viscosity * u
        turn = turn - math.pi * mean**3 * fluid.viscosity * w
    if fluid.density is not None:
        push = push - 0.5 * fluid.density * b * c * signed_square(u)
        turn = turn - fluid.density * box * (b**4 + c**4) / 64.0 * signed_square(w)
    return push, turn


def axes_of(scene: Scene, body: str, fluid: Any) -> Any:
    """Rotation from the axes of a box or ellipsoid in a medium to those of the ground."""
    turn, turned = scene.frame(body).turn, fluid.turned
    if turned is None:
        return turn
    if scene.dimension == 3:
        return space.both(turn, space.rotation_of(turned))
    return plane.both(turn, (jnp.sin(turned), jnp.cos(turned)))


def _pushes(scene: Scene, part: Part, numbers: Any, driven: Driven) -> Iterator[Push]:
    a, body, fluid = scene.algebra, part.bodies[0], numbers.own
    axes, frame = axes_of(scene, body, fluid), scene.frame(body)
    arm = scene.arm(body, numbers.at)
    passing = a.subtract(scene.motion(body, arm), a.vector(fluid.wind))
    u = a.array(a.turned_back(axes, passing))
    if scene.dimension == 2:
        spin = plane.value(frame.spin)
        push, turn = _resistance(fluid, jnp.pad(u, (0, 1)), jnp.stack([0.0 * spin, 0.0 * spin, spin]))
        yield body, a.turned(axes, (push[0], push[1])), a.add(frame.origin, arm), turn[2]
        return
    push, turn = _resistance(fluid, u, a.array(a.turned_back(axes, frame.spin)))
    yield body, a.turned(axes, push), a.add(frame.origin, arm), a.turned(axes, turn)


FLUID_DRAG = LoadKind(name="fluid_drag", pushes=_pushes)
