"""Friction of contacts against spinning and rolling: closed forms in the plane and in space, in both
coordinates, with derivatives; names, files, moments on bodies, and what is refused.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import io, schemes
from nsjax.core import InputError
from nsjax.multibody import (
    assemble,
    beam,
    body,
    box,
    contact,
    contact_group,
    hinge,
    plane,
    read_mjcf,
    section,
    slide,
    sphere,
    spring,
    tube,
)

SLOW = pytest.mark.slow
MASS, RADIUS, G = 2.0, 0.5, 9.0
DISC, BALL = 0.5 * MASS * RADIUS**2, 0.4 * MASS * RADIUS**2
SCHEMES = {
    "moreau": schemes.moreau(), "theta": schemes.moreau_theta(), "ggl_decoupled": schemes.ggl_decoupled(),
    "ggl_unified": schemes.ggl_unified(),
}  # fmt: skip
MIXED = [
    pytest.param(*x, marks=SLOW)
    for x in (
        (3, "absolute", "moreau"), (2, "absolute", "theta"), (3, "joint", "ggl_decoupled"),
        (2, "joint", "ggl_unified"),
    )
]  # fmt: skip


def rolling_body(dimension, coordinates, slope=0.0, friction=None, restitution=0.0, height=0.0):
    """A disc or a ball on a plane that goes down along x."""
    s, c = np.sin(slope), np.cos(slope)
    normal = (s, c) if dimension == 2 else (s, 0.0, c)
    up = (RADIUS + height) * np.array(normal)
    inertia = DISC if dimension == 2 else (BALL,) * 3
    given = (2.0, 0.0 if dimension == 2 else 0.004, 0.02) if friction is None else friction
    return assemble(
        body("wheel", mass=MASS, inertia=inertia),
        contact("floor", sphere("wheel", RADIUS), plane(normal=normal), friction=given,
                restitution=restitution),
        gravity=G if dimension == 2 else (0.0, 0.0, -G), coordinates=coordinates,
        start={"wheel": (*up, 0.0) if dimension == 2 else tuple(up)},
    )  # fmt: skip


def moving(problem, v):
    return dataclasses.replace(problem, state=dataclasses.replace(problem.state, v=jnp.asarray(v, float)))


def with_number(problem, key, x):
    own = dataclasses.replace(problem.params["floor"], **{key: x})
    return dataclasses.replace(problem, params={**problem.params, "floor": own})


def rolling_at(dimension, speed, spin=0.0):
    """Velocities of a body that rolls along x and spins about the vertical."""
    zero = 0.0 * speed
    if dimension == 2:
        return jnp.stack([speed, zero, -speed / RADIUS])
    return jnp.stack([speed, zero, zero, zero, speed / RADIUS, zero + spin])


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "coordinates", "scheme"), [(2, "joint", "moreau"), *MIXED])
def test_on_an_incline(dimension, coordinates, scheme) -> None:
    """It stays where ``tan a <= b = mu_r / R``, else goes by ``g (sin a - b cos a) / (1 + J / m R^2)``."""
    slope = 0.3
    problem = rolling_body(dimension, coordinates, slope)
    inertia, least = DISC if dimension == 2 else BALL, RADIUS * np.tan(slope)
    for arm in (0.0, 0.02, 0.999 * least):
        own = with_number(problem, "rolling", arm)
        traj = nsjax.simulate(*own, SCHEMES[scheme], dt=1e-2, steps=50)
        traj.raise_for_status()
        wanted = (
            0.5 * G * (np.sin(slope) - np.cos(slope) * arm / RADIUS) / (1.0 + inertia / (MASS * RADIUS**2))
        )
        speed = wanted * np.array([np.cos(slope), -np.sin(slope)])
        np.testing.assert_allclose(traj.v[-1][[0, dimension - 1]], speed, atol=1e-9)
        np.testing.assert_allclose(np.max(np.abs(traj.v[-1][dimension:])), wanted / RADIUS, atol=1e-9)
    for arm in (1.001 * least, 0.9):
        own = with_number(problem, "rolling", arm)
        stays = nsjax.simulate(*own, SCHEMES[scheme], dt=1e-2, steps=50)
        stays.raise_for_status()
        assert np.max(np.abs(stays.v)) < 1e-11
        moment = np.max(np.abs(stays.dry_friction_force[-1]))
        np.testing.assert_allclose(moment, MASS * G * RADIUS * np.sin(slope), atol=1e-9)


@pytest.mark.parametrize(("dimension", "coordinates", "scheme"), MIXED)
def test_it_rolls_to_a_stop(dimension, coordinates, scheme) -> None:
    """After ``v^2 (1 + J / m R^2) R / (2 g mu_r)``; derivatives of the way by ``mu_r`` and ``v``, forward,
    reverse, and closed.
    """
    problem = rolling_body(dimension, coordinates)
    inertia, speed, arm, dt = DISC if dimension == 2 else BALL, 0.6, 0.05, 2e-3
    whole = 1.0 + inertia / (MASS * RADIUS**2)

    def end(x):
        own = moving(with_number(problem, "rolling", x[0]), rolling_at(dimension, x[1]))
        traj = nsjax.simulate(*own, SCHEMES[scheme], dt=dt, steps=600)
        return traj.q[-1, 0], (traj.v, traj.status)

    at = jnp.array([arm, speed])

    def along(x, way):
        return jax.jvp(lambda y: end(y)[0], (x,), (way,))[1]

    (way, (v, status)), reverse = jax.jit(jax.value_and_grad(end, has_aux=True))(at)
    forward = jax.jit(jax.vmap(along, (None, 0)))(at, jnp.eye(2))
    assert int(status) == 0
    stop = speed**2 * whole * RADIUS / (2.0 * G * arm)
    assert abs(float(way) - stop) <= speed * dt
    assert np.max(np.abs(v[-1])) < 1e-11
    np.testing.assert_allclose(reverse, forward, rtol=1e-10, atol=1e-10)
    # it stops after 1 s: the square of the part of a step that is left, see test_rolling_stops
    np.testing.assert_allclose(forward, [-stop / arm, 2.0 * stop / speed], rtol=2.0 * dt**2)


@SLOW
@pytest.mark.parametrize(("coordinates", "scheme"), [("joint", "moreau"), ("absolute", "ggl_unified")])
def test_it_spins_down(coordinates, scheme) -> None:
    """By ``mu_s m g / J`` while it rolls, after ``J w / (mu_s m g)`` not at all."""
    problem = moving(rolling_body(3, coordinates), rolling_at(3, jnp.asarray(0.6), 0.3))
    traj = nsjax.simulate(*problem, SCHEMES[scheme], dt=1e-2, steps=120)
    traj.raise_for_status()
    down = np.maximum(0.3 - 0.004 * MASS * G / BALL * np.asarray(traj.t), 0.0)
    np.testing.assert_allclose(traj.body("wheel").spin[:, 2], down, atol=2e-5)
    np.testing.assert_allclose(traj.v[-1, 1:3], 0.0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["joint", pytest.param("absolute", marks=SLOW)])
def test_an_impact_takes_spin(coordinates) -> None:
    """``mu_s`` times its impulse; and the moment acts on the body as its pushes say."""
    problem = rolling_body(3, coordinates, friction=(0.0, 0.004, 0.0), restitution=0.5, height=0.1)
    assert problem.system.nd == 1
    assert problem.system.nt == 0
    v = np.zeros(6)
    v[5] = 5.0
    traj = nsjax.simulate(*moving(problem, v), schemes.moreau(), dt=1e-3, steps=400)
    traj.raise_for_status()
    impulse = float(np.sum(traj.impulse_normal))
    assert impulse > MASS * 1.5 * np.sqrt(2.0 * G * 0.1) * 0.99
    np.testing.assert_allclose(traj.v[-1, 5], 5.0 - 0.004 * impulse / BALL, atol=1e-10)
    np.testing.assert_allclose(np.sum(traj.dry_friction_impulse), -0.004 * impulse, atol=1e-10)
    np.testing.assert_array_equal(traj.sensor("floor.spin.impulse"), traj.dry_friction_impulse[:, 0])
    np.testing.assert_array_equal(traj.sensor("floor.spin.force"), traj.dry_friction_force[:, 0])


@SLOW
@pytest.mark.parametrize(("dimension", "coordinates"), [(2, "absolute"), (3, "joint")])
def test_zeros(dimension, coordinates) -> None:
    """Plain zeros make no rows; a zero that may be varied makes rows without a moment."""
    plain = rolling_body(dimension, coordinates, friction=(0.3, 0.0, 0))
    assert plain.system.nd == 0
    assert plain.system.dry_friction_contact == ()
    zero = with_number(rolling_body(dimension, coordinates), "rolling", 0.0)
    if dimension == 3:
        zero = with_number(zero, "torsional", 0.0)
    zero, v = with_number(zero, "friction", 0.3), rolling_at(dimension, jnp.asarray(0.4), 0.7)
    for one in (plain, zero):
        traj = nsjax.simulate(*moving(one, v), schemes.moreau(), dt=1e-2, steps=30)
        traj.raise_for_status()
        np.testing.assert_allclose(traj.v[-1], v, atol=1e-12)
        np.testing.assert_allclose(traj.q[-1, 0], 0.4 * 0.3, atol=1e-12)
        still = nsjax.simulate(*one, schemes.moreau(), dt=1e-2, steps=30)
        assert np.max(np.abs(still.v)) < 1e-13


@pytest.mark.slow
def test_corners_that_depend_on_each_other() -> None:
    """A box that spins on four corners: all bear together, ``mu_s m g``, although their rows are one."""
    problem = assemble(
        body("crate", mass=MASS, inertia=(0.02,) * 3),
        contact("floor", box("crate", 0.1, 0.1, 0.1), plane(), friction=(0, 0.004, 0)),
        gravity=(0.0, 0.0, -G), start={"crate": (0.0, 0.0, 0.1)},
    )  # fmt: skip
    assert problem.system.labels.dry_frictions[0] == "floor.0.spin"
    traj = nsjax.simulate(*moving(problem, [0, 0, 0, 0, 0, 3.0]), schemes.moreau(), dt=1e-2, steps=50)
    traj.raise_for_status()
    np.testing.assert_allclose(traj.v[-1], [0, 0, 0, 0, 0, 3.0 - 0.5 * 0.004 * MASS * G / 0.02], atol=1e-10)


@pytest.mark.slow
def test_moments_in_joints_names_and_files(tmp_path) -> None:
    """A wheel on an arm that is driven against its rolling resistance: the arm bears the moment."""
    parts = [
        body("cart", mass=1.0), body("wheel", mass=MASS, inertia=DISC),
        slide("rail", "ground", "cart", axis=(1.0, 0.0)), hinge("axle", "cart", "wheel", friction=0.03),
        contact("road", sphere("wheel", RADIUS), plane(at=(0.0, -RADIUS)), friction=(0.8, 0, 0.02)),
    ]  # fmt: skip
    problem = assemble(*parts, gravity=G)
    assert problem.system.labels.dry_frictions == ("axle", "road.roll")
    assert problem.system.dry_friction_contact == (-1, 0)
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-2, steps=5)
    io.save(tmp_path / "run.npz", problem, traj)
    again = io.load(tmp_path / "run.npz", problem)
    np.testing.assert_array_equal(again.traj.dry_friction_impulse, traj.dry_friction_impulse)
    assert again.problem.params["road"].rolling == 0.02


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["joint", pytest.param("absolute", marks=SLOW)])
def test_the_moment_that_a_joint_bears(coordinates) -> None:
    """A plate pressed on a ball that a slide holds upright: its moment is that of the ball that spins."""
    parts = [
        body("ball", mass=MASS, inertia=(BALL,) * 3),
        slide("post", "ground", "ball", axis=(0.0, 0.0, 1.0)),
        body("table", mass=1.0, inertia=(0.1,) * 3),
        hinge("pivot", "ground", "table", axis=(0.0, 0.0, 1.0)),
        contact("top", sphere("ball", RADIUS), plane("table", at=(0.0, 0.0, -RADIUS)),
                friction=(0.0, 0.004, 0.0)),
    ]  # fmt: skip
    problem = assemble(*parts, gravity=(0.0, 0.0, -G), start={"pivot": (0.0, 4.0)}, coordinates=coordinates)
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-2, steps=20)
    traj.raise_for_status()
    np.testing.assert_allclose(traj.joint("pivot").rate[-1], 4.0 - 0.2 * 0.004 * MASS * G / 0.1, atol=1e-9)
    # the table turns forward under the ball: it takes the ball along, and the post holds that
    np.testing.assert_allclose(traj.joint("post").torque[-1], [0.0, 0.0, -0.004 * MASS * G], atol=1e-9)


RULES = """<mujoco><option>{option}</option><worldbody>
<geom name="ground" type="plane" size="1 1 1" condim="{one}" friction="0.4 0.03 0.0002" priority="{first}"/>
<body name="ball" pos="0 0 0.1"><freejoint/><geom name="ball" size="0.1" mass="1" condim="{other}"
 friction="0.7 0.01 0.004" priority="{second}"/></body></worldbody>{more}</mujoco>"""
PAIR = (
    '<contact><pair geom1="ground" geom2="ball" condim="{}" friction="0.6 0.6 0.02 0.003 0.003"/></contact>'
)


UNEVEN = """<mujoco>{}<worldbody><geom name="floor" type="plane" size="1 1 1"/><body name="crate"
 pos="0 0 0.1"><freejoint/><geom name="box" type="box" size="0.1 0.1 0.1" mass="1"/></body></worldbody>
 <contact><pair geom1="floor" geom2="box" friction="{}" condim="{}"/></contact></mujoco>"""
OVERRIDE = '<option o_friction="0.8 0.3 0.005 1e-4 2e-4"><flag override="enable"/></option>'


@pytest.mark.parametrize(("override", "friction", "sizes", "asked", "wanted"), [
    ("", "0.8 0.05 0.005 1e-4 1e-4", 4, None, ("friction of 0.8 in one direction, 0.05 in the other",)),
    ("", "0.8 0.05 0.005 1e-4 1e-4", 3, None, ()),
    ("", "0.8 0.8 0.005 1e-4 2e-4", 6, None, ("friction of rolling of 0.0001 in one direction, 0.0002",)),
    ("", "0.8 0.5 0.005 1e-4 2e-4", 6, None, ("friction of 0.8", "friction of rolling of 0.0001")),
    ("", "0.8 0.8 0.005 1e-4 2e-4", 4, None, ()), ("", "0.8 0.05 0.005 1e-4 2e-4", 1, None, ()),
    ("", "0.8 0.05 0.005 1e-4 2e-4", 6, 0.5, ()), ("", "0.8 0.8 0.005 1e-4 1e-4", 6, None, ()),
    (OVERRIDE, "1 1 0.005 1e-4 1e-4", 4, None, ("friction of 0.8 in one direction, 0.3 in the other",)),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore::nsjax.multibody.LeftOutWarning")
def test_friction_by_direction_is_named(override, friction, sizes, asked, wanted) -> None:
    """Coefficients for the second direction beside friction against turning are not read: it says so."""
    pytest.importorskip("mujoco")
    model = read_mjcf(UNEVEN.format(override, friction, sizes), friction=asked)
    assert len(model.left_out) == len(wanted), model.left_out
    for said, start in zip(model.left_out, wanted, strict=True):
        assert said.startswith(start)
        assert said.endswith(" in all: floor - box")


@pytest.mark.parametrize(("given", "wanted"), [
    ({"one": 4, "other": 3}, (0.7, 0.03, None)),
    ({"one": 3, "other": 6}, (0.7, 0.03, 0.004)),
    ({"one": 6, "other": 4, "first": 1}, (0.4, 0.03, 0.0002)),
    ({"one": 6, "other": 4, "second": 2}, (0.7, 0.01, None)),
    ({"one": 6, "other": 3, "second": 2}, (0.7, None, None)),
    ({"one": 6, "other": 1, "second": 2}, (None, None, None)),
    ({"one": 3, "other": 3}, (0.7, None, None)),
    ({"more": PAIR.format(6)}, (0.6, 0.02, 0.003)),
    ({"more": PAIR.format(4)}, (0.6, 0.02, None)),
    ({"more": PAIR.format(3)}, (0.6, None, None)),
    ({"one": 6, "option": '<flag override="enable"/>'}, (1.0, 0.005, 0.0001)),
])  # fmt: skip
def test_friction_of_model_files(given, wanted) -> None:
    """As MuJoCo combines it: its own contact says so."""
    mujoco = pytest.importorskip("mujoco")
    text = RULES.format(
        **{"one": 3, "other": 3, "first": 0, "second": 0, "more": "", "option": "", **given}
    )
    own = next(x for x in read_mjcf(text) if x.kind == "contact").numbers
    assert (own.friction, own.torsional, own.rolling) == pytest.approx(wanted)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[2] = 0.099
    mujoco.mj_forward(model, data)
    met = data.contact[0]
    theirs = [met.friction[0], met.friction[2], met.friction[3]]
    for k, (x, least) in enumerate(zip(wanted, (3, 4, 6), strict=True)):
        assert (x is not None) == (met.dim >= least), k
        assert x is None or x == pytest.approx(theirs[k])


def test_what_is_refused() -> None:
    ball, floor = sphere("wheel", RADIUS), plane()
    with pytest.raises(InputError, match=r"contact 'floor': rolling = -0.1; it must be at least 0"):
        contact("floor", ball, floor, friction=(0.3, 0.0, -0.1))
    words = (
        r"contact 'floor': torsional friction 0.1 in the plane, where nothing turns about a normal; give "
        r"friction=\(sliding, 0, rolling\)"
    )
    with pytest.raises(InputError, match=words):
        rolling_body(2, "joint", friction=(0.3, 0.1, 0.0))
    words = (
        "contact 'floor': torsional and rolling friction act between rigid bodies, and one of tube and "
        "plane is on a beam; give the sliding coefficient alone"
    )
    rod = section(EA=1e4, GA=1e4, EI=1.0, GJ=1.0, line_mass=0.1, line_inertia=1e-4)
    with pytest.raises(InputError, match=words):
        assemble(
            beam("rod", (0.0, 0.0, 1.0), (1.0, 0.0, 1.0), section=rod, elements=2),
            contact("floor", tube("rod", 0.01), plane(), friction=(0.3, 0.1, 0.0)),
            gravity=(0.0, 0.0, -G),
        )  # fmt: skip
    names = [f"ball{k}" for k in range(70)]
    many = contact_group("all", [sphere(x, 0.1) for x in names], friction=(0.3, 0.01, 0.0), capacity=9)
    words = (
        "contact 'all': torsional and rolling friction do not work beside 'all', a group of more than 2000 "
        "pairs of free bodies with a capacity; leave the capacity out, or both coefficients"
    )
    with pytest.raises(InputError, match=words):
        assemble(
            *(body(x, mass=MASS, inertia=(BALL,) * 3) for x in names), many, gravity=(0.0, 0.0, -G),
            coordinates="absolute",
        )  # fmt: skip
    words = (
        r"scheme 'bathe' does not work with dry_friction_contact = \(0, 0, 0\) \(rolling resistance, "
        r"friction against spinning\); take schemes.moreau\(\)"
    )
    with pytest.raises(InputError, match=words):
        nsjax.simulate(*rolling_body(3, "joint"), schemes.bathe(), dt=1e-2, steps=1)
    many = contact_group("all", [sphere(x, 0.1) for x in names], friction=0.3, capacity=9)
    fast = contact("fast", sphere("ball0", 0.1), plane(), restitution=0.5, restitution_speed=1.0)
    words = (
        "contact 'fast': friction_sliding, restitution_speed and grain do not work beside 'all', a group "
        "of more than 2000 pairs of free bodies with a capacity; leave the capacity out, or these numbers"
    )
    with pytest.raises(InputError, match=words):
        assemble(
            *(body(x, mass=MASS, inertia=(BALL,) * 3) for x in names), many, fast, gravity=(0.0, 0.0, -G),
            coordinates="absolute",
        )  # fmt: skip


@pytest.mark.parametrize("coordinates", ["joint", pytest.param("absolute", marks=SLOW)])
def test_linear_motions(coordinates) -> None:
    """A disc on a spring does not move where its rolling resistance holds it, and swings without it."""
    parts = [
        body("wheel", mass=MASS, inertia=DISC),
        spring("coil", ("ground", (-2.0, RADIUS)), "wheel", stiffness=8.0, length=2.0),
    ]
    floor = contact("floor", sphere("wheel", RADIUS), plane(), friction=(2.0, 0.0, 0.05))
    problem = assemble(
        *parts, floor, gravity=G, start={"wheel": (0.0, RADIUS, 0.0)}, coordinates=coordinates
    )
    linear = nsjax.analysis.linearise(problem, inputs=[], outputs=[])
    assert np.max(np.abs(linear.A), initial=0.0) < 1e-12
    loose = nsjax.analysis.linearise(with_number(problem, "rolling", 0.0), inputs=[], outputs=[])
    rates = np.linalg.eigvals(loose.A)
    np.testing.assert_allclose(np.max(rates.imag), np.sqrt(8.0 / (MASS + DISC / RADIUS**2)), rtol=1e-9)
    turning = moving(problem, rolling_at(2, jnp.asarray(0.3)))
    words = (
        r"linearise: bounded row 'floor.roll' of contact 'floor' moves at -0.6, and its bound 0.05 depends "
        "on the normal force; give a state in which it rests, set its coefficient to zero, or leave"
    )
    with pytest.raises(InputError, match=words):
        nsjax.analysis.linearise(turning, inputs=[], outputs=[])
