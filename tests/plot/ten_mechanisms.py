"""Ten mechanisms of different kinds, whose pictures are looked at and tested."""

from __future__ import annotations

import pathlib
import textwrap

import numpy as np

from nsjax import Problem
from nsjax import multibody as mb


def four_bar() -> Problem:
    """Crank, coupler and rocker; the rocker is held by a bearing with clearance."""
    return mb.assemble(
        mb.body("crank", mass=0.2, inertia=2e-4, com=0.05),
        mb.body("coupler", mass=0.5, inertia=4e-3, com=0.13),
        mb.body("rocker", mass=0.4, inertia=3e-3, com=0.1),
        mb.hinge("motor_pin", "ground", "crank"),
        mb.hinge("pin", "crank", "coupler", at=0.1),
        mb.hinge("ground_pin", "ground", "rocker", at=(0.3, 0.0)),
        mb.contact("bearing", mb.sphere("rocker", 0.0099, at=0.2), mb.hole("coupler", 0.01, at=0.26)),
        mb.actuator("drive", "motor_pin", law=lambda t, x, rate, own: 0.1 - 0.1 * rate),
        gravity=9.81, start={"crank": 1.2, "coupler": 0.4162, "rocker": 1.7009},
    )  # fmt: skip


def slider_crank() -> Problem:
    """A slider with clearance between two walls."""
    return mb.assemble(
        mb.body("crank", mass=0.04, inertia=7e-5, com=0.0765),
        mb.body("rod", mass=0.038, inertia=5.9e-4, com=0.153),
        mb.body("slider", mass=0.08, inertia=3e-6),
        mb.hinge("bearing", "ground", "crank"), mb.hinge("crank_pin", "crank", "rod", at=0.153),
        mb.hinge("rod_pin", "rod", "slider", at=0.306),
        mb.contact("guide", mb.corners("slider", 0.05, 0.025), mb.walls(-0.026, 0.026), friction=0.01),
        mb.spring("back", ("ground", (0.6, 0.0)), "slider", stiffness=20.0, length=0.1),
        gravity=9.81, start={"crank": 0.9, "rod": -0.4, "slider": 0.0},
    )  # fmt: skip


def impact_damper() -> Problem:
    """A mass on a spring; a smaller mass moves in it between two stops."""
    return mb.assemble(
        mb.body("table", mass=1.0), mb.body("ball", mass=0.1),
        mb.slide("rail", "ground", "table"),
        mb.slide("groove", "table", "ball", limits=(-0.02, 0.02), restitution=0.6),
        mb.joint_spring("suspension", "rail", stiffness=100.0, damping=0.4),
        start={"rail": (0.01, 0.0), "groove": 0.012},
    )  # fmt: skip


def geared_pendulum() -> Problem:
    """A pendulum with a torsion spring and a stop, whose pinion drives a wheel."""
    return mb.assemble(
        mb.body("pendulum", mass=1.0, inertia=0.02, com=0.25), mb.body("wheel", mass=0.3, inertia=1e-3),
        mb.hinge("pivot", "ground", "pendulum", limits=(-2.2, 0.3), restitution=0.4),
        mb.hinge("shaft", "ground", "wheel", at=(0.18, 0.0)),
        mb.gear("teeth", "shaft", "pivot", ratio=-2.0),
        mb.joint_spring("torsion", "pivot", stiffness=1.0, damping=0.05),
        gravity=9.81, start={"pendulum": -1.0},
    )  # fmt: skip


def pulley() -> Problem:
    """A rope over a pulley between two weights, one on a damper; and a belt between two wheels."""
    up = (0.0, 1.0)
    return mb.assemble(
        mb.body("left", mass=2.0), mb.body("right", mass=1.0),
        mb.slide("A", "ground", "left", at=(0.0, 0.0), axis=up),
        mb.slide("B", "ground", "right", at=(0.8, 0.0), axis=up),
        mb.tendon("rope", "left", ("ground", (0.1, 1.0)), ("ground", (0.7, 1.0)), "right",
                  stiffness=1e4, damping=10.0, length=1.6),
        mb.spring("dashpot", ("ground", (0.0, -0.7)), "left", damping=5.0),
        mb.body("small", mass=0.1, inertia=1e-4), mb.body("large", mass=0.5, inertia=1e-3),
        mb.hinge("s", "ground", "small", at=(1.2, 0.0)), mb.hinge("l", "ground", "large", at=(1.9, 0.1)),
        mb.gear("belt", "s", "l", ratio=2.0),
        gravity=9.81, start={"A": 0.1, "B": -0.1},
    )  # fmt: skip


ARM = """
<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0 0 0.2"/><mass value="2"/>
    <inertia ixx="0.03" iyy="0.03" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0 0 0.15"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0 0 0.3"/><geometry><sphere radius="0.04"/></geometry></collision></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0 0.1"/><axis xyz="0 1 0"/><limit lower="-1.5" upper="1.5" effort="10" /></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/>
    <origin xyz="0 0 0.4"/><axis xyz="0 1 0"/></joint>
</robot>
"""


def urdf_arm(folder: pathlib.Path) -> Problem:
    """An arm of two links from a URDF."""
    path = folder / "arm.urdf"
    path.write_text(ARM)
    return mb.assemble(*mb.read_urdf(path), gravity=9.81, start={"shoulder": 0.6, "elbow": 1.2})


