"""Inputs tried on the command line and what they are answered: ``python -m tests.inputs`` prints the table.

Commands are drawn at random from words that people mistype, and damaged files are read. Nothing is
compiled: a command that would run ends where its time loop begins.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io as stdio
import itertools
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

from nsjax import cli

DRAWS = 240
SEED = 20

NUMBERS = (
    "0", "-1", "nan", "inf", "-inf", "1e-3", "1e400", "1e-400", "1e12", "0x10", "1,5", "one", "", " ", "1e",
    "2.5", "True", "None", "1_000", "٣", "10", "3", "[1]", "1e-3s",
)  # fmt: skip
MODELS = (
    "bouncing-ball", "bouncing_ball", "mass-spring-chain", "bouncing", "BOUNCING-BALL", "", "ball.py",
    "gone.py", "broken.py", "words.txt", "folder", "none.urdf", "words.xml", "empty.py", ".", "/dev/null",
    "raises.py", "binary.npz", "words.urdf",
)  # fmt: skip
SCHEMES = ("moreau", "moreau-theta", "bathe", "generalized_alpha", "Moreau", "moreau()", "", "euler", "1")
SETTINGS = (
    "friction=0.1", "friction=-1", "friction=nan", "friction=1e400", "friction", "=1", "friction=", "a=b=c",
    "friction=[1,2]", "friction=[1,[2]]", "friction={}", "friction=None", "friction='x'", "friction=1j",
    "friction=lambda:0", "friction=(", "friction=[" * 40, "restitution=2", "restitution=True", "balls=0",
    "balls=-1", "balls=2.5", "balls=1e3", "balls=[1]", "dimension=3", "dimension=7", "dimension=None",
    "height=-1", "height=[1,2,3]", "initial_v=[1]", "initial_v=[1,2,3,4]", "initial_v=1", "initial_q='a'",
    "initial_v=[nan]", "mass=0", "mass=-1", "mass=[]", "scheme.contact_tolerance=-1",
    "scheme.contact_tolerance=nan", "scheme.contact_tolerance='a'", "scheme.theta=2", "scheme.=1",
    "scheme.solver=none", "scheme.rho_infinity=3",
    "scheme.rho_infinity=None", "speed=1e308", "gravity=1e308", "support=spring", "support=3",
    "__class__=1",
    "table_amplitude=1", "initial_time=[0,1]", "initial_time=x", "prepare=1", "self=1", "gravity=b'1'",
    "friction=10**400", "friction=1" + "0" * 400, "balls=10000000000", "masses=0", "masses=[1,2]",
)  # fmt: skip
PLACES = (
    "run.npz", "run.png", "run.html", "run.docx", "", ".", "folder", "gone/run.npz", "words.txt",
    "words.txt/run.npz", "ball.py", "run", ".npz", "x" * 300 + ".npz", "/dev/full", "/proc/x.png",
    "folder/", "ö ü.png",
)  # fmt: skip
AXES = (
    "restitution=0:1:3", "restitution=0.1,0.9", "restitution", "=0:1:3", "restitution=", "restitution=1",
    "restitution=0:1", "restitution=0:1:0", "restitution=0:1:-3", "restitution=0:1:1e12",
    "restitution=a:b:c",
    "restitution=0:1:3:log", "restitution=1:2:3:lin", "restitution=nan,1", "restitution=0:inf:3",
    "restitution=,", "restitution=1,,2", "dt=1e-3,2e-3", "dt=0,1", "dt=-1:1:3", "time=1,2", "steps=1,2",
    "balls=1,2", "scheme.contact_tolerance=1e-9,1e-8", "scheme.rho=1,2", "state.q[0]=1,2", "state.q[9]=1,2",
    "state=1,2", "params.restitution=0.1,0.2", "params.=1,2", "friction=[1],[2]", "mass=0,1", "height=-1,1",
    "initial_v=1,2", "dimension=2,3", "label=1,2", "gravity=1:1:3",
)  # fmt: skip
QUANTITIES = ("impacts", "energy_loss", "penetration", "y", "", "nothing", "lyapunov")
CONFIGS = (
    "good.toml", "gone.toml", "words.txt", "folder", "binary.npz", "", "ball.py", "/dev/null", "text.toml",
    "types.toml", "list.toml", "data.toml", "numbers.toml", "columns.toml", "negative.toml", "options.toml",
    "start.toml", "loss.toml", "adam.toml", "time.toml", "model.toml", "name.toml",
)  # fmt: skip
RESUMED = ("run.npz", "gone.npz", "binary.npz", "words.txt", "folder", "", "foreign.npz", "/dev/null")
PAPERS = (
    "", "/", "nsga", "nsga/", "/fig02", "nsga/fig99", "gone/fig01", "nsga/fig0", "../nsga/fig02",
    "nsga\\fig02", "nsga/fig02/x", "NSGA/FIG02", "1", "nsga/fig02_block.py", "sweeps/fig", "\n",
)  # fmt: skip

BALL = """from nsjax import models


