"""Elastic bar that hits a wall: linear finite elements, dense matrices assembled once per run."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np

from nsjax import ContactLaw, Labels, Problem, State, System
from nsjax.linalg import matvec
from nsjax.types import Array, record

NODES = 100


def _assembled(diagonal: float, neighbour: float) -> np.ndarray:
    """Sum of the element matrices ``[[diagonal, neighbour], [neighbour, diagonal]]``."""
    ends = np.zeros(NODES)
    ends[[0, -1]] = diagonal
    beside = np.eye(NODES, k=1) + np.eye(NODES, k=-1)
    return 2 * diagonal * np.eye(NODES) - np.diag(ends) + neighbour * beside


MASS, STIFFNESS = _assembled(1 / 3, 1 / 6), _assembled(1.0, -1.0)


@record()
class Bar:
    """Material, section [m^2], length of an element [m]; the matrices are made by `prepare`."""

    modulus: Array | float = 2.1e11
    section: Array | float = 3.14e-4
    density: Array | float = 7800.0
    element: Array | float = 0.01
    matrices: tuple = ()


def prepare(p):
    m = p.density * p.section * p.element * MASS
    k = p.modulus * p.section / p.element * STIFFNESS
    return dataclasses.replace(p, matrices=(m, k))


def mass(q, p):
    return p.matrices[0]


def force(t, q, v, p):
    return -matvec(p.matrices[1], q)


def potential(t, q, p):
    return 0.5 * jnp.sum(q * matvec(p.matrices[1], q))


def gap(t, q, p):
    return q[:1]


def law(p):
    return ContactLaw()


SYSTEM = System(
    nq=NODES, nv=NODES, nc=1, mass=mass, force=force, potential=potential, gap=gap, law=law,
    prepare=prepare, labels=Labels(contacts=("wall",)),
)  # fmt: skip


def impacting_bar(time: float = 1e-8, height: float = 5e-5, speed: float = -0.1) -> Problem:
    """A straight bar that flies towards the wall."""
    start = State(t=time, q=np.full(NODES, height), v=np.full(NODES, speed))
    return Problem(system=SYSTEM, params=Bar(), state=start)
