"""Random trees in space against their bodies one by one: poses by matrices in the test, mass and forces by
Lagrange's equations, rows of contacts by derivatives of gaps and slips.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.core.operators import all_rows, prepared
from nsjax.multibody import (
    actuator,
    all_pairs,
    assemble,
    ball,
    body,
    box,
    capsule,
    contact,
    corners,
    cylinder,
    cylindrical,
    fixed,
    force,
    hinge,
    hole,
    joint_spring,
    plane,
    point,
    points,
    slide,
    sphere,
    universal,
)
from nsjax.multibody.generations import generations

KINDS = {"hinge": hinge, "slide": slide, "universal": universal, "cylindrical": cylindrical, "fixed": fixed}
GRAVITY = np.array([0.3, -0.2, -9.81])


@dataclasses.dataclass(frozen=True)
class Joint:
    """As it is drawn: the parent, the kind, and its numbers."""

    above: str
    kind: str
    numbers: dict
    back: bool


def unit(rng):
    x = rng.normal(size=3)
    return x / np.linalg.norm(x)


def drawn(seed, n=8):
    """Bodies and joints of a tree: a bush, a chain, and what lies between; every fourth joint is given from
    the body to its parent, some are without numbers.
    """
    rng = np.random.default_rng(seed)
    bodies, joints = {}, {}
    for k in range(n):
        above = ["ground", f"b{k - 1}", f"b{max(0, k // 2 - 1)}"][seed % 3] if k else "ground"
        if rng.uniform() < 0.3 and k:
            above = f"b{rng.integers(k)}"
        kind = rng.choice(list(KINDS), p=[0.45, 0.2, 0.15, 0.1, 0.1]) if k > 1 else "hinge"
        inertia = [
            None,
            (0.3, 0.3, 0.3),
            tuple(rng.uniform(0.3, 0.5, 3)),
            np.diag(rng.uniform(0.3, 0.5, 3)) + 0.05,
        ][k % 4]
        bodies[f"b{k}"] = {
            "mass": rng.uniform(0.5, 2.0), "com": None if k % 3 == 2 else rng.normal(size=3),
            # a point mass on its own axis has no inertia
            "inertia": (0.2, 0.3, 0.3) if inertia is None and k % 3 == 2 else inertia,
        }  # fmt: skip
        back = k % 4 == 3
        numbers = {"at": rng.normal(size=3)} if k % 5 else {}
        if k % 2:
            numbers["on"] = rng.normal(size=3)
        if kind != "universal" and k % 3:
            numbers["turned"] = rng.normal(size=3)
        if kind in ("hinge", "cylindrical", "universal") or (kind == "slide" and k % 2):
            numbers["axis"] = unit(rng)
        if kind == "universal":
            numbers["second_axis"] = np.cross(numbers["axis"], unit(rng))
            numbers["second_axis"] /= np.linalg.norm(numbers["second_axis"])
        joints[f"b{k}"] = Joint(above, str(kind), numbers, back)
    return bodies, joints


def parts(bodies, joints):
    found = [body(name, **numbers) for name, numbers in bodies.items()]
    for name, x in joints.items():
        ends = (name, x.above) if x.back else (x.above, name)
        found.append(KINDS[x.kind](f"j_{name}", *ends, **x.numbers))
    return found


def rotation(vector):
    """Rodrigues' formula."""
    angle = np.linalg.norm(vector)
    if angle == 0.0:
        return np.eye(3)
    return about(vector / angle, angle)


def about(axis, angle):
    k = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + jnp.sin(angle) * k + (1.0 - jnp.cos(angle)) * k @ k


def across(kind, numbers, x):
    """Turn and shift from the first body's axes at the joint to the second's, at the coordinates."""
    axis = np.asarray(numbers.get("axis", (1.0, 0.0, 0.0)))
    frame = rotation(np.asarray(numbers["turned"])) if "turned" in numbers else np.eye(3)
    none = np.zeros(3)
    if kind == "fixed":
        return frame, none
    if kind == "slide":
        return frame, x[0] * axis
    if kind == "cylindrical":
        return about(axis, x[1]) @ frame, x[0] * axis
    if kind == "universal":
        return about(axis, x[0]) @ about(np.asarray(numbers["second_axis"]), x[1]), none
    return about(axis, x[0]) @ frame, none


SIZES = {"hinge": 1, "slide": 1, "universal": 2, "cylindrical": 2, "fixed": 0}


def poses(joints, places, q):
    """Turn and origin of every body, one after the other."""
    found = {"ground": (jnp.eye(3), jnp.zeros(3))}
    for name, x in joints.items():
        at, on = (np.asarray(x.numbers.get(k, np.zeros(3))) for k in ("at", "on"))
        own = q[places[name] : places[name] + SIZES[x.kind]]
        if x.back and x.kind == "universal":  # its angles are counted from the parent on
            own = own[::-1]
        turn, shift = across(x.kind, x.numbers, own)
        above, origin = found[x.above]
        if x.back:  # the body is the first, its parent the second
            own = above @ turn.T
            found[name] = own, origin + above @ on - own @ (at + shift)
        else:
            own = above @ turn
            found[name] = own, origin + above @ (at + shift) - own @ on
    return found


