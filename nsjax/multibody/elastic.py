"""Elastic elements between neighbours in absolute coordinates: forces, energy and inertia of beams.

The nodes of beams are bodies among bodies. Two that follow each other are coupled by an element if they are
nodes of one beam; all other pairs carry one of no stiffness, so that everything is arithmetic on slices of
the row of all bodies, and block tridiagonal. Incremental elements are chains of their own
(`nsjax.multibody.incremental`), whose pairs have lengths and masses only.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.fem import objective_energy, objective_forces, objective_strains, section_axes
from nsjax.multibody.incremental import QUADRATIC, Chain, chain_of, summed
from nsjax.multibody.numbers import Beam, Section
from nsjax.types import Array, record


@record()
class Elastic:
    """Of all pairs of neighbours (n - 1), zero stiffness where there is no element.

    Args:
        length: [m].
        axes: of the section without strain (n - 1, 3, 3).
        curvature: without moments (n - 1, 3) [1/m].
        stiffness: (n - 1, 6) two shears, extension [N], two bendings, twist [N m^2]; None if all beams are
            chains of incremental elements.
        damping: time of the stresses of strain rates (n - 1,) [s]; None without any.
        coupling: sixth of the mass of elements with consistent mass (n - 1,) [kg]; None without any.
    """

    length: Array
    axes: Array
    curvature: Array
    stiffness: Array | None
    damping: Array | None
    coupling: Array | None


@record()
class Piece:
    """Masses (k,) and inertias (k, 3, 3) of bodies in a row, and elements between them (k - 1); those of an
    incremental beam as a chain.
    """

    mass: Array
    inertia: Array
    elastic: Elastic | None
    chain: Chain | None = None


def _two(x: Any) -> Array:
    """A number for both section axes, or two."""
    return jnp.broadcast_to(jnp.asarray(x, float), (2,))


def stiffness_of(section: Section) -> Array:
    """``(GA_1, GA_2, EA, EI_1, EI_2, GJ)`` (6,)."""
    axial, twist = (jnp.asarray(x, float)[None] for x in (section.EA, section.GJ))
    return jnp.concatenate([_two(section.GA), axial, _two(section.EI), twist])


def beam_piece(x: Beam, consistent: bool) -> Piece:
    """Of the nodes of a beam: half of every element at each of its ends; the translational mass beside it,
    if it is consistent, couples them.
    """
    lengths, axes = section_axes(jnp.asarray(x.points, float), jnp.asarray(x.first_axis, float))
    s, n = x.section, lengths.shape[0]
    line = jnp.asarray(0.0 if s.line_mass is None else s.line_mass, float) * lengths
    turning = _turning(s)
    each = jnp.sum(axes[:, :, None, :] * axes[:, None, :, :] * turning, axis=3) * lengths[:, None, None]
    curvature = jnp.zeros(3) if x.curvature is None else jnp.asarray(x.curvature, float)
    elastic = Elastic(
        length=lengths, axes=axes, curvature=jnp.broadcast_to(curvature, (n, 3)),
        stiffness=jnp.broadcast_to(stiffness_of(s), (n, 6)),
        damping=None if x.damping is None else jnp.broadcast_to(jnp.asarray(x.damping, float), (n,)),
        coupling=line / 6.0 if consistent and s.line_mass is not None else None,
    )  # fmt: skip
    return Piece(mass=_ends(0.5 * line), inertia=_ends(0.5 * each), elastic=elastic)


def _turning(s: Section) -> Array:
    """Rotary inertia per length about ``d1``, ``d2`` and ``d3`` (3,)."""
    two = _two(0.0 if s.line_inertia is None else s.line_inertia)
    return jnp.concatenate([two, jnp.sum(two)[None]])


SHARES = {2: np.array([0.5, 0.5]), 3: np.array([1.0, 4.0, 1.0]) / 6.0}
"""Of the length of an element, what its nodes carry."""


def chain_piece(x: Beam, nodes: int, consistent: bool) -> Piece:
    """As `beam_piece`, of incremental elements of so many nodes."""
    s = x.section
    chain, lengths, axes = chain_of(x, nodes, stiffness_of(s), consistent)
    line, share = jnp.asarray(0.0 if s.line_mass is None else s.line_mass, float), SHARES[nodes]
    own = lengths[:, None] * share
    each = jnp.sum(axes[:, :, :, None, :] * axes[:, :, None, :, :] * _turning(s), axis=4)
    pairs = _blank(x.points.shape[0] - 1, None)
    gone = jnp.asarray(x.points, float)
    gone = gone[1:] - gone[:-1]
    coupling = None
    if consistent and s.line_mass is not None:
        part = 1.0 / 6.0 if nodes == 2 else QUADRATIC[0, 1]
        each_pair = jnp.broadcast_to((part * line * lengths)[:, None], (len(lengths), nodes - 1))
        coupling = each_pair.reshape(-1)
    pairs = dataclasses.replace(
        pairs, length=jnp.sqrt(jnp.sum(gone * gone, axis=1)), coupling=coupling, stiffness=None
    )
    return Piece(
        mass=summed(line * own[:, :, None])[:, 0],
        inertia=summed((own[:, :, None, None] * each).reshape(-1, nodes, 9)).reshape(-1, 3, 3),
        elastic=pairs, chain=chain,
    )  # fmt: skip


def _ends(x: Array) -> Array:
    """Every element's share at both of its nodes."""
    none = jnp.zeros_like(x[:1])
    return jnp.concatenate([x, none]) + jnp.concatenate([none, x])


