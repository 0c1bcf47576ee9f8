"""Joint and absolute coordinates: equal functions, rotations, turns that are counted, islands."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import nsjax
from nsjax import Problem, schemes
from nsjax.core.operators import prepared
from nsjax.linalg import BlockDiagonal, Dense
from nsjax.multibody import (
    assemble,
    ball,
    body,
    contact,
    corners,
    force,
    hinge,
    joint_spring,
    plane,
    point,
    spring,
)
from nsjax.multibody.assemble import TurnsWarning
from nsjax.multibody.topology import joint_topology
from tests.multibody.benchmark_runs import halved, run
from tests.multibody.coordinates.planar_lagrange import RandomTree

# Joint and absolute coordinates of one mechanism: the same energies, contacts, accelerations, motion.
BOTH = ("joint", "absolute")


def planar(coordinates, angles=(-0.3, -0.6, -0.9, -1.2), rates=(0.4, -0.7, 0.2, 0.9)):
    """Four links over a floor, which the end of each may hit."""
    parts = []
    for k in range(4):
        above = "ground" if k == 0 else f"b{k - 1}"
        parts += [
            body(f"b{k}", mass=1.0 + 0.2 * k, inertia=0.1, com=(0.5, 0.05)),
            hinge(f"h{k}", above, f"b{k}", at=None if k == 0 else (1.0, 0.1)),
            joint_spring(f"k{k}", f"h{k}", stiffness=2.0, damping=0.1, rest=-0.1),
            contact(f"c{k}", point(f"b{k}", 1.0), plane(at=(0.0, -3.0)), restitution=0.5, friction=0.2),
        ]
    parts.append(spring("s", ("ground", (2.0, 1.0)), ("b3", 0.5), stiffness=5.0, length=0.5, damping=0.2))
    start = {f"b{k}": x for k, x in enumerate(zip(angles, rates, strict=True))}
    return assemble(*parts, gravity=9.81, coordinates=coordinates, start=start)


def spatial(
    coordinates, angles=(0.2, -0.4, 0.9), turn=(0.3, -0.2, 0.5), rates=(1.0, -2.0, 0.5), spin=(1.0, 2, 3)
):
    """Three hinges about different axes and a ball."""
    axes = np.array([[0.0, 0, 1], [0.0, 0.6, 0.8], [1.0, 0, 0]])
    parts, start = [], {"b3": (np.array(turn), np.array(spin))}
    for k in range(4):
        above, at = ("ground", None) if k == 0 else (f"b{k - 1}", (0.8, 0.1, -0.2))
        parts.append(body(f"b{k}", mass=1.0 + 0.3 * k, inertia=(0.2, 0.3, 0.4), com=(0.4, 0.1, 0.05)))
        if k == 3:
            parts.append(ball("h3", above, "b3", at=at, on=(-0.1, 0.0, 0.1)))
            continue
        parts.append(hinge(f"h{k}", above, f"b{k}", at=at, axis=axes[k], turned=(0.1 * k, 0.2, -0.1)))
        parts.append(joint_spring(f"k{k}", f"h{k}", stiffness=2.0, damping=0.3))
        start[f"h{k}"] = angles[k], rates[k]
    parts.append(spring("s", ("ground", (1.0, 1.0, 1.0)), ("b3", 0.3), stiffness=5.0, length=0.5))
    return assemble(*parts, gravity=9.81, coordinates=coordinates, start=start)


def random_planar(rng):
    angles, rates = rng.uniform(-3, 3, 4), rng.normal(size=4)
    return {c: planar(c, angles, rates) for c in BOTH}


def random_spatial(rng):
    angles, rates = rng.uniform(-2, 2, 3), rng.normal(size=3)
    turn, spin = rng.normal(size=3), rng.normal(size=3)
    return {c: spatial(c, angles, turn, rates, spin) for c in BOTH}


def looked_at(system):
    """Energies, contacts and accelerations of the bodies' centres."""
    mechanism = system.force.__self__
    names = [x.name for x in mechanism.topology.all_of("body")]

    def found(q, v, params):
        p = prepared(system, params)
        t, rest = jnp.zeros(()), jnp.zeros(system.nv)
        mass, force = system.mass(q, p) if system.mass else None, system.force(t, q, v, p)
        if mass is None:
            mass = jax.vmap(lambda w: system.inertia(q, w, p))(jnp.eye(system.nv))

        def motion(q, v):
            scene = mechanism.scene(t, q, v, p)
            coms = [scene.velocity(x, params[x].com) for x in names]
            return jnp.concatenate([*coms, *(jnp.reshape(scene.spin(x), -1) for x in names)])

        def along(f, q, v):
            """Rate of ``f(q)`` along the motion."""
            return jax.jvp(lambda s: f(system.retract(q, s * v)), (0.0,), (1.0,))[1]

        if system.nb:
            rows = jax.jacfwd(lambda xi: system.constraint(t, system.retract(q, xi), p))(rest)
            bent = along(lambda q: along(lambda r: system.constraint(t, r, p), q, v), q, v)
            n = system.nb
            saddle = jnp.block([[mass, rows.T], [rows, jnp.zeros((n, n))]])
            a = jnp.linalg.solve(saddle, jnp.concatenate([force, -bent]))[: system.nv]
        else:
            a = jnp.linalg.solve(mass, force)
        change = along(lambda r: motion(r, v), q, v) + jax.jvp(lambda w: motion(q, w), (v,), (a,))[1]
        seen = {
            "velocity": motion(q, v), "acceleration": change,
            "kinetic": 0.5 * v @ mass @ v, "potential": system.potential(t, q, p),
        }  # fmt: skip
        if system.nc:
            seen |= {"gap": system.gap(t, q, p), "slip": system.slip(t, q, v, p)}
        return seen

    return jax.jit(found)


