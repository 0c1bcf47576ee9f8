"""``nsjax identify``: parameters of a model from measured data, configured by a TOML file."""

from __future__ import annotations

import argparse
import csv
import json
import os
import pathlib
import time
import tomllib
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

import nsjax
from nsjax import io, plot, transforms
from nsjax.cli.inputs import check_files, read_problem, read_scheme
from nsjax.core import InputError, State
from nsjax.core.errors import check_choice, check_known
from nsjax.identify.records import as_dict
from nsjax.trajectory import RunError

# Columns of measured data from CSV and npz files.


MISSING = ("", "nan", "na", "n/a", "none", "-")
"""Entries, in upper or lower case, that mean a missing value."""

SEPARATORS = {";": "semicolons", "\t": "tabulators", " ": "spaces"}


def read_columns(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Columns of a CSV file with a heading, or arrays of an npz file; missing entries are not a number.

    Raises:
        InputError: for a file that cannot be read; for other separators than commas, a missing heading, a
            file without rows, rows of another length, and text instead of numbers.
    """
    try:
        if path.suffix == ".npz":
            try:
                with np.load(path) as file:
                    return {name: np.asarray(file[name], float) for name in file.files}
            except (ValueError, EOFError, zipfile.BadZipFile) as error:
                raise InputError(f"{path}: it is no archive of numbers: {error}") from None
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: it is no text; give a CSV file with a heading, or an .npz") from None
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError(f"{path}: it is empty; give a heading and rows of numbers")
    names = [name.strip() for name in next(csv.reader(lines[:1]))]
    # refuses a first line that is not a heading
    if len(names) == 1:
        for mark, word in SEPARATORS.items():
            if mark in names[0]:
                raise InputError(
                    f"{path}: columns are separated by {word}; write commas, and points in numbers"
                )
    if all(_number(name) is not None for name in names):
        raise InputError(
            f"{path}: the first line is {', '.join(names)}; write the names of the columns there"
        )
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise InputError(f"{path}: two columns are named {double!r}")
    if len(lines) == 1:
        raise InputError(f"{path}: there are no rows under the heading {', '.join(names)}")
    rows = [_row(path, names, k, cells) for k, cells in enumerate(csv.reader(lines[1:]), start=2)]
    return dict(zip(names, np.asarray(rows, float).T, strict=True))


def _number(cell: str) -> float | None:
    """The number of a cell, None for text."""
    try:
        return np.nan if cell.strip().lower() in MISSING else float(cell)
    except ValueError:
        return None


def _row(path: pathlib.Path, names: list[str], line: int, cells: list[str]) -> list[float]:
    if len(cells) != len(names):
        raise InputError(
            f"{path}: row {line} has {len(cells)} entries, the heading {len(names)} names; a missing value "
            "is an empty entry"
        )
    found = [_number(cell) for cell in cells]
    for name, cell, number in zip(names, cells, found, strict=True):
        if number is None:
            raise InputError(f"{path}: row {line}, column {name}: {cell.strip()!r} is no number")
    return [x for x in found if x is not None]


TABLES = ("model", "scheme", "dt", "set", "scheme_set", "train", "data", "holdout", "options")
OPTIONS = (
    "method", "learning_rate", "starts", "spread", "seed", "loss", "gradient", "cost_tolerance", "max_runs",
    "level", "curvature", "tolerance",
)  # fmt: skip
RECORDING = ("file", "noise", "start", "name", "time", "columns")
WORDS = ("model", "scheme", "file", "name", "time")
PARTS = ("set", "scheme_set", "train", "options", "start", "columns")
"""Entries of a file, or of a recording in it: those with text, and those with tables."""

KINDS: dict[str, Any] = {
    "free": transforms.free, "positive": transforms.positive, "interval": transforms.interval,
    "box": transforms.box, "fixed": transforms.fixed,
}  # fmt: skip

EPILOG = """example of a file:

  model = "slider-crank"            # of `nsjax list`, or a Python file with a function problem()
  scheme = "moreau_theta"
  dt = 1e-5                         # [s]
  [set]                             # numbers that stay
  torque = 0.0
  [train]                           # what is trained and how it may vary
  clearance = {transform = "positive", initial = 1.1e-3}
  restitution = {transform = "interval", low = 0.0, high = 1.0}
  [[data]]                          # one table per recording; columns of the file: t, x, y
  file = "path.csv"                 # or .npz
  noise = 5e-5                      # or {x = 5e-5, y = 2e-5}; leave it out if unknown
  [[holdout]]                       # recordings kept from the fit (optional)
  file = "other.csv"
  noise = 5e-5
  [options]                         # optional: method, starts, loss, max_runs, ... of nsjax.identify
  starts = 4
"""


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    add.formatter_class = argparse.RawDescriptionHelpFormatter
    add.add_argument("config", metavar="FILE.toml", help="what is identified from which data")
    add.add_argument("--output", metavar="FILE.json", help="save estimates, intervals, covariance, history")
    add.add_argument("--plot", metavar="FILE.png", help="draw fit, residuals, intervals and correlation")
    add.add_argument("--quiet", action="store_true", help="print nothing but failures")


def run(args: argparse.Namespace) -> int:
    """Runs the command ``nsjax identify``.

    Raises:
        InputError: for input that can be refused before the search.
        RunError: if the search did not succeed, after its results have been shown and written.
    """
    check_files(args.output, args.plot, args.config)
    problem, scheme, data, train, options = read_config(pathlib.Path(args.config))
    begin = time.perf_counter()
    found = nsjax.identify(problem, scheme, data, train, **options)
    seconds = time.perf_counter() - begin
    if args.output is not None:
        with io.replacing(args.output) as file:
            file.write((json.dumps(as_dict(found), indent=2) + "\n").encode())
    if args.plot is not None:
        plot.identification(found, args.plot)
    if not args.quiet:
        print(found)
        print(f"{found.calls} compiled calls, {seconds:.3g} s, compilation included")
        print("".join(f"wrote {path}\n" for path in (args.output, args.plot) if path is not None), end="")
    if not found.success:
        why = [m for m in found.messages if m.startswith("not identifiable")] or list(found.messages)
        raise RunError(f"identify: no success: {why[0]}")
    return 0


def read_config(path: pathlib.Path) -> tuple[Any, Any, list[Any], dict[str, Any], dict[str, Any]]:
    """Problem, scheme, recordings, transforms and options of a file. Raises `InputError` for errors in the
    file.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None
    _refuse_unknown(given, TABLES, str(path))
    _refuse_kinds(given, str(path))
    for name in ("model", "dt", "train", "data"):
        if name not in given:
            raise InputError(f"{path}: {name} is missing; see nsjax identify --help")
    model = given["model"]
    if str(model).endswith(".py"):
        model = os.fspath(path.parent / model)
    problem, _, _ = read_problem(model, given.get("set", {}))
    scheme = read_scheme(given.get("scheme", "moreau"), given.get("scheme_set", {}))
    train = {name: _transform(f"{path}: train.{name}", entry) for name, entry in given["train"].items()}
    options = _options(f"{path}: options", given.get("options", {}))
    data = [_recording(path, x) for x in _several(path, given, "data")]
    options |= {
        "dt": given["dt"],
        "holdout": [_recording(path, x) for x in _several(path, given, "holdout")],
    }
    return problem, scheme, data, train, options


def _several(path: pathlib.Path, given: Mapping[str, Any], name: str) -> list[Any]:
    found = given.get(name, [])
    if not isinstance(found, list) or not all(isinstance(x, dict) for x in found):
        raise InputError(f"{path}: write each recording as [[{name}]]")
    return found


def _refuse_unknown(given: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in given:
        check_known(f"{where}: unknown entry", name, known)


def _refuse_kinds(given: Mapping[str, Any], where: str) -> None:
    """Refuses entries of another kind than the text or the table that their name requires."""
    for name, value in given.items():
        if name in WORDS and not isinstance(value, str):
            raise InputError(f"{where}: {name} = {value!r}; write it in quotes")
        if name in PARTS and not isinstance(value, Mapping):
            raise InputError(f"{where}: {name} = {value!r}; it must be a table, see nsjax identify --help")


def _transform(where: str, given: Any) -> transforms.Transform:
    entry = dict(given) if isinstance(given, Mapping) else {"transform": given}
    kind = entry.pop("transform", None)
    check_choice(f"{where}: transform", kind, KINDS)
    try:
        return KINDS[kind](**entry)
    except TypeError as error:
        raise InputError(f"{where}: {error}") from None


def _options(where: str, given: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_unknown(given, OPTIONS, where)
    options = dict(given)
    if options.get("method") == "adam":
        import optax

        options["method"] = optax.adam(options.pop("learning_rate", 0.02))
    elif "learning_rate" in options:
        rate = options["learning_rate"]
        raise InputError(f"{where}: learning_rate = {rate}; only method = 'adam' has one, leave it out")
    return options


def _recording(config: pathlib.Path, given: Mapping[str, Any]) -> nsjax.Recording:
    """One recording; paths of its files are relative to the configuration."""
    _refuse_unknown(given, RECORDING, f"{config}: data")
    _refuse_kinds(given, f"{config}: data")
    if "file" not in given:
        raise InputError(f"{config}: a recording has no file; write file = 'data.csv'")
    path = config.parent / given["file"]
    columns = read_columns(path)
    clock = given.get("time", "t")
    wanted = given.get("columns", {name: name for name in columns if name != clock})
    for name in (clock, *wanted.values()):
        check_known(f"{path}: no column", name, columns)
    values = {label: columns[name] for label, name in wanted.items()}
    start = given.get("start")
    if start is not None:
        numbers: Any = {name: np.asarray(start.get(name, 0.0), float) for name in ("t", "q", "v")}
        start = State(**numbers)
    return nsjax.Recording(
        times=columns[clock], values=values, noise=given.get("noise"), start=start,
        mask={name: np.isfinite(x) for name, x in values.items()}, name=given.get("name", path.stem),
    )  # fmt: skip
