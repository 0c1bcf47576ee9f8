"""``nsjax reproduce``: lists, beginnings of names, exit codes."""

from __future__ import annotations

import sys
import types

import pytest

import nsjax
from experiments import common, papers
from nsjax import cli
from nsjax.cli.commands import available, reproduce, resolve


def test_reproduce_lists_and_runs(tmp_path, capsys) -> None:
    assert cli.main(["reproduce"]) == 0
    listed = capsys.readouterr().out.split()
    assert "gear_gupta_leimkuhler/fig03_moreau_path" in listed
    assert cli.main(["reproduce", "gear-gupta-leimkuhler/fig04", "--quick", "--folder", str(tmp_path)]) == 0
    assert "MISSED" not in capsys.readouterr().out
    assert (tmp_path / "fig04_moreau_gaps.png").is_file()


def test_every_figure_and_table_of_the_papers_is_listed(capsys) -> None:
    """Each is either computed by an experiment, once, or has no numbers."""
    assert cli.main(["reproduce", "--papers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")]
    assert sum(x.startswith(("Figure", "Table")) for x in listed) == sum(
        n for c in papers.COUNTS.values() for n in c.values()
    )
    computed = papers.computed()
    assert not set(computed) & set(papers.WITHOUT_NUMBERS)
    names = [name for name, _ in computed.values()]
    assert len(set(names)) == len(names)
    assert set(names) <= set(available())
    assert any("nsjax reproduce nsga/fig09_cube" in line for line in lines)
    # all of the papers' folders, those that no figure names among them, and the cams
    folders = ("mixed_timestepping", "gear_gupta_leimkuhler", "nsga", "half_explicit", "beams_joints")
    commands = {x for x in available() if x.startswith(folders)}
    commands |= {x for x in available() if "cam" in x or "stem" in x}
    for command in commands:
        assert sum(f"reproduce {command}`" in line for line in lines) == 1, command
    with pytest.raises(nsjax.InputError, match="leave the name out"):
        reproduce("nsga/fig09", None, True, papers=True)


def test_every_line_has_a_verdict_and_its_evidence() -> None:
    found = papers._records("verdicts.json")
    assert set(found) <= set(available())
    named = [name for name, _ in papers.computed().values()]
    assert set(named) <= set(found)
    for name, record in found.items():
        assert record["verdict"] in ("shown", "differs", "own"), name
        assert 20 < len(record["sentence"]) < 250, name
        assert "|" not in record["sentence"]
    for name in named:  # verdicts of figures rest on compared numbers
        assert papers.evidence(name) != "none", name
        assert found[name]["verdict"] != "own", name
    assert papers.evidence("mixed_timestepping/table4_bilateral").startswith("15 print, ")
    assert set(papers._records("times.json")) <= set(available())


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("gear/fig04", "gear_gupta_leimkuhler/fig04_moreau_gaps"),
        ("gear-gupta-leimkuhler/fig0", None),
        ("mixed_timestepping/fig2", None),
        ("mixed_timestepping/fig22", "mixed_timestepping/fig22_convergence"),
        ("mixed_timestepping/table", None),
        ("mixed_timestepping/table4", "mixed_timestepping/table4_bilateral"),
        ("mixed_timestepping/table_c", "mixed_timestepping/table_cost_flexible"),
        ("sweeps/fig_v", "sweeps/fig_vibrating_table"),
        ("nsga", None),
    ],
)
def test_the_beginning_of_a_name_is_enough(name: str, full: str | None) -> None:
    if full is not None:
        assert resolve(name) == full
        return
    with pytest.raises(nsjax.InputError, match=rf"reproduce: '{name}' may be one of .*, "):
        resolve(name)


@pytest.mark.parametrize("value", [2.0, float("nan")])
def test_a_missed_number_is_a_failure(value: float, tmp_path, capsys, monkeypatch) -> None:
    """One number missed, one right, one left out by the quick form, none that is not finite."""
    rows = common.compare(
        {"a": 1.0, "b": value},
        {name: {"value": 1.0, "tolerance": 0.1, "source": "x"} for name in ("a", "b", "c")},
    )
    made = types.SimpleNamespace(main=lambda quick, folder: common.report(rows))
    monkeypatch.setitem(sys.modules, "experiments.gear_gupta_leimkuhler.fig04_moreau_gaps", made)
    argv = ["reproduce", "gear_gupta_leimkuhler/fig04", "--folder", str(tmp_path)]
    assert cli.main([*argv, "--quick"]) == 1
    out, err = capsys.readouterr()
    assert out.count("MISSED") == 1
    assert "not computed by the quick form: c" in out
    assert err == "nsjax: 1 of 2 numbers missed: b\n"
    assert cli.main(argv) == 1  # the full form must compute all
    assert "2 of 3 numbers missed: b, c" in capsys.readouterr().err


def test_reproduce_names_the_nearest(capsys) -> None:
    assert cli.main(["reproduce", "gear_gupta_leimkuhler/fig03_moreau_pth"]) == 2
    assert "did you mean 'gear_gupta_leimkuhler/fig03_moreau_path'" in capsys.readouterr().err
