"""The command line: what it runs, prints, writes and refuses."""

from __future__ import annotations

import io as stdio
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import nsjax
from nsjax import cli, io, models, schemes
from nsjax.cli import inputs, report
from nsjax.io import archive
from nsjax.multibody import LeftOutWarning, assemble, read_urdf
from nsjax.report import contact_table
from tests.cli.refusals import refused

BALL = ["simulate", "bouncing-ball"]


@pytest.mark.slow
def test_a_run_is_summed_up_and_saved(capsys) -> None:
    argv = [
        *BALL, "--steps", "1000", "--every", "10", "--set", "restitution=0.5", "--set", "initial_v=[-1]",
    ]  # fmt: skip
    assert cli.main([*argv, "--output", "run.npz", "--plot", "run.svg"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    problem, traj = io.load("run.npz")
    expected = models.bouncing_ball(restitution=0.5, initial_v=[-1.0])
    assert problem.params == expected.params
    whole = nsjax.simulate(*expected, schemes.moreau(), dt=1e-3, steps=1000, every=10)
    assert np.array_equal(traj.q, whole.q)
    words = dict(line.split(maxsplit=1) for line in out.splitlines() if line and line[:7] != "ball on")
    assert words["model"] == "bouncing_ball"
    assert words["scheme"] == "moreau"
    assert words["steps"].startswith("1000 of dt = 0.001 s, from t = 0 s to 1 s")
    row = next(line for line in out.splitlines() if line.startswith("ball on table"))
    closed = f"{1e3 * whole.closed_time.sum():.5g} ms"
    deepest = f"{-1e3 * whole.gap_min.min():.5g} mm"
    assert row.split()[3:] == [str(whole.impacts.sum()), *closed.split(), *deepest.split()]
    assert words["penetration"] == f"{deepest} at most (ball on table)"
    energy = whole["energy"]
    assert words["energy"].startswith(f"{energy[0]:.5g} J at the start, {energy[-1]:.5g} J at the end")
    assert f"difference {energy[-1] - energy[0]:.5g} J" in words["energy"]
    assert "steps/s" in words["time"]
    assert out.splitlines()[-2:] == ["wrote            run.npz", "wrote            run.svg"]
    assert pathlib.Path("run.svg").read_text().startswith("<?xml")
    header = io.header("run.npz")
    assert header["scheme"]["name"] == "moreau"
    assert header["metadata"] == {"steps": 1000, "every": 10}
    assert {p.name for p in pathlib.Path().iterdir()} == {"run.npz", "run.svg"}


def test_figures_are_in_print_quality() -> None:
    assert cli.main([*BALL, "--steps", "10", "--quiet", "--plot", "run.png"]) == 0
    assert int.from_bytes(pathlib.Path("run.png").read_bytes()[16:20], "big") == 1400  # 7 in, 200 dpi


def test_quiet_says_nothing(capsys) -> None:
    assert cli.main([*BALL, "--steps", "10", "--quiet", "--output", "run.npz"]) == 0
    assert capsys.readouterr() == ("", "")
    assert io.load("run.npz").traj.t.shape == (11,)


def test_lengths(monkeypatch) -> None:
    def plan(*argv: str) -> inputs.RunPlan:
        return inputs.make_plan(cli._parser().parse_args([*BALL, *argv]))

    entry = models.REGISTRY["bouncing_ball"]
    assert (plan().dt, plan().steps) == (entry.dt, round(entry.time / entry.dt))
    assert plan("--dt", "7e-4").steps == round(entry.time / 7e-4)  # the default duration bends
    assert (plan("--time", "0.5").steps, plan("--steps", "7").steps) == (500, 7)
    assert (plan("--steps", "20000").every, plan("--steps", "20000", "--every", "8").every) == (4, 8)


@pytest.mark.parametrize("steps", [1, 7, 4999, 5000, 5001, 20_000, 20_011, 123_456, 10_000_019])
def test_default_number_of_rows(steps: int) -> None:
    every = inputs.default_every(steps)
    rows = steps // every
    assert steps % every == 0
    prime = steps in (20_011, 10_000_019)  # these have no divisor that leaves a useful number of rows
    assert rows <= 5000 or prime
    assert rows >= min(steps, 500)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["slidercrank"], "unknown model 'slidercrank'; did you mean 'slider_crank'?"),
        (["slider-crank", "--scheme", "moreu"], "unknown scheme 'moreu'; did you mean 'moreau'?"),
        (["slider-crank", "--set", "fricton=1"], "unknown parameter 'fricton'; did you mean 'friction'?"),
        (["slider-crank", "--set", "scheme.contact_tolerence=1"], "did you mean 'contact_tolerance'?"),
        (["slider-crank", "--set", "friction"], "write it as NAME=VALUE"),
        (["slider-crank", "--set", "torque=1", "--set", "torque=2"], "torque is set twice; leave"),
        (["slider-crank", "--set", "friction=0.1.2"], "0.1.2 is no number, list or word"),
        (["slider-crank", "--set", "friction=['a']"], "give a list of numbers"),
        (["slider-crank", "--set", "friction=-1"], "friction = -1.0; it must not be negative"),
        (["slider-crank", "--set", "friction=high"], "slider_crank: friction = 'high'; numbers"),
        (["bouncing-ball", "--set", "balls=x"], "bouncing_ball: balls = 'x'; give a whole number"),
        (["bouncing-ball", "--set", "height=-1"], "the start penetrates"),
        (["bouncing-ball", "--dt", "-1"], "dt = -1.0; it must be positive"),
        (["bouncing-ball", "--dt", "7e-4", "--time", "1"], "the nearest are 0.9996 and 1.0003"),
        (["bouncing-ball", "--steps", "10", "--every", "3"], "the nearest are 9 and 12"),
        (["bouncing-ball", "--steps", "10", "--every", "0"], "every = 0"),
        (["none.py"], "none.py does not exist"),
        (["bouncing-ball", "--output", "none/run.npz"], "the folder none does not exist"),
        (["bouncing-ball", "--output", "."], "--output .: runs are saved as .npz"),
        (["bouncing-ball", "--output", "run.txt"], "--output run.txt: runs are saved as .npz"),
        (["bouncing-ball", "--dt", "-1e-3"], "dt = -0.001; it must be positive"),
        (["bouncing-ball", "--dt", "1e-3", "--time", "-1e-1"], "time = -0.1; it must be positive"),
        (["bouncing-ball", "--steps", "1000000000000", "--every", "1"], "1000000000000 rows of"),
        (["bouncing-ball", "--plot", "run.docx"], "no figure format 'docx'"),
        (["bouncing-ball", "--plot", "run.npz", "--output", "./run.npz"], "no figure format 'npz'"),
    ],
)
def test_refusals(capsys, argv: list[str], words: str) -> None:
    assert words in refused(capsys, "simulate", *argv)


