"""Damages of a saved run, drawn at random: of its bytes, and of what stands in it."""

from __future__ import annotations

import copy
import io as stdio
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

COUNT = 310
SEED = 13


def _somewhere(draw: np.random.Generator, whole: bytes) -> int:
    """Anywhere, or in the list of entries at the end."""
    last = len(whole) if draw.random() < 0.5 else 4000
    return len(whole) - 1 - int(draw.integers(min(last, len(whole))))


def flipped(draw: np.random.Generator, whole: bytes) -> bytes:
    at = _somewhere(draw, whole)
    return whole[:at] + bytes([whole[at] ^ (1 << int(draw.integers(8)))]) + whole[at + 1 :]


def truncated(draw: np.random.Generator, whole: bytes) -> bytes:
    return whole[: _somewhere(draw, whole)]


def zeroed(draw: np.random.Generator, whole: bytes) -> bytes:
    at, size = _somewhere(draw, whole), int(draw.integers(1, 600))
    return whole[:at] + bytes(len(whole[at : at + size])) + whole[at + size :]


def lacking(draw: np.random.Generator, whole: bytes) -> bytes:
    at, size = _somewhere(draw, whole), int(draw.integers(1, 600))
    return whole[:at] + whole[at + size :]


def doubled(draw: np.random.Generator, whole: bytes) -> bytes:
    at, size = _somewhere(draw, whole), int(draw.integers(1, 600))
    return whole[: at + size] + whole[at:]


BYTES: tuple[Callable[[np.random.Generator, bytes], bytes], ...] = (
    flipped, truncated, zeroed, lacking, doubled,
)  # fmt: skip
"""Checksums find these, or they change nothing that is read."""


def _entries(whole: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(stdio.BytesIO(whole)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _archive(entries: dict[str, bytes]) -> bytes:
    made = stdio.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return made.getvalue()


def _array(value: Any) -> bytes:
    made = stdio.BytesIO()
    np.lib.format.write_array(made, np.asarray(value), allow_pickle=True)
    return made.getvalue()


def _value(data: bytes) -> np.ndarray:
    return np.lib.format.read_array(stdio.BytesIO(data))


def without_entry(draw: np.random.Generator, whole: bytes) -> bytes:
    entries = _entries(whole)
    del entries[str(draw.choice(list(entries)))]
    return _archive(entries)


def renamed_entry(draw: np.random.Generator, whole: bytes) -> bytes:
    entries = _entries(whole)
    first, second = draw.choice(list(entries), 2, replace=False)
    entries[first], entries[second] = entries[second], entries[first]
    return _archive(entries)


def other_array(draw: np.random.Generator, whole: bytes) -> bytes:
    """An array of other shape or type under a known name, checksums right."""
    entries = _entries(whole)
    name = str(draw.choice([x for x in entries if x != "nsjax_header.npy"]))
    here = _value(entries[name])
    others = (
        here[:-1] if here.ndim else np.zeros(2), here[None], np.zeros(0), np.zeros((3, 0)),
        here.astype(str), np.asarray(None, object), np.zeros(here.shape, "datetime64[s]"),
        np.zeros(here.shape, complex), np.zeros(here.shape, [("a", float)]), np.asarray(b"bytes"),
        np.zeros(here.shape, np.float32), np.zeros(here.shape, bool), np.asarray(10**18),
    )  # fmt: skip
    entries[name] = _array(others[int(draw.integers(len(others)))])
    return _archive(entries)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in a tree of JSON."""
    found = [path] if path else []
    parts = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, part in parts:
        found += _places(part, (*path, key))
    return found


def other_header(draw: np.random.Generator, whole: bytes) -> bytes:
    """One entry of the header gone or of another kind."""
    entries = _entries(whole)
    header = json.loads(str(_value(entries["nsjax_header.npy"])))
    places = _places(header)
    *path, last = places[int(draw.integers(len(places)))]
    inside: Any = header
    for key in path:
        inside = inside[key]
    others = (
        None, 3, -1.5, "words", "state", [], {}, [1, 2], {"a": 1}, True, {"array": "q"}, {"tuple": [3]},
    )  # fmt: skip
    if draw.random() < 0.2:
        del inside[last]
    else:
        inside[last] = copy.deepcopy(others[int(draw.integers(len(others)))])
    entries["nsjax_header.npy"] = _array(json.dumps(header))
    return _archive(entries)


CONTENTS: tuple[Callable[[np.random.Generator, bytes], bytes], ...] = (
    without_entry, renamed_entry, other_array, other_header, other_header,
)  # fmt: skip
"""Checksums are right: the file says something else."""


def drawn(whole: bytes, seed: int = SEED, count: int = COUNT) -> list[tuple[str, bool, bytes]]:
    """Name of a damage, whether it is one of bytes, and the file; half of them of either sort."""
    draw = np.random.default_rng(seed)
    found = []
    for k in range(count):
        kinds = BYTES if k % 2 else CONTENTS
        damage = kinds[k // 2 % len(kinds)]
        found.append((damage.__name__, k % 2 == 1, damage(draw, whole)))
    return found
