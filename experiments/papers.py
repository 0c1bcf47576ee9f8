"""Every figure and table of the papers: which command computes it, or that it shows a scheme only.

An experiment says in the first line of its text which figure or table it is; here stand the rest, which
have no numbers, and how many there are.
"""

from __future__ import annotations

import ast
import pathlib
import re

COUNTS = {
    "R&S": {"Figure": 45, "Table": 6},
    "S&U&S": {"Figure": 10, "Table": 1},
    "C": {"Figure": 10, "Table": 0},
}
"""Of the papers whose figures are at hand."""

OTHERS = {
    "SRKA": (
        "Schindler, Rezaei, Kursawe, Acary: half-explicit schemes", "half_explicit",
        "Of this paper abstract and introduction were at hand, none of its figures and tables: the "
        "examples it names, with data of our own.",
    ),
    "GN": (
        "Gay Neto: mechanisms of geometrically exact beams", "beams_joints",
        "Of this paper the text was at hand without its 20 figures and without its tables: mechanisms of "
        "the kinds it describes, against closed forms and published numbers of others.",
    ),
}  # fmt: skip
"""Papers without figures at hand: title, folder of experiments, what they are."""

TITLES = {
    "R&S": "Rezaei, Schindler: mixed timestepping schemes",
    "S&U&S": "Schoeder, Ulbrich, Schindler: Gear-Gupta-Leimkuhler for impacting systems",
    "C": "Cosimo and co-workers: nonsmooth generalized-alpha",
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
    """Name of the experiment and what it shows, of every figure and table that one computes."""
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


def first_line(file: pathlib.Path) -> str:
    """First sentence or line of the text of an experiment."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".:")


def others() -> list[str]:
    """Lines of the page on papers whose figures were not at hand."""
    lines = []
    for paper, (title, folder, sentence) in OTHERS.items():
        lines += [f"## [{paper}] {title}", "", sentence, "", "| what | command |", "|---|---|"]
        files = sorted((pathlib.Path(__file__).parent / folder).glob("*.py"))
        for file in files:
            if file.stem.startswith(("fig", "table")):
                lines.append(f"| {first_line(file)} | `nsjax reproduce {folder}/{file.stem}` |")
        lines.append("")
    return lines


def page() -> str:
    """All of them as Markdown, paper by paper."""
    by_command, lines = computed(), []
    for paper, counts in COUNTS.items():
        lines += [f"## [{paper}] {TITLES[paper]}", "", "| | what | command |", "|---|---|---|"]
        for kind, count in counts.items():
            for k in range(1, count + 1):
                item = f"{kind} {k}"
                name, what = by_command.get((paper, item), ("", ""))
                command = f"`nsjax reproduce {name}`" if name else ""
                what = what or WITHOUT_NUMBERS[paper, item]
                lines.append(f"| {item} | {what[:1].upper()}{what[1:]} | {command} |")
        lines.append("")
    return "\n".join([*lines, *others()])


def main() -> None:
    """Prints the page."""
    print(page())


if __name__ == "__main__":
    main()
