"""Saved runs: bit for bit, without pickles, whole or not at all."""

from __future__ import annotations

import dataclasses
import pathlib
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, Problem, State, System, io, models, schemes
from nsjax.trajectory import ROWS
from nsjax.types import record
from tests.io.runs import CRANK, SCHEME, assert_same, crank
from tests.points import spring, unit_mass

BALLS = models.bouncing_ball(
    balls=2, dimension=2, friction=0.3, height=[0.02, 0.01], restitution=[0.5, 0.6, 0.7]
)


@pytest.fixture(scope="module")
def balls():
    return nsjax.simulate(*BALLS, SCHEME, dt=1e-3, steps=200, every=4, events=5)


def test_a_run_comes_back_bit_for_bit(tmp_path: pathlib.Path, balls) -> None:
    assert balls.impacts.sum() > 0
    io.save(tmp_path / "run.npz", BALLS, balls, scheme=SCHEME)
    problem, traj = io.load(tmp_path / "run.npz")
    assert_same(problem, BALLS)  # the system too: it is part of the structure
    assert_same(traj, balls)
    assert isinstance(problem.params.friction, float)  # as it was given
    assert_same(traj["energy"], balls["energy"])


def test_a_loaded_run_continues_bit_for_bit(tmp_path: pathlib.Path) -> None:
    whole, first = crank(500), crank(300)
    assert whole.impacts[31:].sum() > 0  # something happens after the seam
    io.save(tmp_path / "first.npz", CRANK, first)
    problem, loaded = io.load(tmp_path / "first.npz")
    rest = nsjax.simulate(*problem, SCHEME, dt=2e-5, steps=200, every=10, notes=True, carry=loaded.carry)
    for name in ("t", "q", "v", *ROWS):
        assert_same(getattr(rest, name)[1:], getattr(whole, name)[31:])
    assert_same(rest.carry, whole.carry)


@record()
class Memory:
    """What a scheme outside the package might remember."""

    past: tuple
    named: dict


def test_whatever_a_scheme_remembers_comes_back(tmp_path: pathlib.Path) -> None:
    traj = crank(40)
    memory = Memory(
        past=(jnp.arange(3.0), None, [1, 2.5]), named={"on": True, "law": State(t=0.0, q=1, v=2)}
    )
    carry = dataclasses.replace(traj.carry.carry, memory=memory)
    traj = dataclasses.replace(traj, carry=dataclasses.replace(traj.carry, carry=carry))
    io.save(tmp_path / "run.npz", CRANK, traj)
    assert_same(io.load(tmp_path / "run.npz").traj, traj)


OSCILLATOR = Problem(
    system=System(nq=1, nv=1, mass=unit_mass, force=spring, name="oscillator"),
    params={"k": 2.0},
    state=State(t=0.0, q=np.array([1.0]), v=np.array([0.0])),
)


def test_a_system_of_ones_own_needs_its_problem(tmp_path: pathlib.Path) -> None:
    traj = nsjax.simulate(*OSCILLATOR, SCHEME, dt=1e-2, steps=20)
    io.save(tmp_path / "run.npz", OSCILLATOR, traj)
    with pytest.raises(InputError, match=r"'oscillator', which is no registered model.*problem="):
        io.load(tmp_path / "run.npz")
    problem, loaded = io.load(tmp_path / "run.npz", problem=OSCILLATOR.replace(k=99.0))
    assert_same((problem, loaded), (OSCILLATOR, traj))
    with pytest.raises(InputError, match="run of 'oscillator', not of 'slider_crank'"):
        io.load(tmp_path / "run.npz", problem=CRANK)
    with pytest.raises(InputError, match=r"must be an nsjax\.Problem"):
        io.load(tmp_path / "run.npz", problem=OSCILLATOR.system)


def test_numpy_alone_reads_it(tmp_path: pathlib.Path, balls) -> None:
    io.save(tmp_path / "run.npz", BALLS, balls, scheme=SCHEME)
    with np.load(tmp_path / "run.npz", allow_pickle=False) as file:
        found = {name: file[name] for name in file.files}  # every entry opens without pickles
    assert found["labels.q"].tolist()[:2] == ["x1 [m]", "y1 [m]"]
    assert found["labels.contacts"].tolist() == ["ball 1 on table", "ball 2 on table", "balls 1 and 2"]
    assert found["q"].shape == (51, 6)
    assert found["params.friction"] == 0.3
    assert found["params.restitution"].tolist() == [0.5, 0.6, 0.7]
    assert found["dt"] == 1e-3
    assert (str(found["model"]), str(found["scheme"])) == ("bouncing_ball", "moreau")
    assert found["nsjax_schema"] == io.SCHEMA
    assert str(found["nsjax_version"]) == nsjax.__version__


