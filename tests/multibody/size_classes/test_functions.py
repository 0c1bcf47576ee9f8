"""Functions of a size class against those of the mechanism's own program, which others have checked."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import multibody as mb
from nsjax.core import InputError, Problem
from nsjax.multibody.joints import KINDS
from nsjax.multibody.joints.joint_kind import joint


def tree(seed: int, bodies: int, more: int = 0) -> Problem:
    """A random tree with joints of all kinds, some given from the body to its parent, loads, contacts and
    ``more`` bodies on hinges.
    """
    draw = np.random.default_rng(seed)
    point, names = (lambda: tuple(draw.normal(scale=0.3, size=3))), ["ground"]
    parts: list[Any] = []
    for k in range(bodies):
        name, above = f"b{k}", names[draw.integers(0, len(names))]
        moments = draw.uniform(0.8, 1.0, size=3)
        armature = 0.02 if k == 0 else None
        parts.append(
            mb.body(name, mass=draw.uniform(0.5, 2), inertia=moments, com=point(), armature=armature)
        )
        names.append(name)
        if k == 0:
            continue
        ends = (above, name) if draw.random() < 0.6 else (name, above)
        given: dict[str, Any] = {"at": point(), "on": point()}
        kind = ("hinge", "slide", "hinge", "fixed", "ball")[int(draw.integers(0, 5))] if k > 1 else "hinge"
        if kind != "ball":
            given["turned"] = point()
        if kind in ("hinge", "slide"):
            axis = draw.normal(size=3)
            given |= {"axis": axis / np.linalg.norm(axis), "limits": (-2.0, 2.5), "friction": 0.1}
            given["armature"] = 0.03 if draw.random() < 0.5 else None
            parts.append(mb.joint_spring(f"s{k}", f"j{k}", stiffness=3.0, damping=0.1, cubic=0.5))
            parts.append(mb.servo(f"m{k}", f"j{k}", position=0.2, stiffness=5.0, limit=2.0))
        parts.append(getattr(mb, kind)(f"j{k}", *ends, **given))
    for k in range(more):
        hinge = mb.hinge(f"h{k}", "b0", f"c{k}", on=(1.0, 0.0, 0.0), axis=(0, 0, 1))
        parts += [mb.body(f"c{k}", mass=1.0), hinge]
    floor = mb.plane(at=(0.0, 0.0, -9.0))
    parts += [
        mb.contact("ball", mb.sphere("b1", 0.1, at=point()), floor, friction=0.4, restitution=0.3),
        mb.contact("rod", mb.capsule(f"b{bodies - 1}", 0.1, 0.3, at=point()), floor, friction=0.2),
        mb.contact("smooth", mb.point("b0", point()), floor),
        mb.contact("both", mb.sphere("b1", 0.1), mb.sphere("b0", 0.05, at=(2.0, 0.0, 0.0)), friction=0.1),
    ]
    return mb.assemble(*parts, gravity=9.81, start={"b0": (0.0, 0.0, 1.0)})


def drawn(problem: Problem, seed: int) -> tuple[Any, Any]:
    """A random position and velocity."""
    draw, n = np.random.default_rng(seed), problem.system.nv
    q = problem.system.retract(problem.state.q, jnp.asarray(draw.normal(scale=0.5, size=n)))
    return q, jnp.asarray(draw.normal(size=n))


def values(system: Any, params: Any, q: Any, v: Any) -> dict[str, Any]:
    """Values of all functions of a system."""

    @jax.jit  # one program in place of some hundred operations
    def every(params: Any, q: Any, v: Any) -> dict[str, Any]:
        p, t = system.prepare(params) if system.prepare else params, jnp.zeros(())
        p = p if system.refresh is None else system.refresh(t, q, p)
        moved = system.retract(q, 0.1 * v)
        found = {
            "mass": system.mass(q, p), "force": system.force(t, q, v, p), "retract": moved,
            "potential": system.potential(t, q, p), "difference": system.difference(q, moved),
        }  # fmt: skip
        if system.nc:
            # rows by derivatives where the system does not have them
            gaps = jax.jacfwd(lambda x: system.gap(t, system.retract(q, x), p))(0.0 * v)[:, None]
            if system.nt:
                slips = jax.jacfwd(lambda v: system.slip(t, q, v, p))(v)
                gaps, found["slip"] = jnp.concatenate([gaps, slips], axis=1), system.slip(t, q, v, p)
            found["rows"] = gaps if system.rows is None else system.rows(t, q, p)[0]
            found["gap"], law = system.gap(t, q, p), system.law(p)
            found["law"] = jnp.stack([law.friction_of(system.nc), law.restitution], axis=1)
        dry_friction = (
            {}
            if not system.nd
            else {"dry_friction": system.dry_friction(t, q, v, p), "bound": system.dry_friction_bound(p)}
        )
        return found | dry_friction

    return {name: np.asarray(x) for name, x in every(params, q, v).items()}


def compared(one: Any, q: Any, v: Any, evaluated: Any = values) -> None:
    """Functions of the class of the first mechanism against its own."""
    problem, packing, of = one.problems[0], one.packings[0], one.size_class
    wanted = evaluated(problem.system, problem.params, q, v)
    found = evaluated(of.system, one.problem().params, *packing.tree.spread(of, q, v))
    contacts, (at_q, at_v) = packing.contacts(of), packing.tree.places(of)
    where: dict[str, Any] = {"mass": np.ix_(at_v, at_v), "retract": at_q, "force": at_v, "difference": at_v}
    where |= {"gap": contacts, "slip": contacts, "law": contacts}
    for name, x in wanted.items():
        mine = found[name][where.get(name, ...)]
        mine = mine[contacts][..., at_v] if name == "rows" else mine
        mine = mine[tuple(slice(n) for n in x.shape)]  # without spare rows
        # sums over the tree in another order: some hundred roundings
        np.testing.assert_allclose(
            mine, x, atol=1e-13 * np.max(np.abs(x), initial=1e-3), err_msg=name, rtol=0
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "more"), [(1, 1), *(pytest.param(*x, marks=pytest.mark.slow) for x in ((3, 2), (1, 0)))]
)
def test_functions_are_those_of_the_mechanism_alone_and_beside_a_larger_one(seed: int, more: int) -> None:
    bodies = 3 + 2 * seed
    problem = tree(seed, bodies)
    others = (tree(seed, bodies, more),) if more else ()
    one = nsjax.side_by_side(problem, *others)
    assert (one.size_class.system.nv > problem.system.nv) == bool(more)
    compared(one, *drawn(problem, seed))


@pytest.mark.slow
def test_rows_are_derivatives_of_gaps_and_slips() -> None:
    problem = tree(2, 7)
    one = nsjax.side_by_side(problem)
    system = one.size_class.system
    q, v = one.packings[0].tree.spread(one.size_class, *drawn(problem, 5))

    @jax.jit
    def both(params: Any) -> Any:
        p, t = system.prepare(params), jnp.zeros(())
        rate = jax.jvp(lambda s: system.gap(t, system.retract(q, s * v), p), (0.0,), (1.0,))[1]
        return rate, system.slip(t, q, v, p), system.rows(t, q, p)

    rate, slip, (wt, offset) = both(one.problem().params)
    np.testing.assert_allclose(wt[:, 0] @ v, rate, atol=1e-13)
    np.testing.assert_allclose(wt[:, 1:] @ v, slip, atol=1e-13)
    assert not offset.any()


@pytest.mark.slow
def test_a_kind_of_ones_own_has_its_own_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    upright = dataclasses.replace(KINDS["hinge"], name="upright", first_axis=(0.0, 0.0, 1.0), check=None)
    second = dataclasses.replace(upright, name="second", turns=("second_axis",))
    monkeypatch.setitem(KINDS, "upright", upright)
    monkeypatch.setitem(KINDS, "second", second)

    def arm(kind: str) -> Problem:
        post = joint(kind, "post", "ground", "arm", None, False, second_axis=(0.0, 1.0, 0.0))
        rod = mb.body("arm", mass=1.0, inertia=(0.1, 0.2, 0.25), com=(0.5, 0.0, 0.0))
        return mb.assemble(rod, post, gravity=(0.0, 9.81, 0.0))

    problem, one = arm("upright"), nsjax.side_by_side(arm("upright"))
    q, v, t = jnp.array([0.3]), jnp.array([2.0]), jnp.zeros(())
    system, p = one.size_class.system, one.size_class.system.prepare(one.problem().params)
    wanted = problem.system.force(t, q, v, problem.system.prepare(problem.params))
    np.testing.assert_allclose(wanted, 0.5 * 9.81 * np.cos(0.3), rtol=1e-14)  # gravity along y
    np.testing.assert_allclose(system.force(t, q, v, p), wanted, rtol=1e-13)
    with pytest.raises(InputError, match="joints of this kind"):
        nsjax.side_by_side(arm("second"))