@pytest.mark.parametrize("make", [random_planar, pytest.param(random_spatial, marks=pytest.mark.slow)])
def test_functions_agree(make) -> None:
    """At random consistent states: accelerations to 1e-9, the others to 1e-12 of their size."""
    rng = np.random.default_rng(2)
    compiled = {}
    for _ in range(5):
        problems = make(rng)
        seen = {}
        for name, problem in problems.items():
            if name not in compiled:
                compiled[name] = looked_at(problem.system)
            params = jax.tree.map(lambda x: jnp.asarray(x, float), problem.params)
            seen[name] = compiled[name](jnp.asarray(problem.state.q), jnp.asarray(problem.state.v), params)
        for what, wanted in seen["joint"].items():
            limit = 1e-9 if what == "acceleration" else 1e-12
            size = max(1.0, float(np.max(np.abs(wanted))))
            assert np.max(np.abs(seen["absolute"][what] - wanted)) <= limit * size, what


# Mass matrices and forces of random planar trees against d'Alembert's principle, and of spatial chains
# against planar ones.
STATES = 20
QUICK = 1
SEEDS = [*range(QUICK), *(pytest.param(k, marks=pytest.mark.slow) for k in range(QUICK, 6))]


def off(found, wanted) -> float:
    """Largest difference, relative to the largest entry of each state."""
    axes = tuple(range(1, wanted.ndim))
    return float(np.max(np.abs(found - wanted) / np.max(np.abs(wanted), axis=axes, keepdims=True)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_random_trees(seed: int) -> None:
    """Mass matrix to 1e-12, forces to 1e-11 of their largest entry; the energy to 1e-12."""
    tree = RandomTree(seed)
    system, p = tree.problem.system, tree.problem.params
    rng = np.random.default_rng(seed + 100)
    q, v = (jnp.asarray(rng.normal(size=(STATES, system.nv))) for _ in range(2))

    @jax.jit
    @jax.vmap
    def both(q, v):
        t = jnp.zeros(())
        found = system.mass(q, p), system.force(t, q, v, p), system.potential(t, q, p)
        return found, (*tree.equations(q, v), tree.potential(q))

    found, wanted = both(q, v)
    assert off(found[0], wanted[0]) <= 1e-12
    assert off(found[1], wanted[1]) <= 1e-11
    assert np.max(np.abs(found[2] - wanted[2])) <= 1e-12 * np.max(np.abs(wanted[2]))


TURN = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
TURN = TURN * np.linalg.det(TURN)


# Free body and heavy top from parts: orders of all schemes.
OTHERS = {
    "moreau": schemes.moreau(), "half_explicit": schemes.half_explicit(), "bathe": schemes.bathe(),
    "ed_alpha": schemes.ed_alpha(), "ggl_unified": schemes.ggl_unified(),
    "nsga_decoupled": schemes.nsga_decoupled(),
}  # fmt: skip

FREE = assemble(
    body("stone", mass=1.0, inertia=(1.0, 2.0, 3.0)),
    start={"stone": ((0.0, 0.0, 0.0), ((0.0, 0.0, 0.0), (0.3, 5.0, 0.2)))},
)
FREE_TURN = np.array([0.22163858, 0.12989281, -0.74757703, -0.61248084])
FREE_SPIN = np.array([-4.81412577, 1.38354367, 2.78123515])
TOP = assemble(
    body("top", mass=15.0, inertia=(0.234375, 0.46875, 0.234375), com=(0.0, 1.0, 0.0)),
    ball("tip", "ground", "top"),
    gravity=9.81,
    start={"top": ((1.0, 0.0, 0.0, 0.0), (0.0, 150.0, -4.61538))},
)
TOP_TURN = np.array([0.73294398, -0.27828572, 0.53182461, -0.32017614])


def turned(found, wanted) -> float:
    """Angle between two attitudes."""
    return float(np.min([np.linalg.norm(found - wanted), np.linalg.norm(found + wanted)]))


def free_error(scheme, dt):
    traj = run(FREE, scheme, dt, 2.0, 1)
    return turned(traj.q[-1, 3:], FREE_TURN), float(np.linalg.norm(traj.v[-1, 3:] - FREE_SPIN))


def order_of_free_body(scheme) -> None:
    coarse, fine = halved(lambda dt: free_error(scheme, dt), 5e-3)
    for one, other in zip(coarse, fine, strict=True):
        assert 3.4 <= one / other <= 4.6, (coarse, fine)


def order_of_top(scheme, dt) -> None:
    coarse, fine = halved(lambda dt: turned(run(TOP, scheme, dt, 1.0, 1).q[-1], TOP_TURN), dt)
    assert 3.4 <= coarse / fine <= 4.6, (coarse, fine)


@pytest.mark.slow
def test_free_body() -> None:
    order_of_free_body(schemes.generalized_alpha())


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_schemes_turn_bodies(name: str) -> None:
    order_of_free_body(OTHERS[name])
    order_of_top(OTHERS[name], 2.5e-4)


# Increments of joint coordinates in space: bodies alike are moved at once, each by its own rotation.
MASS = {"mass": 1.0, "inertia": (0.1, 0.2, 0.3)}


def mixed() -> tuple[object, list[str]]:
    """Free bodies, balls that hang beside each other, a hinge between them; and what each is."""
    kinds = ["free", "free", "ball", "ball", "ball", "hinge", "free", "ball"]
    parts: list[object] = []
    for k, kind in enumerate(kinds):
        parts.append(body(f"b{k}", **MASS))
        at = (1.0 * k, 0.0, 0.0)
        if kind == "ball":
            parts.append(ball(f"h{k}", "ground", f"b{k}", at=at))
        if kind == "hinge":
            parts.append(hinge(f"h{k}", "ground", f"b{k}", at=at, axis=(0.0, 0.0, 1.0)))
    return assemble(*parts), kinds


@pytest.mark.slow
def test_every_body_by_its_own_rotation() -> None:
    problem, kinds = mixed()
    system, draw = problem.system, np.random.default_rng(2)
    q, v = np.zeros(system.nq), 0.5 * draw.normal(size=system.nv)  # less than half a turn
    sizes = {"free": (7, 6), "ball": (4, 3), "hinge": (1, 1)}
    wanted, i, j = [], 0, 0
    for kind in kinds:
        n, m = sizes[kind]
        own, step = draw.normal(size=n), v[j : j + m]
        if kind == "hinge":
            wanted.append(own + step)
        else:
            own[-4:] /= np.linalg.norm(own[-4:])
            turned = Rotation.from_quat(own[-4:], scalar_first=True) * Rotation.from_rotvec(step[-3:])
            turned = turned.as_quat(scalar_first=True)
            turned *= np.sign(turned @ own[-4:])
            wanted.append(np.concatenate([own[:-4] + step[:-3], turned]))
        q[i : i + n] = own
        i, j = i + n, j + m
    assert (i, j) == (system.nq, system.nv)
    found = np.asarray(system.retract(q, v))
    wanted = np.concatenate(wanted)
    np.testing.assert_allclose(found, wanted, atol=1e-14)
    np.testing.assert_allclose(system.retract(q, system.difference(q, found)), found, atol=1e-13)


def test_operations_do_not_grow_with_the_bodies() -> None:
    counts = []
    for n in (2, 6):
        system = assemble(*(body(f"b{k}", **MASS) for k in range(n))).system
        made = jax.make_jaxpr(system.retract)(np.zeros(system.nq), np.zeros(system.nv))
        counts.append(len(made.jaxpr.eqns))
    assert counts[0] == counts[1]


# Bodies that nothing joins are islands in absolute coordinates.
def boxes(n: int, coordinates: str, dimension: int = 2, *more) -> Problem:
    names, space = [f"box{k}" for k in range(n)], dimension == 3
    half = (0.1, 0.05, 0.05)[:dimension]
    place = (lambda k: (0.5 * k, 0.0, 0.06)) if space else (lambda k: (0.5 * k, 0.075))
    turn = (lambda k: (0.1 * k, 0.0, 0.0)) if space else (lambda k: 0.1 * k)
    still = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0) if space else (1.0, 0.0, 0.0)
    return assemble(
        *(body(name, mass=1.0 + k, inertia=[0.01] * 3 if space else 0.01) for k, name in enumerate(names)),
        *(contact(f"on_{name}", corners(name, *half), plane(), friction=0.3) for name in names),
        force("wind", "box0", (1.0, *[0.0] * (dimension - 1))),
        *more, gravity=9.81, coordinates=coordinates,
        start={name: ((place(k), turn(k)), still) for k, name in enumerate(names)},
    )  # fmt: skip


@pytest.mark.parametrize("dimension", [pytest.param(3, marks=pytest.mark.slow)])
def test_as_all_together(dimension: int) -> None:
    """To rounding, which two hundred steps and some impacts spread; of the corners of a face, which share
    their impulse in more than one way, the sum is looked at. In space a box slides on a face and turns from
    step 106 on: the share then decides its friction torque, and Coulomb's law has more than one motion
    (`tests.contact.test_undecided.test_a_face_that_slides_and_turns`).
    """
    runs, n = [], 2
    for coordinates in ("joint", "absolute"):
        problem = boxes(n, coordinates, dimension)
        traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=200, every=50)
        traj.raise_for_status()
        runs.append(traj)
        assert problem.system.islands == (n if coordinates == "absolute" else 0)
    one, other = runs
    assert one.impacts.sum() > 2
    pushed = (x.impulse_normal.reshape(5, n, -1).sum(axis=2) for x in runs)
    np.testing.assert_allclose(*pushed, rtol=1e-9, atol=1e-10)
    unique = slice(3 if dimension == 3 else None)  # rows up to step 100
    for x, y in ((one.q, other.q), (one.v, other.v)):
        np.testing.assert_allclose(x[unique], y[unique], rtol=1e-9, atol=1e-10)
    # behind that, 7e-6 m and 2.2e-4 m/s were measured; of the motion along the floor alone
    np.testing.assert_allclose(one.q, other.q, rtol=0.0, atol=5e-5)
    np.testing.assert_allclose(one.v, other.v, rtol=0.0, atol=2e-3)


