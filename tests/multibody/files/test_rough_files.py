"""Rough files of others: floating joints, followers, missing inertias, numbers and trees that are none, and
texts that take long to search.
"""

from __future__ import annotations

import contextlib
import itertools
import pathlib
import re
import time
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nsjax
from nsjax import InputError, schemes
from nsjax.multibody import LeftOutWarning, assemble, read_mjcf, read_urdf
from tests.design import slow_but

pytest.importorskip("mujoco", reason="the package mujoco is not installed")

WEIGHT = """<inertial><mass value="1"/>
<inertia ixx=".1" iyy=".2" izz=".2" ixy="0" ixz="0" iyz="0"/></inertial>"""


def quiet(text: Any, **given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        return (read_urdf if "<robot" in str(text) else read_mjcf)(text, **given)


def link(name: str, inside: str = WEIGHT) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(first: str, second: str, kind: str = "revolute", inside: str = "", name: str = "") -> str:
    return (
        f'<joint name="{name or first + second}" type="{kind}"><parent link="{first}"/>'
        f'<child link="{second}"/><axis xyz="0 1 0"/>{inside}</joint>'
    )


def robot(*inside: str) -> str:
    return f'<robot name="r">{"".join(inside)}</robot>'


# floating joints


def turned(rng: np.random.Generator) -> tuple[np.ndarray, Rotation, str]:
    """A place, a rotation, and their element."""
    place, angles = rng.normal(size=3), rng.normal(size=3)
    words = " ".join(map(str, place)), " ".join(map(str, angles))
    return place, Rotation.from_euler("xyz", angles), f'<origin xyz="{words[0]}" rpy="{words[1]}"/>'


@pytest.mark.slow
@pytest.mark.parametrize("root", slow_but(["world", "base", "table"], "table"))
def test_floating(root: str) -> None:
    """A link floats below the root, or below a link that hangs on it at a limit, and falls freely."""
    rng = np.random.default_rng(3)
    (at, turn, origin), (to, roll, below) = turned(rng), turned(rng)
    limit = '<limit lower="0.3" upper="1" effort="1" velocity="1"/>'
    text = robot(
        link(root, WEIGHT if root == "table" else ""), link("arm"), link("b"), link("c"),
        joint(root, "arm", inside=limit + origin), joint("arm", "b", "floating", below),
        joint("b", "c", "floating"),
    )  # fmt: skip
    file = quiet(text)
    problem = file.problem()
    moved = turn * Rotation.from_rotvec([0.0, 0.3, 0.0])
    place, pose = at + moved.apply(to), moved * roll
    given = {name: file.start[name][0] for name in ("b", "c")}
    for position, quaternion in given.values():
        found = Rotation.from_quat(np.roll(quaternion, -1))
        assert np.allclose(position, place, atol=1e-12)
        assert (found * pose.inv()).magnitude() < 1e-12
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=100)
    assert np.allclose(traj["b.z"][-1], place[2] - 9.81 * 0.1**2 / 2, atol=2e-3)  # of first order in dt
    assert not any("'b'" in x for x in file.left_out if "root link" in x)


def test_what_hangs_on_the_world_is_not_held() -> None:
    """No sentence about roots that have a joint."""
    text = robot(
        link("world", ""), link("a"), link("b"), joint("world", "a", "floating"), joint("world", "b")
    )
    assert not any("held by the ground" in x for x in quiet(text).left_out)


# followers


