"""A floor for robots in URDF, contacts between their links left out, and what a URDF brings beside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import read_mjcf, read_urdf
from tests.multibody.files.oracle import quiet

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


def test_a_robot_falls_on_its_floor() -> None:
    file = quiet(read_urdf, ROBOT.format(""), free=True, floor=-0.4, friction=0.5, self_contact=False)
    assert [x.split("_")[:2] for x in names(file)] == [["floor", x] for x in "abc"]
    problem = file.problem()
    # three balls in a row fall flat by 0.3 m and stay
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, time=0.3, every=300)
    assert int(traj.status) == 0
    fallen = 0.5 * 9.81 * 0.3**2
    assert fallen > 0.3
    heights = [traj.body(x).position[-1, 2] for x in "abc"]
    np.testing.assert_allclose(heights, -0.3, atol=3e-3)  # half a step of the fall at 2.4 m/s
    flight = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, time=0.2, every=200)
    np.testing.assert_allclose(flight.body("b").position[-1, 2], -0.5 * 9.81 * 0.2**2, rtol=1e-9)


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