def lagrange(bodies, joints, places):
    """Mass matrix and generalized forces at rates."""

    def motion(q, v):
        def place(q):
            every = poses(joints, places, q)
            return {k: (every[k][0], every[k][1] + every[k][0] @ com(x)) for k, x in bodies.items()}

        at, rate = jax.jvp(place, (q,), (v,))
        return at, rate

    def com(x):
        return np.zeros(3) if x["com"] is None else x["com"]

    def energy(q, v):
        at, rate = motion(q, v)
        total = 0.0
        for k, x in bodies.items():
            (turn, _), (turned, moved) = at[k], rate[k]
            w = turn.T @ turned
            spin = jnp.stack([w[2, 1] - w[1, 2], w[0, 2] - w[2, 0], w[1, 0] - w[0, 1]]) / 2.0
            inertia = np.zeros((3, 3)) if x["inertia"] is None else np.asarray(x["inertia"], float)
            inertia = inertia if inertia.ndim == 2 else np.diag(np.broadcast_to(inertia, 3))
            total += 0.5 * x["mass"] * moved @ moved + 0.5 * spin @ inertia @ spin
        return total

    def height(q):
        return sum(-x["mass"] * GRAVITY @ motion(q, jnp.zeros_like(q))[0][k][1] for k, x in bodies.items())

    def equations(q, v):
        mass = jax.hessian(energy, 1)(q, v)
        turning = jax.jvp(lambda q: jax.grad(energy, 1)(q, v), (q,), (v,))[1]
        return mass, jax.grad(energy)(q, v) - jax.grad(height)(q) - turning

    return jax.jit(equations)


def near(found, wanted, limit=1e-12):
    size = 1.0 + np.max(np.abs(wanted), initial=0.0)
    assert np.max(np.abs(found - wanted), initial=0.0) <= limit * size


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 12))])
def test_mass_and_force_are_those_of_lagrange(seed) -> None:
    bodies, joints = drawn(seed)
    problem = assemble(*parts(bodies, joints), gravity=GRAVITY)
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
        topology = assemble(*parts(bodies, joints), gravity=GRAVITY).system.force.__self__.topology
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
    found = [body(name, mass=1.0, inertia=(1.0, 1.0, 1.0)) for name, _ in pairs]
    found += [hinge(f"j{name}", above, name, axis=(0.0, 0.0, 1.0)) for name, above in pairs]
    return generations(assemble(*found, gravity=9.81).system.force.__self__.topology.links)


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
            joint_spring(f"s{k}", name, stiffness=1.0 + k, damping=0.1, rest=0.2 if k % 2 else None)
        )
        found.append(
            actuator(f"m{k}", name, law=drive, own=0.5 + k) if k % 2 else actuator(f"m{k}", name, 0.3)
        )
    law = {"restitution": 0.4, "friction": friction}
    found += [
        contact("c0", point("b1", (0.1, 0.2, 0.3)), plane(normal=(0.0, 0.6, 0.8)), **law),
        contact("c1", sphere("b2", 0.1, at=(0.3, 0.0, 0.1)), sphere("b3", 0.2), **law),
        contact("c2", capsule("b4", 0.1, 0.3, axis=(0.0, 1.0, 0.0)), capsule("b5", 0.1, 0.4), **law),
        contact("c3", cylinder("b6", 0.1, 0.2), plane("b0", at=(0.0, 0.0, -3.0)), **law),
        contact("c4", capsule("b7", 0.1, 0.3), plane(), **law),
    ]
    return assemble(*found, gravity=GRAVITY)


def drive(t, x, rate, own):
    return own * jnp.sin(3.0 * t - x) - 0.1 * rate