@pytest.mark.parametrize("seed", range(2))
def test_followers_follow(seed: int) -> None:
    """Leaders keep their start, also through a chain of followers in any order of the file."""
    rng = np.random.default_rng(seed)
    factors, offsets, lower = rng.normal(size=3), 0.1 * rng.normal(size=3), 0.05 * seed
    wanted = [lower]
    for a, b in zip(factors, offsets, strict=True):
        wanted.append(a * wanted[-1] + b)
    joints = [joint("w", "l0", "prismatic", f'<limit lower="{lower}" upper="9" effort="1" velocity="1"/>')]
    joints += [
        joint("w", f"l{k + 1}", "continuous", f'<mimic joint="wl{k}" multiplier="{a}" offset="{b}"/>')
        for k, (a, b) in enumerate(zip(factors, offsets, strict=True))
    ]
    order = rng.permutation(4)
    text = robot(link("w", ""), *(link(f"l{k}") for k in range(4)), *(joints[k] for k in order))
    file = quiet(text)
    for problem in (file.problem(), assemble(*file, gravity=file.gravity, start=file.start)):
        names = [x.split(".")[0] for x in problem.system.labels.q]
        found = dict(zip(names, np.asarray(problem.state.q), strict=True))
        assert np.allclose([found[f"wl{k}"] for k in range(4)], wanted, atol=1e-11)


FOLLOWING = """<mujoco><worldbody>
<body name="a"><joint name="lead" type="slide"/><geom size=".1"/></body>
<body name="b"><joint name="foll" type="slide" ref="{}"/><geom size=".1"/></body></worldbody>
<equality><joint joint1="foll" joint2="lead" polycoef="0.1 -0.5 0 0 0"/></equality></mujoco>"""


def test_followers_of_mjcf() -> None:
    assert quiet(FOLLOWING.format(0)).start == {"foll": 0.1}
    file = quiet(FOLLOWING.format(0.3))
    assert file.start == {"foll": pytest.approx(0.4)}
    assert any(
        "contradict the coupling which they follow" in x and "0.3 -> 0.4" in x for x in file.left_out
    )
    assert np.allclose(file.problem().state.q, [0.0, 0.4])


# inertias from shapes

BOX = '<collision><geometry><box size="{0} {0} {0}"/></geometry></collision>'
INCOMPLETE = {
    "none": "", "empty": "<inertial/>", "mass": '<inertial><mass value="3"/></inertial>',
    "zero": WEIGHT.replace('value="1"', 'value="0"'),
}  # fmt: skip


@pytest.mark.parametrize("size", [0.2, 1e-4])
@pytest.mark.parametrize("kind", INCOMPLETE)
def test_density(kind: str, size: float) -> None:
    """Of a cube, by its closed form, however small."""
    text = robot(link("w", ""), link("a", INCOMPLETE[kind] + BOX.format(size)), joint("w", "a"))
    file = quiet(text, density=500.0, contact=False)
    mass = 3.0 if kind == "mass" else 500.0 * size**3
    part = next(x for x in file if x.name == "a")
    assert np.isclose(part.numbers.mass, mass, rtol=1e-12)
    assert np.allclose(part.numbers.inertia, mass * size**2 / 6.0, rtol=1e-12, atol=0.0)
    assert any("links without whole inertials" in x and "'a'" in x for x in file.left_out)
    file.problem()
    if kind != "none":
        with pytest.raises(InputError, match="density="):
            quiet(text)


def test_what_is_assumed_is_told() -> None:
    text = robot(link("w", ""), link("a", BOX.format(0.1)), link("b"), joint("w", "a"), joint("a", "b"))
    assert any("1000 kg/m^3 where no mass is given: 'a' (1 kg)" in x for x in quiet(text).left_out)
    light = robot(link("w", WEIGHT.replace('value="1"', 'value="1e-9"')), link("a"), joint("w", "a"))
    assert any("'w' moves freely with 1e-09 of 1 kg" in x for x in quiet(light, free=True).left_out)


# numbers that are none

