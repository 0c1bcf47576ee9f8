"""Notes on stderr about long compilations, in place of the compiler's own alarm."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

import jax

from nsjax.startup.cache import CONFIG

NOTE_AFTER = 3.0
"""Time of work on one program before a note [s]."""

COMPILE = "/jax/core/compile/backend_compile_duration"
TRACE = "/jax/core/compile/jaxpr_trace_duration"
PHASES = {
    TRACE: "tracing",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lowering",
    COMPILE: "compiling",
}
"""JAX's names of the events of tracing, lowering and compiling, with a beginning and an end each."""

INSIDE = "scan"
"""JAX's name of a loop outside compiled functions: that of a run in a gradient, for instance."""

PROGRAMS = {
    "_advance": "the time loop", "begin_run": "the start of the run",
    INSIDE: "the time loop inside a transformation",
}  # fmt: skip
"""Texts that describe functions of the package in notes."""

USUAL_TIMES = (
    "first runs of mechanisms take seconds to half a minute, first gradients half a minute to minutes"
)
"""Measured on two cores: robots of 3 to 20 joints, with contacts."""

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


class CompileListener:
    """Listener of JAX's events of tracing, lowering and compiling.

    Args:
        say: function that outputs a note; None: no notes.
        patience: time of work on one program before a note [s].
    """

    def __init__(self, say: Callable[[str], None] | None, patience: float = NOTE_AFTER) -> None:
        self.say = say
        self.patience = patience
        self.lock = threading.Lock()
        self.alarms = 0
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
        if depth or self.say is None:  # inner programs belong to the outermost one
            return
        name = _bare(str(kwargs.get("fun_name", "a program")))
        now = time.monotonic()
        # longest break between tracing, lowering and compiling that still belong to one program [s]
        pause = 5.0
        if name != getattr(local, "name", None) or now - local.ended > pause:
            local.name, local.begun, local.said = name, now, False
        if local.said:
            return
        local.said_box = said = [False]
        sentence = _sentence(name, sys._getframe())
        local.timer = threading.Timer(
            max(local.begun + self.patience - now, 0), self._tell, (sentence, said)
        )
        local.timer.daemon = True
        local.timer.start()

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
        local.ended = time.monotonic()
        timer = getattr(local, "timer", None)
        if timer is not None:
            timer.cancel()
            local.timer, local.said = None, local.said_box[0]

    def _tell(self, sentence: str, said: list[bool]) -> None:
        said[0] = True
        if self.say is not None:
            self.say(sentence)

    def _quiet(self, change: int) -> None:
        """Restricts the compiler to fatal messages while programs compile; failures are exceptions."""
        level = getattr(jax.config, "jax_logging_level", None)
        if os.environ.get("TF_CPP_MIN_LOG_LEVEL", JAX_LEVEL) != JAX_LEVEL or level not in (None, "NOTSET"):
            return  # the user chose the level
        with self.lock:
            before, self.alarms = self.alarms, max(self.alarms + change, 0)
            if (before == 0) != (self.alarms == 0):
                _set_level(SILENT if self.alarms else USUAL)


def _set_level(level: int) -> None:
    """Sets the least level of messages of the compiler, if this release of jaxlib can."""
    try:
        from jax._src.lib import utils  # no public call does it without changing Python's loggers too

        utils.absl_set_min_log_level(level)
    except (ImportError, AttributeError):
        pass


def _bare(name: str) -> str:
    """Name of a function without JAX's additions."""
    for prefix in ("jit(", "jit_"):
        if name.startswith(prefix):
            return name.removeprefix(prefix).removesuffix(")")
    return name


def _sentence(name: str, frame: FrameType | None) -> str:
    """Sentence about the program that is compiled, from the function that requested it."""
    model = scheme = None
    while frame is not None and (model is None or scheme is None):
        if frame.f_globals.get("__name__", "").startswith("nsjax."):
            model = model or getattr(frame.f_locals.get("system"), "name", None)
            scheme = scheme or getattr(frame.f_locals.get("scheme"), "name", None)
        frame = frame.f_back
    words = PROGRAMS.get(name, name) if model or name != INSIDE else "a loop"
    model = f" of {model}" if model else ""
    scheme = f" with {scheme}" if scheme else ""
    return f"nsjax: compiling {words}{model}{scheme} takes longer than {NOTE_AFTER:g} s; {USUAL_TIMES}"


def _print(sentence: str) -> None:
    kept = ""
    if CONFIG.jax_compilation_cache_dir and CONFIG.jax_enable_compilation_cache:
        kept = "; the next process finds it ready"
    with contextlib.suppress(AttributeError, OSError, ValueError):  # stderr is closed
        print(f"{sentence}{kept}", file=sys.stderr, flush=True)


_watch = CompileListener(None)
_listening = False


@contextlib.contextmanager
def tracing(name: str) -> Iterator[None]:
    """Context that reports Python's work on a program to the listener, for which JAX has no event.

    Args:
        name: JAX's name of the program.
    """
    _watch.begin(TRACE, 0.0, fun_name=name)
    try:
        yield
    finally:
        _watch.end(TRACE, 0.0, fun_name=name)


def watch_compiling(announce: bool | None = None) -> None:
    """Starts notes about long compilations on stderr and suppresses the compiler's alarm.

    XLA logs the alarm (``Very slow compile? If you want to file a bug, ...``) as an error after two
    minutes, although nothing is wrong. Messages of the compiler are therefore suppressed while it works,
    unless ``TF_CPP_MIN_LOG_LEVEL`` or ``JAX_LOGGING_LEVEL`` is set; its failures are exceptions in any
    case. A second call changes the receiver of notes and adds no second listener.

    Args:
        announce: whether to write notes; None: if a person may read them (`interactive`).

    Example:
        >>> from nsjax.startup import watch_compiling
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
