"""Floors, meshes, masses and media of files."""

from __future__ import annotations

import itertools
import pathlib
from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

import nsjax
from nsjax import schemes
from nsjax.core.operators import prepared
from nsjax.multibody import LeftOutWarning, read_mjcf, read_urdf
from nsjax.multibody.files.model_source import nearest_moments
from tests.multibody.files.oracle import compared, quiet

# A floor for robots in URDF, contacts between their links left out, and what a URDF brings beside.
pytest.importorskip("mujoco")

BALL = "<collision><origin xyz='0 0 0'/><geometry><sphere radius='0.1'/></geometry></collision>"
MASS = (
    "<inertial><mass value='1'/><inertia ixx='.01' iyy='.01' izz='.01' ixy='0' ixz='0' iyz='0'/></inertial>"
)
HINGE = (
    "<joint name='j{0}' type='revolute'><parent link='{0}'/><child link='{1}'/><origin xyz='0.25 0 0'/>"
    "<axis xyz='0 1 0'/><limit lower='-1' upper='1' effort='1' velocity='1'/></joint>"
)
LINKS = "".join(f"<link name='{x}'>{MASS}{BALL}</link>" for x in "abc")
MOTOR = (
    "<transmission name='t'><type>simple</type><joint name='ja'/><actuator name='m'>"
    "<mechanicalReduction>1</mechanicalReduction></actuator></transmission>"
)
ROBOT = f"<robot name='r'>{LINKS}{HINGE.format('a', 'b')}{HINGE.format('b', 'c')}{{0}}</robot>"


def names(file: Any) -> list[str]:
    return [part.name for part in file if part.kind == "contact"]


@pytest.mark.slow
def test_a_robot_falls_on_its_floor() -> None:
    file = quiet(read_urdf, ROBOT.format(""), free=True, floor=-0.4, friction=0.5, self_contact=False)
    assert [x.split("_")[:2] for x in names(file)] == [["floor", x] for x in "abc"]
    problem = file.problem()
    # three balls in a row fall flat by 0.3 m and stay
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, time=0.3, every=100)
    assert int(traj.status) == 0
    fallen = 0.5 * 9.81 * 0.3**2
    assert fallen > 0.3
    heights = [traj.body(x).position[-1, 2] for x in "abc"]
    np.testing.assert_allclose(heights, -0.3, atol=3e-3)  # half a step of the fall at 2.4 m/s
    np.testing.assert_allclose(traj.body("b").position[2, 2], -0.5 * 9.81 * 0.2**2, rtol=1e-9)


def test_links_meet_or_not() -> None:
    # those that hang on each other never meet, also where the ground holds the first
    for free in (True, False):
        file = quiet(read_urdf, ROBOT.format(""), free=free, self_contact=True)
        assert names(file) == ["a_sphere_c_sphere"]
    file = quiet(read_urdf, ROBOT.format(""))
    assert names(file) == []
    assert "contacts of links with each other (1 pairs): self_contact=True makes them" in file.left_out
    file = quiet(read_urdf, ROBOT.format(""), self_contact=False)
    assert not any("self_contact" in x for x in [*names(file), *file.left_out])
    text = (
        "<mujoco><worldbody><geom name='flat' type='plane' size='1 1 1'/>"
        "<body name='a'><freejoint/><geom name='ga' size='.1'/><body name='b' pos='.3 0 0'><joint/>"
        "<geom name='gb' size='.1'/><body name='c' pos='.3 0 0'><joint/><geom name='gc' size='.1'/></body>"
        "</body></body><body name='box' pos='2 0 0'><freejoint/><geom name='gbox' size='.1'/></body>"
        "</worldbody>{0}</mujoco>"
    )
    assert "ga_gc" in names(quiet(read_mjcf, text.format("")))
    left = names(quiet(read_mjcf, text.format(""), self_contact=False))
    assert left == [f"flat_{x}" for x in ("ga", "gb", "gc", "gbox")] + [
        f"{x}_gbox" for x in ("ga", "gb", "gc")
    ]
    named = text.format("<contact><pair geom1='ga' geom2='gc'/></contact>")
    assert "ga_gc" in names(quiet(read_mjcf, named, self_contact=False))