def test_what_joins_them_makes_none() -> None:
    tied = boxes(3, "absolute", 2, spring("tie", "box0", "box1", stiffness=10.0))
    assert (tied.system.islands, tied.system.structure) == (0, Dense())
    to_ground = boxes(3, "absolute", 2, spring("tie", "box2", "ground", stiffness=10.0))
    assert (to_ground.system.islands, to_ground.system.structure) == (3, BlockDiagonal(3))
    uneven = boxes(3, "absolute", 2, contact("more", corners("box2", 0.2, 0.1), plane(), friction=0.1))
    assert uneven.system.islands == 0


def test_without_contacts_there_are_blocks_alone() -> None:
    names = [f"b{k}" for k in range(4)]
    problem = assemble(
        *(body(x, mass=1.0, inertia=1.0) for x in names), coordinates="absolute", gravity=9.81
    )
    assert problem.system.structure == BlockDiagonal(3)
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=1e-2, steps=10)
    np.testing.assert_allclose(traj.q[-1, 1::3], -9.81 * 0.1**2 / 2, rtol=1e-12)


# Angles of spatial hinges that are constraints, over many turns: against motions in one coordinate.
J, K, C1, C2 = 0.5, 2.0, 0.05, 0.02
AXIS = tuple(np.array([1.0, 2.0, 2.0]) / 3.0)
Z = (0.0, 0.0, 1.0)
MOREAU = schemes.moreau()


