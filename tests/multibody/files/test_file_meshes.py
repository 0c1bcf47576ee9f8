"""Meshes of model files that are ASCII, of other formats, or without volume."""

from __future__ import annotations

import itertools
import pathlib

import numpy as np
import pytest

from nsjax.multibody import LeftOutWarning, read_mjcf, read_urdf

CORNERS = np.array(list(itertools.product((0.0, 0.2), (0.0, 0.3), (0.0, 0.5))))
FACES = [
    (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (0, 2, 6),
    (0, 6, 4), (1, 5, 7), (1, 7, 3),
]  # fmt: skip
"""Triangles of a block, whose normals point outwards."""


def ascii_stl(points: np.ndarray, faces: list[tuple[int, int, int]]) -> str:
    lines = ["solid block"]
    for face in faces:
        corners = "".join(f"vertex {points[k][0]} {points[k][1]:.3e} {points[k][2]}\n" for k in face)
        lines.append(f"facet normal 0 0 0\nouter loop\n{corners}endloop\nendfacet")
    return "\n".join([*lines, "endsolid block"])


MESHED = """<mujoco><compiler meshdir="."/><asset><mesh name="m" file="{}" scale="1 1 2"/></asset>
<worldbody><geom type="plane" size="1 1 1"/>
<body name="a" pos="0 0 1"><freejoint/>{}<geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""

WEIGHT = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'


def test_a_mesh_in_ascii(tmp_path: pathlib.Path) -> None:
    """It gives its body the mass and the corners of the block."""
    (tmp_path / "block.stl").write_text(ascii_stl(CORNERS, FACES))
    path = tmp_path / "model.xml"
    path.write_text(MESHED.format("block.stl", ""))
    model = read_mjcf(path)
    body = next(part for part in model if part.name == "a")
    assert float(body.numbers.mass) == pytest.approx(1000.0 * 0.2 * 0.3 * 1.0, rel=1e-6)  # single precision
    assert np.allclose(body.numbers.com, [0.1, 0.15, 0.5], atol=1e-6)
    met = next(part for part in model if part.kind == "contact")
    hull = next(x for x in (met.numbers.first, met.numbers.second) if hasattr(x, "vertices"))
    wanted = CORNERS * [1.0, 1.0, 2.0]
    near = np.min(np.linalg.norm(np.asarray(hull.vertices)[:, None] - wanted, axis=-1), axis=0)
    assert np.max(near) < 1e-6


def test_a_mesh_of_another_format(tmp_path: pathlib.Path) -> None:
    """It is left out where the body has an inertial, as a missing one is."""
    (tmp_path / "block.dae").write_text("<COLLADA/>")
    path = tmp_path / "model.xml"
    path.write_text(MESHED.format("block.dae", WEIGHT))
    with pytest.warns(
        LeftOutWarning, match="meshes that are neither STL, OBJ nor MSH are left out, with the shapes that "
        "use them: block.dae",
    ):  # fmt: skip
        model = read_mjcf(path)
    assert not any(part.kind == "contact" for part in model)


@pytest.mark.parametrize("flat", [False, True])
def test_a_mesh_without_volume(tmp_path: pathlib.Path, flat: bool) -> None:
    """Faces of a block that look inwards, and a sheet: where the link has an inertial, both are read."""
    points = CORNERS * ([1.0, 1.0, 0.0] if flat else [1.0, 1.0, 1.0])
    faces = [(0, 2, 6), (0, 6, 4)] if flat else [(a, c, b) for a, b, c in FACES]
    text = "".join(f"v {x} {y} {z}\n" for x, y, z in points)
    text += "".join(f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in faces)
    (tmp_path / "block.obj").write_text(text)
    path = tmp_path / "model.urdf"
    path.write_text(
        """<robot name="r"><link name="a"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
        <collision><geometry><mesh filename="package://robot/block.obj"/></geometry></collision></link>
        </robot>"""
    )
    if flat:
        with pytest.warns(LeftOutWarning, match="mesh 'block' is flat and is left out"):
            model = read_urdf(path, free=True, floor=0.0)
    else:
        model = read_urdf(path, free=True, floor=0.0)
    assert any(part.kind == "contact" for part in model) != flat
