"""Masses of the nodes of beams, and elastic elements between neighbours among all bodies.

The nodes of beams are bodies in the row of all bodies. An element couples two neighbours in this row if
they are nodes of one beam; every other pair of neighbours has an element without stiffness. All operations
then are arithmetic on slices of the row, and matrices are block tridiagonal. Elements with forces of their
own use only the lengths and masses of the pairs.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.fem import objective_energy, objective_forces, objective_strains, section_axes
from nsjax.multibody.numbers import Beam, Section
from nsjax.types import Array, record


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
    """Masses of the nodes of a beam, each with half of its adjacent elements, and elements without
    stiffness; and the masses (n,) of the elements [kg].
    """
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
    """Momenta (n, 3) that consistent masses add to those of lumped masses: ``m/6 (v2 - v1)`` at the first
    node of an element, the opposite at the second.
    """
    gone = coupling[:, None] * (velocities[1:] - velocities[:-1])
    return _spread(jnp.stack([gone, -gone], axis=1))
