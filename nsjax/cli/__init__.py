"""The command line: ``nsjax simulate``, ``sweep``, ``identify``, ``list``, ``reproduce`` and ``docs``."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import nsjax
from nsjax import io, models, schemes
from nsjax.cli import identify, sweep, warm
from nsjax.cli.commands import (
    add_documents,
    add_resume_options,
    begin_with_checkpoints,
    reproduce,
    resume_run,
)
from nsjax.cli.inputs import SAVED_ROWS, RunPlan, make_plan
from nsjax.cli.report import Progress, tell
from nsjax.core import InputError
from nsjax.trajectory import RunError, Trajectory

__all__ = ["main"]

TRACEBACK = "NSJAX_TRACEBACK"
"""Environment variable that makes unexpected faults show their traceback."""


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``nsjax``.

    Args:
        argv: arguments without the program's name; None: those of the process.

    Returns:
        0 after success, 1 after a run or a write that failed, 2 for input that cannot be run, 130 after
        an interruption. Every result other than 0 has one sentence on stderr.

    Example:
        >>> from nsjax.cli import main
        >>> main(["simulate", "slidercrank"])  # on stderr: unknown model, did you mean 'slider_crank'?
        2
    """
    nsjax.configure(announce=False)  # the command has its own progress line
    try:
        args = _parser().parse_args(joined(sys.argv[1:] if argv is None else argv))
    except SystemExit as stop:  # argparse has written the reason
        return stop.code if isinstance(stop.code, int) else 2
    try:
        with told_warnings():
            return int(args.command(args))
    except InputError as error:
        code, sentence = 2, str(error)
    except ImportError as error:  # an extra is not installed
        code, sentence = 2, f"{error}; install the package's extras, pip install 'nsjax[plot]' for instance"
    except (RunError, OSError) as error:
        code, sentence = 1, str(error)
    except MemoryError as error:
        code = 2
        sentence = f"this is too large for the machine: {error}; give fewer bodies, elements or rows"
    except KeyboardInterrupt as stop:
        code, sentence = 130, str(stop) or "interrupted"
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        first = (str(error).splitlines() or [""])[0]
        code, sentence = 1, f"{type(error).__name__}: {first}; {TRACEBACK}=1 in the environment shows where"
    print(f"nsjax: {sentence}", file=sys.stderr)
    return code


def joined(argv: Sequence[str]) -> list[str]:
    """Arguments in which a negative number belongs to the option before it: argparse takes ``-1e-3`` for
    another option.

    Example:
        >>> from nsjax.cli import joined
        >>> joined(["--dt", "-1e-3", "--quiet"])
        ['--dt=-1e-3', '--quiet']
    """
    found: list[str] = []
    for word in argv:
        if found and found[-1].startswith("--") and "=" not in found[-1] and _is_negative(word):
            found[-1] = f"{found[-1]}={word}"
        else:
            found.append(word)
    return found


def _is_negative(word: str) -> bool:
    try:
        return word.startswith("-") and float(word) <= 0.0
    except ValueError:
        return False


