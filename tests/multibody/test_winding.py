"""Ropes about cylinders and spheres: files against the package mujoco, closed forms, other integrators."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, body, cylinder, hinge, slide, sphere, tendon
from nsjax.multibody.coordinates.frames import Frame, Scene
from nsjax.multibody.loads import winding
from nsjax.multibody.numbers import Ball, Round
from tests.design import slow_but

SLOW = pytest.mark.slow
G = 9.81

# Files: lengths, moment arms and accelerations against the package mujoco.

MASS = "<inertial pos='0.1 0.05 -0.1' mass='{}' diaginertia='0.2 0.3 0.25'/>"
ARM = (
    "<mujoco><compiler angle='radian'/><worldbody><site name='w' pos='0.5 0.2 1.6'/>"
    "<geom name='peg' type='cylinder' size='0.15 0.1' pos='0.4 0.1 1.3' euler='0.3 0.2 0.1'/>"
    "<body name='a' pos='0 0 1'><joint name='j1' axis='0 1 0'/>" + MASS.format(1.5)
    + "<site name='sa' pos='0.1 0.3 0.1'/><geom name='ball' size='0.12' pos='0.35 0.1 0.1' mass='0.1'/>"
    "<site name='past' pos='0.3 -0.3 0.1'/><site name='in' pos='0.33 0.12 0.1'/>"
    "<body name='b' pos='0.4 0 0' euler='0.2 0.1 0'><joint name='j2' axis='1 0 0.5'/>" + MASS.format(0.8)
    + "<site name='sb' pos='0.3 -0.1 0.4'/>"
    "<geom name='drum' type='cylinder' size='0.1 0.1' pos='0.3 0.2 0' euler='0.5 0 0' mass='0.1'/>"
    "<site name='beside' pos='0.3 0.5 0.1'/><site name='within' pos='0.31 0.2 0.03'/>"
    "<body name='c' pos='0.3 0.1 0'><joint name='j3' type='slide' axis='0 0.6 0.8'/>" + MASS.format(0.5)
    + "<site name='sc' pos='0.3 0.4 0.3'/></body></body></body></worldbody><tendon>"
    "<spatial name='short'><site site='w'/><geom geom='peg'/><site site='sa'/><geom geom='ball'/>"
    "<site site='sb'/><pulley divisor='2'/><site site='sa'/><geom geom='drum'/><site site='sc'/></spatial>"
    "<spatial name='aside'><site site='w'/><geom geom='ball' sidesite='past'/><site site='sb'/>"
    "<geom geom='drum' sidesite='beside'/><site site='sc'/></spatial>"
    "<spatial name='ringed'><site site='w'/><geom geom='ball' sidesite='in'/><site site='sb'/>"
    "<geom geom='drum' sidesite='within'/><site site='sc'/></spatial></tendon><actuator>"
    "<motor name='m0' tendon='short'/><motor name='m1' tendon='aside'/><motor name='m2' tendon='ringed'/>"
    "</actuator><sensor><tendonpos name='q0' tendon='short'/><tendonvel name='v0' tendon='short'/>"
    "<tendonpos name='q1' tendon='aside'/><tendonvel name='v1' tendon='aside'/>"
    "<tendonpos name='q2' tendon='ringed'/></sensor></mujoco>"
)  # fmt: skip


@pytest.mark.parametrize("kind", slow_but(["short", "plain", "ringed"], "short"))
def test_files_with_geometries_on_the_path(kind: str) -> None:
    """Accelerations with motors in all tendons, lengths and rates at random states."""
    from tests.multibody.files.oracle import compared

    others = r"<spatial name='(aside|ringed)'.*?</spatial>|<(motor|tendonpos|tendonvel) name='.[12]'.*?/>"
    plain = ARM.replace("sidesite='in'", "").replace("sidesite='within'", "")
    text = {"short": re.sub(others, "", ARM), "plain": plain, "ringed": ARM}[kind]
    worst = compared(text, states=40, wide=1.5)
    assert worst["tendonpos"] < 1e-12
    assert worst["tendonvel"] < 1e-12
    # the package finds a ring's touching point to 1e-6 rad
    assert worst["accelerations"] < (2e-6 if kind == "ringed" else 1e-11)


# One piece: against other forms of the same length, derivatives, and positions without a direction.


def piece(
    ends: Any, way: str = winding.SHORT, side: Any = None, radius: Any = 0.5, axis: Any = None
) -> Any:
    """The piece between two points about a shape at the origin."""
    first, last = (jnp.asarray(x, float) for x in ends)
    d, kind = first.shape[0], "sphere" if axis is None else "cylinder"
    frame = Frame(origin=(None, None) if d == 2 else jnp.zeros(3))
    scene = Scene(d, 0.0, {"drum": frame})
    x = Ball(radius=radius) if axis is None else Round(radius=radius, axis=axis, half_length=1.0)
    a = scene.algebra
    beside = None if side is None else a.vector(jnp.asarray(side, float))
    drum = winding.Drum(kind, "drum", x, way, beside)
    return winding.wound(scene, drum, (a.vector(first), a.vector(last))), a


def length(ends: Any, *given: Any, **more: Any) -> Any:
    return piece(ends, *given, **more)[0].length


def test_a_ring_bends_the_rope_least() -> None:
    """Against the minimum over all points of the ring, plane, sphere and cylinder, by scipy."""
    draw = np.random.default_rng(2)
    found = jax.jit(lambda x: length(x, winding.INSIDE))
    for _ in range(40):
        angles, sizes = draw.uniform(-np.pi, np.pi, 2), 0.5 + 10.0 ** draw.uniform(-3, 1, 2)
        ends = np.stack([np.cos(angles), np.sin(angles)], axis=1) * sizes[:, None]

        def through(theta: float, ends: np.ndarray = ends) -> float:
            at = 0.5 * np.array([np.cos(theta), np.sin(theta)])
            return float(np.sum(np.linalg.norm(ends - at, axis=1)))

        starts = np.linspace(-np.pi, np.pi, 400)
        best = starts[np.argmin([through(x) for x in starts])]
        least = minimize_scalar(through, bracket=(best - 0.02, best + 0.02), tol=1e-12).fun
        line = ends[0] + np.linspace(0, 1, 4001)[:, None] * (ends[1] - ends[0])
        free = np.linalg.norm(line, axis=1).min() < 0.5
        wanted = np.linalg.norm(ends[1] - ends[0]) if free else least
        assert float(found(jnp.asarray(ends))) == pytest.approx(wanted, rel=1e-12)


WAYS = {
    "disc": ([(-1.0, 0.1), (0.8, 0.3)], {}),
    "disc, past a side": ([(-1.0, 0.1), (0.8, 0.3)], {"way": winding.SIDE, "side": (0.0, -1.0)}),
    "disc, more than half a turn": ([(-1.0, 1.0), (-0.8, 1.5)], {"way": winding.SIDE, "side": (1.0, -1.0)}),
    "ring": ([(-1.0, 0.9), (0.8, 0.7)], {"way": winding.INSIDE}),
    "sphere": ([(-1.0, 0.1, 0.2), (0.8, 0.3, -0.1)], {}),
    "cylinder": ([(-1.0, 0.1, 0.2), (0.8, 0.3, -0.1)], {"axis": (0.0, 0.6, 0.8)}),
    "ring in space": (
        [(-1.0, 0.9, 0.3), (0.8, 0.7, -0.2)],
        {"way": winding.INSIDE, "axis": (0.0, 0.0, 1.0)},
    ),
}


@pytest.mark.parametrize("case", slow_but(WAYS, "ring", "cylinder"))
def test_derivatives_of_a_length(case: str) -> None:
    """Its gradient is that of the pulls of the straight pieces, forward and reverse; the second derivative
    is that of the first by differences.
    """
    ends, more = WAYS[case]
    x = jnp.asarray(ends)
    of = lambda x: length(x, **more)  # noqa: E731
    made, a = piece(ends, **more)
    wanted = jnp.stack([-a.array(made.leaving), a.array(made.arriving)])
    away = jnp.asarray(np.random.default_rng(0).normal(size=x.shape))

    @jax.jit
    def looked(x: Any) -> Any:
        slope, second = jax.jvp(jax.grad(of), (x,), (away,))
        return of(x), slope, jax.jacfwd(of)(x), second

    value, *slopes, second = looked(x)
    assert float(value) > float(jnp.linalg.norm(x[1] - x[0])) + 1e-3
    for slope in slopes:
        np.testing.assert_allclose(slope, wanted, rtol=0, atol=1e-12)
    step = 1e-5
    wide = (looked(x + step * away)[1] - looked(x - step * away)[1]) / (2 * step)
    np.testing.assert_allclose(second, wide, rtol=0, atol=1e-7)
    arc = np.asarray(made.arc())
    if "cylinder" not in case and "ring in" not in case:
        np.testing.assert_allclose(np.linalg.norm(arc, axis=1), 0.5, rtol=1e-12)
    np.testing.assert_allclose(arc[[0, -1]], [a.array(made.on), a.array(made.off)], rtol=0, atol=1e-12)


@SLOW
def test_where_a_rope_lifts_off() -> None:
    """Length and pull are continuous on all ways, and derivatives are finite at the instant."""
    for way, side in ((winding.SHORT, None), (winding.SIDE, (0.0, 1.0)), (winding.INSIDE, None)):
        of = lambda y, way=way, side=side: length(  # noqa: E731
            ((-1.0, y), (0.9, y)), way, side
        )
        looked = jax.jit(lambda y, of=of: (of(y), jax.grad(of)(y), jax.jacfwd(jax.grad(of))(y)))
        for y in (0.5 - 1e-9, 0.5, 0.5 + 1e-9):
            value, slope, second = map(float, looked(y))
            assert abs(value - 1.9) < 1e-9
            assert abs(slope) < 1e-4
            assert np.isfinite(second)
        moved = [float(looked(0.5 + x)[1]) for x in (-1e-3, 1e-3)]
        bent = moved[way == winding.INSIDE]
        assert abs(bent) > 1e-4
        assert abs(moved[way != winding.INSIDE]) < 1e-12


@pytest.mark.parametrize(
    ("d", "more"),
    [(2, {}), *(pytest.param(3, x, marks=SLOW) for x in ({}, {"axis": (0.0, 0.0, 1.0)}))],
)
def test_positions_without_a_direction(d: int, more: Any) -> None:
    """Finite lengths and derivatives; a lane of nonsense stays alone."""
    cases = [
        ((-1.0, 0.0), (1.0, 0.0)), ((0.5, 0.0), (0.0, 0.5)), ((0.0, 0.0), (1.0, 0.0)),
        ((1.0, 0.0), (1.0, 0.0)), ((0.1, 0.0), (0.2, 0.1)), ((-1.0, 0.5), (1.0, 0.5)),
        ((np.nan, 0.0), (1.0, 0.5)),
    ]  # fmt: skip
    x = jnp.pad(jnp.asarray(cases), ((0, 0), (0, 0), (0, d - 2)))
    for way, side in ((winding.SHORT, None), (winding.SIDE, (0, 1, 0)[:d]), (winding.INSIDE, None)):
        of = lambda x, way=way, side=side: length(x, way, side, **more)  # noqa: E731
        values, slopes = jax.jit(jax.vmap(jax.value_and_grad(of)))(x)
        assert np.all(np.isfinite(values[:-1]))
        assert np.all(np.isfinite(slopes[:-1]))
        assert not np.isfinite(values[-1])
    assert float(length(((-1.0, 0.1), (1.0, 0.0)), radius=0.0)) == pytest.approx(np.hypot(2.0, 0.1))


# Mechanisms: closed form, and another integrator, in joint and absolute coordinates, plane and space.


def atwood(coordinates: str = "joint", spatial: bool = False, **given: Any) -> Any:
    """Two weights on a rope over a fixed drum, vertically below its sides."""
    r, wide = 0.2, (lambda x, y: (x, 0.0, y)) if spatial else (lambda x, y: (x, y))
    drum = cylinder("ground", r, 0.1, axis=(0.0, 1.0, 0.0)) if spatial else sphere("ground", r)
    over = drum, ("ground", wide(0.0, 0.5))
    parts = []
    for name, x, mass in (("a", -r, 2.0), ("b", r, 1.5)):
        inertia = (0.1, 0.1, 0.1) if spatial else 0.1
        parts += [
            body(name, mass=mass, inertia=inertia),
            slide(name.upper(), "ground", name, at=wide(x, -1.0), axis=wide(0.0, 1.0)),
        ]
    return assemble(*parts, tendon("rope", "a", over, "b", **given), gravity=G, coordinates=coordinates)


@pytest.mark.parametrize(
    ("scheme", "coordinates", "spatial"),
    [
        (schemes.moreau(), "joint", False),
        pytest.param(schemes.moreau(), "absolute", True, marks=SLOW),
        pytest.param(schemes.half_explicit(), "joint", True, marks=SLOW),
        pytest.param(schemes.generalized_alpha(), "absolute", False, marks=SLOW),
    ],
    ids=("moreau", "moreau-space", "half_explicit", "generalized_alpha"),
)
def test_two_weights_over_a_drum(scheme: Any, coordinates: str, spatial: bool) -> None:
    """An inextensible rope: ``a'' = -g (m - n) / (m + n)``, tension ``2 g m n / (m + n)``."""
    problem = atwood(coordinates, spatial, limits=(None, 2.0 + 0.2 * np.pi))
    traj = nsjax.simulate(*problem, scheme, dt=1e-3, steps=100)
    traj.raise_for_status()
    m, n, axis = 2.0, 1.5, -1
    speeds = [float(traj.body(x).velocity[-1][axis]) for x in "ab"]
    np.testing.assert_allclose(speeds, [-0.1 * G * (m - n) / (m + n), 0.1 * G * (m - n) / (m + n)],
                               rtol=0, atol=1e-9)  # fmt: skip
    rows = traj.contact("rope.upper")
    pull = rows.force[-1] if float(jnp.max(rows.force)) > 0.0 else rows.impulse[-1] / 1e-3
    assert abs(float(jnp.ravel(pull)[0]) - 2.0 * G * m * n / (m + n)) < 1e-8
    arc = next(x for x in problem.system.shapes(0.0, problem.state.q, problem.params).shapes
               if x.name == "rope" and len(x.points) > 10)  # fmt: skip
    assert float(np.max(np.asarray(arc.points)[:, -1])) == pytest.approx(0.2, abs=2e-3)


def test_pieces_on_one_body() -> None:
    """They have a constant length, and no pull; two points in one place are one point."""
    rod = body("rod", mass=1.0, inertia=0.1, com=(0.5, 0.0)), hinge("pin", "ground", "rod")
    ends, on = ("ground", (0.0, 1.0)), ("rod", (1.0, 0.0))
    bent = ("rod", (0.2, 0.1)), sphere("rod", 0.1, at=(0.5, 0.05)), ("rod", (0.8, 0.1)), on
    lengths, forces = [], []
    for path in (
        (ends, on),
        (ends, on, on),
        (ends, on, on, sphere("rod", 0.1), on),
        (ends, on, *bent[::-1]),
    ):
        problem = assemble(*rod, tendon("t", *path, stiffness=10.0, length=(0.0, 0.5)), gravity=G)
        lengths.append(tensioned(problem))
        forces.append(
            np.asarray(problem.system.force(0.0, problem.state.q, problem.state.v, problem.params))
        )
    np.testing.assert_allclose(lengths[:3], lengths[0], rtol=1e-14)
    np.testing.assert_allclose(forces[:3], np.broadcast_to(forces[0], (3, 1)), rtol=1e-14)
    assert lengths[3] > lengths[0] + 0.6


def tensioned(problem: Any) -> float:
    """Length of the tendon at the start."""
    scene = problem.system.parts.scene(0.0, problem.state.q, None, problem.params)
    return float(scene.coordinates("t")[0])


RADIUS, STIFF, REST = 0.15, 100.0, 1.42


def swung(radius: float, t: float = 0.8) -> Any:
    """Angle and rate of a rod in an elastic cord about a peg that turns with another rod, by scipy."""

    def rates(t: float, y: np.ndarray) -> Any:
        found = np.array([np.cos(y[0]), np.sin(y[0])])
        start, centre = np.array([-0.6, 0.4]), np.array([0.0, 0.55])
        ends = start - centre, found - centre
        d = [np.linalg.norm(x) for x in ends]
        gone = ends[1] - ends[0]
        share = np.clip(-(gone @ ends[0]) / (gone @ gone), 0.0, 1.0)
        if np.linalg.norm(ends[0] + share * gone) > radius:
            size = np.linalg.norm(gone)
            way = gone / size
        else:
            angle = np.arccos(ends[0] @ ends[1] / d[0] / d[1])
            slack = [np.arccos(radius / x) for x in d]
            size = sum(np.sqrt(x * x - radius**2) for x in d) + radius * (angle - sum(slack))
            turn = np.sign(ends[0][0] * ends[1][1] - ends[0][1] * ends[1][0])
            theta = np.arctan2(ends[1][1], ends[1][0]) - turn * slack[1]
            way = turn * np.array([-np.sin(theta), np.cos(theta)])
        pull = STIFF * max(size - REST, 0.0)
        across = way @ np.array([-found[1], found[0]])
        return [y[1], (-2.0 * G * 0.5 * found[0] - pull * across) / (2.0 * 0.25 + 0.3)]

    return solve_ivp(rates, (0.0, t), [0.6, 0.0], rtol=1e-11, atol=1e-12, max_step=1e-3).y[:, -1]


def swinging(coordinates: str = "joint", spatial: bool = False) -> Any:
    wide = (lambda x, y: (x, 0.0, y)) if spatial else (lambda x, y: (x, y))
    axis = {"axis": (0.0, -1.0, 0.0)} if spatial else {}
    peg = sphere("ground", RADIUS, at=wide(0.0, 0.55))
    if spatial and coordinates == "joint":
        peg = cylinder("ground", RADIUS, 0.1, at=wide(0.0, 0.55), axis=(0.0, 1.0, 0.0))
    return assemble(
        body("rod", mass=2.0, inertia=(0.1, 0.3, 0.2) if spatial else 0.3, com=wide(0.5, 0.0)),
        hinge("pin", "ground", "rod", **axis),
        tendon("cord", ("ground", wide(-0.6, 0.4)), peg, ("rod", wide(1.0, 0.0)), stiffness=STIFF,
               length=(0.0, REST)),
        gravity=G, coordinates=coordinates, start={"pin" if coordinates == "joint" else "rod": 0.6},
    )  # fmt: skip


@SLOW
@pytest.mark.parametrize(
    ("coordinates", "spatial"),
    [("joint", False), ("joint", True)],
)
def test_a_rope_that_winds_and_lifts_off(coordinates: str, spatial: bool) -> None:
    """The rate of a rod, and its derivative by the radius: forward, reverse, and wide secants of scipy."""
    problem = swinging(coordinates, spatial)

    def rate(radius: Any) -> Any:
        around = (dataclasses.replace(problem.params["cord"].around[0], radius=radius),)
        given = dataclasses.replace(problem.params["cord"], around=around)
        made = problem.replace(params={**problem.params, "cord": given})
        return nsjax.simulate(*made, schemes.generalized_alpha(), dt=5e-4, steps=1600).v[-1, 0]

    value, slope = jax.jit(lambda r: jax.jvp(rate, (r,), (1.0,)))(RADIUS)
    assert abs(float(value) - swung(RADIUS)[1]) < 2e-5
    wide = (swung(RADIUS + 1e-4)[1] - swung(RADIUS - 1e-4)[1]) / 2e-4
    assert abs(float(slope) - wide) < 1e-3 * abs(wide)
    if not spatial:
        assert abs(float(jax.jit(jax.grad(rate))(RADIUS) - slope)) < 1e-9


@SLOW
def test_coordinates_agree() -> None:
    """Joint and absolute coordinates, in space with a cylinder and a sphere: rates at the end."""
    found = []
    for coordinates in ("joint", "absolute"):
        problem = swinging(coordinates, spatial=True)
        run = nsjax.simulate(*problem, schemes.half_explicit(), dt=1e-3, steps=400)
        run.raise_for_status()
        found.append(np.asarray(run.joint("pin").rate[-1]))
    assert abs(found[0] - found[1]) < 1e-6


# Discs on which ends of ropes are wound: a pulley that turns with its rope, a yo-yo, a fixed drum.
MASSES, INERTIA, DISC = (3.0, 2.0), 0.02, 0.1


def heavy(coordinates: str = "joint", inertia: Any = INERTIA, radius: Any = DISC) -> nsjax.Problem:
    """Two weights on a rope over a pulley with inertia, on which it does not slip."""
    disc, up = sphere("pulley", radius), (0.0, 1.0)
    return assemble(
        body("pulley", mass=1.0, inertia=inertia), hinge("axle", "ground", "pulley"),
        body("a", mass=MASSES[0], inertia=1e-3), slide("A", "ground", "a", at=(-DISC, -1.0), axis=up),
        body("b", mass=MASSES[1], inertia=1e-3), slide("B", "ground", "b", at=(DISC, -1.0), axis=up),
        tendon("left", "a", (disc, (-1.0, 0.0)), limits=(None, 1.0)),
        tendon("right", (disc, (1.0, 0.0)), "b", limits=(None, 1.0)), gravity=G, coordinates=coordinates,
    )  # fmt: skip


TAKEN = ["moreau", "half_explicit", "generalized_alpha", "bathe", "ggl_decoupled"]


@SLOW
@pytest.mark.parametrize(
    ("scheme", "coordinates"),
    [("moreau", "absolute"), *((x, "joint") for x in TAKEN)],
)  # fmt: skip
def test_a_heavy_pulley_turns_with_its_rope(scheme: str, coordinates: str) -> None:
    """``a = (m1 - m2) g / (m1 + m2 + I / r^2)`` over two turns, with both tensions ``m1 (g - a)`` and
    ``m2 (g + a)``.
    """
    run = nsjax.simulate(*heavy(coordinates), getattr(schemes, scheme)(), dt=5e-3, steps=200)
    run.raise_for_status()
    a = (MASSES[0] - MASSES[1]) * G / (sum(MASSES) + INERTIA / DISC**2)
    rates = [float(run.joint(x).rate[-1]) for x in ("A", "B", "axle")]
    np.testing.assert_allclose(rates, [-a, a, a / DISC], rtol=1e-9)
    np.testing.assert_allclose(
        run.joint("axle").position[-1], 0.5 * a / DISC, rtol=1e-2
    )  # of the first step
    assert float(run.joint("axle").position[-1]) > 2.0 * np.pi
    tensions = MASSES[0] * (G - a), MASSES[1] * (G + a)
    np.testing.assert_allclose(run.force_normal[-1], tensions, rtol=1e-9)


@SLOW
def test_derivatives_of_a_heavy_pulley() -> None:
    """The speed by the inertia of the pulley, forward and reverse, against the closed form."""

    def speed(inertia: Any) -> Any:
        problem = heavy().replace({"pulley.inertia": inertia})
        return nsjax.simulate(*problem, schemes.moreau(), dt=5e-3, steps=100).v[-1, 2]

    whole = sum(MASSES) + INERTIA / DISC**2
    wanted = -0.5 * (MASSES[0] - MASSES[1]) * G / whole**2 / DISC**2
    for derivative in (jax.jacfwd, jax.jacrev):
        assert float(derivative(speed)(INERTIA)) == pytest.approx(wanted, rel=1e-9)


def test_the_rate_of_a_wound_rope_is_the_derivative_of_its_length() -> None:
    """At random places and rotations, over many turns, and its pulls are those of virtual work; the length
    is that of the straight piece and of the arc from the mark on the disc, drawn point by point.
    """
    draw, radius = np.random.default_rng(4), 0.3

    def frame(x: Any, rate: Any) -> Frame:
        turn = jnp.sin(x[2]), jnp.cos(x[2])
        moves = (rate[0], rate[1])
        return Frame(origin=(x[0], x[1]), turn=turn, angle=x[2], velocity=moves, spin=rate[2])

    def drawn(x: Any, point: Any, way: Any) -> Any:
        scene = Scene(2, 0.0, {"drum": frame(x, jnp.zeros(3))})
        drum = winding.Drum("sphere", "drum", Ball(radius=radius, at=(0.1, -0.2)), winding.ONTO, way)
        return winding.unwound(scene, drum, (point[0], point[1]))

    for _ in range(10):
        x, point = draw.normal(size=3) * (1.0, 1.0, 10.0), draw.normal(size=2) * 3.0
        centre = x[:2] + np.array([[np.cos(x[2]), -np.sin(x[2])], [np.sin(x[2]), np.cos(x[2])]]) @ (
            0.1,
            -0.2,
        )
        gone = point - centre
        if np.linalg.norm(gone) < 1.1 * radius:
            continue
        for side in (1.0, -1.0):
            way = (
                side * np.array([gone[1], -gone[0]]) / np.linalg.norm(gone)
            )  # across the line to the point
            found = drawn(x, point, way)
            # the touching point: perpendicular to the rope, on the side of the direction
            place, along = np.asarray(found.place), np.asarray(found.along)
            np.testing.assert_allclose(np.linalg.norm(place - centre), radius, rtol=1e-12)
            np.testing.assert_allclose(along @ (place - centre), 0.0, atol=1e-12)
            assert way @ (place - centre) > 0.0
            straight = np.linalg.norm(place - point)
            mark = np.arctan2(way[1], way[0])
            angle = (np.arctan2(*(place - centre)[::-1]) - mark + np.pi) % (2 * np.pi) - np.pi
            sense = np.sign(along @ np.array([-(place - centre)[1], (place - centre)[0]]))
            np.testing.assert_allclose(found.length, straight + sense * radius * (x[2] - angle), rtol=1e-12)
            by_place, by_point = jax.grad(lambda *y: drawn(*y, way).length, argnums=(0, 1))(x, point)  # noqa: B023
            np.testing.assert_allclose(by_point, -along, atol=1e-12)
            arm = place - x[:2]
            moment = arm[0] * along[1] - arm[1] * along[0]
            np.testing.assert_allclose(by_place, [*along, moment], atol=1e-12)


def test_a_yo_yo_falls() -> None:
    """``a = g / (1 + I / (m r^2))``, from a cord that hangs from a fixed point."""
    m, inertia, radius = 0.2, 1e-4, 0.01
    problem = assemble(
        body("yoyo", mass=m, inertia=inertia),
        tendon("cord", ("ground", (radius, 0.5)), (sphere("yoyo", radius), (1.0, 0.0)), limits=(None, 0.5)),
        gravity=G, start={"yoyo": (0.0, 0.0, 0.0)},
    )  # fmt: skip
    run = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=1000)
    a = G / (1.0 + inertia / (m * radius**2))
    np.testing.assert_allclose(run.v[-1], [0.0, -a, a / radius], rtol=1e-9, atol=1e-9)


@SLOW
def test_a_pendulum_unwinds_from_a_fixed_drum() -> None:
    """Against scipy: a rope of length ``l = l0 + r (phi - phi0)`` along the tangent of a fixed disc at the
    angle phi, from which it unwinds.
    """
    radius, l0, phi0 = 0.2, 0.5, 0.6

    def swings(_: float, y: np.ndarray) -> list[float]:
        phi, w = y
        length = l0 + radius * (phi - phi0)
        # bob at r e + l n with e = (cos, sin), n = (sin, -cos): its speed is l w along e
        return [w, (-radius * w**2 - G * np.sin(phi)) / length]

    e, n = np.array([np.cos(phi0), np.sin(phi0)]), np.array([np.sin(phi0), -np.cos(phi0)])
    problem = assemble(
        body("bob", mass=0.7, inertia=1.0),
        tendon("cord", (sphere("ground", radius), (1.0, 0.0)), "bob", limits=(None, l0 - radius * phi0)),
        gravity=G, start={"bob": (*(radius * e + l0 * n), 0.0)},
    )  # fmt: skip
    run = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=1e-3, steps=600)
    phi = solve_ivp(swings, (0.0, 0.6), [phi0, 0.0], rtol=1e-10, atol=1e-12).y[0, -1]
    e, n = np.array([np.cos(phi), np.sin(phi)]), np.array([np.sin(phi), -np.cos(phi)])
    wanted = radius * e + (l0 + radius * (phi - phi0)) * n
    np.testing.assert_allclose(run.q[-1, :2], wanted, atol=1e-5)
