"""Short commands: ``nsjax resume``, ``nsjax reproduce`` and ``nsjax docs``."""

from __future__ import annotations

import argparse
import importlib
import pathlib
import sys
import time
from typing import Any

import nsjax
from nsjax import io, models
from nsjax.cli.inputs import RunPlan, check_drawn, check_files, read_problem, read_settings
from nsjax.cli.report import Progress, tell
from nsjax.core import InputError, nearest
from nsjax.core.errors import listed
from nsjax.figures import require_matplotlib
from nsjax.trajectory import Trajectory

# ``nsjax simulate --checkpoint`` and ``nsjax resume``: runs that resume after a stop or a crash.


def add_resume_options(add: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``nsjax resume``."""
    add.add_argument("checkpoint", metavar="FILE.npz", help="the file of `nsjax simulate --checkpoint`")
    add.add_argument("--plot", metavar="FILE.png", help="draw the run (png, pdf, svg, ...)")
    add.add_argument("--animate", metavar="FILE.html", help="play the run: a page, or a film (.gif, .mp4)")
    add.add_argument("--quiet", action="store_true", help="print nothing but failures")


def begin_with_checkpoints(args: argparse.Namespace, plan: RunPlan, progress: Progress) -> Trajectory:
    """Runs a plan into the file of ``--checkpoint``, with the arguments that built the problem.

    Raises:
        nsjax.Stopped: after an interruption.
    """
    command = {"model": args.model, "set": list(args.set)}
    return io.simulate_to_file(
        plan.problem, plan.scheme, args.checkpoint, dt=plan.dt, steps=plan.steps, every=plan.every,
        period=args.period, progress=progress, steps_asked=plan.steps, every_asked=plan.every,
        command=command,
    )  # fmt: skip


def resume_run(args: argparse.Namespace) -> int:
    """The command ``nsjax resume``."""
    begin = time.perf_counter()
    known = io.header(args.checkpoint)
    command = known["metadata"].get("command")
    problem = None
    if known["model"] not in models.REGISTRY:
        if command is None:
            raise InputError(
                f"{args.checkpoint}: the file does not say how its problem was made; continue it in Python "
                "with nsjax.resume(path, problem)"
            )
        problem, _, _ = read_problem(command["model"], read_settings(command["set"])[0])
    check_files(None, args.plot, args.checkpoint, args.animate)
    progress = Progress(shown=not args.quiet)
    progress.say("compiling")
    try:
        traj = io.resume(args.checkpoint, problem, progress=progress)
    finally:
        progress.clear()
    saved = io.load(args.checkpoint, problem)
    if args.animate is not None:
        check_drawn(saved.problem, args.checkpoint)
    assert saved.scheme is not None  # the command line has schemes of the package only
    every = saved.metadata["every_asked"]
    steps = (len(traj.t) - 1) * every
    plan = RunPlan(saved.problem, saved.scheme, float(traj.carry.dt), steps, every)
    args.output = None
    tell(args, plan, traj, 0.0, time.perf_counter() - begin)
    return 0


# ``nsjax docs``: the site of the documentation.


def add_documents(commands: Any) -> None:
    """Adds the command and its arguments."""
    parser = commands.add_parser(
        "docs", help="build the site of the documentation",
        description="Builds guide, reference and notebooks as pages, in a checkout; every warning of the "
        "generator is an error. Needs the extra docs: pip install 'nsjax[docs]'.",
        epilog="example: nsjax docs --output site, then open site/index.html",
    )  # fmt: skip
    parser.set_defaults(command=_build)
    parser.add_argument("--output", metavar="FOLDER", default="site", help="(default: %(default)s)")


def _build(args: argparse.Namespace) -> int:
    root = pathlib.Path(nsjax.__file__).resolve().parents[1]
    if not (root / "docs" / "site.py").is_file():
        raise InputError(f"docs: {root} holds no folder docs; build the site in a checkout, which has it")
    sys.path.insert(0, str(root))
    print(f"{importlib.import_module('docs').build(args.output)} is the front page")
    return 0


# ``nsjax reproduce``: the figures and tables of the papers, each by one command.


PACKAGE = "experiments"


def _folder() -> pathlib.Path:
    """Folder of the experiments: in the installed package, or beside the package in a checkout."""
    package = pathlib.Path(nsjax.__file__).parent
    for place in (package / PACKAGE, package.parent / PACKAGE):
        if (place / "common.py").is_file():
            return place
    raise InputError("reproduce: the experiments are not installed; use a checkout")


def available() -> list[str]:
    """Names ``paper/experiment`` of all experiments."""
    folder = _folder()
    files = sorted(folder.glob("*/*.py"))
    return [f"{f.parent.name}/{f.stem}" for f in files if f.stem.startswith(("fig", "table"))]


def resolve(name: str) -> str:
    """Full name of an experiment from ``paper/fig03`` or ``paper/table4``; both parts may be shortened.
    Raises `InputError` for an unknown or ambiguous name.
    """
    known = available()
    paper, _, wanted = name.replace("-", "_").partition("/")
    begun = [n for n in known if n.startswith(paper) and n.partition("/")[2].startswith(wanted)]
    exact = [n for n in begun if n.partition("/")[0] == paper]
    found = exact or begun
    # "fig3" means Figure 3, not fig30 to fig39
    whole = [
        n for n in found if wanted[-1:].isdigit() and f"{n.partition('/')[2]}_".startswith(f"{wanted}_")
    ]
    found = [n for n in found if n.partition("/")[2] == wanted] or whole or found
    if len(found) == 1:
        return found[0]
    if found:
        shown = 8  # largest number of names in a sentence
        raise InputError(f"reproduce: {name!r} may be one of {listed(found, shown, 'nsjax reproduce')}")
    near = [n for n in known if paper and n.partition("/")[0].startswith(paper)]
    hint = (
        nearest(name, near) if near else nearest(paper, dict.fromkeys(n.partition("/")[0] for n in known))
    )
    raise InputError(f"reproduce: unknown {name!r}; {hint}; nsjax reproduce lists them all")


def reproduce(name: str | None, folder: str | None, quick: bool, papers: bool = False) -> int:
    """Runs one experiment, which prints the paper's numbers, ours and their difference and saves figure and
    data. Without a name it lists all experiments, or with ``papers`` every figure and table of the papers
    with result, evidence and run time. Returns 0, or 1 if a number differs by more than its tolerance.
    """
    if papers and name is not None:
        raise InputError("reproduce: --papers lists all figures and tables; leave the name out")
    if papers:
        sys.path.insert(0, str(_folder().parent))
        print(importlib.import_module(f"{PACKAGE}.papers").page())
        return 0
    if name is None:
        print("\n".join(available()))
        return 0
    full = resolve(name)
    require_matplotlib()
    sys.path.insert(0, str(_folder().parent))
    module = importlib.import_module(f"{PACKAGE}.{full.replace('/', '.')}")
    common = importlib.import_module(f"{PACKAGE}.common")
    with common.watched(quick) as rows:
        module.main(quick=quick, folder=folder)
    place = folder or f"results/{full.split('/')[0]}"
    print(f"saved in {place}")
    missed = common.missed(rows)
    if missed:
        print(f"nsjax: {missed}", file=sys.stderr)
    return int(bool(missed))