@contextlib.contextmanager
def told_warnings() -> Iterator[None]:
    """Context that writes each warning as one line on stderr, without its position in the source."""
    before = warnings.showwarning

    def tell(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, UserWarning | RuntimeWarning):
            print(f"nsjax: warning: {message}", file=sys.stderr)
        else:
            before(message, category, *rest, **more)

    warnings.showwarning = tell
    try:
        yield
    finally:
        warnings.showwarning = before


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nsjax", description="Simulates mechanical systems that hit, slide, stick and bend."
    )
    parser.add_argument("--version", action="version", version=f"nsjax {nsjax.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add = commands.add_parser(
        "simulate", help="run a model, say what happened, save rows and figure",
        description="Runs a model with a scheme and says what happened.",
        epilog="example: nsjax simulate slider-crank --dt 1e-5 --time 0.2 --set friction=0.1 "
        "--output run.npz --plot run.png",
    )  # fmt: skip
    add.set_defaults(command=_simulate)
    _add_run(add)
    add.add_argument(
        "--every", type=int, help=f"save each EVERY-th step (default: at most about {SAVED_ROWS} rows)"
    )
    add.add_argument("--output", metavar="FILE.npz", help="save the run; nsjax.io.load reads it")
    add.add_argument("--plot", metavar="FILE.png", help="draw the run (png, pdf, svg, ...)")
    add.add_argument("--animate", metavar="FILE.html", help="play the run: a page, or a film (.gif, .mp4)")
    add.add_argument(
        "--checkpoint", metavar="FILE.npz",
        help="save the run there while it goes on; `nsjax resume FILE.npz` continues it after a stop",
    )  # fmt: skip
    add.add_argument(
        "--period", type=float, default=io.PERIOD,
        help="seconds between checkpoints (default: %(default)g)",
    )  # fmt: skip
    again = commands.add_parser(
        "resume", help="go on with a run that was stopped",
        description="Goes on with a run of `nsjax simulate --checkpoint FILE.npz` to its end.",
        epilog="example: nsjax resume run.npz --plot run.png",
    )  # fmt: skip
    again.set_defaults(command=resume_run)
    add_resume_options(again)
    vary = commands.add_parser(
        "sweep", help="run a model over ranges of its numbers",
        description="Runs a model for all combinations of some values and says what came out.",
        epilog="example: nsjax sweep slider-crank restitution=0.1:0.9:50 clearance=2e-4:2e-3:50 "
        "--time 0.05 --output map.npz --plot map.png --quantity impacts",
    )  # fmt: skip
    vary.set_defaults(command=sweep.run)
    _add_run(vary)
    sweep.add_arguments(vary)
    learn = commands.add_parser(
        "identify", help="estimate numbers of a model from measured data",
        description="Estimates numbers of a model from recordings, as a TOML file says.",
        epilog=identify.EPILOG,
    )  # fmt: skip
    learn.set_defaults(command=identify.run)
    identify.add_arguments(learn)
    show = commands.add_parser(
        "list", help="list models and schemes", description="Lists models and schemes."
    )
    show.set_defaults(command=_list)
    warm_up = commands.add_parser(
        "warm", help="compile programs before they are needed",
        description="Compiles programs of common mechanisms, or of given ones, into the cache folder, so "
        "that later processes find them.",
        epilog=warm.EPILOG,
    )  # fmt: skip
    warm_up.set_defaults(command=warm.run)
    warm.add_arguments(warm_up)
    again = commands.add_parser(
        "reproduce", help="compute a figure or table of a paper and compare its numbers",
        description="Computes a figure or table of a source paper, prints asked / ours / difference, and "
        "saves figure and data; returns 1 if a number is missed. Without a name it lists what there is.",
        epilog="example: nsjax reproduce gear_gupta_leimkuhler/fig03",
    )  # fmt: skip
    again.set_defaults(command=lambda args: reproduce(args.name, args.folder, args.quick, args.papers))
    again.add_argument("name", nargs="?", metavar="PAPER/FIGURE", help="the beginning of a name is enough")
    again.add_argument("--folder", help="where results go (default: results/PAPER)")
    again.add_argument("--quick", action="store_true", help="a shorter run of the same kind")
    again.add_argument(
        "--papers",
        action="store_true",
        help="list every figure and table of the papers: what came out, on which evidence, in which time",
    )
    add_documents(commands)
    return parser


def _add_run(add: argparse.ArgumentParser) -> None:
    """Adds the arguments that `simulate` and `sweep` share."""
    add.add_argument(
        "model", metavar="MODEL|FILE",
        help="a model of `nsjax list`, a Python file with a function problem() that returns an "
        "nsjax.Problem, or a mechanism in URDF or MJCF (.urdf, .xml)",
    )  # fmt: skip
    add.add_argument("--scheme", help="a scheme of `nsjax list` (default: the model's, or moreau)")
    add.add_argument("--dt", type=float, help="step size [s] (default: the model's)")
    length = add.add_mutually_exclusive_group()
    length.add_argument("--time", type=float, help="duration [s] (default: the model's)")
    length.add_argument("--steps", type=int, help="number of steps, instead of --time")
    add.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE",
        help="a keyword of the model (friction=0.1, initial_v=[1,2,3]; of a mechanism restitution=0.3, "
        "rod.mass=0.05, free=True, start={'joint':0.3}) or of the scheme (scheme.NAME=VALUE); may be "
        "repeated",
    )  # fmt: skip
    add.add_argument("--quiet", action="store_true", help="print nothing but failures")


def _list(_: argparse.Namespace) -> int:
    print("models (default step size and duration in seconds, scheme)")
    for name, model in models.REGISTRY.items():
        lengths = f"dt {model.dt:g}, time {model.time:g}"
        print(f"  {name:<24} {lengths:<22} {model.scheme:<13} {model.summary}")
    print("\nschemes (orders of position, velocity and force on smooth motion)")
    for name, scheme in schemes.REGISTRY.items():
        print(f"  {name:<24} {'orders ' + ', '.join(map(str, scheme.order)):<22} {scheme.summary}")
    return 0


def _simulate(args: argparse.Namespace) -> int:
    plan = make_plan(args)
    progress = Progress(shown=not args.quiet)
    begin = time.perf_counter()
    progress.say("compiling")
    try:
        # one step compiles the program of the whole run, so that both can be timed separately
        _run(plan, steps=1, every=1)
        middle = time.perf_counter()
        if args.checkpoint is None:
            traj = _run(plan, steps=plan.steps, every=plan.every, progress=progress)
        else:
            traj = begin_with_checkpoints(args, plan, progress)
        end = time.perf_counter()
    finally:
        progress.clear()
    tell(args, plan, traj, middle - begin, end - middle)
    return 0


def _run(plan: RunPlan, **options: Any) -> Trajectory:
    system, params, state = plan.problem
    return nsjax.simulate(system, params, state, plan.scheme, dt=plan.dt, **options)
