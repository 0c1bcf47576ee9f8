"""Two ways through the program have one motion and one derivative: with structure, islands, joints inside
or an iteration, and with dense matrices and all contacts in one problem.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import ContactLaw, Problem, State, System, models, schemes
from nsjax.linalg import BlockTridiagonal, Dense, Pattern, Sparse
from tests.common.boxes import boxes
from tests.common.chain import chain

MASSES = 5


def heavy(q, w, p):
    return 0.1 * w


def pull(t, q, v, p):
    """Nonlinear springs between neighbours, a little damping, weight."""
    x, u = q.reshape(MASSES, 2), v.reshape(MASSES, 2)
    d = x[1:] - x[:-1]
    length = jnp.sqrt(jnp.sum(d * d, axis=1, keepdims=True))
    f = p["stiffness"] * (length - 0.2) / length * d + 0.05 * (u[1:] - u[:-1])
    weight = jnp.array([0.0, -0.981])
    return (jnp.pad(f, ((0, 1), (0, 0))) - jnp.pad(f, ((1, 0), (0, 0))) + weight).reshape(-1)


def height(t, q, p):
    return q.reshape(MASSES, 2)[:, 1]


def slide(t, q, v, p):
    return v.reshape(MASSES, 2)[:, :1]


def closure(t, q, p):
    """The ends keep their distance: a loop that the chain does not have."""
    d = q[-2:] - q[:2]
    return jnp.sum(d * d)[None] - 0.36


def law(p):
    return ContactLaw(restitution=0.2, friction=p["friction"])


def loop(structure: Any) -> Problem:
    """Masses in a closed loop that falls on rough ground."""
    system = System(
        nq=2 * MASSES, nv=2 * MASSES, nc=MASSES, nt=1, nb=1, inertia=heavy, force=pull, gap=height,
        slip=slide, constraint=closure, law=law, structure=structure,
    )  # fmt: skip
    x = np.array([[0.0, 0.1], [0.1, 0.26], [0.3, 0.3], [0.5, 0.26], [0.6, 0.1]])
    state = State(t=0.0, q=x.reshape(-1), v=np.tile([0.5, 0.0], MASSES))
    return Problem(system=system, params={"stiffness": 40.0, "friction": 0.3}, state=state)


def bar(structure: Any) -> Problem:
    problem = models.elastic_bar(elements=12, distance=0.3, restitution=0.3, damping=1e-3)
    return dataclasses.replace(problem, system=dataclasses.replace(problem.system, structure=structure))


def thrown(solver: str, **more: Any) -> Problem:
    v = np.array([0.5 * bool(more), 0.0, -2.4])
    return models.flexible_cube(elements=1, height=1e-4, solver=solver, velocity=v, **more)


SPARSE = Sparse(Pattern.of_elements(2 * MASSES, [range(2 * k, 2 * k + 4) for k in range(MASSES - 1)]))
STEEP = {"bend": 1.0, "depth": 0.15}
"""Of a chain that hangs at both ends: slack, lest the floor stays out of reach."""

Way = tuple[Callable[[bool], Problem], float, int, tuple[str, ...]]
WAYS: dict[str, Way] = {
    "islands": (lambda own: boxes(3, 2, islands=own), 5e-4, 60, ("moreau",)),
    "neighbours": (
        lambda own: loop(BlockTridiagonal(2) if own else Dense()), 2e-3, 80,
        ("moreau", "generalized_alpha"),
    ),
    "pattern": (lambda own: loop(SPARSE if own else Dense()), 2e-3, 80, ("generalized_alpha",)),
    "neighbours, kept": (
        lambda own: bar(BlockTridiagonal(1, constant=True) if own else BlockTridiagonal(1)), 4e-3, 250,
        ("ggl_unified", "ed_alpha"),
    ),
    "dense, kept": (lambda own: bar(Dense(constant=own)), 4e-3, 250, ("half_explicit",)),
    "joints inside": (
        lambda own: chain(20, own), 1e-3, 200, ("moreau", "generalized_alpha", "bathe"),
    ),
    "joints inside, as a border": (
        lambda own: chain(3, own), 1e-3, 100, ("ggl_unified", "nsga_decoupled", "half_explicit"),
    ),
    "joints inside, floor": (
        lambda own: chain(4, own, floor=True), 5e-4, 800, ("moreau", "generalized_alpha"),
    ),
    "joints inside, free": (
        lambda own: chain(4, own, floor=True, grounded=False), 5e-4, 800, ("moreau_theta",),
    ),
    "joints inside, loop": (
        lambda own: chain(4, own, floor=True, loop=True, **STEEP), 5e-4, 800, ("generalized_alpha",),
    ),
    "iteration": (lambda own: thrown("iterative" if own else "direct"), 1e-3, 8, ("nsga_decoupled",)),
    "iteration, friction": (
        lambda own: thrown("iterative" if own else "direct", rough=True, friction=0.3), 1e-3, 8,
        ("nsga_decoupled",),
    ),
}  # fmt: skip
"""Both problems, step, number of steps, schemes."""

EACH = [(way, name) for way, x in WAYS.items() for name in x[3]]
QUICK = [("neighbours", "moreau")]


@functools.cache
def run(way: str, name: str, own: bool) -> nsjax.Trajectory:
    make, dt, steps, _ = WAYS[way]
    scheme = schemes.REGISTRY[name].factory()
    traj = nsjax.simulate(*make(own), scheme, dt=dt, steps=steps, every=max(1, steps // 10))
    traj.raise_for_status()
    return traj


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "name"), [x if x in QUICK else pytest.param(*x, marks=pytest.mark.slow) for x in EACH]
)
def test_one_motion(way: str, name: str) -> None:
    """To tolerances of solvers, 1e-11 a step, which impacts and chains of hinges spread. Contacts of a face
    share their impulse in more than one way: sums are compared.
    """
    ours, wanted = run(way, name, True), run(way, name, False)
    for field in ("q", "v", "constraint_force", "constraint_impulse"):
        a, b = np.asarray(getattr(ours, field)), np.asarray(getattr(wanted, field))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9 * (1.0 + np.abs(b).max(initial=0.0)))
    for field in ("impulse_normal", "impulse_tangential"):
        a, b = (np.asarray(getattr(x, field)).reshape(len(x.t), -1).sum(axis=1) for x in (ours, wanted))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6 * np.abs(b).max())
    if wanted.system.nc:
        assert float(np.sum(wanted.impulse_normal)) > 0.0, "something is to be hit"
        assert int(np.sum(ours.impacts)) == int(np.sum(wanted.impacts))


NUMBERS = {"islands": "friction", "joints inside, floor": "restitution"}
"""Of the law of contacts, to which ends are differentiated beside a factor of the start's velocity."""

