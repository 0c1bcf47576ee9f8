"""Every figure and table of the papers: what came out, on which evidence, and which command computes it.

The first line of an experiment's text names its figure or table; the remaining figures and tables, which
have no numbers, and their counts are listed here. ``verdicts.json`` has a verdict and a sentence for each
experiment, ``times.json`` the CPU seconds of its quick and its full form.
"""

from __future__ import annotations

import ast
import collections
import functools
import json
import pathlib
import re
from typing import Any

from . import common

COUNTS = {
    "R&S": {"Figure": 45, "Table": 6},
    "S&U&S": {"Figure": 10, "Table": 1},
    "C": {"Figure": 10, "Table": 0},
}
"""Counts of figures and tables of the papers whose figures were available."""

OTHERS = {
    "SRKA": (
        "Schindler, Rezaei, Kursawe, Acary: half-explicit schemes", "half_explicit",
        "Of this paper abstract and part of the introduction were at hand, none of its figures and tables: "
        "the examples it names, with data of our own.", (),
    ),
    "GN": (
        "Gay Neto: mechanisms of geometrically exact beams", "beams_joints",
        "Of this paper abstract, references and appendices were at hand, neither its sections nor its "
        "figures and tables: mechanisms of the kinds that its abstract names, against closed forms and "
        "published numbers of others.",
        ("contact/fig_cam_follower", "contact/fig_flexible_cam", "contact/fig_flexible_stem"),
    ),
}  # fmt: skip
"""Papers without available figures: title, folder of experiments, their kind, experiments elsewhere."""

TITLES = {
    "R&S": ("Rezaei, Schindler: mixed timestepping schemes", "mixed_timestepping"),
    "S&U&S": (
        "Schoeder, Ulbrich, Schindler: Gear-Gupta-Leimkuhler for impacting systems",
        "gear_gupta_leimkuhler",
    ),
    "C": ("Cosimo and co-workers: nonsmooth generalized-alpha", "nsga"),
}  # fmt: skip
"""Papers with available figures: title, folder of experiments."""

VERDICTS = {
    "shown": "what the paper prints or says is found",
    "differs": "some of it is not, and the sentence says what",
    "own": "the paper prints nothing to compare with",
    "drawn": "a sketch, or data",
}

WITHOUT_NUMBERS = {
    ("R&S", "Figure 1"): "the slider-crank mechanism: `nsjax.models.slider_crank`",
    ("R&S", "Figure 2"): "gap and contact forces, a sketch",
    ("R&S", "Figure 3"): "contact laws, a sketch: `nsjax.ContactLaw`",
    ("R&S", "Figure 4"): "flowchart: `nsjax.schemes.mixed.framework`",
    ("R&S", "Figure 14"): "the model problem: `nsjax.models.mass_spring_chain`",
    ("R&S", "Figure 19"): "the slider-crank mechanism: `nsjax.models.slider_crank`",
    ("R&S", "Figure 23"): "the driven mechanism: `nsjax.models.slider_crank(**nsjax.models.TABLE_2)`",
    ("R&S", "Figure 34"): "element of the flexible rod, a sketch: `nsjax.fem.unit_rod`",
    ("R&S", "Figure 35"): "coordinates of a deformable body, a sketch: `nsjax.fem.FloatingRod`",
    ("R&S", "Table 1"): "data: the defaults of `nsjax.models.slider_crank`",
    ("R&S", "Table 2"): "data: `nsjax.models.TABLE_2`",
    ("S&U&S", "Figure 1"): "the slider-crank mechanism: `nsjax.models.slider_crank`",
    ("S&U&S", "Figure 2"): "its gaps, a sketch; `nsjax reproduce mixed_timestepping/fig41` draws them",
    ("S&U&S", "Figure 5"): "the mechanism in an ideal guide: `nsjax.models.slider_crank_bilateral`",
    ("S&U&S", "Figure 7"): "flowchart: `nsjax.schemes.ggl_unified`",
    ("S&U&S", "Table 1"): "data: the defaults of `nsjax.models.slider_crank`",
    ("C", "Figure 1"): "the four examples: `block`, `elastic_bar`, `flexible_pendulum`, `flexible_cube` of "
    "`nsjax.models`",
}

NAMED = re.compile(r"\[(R&S|S&U&S|C)(?:\]|(?= Fig\.)) ?(Figure|Fig\.|Table) (\d+)\]?:? *(.*)")


def computed() -> dict[tuple[str, str], tuple[str, str]]:
    """For every computed figure and table: name and subject of its experiment."""
    found = {}
    for file in sorted(pathlib.Path(__file__).parent.glob("*/*.py")):
        if not file.stem.startswith(("fig", "table")):
            continue
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        named = NAMED.match(text.splitlines()[0])
        if named:
            kind = named[2].replace("Fig.", "Figure")
            found[named[1], f"{kind} {named[3]}"] = f"{file.parent.name}/{file.stem}", named[4].rstrip(".")
    return found