def _blank(n: int, like: Elastic | None) -> Elastic:
    """Pairs without element."""
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
    """Elements of all pairs of neighbours; None if there is no beam."""
    beams = [x.elastic for x in pieces if x.elastic is not None]
    if not beams:
        return None
    damped = any(x.damping is not None for x in beams)
    coupled = any(x.coupling is not None for x in beams)
    like, found = _completed(beams[0], damped, coupled), []
    for k, piece in enumerate(pieces):
        if k:
            found.append(_blank(1, like))
        if piece.elastic is not None:
            found.append(_completed(piece.elastic, damped, coupled))
    made: Elastic = jax.tree.map(lambda *y: jnp.concatenate(y), *found)
    if all(x.stiffness is None for x in beams):
        return dataclasses.replace(made, stiffness=None)
    return made


def _pairs(x: Array) -> Array:
    return jnp.stack([x[:-1], x[1:]], axis=1)


def _spread(f: Array) -> Array:
    """Sums at the bodies of what acts on both ends of every pair (n - 1, 2, ...)."""
    none = jnp.zeros_like(f[:1, 0])
    return jnp.concatenate([f[:, 0], none]) + jnp.concatenate([none, f[:, 1]])


def elastic_forces(x: Elastic, poses: Array, rates: Array) -> Array:
    """Forces in the axes of the ground, and moments in those of the bodies (n, 6)."""
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
    strains = jnp.where(x.stiffness > 0.0, found, 0.0)  # none where there is no element
    return jnp.sum(jax.vmap(objective_energy)(strains, x.stiffness, x.length))


def line_forces(lengths: Array, values: Array) -> Array:
    """Forces on nodes (n, 3) of a force per length, linear between its ``values`` at the nodes (n, 3)."""
    one, other, share = values[:-1], values[1:], lengths[:, None] / 6.0
    return _spread(jnp.stack([share * (2.0 * one + other), share * (one + 2.0 * other)], axis=1))


def coupled_momenta(coupling: Array, velocities: Array) -> Array:
    """What consistent masses add to momenta of masses at the nodes (n, 3): ``m/6 (v2 - v1)`` at the first,
    the opposite at the second.
    """
    gone = coupling[:, None] * (velocities[1:] - velocities[:-1])
    return _spread(jnp.stack([gone, -gone], axis=1))