def rotor(*more, coordinates="absolute", start=(0.0, 60.0), axis=AXIS, **given):
    """M1 of the specification: a rotor on a hinge with a torsion spring and a quadratic damper."""
    return assemble(
        body("r", mass=1.0, inertia=(J, J, J)), hinge("h", "ground", "r", axis=axis, **given),
        joint_spring("s", "h", stiffness=K, damping=C1, quadratic_damping=C2), *more,
        coordinates=coordinates, start={"h": start},
    )  # fmt: skip


def exact(time, start=(0.0, 60.0), torque=lambda t, x, w: 0.0):
    def rates(t, y):
        x, w = y
        return [w, (torque(t, x, w) - K * x - C1 * w - C2 * abs(w) * w) / J]

    return solve_ivp(rates, (0.0, time), start, method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1]


@pytest.fixture(scope="module")
def absolute():
    return rotor()


@pytest.mark.slow
def test_torsion_spring_over_many_turns(absolute) -> None:
    """M1, printed: -6.64642136 at 2 s, a maximum of 2.81 turns before; second order."""
    assert exact(2.0)[0] == pytest.approx(-6.64642136, abs=1e-7)
    ends = []
    for dt in (4e-3, 2e-3):
        traj = nsjax.simulate(*absolute, schemes.generalized_alpha(0.8), dt=dt, time=2.0, every=50)
        traj.raise_for_status()
        ends.append([float(np.asarray(x)[-1]) for x in (traj.joint("h").position, traj.joint("h").rate)])
        assert np.max(traj.joint("h").position) > 16.0
    error = np.abs(np.array(ends) - exact(2.0))
    assert np.all(error[1] < 2e-3)
    energy = np.asarray(traj["energy"])  # the spring's, of turns that are counted
    assert energy[-1] == pytest.approx(0.5 * K * ends[-1][0] ** 2 + 0.5 * J * ends[-1][1] ** 2, rel=1e-9)


