"""The site: names, pages and links, read without Sphinx; the site itself where that is installed."""

from __future__ import annotations

import doctest
import html.parser
import json
import pathlib
import re
import subprocess
import sys

import pytest

import nsjax
from docs import build, conf, entries, extension, module_names, reached, site
from docs import pages as pages_of_the_reference
from docs.pages import FOLDER, constant_text, is_documented
from nsjax import InputError, gradient_notes, schemes, status
from nsjax.cli import main

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROMISED = (
    "nsjax", "nsjax.models", "nsjax.schemes", "nsjax.multibody", "nsjax.plot", "nsjax.io", "nsjax.analysis",
)  # fmt: skip
"""Modules of which the change log says that names stay."""

TARGET = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
ROLE = re.compile(r"\{py:obj\}`~?([\w.]+)`")
KINDS = (".md", ".rst", ".ipynb")
"""Suffixes of pages."""

FENCED = re.compile(r"```.*?```", re.DOTALL)


def pages() -> list[pathlib.Path]:
    """Sources of all pages, as the settings name them."""
    return [path for pattern in conf.include_patterns for path in sorted(ROOT.glob(pattern))]


def test_the_change_log_promises_what_is_tested() -> None:
    promise = (ROOT / "CHANGELOG.md").read_text().partition("## ")[0]
    assert set(re.findall(r"`(nsjax[.\w]*?)(?:\.__all__)?`", promise)) == set(PROMISED)


def test_every_public_name_is_shown_once() -> None:
    shown = [entry.path for entry in entries()]
    assert len(shown) == len(set(shown))
    things = {id(entry.thing) for entry in entries() if callable(entry.thing)}
    public = [f"{module}.{name}" for module in PROMISED for name in module_names(module)]
    missing = [path for path in public if path not in shown and id(reached(path)) not in things]
    assert not missing, "names on no page of nsjax/documentation/reference"


def test_names_of_the_reference_are_reached_after_importing_the_package() -> None:
    """In a fresh process, which has imported nothing else."""
    paths = [entry.path for entry in entries()]
    code = "import functools, nsjax\n" + "".join(
        f"nsjax.{path.partition('.')[2]}\n" for path in sorted(set(paths))
    )
    assert len(paths) > 200
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_constants_have_a_sentence() -> None:
    values = [x for x in entries() if not is_documented(x.thing)]
    assert not [x.path for x in values if not constant_text(x.module, x.name)]


def test_every_page_is_in_a_list() -> None:
    front = FOLDER / "index.md"
    listed = set()
    for line in re.findall(r"^(?:\.\./\.\./)?[\w/]+\*?$", front.read_text(), re.MULTILINE):
        listed |= {p.resolve() for p in front.parent.glob(f"{line}.*") if p.suffix in KINDS}
    assert listed == {path.resolve() for path in pages()} - {front}
    on_disk = [*FOLDER.rglob("*.md"), *FOLDER.rglob("*.rst"), *ROOT.glob("notebooks/*.ipynb")]
    assert {p.resolve() for p in on_disk} <= listed | {front}


def test_links_resolve() -> None:
    """Links between files, which hold in the repository and on the site, since both have one shape."""
    known, count = {entry.path for entry in entries()}, 0
    on_site = {page.resolve() for page in pages()}
    for page in pages():
        if page.suffix != ".md":
            continue
        text = page.read_text()
        for target in TARGET.findall(FENCED.sub("", text)):
            if not target.startswith(("http:", "https:")):
                count += 1
                found = (page.parent / target).resolve()
                assert found.is_file(), (page.name, target)
                assert found in on_site or found.suffix not in KINDS, (page.name, target)
        assert set(ROLE.findall(text)) <= known, (page.name, set(ROLE.findall(text)) - known)
    assert count > 60


def test_the_guide_says_what_there_is() -> None:
    """Names of the package in code, and files, exist."""
    for page in (FOLDER / "guide").glob("*.md"):
        text = page.read_text()
        for said in set(re.findall(r"`(nsjax\.[\w.]+)[`(]", text)):
            reached(said)
        for path in set(re.findall(r"`((?:tests|experiments|nsjax|notebooks)/[\w/]+(?:\.\w+)?)`", text)):
            assert (ROOT / path).exists(), (page.name, path)


def test_tables_of_sentences_are_whole() -> None:
    text = extension.sentence_table("nsjax.status")
    assert all(what in text and remedy in text for what, remedy in status.SENTENCES.values())
    text = extension.sentence_table("nsjax.gradient_notes")
    assert all(sentence in text for _, sentence in gradient_notes.SENTENCES.values())
    for page, module in (("runs", "nsjax.status"), ("gradients", "nsjax.gradient_notes")):
        last = (FOLDER / "reference" / f"{page}.rst").read_text().rpartition(".. currentmodule:: ")[2]
        assert last.startswith(module)
        assert ".. sentences::" in last


def test_every_run_of_the_gallery_has_its_moving_picture() -> None:
    for page, mark, least in (("gallery", "\n## ", 20), ("examples", "\n### ", 23)):
        parts = (FOLDER / "guide" / f"{page}.md").read_text().split(mark)[1:]
        assert len(parts) >= least
        for part in parts:
            shown = re.findall(r"notebooks/gallery/(\w+\.webp)\)", part)
            assert len(shown) == 1, part
            assert part.count("```python") == 1, part
            assert re.search(r"^\*[\d.]+ s", part, re.MULTILINE), part  # CPU time
            assert (ROOT / "notebooks" / "gallery" / shown[0]).read_bytes().count(b"ANMF") > 8, shown
            if page == "examples":
                answers = re.findall(r"^ *assert ", part, re.MULTILINE)  # that are known
                assert len(answers) == 1, part


