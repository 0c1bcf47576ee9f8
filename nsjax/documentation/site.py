"""The site, built by Sphinx: warnings are errors, notebooks show the outputs that they hold."""

from __future__ import annotations

import functools
import importlib.util
import io
import pathlib
import re
import tempfile
from typing import Any

import nsjax
from nsjax.core import InputError
from nsjax.documentation.pages import Entry, entries
from nsjax.documentation.project import write_project

NEEDED = ("sphinx", "myst_nb", "furo")
"""Packages of the extra ``docs``."""

SHOWN = 20
"""Most warnings in a sentence."""

SETTINGS: dict[str, Any] = {
    "project": "nsjax",
    "author": "The nsjax developers",
    "copyright": "The nsjax developers",
    "html_title": f"nsjax {nsjax.__version__}",
    "html_theme": "furo",
    "html_show_sourcelink": False,
    "extensions": ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb"],
    "default_role": "py:obj",  # `name` in docstrings: a link where there is such a name, else code
    "nb_execution_mode": "off",
    "myst_heading_anchors": 3,
    "myst_enable_extensions": ["dollarmath", "colon_fence"],
    "autodoc_member_order": "bysource",
    "autodoc_typehints": "none",  # docstrings say it with shapes and units
    "napoleon_google_docstring": True,
    "napoleon_numpy_docstring": False,
    "napoleon_use_param": False,
    "napoleon_use_ivar": True,
    "napoleon_use_rtype": False,
    "add_module_names": False,
    "python_display_short_literal_types": True,
    "toc_object_entries_show_parents": "hide",
}
"""What other projects keep in ``conf.py``."""


def require_generator() -> None:
    """Refuses in a sentence where a package of the extra is missing."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"docs: the site needs {', '.join(missing)}; install it with: pip install 'nsjax[docs]'"
        )


def build(output: str | pathlib.Path) -> pathlib.Path:
    """Builds the site from docstrings, guide and notebooks.

    Args:
        output: folder of the site; a site that stands there is replaced page by page.

    Returns:
        Path of its front page.

    Raises:
        InputError: without the packages of the extra ``docs``, outside a checkout, for a folder that holds
            something else, and with all warnings of the generator if there is one.

    Example:
        >>> from nsjax.documentation import build
        >>> page = build("site")  # doctest: +SKIP
    """
    output = pathlib.Path(output)
    if output.exists() and not (output.is_dir() and _is_site(output)):
        raise InputError(f"docs: {output} is there and is no site; name a new folder")
    require_generator()
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, docutils_namespace():
        source = pathlib.Path(folder) / "source"
        write_project(source)
        app = Sphinx(
            str(source), None, str(output), str(pathlib.Path(folder) / "trees"), "html",
            confoverrides=SETTINGS, status=None, warning=said, warningiserror=True,
        )  # fmt: skip
        app.connect("missing-reference", _resolve)
        app.connect("autodoc-process-docstring", _paragraphs, priority=1)
        app.build(force_all=True)
    lines = [line for line in said.getvalue().splitlines() if line.strip()]
    if app.statuscode or lines:
        more = f"\n... and {len(lines) - SHOWN} more lines" if len(lines) > SHOWN else ""
        told = "\n".join(lines[:SHOWN])
        raise InputError(f"docs: the generator warns; mend what it names\n{told}{more}")
    return output / "index.html"


PARAGRAPH = re.compile(r"(Limits|Order|Source): ")
"""Paragraphs of docstrings that begin with a word and a colon."""


def _paragraphs(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Makes the first words of such paragraphs bold, and their hanging lines flush: indented, the first
    line would be read as a term and the others as its definition.
    """
    inside = False
    for k, line in enumerate(lines):
        found = PARAGRAPH.match(line)
        if found:
            lines[k] = f"**{found[1]}:** {line[found.end() :]}"
        inside = bool(found) or (inside and line.strip() != "")
        if inside and not found:
            lines[k] = line.strip()


def _is_site(folder: pathlib.Path) -> bool:
    return not any(folder.iterdir()) or (folder / ".buildinfo").is_file()


def _resolve(app: Any, env: Any, node: Any, content: Any) -> Any:
    """A link where a docstring names a thing by its module, or alone, from another module."""
    wanted = node.get("reftarget", "")
    public = public_of(wanted)
    if public is None or node.get("refdomain") != "py":
        return None
    domain = env.domains["py"]
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", public.path, node, content)


@functools.cache
def public_of(wanted: str) -> Entry | None:
    """Whom the reference shows under another name: by the module that defines it, or the name alone, if it
    is one word for one thing (`force` may be any argument, `mixed_scheme` and `Scheme` may not).

    Example:
        >>> from nsjax.documentation.site import public_of
        >>> public_of("nsjax.schemes.mixed.framework.mixed_scheme").path
        'nsjax.schemes.building.mixed_scheme'
        >>> public_of("force") is None
        True
    """
    shown = [e for e in entries() if e.first is None]
    alone = wanted.isidentifier() and (wanted[:1].isupper() or "_" in wanted)
    found = [e for e in shown if _home(e.thing, e.name) == wanted or (alone and e.name == wanted)]
    return found[0] if len(found) == 1 else None


def _home(thing: Any, name: str) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', name)}"