@functools.cache
def _records(file: str) -> dict[str, Any]:
    """Content of a JSON file beside this file."""
    return json.loads(pathlib.Path(__file__).with_name(file).read_text(encoding="utf-8"))


def first_line(file: pathlib.Path) -> str:
    """First sentence or line of the text of an experiment."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".:")


def evidence(name: str) -> str:
    """Counts of compared numbers of an experiment by kind, from the strongest to the weakest."""
    counts: collections.Counter[str] = collections.Counter()
    for entry in common.load_expected(pathlib.Path(__file__).parent / name).values():
        counts[entry["kind"]] += 1
        counts["print"] += "factor" in entry and entry["kind"] != "print"
    return ", ".join(f"{counts[kind]} {kind}" for kind in common.KINDS if counts[kind]) or "none"


def seconds(name: str) -> str:
    """CPU time of the quick and of the full form; a dash where it was not measured."""
    both = _records("times.json").get(name, (None, None))
    return " / ".join("-" if x is None else f"{x:.0f}" for x in both)


def row(name: str, what: str, item: str = "") -> str:
    """A line of the page about an experiment."""
    found = _records("verdicts.json").get(name, {"verdict": "own", "sentence": ""})
    told = f"{what[:1].upper()}{what[1:]}" + (f": {found['sentence']}" if found["sentence"] else "")
    cells = [item] if item else []
    cells += [found["verdict"], told, evidence(name), seconds(name), f"`nsjax reproduce {name}`"]
    return f"| {' | '.join(cells)} |"


HEAD = "verdict | what | evidence | CPU s, quick / full | command"


def beside(folder: str, without: set[str], more: tuple[str, ...] = ()) -> list[str]:
    """Lines of the experiments of a folder that belong to no figure or table."""
    root = pathlib.Path(__file__).parent
    names = [f"{folder}/{f.stem}" for f in sorted((root / folder).glob("*.py"))]
    names = [n for n in names if n.partition("/")[2].startswith(("fig", "table")) and n not in without]
    names += more
    lines = [row(name, re.sub(r"^\[.*?\] ", "", first_line(root / f"{name}.py"))) for name in names]
    return [f"| {HEAD} |", "|---|---|---|---|---|", *lines, ""] if lines else []


def others() -> list[str]:
    """Lines of the page on papers whose figures were not available."""
    lines = []
    for paper, (title, folder, sentence, more) in OTHERS.items():
        lines += [f"## [{paper}] {title}", "", sentence, "", *beside(folder, set(), more)]
    return lines


def shares() -> str:
    """What the full forms take beside the quick ones, where both are measured and differ."""
    both = [x for x in _records("times.json").values() if None not in x and x[1] > 1.3 * x[0]]
    ratios = sorted(full / quick for quick, full in both)
    return (
        f"Where it is longer, the full form takes {ratios[len(ratios) // 2]:.1f} times as long as the "
        f"quick one in the median of {len(ratios)}, {ratios[-1]:.0f} times at most."
    )


def legend() -> list[str]:
    """Lines that explain the words of the tables."""
    verdicts = "; ".join(f"{name}: {what}" for name, what in VERDICTS.items())
    kinds = "; ".join(f"{name}: {what}" for name, what in common.KINDS.items())
    return [f"Verdicts: {verdicts}.", "", f"Evidence, numbers compared by kind: {kinds}.", "",
            "Times: CPU seconds of the whole process, compilation included where it is not stored; "
            f"a dash: not measured. {shares()}", ""]  # fmt: skip


def page() -> str:
    """All figures and tables as Markdown, paper by paper."""
    by_command, lines = computed(), legend()
    for paper, counts in COUNTS.items():
        title, folder = TITLES[paper]
        lines += [f"## [{paper}] {title}", "", f"| | {HEAD} |", "|---|---|---|---|---|---|"]
        for kind, count in counts.items():
            for k in range(1, count + 1):
                item = f"{kind} {k}"
                name, what = by_command.get((paper, item), ("", ""))
                if name:
                    lines.append(row(name, what, item))
                else:
                    what = WITHOUT_NUMBERS[paper, item]
                    lines.append(f"| {item} | drawn | {what[:1].upper()}{what[1:]} | | | |")
        named = {name for name, _ in by_command.values()}
        lines += ["", "Beside its figures and tables:", "", *beside(folder, named), ""]
    return "\n".join([*lines, *others()])


def main() -> None:
    """Prints the page."""
    print(page())


if __name__ == "__main__":
    main()