def test_the_versions_are_one() -> None:
    assert conf.version == nsjax.__version__
    for name, line in (("pyproject.toml", 'version = "{}"'), ("CITATION.cff", "version: {}")):
        assert line.format(nsjax.__version__) in (ROOT / name).read_text().splitlines()
    assert f"## {nsjax.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_formulas_of_the_notebooks_need_no_network() -> None:
    pytest.importorskip("docutils")
    cells = [c for p in ROOT.glob("notebooks/*.ipynb") for c in json.loads(p.read_text())["cells"]]
    text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    formulas = [one or two for one, two in re.findall(r"\$\$(.+?)\$\$|\$([^$]+?)\$", text, re.DOTALL)]
    assert len(formulas) > 40
    for formula in formulas:
        assert extension.mathml(formula, False).startswith("<math")
    with pytest.raises(ValueError, match="no formula that docutils reads"):
        extension.mathml(r"\nonsense{x}", False)


def test_every_scheme_has_its_equations_and_their_source() -> None:
    pytest.importorskip("docutils")
    parts = (FOLDER / "guide" / "theory.md").read_text().split("\n## ")
    text = "\n".join(parts)
    for formula in re.findall(r"\$\$(.+?)\$\$", text, re.DOTALL):
        assert extension.mathml(formula, True).startswith("<math")
    titled = [x for part in parts for x in part.split("\n### ")[1:]]
    for name in schemes.REGISTRY:
        sections = [x for x in titled if f"`{name}`" in x.splitlines()[0]]
        assert len(sections) == 1, name
        assert re.search(r"\[(R&S|S&U&S|C|B14|SRKA)\b[^\]]*\]|\(Jean, ", sections[0]), name
        assert "$" in sections[0] or name == "nsga_coupled", name


def test_other_folders_are_left_alone(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("kept")
    with pytest.raises(InputError, match="exists and is no site"):
        build(tmp_path)
    assert main(["docs", "--output", str(tmp_path)]) == 2
    assert "name a new folder" in capsys.readouterr().err
    assert [x.name for x in tmp_path.iterdir()] == ["mine.txt"]


def test_without_the_generator(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "NEEDED", ("sphinx_that_is_not_there",))
    with pytest.raises(InputError, match=r"sphinx_that_is_not_there.*pip install 'nsjax\[docs\]'"):
        build(tmp_path / "site")


def test_without_a_checkout(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("nsjax.__file__", str(tmp_path / "lib" / "nsjax" / "__init__.py"))
    assert main(["docs"]) == 2
    assert "build the site in a checkout" in capsys.readouterr().err


@pytest.mark.parametrize("module", [extension, pages_of_the_reference], ids=lambda x: x.__name__)
def test_examples(module) -> None:
    assert not doctest.testmod(module).failed


class Addresses(html.parser.HTMLParser):
    """Addresses from which a page loads something, links that a reader may follow left out."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = given.get("src") or (given.get("href") if tag == "link" else None)
        if address and address.startswith(("http:", "https:", "//")):
            self.found.append(address)


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: pathlib.Path) -> None:
    for name in site.NEEDED:
        pytest.importorskip(name)
    state = ["git", "status", "--porcelain", "--ignored"]
    before = subprocess.run(state, cwd=ROOT, capture_output=True, text=True).stdout
    front = build(tmp_path / "site")
    assert subprocess.run(state, cwd=ROOT, capture_output=True, text=True).stdout == before
    assert [x.name for x in tmp_path.iterdir()] == ["site"]
    home = front.parent / "nsjax" / "documentation"
    assert f"{conf.root_doc}.html" in front.read_text()
    for page in pages():
        assert (front.parent / page.relative_to(ROOT).with_suffix(".html")).is_file()
    shown = (home / "reference" / "contacts.html").read_text()
    assert 'id="nsjax.multibody.sphere"' in shown
    assert "Seconds between two checkpoints" in (home / "reference" / "files.html").read_text()
    book = (front.parent / "notebooks" / "01_first_impact.html").read_text()
    assert book.count("<img") >= 4, "outputs of the notebook"
    assert "<math" in book
    for path in front.parent.rglob("*.html"):
        page = Addresses()
        page.feed(path.read_text())
        assert not page.found, (path.name, page.found)
    build(tmp_path / "site")  # a site is replaced


def test_a_formula_within_a_paragraph_is_a_warning(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in site.NEEDED:
        pytest.importorskip(name)
    front = tmp_path / "nsjax" / "documentation" / "index.md"
    front.parent.mkdir(parents=True)
    front.write_text("# Title\n\nNewton: $F = m a$, in one line `$HOME`.\n\n$$F = m a$$\n")
    monkeypatch.setattr(site, "ROOT", tmp_path)
    build(tmp_path / "good")
    front.write_text("# Title\n\nNewton:\n$$F = m a$$\nin one line.\n")
    with pytest.raises(InputError, match=r"formula that is printed as text; put blank lines"):
        build(tmp_path / "bad")


@pytest.mark.slow
def test_a_warning_is_an_error(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx")
    front = tmp_path / "nsjax" / "documentation" / "index.md"
    front.parent.mkdir(parents=True)
    front.write_text("# Title\n\n[nowhere](nowhere.md)\n")
    monkeypatch.setattr(site, "ROOT", tmp_path)
    with pytest.raises(InputError, match=r"the generator warns; correct what it names(.|\n)*nowhere"):
        build(tmp_path / "site")
