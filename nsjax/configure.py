"""Settings of the process: 64-bit floats, one-kernel time loops, host devices."""

from __future__ import annotations

import os
import warnings
from importlib import metadata

ONE_KERNEL_OPTION = "xla_cpu_small_while_loop_byte_threshold"
"""Compiler option that turns a whole CPU time loop into one function (about six times faster)."""

# Loop bodies that touch fewer bytes become one kernel: well above any small model, far below bodies
# of large finite-element models, which gain nothing and would be compiled by the older emitter.
ONE_KERNEL_BYTES = 1_000_000

# Releases on which the option was tried: an unknown option aborts the process.
TESTED_JAXLIB = ("0.10.2",)


def configure(
    *, host_devices: int | None = None, one_kernel: bool = True, blas_threads: int | None = 1
) -> None:
    """Sets the process up for `nsjax`; call it once, before the first computation.

    Importing `nsjax` changes nothing, so that a program keeps its own settings. This call

    * switches 64-bit floats on: gap and impact decisions do not work in single precision;
    * asks XLA to compile each CPU time loop into one kernel, if the installed jaxlib is one on which
      the option was tried (``configure.TESTED_JAXLIB``);
    * splits the CPU into ``host_devices`` devices, for batches on all cores;
    * keeps the linear algebra library to ``blas_threads`` threads: its factorisations of some hundred
      unknowns are ten times slower with several, and batches use the cores better.

    It is idempotent, appends to ``XLA_FLAGS`` and respects a value that is already there.

    Derivatives of runs become one kernel as well, forward and reverse: contacts, impacts and shifts stand
    behind branches, and solvers are not differentiated through. This form runs fast and compiles slowly.
    Moreau's rule compiles in some ten to fifteen seconds; generalized-alpha and Bathe on the slider-crank
    take 50 CPU seconds in reverse mode on a loaded machine and then 1.7 and 5 us per step, 80 s where the
    run is so long that steps are kept in blocks (`nsjax.core.blocks`). ``one_kernel=False``, for the whole
    process, compiles faster and runs some eight times slower: for short runs.

    Args:
        host_devices: number of CPU devices; None leaves it as it is.
        one_kernel: whether to ask for one-kernel loops.
        blas_threads: threads of OpenBLAS, unless ``OPENBLAS_NUM_THREADS`` is set; None leaves it as it
            is. Without effect once scipy is loaded.

    Warns:
        RuntimeWarning: if a computation has already run, so that a setting comes too late, or if
            the installed jaxlib was not tried.

    Example:
        >>> import nsjax
        >>> nsjax.configure()
    """
    import jax

    jax.config.update("jax_enable_x64", True)
    if blas_threads is not None:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", str(blas_threads))
    wanted: list[str] = []
    if one_kernel:
        installed = metadata.version("jaxlib")
        if installed in TESTED_JAXLIB:
            wanted.append(f"--xla_backend_extra_options={ONE_KERNEL_OPTION}={ONE_KERNEL_BYTES}")
        else:
            warnings.warn(
                f"jaxlib {installed} was not tried with one-kernel loops (tried: "
                f"{', '.join(TESTED_JAXLIB)}); runs are right but slower",
                RuntimeWarning,
                stacklevel=2,
            )
    if host_devices is not None:
        if host_devices < 1:
            raise ValueError(f"configure: host_devices = {host_devices}; it must be at least 1")
        wanted.append(f"--xla_force_host_platform_device_count={host_devices}")
    flags = os.environ.get("XLA_FLAGS", "")
    missing = [option for option in wanted if option.split("=")[0] not in flags]
    if not missing:
        return
    if _backend_exists():
        warnings.warn(
            f"a computation has already run, so {' '.join(missing)} comes too late; call "
            "nsjax.configure() first, or set XLA_FLAGS before starting Python",
            RuntimeWarning,
            stacklevel=2,
        )
        return
    os.environ["XLA_FLAGS"] = " ".join([flags, *missing]).strip()


def _backend_exists() -> bool:
    """Whether JAX has made its first backend, after which XLA reads no options."""
    from jax._src import xla_bridge  # no public call answers this without making a backend

    return bool(xla_bridge.backends_are_initialized())