DERIVED = [
    ("islands", "moreau"), ("neighbours", "generalized_alpha"), ("pattern", "generalized_alpha"),
    ("joints inside, floor", "moreau"), ("joints inside, floor", "generalized_alpha"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("way", "name"), DERIVED)
def test_one_derivative(way: str, name: str) -> None:
    """Through impacts, sliding and sticking, forward and reverse: to rounding, which grows with impacts."""
    make, dt, steps, _ = WAYS[way]
    scheme, found = schemes.REGISTRY[name].factory(), []
    for own in (True, False):
        system, p, state = make(own)
        key = NUMBERS.get(way, "friction")

        def end(x, system=system, p=p, state=state, key=key):
            begin = dataclasses.replace(state, v=state.v * x[1])
            params = {**p, key: p[key] * x[0]}
            last = nsjax.simulate(system, params, begin, scheme, dt=dt, steps=steps, every=steps)
            return jnp.cos(jnp.arange(system.nv)) @ (last.v[-1] + 10.0 * last.q[-1])

        found += [jax.jit(jax.jacfwd(end))(jnp.ones(2)), jax.jit(jax.grad(end))(jnp.ones(2))]
    assert np.abs(found[0]).max() > 1e-5
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=0, atol=1e-8 * np.abs(found[0]).max())
