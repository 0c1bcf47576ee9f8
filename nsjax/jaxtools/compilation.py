"""Compilation: one kernel for CPU time loops, quick programs that run once, notes on what takes long."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pathlib
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from types import FrameType
from typing import Any

import jax

from nsjax.jaxtools.cache import CONFIG
from nsjax.jaxtools.internals import set_log_level

# Test whether the installed jaxlib can turn CPU time loops into one kernel.


ONE_KERNEL_OPTION = "xla_cpu_small_while_loop_byte_threshold"
"""Compiler option that turns a whole CPU time loop into one function (about six times faster)."""

# Loop bodies that touch fewer bytes become one kernel. The bound is above any small model and a chain of a
# thousand nodes; it is below dense bodies of a hundred unknowns, which would take minutes to compile.
ONE_KERNEL_BYTES = 3_000_000

TESTED_JAXLIB = ("0.10.2", "0.11.2")
"""Releases on which the package was tested with its options. An unknown option aborts the process."""

# 64 kB per step: above the default threshold of a few bytes, below `ONE_KERNEL_BYTES`.
TRIAL = """
import os
import jax
loop = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y + 1, x))
text = loop.lower(jax.numpy.zeros(16384)).compile().as_text()
print("one kernel" if 'xla_cpu_small_call="true"' in text else "no kernel")
"""


def options() -> list[str]:
    """The options of `nsjax.configure` in the form of ``XLA_FLAGS``.

    On tested releases the library that XLA calls does products of matrices, but no sums over large arrays:
    those over 91 rows of Newton's matrix divided the time loop of an ant, whose steps took four times as
    long inside `jax.jit`.
    """
    sums = "--xla_cpu_experimental_ynn_fusion_type=LIBRARY_FUSION_TYPE_DOT"
    return [option(), sums] if metadata.version("jaxlib") in TESTED_JAXLIB else [option()]


def option() -> str:
    """The option of one kernel and, on tested releases, the bound on loops that are written out; not for
    processes that may use a GPU, where such loops keep arrays in registers.
    """
    # The compiler writes loops of up to six passes out in full. It does so before it looks for vector
    # instructions, and finds none in what it wrote; with no loop written out steps take longer.
    bound = ",-unroll-full-max-count=6"
    plugins = os.environ.get("JAX_PLATFORMS") != "cpu" and metadata.entry_points(group="jax_plugins")
    tested = metadata.version("jaxlib") in TESTED_JAXLIB and not plugins
    return f"--xla_backend_extra_options={ONE_KERNEL_OPTION}={ONE_KERNEL_BYTES}{bound if tested else ''}"


def one_kernel_works(folder: pathlib.Path | None) -> bool:
    """Whether the installed jaxlib knows the option and makes one kernel with it. Returns True if the
    option works; False if the trial failed for any reason.

    Releases of `TESTED_JAXLIB` do. Any other release is tried once in a separate process, because an
    unknown option aborts the process; ``folder`` keeps the answer.

    Args:
        folder: folder of the answer; None: the release is tried at every call.

    Example:
        >>> from nsjax.jaxtools import one_kernel_works
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


# Compilation of programs that run once, such as the checks of a start, or for few steps.


OPTIMISATION, EMITTERS = "xla_backend_optimization_level", "xla_cpu_use_fusion_emitters"

WITHOUT_EMITTERS = ("0.10.2",)
"""Tested releases of jaxlib that know the option `EMITTERS`; 0.11.2 always uses the emitters."""


def unoptimised() -> dict[str, int | bool]:
    """Compiler options of programs that run once or for few steps; empty for a release that was not tested,
    which might refuse them.

    Numbers differ from those of an optimised program by rounding at most. Steps of runs take ten times as
    long. Without optimisation, gradients compile and run faster without the fusion emitters.
    """
    release = metadata.version("jaxlib")
    level = {OPTIMISATION: 0} if release in TESTED_JAXLIB else {}
    return level | ({EMITTERS: False} if release in WITHOUT_EMITTERS else {})