def problem(height=0.1):
    return models.bouncing_ball(height=height)
"""
GOOD = """model = "bouncing-ball"
dt = 1e-3
[train]
restitution = {transform = "interval", low = 0.0, high = 1.0}
[[data]]
file = "measured.csv"
noise = 1e-3
"""
CHANGES = {
    "good": ("", ""), "text": ('"bouncing-ball"', '"bouncing-ball'), "types": ("dt = 1e-3", 'dt = "fast"'),
    "list": ("[train]\n", "train = 3\n[other]\n"), "data": ('"measured.csv"', "3"),
    "numbers": ("noise = 1e-3", "noise = -1.0"), "columns": ("noise = 1e-3", 'columns = {z = "y"}'),
    "negative": ("dt = 1e-3", "dt = -1e-3"), "options": ("[train]", '[options]\nstarts = "many"\n[train]'),
    "start": ("noise = 1e-3", "start = 3"), "loss": ("[train]", '[options]\nloss = "cubes"\n[train]'),
    "adam": ("[train]", '[options]\nmethod = "adem"\n[train]'), "time": ("noise = 1e-3", 'time = "clock"'),
    "model": ('model = "bouncing-ball"', "model = 3"), "name": ("noise = 1e-3", "name = 3\nnoise = [1, 2]"),
}  # fmt: skip
"""What is replaced in `GOOD` by what."""


def prepare() -> None:
    """Files in the current folder that commands name."""
    here = pathlib.Path()
    (here / "folder").mkdir()
    texts = {
        "ball.py": BALL, "broken.py": "def problem(:", "empty.py": "", "words.txt": "no model",
        "raises.py": "def problem():\n    raise SystemExit(3)\n", "words.xml": "no model",
        "words.urdf": "<robot name='a'><link/></robot>",
        "measured.csv": "t,y\n0,0.05\n0.01,0.0495\n0.02,0.048\n",
    }  # fmt: skip
    for name, text in texts.items():
        (here / name).write_text(text)
    for name, (old, new) in CHANGES.items():
        (here / f"{name}.toml").write_text(GOOD.replace(old, new) if old else GOOD)
    (here / "binary.npz").write_bytes(bytes(range(256)))
    np.savez(here / "foreign", q=np.zeros(3))


def _some(draw: np.random.Generator, words: Sequence[str]) -> str:
    return words[int(draw.integers(len(words)))]


def _run_words(draw: np.random.Generator) -> list[str]:
    """What `simulate` and `sweep` share, each thrown in by a coin."""
    found = []
    for option, words in (
        ("--scheme", SCHEMES), ("--dt", NUMBERS), ("--steps", NUMBERS), ("--time", NUMBERS),
        ("--set", SETTINGS), ("--set", SETTINGS), ("--output", PLACES), ("--plot", PLACES),
    ):  # fmt: skip
        if draw.random() < 0.12:
            found += [option, _some(draw, words)]
    return found


def drawn(draw: np.random.Generator) -> list[str]:
    """One command."""
    kind = draw.random()
    model = "bouncing-ball" if draw.random() < 0.7 else _some(draw, MODELS)
    if kind < 0.5:
        found = ["simulate", model, *_run_words(draw)]
        for option, words in (
            ("--every", NUMBERS), ("--animate", PLACES), ("--checkpoint", PLACES), ("--period", NUMBERS),
        ):  # fmt: skip
            if draw.random() < 0.1:
                found += [option, _some(draw, words)]
    elif kind < 0.75:
        found = [
            "sweep", model, *(_some(draw, AXES) for _ in range(int(draw.integers(3)))), *_run_words(draw),
        ]  # fmt: skip
        for option, words in (("--quantity", QUANTITIES), ("--devices", ("0", "-1", "x", "1"))):
            if draw.random() < 0.1:
                found += [option, _some(draw, words)]
    elif kind < 0.85:
        found = ["identify", _some(draw, CONFIGS)]
        if draw.random() < 0.3:
            found += [_some(draw, ("--output", "--plot")), _some(draw, PLACES)]
    elif kind < 0.9:
        found = ["resume", _some(draw, RESUMED)]
    elif kind < 0.97:
        found = ["reproduce", _some(draw, PAPERS)]
    else:
        found = [_some(draw, ("lst", "", "simulate", "sweep", "--versions", "list"))]
    return found


def commands(seed: int = SEED, count: int = DRAWS) -> list[list[str]]:
    """Commands at random."""
    draw = np.random.default_rng(seed)
    return [drawn(draw) for _ in range(count)]


class Begins(BaseException):
    """The time loop of a command that may run."""


@contextlib.contextmanager
def nothing_runs() -> Iterator[None]:
    """Time loops of runs, sweeps and searches end with `Begins`."""

    def begins(*_: Any, **__: Any) -> None:
        raise Begins

    places = (
        ("nsjax.simulate", "_advance"), ("nsjax.sweep.run", "_chunk"),
        ("nsjax.identify.objective", "evaluate"),
        ("nsjax.sweep.program", "spread"), ("nsjax.cli.commands", "require_matplotlib"),
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        for module, name in places:
            stack.enter_context(mock.patch.object(importlib.import_module(module), name, begins))
        yield


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a command came to.

    Args:
        argv: the command.
        code: its exit status; None if it would have run.
        told: what it wrote on stderr.
    """

    argv: tuple[str, ...]
    code: int | None
    told: str

    def fault(self) -> str:
        """What is wrong with the answer, "" if nothing is."""
        if self.code is None or self.code == 0:
            return ""
        lines = [x for x in self.told.splitlines() if not x.startswith("nsjax: warning: ")]
        if self.argv and lines and re.match(r"usage: nsjax", lines[0]):  # argparse
            return "" if "error:" in lines[-1] else "usage without a reason"
        if len(lines) != 1 or not lines[0].startswith("nsjax: "):
            return f"{len(lines)} lines"
        if re.match(r"nsjax: \w*(Error|Exception|Exit)\b", lines[0]) or "NSJAX_TRACEBACK" in lines[0]:
            return "an exception without a sentence of its own"
        if len(lines[0]) > 700 + 2 * sum(map(len, self.argv)):
            return f"{len(lines[0])} characters"
        return "" if self.code in (1, 2) else f"status {self.code}"


