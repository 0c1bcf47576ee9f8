"""Kinds of elements between the nodes of beams. A new kind is an `ElementKind` and an entry in `KINDS`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.fem import (
    carried,
    node_axes,
    objective_energy,
    objective_forces,
    objective_strains,
    placed,
    point_forces,
    point_strains,
    section_axes,
    started,
)
from nsjax.fem.spatial_beams import History
from nsjax.multibody.numbers import Beam, Section
from nsjax.multibody.parts import Part, registered
from nsjax.types import Array, record

# Masses of the nodes of beams, and elastic elements between neighbours among all bodies.
#
# The nodes of beams are bodies in the row of all bodies. An element couples two neighbours in this row if
# they are nodes of one beam; every other pair of neighbours has an element without stiffness. All
# operations then are arithmetic on slices of the row, and matrices are block tridiagonal. Elements with
# forces of their own use only the lengths and masses of the pairs.


@record()
class Elastic:
    """Elements of all ``n - 1`` pairs of neighbours; the stiffness is zero where there is no element.

    Args:
        length: (n - 1,) [m].
        axes: section axes (n - 1, 3, 3) without strain.
        curvature: (n - 1, 3) without moments [1/m].
        stiffness: (n - 1, 6) two of shear and one of extension [N], two of bending and one of twist
            [N m^2]; None if no beam has elements of this kind.
        damping: (n - 1,) time by which strain rates are multiplied in stresses [s]; None: undamped.
        coupling: (n - 1,) sixth of the mass of elements with consistent mass [kg]; None: lumped.
    """

    length: Array
    axes: Array
    curvature: Array
    stiffness: Array | None
    damping: Array | None
    coupling: Array | None


@record()
class Piece:
    """Adjacent bodies of the row: masses (k,) [kg] and inertias (k, 3, 3) [kg m^2], elements between them
    (k - 1), and the numbers of elements with forces of their own (``own``).
    """

    mass: Array
    inertia: Array
    elastic: Elastic | None
    own: Any = None


def _two(x: Any) -> Array:
    """One number for both section axes, or two numbers, as an array (2,)."""
    return jnp.broadcast_to(jnp.asarray(x, float), (2,))


def stiffness_of(section: Section) -> Array:
    """Stiffness (6,) ``(GA_1, GA_2, EA, EI_1, EI_2, GJ)`` of a section."""
    axial, twist = (jnp.asarray(x, float)[None] for x in (section.EA, section.GJ))
    return jnp.concatenate([_two(section.GA), axial, _two(section.EI), twist])


def turning_of(s: Section) -> Array:
    """Rotary inertia per length about ``d1``, ``d2`` and ``d3`` (3,)."""
    two = _two(0.0 if s.line_inertia is None else s.line_inertia)
    return jnp.concatenate([two, jnp.sum(two)[None]])


def _ends(x: Array) -> Array:
    """Sums at the nodes (n + 1, ...) of shares (n, ...) that each element gives to both of its nodes."""
    none = jnp.zeros_like(x[:1])
    return jnp.concatenate([x, none]) + jnp.concatenate([none, x])


def halves(x: Beam) -> tuple[Piece, Array]:
    """Masses of nodes, with half of adjacent elements without stiffness; masses (n,) of elements [kg]."""
    lengths, axes = section_axes(jnp.asarray(x.points, float), jnp.asarray(x.first_axis, float))
    s, n = x.section, lengths.shape[0]
    line = jnp.asarray(0.0 if s.line_mass is None else s.line_mass, float) * lengths
    turning = turning_of(s)
    each = jnp.sum(axes[:, :, None, :] * axes[:, None, :, :] * turning, axis=3) * lengths[:, None, None]
    elastic = Elastic(
        length=lengths, axes=axes, curvature=jnp.zeros((n, 3)), stiffness=None, damping=None, coupling=None
    )
    return Piece(mass=_ends(0.5 * line), inertia=_ends(0.5 * each), elastic=elastic), line


def blank(n: int, like: Elastic | None) -> Elastic:
    """``n`` pairs without elements."""
    return Elastic(
        length=jnp.ones(n), axes=jnp.broadcast_to(jnp.eye(3), (n, 3, 3)), curvature=jnp.zeros((n, 3)),
        stiffness=jnp.zeros((n, 6)),
        damping=None if like is None or like.damping is None else jnp.zeros(n),
        coupling=None if like is None or like.coupling is None else jnp.zeros(n),
    )  # fmt: skip


def _completed(x: Elastic, damped: bool, coupled: bool) -> Elastic:
    zero = jnp.zeros_like(x.length)
    return Elastic(
        length=x.length, axes=x.axes, curvature=x.curvature,
        stiffness=jnp.zeros((*zero.shape, 6)) if x.stiffness is None else x.stiffness,
        damping=(zero if x.damping is None else x.damping) if damped else None,
        coupling=(zero if x.coupling is None else x.coupling) if coupled else None,
    )  # fmt: skip


def joined(pieces: list[Piece]) -> Elastic | None:
    """Elements of all pairs of neighbours, from pieces of the row; None without beams."""
    beams = [x.elastic for x in pieces if x.elastic is not None]
    if not beams:
        return None
    damped = any(x.damping is not None for x in beams)
    coupled = any(x.coupling is not None for x in beams)
    like, found = _completed(beams[0], damped, coupled), []
    for k, piece in enumerate(pieces):
        if k:
            found.append(blank(1, like))
        if piece.elastic is not None:
            found.append(_completed(piece.elastic, damped, coupled))
    made: Elastic = jax.tree.map(lambda *y: jnp.concatenate(y), *found)
    if all(x.stiffness is None for x in beams):
        return dataclasses.replace(made, stiffness=None)
    return made


def _pairs(x: Array) -> Array:
    return jnp.stack([x[:-1], x[1:]], axis=1)


def _spread(f: Array) -> Array:
    """Sums at the bodies (n, ...) of the contributions to both ends of every pair (n - 1, 2, ...)."""
    none = jnp.zeros_like(f[:1, 0])
    return jnp.concatenate([f[:, 0], none]) + jnp.concatenate([none, f[:, 1]])


def elastic_forces(x: Elastic, poses: Array, rates: Array) -> Array:
    """Forces in the axes of the ground, and moments in the axes of the bodies (n, 6)."""
    if x.stiffness is None:
        return jnp.zeros((poses.shape[0], 6))
    if x.damping is None:
        f = jax.vmap(lambda n, *e: objective_forces(n, None, *e))(
            _pairs(poses), x.length, x.axes, x.curvature, x.stiffness
        )
        return _spread(f)
    f = jax.vmap(objective_forces)(
        _pairs(poses), _pairs(rates), x.length, x.axes, x.curvature, x.stiffness, x.damping
    )
    return _spread(f)


def elastic_energy(x: Elastic, poses: Array) -> Array:
    """Strain energy [J]."""
    if x.stiffness is None:
        return jnp.zeros(())

    def one(pair: Array, length: Array, axes: Array, curvature: Array) -> Array:
        return objective_strains(
            pair[0, :3], pair[0, 3:], pair[1, :3], pair[1, 3:], length, axes, curvature
        )

    found = jax.vmap(one)(_pairs(poses), x.length, x.axes, x.curvature)
    strains = jnp.where(x.stiffness > 0.0, found, 0.0)  # pairs without an element have no strain
    return jnp.sum(jax.vmap(objective_energy)(strains, x.stiffness, x.length))


def line_forces(lengths: Array, values: Array) -> Array:
    """Forces on nodes (n, 3) from a force per length, linear between ``values`` (n, 3) at the nodes."""
    one, other, share = values[:-1], values[1:], lengths[:, None] / 6.0
    return _spread(jnp.stack([share * (2.0 * one + other), share * (one + 2.0 * other)], axis=1))


def coupled_momenta(coupling: Array, velocities: Array) -> Array:
    """Momenta (n, 3) that consistent masses add to lumped ones: ``m/6 (v2 - v1)``, and the opposite."""
    gone = coupling[:, None] * (velocities[1:] - velocities[:-1])
    return _spread(jnp.stack([gone, -gone], axis=1))


# The record of a kind of beam elements: shapes, strains and forces between the nodes.


def _nothing(part: Part) -> int:
    """Number of entries of ``q`` of elements without any: 0."""
    return 0


def _unnamed(part: Part) -> list[str]:
    """Names of the entries of ``q`` of elements without any: none."""
    return []


@dataclasses.dataclass(frozen=True, eq=False)
class ElementKind:
    """A kind of elements between the nodes of a beam: an entry of `elements.KINDS` with all that defines
    it.

    Elements between neighbouring nodes (`elements.pieces.Elastic`) need no functions of their own; other
    elements have forces of their own, computed beam by beam.

    Args:
        name: ``element=`` of `nsjax.multibody.beam`.
        piece: ``(numbers, part) -> Piece``, masses of the nodes and numbers of the elements (its ``own``),
            made once per run.
        nodes: numbers of nodes that an element may have, 2 or 3.
        forces: ``(own, points, poses, rates, part) -> (n, 6)``: forces on the nodes in the axes of the
            ground [N], and moments in the axes of the nodes [N m]; ``points`` are the beam's entries of
            ``q``.
        energy: ``(own, points, poses, part)`` [J].
        momenta: ``(own, velocities) -> (n, 3)``: momenta that consistent masses add beyond neighbouring
            nodes, or None.
        line: ``(own, values) -> (n, 3)``: forces on the nodes from a force per length with these values at
            the nodes; None: linear shape functions.
        entries: ``(part)``, number of entries of ``q`` of the elements of a beam.
        labels: ``(part)``, names of these entries.
        moved: ``(points, poses, increments, part)``, the entries after increments of the nodes (n, 6).
        placed: ``(poses, part)``, the entries at the start of a run.

    Example:
        >>> from nsjax.multibody.elements import KINDS
        >>> KINDS["objective"].nodes, KINDS["incremental"].nodes
        ((2,), (2, 3))
    """

    name: str
    piece: Callable[[Beam, Part], Piece]
    nodes: tuple[int, ...] = (2,)
    forces: Callable[[Any, Array, Array, Array, Part], Array] | None = None
    energy: Callable[[Any, Array, Array, Part], Array] | None = None
    momenta: Callable[[Any, Array], Array | None] | None = None
    line: Callable[[Any, Array], Array] | None = None
    entries: Callable[[Part], int] = _nothing
    labels: Callable[[Part], list[str]] = _unnamed
    moved: Callable[[Array, Array, Array, Part], Array] | None = None
    placed: Callable[[Array, Part], Array] | None = None


# Chains of incremental elements (`nsjax.fem.spatial_beams`). Each Gauss point has seven entries of ``q``
# after the poses of all bodies, a quaternion, two curvatures and a twist, which every increment of the
# position updates.


POINT = 7
"""Entries of ``q`` for a Gauss point: a quaternion (4), two curvatures and a twist."""

QUADRATIC = np.array([[4.0, 2.0, -1.0], [2.0, 16.0, 2.0], [-1.0, 2.0, 4.0]]) / 30.0
"""Integrals of the products of the quadratic shape functions, divided by the length of the element."""


@record()
class BeamElements:
    """Elements of one beam.

    Args:
        drawn: reference state of every element (e, ...) without strain, with its curvature without moments.
        stiffness: (6,), as in `nsjax.multibody.elements.Elastic`.
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