def compiled_once(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`jax.jit` of a function that is called outside transformations, once per run or for few steps, with
    the ``options`` of `jax.jit`, static arguments for instance. JAX refuses compiler options inside
    `jax.jit`, `jax.vmap` and the like: call ``function`` itself there.

    Example:
        >>> from nsjax.jaxtools.compilation import compiled_once
        >>> float(compiled_once(lambda x: x + 1.0)(1.0))
        2.0
    """
    return jax.jit(function, compiler_options=unoptimised() or None, **options)


STEPS_VARIABLE = "NSJAX_FEW_STEPS"
"""Variable of the environment by which `nsjax.configure` says another number of `few_steps`."""


def few_steps(rows: int) -> int:
    """Number of steps of differentiated runs, all calls of one program together, that take the program
    without optimisation; zero on other devices than the CPU.

    A program without optimisation compiles in half the time. Its steps in contact take longer, at most 0.3
    us for each entry of the cube of the ``rows`` of forces and constraints (14 ms for the 36 rows of go1):
    the steps counted here spend 30 s, less than optimisation takes for such a robot.
    """
    given, usual, entries = os.environ.get(STEPS_VARIABLE, ""), 20_000, 1e8
    if jax.default_backend() != "cpu":
        return 0
    return int(given) if given.isdigit() else int(min(usual, entries / max(rows, 1) ** 3))


# Notes on stderr about long compilations, in place of the compiler's own alarm.


COMPILE = "/jax/core/compile/backend_compile_duration"
TRACE = "/jax/core/compile/jaxpr_trace_duration"
PHASES = (TRACE, "/jax/core/compile/jaxpr_to_mlir_module_duration", COMPILE)
"""JAX's names of the events of tracing, lowering and compiling, with a beginning and an end each."""

INSIDE = "_whole_run"
"""JAX's name of a run inside a transformation, and of its reverse derivative."""

PROGRAMS = {
    "_advance": "the time loop", "begin_run": "the start of the run",
    INSIDE: "the time loop inside a transformation",
}  # fmt: skip
"""Texts that describe functions of the package in notes."""

NAMELESS = ("a time loop inside a transformation", "a part")
"""Texts for programs that are not known by name, which may be others at another time."""

USUAL_TIMES = "first runs take up to half a minute, first gradients minutes"
"""Of robots of 3 to 20 joints, with contacts, on two cores."""

JAX_LEVEL = "1"  # TF_CPP_MIN_LOG_LEVEL as set by the import of JAX
SILENT, USUAL = 3, 1  # levels of the compiler's messages: fatal ones only; warnings and errors


def interactive() -> bool:
    """Whether a person may read stderr: a Python prompt, IPython or a notebook, or a terminal."""
    if hasattr(sys, "ps1"):
        return True
    shell = sys.modules.get("IPython")
    if shell is not None and shell.get_ipython() is not None:
        return True
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):  # no stderr, or a closed one
        return False


class Note:
    """A line about one program, which is written again every second while work on it lasts.

    Args:
        say: function that takes the line, and whether it is the last one.
        words: what is compiled.
        patience: time of work before the first line [s].
    """

    def __init__(self, say: Callable[[str, bool], None], words: str, patience: float) -> None:
        self.say, self.words, self.patience = say, words, patience
        self.begun, self.spent, self.told = time.monotonic(), 0.0, False
        self.timer: threading.Timer | None = None
        self.lock = threading.Lock()

    def run(self) -> None:
        """Begins to count."""
        self._wait(1.0 if self.told else max(self.begun + self.patience - time.monotonic(), 0.0))

    def _wait(self, seconds: float) -> None:
        self.timer = threading.Timer(seconds, self._tell)
        self.timer.daemon = True
        self.timer.start()

    def _tell(self) -> None:
        with self.lock:
            if self.timer is None:
                return
            before = None if self.words in NAMELESS else _last_times().get(self.words)
            known = USUAL_TIMES if before is None else f"last time on this machine {before:.0f} s"
            self.say(
                f"nsjax: compiling {self.words}: {time.monotonic() - self.begun:.0f} s; {known}", False
            )
            self.told = True
            self._wait(1.0)

    def stop(self, done: bool) -> None:
        """Stops to count; ``done``: the program is compiled."""
        with self.lock:
            if self.timer is not None:
                self.timer.cancel()
                self.timer, self.spent = None, time.monotonic() - self.begun
            if done and self.told:
                self.say(f"nsjax: compiled {self.words} in {self.spent:.0f} s", True)
                _keep_time(self.words, self.spent)
                self.told = False


