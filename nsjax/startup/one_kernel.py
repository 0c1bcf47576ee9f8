"""Test whether the installed jaxlib can turn CPU time loops into one kernel."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import secrets
import subprocess
import sys
from importlib import metadata

ONE_KERNEL_OPTION = "xla_cpu_small_while_loop_byte_threshold"
"""Compiler option that turns a whole CPU time loop into one function (about six times faster)."""

# Loop bodies that touch fewer bytes become one kernel. The bound is above any small model and a chain of a
# thousand nodes, which takes a third of the time as one kernel; it is below dense bodies of a hundred
# unknowns, which would take minutes to compile (a flexible slider-crank of 20 elements runs four times as
# long from 4 MB on).
ONE_KERNEL_BYTES = 3_000_000

TESTED_JAXLIB = ("0.10.2", "0.11.2")
"""Releases on which the package was tested with its options. An unknown option aborts the process."""

WRITTEN_OUT = 6
"""Largest number of passes of a loop that the compiler writes out in full.

LLVM writes out loops of a constant number of passes before it looks for vector instructions, and finds none
in what it wrote: rows of up to 37 entries were subtracted from each other entry by entry. Steps by Moreau's
rule, A-B-A-B, us without and with this bound: go1 35 and 29, ant 19 and 16, hopper 5.6 and 5.5;
slider-crank 0.177 and 0.170, with nsga_decoupled 0.95 and 0.84, ggl_unified 0.77 and 0.65,
generalized_alpha 0.40 and 0.37. First calls take 2 to 12 % less. Go1 with bounds of 4, 8 and 12: 30, 29,
30; no loops written out at all: go1 37, its first call 25 % shorter, slider-crank 0.24.
"""

# 64 kB per step: above the default threshold of a few bytes, below `ONE_KERNEL_BYTES`.
TRIAL = """
import os
import jax
loop = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y + 1, x))
text = loop.lower(jax.numpy.zeros(16384)).compile().as_text()
print("one kernel" if 'xla_cpu_small_call="true"' in text else "no kernel")
"""


def option() -> str:
    """The options in the form of ``XLA_FLAGS``: one kernel and, on releases that were tested with it, the
    bound on loops that are written out. It holds for all compilations of a process: it is left out where a
    process may use a GPU, whose kernels keep short arrays in registers in such loops.
    """
    bound = f",-unroll-full-max-count={WRITTEN_OUT}"
    tested = metadata.version("jaxlib") in TESTED_JAXLIB and not _other_devices()
    return f"--xla_backend_extra_options={ONE_KERNEL_OPTION}={ONE_KERNEL_BYTES}{bound if tested else ''}"


def _other_devices() -> bool:
    """Whether JAX may use a device that is no CPU: a plugin of one is installed, and not excluded."""
    return os.environ.get("JAX_PLATFORMS") != "cpu" and bool(metadata.entry_points(group="jax_plugins"))


def one_kernel_works(folder: pathlib.Path | None) -> bool:
    """Whether the installed jaxlib knows the option and makes one kernel with it.

    Releases of `TESTED_JAXLIB` do. Any other release is tried once in a separate process, because an
    unknown option aborts the process; ``folder`` keeps the answer.

    Args:
        folder: folder of the answer; None: the release is tried at every call.

    Returns:
        True if the option works; False if the trial failed for any reason.

    Example:
        >>> from nsjax.startup import one_kernel_works
        >>> one_kernel_works(None)
        True
    """
    installed = metadata.version("jaxlib")
    if installed in TESTED_JAXLIB:
        return True
    record = None if folder is None else folder / f"one_kernel-{installed}.json"
    if record is not None:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return bool(json.loads(record.read_text())["works"])
    works = _try()
    if record is not None and works is not None:
        with contextlib.suppress(OSError):
            record.parent.mkdir(parents=True, exist_ok=True)
            fresh = record.with_name(f"{record.name}.{secrets.token_hex(4)}")
            fresh.write_text(json.dumps({"jaxlib": installed, "works": works}))
            os.replace(fresh, record)
    return bool(works)


def _try() -> bool | None:
    """Result of the trial in a child process; None if no child process could run it."""
    if not sys.executable:  # inside a program that embeds Python
        return None
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("JAX_")},
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": option(),
    }
    try:
        patience = 120.0  # time limit of the trial [s]
        done = subprocess.run(
            [sys.executable, "-c", TRIAL], capture_output=True, text=True, env=environment, timeout=patience
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.returncode == 0 and "one kernel" in done.stdout
