"""``nsjax simulate --checkpoint`` and ``nsjax resume``: runs that resume after a stop or a crash."""

from __future__ import annotations

import argparse
import time

from nsjax import io, models
from nsjax.cli.inputs import RunPlan, check_drawn, check_files, read_problem, read_settings
from nsjax.cli.report import Progress, tell
from nsjax.core import InputError
from nsjax.trajectory import Trajectory


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``nsjax resume``."""
    add.add_argument("checkpoint", metavar="FILE.npz", help="the file of `nsjax simulate --checkpoint`")
    add.add_argument("--plot", metavar="FILE.png", help="draw the run (png, pdf, svg, ...)")
    add.add_argument("--animate", metavar="FILE.html", help="play the run: a page, or a film (.gif, .mp4)")
    add.add_argument("--quiet", action="store_true", help="print nothing but failures")


def begin(args: argparse.Namespace, plan: RunPlan, progress: Progress) -> Trajectory:
    """Runs a plan into the file of ``--checkpoint``, with the arguments that built the problem.

    Raises:
        nsjax.Stopped: after an interruption.
    """
    command = {"model": args.model, "set": list(args.set)}
    return io.run(
        plan.problem, plan.scheme, args.checkpoint, dt=plan.dt, steps=plan.steps, every=plan.every,
        period=args.period, progress=progress, steps_asked=plan.steps, every_asked=plan.every,
        command=command,
    )  # fmt: skip


def resume(args: argparse.Namespace) -> int:
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
