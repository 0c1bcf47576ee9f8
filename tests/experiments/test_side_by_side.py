"""The benchmark command: the structure of what it prints. Times themselves are never tests."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib

import numpy as np
import pytest

from experiments.performance import __main__ as command
from experiments.performance import (
    child,
    drawing,
    last,
    peers,
    robots,
    scaling,
)
from experiments.performance.__main__ import TITLES, main, sections
from experiments.performance.side_by_side import Row, line, shown


def test_rows_say_what_was_asked_and_what_was_missed(capsys: pytest.CaptureFixture[str]) -> None:
    assert line(Row("a step [us]", 0.25, asked=0.5, note="load 2")).split() == [
        "a",
        "step",
        "[us]",
        "<=",
        "0.5",
        "0.25",
        "load",
        "2",
    ]
    assert Row("steps/s", 2.9, asked=3.0, least=True).missed()
    assert not Row("steps/s", 3.1, asked=3.0, least=True).missed()
    assert not Row("steps/s", asked=3.0, note="skipped").missed()
    found = shown("part", [Row("one", 2.0, asked=1.0), Row("two", note="skipped: why")])
    assert found["part: one"] == 2.0
    assert math.isnan(found["part: two"])
    said = capsys.readouterr().out.splitlines()
    assert said[0].split() == ["one", "<=", "1", "2", "missed"]
    assert said[1].split() == ["two", "-", "skipped:", "why"]


def test_what_is_absent_is_skipped_with_its_reason(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NSJAX_DATA", str(tmp_path))
    found = main(["sizes", "steps", "first", "landing", "lanes"], quick=True)
    assert all(math.isnan(x) for name, x in found.items() if not name.endswith("load"))
    skipped = capsys.readouterr().out.count("skipped: no file")
    assert skipped == 5
    assert robots.file_of("a/robot.xml") == pathlib.Path("a/robot.xml")


def test_last_results_are_kept_and_compared(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    value, on = [2.0], dataclasses.replace(last.machine(), load=0.5, cpus=2)
    rows = {"steps": lambda: iter([Row("one [us]", value[0]), Row("two", note="skipped: why")])}
    monkeypatch.setattr(command, "sections", lambda *_: rows | {"sizes": rows["steps"]})
    monkeypatch.setattr(last, "machine", lambda: on)
    main(folder=tmp_path)
    kept = json.loads((tmp_path / "last.json").read_text())
    assert set(kept) == {"steps: one [us]", "sizes: one [us]"}
    assert kept["steps: one [us]"]["found"] == 2.0
    assert {"name", "cpus", "load", "releases"} < set(kept["steps: one [us]"])
    assert "%" not in capsys.readouterr().out
    on, value[0] = dataclasses.replace(on, load=2.5), 3.0
    main(folder=tmp_path)
    said = capsys.readouterr().out
    assert said.count("+50.0 %") == 2
    assert said.count("INVALID") == 1
    assert said.count("MiB") == 4
    kept = json.loads((tmp_path / "last.json").read_text())
    assert (kept["steps: one [us]"]["found"], kept["sizes: one [us]"]["found"]) == (2.0, 3.0)
    main(folder=tmp_path, quick=True)
    assert json.loads((tmp_path / "last.json").read_text()) == kept
    (tmp_path / "last.json").write_text("{")
    assert last.read(tmp_path) == {}


def test_every_section_has_a_title() -> None:
    assert set(sections(True, None, None)) == set(TITLES)


def test_a_failing_child_is_a_reason(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeError, match=r"robots.sizes_of.*failed"):
        child.ask("robots.sizes_of", str(tmp_path / "none.xml"), "moreau", "plain")


@pytest.mark.slow
def test_the_chain_moves_as_that_of_exudyn() -> None:
    exudyn = pytest.importorskip("exudyn")
    theirs = peers.exudyn_end(exudyn, peers.LINKS, peers.AGREE_STEPS, 1e-4)
    ours = peers.our_end(scaling.chain(peers.LINKS), peers.AGREE_STEPS, 1e-4)
    # both of order 2 with the same step and coefficients, in other coordinates
    np.testing.assert_allclose(ours, theirs, atol=1e-8)


def test_picture_of_the_table(tmp_path: pathlib.Path) -> None:
    """Figures with a bound are drawn, better ones to the left of one."""
    pytest.importorskip("matplotlib")
    rows = [
        ("steps", Row("a [us]", 3.0, asked=2.0)),
        ("steps", Row("b, steps/s", 4.0, asked=2.0, least=True)),
        ("steps", Row("no bound", 1.0)),
        ("steps", Row("skipped", asked=1.0, note="skipped: why")),
    ]
    assert [drawing.share(row) for _, row in rows] == [1.5, 0.5, None, None]
    picture = drawing.draw(rows, tmp_path)
    assert picture is not None
    assert picture.stat().st_size > 3_000
    assert drawing.draw(rows[2:], tmp_path) is None