@pytest.mark.slow
def test_who_counts() -> None:
    """Entries of ``q`` for hinges whose angle something reads, and none for others; a hinge asks itself."""
    bare = [body("r", mass=1.0, inertia=(J, J, J)), hinge("h", "ground", "r", axis=Z)]
    assert assemble(*bare, coordinates="absolute").system.nq == 7
    asked = [bare[0], hinge("h", "ground", "r", axis=Z, turns=True)]
    problem = assemble(*asked, coordinates="absolute", start={"h": (40.0, -30.0)})
    assert problem.system.nq == 10
    assert problem.system.labels.q[-3:] == tuple(f"h.turned{k} [rad]" for k in (1, 2, 3))
    traj = nsjax.simulate(*problem, MOREAU, dt=1e-2, steps=200, every=100)
    np.testing.assert_allclose(traj.joint("h").position, [40.0, 10.0, -20.0], atol=1e-9)
    driven = [bare[0], hinge("h", "ground", "r", axis=Z, motion=lambda t: 9.0 * t)]
    problem = assemble(*driven, coordinates="absolute")
    assert problem.system.nq == 7  # the motion tells the turns
    traj = nsjax.simulate(*problem, MOREAU, dt=1e-2, steps=200, every=100)
    np.testing.assert_allclose(traj.joint("h").position, [0.0, 9.0, 18.0], atol=1e-6)


def loop(springs, **options):
    """Four bars in space, the last hinge given closing the loop unless it is read."""

    def bar(name, length):
        return body(name, mass=1.0, inertia=(0.01, 0.1, 0.1), com=length / 2.0)

    return [
        bar("k", 0.1), bar("r", 0.4), bar("s", 0.3), hinge("a", "ground", "k", axis=Z),
        hinge("b", "k", "r", at=0.1, axis=Z), hinge("c", "r", "s", at=0.4, on=0.3, axis=Z),
        hinge("d", "ground", "s", at=0.4, axis=Z, **options),
        *(joint_spring(f"s{x}", x, stiffness=0.01) for x in springs),
    ]  # fmt: skip


def test_a_loop_is_closed_where_nothing_reads() -> None:
    closures = {x: joint_topology(loop(x), 3).closures for x in ("", "c", "cb", "abcd")}
    assert closures == {"": ("c",), "c": ("d",), "cb": ("d",), "abcd": ("c",)}
    narrow = [x for x in loop("") if x.name != "c"]
    narrow.append(hinge("c", "r", "s", at=0.4, on=0.3, axis=Z, limits=(-1.0, 3.0)))
    assert joint_topology(narrow, 3).closures == ("c",)  # within half a turn poses tell the angle


@pytest.mark.slow
def test_what_cannot_count_says_so() -> None:
    with pytest.warns(TurnsWarning, match="hinge 'c': closes a loop, so that its angle lies between -pi"):
        assemble(*loop("abcd"), start={"a": 1.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error", TurnsWarning)
        assemble(*loop("abc"), start={"a": 1.0})
