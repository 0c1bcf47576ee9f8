"""Wrong systems, schemes and options, refused before anything is compiled for long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import ContactLaw, Problem, State, System, models, schemes
from nsjax.linalg import BlockDiagonal
from nsjax.multibody import spheres
from tests.points import no_force, unit_mass

BALL, MOREAU = models.bouncing_ball(), schemes.moreau()
PILE = spheres(0.1, 1.0, np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))


def times(q, w, p):
    return w


def scalar(t, q, p):
    return q[:1]


def few(t, q):
    return q


def no_law(p):
    return ContactLaw(restitution=None, friction=0.0)  # type: ignore[arg-type]


def endless(q, p):
    return jnp.full((2, 2), jnp.inf)


def elastic(p):
    return ContactLaw(restitution=1.0)


def system(**given: Any) -> System:
    return System(**{"nq": 2, "nv": 2, "mass": unit_mass, "force": no_force, **given})


def falling(**given: Any) -> Any:
    """A run of two unknowns."""
    return run(Problem(system=system(**given), params={}, state=State(t=0.0, q=np.ones(2), v=np.ones(2))))


def run(problem: Problem = BALL, scheme: Any = MOREAU, **options: Any) -> Any:
    return nsjax.simulate(*problem, scheme, **{"dt": 1e-3, "steps": 2, **options})


def traced(call: Callable[[Any], Any]) -> None:
    jax.make_jaxpr(call)(1e-3)


PAIRS: dict[str, Any] = {"contact_set": PILE.system.contact_set, "nc": 1, "gap": scalar, "law": elastic}
PARTS: dict[str, Any] = {"mass": None, "inertia": times, "structure": BlockDiagonal(1)}