def test_what_cannot_move_towards_each_other_does_not_meet() -> None:
    """Geometries of one body, and of bodies moved by mocap and the world, also where they overlap."""
    file = quiet(
        read_mjcf,
        "<mujoco><worldbody><geom name='flat' type='plane' size='1 1 1'/>"
        "<body name='hand' mocap='true'><geom name='palm' type='box' size='.1 .1 .1'/></body>"
        "<body name='a' pos='0 0 1'><freejoint/><geom name='one' size='.1'/>"
        "<geom name='two' size='.1' pos='.1 0 0'/></body></worldbody>"
        "<contact><pair geom1='one' geom2='two'/></contact></mujoco>",
    )
    assert names(file) == ["flat_one", "flat_two", "palm_one", "palm_two"]


def test_elements_inside_of_others_are_not_told() -> None:
    said = quiet(read_urdf, ROBOT.format(MOTOR + MOTOR.replace("'t'", "'u'"))).left_out
    assert sum("is no element of URDF" in x for x in said) == 1
    assert any(x.startswith("<transmission> (2 of them)") for x in said)


TETRAHEDRON = "v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("package://arm/meshes/tip.obj", True),  # the folder around has the name of the package
        ("package://arm_description/meshes/tip.obj", True),  # it has another name
        ("file://{0}/arm/meshes/tip.obj", True),
        ("package://arm/meshes/top.obj", False),
    ],
)
def test_meshes_of_packages_are_found(tmp_path: Any, name: str, there: bool) -> None:
    for folder in ("urdf", "meshes"):
        (tmp_path / "arm" / folder).mkdir(parents=True)
    (tmp_path / "arm" / "meshes" / "tip.obj").write_text(TETRAHEDRON)
    mesh = f"<collision><geometry><mesh filename='{name.format(tmp_path)}'/></geometry></collision>"
    text = f"<robot name='r'><link name='a'>{MASS}{mesh}</link></robot>"
    (tmp_path / "arm" / "urdf" / "arm.urdf").write_text(text)
    file = quiet(read_urdf, str(tmp_path / "arm" / "urdf" / "arm.urdf"), free=True, floor=-1.0)
    assert bool(names(file)) == there
    assert any("do not exist" in x for x in file.left_out) != there
    if there:
        found = next(part for part in file if part.kind == "contact").numbers
        vertices = np.sort(
            np.asarray(
                found.second.vertices if hasattr(found.second, "vertices") else found.first.vertices
            ),
            axis=0,
        )
        assert np.ptp(vertices, axis=0) == pytest.approx(3 * [0.1])


# Meshes of model files that are ASCII, of other formats, or without volume.
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


# Moments of inertia that are no body's, and the medium in which bodies of a file move.
MASSLESS = """<robot name="r"><link name="a"/>
<link name="b"><inertial><origin xyz="0.1 0 0"/><mass value="1.5"/>
  <inertia ixx="{}" iyy="{}" izz="{}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="c"><inertial><origin xyz="0.2 0.1 0"/><mass value="0.7"/>
  <inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0" iyz="0"/></inertial></link>
<joint name="one" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>
<joint name="two" type="continuous"><parent link="b"/><child link="c"/><origin xyz="0.3 0 0"/>
<axis xyz="0 1 0"/></joint></robot>"""


def test_moments_of_no_body() -> None:
    """The nearest three numbers of which none exceeds the sum of the others: by the closed form."""
    with pytest.warns(
        LeftOutWarning, match=r"of no body .* 'b' \(0.05 0.02 0.01 to 0.04333 0.02667 0.01667\)"
    ):
        file = read_urdf(MASSLESS.format(0.01, 0.02, 0.05))
    moments = np.linalg.eigvalsh(np.asarray(part_of(file, "b").numbers.inertia) * np.eye(3))
    assert np.allclose(moments, np.array([0.05, 0.08, 0.13]) / 3.0, rtol=1e-12)
    assert abs(moments[2] - moments[0] - moments[1]) < 1e-15
    axes = np.asarray(part_of(file, "b").numbers.inertia) * np.eye(3)
    assert np.allclose(np.diag(axes), np.array([0.05, 0.08, 0.13]) / 3.0, rtol=1e-12)


