"""Iterations with tangents frozen in position and velocity, or kept from earlier steps: the same motion
from cheaper passes.
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
from nsjax import ContactLaw, InputError, State, System, schemes
from nsjax.contact.stage import StageSettings, _nearby, _Task, _values
from nsjax.schemes.mixed.stages import StageEquations, single


@dataclasses.dataclass(frozen=True)
class Chain:
    """Point masses on rods, hinged to each other, absolute angles from below; the last mass meets a rough
    floor, or the first is held by a rod (a loop).
    """

    links: int
    loop: bool = False

    @property
    def _carried(self) -> np.ndarray:
        k = np.arange(self.links)
        return (self.links - np.maximum(k[:, None], k[None, :])).astype(float)

    def mass(self, q, p):
        return p["m"] * self._carried * jnp.cos(q[:, None] - q[None, :])

    def force(self, t, q, v, p):
        turn = jnp.sum(self._carried * jnp.sin(q[:, None] - q[None, :]) * (v * v)[None, :], axis=1)
        weight = 9.81 * np.arange(self.links, 0, -1) * jnp.sin(q)
        stretch = jnp.diff(q, prepend=0.0)
        spring = p["k"] * (jnp.append(stretch[1:], 0.0) - stretch)
        return spring - p["m"] * (turn + weight)

    def tip(self, q):
        return jnp.stack([jnp.sum(jnp.sin(q)), -jnp.sum(jnp.cos(q))])

    def gap(self, t, q, p):
        return self.tip(q)[1:] + p["floor"]

    def slip(self, t, q, v, p):
        return jax.jvp(self.tip, (q,), (v,))[1][None, :1]

    def law(self, p):
        return ContactLaw(restitution=0.3, friction=0.2)

    def constraint(self, t, q, p):
        return jnp.sum(jnp.sin(q))[None] - p["side"]

    def system(self, hint: str = "full") -> System:
        n = self.links
        rows = (
            {"nb": 1, "constraint": self.constraint}
            if self.loop
            else {"nc": 1, "nt": 1, "gap": self.gap, "slip": self.slip, "law": self.law}
        )
        return System(nq=n, nv=n, mass=self.mass, force=self.force, tangent_hint=hint, **rows)


def start_of(chain: Chain) -> State:
    rng = np.random.default_rng(2)
    angles = 0.4 + 0.3 * rng.normal(size=chain.links)
    return State(t=0.0, q=angles, v=np.zeros(chain.links))


IMPLICIT = {
    "generalized_alpha": schemes.generalized_alpha, "bathe": schemes.bathe, "ed_alpha": schemes.ed_alpha,
    "newmark": schemes.newmark, "moreau_theta": schemes.moreau_theta, "ggl_unified": schemes.ggl_unified,
}  # fmt: skip
SLOW = pytest.mark.slow
NSGA = {
    "nsga_decoupled": schemes.nsga_decoupled, "nsga_neglected": schemes.nsga_neglected,
    "nsga_monolithic": functools.partial(schemes.nsga_coupled, iteration="monolithic"),
}  # fmt: skip
OTHER = ("moreau_theta", "mass"), ("bathe", "mass"), ("newmark", "kept"), ("nsga_decoupled", "kept")


def numbers(chain: Chain, k: float = 0.0) -> dict:
    start = start_of(chain)
    tip = np.asarray(chain.tip(jnp.asarray(start.q)))
    return {"m": 0.7, "k": k, "floor": -tip[1] + 0.3, "side": tip[0]}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "other"), OTHER)
@pytest.mark.parametrize("loop", [False, True])
def test_the_same_motion(name: str, other: str, loop: bool) -> None:
    """Through an impact with friction, and with a closed loop: both to the tolerance of the stage solver,
    1e-12 of the velocities a step, over 300 steps of a motion that does not amplify it by more than 1e3.
    """
    chain = Chain(5, loop)
    found = []
    for tangent in ("full", other):
        scheme = (IMPLICIT | NSGA)[name](tangent=tangent)
        traj = nsjax.simulate(
            chain.system(), numbers(chain), start_of(chain), scheme, dt=1e-3, steps=300, every=100
        )
        traj.raise_for_status()
        found.append(traj)
    full, changed = found
    assert loop or full.impacts.sum() > 0
    np.testing.assert_allclose(changed.q, full.q, atol=1e-9)
    np.testing.assert_allclose(changed.v, full.v, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "other"),
    [
        (schemes.moreau_theta, "mass"), (schemes.newmark, "kept"),
        pytest.param(schemes.nsga_decoupled, "kept", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_derivatives_are_those_of_the_full_tangent(make: Callable[..., Any], other: str) -> None:
    """Forward, and with the kept one reverse: what is carried from step to step has no part in them."""
    chain, start = Chain(3), start_of(Chain(3))

    def end(m: jax.Array, tangent: str) -> jax.Array:
        p = {**numbers(chain), "m": m, "k": 3.0}
        scheme = make(tangent=tangent)
        return nsjax.simulate(chain.system(), p, start, scheme, dt=1e-3, steps=120, every=120).q[-1]

    wanted = jax.jacfwd(functools.partial(end, tangent="full"))(0.7)
    near = 1e-9 * np.max(np.abs(wanted))
    np.testing.assert_allclose(jax.jacfwd(functools.partial(end, tangent=other))(0.7), wanted, atol=near)
    if other == "kept":
        back = jax.grad(lambda m: end(m, tangent=other)[-1])(0.7)
        np.testing.assert_allclose(back, wanted[-1], atol=near)


@pytest.mark.slow
def test_stiff_forces_get_the_full_tangent() -> None:
    """``(omega dt)^2`` is 10 and more: passes with the frozen tangent grow instead of contracting, those
    with a kept one are renewed.
    """
    chain = Chain(3)
    p = numbers(chain, k=3e4)
    start = State(t=0.0, q=np.full(3, 0.2), v=np.zeros(3))
    runs = [
        nsjax.simulate(
            chain.system(), p | {"floor": 10.0}, start, schemes.bathe(tangent=t), dt=1e-2, steps=40
        )
        for t in ("full", "mass", "kept")
    ]
    for traj in runs:
        traj.raise_for_status()
    for other in runs[1:]:
        np.testing.assert_allclose(other.q, runs[0].q, atol=1e-10)


@pytest.mark.slow
def test_difference_quotients_serve_where_frozen_tangents_do_not() -> None:
    """Drawn stiffnesses, ``omega dt`` from 0.1 to 10, from rest and from drawn velocities, and none at all:
    every step is solved, the motion of the full tangent.
    """
    chain, rng, dt = Chain(3), np.random.default_rng(5), 1e-2
    for k in [0.0, *10 ** rng.uniform(1.5, 5.5, 5)]:
        p = numbers(chain, k=float(k)) | {"floor": 10.0}
        start = State(t=0.0, q=0.2 + 0.02 * rng.normal(size=3), v=0.2 * rng.normal(size=3))
        full, mass = (
            nsjax.simulate(chain.system(), p, start, schemes.bathe(tangent=t), dt=dt, steps=40)
            for t in ("full", "mass")
        )
        mass.raise_for_status()
        np.testing.assert_allclose(mass.q, full.q, atol=1e-9)


def test_quotients_of_a_stage() -> None:
    """Of the residual and the rates, with impulses on the rows: those of JAX, to one part in 1e5."""
    seed = 2
    chain, rng = Chain(3), np.random.default_rng(seed)
    p = numbers(chain, k=10.0 ** (2 * seed + 1))
    equations = StageEquations(chain.system("mass"), 1, True, "index_2", "mass")
    q, v, a, z = rng.normal(size=(4, 3))
    one, dt = jnp.ones(()), 1e-3 * jnp.ones(())
    data = p, single(q, dt * v, v, a, cq=dt / 2, ca=1 / dt, t=one, dt=dt)
    impulses = 1e-3 * rng.normal(size=2)
    settings = StageSettings(tolerance=1e-12, contact_tolerance=1e-11, scale=one)
    task = _Task(equations=equations, data=data, active=jnp.zeros(0, bool), settings=settings)

    @jax.jit
    def both(z, impulses):
        near = _nearby(task, z, impulses, jnp.asarray(True))[1]
        return near.quotients(), jax.jacfwd(functools.partial(_values, task))(z, impulses)

    for found, exact in zip(*both(z, impulses), strict=True):
        np.testing.assert_allclose(found, exact, atol=1e-5 * np.max(np.abs(exact)))


@SLOW
@pytest.mark.parametrize("make", [schemes.nsga_decoupled, NSGA["nsga_monolithic"]])
def test_a_kept_tangent_goes_on_where_a_run_is_resumed(make: Callable[..., Any]) -> None:
    """Two halves are the whole, bit for bit; a start from the state alone is the same to the tolerance."""
    chain, scheme = Chain(3), make(tangent="kept")
    args, kw = (chain.system(), numbers(chain, k=3.0)), {"dt": 1e-3, "every": 50}
    whole = nsjax.simulate(*args, start_of(chain), scheme, steps=300, **kw)
    first = nsjax.simulate(*args, start_of(chain), scheme, steps=150, **kw)
    end = State(t=first.t[-1], q=first.q[-1], v=first.v[-1])
    second = nsjax.simulate(*args, end, scheme, steps=150, carry=first.carry, **kw)
    np.testing.assert_array_equal(second.q[-1], whole.q[-1])


def test_a_model_that_changes_by_leaps_renews_the_tangent() -> None:
    """A spring a thousand times stiffer from a tenth of a second on."""

    def force(t, q, v, p):
        return -jnp.where(t > 0.1, 1e6, 1e3) * jnp.sin(q)

    system = System(nq=1, nv=1, mass=lambda q, p: jnp.eye(1), force=force)
    start = State(t=0.0, q=np.array([0.3]), v=np.zeros(1))
    runs = [
        nsjax.simulate(system, None, start, schemes.newmark(tangent=t), dt=1e-3, steps=200)
        for t in ("full", "kept")
    ]
    runs[1].raise_for_status()
    np.testing.assert_allclose(runs[1].q, runs[0].q, atol=1e-10)


@pytest.mark.slow
def test_the_hint_of_a_model() -> None:
    """``"auto"`` follows it, and choices are checked."""
    chain = Chain(3)
    args = numbers(chain), start_of(chain)
    kw = {"dt": 1e-3, "steps": 20}
    hinted = nsjax.simulate(chain.system("mass"), *args, schemes.moreau_theta(), **kw)
    chosen = nsjax.simulate(chain.system(), *args, schemes.moreau_theta(tangent="mass"), **kw)
    np.testing.assert_array_equal(hinted.q, chosen.q)
    with pytest.raises(InputError, match="tangent = 'fast'; choose one of auto, full, mass, kept"):
        schemes.bathe(tangent="fast")
    with pytest.raises(InputError, match="tangent_hint = 'none'; choose one of full, mass, kept"):
        chain.system("none")
