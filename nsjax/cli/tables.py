"""Columns of measured data from CSV and npz files."""

from __future__ import annotations

import csv
import pathlib
import zipfile

import numpy as np

from nsjax.core import InputError

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
            return _arrays(path)
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: it is no text; give a CSV file with a heading, or an .npz") from None
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError(f"{path}: it is empty; give a heading and rows of numbers")
    names = [name.strip() for name in next(csv.reader(lines[:1]))]
    _check_heading(path, names)
    if len(lines) == 1:
        raise InputError(f"{path}: there are no rows under the heading {', '.join(names)}")
    rows = [_row(path, names, k, cells) for k, cells in enumerate(csv.reader(lines[1:]), start=2)]
    return dict(zip(names, np.asarray(rows, float).T, strict=True))


def _arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path) as file:
            return {name: np.asarray(file[name], float) for name in file.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: it is no archive of numbers: {error}") from None


def _check_heading(path: pathlib.Path, names: list[str]) -> None:
    """Refuses a first line that is not a heading."""
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
