"""Pictures of mechanisms: shapes where their bodies are, contacts where gaps say."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import multibody as mb
from nsjax.core.operators import prepared
from nsjax.motion import Motion, motion
from tests.plot.coasting import coasting

EVEN = (0.01, 0.01, 0.01)
TURN = (0.3, -0.2, 0.5)
OFF = (0.0, 0.0, 0.02)


@pytest.fixture(scope="module")
def zoo():
    """One of every shape of space, and a pendulum of two bodies with a limit."""
    return mb.assemble(
        mb.body("globe", mass=1.0, inertia=EVEN),
        mb.body("pill", mass=1.0, inertia=EVEN),
        mb.body("can", mass=1.0, inertia=EVEN),
        mb.body("brick", mass=1.0, inertia=EVEN),
        mb.body("lump", mass=2.0, inertia=(0.01, 0.06, 0.06)),
        mb.body("upper", mass=2.0, inertia=(0.01, 0.06, 0.06), com=0.3),
        mb.body("lower", mass=1.0, inertia=np.diag([0.005, 0.03, 0.03]), com=0.25),
        mb.ball("shoulder", "ground", "upper", at=(0.0, 1.0, 0.8)),
        mb.hinge("elbow", "upper", "lower", at=0.6, axis=(0.0, 1.0, 0.0), limits=(-2.5, 0.1)),
        mb.contact("tip", mb.point("lower", at=0.5), mb.plane(), friction=0.3),
        mb.contact("f1", mb.sphere("globe", 0.1, at=OFF), mb.plane(), friction=0.3),
        mb.contact("f2", mb.capsule("pill", 0.08, 0.15), mb.plane(at=(0.0, 0.0, -0.5))),
        mb.contact("f3", mb.cylinder("can", 0.1, 0.15, axis=(0.0, 0.0, 1.0)), mb.plane()),
        mb.contact("f4", mb.box("brick", 0.15, 0.1, 0.05, turned=TURN), mb.plane(), friction=0.3),
        mb.contact("hit", mb.sphere("globe", 0.1, at=OFF), mb.box("brick", 0.15, 0.1, 0.05, turned=TURN)),
        mb.spring("coil", ("ground", (0.0, 0.5, 1.2)), "globe", stiffness=60.0, length=0.4),
        gravity=9.81,
        start={
            "globe": (((0.0, 0.5, 0.6), TURN), ((0.1, 0.0, -0.3), (0.3, 0.5, 1.0))),
            "pill": (((0.5, 0.0, 0.4), TURN), ((0.2, 0.1, 0.4), (0.0, 0.5, 1.0))),
            "can": (((-0.5, 0.0, 0.4), TURN), ((0.3, 0.0, -0.2), (1.0, 0.5, 0.2))),
            "brick": (((0.0, -0.5, 0.4), TURN), ((0.2, 0.3, -0.2), (1.0, -0.5, 0.2))),
            "lump": (((1.0, 0.5, 0.6), TURN), ((0.1, 0.0, -0.3), (0.3, 0.5, 1.0))),
            "shoulder": (TURN, (0.5, 1.0, 0.2)), "elbow": (-0.5, 1.0),
        },
    )  # fmt: skip


@pytest.fixture(scope="module")
def seen(zoo) -> Motion:
    return motion(zoo, coasting(zoo, rows=4, step=0.1))


def shape(seen: Motion, name: str, kind: str = "mesh"):
    """The first one of a name: the link of a body, if it has one, comes after its shapes."""
    found = [x for x in seen.shapes if (x.name, x.kind) == (name, kind)]
    assert found, [(x.name, x.kind) for x in seen.shapes]
    return found[0]


@pytest.mark.slow
def test_shapes_lie_on_their_surfaces(zoo, seen) -> None:
    """By the distance of every drawn point from what the shape is, in the axes of the body."""
    q = coasting(zoo, rows=4, step=0.1).q[-1]
    s, names = zoo.system, ("globe", "pill", "can", "brick")

    def frames(q, p):
        scene = s.parts.scene(0.0, q, None, prepared(s, p))
        return {name: (scene.position(name), scene.rotation(name)) for name in names}

    at = jax.tree.map(np.asarray, jax.jit(frames)(q, zoo.params))

    def local(name):
        return (shape(seen, name).world[-1] - at[name][0]) @ at[name][1]

    globe = np.linalg.norm(local("globe") - OFF, axis=1)
    np.testing.assert_allclose(globe, 0.1, rtol=1e-12)
    x = local("pill")
    across = np.linalg.norm(
        x - np.stack([np.clip(x[:, 0], -0.15, 0.15), *np.zeros((2, len(x)))], 1), axis=1
    )
    np.testing.assert_allclose(across, 0.08, rtol=1e-12)
    x = local("can")
    radial = np.hypot(x[:, 0], x[:, 1])
    rim = np.isclose(radial, 0.1)
    assert np.all(rim | (radial < 1e-12))
    np.testing.assert_allclose(np.abs(x[:, 2]), 0.15, rtol=1e-12)
    edges = np.linalg.norm(local("brick"), axis=1)
    np.testing.assert_allclose(edges, np.linalg.norm([0.15, 0.1, 0.05]), rtol=1e-12)


@pytest.mark.slow
def test_an_inertia_is_drawn_as_the_box_that_has_it(seen) -> None:
    """2 kg with moments 0.01, 0.06, 0.06 kg m^2: edges from J1 = m (b^2 + c^2) / 12 and so on."""
    points = shape(seen, "lump").world[0]
    a, b, c = (np.linalg.norm(points[0] - points[k]) for k in (4, 2, 1))
    moments = 2.0 / 12.0 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    np.testing.assert_allclose(moments, [0.01, 0.06, 0.06], rtol=1e-9)


def test_contacts_move_as_gaps_and_slips_say(zoo) -> None:
    """Of material points (the tip and the corners); limits of joints have no place."""
    s, q, v = zoo.system, jnp.asarray(zoo.state.q), jnp.asarray(zoo.state.v)

    def rates(p):
        p = prepared(s, p)
        along = lambda x: s.retract(q, x * v)  # noqa: E731
        here = s.shapes(0.0, q, p).contacts
        _, moved = jax.jvp(lambda x: s.shapes(0.0, along(x), p).contacts.points, (0.0,), (1.0,))
        _, opened = jax.jvp(lambda x: s.gap(0.0, along(x), p), (0.0,), (1.0,))
        across = jnp.sum(here.tangents * moved[:, None], -1)
        return jnp.sum(here.normals * moved, -1), opened, across, s.slip(0.0, q, v, p)

    up, opened, across, slip = jax.jit(rates)(zoo.params)
    names = s.labels.contacts
    some = [k for k, name in enumerate(names) if name == "tip" or name.startswith("f4")]
    assert len(some) == 9
    np.testing.assert_allclose(up[some,], opened[some,], atol=1e-12)
    np.testing.assert_allclose(across[some,], slip[some,], atol=1e-12)
    limits = [k for k, name in enumerate(names) if name.startswith("elbow")]
    assert np.isnan(up[limits,]).all()


def test_the_plane_knows_outlines_walls_and_lines() -> None:
    problem = mb.assemble(
        mb.body("crank", mass=0.04, inertia=7e-5, com=0.0765), mb.body("slider", mass=0.08, inertia=3e-6),
        mb.body("wheel", mass=1.0, inertia=0.02),
        mb.hinge("bearing", "ground", "crank"), mb.hinge("pin", "crank", "slider", at=0.153),
        mb.contact("guide", mb.corners("slider", 0.05, 0.025), mb.walls(-0.3, 0.3), friction=0.1),
        mb.contact("dots", mb.points("wheel", [[0.1, 0.0], [-0.1, 0.0]]), mb.plane(), friction=0.1),
        gravity=9.81, start={"crank": (0.5, 1.0), "wheel": ((0.0, 0.5, 0.2), (1.0, 0.0, 3.0))},
    )  # fmt: skip
    seen = motion(problem, coasting(problem, push=1e-3))
    pin = 0.153 * np.array([np.cos(0.5), np.sin(0.5)])
    crank, along = shape(seen, "crank", "area").world[0], pin / 0.153
    ends, wide = crank @ along, crank @ [-along[1], along[0]]
    thick = 0.5 * np.ptp(wide)
    assert 0.0 < thick < 0.02  # a bar, round at both ends
    np.testing.assert_allclose([ends.min(), ends.max()], [-thick, 0.153 + thick], atol=1e-3 * thick)
    middle = shape(seen, "slider", "area").world[0][:4].mean(axis=0)
    np.testing.assert_allclose(middle, pin, atol=1e-12)
    for name, height in (("guide lower", -0.3), ("guide upper", 0.3)):
        np.testing.assert_allclose(shape(seen, name, "line").world[0][:, 1], height, atol=1e-12)
    rim = shape(seen, "wheel", "area").world[0] - [0.0, 0.5]
    assert np.linalg.norm(rim[0]) == pytest.approx(np.sqrt(0.02))  # radius of gyration
    sizes = np.linalg.norm(seen.forces[1:], axis=-1)
    np.testing.assert_allclose(sizes, 1.0, rtol=1e-12)


@pytest.mark.parametrize(("limits", "drawn"), [((0.2, 0.8), (0.55, 0.75)), ((-0.8, -0.2), (0.75, 0.95))])
def test_stops_on_one_side_are_a_tube_and_a_rod(
    limits: tuple[float, float], drawn: tuple[float, float]
) -> None:
    """The tube ends at the nearer stop, not at the farther one, which may lie below the floor. Between
    stops on both sides the frame reaches from one to the other.
    """
    place = 0.5 if limits[0] > 0.0 else -0.5
    for given, ends in ((limits, drawn), ((-0.6, 0.8), (-0.05, 1.35))):
        problem = mb.assemble(
            mb.body("trunk", mass=3.0, inertia=0.1), mb.slide("guide", "ground", "trunk", axis=(0.0, 1.0)),
            mb.body("leg", mass=0.5, inertia=0.01),
            mb.slide("thigh", "trunk", "leg", axis=(0.0, -1.0), limits=given),
            start={"trunk": 0.75, "thigh": place},
        )  # fmt: skip
        seen = motion(problem, coasting(problem, rows=2, step=1e-6))
        points = shape(seen, "trunk", "area").world[0]
        thick = np.ptp(points[:, 0])  # of the symbol, which is as long beyond the ends
        assert points[:, 1].min() == pytest.approx(ends[0], abs=thick)
        assert points[:, 1].max() == pytest.approx(ends[1], abs=thick)
        rod = shape(seen, "leg", "line").world[0]
        np.testing.assert_allclose(rod[-1], [0.0, 0.75 - place], atol=1e-6)
        near = 0.75 - min(limits, key=abs) if given == limits else 0.75 - place
        np.testing.assert_allclose(rod[0], [0.0, near], atol=1e-6)