WALKER = """
<mujoco><worldbody>
  <geom name="floor" type="plane" size="2 2 0.1"/>
  <body name="torso" pos="0 0 0.62"><freejoint/>
    <geom name="trunk" type="box" size="0.25 0.12 0.06" mass="5"/>
    <body name="thigh" pos="0.2 0 0"><joint name="hip" axis="0 1 0" range="-60 60"/>
      <geom type="capsule" fromto="0 0 0 -0.1 0 -0.28" size="0.04" mass="1"/>
      <body name="shin" pos="-0.1 0 -0.28"><joint name="knee" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.1 0 -0.28" size="0.03" mass="0.5"/></body></body>
    <body name="leg" pos="-0.2 0 0"><joint name="back" axis="0 1 0"/>
      <inertial pos="0 0 -0.28" mass="1" diaginertia="0.03 0.03 0.002"/>
      <geom name="foot" type="sphere" pos="0 0 -0.56" size="0.04" mass="0.1"/></body>
  </body></worldbody>
  <actuator><motor name="m" joint="hip"/></actuator>
</mujoco>
"""


def mjcf_walker(folder: pathlib.Path) -> Problem:
    """A trunk with two legs from an MJCF; one leg has no shape but a foot."""
    path = folder / "walker.xml"
    path.write_text(textwrap.dedent(WALKER))
    model = mb.read_mjcf(path)
    return mb.assemble(*model, gravity=9.81, start=model.start)


def box_stack() -> Problem:
    """Three boxes on each other, in the plane."""
    names = ("lowest", "middle", "top")
    parts = [mb.body(name, mass=1.0, inertia=0.01) for name in names]
    shapes = [mb.box(name, 0.2 - 0.03 * k, 0.1) for k, name in enumerate(names)]
    parts.append(mb.contact_group("pile", [*shapes, mb.plane()], friction=0.5))
    start = {name: (0.02 * k, 0.1 + 0.205 * k, 0.03 * k) for k, name in enumerate(names)}
    return mb.assemble(*parts, gravity=9.81, start=start)


def rolling_disc() -> Problem:
    """A coin that rolls on the floor."""
    turn = (np.pi / 2 - 0.3, 0.0, 0.0)
    return mb.assemble(
        mb.body("coin", mass=1.0, inertia=(0.25e-2, 0.25e-2, 0.5e-2)),
        mb.rolling("roll", "ground", "coin", radius=0.1, axis=(0.0, 0.0, 1.0)),
        gravity=9.81, start={"coin": (((0.0, 0.0, 0.1 * np.cos(0.3)), turn), None)},
    )  # fmt: skip


def beam_on_stop() -> Problem:
    """A clamped beam above a stop, with a mass at its end on a spring."""
    steel = mb.rectangular(0.02, 0.005, E=2.1e11, rho=7850.0)
    return mb.assemble(
        mb.beam("arm", (0, 0, 0), (0.5, 0, 0), elements=6, section=steel),
        mb.fixed("clamp", "ground", "arm.start"),
        mb.contact("stop", mb.point("arm.end"), mb.sphere("ground", 0.02, at=(0.5, 0.0, -0.03))),
        mb.spring("coil", ("ground", (0.5, 0.0, 0.2)), "arm.end", stiffness=10.0, length=0.2),
        gravity=9.81,
    )  # fmt: skip


def cam() -> Problem:
    """A cam lifts a follower against a spring; a tendon bends a finger."""
    egg = mb.profile("cam", lambda a: (0.03 * np.cos(a) + 0.01, 0.02 * np.sin(a)), samples=32)
    return mb.assemble(
        mb.body("cam", mass=1.0, inertia=1e-3), mb.body("follower", mass=0.5),
        mb.hinge("shaft", "ground", "cam", motion=lambda t: 10.0 * t),
        mb.slide("guide", "ground", "follower", axis=(0.0, 1.0)),
        mb.joint_spring("spring", "guide", stiffness=2000.0, rest=0.01),
        mb.contact("nose", mb.sphere("follower", 0.008), egg),
        mb.body("finger", mass=0.05, inertia=1e-5, com=0.025),
        mb.body("tip", mass=0.03, inertia=5e-6, com=0.02),
        mb.hinge("base", "ground", "finger", at=(0.08, 0.0)), mb.hinge("knuckle", "finger", "tip", at=0.05),
        mb.tendon("flexor", ("ground", (0.06, -0.02)), ("finger", (0.03, -0.006)), ("tip", (0.02, -0.006)),
                  stiffness=500.0, length=0.07),
        gravity=9.81, start={"guide": 0.0295, "finger": 0.3, "tip": 0.1},
    )  # fmt: skip


PLANE_OR_SPACE = {
    "four-bar": four_bar, "slider-crank": slider_crank, "impact damper": impact_damper,
    "pendulum with gear": geared_pendulum, "rope and belt": pulley, "box stack": box_stack,
    "rolling disc": rolling_disc, "beam on a stop": beam_on_stop, "cam and tendon": cam,
}  # fmt: skip
"""Mechanisms of parts by name."""

FROM_FILES = {"URDF arm": urdf_arm, "MJCF walker": mjcf_walker}
"""Mechanisms from model files: functions of a folder for the file."""


def mechanism(name: str, folder: pathlib.Path) -> Problem:
    """A mechanism by its name."""
    return PLANE_OR_SPACE[name]() if name in PLANE_OR_SPACE else FROM_FILES[name](folder)
