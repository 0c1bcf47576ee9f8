"""Pictures of robots of files: their visual geometries and meshes, where their bodies are."""

from __future__ import annotations

import pathlib
import struct

import numpy as np
import pytest

from nsjax import InputError, plot
from nsjax import multibody as mb
from nsjax.motion import moved

pytest.importorskip("mujoco", reason="model files are read by mujoco (extra files)")

LINK = """<link name="{name}"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>{shapes}</link>"""

JOINT = """<joint name="pin" type="continuous"><parent link="base"/><child link="arm"/>
<origin xyz="0 0 1"/><axis xyz="0 1 0"/></joint>"""

BALL = '<collision><geometry><sphere radius="0.5"/></geometry></collision>'


def stl(path: pathlib.Path, corners: np.ndarray) -> None:
    """Writes triangles (m, 3, 3)."""
    kept = np.zeros(len(corners), [("normal", "<3f4"), ("corners", "<9f4"), ("more", "<u2")])
    kept["corners"] = corners.reshape(-1, 9)
    path.write_bytes(bytes(80) + struct.pack("<I", len(corners)) + kept.tobytes())


def robot(visual: str) -> str:
    base, arm = LINK.format(name="base", shapes=""), LINK.format(name="arm", shapes=visual + BALL)
    return f'<robot name="r">{base}{arm}{JOINT}</robot>'


def drawn(problem, name: str) -> np.ndarray:
    """Points of the only mesh of a body, in the world."""
    seen = moved(problem.system, problem.params, np.zeros(1), np.asarray(problem.state.q)[None])
    (found,) = (x for x in seen.shapes if (x.name, x.kind, x.role) == (name, "mesh", "body"))
    return found.world[0]


def test_a_mesh_of_a_urdf_is_where_its_link_is(tmp_path: pathlib.Path) -> None:
    """A tetrahedron that is open below, half as large, shifted and turned about z in the link, which turns
    about y by 0.4 rad, one metre above the ground.
    """
    corners = np.array([[0.0, 0.0, 0.6], [0.2, 0.0, 0.0], [0.0, 0.3, 0.0], [-0.1, -0.1, 0.0]])
    stl(tmp_path / "tip.stl", corners[[[0, 1, 2], [0, 2, 3], [0, 3, 1]]])
    visual = (
        '<visual><origin xyz="0.1 0 0.2" rpy="0 0 0.3"/><geometry>'
        '<mesh filename="package://r/tip.stl" scale="0.5 0.5 0.5"/></geometry></visual>'
    )
    (tmp_path / "r.urdf").write_text(robot(visual))
    problem = mb.read_urdf(tmp_path / "r.urdf").problem(start={"pin": 0.4})
    c, s = np.cos(0.3), np.sin(0.3)
    link = 0.5 * corners @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]).T + [0.1, 0.0, 0.2]
    c, s = np.cos(0.4), np.sin(0.4)
    world = link @ np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]).T + [0.0, 0.0, 1.0]
    found = drawn(problem, "arm")
    away = np.linalg.norm(found[:4, None] - world[None], axis=2)
    assert away.min(axis=0).max() < 1e-6  # numbers of 32 bits
    bar = found[4:] - [0.0, 0.0, 1.0]  # from the pin, which the mesh does not reach, with its round end
    assert np.linalg.norm(bar, axis=1).min() < 0.03


@pytest.mark.parametrize("name", ["missing.stl", "other.dae"])
def test_without_a_mesh_that_is_read_shapes_of_contacts_are_drawn(
    name: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "other.dae").write_text("<COLLADA/>")
    (tmp_path / "r.urdf").write_text(
        robot(f'<visual><geometry><mesh filename="{name}"/></geometry></visual>')
    )
    found = drawn(mb.read_urdf(tmp_path / "r.urdf").problem(), "arm")
    np.testing.assert_allclose(np.linalg.norm(found - [0.0, 0.0, 1.0], axis=1), 0.5, atol=1e-6)


def test_hidden_groups_of_mjcf_are_not_drawn_and_nothing_of_a_picture_is_simulated() -> None:
    """A body weighs by its ball (group 3), and is shown as a capsule of half length 0.3 along z."""
    text = """<mujoco><worldbody><body name="b" pos="0 0 1"><joint name="pin" axis="0 1 0"/>
    <geom group="3" size="0.1" mass="2"/>{}</body></worldbody></mujoco>"""
    shown = '<geom type="capsule" size="0.02 0.3" contype="0" conaffinity="0" mass="0"/>'
    plain, pictured = (mb.read_mjcf(text.format(x)).problem() for x in ("", shown))
    points = drawn(pictured, "b") - [0.0, 0.0, 1.0]
    np.testing.assert_allclose([points[:, 2].min(), points[:, 2].max()], [-0.32, 0.32], atol=1e-6)
    assert np.hypot(points[:, 0], points[:, 1]).max() == pytest.approx(0.02, abs=1e-6)
    assert mb.read_mjcf(text.format(shown))[0].numbers.shape == ()
    np.testing.assert_array_equal(
        pictured.system.force(0.0, pictured.state.q, pictured.state.v, pictured.params),
        plain.system.force(0.0, plain.state.q, plain.state.v, plain.params),
    )


def test_a_mesh_of_many_triangles_keeps_its_form() -> None:
    """A ball of 40,000 triangles: of 500, the points are within its largest cell of the sphere."""
    u, v = np.meshgrid(np.linspace(0.0, np.pi, 101), np.linspace(0.0, 2.0 * np.pi, 201), indexing="ij")
    points = np.stack([np.sin(u) * np.cos(v), np.sin(u) * np.sin(v), np.cos(u)], axis=-1).reshape(-1, 3)
    k = (201 * np.arange(100)[:, None] + np.arange(200)[None]).reshape(-1)
    faces = np.concatenate([np.stack([k, k + 1, k + 202], 1), np.stack([k, k + 202, k + 201], 1)])
    found = mb.mesh("ball", points, faces, most=500)
    assert 250 < len(found.faces) <= 500
    radii = np.linalg.norm(found.points, axis=1)
    assert 0.9 < radii.min() <= radii.max() < 1.0001
    corners = found.points[found.faces]
    area = (
        0.5
        * np.linalg.norm(
            np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
        ).sum()
    )
    assert area == pytest.approx(4.0 * np.pi, rel=0.1)  # a ball of 500 flat triangles, without holes
    assert mb.mesh("ball", points, faces, most=10**6).faces.shape == faces.shape


def test_meshes_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(InputError, match=r"mesh of 'a': points have shape \(1, 2\); give finite numbers"):
        mb.mesh("a", [[0.0, 1.0]], [[0, 0, 0]])
    with pytest.raises(InputError, match=r"mesh of 'a': faces have shape \(1, 3\); give triples \(m, 3\)"):
        mb.mesh("a", np.eye(3), [[0, 1, 3]])
    sheet = mb.mesh("a", np.eye(3), [[0, 1, 2]])
    with pytest.raises(
        InputError, match=r"shape = mesh\(\.\.\.\) of a body of the plane; a mesh is spatial"
    ):
        plot.still(mb.assemble(mb.body("a", mass=1.0, inertia=1.0, shape=sheet)))
