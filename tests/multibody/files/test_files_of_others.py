"""Flags, starts, key frames, messages and missing files of model files, drawn and by kind."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import nsjax
from nsjax.core import InputError
from nsjax.multibody import LeftOutWarning, assemble, read_mjcf, read_urdf
from nsjax.multibody.files.readers import left_out
from nsjax.multibody.files.source import SWITCHES, Source
from tests.multibody.files.oracle import compared
from tests.multibody.files.test_files import here

mujoco = pytest.importorskip("mujoco", reason="the package mujoco is not installed")


def read(text: str, reader: Any = read_mjcf, **given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        return reader(text, **given)


FLAGGED = """<mujoco><option>{}</option><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="a" pos="0 0 1"><joint name="h" axis="0 1 0" stiffness="3" damping="0.4" frictionloss="0.1"
  range="-20 30" springref="15"/><geom name="ga" size="0.1" pos="0.3 0 0" mass="1"/>
  <body name="b" pos="0.6 0 0"><joint name="s" type="slide" axis="1 0 0" stiffness="5" damping="0.2"/>
    <geom name="gb" size="0.1" pos="0.1 0 0" mass="2"/></body></body>
<body name="c" pos="0 2 1"><freejoint name="f"/><geom name="gc" size="0.1"/></body></worldbody>
<equality><connect name="tie" body1="c" body2="a" anchor="0 0 0"/></equality>
<actuator><motor name="m" joint="h" gear="2" ctrlrange="-0.5 0.5"/></actuator></mujoco>"""
WITHOUT = {
    "constraint": {"limits", "friction", "connect", "contact"}, "equality": {"connect"},
    "frictionloss": {"friction"}, "limit": {"limits"}, "contact": {"contact"}, "spring": {"spring"},
    "damper": {"damper"}, "passive": {"spring", "damper"}, "gravity": {"gravity"},
    "clampctrl": {"clamp"}, "actuation": {"motor", "clamp"},
}  # fmt: skip
"""What a file loses by a flag; nothing by all others."""


def kept(file: Any) -> set[str]:
    parts = {part.name: part for part in file}
    joint, spring, motor = parts["h"].numbers, parts.get("h_spring"), parts.get("m")
    found = {
        "limits": joint.lower is not None, "friction": joint.friction is not None,
        "connect": "tie" in parts, "contact": any(part.kind == "contact" for part in file),
        "spring": spring is not None and spring.numbers.stiffness is not None,
        "damper": spring is not None and spring.numbers.damping is not None,
        "gravity": bool(np.any(file.gravity)), "motor": motor is not None,
        "clamp": motor is not None and motor.numbers.own.control_range is not None,
    }  # fmt: skip
    return {name for name, there in found.items() if there}


def members(bits: Any, prefix: str) -> list[str]:
    return [name.removeprefix(prefix).lower() for name in bits.__members__ if name.startswith(prefix)]


def test_every_flag() -> None:
    """By all names that the library has: what is switched off is not there, the rest is, and it is told."""
    every = kept(read(FLAGGED.format("")))
    assert every == {x for lost in WITHOUT.values() for x in lost}
    names = members(mujoco.mjtDisableBit, "mjDSBL_")
    assert len(names) >= 15
    for name in names:
        text = FLAGGED.format(f"<flag {name}='disable'/>")
        file = read(text)
        assert kept(file) == every - WITHOUT.get(name, set()), name
        told = [x for x in file.left_out if x.startswith("the file switches off")]
        assert bool(told) == (name in WITHOUT), name
    for name in members(mujoco.mjtEnableBit, "mjENBL_"):
        try:
            mujoco.MjModel.from_xml_string(FLAGGED.format(f"<flag {name}='enable'/>"))
        except ValueError:  # no attribute of a file, or one that needs others
            continue
        assert kept(read(FLAGGED.format(f"<flag {name}='enable'/>"))) == every, name
    many = read(FLAGGED.format("<flag gravity='disable' spring='disable' contact='disable'/>"))
    assert kept(many) == every - {"gravity", "spring", "contact"}
    assert "the file switches off contact, spring, gravity: so it is here" in many.left_out


def test_flags_nobody_knows() -> None:
    model = mujoco.MjModel.from_xml_string(FLAGGED.format(""))
    model.opt.disableflags |= 1 << 29
    source = Source(mujoco, model, "text")
    assert "flags that are not looked at: of value 536870912" in left_out(source, True)
    assert not any(source.off(what) for what in SWITCHES)


def test_friction_that_overrides() -> None:
    text = FLAGGED.format("<flag override='enable'/>").replace(
        "<option>", "<option o_friction='0.3 0.3 0 0 0'>"
    )
    met = [part for part in read(text) if part.kind == "contact"]
    assert met
    assert all(part.numbers.friction == 0.3 for part in met)


@pytest.mark.parametrize("seed", [1, 2])
def test_accelerations_with_flags(seed: int) -> None:
    """Of subsets of the flags that act on smooth motion, against the library, to rounding."""
    rng = np.random.default_rng(seed)
    off = [x for x in ("spring", "damper", "gravity", "clampctrl", "actuation") if rng.random() < 0.4]
    flags = " ".join(f"{x}='disable'" for x in [*off, "constraint"])
    assert compared(FLAGGED.format(f"<flag {flags}/>"), 10, seed, 0.3)["accelerations"] <= 1e-10, off


def drawn(rng: np.random.Generator) -> str:
    """A file with joints of all kinds, limits anywhere, references, key frames of every form."""
    unit = str(rng.choice(["degree", "radian"]))
    angle = 1.0 if unit == "radian" else 57.3
    bodies, close = ["<body name='free' pos='0 0 2'><freejoint name='f'/><geom size='0.1'/>"], 1
    for k in range(int(rng.integers(1, 5))):
        kind = str(rng.choice(["hinge", "slide", "ball"], p=[0.4, 0.4, 0.2]))
        size = angle if kind == "hinge" else 1.0
        low = size * rng.normal()
        limits = f"limited='true' range='{low} {low + size * rng.random()}'" if rng.random() < 0.7 else ""
        ref = f"ref='{size * rng.normal()}'" if kind != "ball" and rng.random() < 0.4 else ""
        if kind == "ball" and limits:
            limits = f"limited='true' range='0 {angle * (0.1 + rng.random())}'"
        name = f"name='j{k}'" if rng.random() < 0.7 else ""
        bodies.append(
            f"<body euler='{0.4 * angle} 0 0'><joint {name} type='{kind}' {limits} {ref}/>"
            "<geom size='0.1'/>"
        )
        close += 1
    head = f"<mujoco><compiler angle='{unit}' autolimits='true'/><worldbody>"
    body = head + "".join(bodies) + "</body>" * close + "</worldbody>"
    model = mujoco.MjModel.from_xml_string(body + "</mujoco>")
    keys = []
    for k in range(3):
        name = f"name='key {k}'" if rng.random() < 0.7 else ""
        q = " ".join(map(str, rng.normal(size=model.nq)))
        v = "qvel='" + " ".join(map(str, rng.normal(size=model.nv))) + "'" if rng.random() < 0.5 else ""
        keys.append(f"<key {name} qpos='{q}' {v}/>" if rng.random() < 0.8 else f"<key {name} {v}/>")
    return body + "<keyframe>" + "".join(keys) + "</keyframe></mujoco>"


def inside(model: Any, q: np.ndarray) -> np.ndarray:
    """Coordinates at the nearest ends, quaternions as the assembled model has them."""
    q = here(model, q[None])[0]
    for k in range(model.njnt):
        if model.jnt_limited[k] and model.jnt_type[k] in (2, 3):
            at = model.jnt_qposadr[k]
            q[at] = np.clip(q[at], *model.jnt_range[k])
    return q


def test_starts_drawn() -> None:
    """60 files: reference positions and key frames are the library's, clipped to limits, and told."""
    rng, outside = np.random.default_rng(5), 0
    for case in range(60):
        text = drawn(rng)
        file, model = read(text, contact=False), mujoco.MjModel.from_xml_string(text)
        names = [str(model.key(k).name) or f"key{k}" for k in range(model.nkey)]
        assert list(file.starts) == names
        if case % 6:  # assembling costs more than reading: most are compared entry by entry
            wanted = inside(model, np.array(model.qpos0))
            for k in range(model.njnt):
                at = int(model.jnt_qposadr[k])
                if model.jnt_type[k] in (2, 3):
                    word = Source(mujoco, model, "text").names["joint", k]
                    assert file.start.get(word, 0.0) == wanted[at]
            moved = np.any(wanted != here(model, np.array(model.qpos0)[None])[0])
            assert moved == any("coordinates of start" in x for x in file.left_out)
            outside += bool(moved)
            continue
        for start, q, v in (
            (file.start, model.qpos0, np.zeros(model.nv)),
            *((file.starts[n], model.key_qpos[k], model.key_qvel[k]) for k, n in enumerate(names)),
        ):
            state = assemble(*file, gravity=file.gravity, start=start).state
            assert np.allclose(state.q, inside(model, np.array(q)), atol=1e-14)
            assert np.array_equal(state.v, v)
    assert outside >= 15