def _incremental_piece(x: Beam, part: Part) -> Piece:
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
    # the elements of the chain have all stiffness: the pairs of nodes carry lengths and coupled mass alone
    pairs = dataclasses.replace(
        pairs, length=jnp.sqrt(jnp.sum(gone * gone, axis=1)), coupling=coupling, stiffness=None
    )
    return Piece(
        mass=summed(line * own[:, :, None])[:, 0],
        inertia=summed((own[:, :, None, None] * each).reshape(-1, nodes, 9)).reshape(-1, 3, 3),
        elastic=pairs, own=chain,
    )  # fmt: skip


INCREMENTAL = ElementKind(
    name="incremental", piece=_incremental_piece, nodes=(2, 3), forces=_forces, energy=_energy,
    momenta=_momenta, line=_line, entries=_entries, labels=_labels, moved=_moved, placed=_placed,
)  # fmt: skip


# Geometrically exact elements of two nodes (`nsjax.fem.spatial_beams`): their strains follow from the
# poses of both nodes alone, independent of the path to these poses.


def _objective_piece(x: Beam, part: Part) -> Piece:
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


OBJECTIVE = ElementKind(name="objective", piece=_objective_piece)


KINDS: dict[str, ElementKind] = {x.name: x for x in (OBJECTIVE, INCREMENTAL)}
"""Kinds of elements by the ``element`` of a beam."""


def kind_of(part: Part) -> ElementKind:
    """The kind of the elements of a beam."""
    return registered(KINDS, str(part.option("element")))