MODEL = """<mujoco><worldbody><body name="inf" pos="0 0 1"><joint name="nan" axis="0 1 0" range="-1 1"/>
<inertial pos="0 0 -0.5" mass="2" diaginertia="0.1 0.1 0.01"/>
<geom class="nan" size="0.1" pos="0 0 0.5"/></body>
</worldbody><default><default class="nan"><geom friction="0.4 0.1 0.1"/></default></default>
<actuator><motor joint="nan" gear="2"/></actuator></mujoco>"""
ARM = robot(
    link("nan", ""), link("a", WEIGHT + BOX.format(0.1)), link("inf"),
    joint("nan", "a", inside='<limit lower="-1" upper="1" effort="inf" velocity="inf"/>'),
    joint("a", "inf", "continuous", '<origin xyz="0 0 1" rpy="0 1 0"/><mimic joint="nana" offset="2"/>'),
)  # fmt: skip


@pytest.mark.parametrize("text", [ARM, MODEL], ids=["urdf", "mjcf"])
def test_numbers_that_are_none(text: str) -> None:
    """Each number of a file in turn: refused, whatever stands in its place. Names may be such words."""
    quiet(text)
    words = "nan", "-NaN", "inf", "-Infinity", "1e400", "x", ""
    for place, word in itertools.product(re.finditer(r'(?<=[" ])-?[\d.]+(?=[" ])', text), words):
        broken = text[: place.start()] + word + text[place.end() :]
        if not word and '=""' not in broken:  # one number less, which MJCF may allow
            continue
        with pytest.raises(InputError):
            quiet(broken)


def test_included_files(tmp_path: pathlib.Path) -> None:
    """What is wrong inside is said of the file that holds it, through two levels."""
    main, inner, last = (tmp_path / x for x in ("main.xml", "inner.xml", "last.xml"))
    main.write_text(MODEL.replace("<actuator>", '<include file="inner.xml"/><actuator>'))
    inner.write_text('<mujocoinclude><include file="last.xml"/></mujocoinclude>')
    last.write_text("<mujocoinclude><option timestep='1e-3'/></mujocoinclude>")
    quiet(main)
    for content, words in (
        ("no xml", r"last.xml, included by .*inner.xml, is no XML \(syntax error: line 1"),
        ("<mujocoinclude><option></mujocoinclude>", "last.xml, included by .*inner.xml, is no XML"),
        (
            "<a>\n<option timestep='nan'/></a>",
            "last.xml, included by .*, line 2: timestep = 'nan'; write numbers that are finite",
        ),
        ('<a><include file="main.xml"/></a>', "already included"),
    ):
        last.write_text(content)
        with pytest.raises(InputError, match=words):
            quiet(main)


# trees that are none


def test_no_files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for reader in (read_urdf, read_mjcf):
        with pytest.raises(InputError, match="is a folder; give the path of a file in it"):
            reader(tmp_path)
        with pytest.raises(InputError, match="does not exist; give a path"):
            reader(tmp_path / "none.xml")
        with pytest.raises(InputError, match="is no regular file"):
            reader("/dev/null")
        with pytest.raises(InputError, match="the file name is empty"):
            reader("")
    (tmp_path / "secret.urdf").write_text(robot(link("a")))
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(InputError, match=r"secret\.urdf may not be read; change its permissions"):
        read_urdf(tmp_path / "secret.urdf")


# long texts

LONG = {
    "comments": lambda n: robot(link("a"), "<!-- x" * n),
    "instructions": lambda n: "<? x" * n + robot(link("a")),
    "limits": lambda n: robot(link("a"), "<limit " * n),
    "quotes": lambda n: "<robot " + 'a="' * n,
    "words": lambda n: robot(link("a")) + "a-" * n,
    "joints": lambda n: robot(
        *(link(f"l{k}") for k in range(n // 80)),
        *(joint(f"l{k + 1}", f"l{k}") for k in range(n // 80 - 1)), joint("l0", f"l{n // 80 - 1}"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", LONG)
def test_long_texts(kind: str) -> None:
    """They take time in proportion to their length: 200 kB below a second, which took minutes."""
    start = time.process_time()
    with contextlib.suppress(InputError):
        quiet(LONG[kind](40_000))
    assert time.process_time() - start < 2.0  # CPU s; a search that begins anew at each mark takes 90