FOLDED = """<mujoco><worldbody><body><joint name="knee" range="30 70"/><geom size="0.1" pos="1 0 0"/>
<body pos="1 0 0"><joint name="rail" type="slide" range="-2 -1"/><geom size="0.1"/></body></body>
</worldbody><actuator><position name="servo" joint="knee" kp="3"/></actuator>
<keyframe><key name="home" qpos="0.8 -1.5" ctrl="0.7"/></keyframe></mujoco>"""


@pytest.mark.slow
def test_a_start_outside_limits_runs() -> None:
    with pytest.warns(LeftOutWarning, match=r"at the nearest end: 'knee' 0 -> 0.523599, 'rail' 0 -> -1$"):
        file = read_mjcf(FOLDED)
    assert file.start == {"knee": np.radians(30.0), "rail": -1.0}
    assert file.starts == {"home": {"knee": 0.8, "rail": -1.5}}
    problem = assemble(*file, gravity=file.gravity, start=file.start)
    problem = problem.replace(file.controls["home"])
    assert problem.params["servo"].own.control == 0.7
    traj = nsjax.simulate(*problem, nsjax.schemes.moreau(), dt=1e-3, steps=20)
    assert int(traj.status) == 0
    assert np.all(np.asarray(traj.q)[:, 1] <= -1.0 + 1e-9)