@pytest.mark.parametrize(
    ("seed", "friction", "along"),
    [
        (4, 0.3, False),
        *(pytest.param(k, 0.3 if k % 2 else None, True, marks=pytest.mark.slow) for k in range(4, 10)),
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
        return found, system.drag(0.3, q, v, ready), system.gap(0.3, q, ready)

    for _ in range(4):
        q, v = rng.normal(size=(2, system.nv))
        (found, wanted), drag, gap = seen(q, v, problem.params)
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            near(x, y, 1e-11)  # capsules whose axes are nearly parallel lose a digit
        mechanism = system.force.__self__
        links, presence = mechanism.topology.link_of_joint, mechanism.presence
        near(drag, v[[links[name].v for name in presence.drags]])
        q_of = [q[links[name].q] for name, _ in presence.limits]
        near(gap[-len(q_of) :], np.array(q_of) - [problem.params[n].lower for n, _ in presence.limits])


@pytest.mark.parametrize("seed", [4, *(pytest.param(k, marks=pytest.mark.slow) for k in range(5, 10))])
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
        return total, w @ mechanism.own.efforts(t, q, v, p, mechanism.own.stacked(p))

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


@pytest.mark.parametrize("t", [0.3, 0.7])
def test_laws_of_users_may_branch(t) -> None:
    """Of motors in joints alike, of which one is where the other branch has no derivative, and of a force
    that looks at frames in a branch.
    """
    found = [body(f"b{k}", mass=1.0, inertia=(0.2, 0.3, 0.4), com=(0.3, 0.0, 0.1)) for k in range(2)]
    for k, above in enumerate(("ground", "b0")):
        found.append(hinge(f"j_b{k}", above, f"b{k}", at=(0.5, 0.0, 0.0), axis=(0.0, 0.6, 0.8)))
        found.append(actuator(f"m{k}", f"j_b{k}", law=guarded, own=2.0))
    pushed = force("watch", ("b1", (0.2, 0.1, 0.0)), law=watching, own=0.4)
    system, p, _ = assemble(*found, pushed, gravity=GRAVITY)
    bare, less, _ = assemble(*found, gravity=GRAVITY)
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


SHAPES = {
    "points": lambda x: points(x, [(0.1, 0.2, 0.0), (-0.2, 0.1, 0.3)]),
    "corners": lambda x: corners(x, 0.1, 0.2, 0.15),
    "sphere": lambda x: sphere(x, 0.15, at=(0.1, 0.0, 0.0)),
    "box": lambda x: box(x, 0.2, 0.15, 0.1, turned=(0.1, 0.2, 0.0)),
    "capsule": lambda x: capsule(x, 0.1, 0.3, axis=(0.0, 0.8, 0.6)),
    "cylinder": lambda x: cylinder(x, 0.1, 0.3, axis=(0.6, 0.0, 0.8)),
    "hole": lambda x: hole(x, 2.0, axis=(1.0, 0.0, 0.0)),
    "plane": lambda x: plane(x, normal=(0.0, 0.6, 0.8)),
}
HELD_FIXED = [x for x, kind in all_pairs.KINDS.items() if set(x) <= set(SHAPES) and kind.hold is not None]
KNOWN = [x for x, kind in all_pairs.KINDS.items() if set(x) <= set(SHAPES) and kind.hold is None]


def meeting(first, second):
    """Two bodies on a hinge and a ball whose shapes meet."""
    found = [body(x, mass=1.0, inertia=(0.2, 0.3, 0.4)) for x in ("a", "b")]
    found.append(hinge("h", "ground", "a", at=(0.2, 0.0, 0.0), axis=(0.0, 0.6, 0.8)))
    found.append(ball("j", "a", "b", at=(0.3, 0.1, 0.2)))
    met = contact("c", SHAPES[first]("a"), SHAPES[second]("b"), friction=0.3)
    return assemble(*found, met, gravity=GRAVITY)


@pytest.mark.slow
@pytest.mark.parametrize("pair", sorted(KNOWN), ids="-".join)
def test_rows_of_all_pairs(pair) -> None:
    """Far from each other and inside, with how the rows change: those that no step holds fixed."""
    parts = [body(x, mass=1.0, inertia=(0.2, 0.3, 0.4)) for x in ("a", "b")]
    parts += [
        hinge("h", "ground", "a", at=(0.2, 0.0, 0.0), axis=(0.0, 0.6, 0.8)),
        ball("j", "a", "b", at=(0.3, 0.1, 0.2)),
    ]
    met = contact("c", SHAPES[pair[0]]("a"), SHAPES[pair[1]]("b"), friction=0.3)
    system, p, start = assemble(*parts, met, gravity=GRAVITY)
    by_hand, rng = (
        dataclasses.replace(system, rows=None),
        np.random.default_rng(len(pair[0]) + len(pair[1])),
    )
    assert system.rows is not None

    @jax.jit
    def seen(q, v, xi, p):
        def rows(s, x):
            return all_rows(s, jnp.zeros(()), s.retract(q, x), prepared(s, p)).wt

        rest = jnp.zeros(system.nv)
        return [jax.jvp(functools.partial(rows, s), (rest,), (xi,)) for s in (system, by_hand)]

    for _ in range(20):
        q = system.retract(start.q, rng.normal(size=system.nv))
        found, wanted = seen(q, *rng.normal(size=(2, system.nv)), p)
        for x, y in zip(found, wanted, strict=True):
            near(x, y, 1e-10)  # directions between points a millimetre apart lose three digits


def test_features_that_are_held_have_no_rows() -> None:
    assert HELD_FIXED
    assert all(meeting(*pair).system.rows is None for pair in HELD_FIXED)