class CompileListener:
    """Listener of JAX's events of tracing, lowering and compiling, for notes on long ones, and to compile
    with fewer looks for garbage.

    Args:
        say: function that takes a line about a program, and whether it is the last one; None: no notes.
        patience: time of work on one program before a note [s].
    """

    def __init__(self, say: Callable[[str, bool], None] | None, patience: float = 3.0) -> None:
        self.say = say
        self.patience = patience
        self.lock = threading.Lock()
        self.alarms = 0
        self.programs = 0
        self.threshold: tuple[int, int, int] | None = None
        self.local = threading.local()

    def begin(self, event: str, value: float | int, **kwargs: str | int) -> None:
        """Takes the beginning of an event."""
        if event not in PHASES:
            return
        if event == COMPILE:
            self._quiet(+1)
        local = self.local
        depth = getattr(local, "depth", 0)
        local.depth = depth + 1
        if not depth:
            self._collect_less(+1)
        if depth or self.say is None:  # inner programs belong to the outermost one
            return
        name = str(kwargs.get("fun_name", "a program"))
        if name.startswith(("jit(", "jit_")):  # JAX's additions
            name = name[4:].removesuffix(")")
        # longest break between tracing, lowering and compiling that still belong to one program [s]
        pause = 5.0
        if name != getattr(local, "name", None) or time.monotonic() - local.ended > pause:
            if getattr(local, "note", None) is not None:
                local.note.stop(True)
            local.name, local.note = name, Note(self.say, _words(name, sys._getframe()), self.patience)
        local.note.run()

    def end(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        """Takes the end of an event."""
        if event not in PHASES:
            return
        if event == COMPILE:
            self._quiet(-1)
        local = self.local
        local.depth = max(getattr(local, "depth", 1) - 1, 0)
        if local.depth:
            return
        self._collect_less(-1)
        local.ended = time.monotonic()
        note = getattr(local, "note", None)
        if note is not None:
            note.stop(event == COMPILE)

    def _collect_less(self, change: int) -> None:
        """Makes Python's garbage collector wait for more new objects while a program is traced, lowered or
        compiled: to look for garbage among those of a trace takes a third of the time of a gradient.
        """
        many = 50_000  # new objects between two looks: some 5 MB; Python waits for 700 or 2,000
        with self.lock:
            before, self.programs = self.programs, max(self.programs + change, 0)
            now = gc.get_threshold()
            if before == 0 and self.programs and 0 < now[0] < many:
                self.threshold = now
                gc.set_threshold(many, *now[1:])
            elif self.programs == 0 and self.threshold is not None:
                if now == (many, *self.threshold[1:]):  # else somebody has set it meanwhile
                    gc.set_threshold(*self.threshold)
                self.threshold = None

    def _quiet(self, change: int) -> None:
        """Restricts the compiler to fatal messages while programs compile; failures are exceptions."""
        level = getattr(jax.config, "jax_logging_level", None)
        if os.environ.get("TF_CPP_MIN_LOG_LEVEL", JAX_LEVEL) != JAX_LEVEL or level not in (None, "NOTSET"):
            return  # the user chose the level
        with self.lock:
            before, self.alarms = self.alarms, max(self.alarms + change, 0)
            if (before == 0) != (self.alarms == 0):
                set_log_level(SILENT if self.alarms else USUAL)


def _words(name: str, frame: FrameType | None) -> str:
    """The program that is compiled in plain words, from the function that requested it."""
    model = scheme = None
    while frame is not None and (model is None or scheme is None):
        if frame.f_globals.get("__name__", "").startswith("nsjax."):
            model = model or getattr(frame.f_locals.get("system"), "name", None)
            scheme = scheme or getattr(frame.f_locals.get("scheme"), "name", None)
        frame = frame.f_back
    words = PROGRAMS.get(name, NAMELESS[1] if name.startswith("_") else name)
    words = words if model or name != INSIDE else NAMELESS[0]
    return f"{words}{f' of {model}' if model else ''}{f' with {scheme}' if scheme else ''}"


def _times_file() -> pathlib.Path | None:
    """File of the times that programs took; None where programs are not kept."""
    folder = CONFIG.jax_compilation_cache_dir if CONFIG.jax_enable_compilation_cache else None
    return None if folder is None else pathlib.Path(folder) / "nsjax-times.json"


def _last_times() -> dict[str, float]:
    """Seconds by the words of programs."""
    path = _times_file()
    try:
        found = {} if path is None else dict(json.loads(path.read_text(encoding="utf-8")))
        return {name: x for name, x in found.items() if isinstance(x, float)}
    except (OSError, ValueError, TypeError):  # none yet, or another process is writing
        return {}


def _keep_time(words: str, seconds: float) -> None:
    path, most = _times_file(), 500  # programs whose times are kept
    if path is not None:
        kept = list({**_last_times(), words: round(seconds, 1)}.items())[-most:]
        with contextlib.suppress(OSError):
            path.write_text(json.dumps(dict(kept)), encoding="utf-8")


def _print(line: str, last: bool) -> None:
    """Writes a line over the one before where that is seen, else the first one alone."""
    global _width
    line = line[: shutil.get_terminal_size((200, 1)).columns - 1]  # a longer one is not written over
    with contextlib.suppress(AttributeError, OSError, ValueError):  # stderr is closed
        if _width == 0 or interactive():
            print(f"\r{line:<{_width}}", end="\n" if last else "", file=sys.stderr, flush=True)
        elif last:
            print(file=sys.stderr, flush=True)
    _width = 0 if last else max(_width, len(line))


_width = 0
_watch = CompileListener(None)
_listening = False


@contextlib.contextmanager
def tracing(name: str) -> Iterator[None]:
    """Context that reports Python's work on the program ``name`` to the listener: JAX has no event."""
    _watch.begin(TRACE, 0.0, fun_name=name)
    try:
        yield
    finally:
        _watch.end(TRACE, 0.0, fun_name=name)


@contextlib.contextmanager
def notes_to(say: Callable[[str, bool], None]) -> Iterator[None]:
    """Context in which a function takes the notes about long compilations, whoever reads stderr. ``say``:
    function of a line and of whether it is the last one about its program.

    Example:
        >>> import jax
        >>> from nsjax.jaxtools import notes_to
        >>> with notes_to(lambda line, last: print(line)):  # too short for a note
        ...     float(jax.jit(lambda x: x + 1.0)(1.0))
        2.0
    """
    before, _watch.say = _watch.say, say
    try:
        yield
    finally:
        _watch.say = before


def watch_compiling(announce: bool | None = None) -> None:
    """Starts notes about long compilations on stderr and suppresses the compiler's alarm.

    A note is one line, written again every second: what compiles, the time so far, and what it took last
    time on this machine.

    XLA logs the alarm (``Very slow compile? If you want to file a bug, ...``) as an error after two
    minutes, although nothing is wrong. Messages of the compiler are therefore suppressed while it works,
    unless ``TF_CPP_MIN_LOG_LEVEL`` or ``JAX_LOGGING_LEVEL`` is set; its failures are exceptions in any
    case. A second call changes the receiver of notes and adds no second listener.

    Args:
        announce: whether to write notes; None: if a person may read them (`interactive`).

    Example:
        >>> from nsjax.jaxtools import watch_compiling
        >>> watch_compiling(announce=False)
    """
    global _listening
    announced = interactive() if announce is None else announce
    _watch.say = _print if announced else None
    if _listening:
        return
    jax.monitoring.register_scalar_listener(_watch.begin)
    jax.monitoring.register_event_duration_secs_listener(_watch.end)
    _listening = True