def test_the_header_tells_how_it_was_made(tmp_path: pathlib.Path) -> None:
    scheme = schemes.moreau(force_velocity="midpoint", gap_tolerance=1e-9)
    io.save(
        tmp_path / "run.npz", CRANK, crank(40), scheme=scheme, note="a", sizes=np.arange(2),
        deep={"x": [1, None]},
    )  # fmt: skip
    header = io.header(tmp_path / "run.npz")
    assert header["metadata"] == {"note": "a", "sizes": [0, 1], "deep": {"x": [1, None]}}
    assert header["scheme"]["name"] == "moreau"
    assert header["scheme"]["numbers"]["gap_tolerance"] == 1e-9
    assert header["scheme"]["options"]["force_velocity"] == "midpoint"
    assert (header["model"], header["dt"], header["schema"]) == ("slider_crank", 2e-5, io.SCHEMA)


def test_equal_runs_make_equal_files(tmp_path: pathlib.Path) -> None:
    for name in ("a.npz", "b.npz"):
        io.save(tmp_path / name, CRANK, crank(40))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("part", ["params", "system", "problem", "scheme", "metadata", "batch"])
def test_what_does_not_belong_together_is_not_written(tmp_path: pathlib.Path, part: str) -> None:
    path, traj = tmp_path / "run.npz", crank(40)
    calls = {
        "params": (lambda: io.save(path, CRANK.replace(friction=0.5), traj), "ran with other parameters"),
        "system": (lambda: io.save(path, BALLS, traj), "not a run of this problem's system"),
        "problem": (lambda: io.save(path, CRANK.system, traj), "problem = .*must be"),
        "scheme": (lambda: io.save(path, CRANK, traj, scheme=schemes.moreau), "scheme = .*must be"),
        "batch": (lambda: io.save(path, CRANK, jax.tree.map(lambda x: x[None], traj)), "one by one"),
        "metadata": (lambda: io.save(path, CRANK, traj, who=object()), r"metadata\.who = "),
    }
    call, words = calls[part]
    with pytest.raises(InputError, match=words):
        call()
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_everything_as_it_was(tmp_path: pathlib.Path, monkeypatch) -> None:
    path, traj = tmp_path / "run.npz", crank(40)
    path.write_bytes(b"precious")
    original, calls = np.lib.format.write_array, []

    def full(*args, **options):
        calls.append(1)
        if len(calls) > 3:
            raise OSError(28, "No space left on device")
        return original(*args, **options)

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(OSError, match="No space"):
        io.save(path, CRANK, traj)
    assert len(calls) == 4  # the failure came in the middle of the file
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]
    assert path.read_bytes() == b"precious"


def test_an_existing_file_and_a_link_to_it_are_replaced(tmp_path: pathlib.Path) -> None:
    target, link = tmp_path / "run.npz", tmp_path / "link.npz"
    target.write_bytes(b"old")
    link.symlink_to(target)
    io.save(link, CRANK, crank(40))
    assert link.is_symlink()
    assert io.header(target)["model"] == "slider_crank"


def test_a_missing_file_and_a_folder_are_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(InputError, match=r"none\.npz does not exist"):
        io.load(tmp_path / "none.npz")
    with pytest.raises(InputError, match="cannot be read"):
        io.load(tmp_path)


def test_check_writable_leaves_nothing_and_keeps_what_is_there(tmp_path: pathlib.Path) -> None:
    io.check_writable(tmp_path / "new.npz")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "old.npz").write_text("old")
    io.check_writable(tmp_path / "old.npz")
    assert (tmp_path / "old.npz").read_text() == "old"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("", "is a folder"),
        ("none/run.npz", "does not exist; create it first"),
        ("file/run.npz", "cannot be written|does not exist"),
        ("x" * 300, "cannot be written"),
    ],
)
def test_check_writable_refuses(tmp_path: pathlib.Path, place: str, words: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=words):
        io.check_writable(tmp_path / place)
    with pytest.raises(InputError, match="empty"):
        io.check_writable("")
    with pytest.raises(InputError, match="no regular file"):
        io.check_writable("/dev/null")


def test_a_folder_that_takes_no_files_is_refused(tmp_path: pathlib.Path, monkeypatch) -> None:
    def refuse(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("os.open", refuse)  # permission bits would not stop root
    with pytest.raises(InputError, match="cannot be written: Read-only file system"):
        io.check_writable(tmp_path / "run.npz")


def test_archives_hold_no_pickles_and_no_dates(tmp_path: pathlib.Path) -> None:
    io.save(tmp_path / "run.npz", CRANK, crank(40))
    with zipfile.ZipFile(tmp_path / "run.npz") as archive:
        assert archive.testzip() is None
        for entry in archive.infolist():
            assert entry.date_time == (1980, 1, 1, 0, 0, 0)
            with archive.open(entry) as part:
                assert np.lib.format.read_array(part, allow_pickle=False).dtype != object


def test_numbers_that_would_need_a_pickle_are_refused(tmp_path: pathlib.Path) -> None:
    traj = crank(40)
    odd = dataclasses.replace(traj, iterations=np.array([{}], object))
    with pytest.raises(InputError, match="iterations has type object"):
        io.save(tmp_path / "run.npz", CRANK, odd)
    assert list(tmp_path.iterdir()) == []
