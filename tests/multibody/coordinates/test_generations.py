"""Random trees in space against their bodies one by one: mass and forces by Lagrange's equations, rows of
contacts by derivatives of gaps and slips.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import multibody as mb
from nsjax.core.operators import all_rows, prepared
from nsjax.multibody.coordinates.spatial import generations
from tests.multibody.coordinates.random_trees import GRAVITY, drawn, lagrange, near, parts, poses


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_mass_and_force_are_those_of_lagrange(seed) -> None:
    bodies, joints = drawn(seed)
    problem = mb.assemble(*parts(bodies, joints), gravity=GRAVITY)
    system = problem.system
    links = system.force.__self__.topology.link_of
    places = {name: links[name].q for name in joints}
    rng = np.random.default_rng(seed)
    wanted = lagrange(bodies, joints, places)

    @jax.jit
    def seen(q, v, p):
        p = prepared(system, p)
        scene = system.force.__self__.scene(jnp.zeros(()), q, v, p)
        origins = jnp.stack([scene.position(x) for x in joints])
        return system.mass(q, p), system.force(jnp.zeros(()), q, v, p), origins

    for _ in range(3):
        q, v = rng.normal(size=(2, system.nv))
        mass, force, origins = seen(q, v, problem.params)
        near(origins, np.stack([poses(joints, places, q)[x][1] for x in joints]))
        for x, y in zip((mass, force), wanted(q, v), strict=True):
            near(x, y)


def test_a_generation_hangs_on_one() -> None:
    """Each body stands in one, behind its parent, which is found at its place."""
    for seed in range(12):
        bodies, joints = drawn(seed, 20)
        topology = mb.assemble(*parts(bodies, joints), gravity=GRAVITY).system.force.__self__.topology
        made = generations(topology.links)
        assert sorted(x.body for g in made for x in g.links) == sorted(bodies)
        for i, g in enumerate(made):
            assert {x.kind for x in g.links} == {g.kind}
            if g.parent is None:
                assert all(x.parent == "ground" for x in g.links)
                continue
            assert g.parent < i
            above = made[g.parent].links
            where = range(len(above)) if g.places is None else g.places
            assert [above[k].body for k in where] == [x.parent for x in g.links]
    # bodies side by side are one, those in a row one each
    assert [len(g.links) for g in made_of([("b0", "ground"), ("b1", "ground"), ("b2", "ground")])] == [3]
    assert [len(g.links) for g in made_of([("b0", "ground"), ("b1", "b0"), ("b2", "b1")])] == [1, 1, 1]


def made_of(pairs):
    found = [mb.body(name, mass=1.0, inertia=(1.0, 1.0, 1.0)) for name, _ in pairs]
    found += [mb.hinge(f"j{name}", above, name, axis=(0.0, 0.0, 1.0)) for name, above in pairs]
    return generations(mb.assemble(*found, gravity=9.81).system.force.__self__.topology.links)


def touching(seed, friction):
    """A tree with contacts of most kinds, limits, dry friction, springs and motors."""
    bodies, joints = drawn(seed)
    found = parts(bodies, joints)
    hinged = [f"j_{k}" for k, x in joints.items() if x.kind in ("hinge", "slide")]
    for k, part in enumerate(found):
        if part.name in hinged:
            numbers = dataclasses.replace(
                part.numbers, lower=-1.0 - 0.1 * k, friction=0.2 if k % 2 else None
            )
            found[k] = dataclasses.replace(part, numbers=numbers)
    for k, name in enumerate(hinged):
        found.append(
            mb.joint_spring(f"s{k}", name, stiffness=1.0 + k, damping=0.1, rest=0.2 if k % 2 else None)
        )
        found.append(
            mb.actuator(f"m{k}", name, law=drive, own=0.5 + k) if k % 2 else mb.actuator(f"m{k}", name, 0.3)
        )
    law = {"restitution": 0.4, "friction": friction}
    found += [
        mb.contact("c0", mb.point("b1", (0.1, 0.2, 0.3)), mb.plane(normal=(0.0, 0.6, 0.8)), **law),
        mb.contact("c1", mb.sphere("b2", 0.1, at=(0.3, 0.0, 0.1)), mb.sphere("b3", 0.2), **law),
        mb.contact(
            "c2", mb.capsule("b4", 0.1, 0.3, axis=(0.0, 1.0, 0.0)), mb.capsule("b5", 0.1, 0.4), **law
        ),
        mb.contact("c3", mb.cylinder("b6", 0.1, 0.2), mb.plane("b0", at=(0.0, 0.0, -3.0)), **law),
        mb.contact("c4", mb.capsule("b7", 0.1, 0.3), mb.plane(), **law),
    ]
    return mb.assemble(*found, gravity=GRAVITY)


def drive(t, x, rate, own):
    return own * jnp.sin(3.0 * t - x) - 0.1 * rate


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "friction", "along"),
    [
        (4, 0.3, False),
        *(pytest.param(k, 0.3 if k % 2 else None, True, marks=pytest.mark.slow) for k in (4, 5)),
    ],
)
def test_rows_are_derivatives_of_gaps_and_slips(seed, friction, along) -> None:
    """Those of contacts, limits and dry joints; in full also how they change ``along`` a motion."""
    problem = touching(seed, friction)
    system, rng = problem.system, np.random.default_rng(seed)
    assert system.rows is not None
    by_hand = dataclasses.replace(system, rows=None)

    @jax.jit
    def seen(q, v, p):
        def rows(s, q):
            r = all_rows(s, jnp.asarray(0.3), q, prepared(s, p))
            return r.wt, r.offset

        both = [functools.partial(rows, s) for s in (system, by_hand)]
        found = [jax.jvp(f, (q,), (v,)) if along else f(q) for f in both]
        ready = prepared(system, p)
        return found, system.dry_friction(0.3, q, v, ready), system.gap(0.3, q, ready)

    for _ in range(4):
        q, v = rng.normal(size=(2, system.nv))
        (found, wanted), dry_friction, gap = seen(q, v, problem.params)
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            near(x, y, 1e-11)  # capsules whose axes are nearly parallel lose a digit
        mechanism = system.force.__self__
        links, presence = mechanism.topology.link_of_joint, mechanism.presence
        near(dry_friction, v[[links[name].v for name in presence.dry_frictions]])
        q_of = [q[links[name].q] for name, _ in presence.limits]
        near(gap[-len(q_of) :], np.array(q_of) - [problem.params[n].lower for n, _ in presence.limits])


@pytest.mark.parametrize("seed", [4, pytest.param(5, marks=pytest.mark.slow)])
def test_forces_in_joints_are_those_on_their_bodies(seed) -> None:
    """Springs and motors act on the velocities as moments and forces on both bodies do: by power."""
    problem = touching(seed, None)
    system, rng = problem.system, np.random.default_rng(seed)
    mechanism = system.force.__self__
    from nsjax.multibody.loads import pushes

    @jax.jit
    def power(q, v, w, p):
        p = prepared(system, p)
        t = jnp.asarray(0.7)
        scene, moved = mechanism.scene(t, q, v, p), mechanism.scene(t, q, w, p)
        total = 0.0
        for name, push, where, moment in pushes(scene, mechanism.topology, p):
            if name == "ground":
                continue
            if push is not None:
                arm = where - scene.position(name)
                total += jnp.sum(push * (moved.velocity(name) + jnp.cross(moved.spin(name), arm)))
            if moment is not None:
                total += jnp.sum(moment * moved.spin(name))
        return total, w @ mechanism.own.efforts(t, q, v, p)

    assert len(mechanism.own.loads) >= 6
    assert not mechanism.own.others
    for _ in range(4):
        wanted, found = power(*rng.normal(size=(3, system.nv)), problem.params)
        near(found, wanted)


def guarded(t, x, rate, own):
    """A motor whose law is a root above zero: below, its derivative is none."""
    return jax.lax.cond(x > 0.0, lambda: own * jnp.sqrt(x), lambda: 0.0 * rate)


def watching(t, scene, own):
    """A force that looks at bodies within a branch first, and then outside."""
    near = jax.lax.cond(
        scene.time > 0.5, lambda: scene.position("b0")[2] + scene.rate("j_b1"), lambda: scene.spin("b1")[0]
    )
    return jnp.stack([near, scene.velocity("b0")[0], own])


@pytest.mark.slow
def test_laws_of_users_may_branch() -> None:
    """Of motors in joints alike, of which one is where the other branch has no derivative, and of a force
    that looks at frames in a branch.
    """
    t = 0.3
    found = [mb.body(f"b{k}", mass=1.0, inertia=(0.2, 0.3, 0.4), com=(0.3, 0.0, 0.1)) for k in range(2)]
    for k, above in enumerate(("ground", "b0")):
        found.append(mb.hinge(f"j_b{k}", above, f"b{k}", at=(0.5, 0.0, 0.0), axis=(0.0, 0.6, 0.8)))
        found.append(mb.actuator(f"m{k}", f"j_b{k}", law=guarded, own=2.0))
    pushed = mb.force("watch", ("b1", (0.2, 0.1, 0.0)), law=watching, own=0.4)
    system, p, _ = mb.assemble(*found, pushed, gravity=GRAVITY)
    bare, less, _ = mb.assemble(*found, gravity=GRAVITY)
    mechanism, q, v = system.force.__self__, jnp.array([0.25, -0.5]), jnp.array([0.3, -0.7])

    def along(q, own):
        now = p | {"m1": dataclasses.replace(p["m1"], own=own), "m0": dataclasses.replace(p["m0"], own=own)}
        return system.force(jnp.asarray(t), q, v, prepared(system, now))

    value, (by_q, by_own) = jax.jit(along)(q, 2.0), jax.jit(jax.jacrev(along, (0, 1)))(q, 2.0)
    assert np.isfinite(by_q).all()
    near(by_own, np.array([np.sqrt(0.25), 0.0]))  # the second motor is where it does not push
    scene = mechanism.scene(jnp.asarray(t), q, v, p)
    first = scene.position("b0")[2] + v[1] if t > 0.5 else scene.spin("b1")[0]
    push = np.array([first, scene.velocity("b0")[0], 0.4])
    work = jax.jacfwd(lambda x: mechanism.scene(t, q, x, p).velocity("b1", (0.2, 0.1, 0.0)))(v)
    near(value - bare.force(jnp.asarray(t), q, v, prepared(bare, less)), push @ work)
