"""A rigid box on a rough plane: eight corners in space, four in the plane."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError, Problem, State
from nsjax.core.checks import is_traced
from nsjax.models.block_forms import NaturalBox, NodalBox
from nsjax.models.box import SIZE, Block, BoxDynamics
from nsjax.models.common import constructor, vector

FORMULATIONS: MappingProxyType[str, type[BoxDynamics]] = MappingProxyType(
    {"rotation": BoxDynamics, "natural": NaturalBox, "nodes": NodalBox}
)
"""Coordinates of the spatial block."""

SPINNING_BLOCK = MappingProxyType(
    {
        "initial_q": (0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0),
        "initial_v": (3.0, 0.0, 0.0, 60.0, 60.0, 0.0),
        "restitution": 0.8,
        "rough": False,
    }
)
"""The parallelepiped of [C section 4.1] for `block`: one metre above the plane, spinning fast."""


@constructor(Block)
def block(
    params: Block,
    *,
    dimension: int = 3,
    formulation: str = "rotation",
    rough: bool = True,
    height: Any = 0.0,
    initial_q: Any = None,
    initial_v: Any = None,
    initial_time: Any = 0.0,
) -> Problem:
    """A rigid box on a rough, possibly inclined plane; every corner may hit, stick and slide.

    In space the attitude is a unit quaternion moved by `retract`; it never drifts. The defaults are
    the parallelepiped of [C section 4.1], at rest on the plane; ``**models.SPINNING_BLOCK`` is its start.

    Args:
        dimension: 3, or 2 for a rectangle in the vertical plane.
        formulation: in space. ``"rotation"``: pose, no constraint. ``"natural"``: centre and three
            directors, six constraints, no gyroscopic forces. ``"nodes"``: pose and eight corner nodes
            without mass, 24 constraints; only schemes for a singular mass take it.
        rough: False gives contacts without tangents: a smaller contact problem than ``friction=0`` has.
        height: of the lowest face above the plane at the start [m].
        initial_q, initial_v, initial_time: full initial state. Space: position and quaternion (7,),
            velocity and body angular velocity (6,), or the coordinates of the formulation. Plane:
            ``(x, z, phi)``.
        size: edges [m], (3,) or, in the plane, (2,); None: (0.1, 0.2, 0.3) or (0.2, 0.1).
        mass: [kg].
        inertia: about the body axes [kg m^2], (3,) or scalar; None: of a homogeneous box.
        gravity: [m/s^2].
        slope: inclination of the plane [rad], downhill is +x; axes stay along and normal to it.
        ground: position of the plane along its normal [m].
        restitution, restitution_tangential, friction: of the corners, scalars or one per corner.

    Returns:
        A `Problem`.

    Raises:
        InputError: for a dimension other than 2 and 3, an unknown formulation, or a quaternion that is
            zero.

    Limits: the contact forces at the single corners of a face on the plane are not unique; the motion and
    the resultant force and torque are, except for the friction torque of a face that slides and turns at
    the same time.

    Source: [C section 4.1].

    Example:
        >>> from nsjax import models
        >>> models.block(slope=0.3).system.nc
        8
    """
    if dimension not in (2, 3):
        raise InputError(f"block: dimension = {dimension}; choose 2 or 3")
    if formulation not in FORMULATIONS or (dimension == 2 and formulation != "rotation"):
        known = ", ".join(FORMULATIONS) if dimension == 3 else "rotation"
        raise InputError(
            f"block: formulation = {formulation!r} with dimension = {dimension}; choose one of {known}"
        )
    if params.size is not None and np.shape(params.size) != (dimension,):
        raise InputError(f"block: size has shape {np.shape(params.size)}; give ({dimension},)")
    if initial_q is None:
        edges = SIZE[dimension] if params.size is None else params.size
        centre = params.ground + height + 0.5 * edges[dimension - 1]
        initial_q = _upright(centre, dimension)
    initial_q = vector(initial_q)
    if dimension == 3:
        initial_q = _normalised(initial_q)
    if initial_v is None:
        initial_v = np.zeros(3 * (dimension - 1))
    form = FORMULATIONS[formulation](dimension, rough=bool(rough))
    q, v = form.start(initial_q, vector(initial_v), params)
    return Problem(system=form.system(), params=params, state=State(t=initial_time, q=q, v=v))


def _upright(centre: Any, dimension: int) -> Any:
    """Initial position of the centre, the edges along the axes."""
    xp = jnp if is_traced(centre) else np
    rest = [1.0, 0.0, 0.0, 0.0] if dimension == 3 else [0.0]
    first = [0.0] * (dimension - 1)
    return xp.asarray([*first, centre, *rest])


def _normalised(q: Any) -> Any:
    """Initial position with its quaternion scaled to unit length."""
    if q.shape != (7,):
        return q  # `simulate` refuses the shape
    xp = jnp if is_traced(q) else np
    size = xp.sqrt(xp.sum(q[3:] ** 2))
    if not is_traced(q) and not size > 0:
        raise InputError(f"block: initial_q has the quaternion {q[3:].tolist()}; it must not be zero")
    return xp.concatenate([q[:3], q[3:] / size])
