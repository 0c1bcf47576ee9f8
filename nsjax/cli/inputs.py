"""Problem, scheme and lengths of a run from the arguments of the command line."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import math
import os
import pathlib
import sys
import traceback
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from nsjax import io, models, multibody, plot, schemes
from nsjax.core import InputError, Problem, Scheme, nearest
from nsjax.core.checks import check_lengths, concrete_number

SAVED_ROWS = 5000
"""Approximate largest number of saved rows without ``--every``."""

MODEL_FILES = (".urdf", ".xml", ".mjcf")
"""Suffixes of files for `nsjax.multibody.read_urdf` and `read_mjcf`."""


@dataclasses.dataclass(frozen=True)
class RunPlan:
    """A run that has passed the checks before its start; ``shown``: keywords of the command line."""

    problem: Problem
    scheme: Scheme
    dt: float
    steps: int
    every: int
    shown: tuple[tuple[str, Any], ...] = ()


def make_plan(args: argparse.Namespace) -> RunPlan:
    """The plan of a run from the arguments of ``nsjax simulate``. Raises `InputError` for input that can be
    refused before the run, paths of files included.
    """
    for_model, for_scheme = read_settings(args.set)
    entry = models.REGISTRY.get(args.model.replace("-", "_"))
    shown = {} if entry is None else {k: x for k, x in entry.shown if k not in for_model}
    problem, dt, duration = read_problem(args.model, {**shown, **for_model})
    scheme = read_scheme(scheme_name(args), for_scheme)
    dt, steps = read_steps(args, dt, duration, 1 if args.every is None else args.every)
    if args.output is not None and pathlib.Path(args.output).suffix != ".npz":
        raise InputError(f"--output {args.output}: runs are saved as .npz; nsjax.io.load reads them")
    if args.checkpoint is not None and pathlib.Path(args.checkpoint).suffix != ".npz":
        raise InputError(
            f"--checkpoint {args.checkpoint}: runs are saved as .npz; nsjax.io.load reads them"
        )
    check_files(args.output, args.plot, args.model, args.animate, args.checkpoint)
    if args.animate is not None:
        check_drawn(problem, args.model)
    every = default_every(steps) if args.every is None else args.every
    return RunPlan(problem, scheme, dt, steps, every, tuple(shown.items()))


def read_steps(
    args: argparse.Namespace, dt: float | None, duration: float | None, every: int = 1
) -> tuple[float, int]:
    """Step size [s] and number of steps, from the arguments or the model's defaults. Raises `InputError`
    for lengths that are missing or do not fit.
    """
    dt = dt if args.dt is None else args.dt
    if dt is None or (duration is None and args.time is None and args.steps is None):
        raise InputError(f"{args.model} has no default step size and duration; give --dt and --time")
    steps = args.steps
    if steps is None and args.time is None and duration is not None:
        # the default duration is rounded to whole steps; a given duration is not
        steps = max(1, round(duration / concrete_number(dt, "dt")))
    return dt, check_lengths(dt, steps, args.time, every, 0)


def check_drawn(problem: Problem, source: str) -> None:
    """Refuses, before any work, an animation of a system without shapes."""
    if problem.system.shapes is None:
        raise InputError(
            f"--animate: {source} has no shapes; give System(shapes=...), see help(nsjax.shapes)"
        )


def check_files(
    output: str | None, picture: str | None, source: str, animation: str | None = None,
    checkpoint: str | None = None,
) -> None:  # fmt: skip
    """Refuses, before any work, paths that cannot be written, and one path for two files."""
    for path in (output, picture, animation, checkpoint):
        if path is not None:
            io.check_writable(path)
    if picture is not None:
        plot.check_format(picture)
    if animation is not None:
        plot.check_animation(animation)
    given = (output, picture, animation, checkpoint, source)
    files = [os.path.realpath(path) for path in given if path is not None]
    if len(set(files)) < len(files):
        raise InputError(
            "--output, --plot, --animate, --checkpoint and the file that is read must be different files"
        )


def default_every(steps: int) -> int:
    """Distance of saved rows: a divisor of ``steps`` that gives at most `SAVED_ROWS` rows, or about as many
    where all such divisors would give few rows.

    Example:
        >>> from nsjax.cli.inputs import default_every
        >>> [default_every(steps) for steps in (300, 20_000, 1_000_000, 20_011)]
        [1, 4, 200, 1]
    """
    small = [d for d in range(1, math.isqrt(steps) + 1) if steps % d == 0]
    divisors = sorted({*small, *(steps // d for d in small)})
    every = next(d for d in divisors if steps // d <= SAVED_ROWS)
    if steps // every >= min(steps, SAVED_ROWS // 10):
        return every
    return min(divisors, key=lambda d: abs(math.log(steps / d / SAVED_ROWS)))


def read_settings(given: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keywords of the model and of the scheme from ``NAME=VALUE``: Python literals, true and false, or
    bare words.

    Example:
        >>> from nsjax.cli.inputs import read_settings
        >>> read_settings(["friction=0.1", "scheme.force_velocity=midpoint"])
        ({'friction': 0.1}, {'force_velocity': 'midpoint'})
    """
    for_model: dict[str, Any] = {}
    for_scheme: dict[str, Any] = {}
    for entry in given:
        name, _, text = (part.strip() for part in entry.partition("="))
        if not name or not text:
            raise InputError(f"--set {entry}: write it as NAME=VALUE, friction=0.1 for instance")
        target = for_scheme if name.startswith("scheme.") else for_model
        name = name.removeprefix("scheme.").replace("-", "_")
        if name in target:
            raise InputError(f"--set {entry}: {name} is set twice; leave one out")
        try:
            target[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            if not text.isidentifier():
                raise InputError(
                    f"--set {entry}: {text} is no number, list or word; write 0.1, [0.1,0.2] or true"
                ) from None
            target[name] = {"true": True, "false": False}.get(text, text)
    return for_model, for_scheme


def read_problem(name: str, values: Mapping[str, Any]) -> tuple[Problem, float | None, float | None]:
    """The problem of a registered model with its default step size and duration, or that of a file. Raises
    `InputError` for an unknown model, an unknown keyword, and errors in a file.
    """
    known = name.replace("-", "_")
    if known in models.REGISTRY:
        entry = models.REGISTRY[known]
        return build(known, values), entry.dt, entry.time
    if pathlib.Path(name).suffix.lower() in MODEL_FILES:
        return _from_model_file(pathlib.Path(name), values), None, None
    if name.endswith(".py") or os.path.isfile(name):
        return _from_file(pathlib.Path(name), values), None, None
    raise InputError(
        f"unknown model {name!r}; {nearest(known, models.REGISTRY)}; or give a Python file, a URDF or MJCF"
    )


def build(name: str, values: Mapping[str, Any]) -> Problem:
    """The problem of a registered model with the given keywords. Raises `InputError` for an unknown keyword
    and for values that the model refuses.
    """
    factory = models.REGISTRY[name].factory
    return _call(name, factory, _arrays(values, _parameters(factory())))


def scheme_name(args: argparse.Namespace) -> str:
    """Name of the given scheme, or of the model's own."""
    entry = models.REGISTRY.get(args.model.replace("-", "_"))
    own = "moreau" if entry is None else entry.scheme
    return str(own if args.scheme is None else args.scheme)


def read_scheme(name: str, values: Mapping[str, Any]) -> Scheme:
    """The scheme of a name, with the given keywords.

    Raises:
        InputError: for an unknown scheme or keyword.
    """
    known = name.replace("-", "_")
    if known not in schemes.REGISTRY:
        raise InputError(f"unknown scheme {name!r}; {nearest(known, schemes.REGISTRY)}")
    return _call(known, schemes.REGISTRY[known].factory, values)


def _parameters(problem: Problem) -> list[str]:
    if isinstance(problem.params, Mapping):
        return list(problem.params)
    return [f.name for f in dataclasses.fields(problem.params)]


def _arrays(values: Mapping[str, Any], parameters: Collection[str]) -> dict[str, Any]:
    """Values with lists of numbers as arrays, and lists of keywords as tuples, which are hashable."""
    found = dict(values)
    for name, value in values.items():
        if not isinstance(value, list | tuple):
            continue
        found[name] = tuple(value)
        if name in parameters or name.startswith("initial_"):
            try:
                found[name] = np.asarray(value, float)
            except (ValueError, TypeError):
                raise InputError(f"--set {name}={value}: give a list of numbers") from None
    return found


def _call(what: str, factory: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Result of ``factory(**values)``; its exceptions become an `InputError` of one sentence."""
    known, old = inspect.signature(factory).parameters, getattr(factory, "renamed", {})
    open_ended = any(p.kind is p.VAR_KEYWORD for p in known.values())
    for name in values:
        if name not in known and name not in old and not open_ended:
            raise InputError(f"{what}: unknown parameter {name!r}; {nearest(name, known)}")
    try:
        return factory(**values)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError) or not values:
            raise
        shown = ", ".join(f"{name}={value!r}" for name, value in values.items())
        raise InputError(f"{what} cannot be made with {shown}: {error}") from error


def _from_file(path: pathlib.Path, values: Mapping[str, Any]) -> Problem:
    """The problem of a Python file: the result of its function ``problem``, or its object ``problem``."""
    found: Any = None
    try:
        found = getattr(_module(path), "problem", None)
        if isinstance(found, Problem):
            found = found.replace(**_arrays(values, _parameters(found)))
        elif callable(found):
            found = _call(f"{path}: problem()", found, _arrays(values, list(values)))
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # SystemExit: the file ends the program
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == os.fspath(path)]
        where = f", line {lines[-1]}" if lines else ""
        raise InputError(f"{path}{where}: {type(error).__name__}: {error}") from error
    if not isinstance(found, Problem):
        raise InputError(
            f"{path}: found {type(found).__name__} instead of a problem; write a function problem() that "
            "returns an nsjax.Problem"
        )
    return found


def _from_model_file(path: pathlib.Path, values: Mapping[str, Any]) -> Problem:
    """The problem of a file in URDF or MJCF. Keywords are those of its reader, those of `assemble` (start:
    a mapping, or the name of a key frame; coordinates), and numbers of parts by name.
    """
    reader = multibody.read_urdf if path.suffix.lower() == ".urdf" else multibody.read_mjcf
    known = list(inspect.signature(reader).parameters)[1:]
    file = reader(path, **{k: x for k, x in values.items() if k in known})
    given = {k: x for k, x in values.items() if k in ("start", "coordinates")}
    start = given.pop("start", None)
    known_start = start is None or isinstance(start, Mapping) or start in (*file.starts, "equilibrium")
    if not known_start:
        keys = f", or name a key frame of the file: {', '.join(file.starts)}" if file.starts else ""
        raise InputError(f"--set start={start!r}: write it as {{'joint': 0.3}}{keys}")
    problem = file.problem(start, **given)
    numbers = {k: x for k, x in values.items() if k not in (*known, "start", "coordinates")}
    arrays = _arrays(numbers, list(numbers))
    return problem.replace({file.activations.place(k): x for k, x in arrays.items()})


def _module(path: pathlib.Path) -> Any:
    """The module of a Python file, run like ``python FILE``: it can import modules in its folder."""
    if not path.is_file():
        raise InputError(f"{path} does not exist")
    # registered under its own name, so that a saved run finds its records after `import`
    module = types.ModuleType(path.stem if path.stem not in sys.modules else f"{path.stem} (nsjax)")
    module.__file__ = os.fspath(path)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(path.resolve().parent))
    # compiled here, since an import would write bytecode into the user's folder
    exec(compile(path.read_bytes(), path, "exec"), module.__dict__)
    return module