def test_places_are_refused_before_the_run(capsys, monkeypatch) -> None:
    def never(*_, **__):
        raise AssertionError("ran")

    monkeypatch.setattr(nsjax, "simulate", never)
    refused(capsys, *BALL, "--output", "none/run.npz")
    refused(capsys, *BALL, "--plot", "none/run.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "nsjax[plot]" in refused(capsys, *BALL, "--plot", "run.png")


def test_bad_usage_and_help_are_argparses(capsys) -> None:
    assert cli.main([]) == 2
    assert cli.main([*BALL, "--steps", "1", "--time", "1"]) == 2
    assert "not allowed with" in capsys.readouterr().err
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"nsjax {nsjax.__version__}\n"


def test_a_failed_run_is_saved_and_told(capsys) -> None:
    argv = ["simulate", "slider-crank", "--set", "initial_v=[1e170,0,0]", "--steps", "4"]
    assert cli.main([*argv, "--output", "run.npz", "--plot", "run.png"]) == 1
    out, err = capsys.readouterr()
    assert err.startswith(
        "nsjax: step 1, t = 1e-05 s: the force function returned a value that is not finite"
    )
    assert "Remedy:" in err
    assert out == "wrote            run.npz (a run that failed; see its status)\n"
    with pytest.raises(nsjax.RunError):
        io.load("run.npz").traj.raise_for_status()
    assert [p.name for p in pathlib.Path().iterdir()] == ["run.npz"]


def test_a_full_disk_leaves_nothing(capsys, monkeypatch) -> None:
    def full(file, arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive, "_write", full)
    assert cli.main([*BALL, "--steps", "10", "--output", "run.npz"]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert list(pathlib.Path().iterdir()) == []


def test_an_interruption_leaves_nothing(capsys, monkeypatch) -> None:
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(nsjax, "simulate", interrupt)
    assert cli.main([*BALL, "--output", "run.npz"]) == 130
    assert capsys.readouterr().err == "nsjax: interrupted\n"
    assert list(pathlib.Path().iterdir()) == []


def test_list_names_everything(capsys) -> None:
    assert cli.main(["list"]) == 0
    out = capsys.readouterr().out
    for name, entry in (*models.REGISTRY.items(), *schemes.REGISTRY.items()):
        line = next(line for line in out.splitlines() if line.split()[:1] == [name])
        assert line.endswith(entry.summary)


FUNCTION = """
from nsjax import models
def problem(restitution=0.8, height=1.0):
    return models.bouncing_ball(restitution=restitution, height=height)
"""


def run_file(text: str, *argv: str) -> int:
    pathlib.Path("my_ball.py").write_text(text)
    return cli.main(["simulate", "my_ball.py", "--dt", "1e-3", "--steps", "20", *argv])


@pytest.mark.parametrize("text", [FUNCTION, "from nsjax import models\nproblem = models.bouncing_ball()"])
def test_a_file_with_a_problem(text: str) -> None:
    assert run_file(text, "--set", "restitution=0.5", "--output", "run.npz", "--quiet") == 0
    assert io.load("run.npz").problem.params.restitution == 0.5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\ny = nothing", "my_ball.py, line 2: NameError: name 'nothing' is not defined"),
        ("def problem(:", "my_ball.py: SyntaxError"),
        ("def problem():\n    return 1 / 0", "my_ball.py, line 2: ZeroDivisionError"),
        ("def problem():\n    return 3", "found int instead of a problem"),
        ("x = 1", "found NoneType instead of a problem; write a function problem()"),
        (FUNCTION, "problem(): unknown parameter 'hight'; did you mean 'height'?"),
        ("from nsjax import models\nproblem = models.bouncing_ball()", "unknown parameter 'hight'"),
    ],
)
def test_a_file_that_is_wrong(capsys, text: str, words: str) -> None:
    assert run_file(text, "--set", "hight=2" if "nsjax" in text else "scheme.contact_tolerance=1e-9") == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