def moved(mocap: str) -> str:
    return f"""<mujoco><worldbody><body name="hand" mocap="true" pos="0 0 1"/><body><joint name="j"/>
    <geom size="0.1"/></body></worldbody>
    <actuator><general name="m" joint="j" dyntype="integrator"/></actuator>
    <keyframe><key name="k" {mocap}/></keyframe></mujoco>"""


def test_what_else_a_key_frame_gives() -> None:
    file = read(moved("mpos='0 1 2' act='0.3'"))
    assert "poses of mocap bodies of key frames are left out: 'k'" in file.left_out
    assert float(file.problem("k").state.v[-1]) == 0.3  # the activation
    assert not any("key frames" in x for x in read(moved("mpos='0 0 1'")).left_out)
    assert read(moved("")).controls == {"k": {"commands.m": 0.0}}


MASS = "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>"
CHAIN = (
    f"<robot name='r'><link name='a'/><link name='b'>{MASS}</link><link name='c'>{MASS}</link>"
    "<joint name='j' type='continuous'><parent link='a'/><child link='b'/></joint>"
    "<joint name='k' type='continuous'><parent link='b'/><child link='c'/><mimic joint='j'/></joint>"
    "</robot>"
)
GEOM = "<mujoco><worldbody><body name='b'>{}</body></worldbody></mujoco>"
INERTIAL = "<joint/><inertial pos='0 0 0' mass='1' {}/>"
TWICE = "<mujoco><worldbody><body name='a'/><body name='a'/></worldbody></mujoco>"
KEY = "<mujoco><keyframe><key qpos='1 2'/></keyframe></mujoco>"
BROKEN = (
    (read_mjcf, GEOM.format("<geom sise='1'/>"), r"<geom>, line 1: .*'sise'; correct its name, or take"),
    (read_mjcf, GEOM.format("<geoms/>"), r"<geoms>, line 1: .*; take it away"),
    (read_mjcf, GEOM.format("<geom size='a'/>"), r"bad format in attribute 'size'; correct that value"),
    (read_mjcf, GEOM.format("<geom type='egg'/>"), r"invalid keyword: 'egg'; correct that value"),
    (read_mjcf, GEOM.format("<geom size='0'/>"), r"size 0 must be positive.*; correct that value"),
    (read_mjcf, GEOM.format("<geom type='mesh' mesh='m'/>"), r"mesh 'm' not found .*; correct the name"),
    (read_mjcf, GEOM.format("<geom size='1' class='q'/>"), r"unknown default class .*; correct the name"),
    (read_mjcf, GEOM.format("<joint/>"), r"give it an inertial .*, or take away the joint"),
    (read_mjcf, GEOM.format("<joint/><freejoint/><geom size='1'/>"), r"more than 6 dofs.*take one away"),
    (read_mjcf, GEOM.format("<geom size='1'/><body><freejoint/><geom size='1'/></body>"), r"only a body"),
    (read_mjcf, GEOM.format(INERTIAL.format("diaginertia='1 1 3'")), r"are of no body"),
    (read_mjcf, GEOM.format(INERTIAL.format("fullinertia='1 1 1 4 0 0'")), r"are of no body"),
    (read_mjcf, "<mujoco><include file='no.xml'/></mujoco>", r"'no.xml'; put that file beside this one"),
    (read_mjcf, KEY, r"a key frame gives all coordinates"),
    (read_mjcf, TWICE, r"another name"),
    (read_mjcf, "<mujoco><worldbody>", r"line 1.*; the file is broken there: mend it"),
    (
        read_mjcf, "<mujoco><asset><mesh name='m' file='x.stl'/></asset>"
        "<worldbody><body><joint/><geom type='mesh' mesh='m'/></body></worldbody></mujoco>",
        r"'x.stl'; put the mesh beside the file, or give the body that it weighs for an inertial",
    ),
    (read_urdf, CHAIN.replace("<child link='b'/>", ""), r"missing.*; add it"),
)  # fmt: skip