def test_nearest_moments() -> None:
    """Against the nearest sum of the moments of three rods with masses that are not negative."""
    for drawn in np.random.default_rng(5).normal(size=(200, 3)):
        wanted = (1.0 - np.eye(3)) @ nnls(1.0 - np.eye(3), drawn)[0]
        assert np.allclose(nearest_moments(drawn), wanted, atol=1e-14)  # rounding of numbers of size one


TURNED = """<robot name="r"><link name="a"/>
<link name="b"><inertial><origin xyz="0.1 0 0" rpy="0.3 0.5 -0.7"/><mass value="1.5"/>
  <inertia ixx="{}" iyy="{}" izz="{}" ixy="{}" ixz="{}" iyz="{}"/></inertial></link>
<joint name="one" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>
</robot>"""


@pytest.mark.parametrize(
    ("given", "nearest", "words"),
    [
        ((0.2, 0.2, 0.0, 0.0, 0.0, 0.0), np.diag([0.2, 0.2, 0.0]), None),
        ((0.3,) * 6, np.full((3, 3), 0.1) + 0.3 * np.eye(3), r"'b' \(0.9 .* to 0.6 0.3 0.3\)"),
        ((0.01, 0.0, 0.0, 0.05, 0.0, 0.0), None, "'b'"),
    ],
    ids=["rod", "one number for all six", "negative"],
)
def test_moments_that_are_not_positive(given: tuple[float, ...], nearest: Any, words: str | None) -> None:
    """A thin rod is read as it is, other matrices as the nearest possible one; both in turned axes."""
    if words is None:
        file = quiet(read_urdf, TURNED.format(*given))
        assert not any("moments" in said for said in file.left_out)
    else:
        with pytest.warns(LeftOutWarning, match=f"moments of inertia of no body .*{words}"):
            file = read_urdf(TURNED.format(*given))
    found = np.asarray(part_of(file, "b").numbers.inertia)
    if nearest is None:
        a, b, c, ab, ac, bc = given
        values, axes = np.linalg.eigh(np.array([[a, ab, ac], [ab, b, bc], [ac, bc, c]]))
        nearest = axes @ np.diag((1.0 - np.eye(3)) @ nnls(1.0 - np.eye(3), values)[0]) @ axes.T
    turn = Rotation.from_euler("xyz", (0.3, 0.5, -0.7)).as_matrix()
    assert np.allclose(found, turn @ nearest @ turn.T, atol=1e-14)
    file.problem()


@pytest.mark.slow
def test_links_without_moments() -> None:
    """They are read so, and move as a point mass does."""
    with pytest.warns(LeftOutWarning, match="without moments of inertia are read as point masses: 'b'"):
        file = read_urdf(MASSLESS.format(0.0, 0.0, 0.0))
    problem = file.problem()
    mass = np.asarray(problem.system.mass(problem.state.q, prepared(problem.system, problem.params)))
    plain = quiet(read_urdf, MASSLESS.format(1e-12, 1e-12, 1e-12)).problem()
    other = np.asarray(plain.system.mass(plain.state.q, prepared(plain.system, plain.params)))
    assert np.allclose(mass, other, rtol=1e-9)


FLANGE = """<robot name="r"><link name="a"/>
<link name="b"><inertial><origin xyz="0.1 0 0"/><mass value="1.5"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="c"><inertial><mass value="0"/>
  <inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0" iyz="0"/></inertial></link>
<link name="d"><inertial><mass value="0"/>
  <inertia ixx="0.05" iyy="0.06" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="one" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>
<joint name="two" type="fixed"><parent link="b"/><child link="c"/>
  <origin xyz="0.3 0 0" rpy="0.3 0.5 -0.7"/></joint>
<joint name="three" type="fixed"><parent link="c"/><child link="d"/>
  <origin xyz="0 0.2 0" rpy="0.2 -0.4 0.1"/></joint></robot>"""


