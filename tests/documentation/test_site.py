"""Sources of the site: names, pages and links, without the generator; the site where it is installed."""

from __future__ import annotations

import pathlib
import re

import pytest

from nsjax import InputError, notes, status
from nsjax.cli import main
from nsjax.documentation import PAGES, build, entries, module_names, site, write_project
from nsjax.documentation.project import BESIDE, GUIDE, constant_text, is_documented

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROMISED = (
    "nsjax",
    "nsjax.models",
    "nsjax.schemes",
    "nsjax.multibody",
    "nsjax.plot",
    "nsjax.io",
    "nsjax.analysis",
)
"""Modules of which the change log says that names stay."""

SHOWN = re.compile(r"^\.\. (?:autoclass|autofunction|py:data):: (\w+)$", re.MULTILINE)
TARGET = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
ROLE = re.compile(r"\{py:obj\}`~?([\w.]+)`")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("project")
    made = write_project(folder)
    assert all(path.is_file() for path in made)
    return folder


def documented(folder: pathlib.Path) -> list[str]:
    """Full names of everything that the reference shows, page by page."""
    found = []
    for page in sorted((folder / "reference").glob("*.rst")):
        module = ""
        for line in page.read_text().splitlines():
            module = line.removeprefix(".. currentmodule:: ") if "currentmodule::" in line else module
            found += [f"{module}.{name}" for name in SHOWN.findall(line)]
    return found


def test_the_change_log_promises_what_is_tested() -> None:
    promise = (ROOT / "CHANGELOG.md").read_text().partition("## ")[0]
    assert set(re.findall(r"`(nsjax[.\w]*?)(?:\.__all__)?`", promise)) == set(PROMISED)


def test_every_public_name_is_shown_once(project: pathlib.Path) -> None:
    shown = documented(project)
    assert len(shown) == len(set(shown))
    wanted = {f"{module}.{name}" for module in PROMISED for name in module_names(module)}
    known = {entry.path: (entry.first or entry).path for entry in entries()}
    assert wanted <= set(known), "names on no page of `nsjax.documentation.pages`"
    assert set(known.values()) == set(shown)


def test_constants_have_a_sentence() -> None:
    values = [x for x in entries() if x.first is None and not is_documented(x.thing)]
    assert not [x.path for x in values if not constant_text(x)]


def test_every_page_is_in_a_list(project: pathlib.Path) -> None:
    listed = re.findall(r"^[\w/]+$", (project / "index.md").read_text(), re.MULTILINE)
    pages = {
        str(p.relative_to(project).with_suffix(""))
        for p in project.rglob("*") if p.suffix in (".md", ".rst", ".ipynb")
    }  # fmt: skip
    assert sorted(listed) == sorted(pages - {"index"})
    assert {f"guide/{p.stem}" for p in (ROOT / "nsjax/documentation/guide").glob("*.md")} <= set(listed)
    assert {f"notebooks/{p.stem}" for p in (ROOT / "notebooks").glob("*.ipynb")} <= set(listed)
    assert {f"reference/{page.name}" for page in PAGES} <= set(listed)


def test_links_resolve(project: pathlib.Path) -> None:
    """Between pages of the site; of the files at the top also as they stand in the repository."""
    known, count = set(documented(project)), 0
    for page in [*project.glob("*.md"), *project.glob("guide/*.md")]:
        text = page.read_text()
        for target in TARGET.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            if not target.startswith(("http:", "https:")):
                count += 1
                assert (page.parent / target).is_file(), (page.name, target)
                assert page.name not in BESIDE or (ROOT / target).is_file(), (page.name, target)
        assert set(ROLE.findall(text)) <= known, page.name
    assert count > 5


def test_guide_says_what_there_is(project: pathlib.Path) -> None:
    """Names of the package in code, and files, exist."""
    public = {entry.path for entry in entries()} | {f"{m}" for m in PROMISED}
    for name in GUIDE:
        text = (project / "guide" / f"{name}.md").read_text()
        for said in set(re.findall(r"`(nsjax\.[\w.]+)`", text)):
            assert said in public, (name, said)
        for path in set(re.findall(r"`((?:tests|experiments|nsjax|notebooks)/[\w/]+(?:\.\w+)?)`", text)):
            assert (ROOT / path).exists(), (name, path)


def test_tables_of_sentences_are_whole(project: pathlib.Path) -> None:
    text = (project / "reference" / "runs.rst").read_text()
    assert all(what in text and remedy in text for what, remedy in status.SENTENCES.values())
    text = (project / "reference" / "gradients.rst").read_text()
    assert all(sentence in text for _, sentence in notes.SENTENCES.values())


def test_other_folders_are_left_alone(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("kept")
    with pytest.raises(InputError, match="is there and is no site"):
        build(tmp_path)
    assert main(["docs", "--output", str(tmp_path)]) == 2
    assert "name a new folder" in capsys.readouterr().err
    assert [x.name for x in tmp_path.iterdir()] == ["mine.txt"]


def test_without_the_generator(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "NEEDED", ("sphinx_that_is_not_there",))
    with pytest.raises(InputError, match=r"sphinx_that_is_not_there.*pip install 'nsjax\[docs\]'"):
        build(tmp_path / "site")


def test_without_a_checkout(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsjax.__file__", str(tmp_path / "lib" / "nsjax" / "__init__.py"))
    with pytest.raises(InputError, match="build the site in a checkout"):
        write_project(tmp_path / "project")


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: pathlib.Path) -> None:
    for name in site.NEEDED:
        pytest.importorskip(name)
    front = build(tmp_path / "site")
    pages = {str(p.relative_to(front.parent)) for p in front.parent.rglob("*.html")}
    assert {f"reference/{page.name}.html" for page in PAGES} <= pages
    shown = (front.parent / "reference" / "contacts.html").read_text()
    assert 'id="nsjax.multibody.sphere"' in shown
    book = (front.parent / "notebooks" / "01_first_impact.html").read_text()
    assert book.count("<img") >= 4, "outputs of the notebook"
    build(tmp_path / "site")  # a site is replaced


@pytest.mark.slow
def test_a_warning_is_an_error(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx")

    def wrong(folder: pathlib.Path) -> list[pathlib.Path]:
        folder.mkdir()
        (folder / "index.md").write_text("# Title\n\n[nowhere](nowhere.md)\n")
        return [folder / "index.md"]

    monkeypatch.setattr(site, "write_project", wrong)
    with pytest.raises(InputError, match=r"the generator warns; mend what it names(.|\n)*nowhere"):
        build(tmp_path / "site")