@pytest.mark.parametrize(("reader", "text", "words"), BROKEN)
def test_what_is_wrong_and_what_to_do(reader: Any, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as said:
        reader(text)
    assert not re.search(r"XML Error|Error: |\n", str(said.value))


def test_a_root_without_mass() -> None:
    """It is held, or an inertial is needed; a body further out without mass needs one anyway."""
    assert [part.name for part in read(CHAIN, read_urdf) if part.kind == "body"] == ["b", "c"]
    with pytest.raises(InputError, match=r"'a': mass and inertia .*; leave free=False, which holds"):
        read_urdf(CHAIN, free=True)
    light = CHAIN.replace("<link name='a'/>", f"<link name='a'>{MASS}</link>").replace(
        f"<link name='c'>{MASS}</link>", "<link name='c'/>"
    )
    hung = CHAIN.replace("'a'", "'world'")
    assert [part.kind for part in read(hung, read_urdf)].count("hinge") == 2
    with pytest.raises(
        InputError, match=r"'b': more than 6 dofs.*; leave free=False: it has a joint of its"
    ):
        read_urdf(hung, free=True)
    with pytest.raises(InputError, match=r"'c': mass and inertia .*; give it an inertial"):
        read_urdf(light, free=True)


def test_what_follows_another_joint_is_told_once(capfd: pytest.CaptureFixture[str]) -> None:
    """By joints where the library follows them, by the element where it does not; nothing is printed."""
    file = read(CHAIN, read_urdf)
    assert not [x for x in file.left_out if "equality" in x or "mimic" in x]
    (followed,) = [x for x in file if x.kind == "coupling"]
    assert followed.option("joints") == ("k", "j")
    assert followed.numbers.polynomial.tolist() == [0.0, 1.0]
    fixed = CHAIN.replace("name='k' type='continuous'", "name='k' type='fixed'")
    said = read(fixed, read_urdf).left_out
    assert [x for x in said if "equality" in x or "mimic" in x] == [
        "<mimic> (1 of them) is not read: only hinges and slides of the file follow one another"
    ]
    assert capfd.readouterr().err == ""
    assert mujoco.get_mju_user_warning() is None


def test_many_of_a_kind_are_one_sentence() -> None:
    count, rng = 30, np.random.default_rng(3)
    motors = "".join(f"<motor name='m{k}' jointinparent='j'/>" for k in range(count))
    servos = "".join(f"<general name='i{k}' joint='j' dyntype='user' actdim='1'/>" for k in range(count))
    text = GEOM.format("<joint name='j'/><geom size='1'/>").replace(
        "</mujoco>", f"<actuator>{motors}{servos}<motor joint='j'/></actuator></mujoco>"
    )
    said = read(text).left_out
    assert said == (
        "actuators that do not act on a joint, tendon or site are left out: 'm0', 'm1', 'm2', 'm3' and 26 "
        "more",
        "actuators that have an activation that is neither a filter, an integrator nor that of a muscle "
        "are left out: 'i0', 'i1', 'i2', 'i3' and 26 more",
    )
    links = "".join(
        f"<body name='w{k}'><joint type='ball' frictionloss='{rng.integers(1, 3)}' limited='true' "
        "range='0 40'/><geom size='1' contype='0' conaffinity='0'/></body>"
        for k in range(count)
    )
    said = read(f"<mujoco><worldbody>{links}</worldbody></mujoco>").left_out
    assert len(said) == 2
    assert all("and 26 more" in x for x in said)


def test_actuators_of_a_group_that_is_off() -> None:
    text = GEOM.format("<joint name='j'/><geom size='1'/>").replace(
        "</mujoco>", "<actuator><motor name='on' joint='j'/><motor name='off' joint='j' group='2'/>"
        "</actuator><option actuatorgroupdisable='2'/></mujoco>",
    )  # fmt: skip
    assert [part.name for part in read(text) if part.kind == "actuator"] == ["on"]


ABSENT = """<mujoco><asset><texture name="t" type="2d" file="no.png"/>
<texture type="skybox" file="sky.png"/><material name="m" texture="t"/><mesh name="arm" file="arm.stl"/>
<mesh name="eye" file="eye.obj"/><hfield name="hills" file="hills.png" size="1 1 1 1"/></asset>
<worldbody><geom type="hfield" hfield="hills"/><body name="b"><joint name="j"/>
<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/><geom name="skin" type="mesh" mesh="arm"/>
<geom name="ball" size="0.1" material="m"/>
<geom type="mesh" mesh="eye" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""


def test_files_that_are_not_there() -> None:
    """Pictures, and shapes from which no inertia comes, are not needed; what remains has its mass."""
    file = read(ABSENT)
    assert file.left_out[0] == (
        "files that do not exist are left out, with the shapes that use them: arm.stl, eye.obj, hills.png"
    )
    parts = {part.name: part for part in file}
    assert set(parts) == {"b", "j"}
    assert parts["b"].numbers.mass == 2.0
    mesh = "<collision><geometry><mesh filename='package://r/no.stl'/></geometry></collision></link>"
    robot = read(CHAIN.replace(f"{MASS}</link><link name='c'>", f"{MASS}{mesh}<link name='c'>"), read_urdf)
    assert robot.left_out[0].endswith("package://r/no.stl")
    assert [part.name for part in robot if part.kind == "body"] == ["b", "c"]
