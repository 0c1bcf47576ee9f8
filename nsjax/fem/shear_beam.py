"""Planar shear-deformable beam, geometrically exact: two nodes, linear shapes, one quadrature point.

A node has a position ``(x, y)`` and an angle ``theta`` of its section; a beam without strain at ``theta =
0`` lies along ``+x``. All operations are differences or means of neighbours in a row of nodes, so that
forces (gradients of the energy) are assembled without index tables.

Source: Simo and Reissner's beam in the plane; one quadrature point avoids locking: a cantilever of ``n``
elements has ``1 - 1 / (4 n^2)`` of the exact deflection, however slender.
"""

from __future__ import annotations

import jax.numpy as jnp

from nsjax.fem.bar import bar_inertia
from nsjax.types import Array, record


@record()
class BeamStiffness:
    """Stiffness of elements, scalars or (n,): ``axial = E A`` [N], ``shear = G A_s`` [N], ``bending = E I``
    [N m^2].
    """

    axial: Array
    shear: Array
    bending: Array


@record()
class BeamStrains:
    """Stretch ``epsilon``, shear ``gamma`` [-] and curvature ``kappa`` [1/m] of elements (n,)."""

    epsilon: Array
    gamma: Array
    kappa: Array


def beam_strains(nodes: Array, lengths: Array) -> BeamStrains:
    """Strains in the middle of the elements, unchanged by rigid motions::

        epsilon = (cos(t) dx + sin(t) dy) / l - 1,   gamma = (cos(t) dy - sin(t) dx) / l,
        kappa = dtheta / l

    with the mean angle ``t`` of both nodes.

    Args:
        nodes: ``(x, y, theta)`` (n + 1, 3) [m, m, rad].
        lengths: lengths of the elements without strain (n,) [m].

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.fem.shear_beam import beam_strains
        >>> nodes = jnp.array([[0.0, 0.0, 0.0], [1.1, 0.0, 0.0]])
        >>> [round(float(x), 12) for x in beam_strains(nodes, jnp.ones(1)).epsilon]
        [0.1]
    """
    change = nodes[1:] - nodes[:-1]
    mean = 0.5 * (nodes[1:, 2] + nodes[:-1, 2])
    c, s = jnp.cos(mean), jnp.sin(mean)
    return BeamStrains(
        epsilon=(c * change[:, 0] + s * change[:, 1]) / lengths - 1.0,
        gamma=(c * change[:, 1] - s * change[:, 0]) / lengths,
        kappa=change[:, 2] / lengths,
    )


def beam_resultants(strains: BeamStrains, section: BeamStiffness) -> tuple[Array, Array, Array]:
    """Axial force [N], shear force [N] and bending moment [N m] of elements (n,)."""
    return (
        section.axial * strains.epsilon,
        section.shear * strains.gamma,
        section.bending * strains.kappa,
    )


def beam_energy(nodes: Array, lengths: Array, section: BeamStiffness) -> Array:
    """Strain energy of all elements: ``sum l/2 (E A epsilon^2 + G A_s gamma^2 + E I kappa^2)`` [J]."""
    s = beam_strains(nodes, lengths)
    n, q, m = beam_resultants(s, section)
    return 0.5 * jnp.sum(lengths * (n * s.epsilon + q * s.gamma + m * s.kappa))


def beam_inertia(w: Array, mass: Array, rotary: Array) -> Array:
    """Consistent mass times ``w`` (n + 1, 3): masses [kg] and rotary inertia [kg m^2] of elements (n,)."""
    return jnp.stack(
        [bar_inertia(w[:, 0], mass), bar_inertia(w[:, 1], mass), bar_inertia(w[:, 2], rotary)], axis=1
    )
