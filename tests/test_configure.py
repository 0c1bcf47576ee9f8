"""Settings of the process, each tried in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys


def run(code: str, flags: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XLA_FLAGS": flags}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)


def test_sets_precision_flags_and_devices_once() -> None:
    code = """
import os, warnings, jax, nsjax
warnings.simplefilter("error")
nsjax.configure(host_devices=2)
nsjax.configure()
flags = os.environ["XLA_FLAGS"]
assert flags.count("xla_cpu_small_while_loop_byte_threshold") == 1, flags
assert flags.startswith("--xla_cpu_enable_fast_math=false "), flags
assert len(jax.devices()) == 2
assert jax.numpy.ones(1).dtype == "float64"
nsjax.configure(host_devices=2)
"""
    done = run(code, "--xla_cpu_enable_fast_math=false")
    assert done.returncode == 0, done.stderr


def test_respects_a_value_of_the_user() -> None:
    flag = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=2048"
    done = run("import os, nsjax; nsjax.configure(); print(os.environ['XLA_FLAGS'])", flag)
    assert done.stdout.startswith(flag + " ")
    assert done.stdout.count("xla_backend_extra_options") == 1


def test_warns_when_it_comes_too_late() -> None:
    code = "import jax, nsjax; jax.numpy.ones(1).block_until_ready(); nsjax.configure()"
    done = run(code)
    assert done.returncode == 0
    assert "comes too late" in done.stderr
    assert "XLA_FLAGS" in done.stderr


def test_refuses_no_devices() -> None:
    assert (
        "host_devices = 0; give a whole number of at least 1"
        in run("import nsjax; nsjax.configure(host_devices=0)").stderr
    )
