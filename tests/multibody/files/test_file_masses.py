"""Moments of inertia that are no body's, and the medium in which bodies of a file move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

from nsjax.core.operators import prepared
from nsjax.multibody import LeftOutWarning, read_mjcf, read_urdf
from nsjax.multibody.files.model_source import nearest_moments
from tests.multibody.files.oracle import compared, quiet

LINKS = """<robot name="r"><link name="a"/>
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
        file = read_urdf(LINKS.format(0.01, 0.02, 0.05))
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
        file = read_urdf(LINKS.format(0.0, 0.0, 0.0))
    problem = file.problem()
    mass = np.asarray(problem.system.mass(problem.state.q, prepared(problem.system, problem.params)))
    plain = quiet(read_urdf, LINKS.format(1e-12, 1e-12, 1e-12)).problem()
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
