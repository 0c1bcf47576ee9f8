"""Every reference resolves: cited files are there, and keys in brackets stand among the guide's sources."""

from __future__ import annotations

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = ROOT / "nsjax" / "documentation" / "guide" / "sources.md"
KEYS = set(re.findall(r"^\* \*\*\[([^]]+)\]\*\*", SOURCES.read_text(), re.MULTILINE))
PRODUCTS = {"index.md"}  # written for the site

PLACE = r"(?:\(|sections?\b|Figs?\b|Tables?\b|App|appendi|Algorithm|after\b)"
KEY = re.compile(rf"\[([A-Z][A-Za-z]*\d*(?:&[A-Z])*)(?: {PLACE}[^]]*|\](?=,? {PLACE}))")
ALONE = re.compile(r"\[([A-Z][A-Za-z]*\d*(?:&[A-Z])*)(?: [^]]*)?\]")
CITED = re.compile(r"\b([A-Za-z_0-9]+\.md)\b")


def texts() -> list[tuple[str, str]]:
    """Path and text of everything that cites."""
    found = []
    for folder in ("nsjax", "experiments", "notebooks"):
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix not in (".py", ".json", ".ipynb", ".md") or ".ipynb_checkpoints" in file.parts:
                continue
            name = str(file.relative_to(ROOT))
            text = file.read_text(encoding="utf-8")
            if file.suffix == ".ipynb":
                cells = json.loads(text)["cells"]
                text = "\n".join("".join(cell["source"]) for cell in cells)
            found.append((name, text))
    assert len(found) > 150
    return found


def keys(text: str, of_numbers: bool) -> set[str]:
    """Keys that a text cites: with a place in the source, in a paragraph `Source:`, with an ampersand."""
    found = set(KEY.findall(text))
    parts = re.findall(r"Source:(.*?)(?:\n\s*\n|\"\"\")", text, re.DOTALL)
    if of_numbers:
        parts += re.findall(r'"source": "((?:[^"\\]|\\.)*)"', text)
    for part in parts:
        found |= set(ALONE.findall(part)) - {"m", "s"}
    return found | set(re.findall(r"\[([A-Z]&[A-Z](?:&[A-Z])?)\b", text))


def standing(name: str) -> bool:
    """Whether a document is at the top of the repository or in the guide."""
    return any((folder / name).is_file() for folder in (ROOT, SOURCES.parent))


def test_the_guide_lists_the_sources() -> None:
    assert {"R&S", "S&U&S", "C", "SRKA", "GN", "SA", "B14", "FLG", "P"} == KEYS


def test_references_resolve() -> None:
    unknown, missing = {}, {}
    for name, text in texts():
        numbers = name.startswith("experiments") and name.endswith(".json")
        unknown[name] = keys(text, numbers) - KEYS
        missing[name] = {cited for cited in CITED.findall(text) if not standing(cited)} - PRODUCTS
    assert not {k: x for k, x in unknown.items() if x}, "cite with a key of guide/sources.md"
    assert not {k: x for k, x in missing.items() if x}, "cited, but not in the repository"


def test_paths_in_expected_numbers_exist() -> None:
    for file in (ROOT / "experiments").rglob("expected*.json"):
        for path in set(re.findall(r"\b((?:tests|experiments)/[\w/]+\.py)", file.read_text())):
            assert (ROOT / path).is_file(), (file.name, path)


def test_the_test_sees_what_does_not_resolve() -> None:
    assert keys("see [X&Y] and [R&S (3)] and [Zed section 2]", False) == {"X&Y", "R&S", "Zed"}
    assert keys('"""A.\n\n    Source: [Q], [C].\n\n    mass [N] ..."""', False) == {"Q", "C"}
    assert keys('{"source": "[W] Table 3; [P]"}', True) == {"W", "P"}
    assert keys("force [N], a: dict[State, int], f: Callable[Any, None], x [J]", False) == set()
    assert CITED.findall("`schemes.md` section 1") == ["schemes.md"]
