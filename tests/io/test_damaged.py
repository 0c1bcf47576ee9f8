"""Damaged files: refused in a sentence, nothing allocated for what they claim."""

from __future__ import annotations

import io as stdio
import pathlib
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest

import nsjax
from nsjax import InputError, io
from tests.io import damages
from tests.io.runs import CRANK, SCHEME, assert_same, crank


def damage(path: pathlib.Path, kind: str) -> None:
    """Makes a file that must be refused out of a good one."""
    if kind == "text":
        path.write_text("no archive")
    elif kind == "foreign":
        np.savez(path.with_suffix(""), q=np.zeros(3))
    elif kind == "header":  # of an array: an open bracket and a byte that no text has
        with zipfile.ZipFile(path) as file:
            entries = {name: file.read(name) for name in file.namelist()}
        entries["q.npy"] = entries["q.npy"].replace(b"'shape'", b"(\0hape'")
        with zipfile.ZipFile(path, "w") as file:
            for name, entry in entries.items():
                file.writestr(name, entry)
    else:
        with np.load(path) as file:
            content = {name: file[name] for name in file.files}
        if kind == "schema":
            content["nsjax_schema"] = np.asarray(io.SCHEMA + 1)
        elif kind == "lacking":
            del content["impulse_normal"]
        elif kind == "renamed":
            content["nsjax_header"] = np.asarray(
                str(content["nsjax_header"]).replace('"continuation"', '"gone"')
            )
        np.savez(path.with_suffix(""), **content)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("text", "is no nsjax archive"),
        ("foreign", "is no nsjax archive"),
        ("header", "is no nsjax archive, or it is damaged"),
        ("schema", rf"has schema {io.SCHEMA + 1} \(written by nsjax .*reads schemas 1 and {io.SCHEMA}"),
        ("lacking", "lacks 'impulse_normal'"),
        ("renamed", "gone does not exist in this version; read it with the version that wrote it"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: pathlib.Path, kind: str, words: str) -> None:
    path = tmp_path / "run.npz"
    io.save(path, CRANK, crank(40))
    io.load(path)
    damage(path, kind)
    with pytest.raises(InputError, match=words) as caught:
        io.load(path)
    assert str(path) in str(caught.value)


def header_of(shape: tuple[int, ...]) -> bytes:
    """The start of an array's entry that promises another shape, and 8 bytes."""
    file = stdio.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue() + bytes(8)


@pytest.mark.parametrize("kind", ["lying", "encrypted", "long", "nested", "compressed"])
def test_nothing_is_allocated_for_a_lie(tmp_path: pathlib.Path, kind: str) -> None:
    path, bad = tmp_path / "run.npz", tmp_path / "bad.npz"
    io.save(path, CRANK, crank(40))
    with zipfile.ZipFile(path) as old:
        entries = {name: old.read(name) for name in old.namelist()}
    if kind == "lying":  # a terabyte
        entries["q.npy"] = header_of((2**37,))
    elif kind == "long":
        entries["q.npy"] += bytes(8)
    elif kind == "nested":
        made = stdio.BytesIO()
        np.lib.format.write_array(made, np.asarray("[" * 10**5))
        entries["nsjax_header.npy"] = made.getvalue()
    with zipfile.ZipFile(bad, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    if kind == "encrypted":  # bit 0 of the flags of an entry in the list at the end
        whole = bytearray(bad.read_bytes())
        whole[whole.index(b"PK\x01\x02") + 8] |= 1
        bad.write_bytes(whole)
    elif kind == "compressed":
        whole = bytearray(bad.read_bytes())
        whole[whole.index(b"PK\x01\x02") + 10] = 99
        bad.write_bytes(whole)
    with pytest.raises(InputError, match=r"bad\.npz is no nsjax archive, or it is damaged"):
        io.load(bad)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("t", r"q has shape \(5, 3\); 4 rows of this model have \(4, 3\)"),
        ("gap", r"gap has shape \(4, 4\); 5 rows of this model have \(5, 4\)"),
        ("impulse_tangential", r"impulse_tangential has shape \(4, 4, 1\); 5 rows"),
        ("events.time", r"events\.contact has shape \(3,\) beside times \(2,\)"),
        ("carry.carry.state.q", r"the state to continue from has q of shape \(2,\)"),
        ("status", r"status is no single number"),
    ],
)
def test_rows_that_do_not_belong_together_are_refused(
    tmp_path: pathlib.Path, name: str, words: str
) -> None:
    path = tmp_path / "run.npz"
    traj = nsjax.simulate(*CRANK, SCHEME, dt=2e-5, steps=40, every=10, events=3)
    io.save(path, CRANK, traj)
    with np.load(path) as file:
        content = {key: file[key] for key in file.files}
    content[name] = np.zeros(2) if name == "status" else content[name][:-1]
    np.savez(tmp_path / "bad", **content)
    with pytest.raises(InputError, match=r"bad\.npz: it is damaged: " + words):
        io.load(tmp_path / "bad.npz")


