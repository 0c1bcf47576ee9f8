"""Files that do not fit, and wrong commands, refused before anything is compiled."""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
import types
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import nsjax
from nsjax import InputError, io, models, schemes
from nsjax.cli import identify, inputs, main
from nsjax.io import archive, codec, driver, files
from nsjax.io import codec as saved_scheme
from nsjax.trajectory import Impacts
from tests.plot.coasting import coasting

BALL, CRANK, MOREAU = models.bouncing_ball(), models.slider_crank(), schemes.moreau()
FALL = coasting(BALL)
HEADER = {"registered": True, "model": "bouncing_ball", "choices": None, "sizes": {}}


@dataclasses.dataclass(frozen=True)
class Record:
    """What is saved."""

    mass: float


def rebuilt(**change: Any) -> Any:
    """A scheme from a file in which something stands otherwise."""
    content = saved_scheme.describe_scheme(MOREAU)
    return saved_scheme.rebuild_scheme({**content, **change})


def traced(call: Callable[[Any], Any]) -> None:
    jax.make_jaxpr(call)(1.0)


def of_damaged() -> None:
    with driver._named_if_damaged("run.npz"):
        raise KeyError("carry")


def of_a_scheme_inside() -> None:
    outer = saved_scheme.describe_scheme(schemes.localized(MOREAU))
    saved_scheme.rebuild_scheme({**outer, "options": {**outer["options"], "inner": "moreau()"}})


def list_of(**change: Any) -> None:
    """A list of impacts beside a system that has them."""
    names = ("contact", "rate_before", "rate_after", "impulse_normal")
    made: Any = Impacts(
        **{f.name: np.zeros(()) for f in dataclasses.fields(Impacts)}
        | {name: np.zeros(3) for name in ("time", *names)}
        | {"impulse_tangential": np.zeros((3, BALL.system.nt))} | change
    )  # fmt: skip
    files._check_events(BALL.system, made)


MADE = "tests.sentences.test_files:Record"

CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "load": (lambda: io.load("run.npz", 3), "load: problem = 3; it must be an nsjax.Problem"),
    "save": (lambda: io.save("run.npz", BALL, 3), "save: traj = 3; it must be an nsjax.Trajectory"),
    "save scheme": (
        lambda: io.save("run.npz", BALL, FALL, scheme=3),
        "save: scheme = 3; it must be an nsjax.Scheme",
    ),
    "save another": (
        lambda: io.save("run.npz", CRANK, FALL),
        "save: traj is not a run of this problem's system; pass the problem it ran",
    ),
    "save traced": (
        lambda: traced(lambda x: io.save("run.npz", BALL.replace(restitution=x), FALL)),
        "save: params are traced; save outside jit, vmap and grad",
    ),
    "metadata": (
        lambda: archive._plain("note", object()),
        "save: note = .*; numbers, strings, lists and dicts of them",
    ),
    "model": (
        lambda: archive._rebuild_problem({**HEADER, "model": "ball_of_1999"}, {}),
        "the model 'ball_of_1999' is unknown to this version; ",
    ),
    "sizes": (
        lambda: archive._check_fit({**HEADER, "sizes": {"nq": 7}}, BALL.system),
        "it was saved with .*; the system has",
    ),
    "value": (
        lambda: codec.describe("params", main, {}),
        "params = .* cannot be saved; numbers, strings and records of them only",
    ),
    "key": (
        lambda: codec.describe("params", {3: 1.0}, {}),
        "params has the key 3, which cannot be saved; use strings",
    ),
    "traced number": (
        lambda: traced(lambda x: codec.describe("params", x, {})),
        "params is traced; save outside jit, vmap and",
    ),
    "text in an array": (
        lambda: codec.describe("params", np.array(["a"]), {}),
        "params has type <U1, which cannot be saved; use plain numbers",
    ),
    "equal names": (
        lambda: codec.describe("p", {"a": {"b": 1.0}, "a.b": 2.0}, {}),
        "two numbers would be saved as p.a.b; give their keys names without dots",
    ),
    "changed record": (
        lambda: codec.rebuild({"record": MADE, "fields": {}}, {}, {}),
        "the saved record .* does not fit this version: it lacks mass",
    ),
    "unknown record": (
        lambda: codec.rebuild({"record": "gone.away:Record", "fields": {}}, {}, {}),
        "the saved record gone.away:Record is unknown; import gone.away before loading",
    ),
    "run": (
        lambda: nsjax.run(3, MOREAU, "run.npz", dt=1e-3, steps=2),  # type: ignore[arg-type]
        "run: problem = 3; it must be an nsjax.Problem",
    ),
    "run traced": (
        lambda: traced(lambda x: nsjax.run(BALL, MOREAU, "run.npz", dt=1e-3 * x, steps=2).q),
        "run: works on plain numbers; inside jit, vmap and grad use nsjax.simulate",
    ),
    "period": (
        lambda: nsjax.run(BALL, MOREAU, "run.npz", dt=1e-3, steps=2, period=-1.0),
        "run: period = -1.0; give seconds between two checkpoints",
    ),
    "damaged": (of_damaged, "run.npz is damaged: it lacks 'carry'"),
    "no name": (lambda: io.check_writable(""), "the file name is empty; give a path"),
    "no file": (lambda: io.load("none.npz"), "none.npz does not exist"),
    "impacts": (
        lambda: files._check_events(BALL.system, {}),  # type: ignore[arg-type]
        "it is damaged: events is a dict",
    ),
    "shape of impacts": (
        lambda: list_of(contact=np.zeros(2)),
        r"it is damaged: events.contact has shape \(2,\) beside times \(3,\)",
    ),
    "functions": (
        lambda: rebuilt(restorable=False),
        "the scheme 'moreau' has functions of its own, which are not saved",
    ),
    "number of a scheme": (
        lambda: rebuilt(numbers={"gone": 1.0}),
        "moreau has no number 'gone' in this version",
    ),
    "criterion": (
        lambda: rebuilt(criteria={"gone": 1}),
        "moreau: there is no criterion 'gone' in this version",
    ),
    "option of a scheme": (
        lambda: rebuilt(options={"gone": 1}),
        "moreau has no option 'gone' in this version",
    ),
    "scheme": (lambda: rebuilt(name="moro"), "the scheme 'moro' is none of the package; "),
    "option that is a function": (
        lambda: saved_scheme._plain(main, MOREAU),
        "moreau has the option .*, which cannot be saved",
    ),
    "scheme inside": (of_a_scheme_inside, "version 0.1 did not save the scheme inside; pass it"),
    "printed option": (
        lambda: rebuilt(options="Options(none)"),
        r"moreau: version 0.1 did not save the option Options\(none\); pass the scheme",
    ),
    "printed function": (
        lambda: saved_scheme._options(main, "<function mine at 0x1>", MOREAU),
        "moreau: version 0.1 did not save the function mine; pass the scheme",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make, words = CASES[name]
    with pytest.raises((InputError, TypeError), match=words):
        make()
    assert not list(tmp_path.iterdir())


SPHERE = "import nsjax\nfrom nsjax import models\nproblem = models.bouncing_ball()\n"
CONFIG = 'model = "bouncing_ball"\ndt = 0.1\n[train]\nrestitution = "positive"\n'
HINGED = """<robot name="r"><link name="base"/><link name="arm"><inertial>
<origin xyz="1 0 0"/><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="pin" type="continuous"><parent link="base"/><child link="arm"/>
<axis xyz="0 1 0"/></joint></robot>"""

FILES = {
    "empty.toml": "dt = 0.1\n",
    "blank.toml": f"{CONFIG}[[data]]\nnoise = 0.1\n",
    "other.toml": f'{CONFIG}[[data]]\nfile = "t.csv"\ncolumns = {{ y = "hight" }}\n',
    "kind.toml": CONFIG.replace("positive", "postive") + '[[data]]\nfile = "t.csv"\n',
    "t.csv": "t,y\n0.1,1\n0.2,2\n",
    "short.csv": "t,y\n0.1\n",
    "words.csv": "t,y\n0.1,one\n",
    "arm.urdf": HINGED,
    "own.py": SPHERE,
}

COMMANDS = {
    "identify empty.toml": "empty.toml: model is missing; see nsjax identify --help",
    "identify blank.toml": "blank.toml: a recording has no file",
    "identify other.toml": "t.csv: no column 'hight'; ",
    "identify kind.toml": "transform = 'postive'; ",
    "simulate bounzing-ball": "; or give a Python file, a URDF or MJCF",
    "simulate gone.py": "gone.py does not exist",
    "simulate bouncing-ball --scheme moro": "unknown scheme 'moro'; ",
    "simulate bouncing-ball --set hight=1": "bouncing_ball: unknown parameter 'hight'; ",
    "simulate block --set dimension=four": "block: dimension = 'four'; give a whole number",
    "simulate arm.urdf --set start=3": "--set start=3: write it as {'joint': 0.3}",
    "simulate own.py": "own.py has no default step size and duration; give --dt and --time",
    "simulate bouncing-ball --animate run.avi": "run.avi: animations are pages or films; end the name in",
    "sweep own.py dt=0.1:0.2:2": "own.py has no default duration; give --time",
    "sweep bouncing-ball height=1": "height: nothing varies; give at least two values",
    "sweep bouncing-ball restitution=0.1:0.2:2 --quantity hight": "--quantity hight: ",
    "sweep bouncing-ball restitution=0.1:0.2:2 --devices 0": "--devices 0; it must be at least 1",
    "reproduce gone/fig1": "reproduce: unknown 'gone/fig1'; ",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(
    command: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    assert main(command.split()) == 2
    assert COMMANDS[command] in capsys.readouterr().err


def test_tables(tmp_path: pathlib.Path) -> None:
    for name in ("short.csv", "words.csv"):
        (tmp_path / name).write_text(FILES[name])
    with pytest.raises(
        InputError, match="row 2 has 1 entries, the heading 2 names; a missing value is an empty"
    ):
        identify.read_columns(tmp_path / "short.csv")
    with pytest.raises(InputError, match="row 2, column y: 'one' is no number"):
        identify.read_columns(tmp_path / "words.csv")


def test_experiments_that_are_not_there(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(importlib.import_module("nsjax.cli.commands"), "PACKAGE", "none")
    assert main(["reproduce", "table4"]) == 2
    assert "reproduce: the experiments are not installed; use a checkout" in capsys.readouterr().err


def test_a_factory_that_cannot_make_it() -> None:
    with pytest.raises(InputError, match="spring cannot be made with stiffness='soft': no number"):
        inputs._call("spring", spring, {"stiffness": "soft"})


def spring(stiffness: Any) -> None:
    raise TypeError("no number")


def test_a_checkpoint_of_a_scheme_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its functions are not in the file, and nobody passes them."""
    found = types.SimpleNamespace(traj=None, scheme=None, scheme_note="it is one's own")
    monkeypatch.setattr(driver, "load", lambda *given, **more: found)
    monkeypatch.setattr(driver, "read_unfinished", lambda path: {})
    with pytest.raises(InputError, match=r"it is one's own; pass the scheme, resume\(path, scheme=...\)"):
        nsjax.resume("run.npz")
