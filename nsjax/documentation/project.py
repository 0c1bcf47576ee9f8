"""Sources of the site: guide, reference, notebooks and the files beside the package, as Sphinx reads them.

The tree has the shape of the repository, so that links between its files hold on the site as they do there.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pathlib
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import nsjax
from nsjax import notes, status
from nsjax.core import InputError
from nsjax.documentation.pages import PAGES, Entry, Page, entries

GUIDE = ("choosing", "typical_values", "contact_pairs", "limits", "testing")
"""Pages of the guide, files beside this one in the folder ``guide``."""

BESIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
"""Files at the top of the repository that are pages."""


def checkout() -> pathlib.Path:
    """The repository that holds the package.

    Raises:
        InputError: where it is installed without one.
    """
    root = pathlib.Path(nsjax.__file__).resolve().parents[1]
    if not all((root / name).is_file() for name in BESIDE):
        raise InputError(
            f"docs: {root} holds no {', '.join(BESIDE)}; build the site in a checkout, which has them"
        )
    return root


def write_project(folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes the sources of the site.

    Args:
        folder: an empty or new one.

    Returns:
        Paths of all pages.

    Raises:
        InputError: outside a checkout.
    """
    root, here = checkout(), pathlib.Path(__file__).resolve().parent
    for part in ("guide", "reference", "notebooks"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    made = [_copied(root / name, folder / name) for name in BESIDE]
    made += [_copied(here / "guide" / f"{name}.md", folder / "guide" / f"{name}.md") for name in GUIDE]
    books = sorted((root / "notebooks").glob("*.ipynb"))
    made += [_copied(book, folder / "notebooks" / book.name) for book in books]
    for picture in (root / "notebooks").glob("*.png"):
        _copied(picture, folder / "notebooks" / picture.name)
    found = entries()
    for page in PAGES:
        mine = [entry for entry in found if entry.page == page.name]
        made.append(_written(folder / "reference" / f"{page.name}.rst", reference_page(page, mine)))
    made.append(_written(folder / "index.md", index(books)))
    return made


def _copied(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(shutil.copyfile(source, target))


def _written(target: pathlib.Path, text: str) -> pathlib.Path:
    target.write_text(text, encoding="utf-8")
    return target


def index(books: Iterable[pathlib.Path]) -> str:
    """The front page: all others in four lists."""
    parts = {
        "Begin": ["README"],
        "Guide": [f"guide/{name}" for name in GUIDE],
        "Notebooks": [f"notebooks/{book.stem}" for book in books],
        "Reference": [f"reference/{page.name}" for page in PAGES],
        "Project": ["CHANGELOG", "CONTRIBUTING"],
    }
    text = f"# nsjax {nsjax.__version__}\n\n{nsjax.__doc__ or ''}\n"
    for caption, names in parts.items():
        listed = "\n".join(names)
        text += f"\n```{{toctree}}\n:caption: {caption}\n:maxdepth: 1\n\n{listed}\n```\n"
    return text


def reference_page(page: Page, mine: Sequence[Entry]) -> str:
    """A page of the reference in reStructuredText."""
    text = f"{page.title}\n{'=' * len(page.title)}\n"
    for module, _ in page.contents:
        # the module's own text stands on the first of its pages; that of the package on the front page
        if module != "nsjax" and page.name == next(x.name for x in PAGES if module in dict(x.contents)):
            text += f"\n{module}\n{'-' * len(module)}\n\n.. automodule:: {module}\n"
        text += f"\n.. currentmodule:: {module}\n"
        here = [entry for entry in mine if entry.module == module]
        text += "".join(_shown(entry) for entry in here if entry.first is None)
        again = [entry for entry in here if entry.first is not None]
        if again:
            links = ", ".join(f":py:obj:`~{_path(entry)}`" for entry in again)
            text += f"\nAlso exported here: {links}.\n"
        if module in SENTENCES:
            text += SENTENCES[module]()
    return text


def _path(entry: Entry) -> str:
    return (entry.first or entry).path


def _shown(entry: Entry) -> str:
    thing = entry.thing
    if not is_documented(thing):
        return _constant(entry)
    kind, more = ("class", "   :members:\n") if inspect.isclass(thing) else ("function", "")
    return f"\n.. auto{kind}:: {entry.name}\n{more}"


def is_documented(thing: Any) -> bool:
    """Whether it is a function or class of the package, which has a docstring of its own, and no value."""
    plain = inspect.unwrap(thing) if callable(thing) else thing
    ours = getattr(plain, "__module__", "").partition(".")[0] == "nsjax"
    return ours and (inspect.isfunction(plain) or inspect.isclass(plain))


def _constant(entry: Entry) -> str:
    """A value with the sentence that stands below it in its file: autodoc looks for it where it is exported
    alone.
    """
    said = constant_text(entry)
    plain = type(entry.thing) in (int, float, str)
    value = f"   :value: {entry.thing!r}\n" if plain else ""
    return f"\n.. py:data:: {entry.name}\n{value}\n{textwrap.indent(said, '   ')}\n"


def constant_text(entry: Entry) -> str:
    """The sentence below an assignment, in the module that makes it; "" for none.

    Example:
        >>> from nsjax import io
        >>> from nsjax.documentation.pages import Entry
        >>> constant_text(Entry("files", "nsjax.io", "PERIOD", io.PERIOD))[:7]
        'Seconds'
    """
    for module in _sources(entry.module, entry.name):
        body = ast.parse(inspect.getsource(importlib.import_module(module))).body
        for line, after in itertools.pairwise(body):
            targets = getattr(line, "targets", None) or [getattr(line, "target", None)]
            if not any(isinstance(x, ast.Name) and x.id == entry.name for x in targets):
                continue
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                return inspect.cleandoc(str(after.value.value))
    return ""


def _sources(module: str, name: str) -> list[str]:
    """The module, and those from which it takes a name."""
    found = [module]
    for line in ast.walk(ast.parse(inspect.getsource(importlib.import_module(module)))):
        if isinstance(line, ast.ImportFrom) and line.module and name in [x.name for x in line.names]:
            found += _sources(line.module, name) if line.module.startswith("nsjax") else []
    return found


def _status_table() -> str:
    rows = [(_bit(status, bit), what, remedy) for bit, (what, remedy) in status.SENTENCES.items()]
    return _table(("Bit", "What happened", "What to do"), rows)


def _notes_table() -> str:
    rows = [(_bit(notes, bit), kind, sentence) for bit, (kind, sentence) in notes.SENTENCES.items()]
    return _table(("Bit", "Derivative", "What it means"), rows)


SENTENCES = {"nsjax.status": _status_table, "nsjax.notes": _notes_table}
"""Tables of what runs report, from the sentences themselves."""


def _bit(module: object, bit: int) -> str:
    name = next(k for k, x in vars(module).items() if x is bit and k.isupper())
    return f"``{name}`` ({bit})"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    text = "\n.. list-table::\n   :header-rows: 1\n\n"
    for row in (head, *rows):
        text += "".join(f"   {'*' if k == 0 else ' '} - {cell}\n" for k, cell in enumerate(row))
    return text