def test_a_file_cannot_run_code(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.npz"
    io.save(path, CRANK, crank(40))
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    for address in ("antigravity:anything", "os:system", "nsjax.io.archive:save", "antigravity"):
        header = str(content["nsjax_header"]).replace('"continuation"', f'"{address}"')
        np.savez(tmp_path / "bad", **{**content, "nsjax_header": np.asarray(header)})
        with pytest.raises(InputError, match="saved record"):
            io.load(tmp_path / "bad.npz")


@pytest.mark.slow
def test_damages_at_random(tmp_path: pathlib.Path) -> None:
    """Each of 310 loads right, or ends in a sentence. Checksums tell damaged bytes; where they are right
    and something else stands in the file, what loads can at least be printed.
    """
    path = tmp_path / "run.npz"
    traj = nsjax.simulate(*CRANK, SCHEME, dt=2e-5, steps=40, every=10, events=3)
    io.save(path, CRANK, traj, scheme=SCHEME, note="a word")
    told = []
    for name, of_bytes, data in damages.drawn(path.read_bytes()):
        path.write_bytes(data)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # of a memory that starts anew
                run = io.load(path)
        except InputError as error:
            told.append(str(error))
            continue
        if of_bytes:
            assert_same(run.traj, traj)
        else:
            assert str(run.traj).startswith("model            slider_crank"), name
    assert all("\n" not in x and len(x) < 1000 for x in told)
    # the only bytes that say nothing are a fifth of those that flip: dates and flags of a list
    assert len(told) > 0.7 * damages.COUNT


def written(path: pathlib.Path, arrays: dict[str, np.ndarray]) -> None:
    """A compressed archive; large arrays are zeros, written piece by piece."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as part:
                if array.nbytes < 2**20:
                    np.lib.format.write_array(part, np.asarray(array), allow_pickle=False)
                    continue
                head = {"descr": "<f8", "fortran_order": False, "shape": array.shape}
                np.lib.format.write_array_header_1_0(part, head)
                for _ in range(array.nbytes // 2**20):
                    part.write(bytes(2**20))


@pytest.mark.slow
def test_small_files_that_open_to_much(tmp_path: pathlib.Path) -> None:
    """A kilobyte that opens to a megabyte: refused by its shape, and never opened."""
    path, huge = tmp_path / "run.npz", np.broadcast_to(0.0, 2**25)  # 256 MB
    io.save(path, CRANK, crank(40), scheme=SCHEME)
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    names = [x for x in content if content[x].dtype.kind == "f" and x != "dt" and "memory" not in x]
    assert len(names) > 20
    tracemalloc.start()
    for name in np.random.default_rng(1).choice(names, 6, replace=False):
        written(path, content | {name: huge})
        with pytest.raises(InputError, match=r"damaged|shape"):
            io.load(path)
    written(path, content | {"nsjax_header": np.broadcast_to(0.0, 2**24)})
    for read in (io.load, io.header):
        with pytest.raises(InputError, match="damaged"):
            read(path)
    written(path, content | {"unknown": huge})  # no part of the run
    io.load(path)
    assert tracemalloc.get_traced_memory()[1] < huge.nbytes / 4
    tracemalloc.stop()
