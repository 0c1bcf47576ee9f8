"""Wrong parts of mechanisms; more of them in ``tests/multibody/test_sentences.py``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from nsjax import InputError
from nsjax import multibody as mb
from nsjax.multibody.joints.joint_kind import joint
from nsjax.multibody.parts import with_surfaces

SECTION = mb.circular(0.01, E=1e9, rho=1e3)
SPACE = mb.body("rod", mass=1.0, inertia=(1.0, 1.0, 1.0))
SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
URDF = '<robot name="r"><link name="base"/></robot>'
MJCF = "<mujoco><worldbody/></mujoco>"


def beam(*ends: Any, **given: Any) -> Any:
    return mb.beam("arm", *(ends or ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))), section=SECTION, **given)


def bar(**given: Any) -> Any:
    return mb.body("rod", **({"mass": 1.0, "inertia": 0.1} | given))


def traced(make: Callable[[Any], Any]) -> Any:
    """With nodes that nobody knows yet."""
    jax.make_jaxpr(lambda x: make(x * np.eye(3)[:2]) and 0.0)(1.0)


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "pulley without mass": (
        lambda: mb.assemble(
            bar(),
            mb.body("pulley", mass=0.0),
            mb.slide("guide", "ground", "pulley"),
            mb.tendon("rope", ("ground", (0.0, 0.0)), ("pulley", (0.0, 0.0)), ("rod", (0.0, 0.0))),
        ),
        "body 'pulley': mass = 0.0 and nothing .* motion on slide 'guide' moves no inertia; ropes, springs",
    ),
    "free body without mass": (
        lambda: mb.assemble(bar(), mb.body("dot", mass=0.0)),
        "body 'dot': mass = 0.0 .*, so that its motion moves no inertia",
    ),
    "shape of another body": (
        lambda: bar(shape=mb.box("crate", 0.1, 0.05)),
        "body 'rod': shape = Shape.*; give shapes of 'rod', box\\('rod', 0.1, 0.05\\)",
    ),
    "shape of a body that lacks a number": (
        lambda: mb.assemble(
            mb.body("rod", mass=1.0, inertia=(1.0, 1.0, 1.0), shape=mb.box("rod", 0.1, 0.05))
        ),
        "body 'rod': a box in space needs half_depth; give it",
    ),
    "friction of a hinge": (
        lambda: mb.hinge("pin", "ground", "rod", friction=(6.0, 4.0)),
        r"hinge 'pin': friction has shape \(2,\); give one number",
    ),
    "friction of a tendon": (
        lambda: mb.joint_tendon("line", {"pin": 1.0}, friction=(6.0, 4.0)),
        r"joint_tendon 'line': friction has shape \(2,\); give one number",
    ),
    "restitution of a limit": (
        lambda: mb.slide("guide", "ground", "rod", limits=(0, 1), restitution=(0.5, 0.4)),
        r"slide 'guide': restitution has shape \(2,\); give one number",
    ),
    "coordinates": (
        lambda: mb.assemble(bar(), coordinates="own"),
        "assemble: coordinates = 'own'; choose one",
    ),
    "gravity": (
        lambda: mb.assemble(bar(), gravity=(1.0, 2.0, 3.0, 4.0)),
        "assemble: gravity has 4 components; give a number, 2 or 3",
    ),
    "hinge in space": (
        lambda: mb.assemble(SPACE, mb.hinge("pin", "ground", "rod")),
        r"hinge 'pin': the mechanism is spatial; give axis=\(0, 0, 1\), for instance",
    ),
    "cylinder in the plane": (
        lambda: mb.assemble(bar(), mb.contact("c", mb.cylinder("rod", 0.1, 0.2), mb.plane()), gravity=9.81),
        "contact 'c': a cylinder is spatial; use a sphere, box or capsule",
    ),
    "point of space in the plane": (
        lambda: mb.assemble(
            bar(), mb.hinge("pin", "ground", "rod", at=(1.0, 2.0, 3.0)), gravity=(0.0, -9.81)
        ),
        "hinge 'pin': at has 3 components in a mechanism of 2 dimensions; give 2",
    ),
    "mass of a beam": (lambda: beam(elements=2, mass="thin"), "beam 'arm': mass = 'thin'; choose one of"),
    "stations of traced nodes": (
        lambda: traced(lambda x: beam(x, stations={"mid": 0.5})),
        "beam 'arm': stations with traced nodes; give all nodes, and name them",
    ),
    "axis of traced nodes": (
        lambda: traced(beam),
        "beam 'arm': give first_axis where the nodes are traced",
    ),
    "first axis": (
        lambda: beam(elements=2, first_axis=(0.0, 0.0, 0.0)),
        r"beam 'arm': first_axis = \[0.0, 0.0, 0.0\]; give a direction \(3,\)",
    ),
    "one end": (
        lambda: beam((0.0, 0.0, 0.0)),
        r"beam 'arm': start has shape \(3,\) and there is no end; give both ends",
    ),
    "elements beside nodes": (
        lambda: beam(np.eye(3), elements=2),
        "beam 'arm': elements = 2 beside all nodes; leave elements out",
    ),
    "ends of the plane": (
        lambda: beam((0.0, 0.0), (1.0, 0.0), elements=2),
        r"beam 'arm': ends of shapes \(2,\), \(2,\); give \(3,\)",
    ),
    "load of a beam": (
        lambda: mb.assemble(beam(elements=2), mb.line_load("wind", "arm", np.ones((5, 3)))),
        "line_load 'wind': 5 values along 'arm', which has 3 nodes; give one for each, or one for all",
    ),
    "contact of a beam": (
        lambda: mb.assemble(beam(elements=2), mb.contact("c", mb.box("arm", 0.1, 0.1, 0.1), mb.plane())),
        r"contact 'c': box of the beam 'arm'; give sphere\(.*radius\) or point\(.*\) for all of its nodes",
    ),
    "walls in space": (
        lambda: mb.assemble(SPACE, mb.contact("c", mb.corners("rod", 0.1, 0.1, 0.1), mb.walls(-1.0, 1.0))),
        "contact 'c': walls are planar",
    ),
    "end of a spring": (
        lambda: mb.spring("leg", 3, "rod", stiffness=1.0),  # type: ignore[arg-type]
        r"spring 'leg': end 3; give a body's name, or a pair \('rod', 0.3\)",
    ),
    "law": (
        lambda: mb.spring("leg", "ground", "rod", law=3.0),  # type: ignore[arg-type]
        "spring 'leg': law = 3.0; it must be a function of extension and rate",
    ),
    "switch without law": (
        lambda: mb.actuator("motor", "pin", 1.0, switch=abs),
        "actuator 'motor': switch without law; give the law that jumps there",
    ),
    "value of a switch": (
        lambda: with_surfaces(mb.actuator("motor", "pin", law=abs, switch=print), []).option("law")(1.0),
        r"switch of actuator 'motor' gives None; its values are one number or several, \(k,\)",
    ),
    "law and stiffness": (
        lambda: mb.spring("leg", "ground", "rod", law=abs, stiffness=1.0),
        "spring 'leg': a law is given together with stiffness or damping; put all into the law",
    ),
    "actuator": (lambda: mb.actuator("motor", "pin"), "actuator 'motor': give effort or law, one of them"),
    "name": (
        lambda: mb.body("my rod", mass=1.0),
        "name = 'my rod'; give a word of letters, digits and _, not",
    ),
    "name of a body": (
        lambda: mb.hinge("pin", "ground", 3),  # type: ignore[arg-type]
        "hinge 'pin': 3 is no name of a body; give 'ground' or a name",
    ),
    "number": (lambda: bar(mass="heavy"), "mass = 'heavy'; give a number or an array of numbers"),
    "finite": (lambda: bar(mass=np.inf), "body 'rod': mass = inf; it must be finite"),
    "least": (lambda: bar(mass=-1.0), "body 'rod': mass = -1.0; it must be at least 0"),
    "unit": (
        lambda: mb.slide("s", "ground", "rod", axis=(0.0, 2.0)),
        r"slide 's': axis = \[0.0, 2.0\] is no unit vector",
    ),
    "inertia": (
        lambda: bar(inertia=(1.0, 2.0)),
        r"body 'rod': inertia has shape \(2,\); give \(\), \(3,\) or",
    ),
    "negative inertia": (lambda: bar(inertia=-1.0), "body 'rod': inertia = -1.0; it must not be negative"),
    "moments": (
        lambda: bar(inertia=(1.0, 1.0, 3.0)),
        "moments of inertia .* violate the triangle inequality; no body has a moment larger",
    ),
    "itself": (
        lambda: mb.hinge("pin", "rod", "rod"),
        "hinge 'pin': joins 'rod' to itself; name two bodies",
    ),
    "limits": (
        lambda: mb.hinge("pin", "ground", "rod", limits=(1.0, 0.0)),
        "hinge 'pin': limits = .*; the lower must be below the upper",
    ),
    "length": (
        lambda: mb.distance("d", "a", "b", length=0.0),
        "distance 'd': length = 0.0; it must be positive, or use a pin or ball",
    ),
    "universal": (
        lambda: mb.universal("u", "a", "b", axis=(1.0, 0, 0), second_axis=(0.6, 0.8, 0)),
        "universal 'u': axis and second_axis form 53.1301 degrees at coordinates zero; they must",
    ),
    "curve": (
        lambda: mb.profile("cam", np.zeros((3, 2))),
        r"profile of 'cam': the curve has shape \(3, 2\); give \(n, 2\), four points or more",
    ),
    "doubled point": (
        lambda: mb.profile("cam", np.repeat(SQUARE, [1, 2, 1, 1], axis=0)),
        "profile of 'cam': points 1 and 2 coincide; leave one out",
    ),
    "spheres": (
        lambda: mb.spheres(0.1, 1.0, np.zeros(3)),
        r"spheres: positions have shape \(3,\); give \(n, 3",
    ),
    "radii": (
        lambda: mb.spheres(-0.1, 1.0, np.eye(3)),
        "spheres: radius = -0.1; give a positive number, or one for each of 3 spheres",
    ),
    "speeds": (
        lambda: mb.spheres(0.1, 1.0, np.eye(3), np.zeros((2, 3))),
        r"spheres: velocities have shape \(2, 3\); give \(3, 3\) or \(3, 6\)",
    ),
    "start": (
        lambda: mb.assemble(
            bar(), mb.hinge("pin", "ground", "rod"), gravity=9.81, start={"pin": ((1.0, 2.0), 0.0)}
        ),
        "position of 'rod' has 2 entries; it needs 1, since it hangs on hinge 'pin'",
    ),
    "start of no number": (
        lambda: mb.assemble(SPACE, start={"rod": {"velocity": (1.0, 0.0, 0.0)}}),
        r"start: position of 'rod' = \{'velocity': .*\}; give numbers, as a position or as a pair",
    ),
    "rate of no number": (
        lambda: mb.assemble(SPACE, start={"rod": ((0.0, 0.0, 0.0), "fast")}),
        "start: velocity of 'rod' = 'fast'; give numbers",
    ),
    "start of a pose": (
        lambda: mb.assemble(SPACE, start={"rod": (1.0, 2.0)}),
        r"start: position of 'rod' has 2 entries; give \(x, y, z\) and",
    ),
    "start of a pose that is flat": (
        lambda: mb.assemble(SPACE, start={"rod": ((0, 0, 1), (0, 0, 0), (1, 0, 0), (0, 0, 0))}),
        r"position of 'rod' has 12 entries; give .*, with velocities as the pair",
    ),
    "start of nothing": (
        lambda: mb.assemble(bar(), gravity=9.81, start={"rood": 1.0}),
        "start: 'rood' has no coordinates; did you mean 'rod'",
    ),
    "start twice": (
        lambda: mb.assemble(
            bar(), mb.hinge("pin", "ground", "rod"), gravity=9.81, start={"rod": 1.0, "pin": 2.0}
        ),
        "start: 'rod' is given twice, as body and as joint; give it once",
    ),
    "spring of a ball joint": (
        lambda: mb.assemble(SPACE, mb.ball("b", "ground", "rod"), mb.actuator("motor", "b", 1.0)),
        "actuator 'motor': 'b' is a ball joint; name a hinge or slide",
    ),
    "doubled name": (
        lambda: mb.assemble(bar(), bar()),
        "assemble: body 'rod': a body has that name; choose another",
    ),
    "gravity as a name": (
        lambda: mb.assemble(mb.body("gravity", mass=1.0)),
        "assemble: body 'gravity': the gravity has that name; choose another",
    ),
    "no body": (lambda: mb.assemble(), r"assemble: no body; add body\(name, mass=...\)"),
    "kind without a record": (
        lambda: mb.assemble(bar(), joint("slot", "s", "ground", "rod", None, False)),
        "part 's' is of the kind 'slot', which no registry holds; add its record to KINDS of joints, loads",
    ),
    "number of a kind of one's own": (
        lambda: joint("wire", "w", "ground", "rod", None, False, curvature=2.0),
        "wire 'w': joints have no number 'curvature'; give one that only this kind has as own=",
    ),
    "scalar inertia in space": (
        lambda: mb.assemble(bar(), mb.hinge("pin", "ground", "rod", axis=(0.0, 1.0, 0.0))),
        r"inertia = 0.1 in a spatial mechanism \(hinge 'pin' has a vector of three\); give three moments "
        "about body axes, or a matrix; for a plane mechanism give all vectors two entries",
    ),
    "ball in the plane": (
        lambda: mb.assemble(bar(), mb.ball("pin", "ground", "rod")),
        r"in a spatial mechanism \(ball 'pin' is a joint of space\)",
    ),
    "gravity in space": (
        lambda: mb.assemble(bar(), mb.hinge("pin", "ground", "rod"), gravity=(0.0, 0.0, -9.81)),
        r"in a spatial mechanism \(gravity has three entries\)",
    ),
    "motions that contradict each other": (
        lambda: mb.assemble(
            bar(),
            mb.hinge("pin", "ground", "rod", motion=lambda t: t),
            mb.hinge("pin2", "ground", "rod", at=(1.0, 0.0), on=(1.0, 0.0)),
        ),
        "prescribed motions and couplings contradict each other: no velocities fulfil",
    ),
    "no part": (lambda: mb.assemble(3), "assemble: 3 is no part"),  # type: ignore[arg-type]
    "points": (
        lambda: mb.points("rod", (1.0, 2.0)),
        r"points of 'rod': at has shape \(2,\); give \(n, 2\) or \(n, 3\)",
    ),
    "walls": (
        lambda: mb.walls(1.0, 0.0),
        "walls of 'ground': lower = 1.0, upper = 0.0; lower must be below upper",
    ),
    "no shape": (
        lambda: mb.contact("c", "rod", mb.plane()),  # type: ignore[arg-type]
        "contact 'c': 'rod' is no shape; give point\\(body\\), sphere\\(body",
    ),
    "no pair": (
        lambda: mb.contact("c", mb.plane(), mb.plane("rod")),
        "contact 'c': no pair of plane and plane, in this order",
    ),
    "one body": (
        lambda: mb.contact("c", mb.sphere("rod", 0.1), mb.plane("rod")),
        "contact 'c': both shapes stand on 'rod'; name two bodies",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_parts(name: str) -> None:
    make, words = CASES[name]
    with pytest.raises(InputError, match=words):
        make()


def test_model_files(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco", reason="model files are read by mujoco (extra files)")
    with pytest.raises(
        InputError, match=r"read_urdf: gone.urdf does not exist; give a path, or the text of a"
    ):
        mb.read_urdf("gone.urdf")
    with pytest.raises(InputError, match=r"read_urdf: .* has the root <mujoco>; use read_mjcf"):
        mb.read_urdf(MJCF)
    with pytest.raises(InputError, match=r"read_mjcf: .* has the root <robot>; use read_urdf"):
        mb.read_mjcf(URDF)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match=r"reading model files needs mujoco; install it with: pip"):
        mb.read_mjcf(MJCF)