def answer(argv: Sequence[str]) -> Answer:
    """Runs a command in an empty folder with the files of `prepare`."""
    before, path = os.getcwd(), list(sys.path)
    told = stdio.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            prepare()
            with (
                nothing_runs(),
                contextlib.redirect_stderr(told),
                contextlib.redirect_stdout(stdio.StringIO()),
            ):
                code: int | None = cli.main(list(argv))
        except Begins:
            code = None
        finally:
            os.chdir(before)
            sys.path[:] = path
    return Answer(tuple(argv), code, told.getvalue().replace(folder, "."))


def table(answers: Sequence[Answer]) -> str:
    """Command and answer, one line each."""
    lines = []
    for x in answers:
        command = " ".join(repr(word) if not word or re.search(r"\s", word) else word for word in x.argv)
        last = (x.told.strip().splitlines() or [""])[-1].removeprefix("nsjax: ")
        said = "runs" if x.code is None else f"{x.code}: {last}"
        lines.append(f"{x.fault() and 'WRONG '}{command[:200]} -> {said}")
    return "\n".join(lines)


if __name__ == "__main__":
    seeds = [int(x) for x in sys.argv[1:]] or [SEED]
    found = [answer(argv) for argv in itertools.chain(*(commands(seed) for seed in seeds))]
    print(table(found))
    wrong = sum(bool(x.fault()) for x in found)
    print(
        f"{len(found)} commands, {sum(x.code is None for x in found)} would run, {wrong} answered wrongly"
    )