def test_moments_of_links_without_mass() -> None:
    """They turn with the link that they are fixed to, wherever they stand."""
    found = quiet(read_urdf, FLANGE)
    inertia = np.asarray(part_of(found, "b").numbers.inertia)
    turns = [
        Rotation.from_euler("xyz", angles).as_matrix() for angles in ((0.3, 0.5, -0.7), (0.2, -0.4, 0.1))
    ]
    own = np.array([[0.02, 0.001, 0.0], [0.001, 0.03, 0.0], [0.0, 0.0, 0.04]])
    last = turns[0] @ turns[1]
    wanted = 0.1 * np.eye(3) + turns[0] @ own @ turns[0].T + last @ np.diag([0.05, 0.06, 0.03]) @ last.T
    assert np.allclose(inertia, wanted, atol=1e-15)  # sums of products of numbers below one
    assert compared(FLANGE, 4, reader=read_urdf)["accelerations"] < 1e-12


def part_of(file: Any, name: str) -> Any:
    return next(part for part in file if part.name == name)


MEDIUM = """<mujoco><option density="900" viscosity="0.4" wind="0.3 -0.2 0.5"{}/><worldbody>
<body name="held" pos="0 0 1"><geom type="box" size="0.1 0.2 0.3"/></body>
<body name="a" pos="1 0 1" euler="20 30 40"><freejoint/>
  <geom type="box" size="0.3 0.1 0.05" pos="0.1 0.05 0"/>
  <geom type="sphere" size="0.1" pos="-0.2 0 0.1"/>
  <body name="fin" pos="0.3 0 0"><joint axis="0 0 1"/>
    <geom type="capsule" fromto="0 0 0 0.2 0.1 0" size="0.03"/>
  </body></body>
<body name="shell" pos="0 2 1"><freejoint/>
  <geom type="ellipsoid" size="0.1 0.2 0.3"{}/></body></worldbody></mujoco>"""


def test_accelerations_in_a_medium() -> None:
    """Of bodies that fly, turn and swing in water with a current, against the library, to rounding."""
    assert compared(MEDIUM.format("", ""), states=6)["accelerations"] < 1e-11
    names = {part.name for part in quiet(read_mjcf, MEDIUM.format("", ""))}
    assert {"a_medium", "fin_medium", "shell_medium"} <= names
    assert "held_medium" not in names


ELLIPSOIDS = """<mujoco><option density="900" viscosity="0.4" wind="0.3 -0.2 0.5"/><worldbody>
<body name="a" pos="1 0 1" euler="20 30 40"><freejoint/>
  <geom type="box" size="0.3 0.1 0.05" pos="0.1 0.05 0" euler="5 10 15" fluidshape="ellipsoid"/>
  <geom type="sphere" size="0.1" pos="-0.2 0 0.1" fluidshape="ellipsoid" fluidcoef="0.4 0.3 1 0.8 0.6"/>
  <geom type="box" size="0.1 0.1 0.1" pos="0 0 0.2"/>
  <body name="fin" pos="0.3 0 0"><joint axis="0 0 1"/>
    <geom type="capsule" fromto="0 0 0 0.2 0.1 0" size="0.03" fluidshape="ellipsoid"/></body>
  <body name="tail" pos="-0.3 0 0"><joint axis="0 1 0"/>
    <geom type="cylinder" fromto="0 0 0 0 0.1 0.1" size="0.02"/></body></body>
<body name="flake" pos="0 2 1"><freejoint/>
  <geom type="ellipsoid" size="0.003 0.002 0.001" fluidshape="ellipsoid"/></body></worldbody></mujoco>"""


def test_accelerations_of_ellipsoids_in_a_medium() -> None:
    """Lift, drag and added mass of all shapes, beside a body with the model of a box."""
    assert compared(ELLIPSOIDS, states=6)["accelerations"] < 1e-8  # the flake weighs 25 mg
    kinds = {part.name: part.kind for part in quiet(read_mjcf, ELLIPSOIDS, contact=False)}
    found = {name: kind for name, kind in kinds.items() if "medium" in name}
    assert found == {
        "a_medium0": "ellipsoid_drag", "a_medium1": "ellipsoid_drag", "fin_medium": "ellipsoid_drag",
        "tail_medium": "fluid_drag", "flake_medium": "ellipsoid_drag",
    }  # fmt: skip


def test_a_medium_that_is_switched_off() -> None:
    still = quiet(
        read_mjcf,
        MEDIUM.format(
            "><flag spring='disable' damper='disable'/></option><option", " fluidshape='ellipsoid'"
        ),
    )
    assert not any(part.kind in ("fluid_drag", "ellipsoid_drag") for part in still)
