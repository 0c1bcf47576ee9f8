"""``nsjax docs``: a build by Sphinx, with every warning as an error."""

from __future__ import annotations

import importlib.util
import io
import pathlib
import shutil
import tempfile

import nsjax
from nsjax.core import InputError
from nsjax.documentation.pages import FOLDER

NEEDED = ("sphinx", "myst_nb", "furo")
"""Packages of the extra ``docs``."""

BESIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
"""Files in the repository's root that are pages of the site."""


def checkout() -> pathlib.Path:
    """Folder of the repository that contains the package.

    Raises:
        InputError: if the package is installed without a repository.
    """
    root = pathlib.Path(nsjax.__file__).resolve().parents[1]
    if not all((root / name).is_file() for name in BESIDE):
        raise InputError(
            f"docs: {root} holds no {', '.join(BESIDE)}; build the site in a checkout, which has them"
        )
    return root


def require_generator() -> None:
    """Raises an error if a package of the extra ``docs`` is missing."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"docs: the site needs {', '.join(missing)}; install it with: pip install 'nsjax[docs]'"
        )


def build(output: str | pathlib.Path) -> pathlib.Path:
    """Builds the site from docstrings, guide and notebooks.

    The same without nsjax: ``sphinx-build -c nsjax/documentation . site`` in a checkout.

    Args:
        output: folder of the site; an existing site is replaced.

    Returns:
        Path of its front page.

    Raises:
        InputError: without the packages of the extra ``docs``, outside a checkout, for a folder with other
            files, and with all warnings of Sphinx if there are any.

    Example:
        >>> from nsjax.documentation import build
        >>> page = build("site")  # doctest: +SKIP
    """
    output = pathlib.Path(output)
    if output.exists() and not (output.is_dir() and _is_site(output)):
        raise InputError(f"docs: {output} exists and is no site; name a new folder")
    require_generator()
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, docutils_namespace():
        made = pathlib.Path(folder) / "site"
        app = Sphinx(
            str(checkout()), str(FOLDER), str(made), str(pathlib.Path(folder) / "trees"), "html",
            status=None, warning=said,
        )  # fmt: skip
        app.build(force_all=True)
        lines = [line for line in said.getvalue().splitlines() if line.strip()]
        if app.statuscode or lines:
            shown = 20  # largest number of lines of warnings in an error
            more = f"\n... and {len(lines) - shown} more lines" if len(lines) > shown else ""
            told = "\n".join(lines[:shown])
            raise InputError(f"docs: the generator warns; correct what it names\n{told}{more}")
        if output.exists():
            shutil.rmtree(output)
        shutil.copytree(made, output)
    return output / "index.html"


def _is_site(folder: pathlib.Path) -> bool:
    return not any(folder.iterdir()) or (folder / ".buildinfo").is_file()
