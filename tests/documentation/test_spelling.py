"""All texts are spelt in one way: British, with -ise."""

from __future__ import annotations

import ast
import io
import json
import pathlib
import re
import tokenize

ROOT = pathlib.Path(__file__).resolve().parents[2]

STEMS = (
    "diagonal|discret|equal|factor|general|linear|maxim|minim|normal|optim|orthogonal|parametr|quant|real|"
    "recogn|regular|stabil|summar|symmetr|vector"
)
AMERICAN = re.compile(
    rf"\b(?:(?:{STEMS})iz(?:e[ds]?|er|ing|ations?)|(?:colo|behavio|neighbo|favo)r(?:s|ed|ing)?|"
    r"center(?:s|ed|ing)?|fibers?|gray|analyz(?:e[ds]?|ing)|model(?:ed|ing)|label(?:ed|ing))\b",
    re.IGNORECASE,
)
NAMES = re.compile(
    r"``[^`]*``|`[^`]*`|generalized-alpha|^[ ]*(?:>>>|\.\.\.).*$|\"[^\"]*\"", re.MULTILINE | re.IGNORECASE
)
"""Code, examples, quotations, and the name of the method of Chung and Hulbert: they keep their spelling."""

TITLES = {"sources.md": None, "solid_mesh.py": "stabilization"}
"""Files with titles of papers, and the words of those."""


def prose(text: str) -> list[str]:
    """Docstrings and comments of a module."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline) if "#" in text else ()
    found = [x.string for x in tokens if x.type == tokenize.COMMENT]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.append(str(node.value.value))
    return found


def texts(file: pathlib.Path) -> list[str]:
    """Prose of a file: a page, docstrings and comments of a module, both in the cells of a notebook."""
    text = file.read_text()
    if file.suffix == ".ipynb":
        cells = [(x["cell_type"], "".join(x["source"])) for x in json.loads(text)["cells"]]
        codes = [re.sub(r"^[%!].*$", "", x, flags=re.MULTILINE) for kind, x in cells if kind == "code"]
        return [x for kind, x in cells if kind != "code"] + [x for code in codes for x in prose(code)]
    return prose(text) if file.suffix == ".py" else [text]


def american(text: str) -> list[str]:
    """Words of a text in American spelling."""
    return AMERICAN.findall(NAMES.sub(" ", text))


def test_prose_is_british() -> None:
    wrong = {}
    folders = [ROOT / x for x in ("nsjax", "docs", "tests", "experiments", "notebooks")]
    files = [*ROOT.glob("*.md"), *(x for folder in folders for x in folder.rglob("*"))]
    for file in sorted(files):
        if file.suffix not in (".py", ".md", ".ipynb") or TITLES.get(file.name, "") is None:
            continue
        # what no word of a file shows, no docstring of it does (line ends of notebooks hide words)
        if file.suffix != ".ipynb" and not AMERICAN.search(file.read_text()):
            continue
        words = {x for text in texts(file) for x in american(text)} - {TITLES.get(file.name)}
        if words:
            wrong[str(file.relative_to(ROOT))] = sorted(words)
    assert not wrong


def test_words_of_notebooks_are_read(tmp_path: pathlib.Path) -> None:
    cells = [{"cell_type": "markdown", "source": ["One\n", "page."]},
             {"cell_type": "code", "source": ["x = 1  # a comment\n", "x"]}]  # fmt: skip
    file = tmp_path / "a.ipynb"
    file.write_text(json.dumps({"cells": cells}))
    assert texts(file) == ["One\npage.", "# a comment"]


def test_american_words_are_found() -> None:
    assert american("The linearized forces of generalized-alpha at the center, `linearize(x)`.") == [
        "linearized", "center",
    ]  # fmt: skip
