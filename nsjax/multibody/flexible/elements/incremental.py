"""Chains of incremental elements (`nsjax.fem.incremental_beam`). Each Gauss point has seven entries of
``q`` after the poses of all bodies, which every increment of the position updates.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.fem import carried, node_axes, placed, point_forces, point_strains, started
from nsjax.fem.incremental_beam import History
from nsjax.multibody.flexible.elements.element_kind import ElementKind
from nsjax.multibody.flexible.elements.pieces import Piece, blank, line_forces, stiffness_of, turning_of
from nsjax.multibody.numbers import Beam
from nsjax.multibody.parts import Part
from nsjax.types import Array, record

POINT = 7
"""Entries of ``q`` for a Gauss point: a quaternion (4), two curvatures and a twist."""

QUADRATIC = np.array([[4.0, 2.0, -1.0], [2.0, 16.0, 2.0], [-1.0, 2.0, 4.0]]) / 30.0
"""Integrals of the products of the quadratic shape functions, divided by the length of the element."""


@record()
class BeamElements:
    """Elements of one beam.

    Args:
        drawn: reference state of every element (e, ...) without strain, with its curvature without moments.
        stiffness: (6,), as in `nsjax.multibody.flexible.elements.pieces.Elastic`.
        damping: [s]; None: undamped.
        far: mass (e,) that couples the first and the last node of elements of three nodes [kg]; None:
            none.
    """

    drawn: History
    stiffness: Array
    damping: Array | None
    far: Array | None


def elements_of(part: Part) -> tuple[int, int]:
    """Number of elements of a beam, and number of Gauss points of each."""
    per = part.option("per")
    return (part.option("nodes") - 1) // (per - 1), per - 1


def _entries(part: Part) -> int:
    """Number of entries of ``q`` for the Gauss points of a beam."""
    elements, points = elements_of(part)
    return POINT * elements * points


def _labels(part: Part) -> list[str]:
    """Names of these entries."""
    elements, points = elements_of(part)
    names = [*(f"q{x}" for x in "wxyz"), *(f"bend{k} [rad]" for k in (1, 2, 3))]
    return [f"{part.name}.gauss{k}.{x}" for k in range(elements * points) for x in names]


def by_element(x: Array, nodes: int) -> Array:
    """Values of the nodes (n, k), gathered by element (e, nodes, k)."""
    if nodes == 2:
        return jnp.stack([x[:-1], x[1:]], axis=1)
    pairs = x[:-1].reshape(-1, 2, x.shape[1])
    last = x[1:].reshape(-1, 2, x.shape[1])[:, 1]
    return jnp.concatenate([pairs, last[:, None]], axis=1)


def summed(f: Array) -> Array:
    """Sums at the nodes (n, k) of the contributions of all elements (e, nodes, k)."""
    none = jnp.zeros_like(f[:1, 0])
    ends = jnp.concatenate([f[:, 0], none]) + jnp.concatenate([none, f[:, -1]])
    if f.shape[1] == 2:
        return ends
    inner = jnp.stack([ends[:-1], f[:, 1]], axis=1).reshape(-1, f.shape[2])
    return jnp.concatenate([inner, ends[-1:]])


def chain_of(x: Beam, nodes: int, stiffness: Array, consistent: bool) -> tuple[BeamElements, Array, Array]:
    """Elements of a beam, their lengths (e,), and the section axes (e, nodes, 3, 3) at their nodes."""
    places = by_element(jnp.asarray(x.points, float), nodes)
    first = jnp.asarray(x.first_axis, float)
    drawn = jax.vmap(lambda y: started(y, first))(places)
    bent = jnp.zeros(3) if x.curvature is None else jnp.asarray(x.curvature, float)
    drawn = History(
        axes=drawn.axes, curvature=jnp.broadcast_to(bent, drawn.curvature.shape), stretch=drawn.stretch,
        weight=drawn.weight,
    )  # fmt: skip
    lengths = jnp.sum(drawn.weight, axis=1)
    far = None
    if nodes == 3 and consistent and x.section.line_mass is not None:
        far = QUADRATIC[0, 2] * jnp.asarray(x.section.line_mass, float) * lengths
    damping = None if x.damping is None else jnp.asarray(x.damping, float)
    made = BeamElements(drawn=drawn, stiffness=stiffness, damping=damping, far=far)
    return made, lengths, jax.vmap(lambda y: node_axes(y, first))(places)


def _points(points: Array, elements: int) -> Array:
    return points.reshape(elements, -1, POINT)


def _moved(points: Array, poses: Array, xi: Array, part: Part) -> Array:
    """Entries of ``q`` of a beam after increments of its nodes (n, 6)."""
    each, steps = (by_element(x, part.option("per")) for x in (poses, xi))
    return jax.vmap(carried)(_points(points, len(each)), each, steps).reshape(-1)


def _placed(poses: Array, part: Part) -> Array:
    """Entries of ``q`` of a beam with its nodes at ``poses`` (n, 7), see `nsjax.fem.placed`."""
    return jax.vmap(placed)(by_element(poses, part.option("per"))).reshape(-1)


def _forces(x: BeamElements, points: Array, poses: Array, rates: Array, part: Part) -> Array:
    """Forces in the axes of the ground, and moments in the axes of the nodes (n, 6)."""
    each = by_element(poses, part.option("per"))
    points = _points(points, len(each))
    if x.damping is None:
        return summed(
            jax.vmap(lambda n, g, d: point_forces(n, None, g, d, x.stiffness))(each, points, x.drawn)
        )
    found = jax.vmap(lambda n, r, g, d: point_forces(n, r, g, d, x.stiffness, x.damping))(
        each, by_element(rates, part.option("per")), points, x.drawn
    )
    return summed(found)


def _energy(x: BeamElements, points: Array, poses: Array, part: Part) -> Array:
    """Strain energy [J]."""
    each = by_element(poses, part.option("per"))
    strains = jax.vmap(point_strains)(each, _points(points, len(each)), x.drawn)
    return 0.5 * jnp.sum(x.drawn.weight[:, :, None] * x.stiffness * strains * strains)


def _momenta(x: BeamElements, velocities: Array) -> Array | None:
    """Momenta (n, 3) that consistent masses add between the end nodes of elements of three nodes."""
    if x.far is None:
        return None
    each = by_element(velocities, 3)
    gone = x.far[:, None] * (each[:, 2] - each[:, 0])
    return summed(jnp.stack([gone, jnp.zeros_like(gone), -gone], axis=1))


def _line(x: BeamElements, values: Array) -> Array:
    """Forces on nodes (n, 3) from a force per length with ``values`` (n, 3) at the nodes."""
    lengths = jnp.sum(x.drawn.weight, axis=1)
    if x.drawn.weight.shape[1] == 1:
        return line_forces(lengths, values)
    each = by_element(values, 3)
    found = jnp.sum(QUADRATIC[None, :, :, None] * each[:, None], axis=2)
    return summed(lengths[:, None, None] * found)


SHARES = {2: np.array([0.5, 0.5]), 3: np.array([1.0, 4.0, 1.0]) / 6.0}
"""Shares of the length of an element, and so of its lumped mass, at its nodes."""


def _piece(x: Beam, part: Part) -> Piece:
    s, nodes, consistent = x.section, part.option("per"), part.option("mass") == "consistent"
    chain, lengths, axes = chain_of(x, nodes, stiffness_of(s), consistent)
    line, share = jnp.asarray(0.0 if s.line_mass is None else s.line_mass, float), SHARES[nodes]
    own = lengths[:, None] * share
    each = jnp.sum(axes[:, :, :, None, :] * axes[:, :, None, :, :] * turning_of(s), axis=4)
    pairs = blank(x.points.shape[0] - 1, None)
    gone = jnp.asarray(x.points, float)
    gone = gone[1:] - gone[:-1]
    coupling = None
    if consistent and s.line_mass is not None:
        coupled = 1.0 / 6.0 if nodes == 2 else QUADRATIC[0, 1]
        each_pair = jnp.broadcast_to((coupled * line * lengths)[:, None], (len(lengths), nodes - 1))
        coupling = each_pair.reshape(-1)
    pairs = dataclasses.replace(
        pairs, length=jnp.sqrt(jnp.sum(gone * gone, axis=1)), coupling=coupling, stiffness=None
    )
    return Piece(
        mass=summed(line * own[:, :, None])[:, 0],
        inertia=summed((own[:, :, None, None] * each).reshape(-1, nodes, 9)).reshape(-1, 3, 3),
        elastic=pairs, own=chain,
    )  # fmt: skip


INCREMENTAL = ElementKind(
    name="incremental", piece=_piece, nodes=(2, 3), forces=_forces, energy=_energy, momenta=_momenta,
    line=_line, entries=_entries, labels=_labels, moved=_moved, placed=_placed,
)  # fmt: skip
