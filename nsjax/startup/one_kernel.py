"""Whether the installed jaxlib turns CPU time loops into one kernel: known, remembered, or tried once."""

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

# Loop bodies that touch fewer bytes become one kernel: above any small model and a chain of a thousand
# nodes, which costs a third of what it does in pieces; below the dense bodies of a hundred unknowns, which
# would take minutes to compile (a flexible slider-crank of 20 elements four times as long from 4 MB on).
ONE_KERNEL_BYTES = 3_000_000

TESTED_JAXLIB = ("0.10.2",)
"""Releases on which the option was tried with the whole package. An unknown option aborts the process."""

PATIENCE = 120.0
"""Seconds that the trial may take."""

# 64 kB a step: beyond the default threshold of a few bytes, below ours.
TRIAL = """
import os
import jax
loop = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y + 1, x))
text = loop.lower(jax.numpy.zeros(16384)).compile().as_text()
print("one kernel" if 'xla_cpu_small_call="true"' in text else "no kernel")
"""


def option() -> str:
    """The option as ``XLA_FLAGS`` holds it."""
    return f"--xla_backend_extra_options={ONE_KERNEL_OPTION}={ONE_KERNEL_BYTES}"


def one_kernel_works(folder: pathlib.Path | None) -> bool:
    """Whether the installed jaxlib knows the option and makes one kernel with it.

    Releases of `TESTED_JAXLIB` do. Another one is tried, once, in a process of its own, because an unknown
    option ends the process; the answer is kept in ``folder``.

    Args:
        folder: where to look for the answer and to keep it; None: it is tried every time.

    Returns:
        True if it works; False if the trial failed, for whatever reason.

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
    """The answer of a child process; None if no child could answer."""
    if not sys.executable:  # inside a program that is no Python
        return None
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("JAX_")},
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": option(),
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", TRIAL], capture_output=True, text=True, env=environment, timeout=PATIENCE
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.returncode == 0 and "one kernel" in done.stdout
