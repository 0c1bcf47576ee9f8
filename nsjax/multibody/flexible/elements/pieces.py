"""Masses of the nodes of beams, and elastic elements between neighbours among all bodies.

The nodes of beams are bodies among bodies. Two that follow each other are coupled by an element if they are
nodes of one beam; all other pairs carry one of no stiffness, so that everything is arithmetic on slices of
the row of all bodies, and block tridiagonal. Elements with forces of their own have pairs with lengths and
masses only.
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
    """Elements of all pairs of neighbours (n - 1), of no stiffness where there is none.

    Args:
        length: [m].
        axes: of the section without strain (n - 1, 3, 3).
        curvature: without moments (n - 1, 3) [1/m].
        stiffness: (n - 1, 6) two shears, extension [N], two bendings, twist [N m^2]; None if no beam has
            elements among the pairs.
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
    """Bodies in a row: masses (k,) and inertias (k, 3, 3), elements between them (k - 1), and the numbers
    of elements with forces of their own.
    """

    mass: Array
    inertia: Array
    elastic: Elastic | None
    own: Any = None


def _two(x: Any) -> Array:
    """A number for both section axes, or two."""
    return jnp.broadcast_to(jnp.asarray(x, float), (2,))


def stiffness_of(section: Section) -> Array:
    """``(GA_1, GA_2, EA, EI_1, EI_2, GJ)`` (6,)."""
    axial, twist = (jnp.asarray(x, float)[None] for x in (section.EA, section.GJ))
    return jnp.concatenate([_two(section.GA), axial, _two(section.EI), twist])


def turning_of(s: Section) -> Array:
    """Rotary inertia per length about ``d1``, ``d2`` and ``d3`` (3,)."""
    two = _two(0.0 if s.line_inertia is None else s.line_inertia)
    return jnp.concatenate([two, jnp.sum(two)[None]])


def _ends(x: Array) -> Array:
    """Every element's share at both of its nodes."""
    none = jnp.zeros_like(x[:1])
    return jnp.concatenate([x, none]) + jnp.concatenate([none, x])


def halves(x: Beam) -> tuple[Piece, Array]:
    """Masses of the nodes of a beam, half of every element at each of its ends, and the masses of the
    elements (n,); pairs of no stiffness.
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
