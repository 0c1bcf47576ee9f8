"""Settings of the process: 64-bit floats, one-kernel time loops, host devices, kept programs."""

from __future__ import annotations

import os
import warnings
from importlib import metadata

from nsjax.jaxtools import TESTED_JAXLIB, one_kernel_works, use_cache, watch_compiling
from nsjax.jaxtools.cache import CacheChoice
from nsjax.jaxtools.compilation import STEPS_VARIABLE, options
from nsjax.jaxtools.internals import backend_exists


def configure(
    *, host_devices: int | None = None, one_kernel: bool = True, blas_threads: int | None = 1,
    cache: CacheChoice = None, announce: bool | None = None, few_steps: int | None = None,
) -> None:  # fmt: skip
    """Prepares the process for `nsjax`; call it once, before the first computation.

    Importing `nsjax` changes nothing, so that a program keeps its own settings. This call

    * switches 64-bit floats on: gap and impact decisions do not work in single precision;
    * asks XLA to compile each CPU time loop into one kernel. A jaxlib that is not in
      ``nsjax.jaxtools.TESTED_JAXLIB`` is tested once, in a separate process, and the result is stored. On
      machines without another device it also asks for vector instructions in loops of more than
      six passes, which robots need, and tested releases are to keep sums over large arrays in the kernel;
    * splits the CPU into ``host_devices`` devices, for batches on all cores;
    * limits the linear algebra library to ``blas_threads`` threads: with several, factorisations of some
      hundred unknowns are ten times slower, and batches use the cores better than the library;
    * keeps compiled programs in the user's cache folder, so that the next process starts at once; runs of
      models and mechanisms of the package, and their reverse derivatives, are not even traced again
      (`nsjax.jaxtools.cache`, `nsjax.jaxtools.kept_derivatives`);
    * in a prompt, a notebook or a terminal, names on stderr the programs that have been compiling for more
      than three seconds; it hides XLA's own message about slow compilation, which looks like an error.

    It is idempotent, appends to ``XLA_FLAGS`` and respects a value that is already there.

    Derivatives of runs become one kernel as well, forward and reverse: contacts, impacts and shifts are
    behind branches, and solvers are not differentiated through. This form runs fast and compiles slowly:
    a run in some ten seconds, its derivative in up to a minute. Larger steps, as of robots by schemes that
    iterate over forces, are compiled in pieces (`nsjax.jaxtools.programs`). ``one_kernel=False``, for the
    whole process, compiles faster and runs some eight times slower, which suits short runs.

    Args:
        host_devices: number of CPU devices; None leaves it as it is.
        one_kernel: whether to ask for one-kernel loops.
        blas_threads: threads of OpenBLAS, unless ``OPENBLAS_NUM_THREADS`` is set; None leaves it as it
            is. Without effect once scipy is loaded.
        cache: folder for compiled programs; None: the user's cache folder, unless the process has one
            already (``JAX_COMPILATION_CACHE_DIR``); False: nothing is kept. See
            `nsjax.jaxtools.use_cache`.
        announce: whether to name programs that compile for long; None: if somebody watches.
        few_steps: number of steps of differentiated runs, in all calls of `jax.grad` with one scheme and
            length, whose programs are compiled without optimisation: a first gradient takes half the time,
            each of its steps two to five times as long. Then it is compiled once more. Values and
            derivatives of the two programs differ by rounding; 0: all of them are optimised, None: as
            before, at first 20,000, fewer for robots (`nsjax.jaxtools.compilation.few_steps`). Gradients
            inside `jax.jit`, and processes without a cache, always have optimised programs.

    Raises:
        ValueError: for a number of devices below 1, or a negative number of steps.

    Warns:
        RuntimeWarning: if a computation has already run, so that a setting comes too late; if the installed
            jaxlib does not make one kernel; if a chosen cache folder cannot be written.

    Example:
        >>> import nsjax
        >>> nsjax.configure()
    """
    import jax

    if host_devices is not None and (not isinstance(host_devices, int) or host_devices < 1):
        raise ValueError(f"configure: host_devices = {host_devices!r}; give a whole number of at least 1")
    if few_steps is not None:
        if not isinstance(few_steps, int) or few_steps < 0:
            raise ValueError(f"configure: few_steps = {few_steps!r}; give a whole number, 0 for none")
        os.environ[STEPS_VARIABLE] = str(int(few_steps))
    jax.config.update("jax_enable_x64", True)
    if blas_threads is not None:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", str(blas_threads))
    folder = use_cache(cache)
    watch_compiling(announce)
    wanted: list[str] = []
    if one_kernel and not all(map(_has, options())):
        if one_kernel_works(folder):
            wanted += options()
        else:
            warnings.warn(
                f"jaxlib {metadata.version('jaxlib')} does not make one-kernel loops (tried: "
                f"{', '.join(TESTED_JAXLIB)}); runs are right but slower",
                RuntimeWarning,
                stacklevel=2,
            )
    if host_devices is not None:
        wanted.append(f"--xla_force_host_platform_device_count={host_devices}")
    missing = [flag for flag in wanted if not _has(flag)]
    if not missing:
        return
    if backend_exists():
        warnings.warn(
            f"a computation has already run, so {' '.join(missing)} comes too late; call "
            "nsjax.configure() first, or set XLA_FLAGS before starting Python",
            RuntimeWarning,
            stacklevel=2,
        )
        return
    os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *missing]).strip()


def _has(flag: str) -> bool:
    """Whether ``XLA_FLAGS`` contains the flag already, with any value."""
    return flag.split("=")[0] in os.environ.get("XLA_FLAGS", "")
