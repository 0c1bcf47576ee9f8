"""One sweep computed by several processes, here on one machine, as it would be on several.

Every process makes the same call; `nsjax.sweep` gives each its share of the lanes and all of them the
whole result. Nothing but `jax.distributed.initialize` tells this program from one for a single process.

    python -m experiments.sweeps.processes --of 2                      # starts both, here
    python -m experiments.sweeps.processes --of 2 --process 0 --at HOST:PORT   # one of them, anywhere

With ``--checkpoint`` finished lanes outlast a process that dies: start all of them again.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import nsjax
from nsjax import models, reductions, schemes

MODELS = {
    "bouncing_ball": (models.bouncing_ball, "params.gravity", (5.0, 15.0), 1e-3, 1000),
    "slider_crank": (models.slider_crank, "params.clearance", (2e-4, 2e-3), 1e-5, 2000),
}
"""Factory, second varied number and its range, step size and number of steps."""

KEPT = {"v": reductions.final("v"), "impacts": reductions.total("impacts")}
LANES = 11


def lanes(
    model: str, checkpoint: str | None = None, progress: Callable[[int, int], None] | bool = False
) -> nsjax.SweepResult:
    """The sweep; lane 3 cannot start."""
    factory, name, (low, high), dt, steps = MODELS[model]
    restitution = np.linspace(0.2, 0.9, LANES)
    restitution[3] = np.nan
    over = {"params.restitution": restitution, name: np.linspace(low, high, LANES)}
    return nsjax.sweep(
        factory(), schemes.moreau(), over, reduce=KEPT, dt=dt, steps=steps, every=steps,
        checkpoint=checkpoint, progress=progress,
    )  # fmt: skip


def one(
    model: str, process: int, of: int, at: str, devices: int, output: str | None,
    checkpoint: str | None = None,
) -> None:  # fmt: skip
    """The sweep in one process; process 0 saves the result."""
    import jax

    nsjax.configure(host_devices=devices)
    jax.distributed.initialize(coordinator_address=at, num_processes=of, process_id=process)
    result = lanes(model, checkpoint)
    if process == 0:
        print(f"{of} processes, {jax.device_count()} devices, lanes done: {int(result.ok.sum())}")
        for sentence in result.failures().values():
            print(sentence)
        if output is not None:
            result.save(output)


def start(
    model: str, of: int, devices: int, output: str | Path | None, checkpoint: str | Path | None = None
) -> str:
    """Starts all processes on this machine, each with ``devices`` devices, and returns their output.

    Raises:
        RuntimeError: if a process fails.
    """
    with socket.socket() as free:
        free.bind(("localhost", 0))
        at = f"localhost:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "experiments.sweeps.processes", "--model", model, "--of", str(of)]
    command += ["--devices", str(devices), "--at", at]
    command += [] if output is None else ["--output", str(output)]
    command += [] if checkpoint is None else ["--checkpoint", str(checkpoint)]
    root = Path(__file__).resolve().parents[2]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]),
    }
    running = [
        subprocess.Popen(
            [*command, "--process", str(k)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment,
        )
        for k in range(of)
    ]  # fmt: skip
    try:
        said = [process.communicate(timeout=280)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    if any(process.returncode for process in running):
        raise RuntimeError("a process failed: " + "\n".join(said)[-2000:])
    return "".join(said)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="one sweep by several processes")
    parser.add_argument("--model", choices=list(MODELS), default="slider_crank")
    parser.add_argument("--of", type=int, default=2, help="number of processes")
    parser.add_argument("--process", type=int, help="be this one of them (default: start all, here)")
    parser.add_argument("--at", help="HOST:PORT of process 0")
    parser.add_argument("--devices", type=int, default=1, help="CPU devices of each process")
    parser.add_argument("--output", help="save the result (.npz)")
    parser.add_argument("--checkpoint", help="add finished lanes to this file; process k to FILE.k")
    given = parser.parse_args()
    if given.process is None:
        print(start(given.model, given.of, given.devices, given.output, given.checkpoint), end="")
    else:
        one(
            given.model, given.process, given.of, given.at, given.devices, given.output, given.checkpoint
        )  # fmt: skip