PENDULUM = """<robot name="pendulum"><link name="world"/><link name="bob">
<inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="pin" type="revolute"><parent link="world"/><child link="bob"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="0.5" effort="1" velocity="1"/></joint></robot>"""


def test_a_mechanism_of_a_model_file(capsys) -> None:
    """Keywords of the reader, the start and numbers by name; the report names joints."""
    pytest.importorskip("mujoco")
    pathlib.Path("arm.urdf").write_text(PENDULUM)
    settings = ["restitution=0.3", "start={'pin': (0.499, 2.0)}", "bob.mass=3.0"]
    argv = ["simulate", "arm.urdf", "--dt", "1e-3", "--steps", "2", "--output", "run.npz"]
    assert cli.main([*argv, *(word for x in settings for word in ("--set", x))]) == 0
    out, err = capsys.readouterr()
    assert "velocity of <limit>" in err
    assert next(x.split()[1] for x in out.splitlines() if x.startswith("pin.upper")) == "1"
    with pytest.warns(LeftOutWarning):
        file = read_urdf("arm.urdf")
    problem, traj = io.load("run.npz", problem=assemble(*file, gravity=file.gravity))
    assert problem.params["bob"].mass == 3.0
    assert traj["pin.omega"][0] == 2.0
    assert np.isclose(traj["pin.omega"][-1], -0.6, atol=0.02)  # one impact, gravity for 2 ms
    words = refused(capsys, "simulate", "gone.urdf", "--dt", "1e-3", "--steps", "2")
    assert "gone.urdf does not exist" in words


FOLDED = """<mujoco><worldbody><body><joint name="pin" range="30 70"/><geom size="0.1"/></body></worldbody>
<actuator><motor name="m" joint="pin"/></actuator>
<keyframe><key name="home" qpos="0.8" qvel="0.3" ctrl="0.7"/></keyframe></mujoco>"""


def test_a_key_frame_of_a_model_file() -> None:
    pytest.importorskip("mujoco")
    pathlib.Path("arm.xml").write_text(FOLDED)
    problem = inputs.read_problem("arm.xml", {"start": "home"})[0]
    assert problem.state.q[0] == 0.8
    assert problem.state.v[0] == 0.3
    assert problem.params["m"].own.control == 0.7
    with pytest.raises(
        nsjax.InputError, match=r"'knee': write it as \{'joint': 0.3\}, or name a key .*: home"
    ):
        inputs.read_problem("arm.xml", {"start": "knee"})


def test_a_file_is_not_overwritten_and_needs_lengths(capsys) -> None:
    assert run_file(FUNCTION, "--output", "my_ball.py") == 2
    assert pathlib.Path("my_ball.py").read_text() == FUNCTION
    assert "runs are saved as .npz" in capsys.readouterr().err
    pathlib.Path("my_ball.npz").write_text(FUNCTION)  # a file of another name is read as well
    assert "must be different files" in refused(
        capsys, "simulate", "my_ball.npz", "--output", "./my_ball.npz", "--dt", "1e-3", "--time", "1"
    )
    assert "give --dt and --time" in refused(capsys, "simulate", "my_ball.py", "--dt", "1e-3")


