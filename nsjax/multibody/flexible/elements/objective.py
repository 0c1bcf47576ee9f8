"""Geometrically exact elements of two nodes (`nsjax.fem.objective_beam`): their strains follow from the
poses of both nodes alone, independent of the path to these poses.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp

from nsjax.multibody.flexible.elements.element_kind import ElementKind
from nsjax.multibody.flexible.elements.pieces import Piece, halves, stiffness_of
from nsjax.multibody.numbers import Beam
from nsjax.multibody.parts import Part


def _piece(x: Beam, part: Part) -> Piece:
    """Masses and elements of a beam; consistent translational masses couple neighbouring nodes."""
    piece, line = halves(x)
    n, consistent = line.shape[0], part.option("mass") == "consistent"
    curvature = jnp.zeros(3) if x.curvature is None else jnp.asarray(x.curvature, float)
    assert piece.elastic is not None
    elastic = dataclasses.replace(
        piece.elastic, curvature=jnp.broadcast_to(curvature, (n, 3)),
        stiffness=jnp.broadcast_to(stiffness_of(x.section), (n, 6)),
        damping=None if x.damping is None else jnp.broadcast_to(jnp.asarray(x.damping, float), (n,)),
        coupling=line / 6.0 if consistent and x.section.line_mass is not None else None,
    )  # fmt: skip
    return dataclasses.replace(piece, elastic=elastic)


OBJECTIVE = ElementKind(name="objective", piece=_piece)
