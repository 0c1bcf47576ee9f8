"""``nsjax docs``: a build by Sphinx, with every warning as an error."""

from __future__ import annotations

import importlib.util
import io
import pathlib
import shutil
import tempfile

from nsjax.core import InputError

NEEDED = ("sphinx", "myst_nb", "furo")
"""Packages of the extra ``docs``."""

ROOT = pathlib.Path(__file__).resolve().parents[1]
"""Folder of the repository."""


def require_generator() -> None:
    """Raises an error if a package of the extra ``docs`` is missing."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"docs: the site needs {', '.join(missing)}; install it with: pip install 'nsjax[docs]'"
        )


def build(output: str | pathlib.Path) -> pathlib.Path:
    """Builds the site from docstrings, guide and notebooks.

    The same without nsjax: ``sphinx-build -c docs . site`` in a checkout.

    Args:
        output: folder of the site; an existing site is replaced.

    Returns:
        Path of its front page.

    Raises:
        InputError: without the packages of the extra ``docs``, for a folder with other files, and with all
            warnings of Sphinx if there are any.

    Example:
        >>> from docs import build
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
            str(ROOT), str(pathlib.Path(__file__).parent), str(made), str(pathlib.Path(folder) / "trees"),
            "html", status=None, warning=said,
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