class Terminal(stdio.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_for_terminals_and_long_runs(monkeypatch, terminal: bool) -> None:
    clock = iter([0.0, 0.9, 2.0, 2.05, 4.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    stream = Terminal(terminal)
    progress = report.Progress(stream=stream)
    for done in (0, 900, 2000, 2050, 4000):
        progress(done, 8000)
    progress.clear()
    shown = [part for part in stream.getvalue().split("\r\x1b[K") if part]
    assert shown == (
        [" 25 %, 2,000 of 8,000 steps, 6 s left", " 50 %, 4,000 of 8,000 steps, 4 s left"]
        if terminal
        else []
    )
    assert stream.getvalue().endswith("\r\x1b[K") or not terminal
    assert "\n" not in stream.getvalue()


def test_many_contacts_are_cut_short() -> None:
    problem = models.bouncing_ball(balls=20)
    traj = nsjax.simulate(*models.bouncing_ball(), schemes.moreau(), dt=1e-3, steps=10)
    rows = np.zeros((11, 20))
    traj = type(traj)(**{
        **{name: getattr(traj, name) for name in traj.__dataclass_fields__},
        "system": problem.system, "impacts": rows.astype(int), "closed_time": rows + 1e-3,
        "gap_min": 1.0 - rows,
    })  # fmt: skip
    table = contact_table(traj)
    assert len(table) == 3 + 12 + 1
    assert table[-2] == "(8 more contacts, with fewer impacts)"


@pytest.mark.slow
def test_a_second_process_finds_the_compiled_programs(tmp_path: pathlib.Path) -> None:
    code = (
        "import sys; from nsjax.cli import main; assert main(['--help']) == 0; "
        "assert main(['simulate', 'bouncing-ball', '--steps', '10', '--quiet']) == 0; "
        "assert 'matplotlib' not in sys.modules"
    )
    environment = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    found = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        found.append({p.name for p in (tmp_path / "cache" / "nsjax").rglob("*")})
    assert any("advance" in name for name in found[0])
    programs = [{name for name in names if name.endswith("-cache")} for names in found]
    assert programs[0] == programs[1]  # the second compiled nothing that the first had not


def test_extras_that_are_missing_are_named(capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "figures need matplotlib; install it with: pip install 'nsjax[plot]'" in refused(
        capsys, "reproduce", "gear_gupta_leimkuhler/fig04"
    )


def test_no_traceback_reaches_the_user(capsys, monkeypatch) -> None:
    def broken(*_):
        raise ArithmeticError("a fault of our own\nwith details")

    monkeypatch.setattr(cli, "make_plan", broken)
    assert cli.main(BALL) == 1
    told = "nsjax: ArithmeticError: a fault of our own; NSJAX_TRACEBACK=1 in the environment shows where\n"
    assert capsys.readouterr().err == told
    monkeypatch.setenv("NSJAX_TRACEBACK", "1")
    with pytest.raises(ArithmeticError):
        cli.main(BALL)


@pytest.mark.slow
def test_warnings_are_told_in_a_line(capsys) -> None:
    """The stiff bar by an explicit scheme: warned of with the largest step, and failed."""
    argv = ["simulate", "elastic-bar", "--scheme", "moreau", "--dt", "1e-2", "--steps", "100", "--quiet"]
    assert cli.main([*argv, "--set", "elements=40"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("nsjax: warning: simulate: dt = 0.01 s is above the largest stable step")
    assert lines[-1].startswith("nsjax: step ")
    assert "the motion diverges" in lines[-1]
    assert all(line.startswith("nsjax: ") for line in lines)


def test_a_run_is_animated(tmp_path, capsys) -> None:
    page = tmp_path / "run.html"
    given = ["simulate", "bouncing-ball", "--dt", "1e-3", "--steps", "20", "--animate", str(page)]
    assert cli.main(given) == 0
    assert f"wrote            {page}" in capsys.readouterr().out
    assert "bouncing ball: moreau, dt = 0.001 s, t = 0 to 0.02 s" in page.read_text(encoding="utf-8")
    assert cli.main([*given[:-1], str(tmp_path / "run.avi")]) == 2
    assert "animations are pages or films; end the name in .html, .gif or .mp4" in capsys.readouterr().err
