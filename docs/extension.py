"""Sphinx extension of the site: formulas, references, tables of sentences, the front page."""

from __future__ import annotations

import html
import pathlib
import re
import sys
from typing import Any
from xml.etree import ElementTree

import nsjax
from docs.pages import constant_text, public_of, reached
from nsjax import gradient_notes, status

ALIASES = ("nsjax.transforms", "nsjax.losses", "nsjax.reductions")
"""Names under which the package exports modules, since autodoc imports the modules that it documents."""

PARAGRAPH = re.compile(r"(Limits|Order|Source): ")
"""Pattern of docstring paragraphs that begin with a keyword and a colon."""

HEADS = {
    "nsjax.status": ("Bit", "What happened", "What to do"),
    "nsjax.gradient_notes": ("Bit", "Derivative", "What it means"),
}
"""Headings of the tables of sentences."""

FRONT = """<!doctype html>
<meta charset="utf-8"><title>nsjax</title>
<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">nsjax</a>
"""


ElementTree.register_namespace("", "http://www.w3.org/1998/Math/MathML")


def setup(app: Any) -> dict[str, Any]:
    """Registers the extension."""
    from docutils.parsers.rst import Directive

    class Sentences(Directive):
        """``.. sentences::`` shows the table of sentences of the current module."""

        def run(self) -> list[Any]:
            from docutils import nodes

            module = self.state.document.settings.env.ref_context["py:module"]
            found = nodes.container()
            table = sentence_table(module).splitlines()
            self.state.nested_parse(_listing(table), self.content_offset, found)
            return [found]

    for name in ALIASES:
        sys.modules.setdefault(name, reached(name))
    app.add_directive("sentences", Sentences)
    app.add_html_math_renderer("mathml", (_inline_math, None), (_block_math, None))
    app.connect("missing-reference", _resolve)
    app.connect("autodoc-process-docstring", _constants, priority=1)
    app.connect("autodoc-process-docstring", _paragraphs, priority=2)
    app.connect("doctree-read", _formulas_as_text)
    app.connect("builder-inited", _outputs, priority=900)
    app.connect("build-finished", _front)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": nsjax.__version__}


def _listing(lines: list[str]) -> Any:
    from docutils.statemachine import StringList

    return StringList(lines, source="sentences")


def sentence_table(module: str) -> str:
    """Bits and sentences of `nsjax.status` or `nsjax.gradient_notes`, as a table in reStructuredText.

    Args:
        module: ``"nsjax.status"`` or ``"nsjax.gradient_notes"``.

    Example:
        >>> sentence_table("nsjax.status").splitlines()[0]
        '.. list-table::'
    """
    home = {"nsjax.status": status, "nsjax.gradient_notes": gradient_notes}[module]
    names = {x: k for k, x in vars(home).items() if k.isupper() and isinstance(x, int)}
    rows = [(f"``{names[bit]}`` ({bit})", *said) for bit, said in home.SENTENCES.items()]
    text = ".. list-table::\n   :header-rows: 1\n\n"
    for row in (HEADS[module], *rows):
        text += "".join(f"   {'*' if k == 0 else ' '} - {cell}\n" for k, cell in enumerate(row))
    return text


def mathml(formula: str, block: bool) -> str:
    """A formula in LaTeX as MathML, which browsers draw without a script.

    Args:
        formula: formula without dollar signs.
        block: whether the formula is a block of its own.

    Raises:
        ValueError: for commands that docutils does not know.

    Example:
        >>> mathml(r"q_0", False)[:5]  # doctest: +SKIP
        '<math'
    """
    from docutils.utils.math import MathError
    from docutils.utils.math.latex2mathml import tex2mathml

    try:
        return accented(str(tex2mathml(formula, as_block=block)))
    except MathError as error:
        raise ValueError(f"docs: {formula!r} is no formula that docutils reads: {error}") from None


ACCENTS = tuple("˙¨ˉ~^→")


def accented(formula: str) -> str:
    """A formula in MathML with accents above their letters and indices beside them: docutils writes these
    indices below, as those of limits, and accents that some browsers draw into the letter.

    Args:
        formula: as docutils writes it.

    Example:
        >>> below = "<math><munderover><mi>g</mi><mi>N</mi><mo>˙</mo></munderover></math>"
        >>> accented(below)
        '<math><msub><mover><mi>g</mi><mo>˙</mo></mover><mi>N</mi></msub></math>'
    """
    named = re.compile(r"&(?!lt;|gt;|amp;)\w+;")  # which XML does not know
    root = ElementTree.fromstring(named.sub(lambda x: html.unescape(x[0]), formula))
    for found in root.iter():
        found.attrib.pop("accent", None)
        if found.tag.endswith("munderover") and (found[2].text or "?") in ACCENTS:
            letter, index, accent = found
            over = ElementTree.Element(found.tag.replace("munderover", "mover"))
            over.extend([letter, accent])
            found.tag, found[:] = found.tag.replace("munderover", "msub"), [over, index]
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def _inline_math(writer: Any, node: Any) -> None:
    from docutils.nodes import SkipNode

    writer.body.append(mathml(node.astext(), False))
    raise SkipNode


def _block_math(writer: Any, node: Any) -> None:
    from docutils.nodes import SkipNode

    look = "overflow-y: hidden; padding: 0.4em 0"
    writer.body.append(f'<div class="math" style="{look}">{mathml(node.astext(), True)}</div>\n')
    raise SkipNode


def _resolve(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Link for a name in a docstring, given with the defining module or without a module."""
    public = public_of(node.get("reftarget", ""))
    if public is None or node.get("refdomain") != "py":
        return None
    domain = env.domains["py"]
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", public.path, node, content)


def _constants(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Adds to values the sentence below their assignment; autodoc does not find it through re-exports."""
    if what == "data":
        module, _, alone = name.rpartition(".")
        lines[:] = constant_text(module, alone).splitlines()


def _paragraphs(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Makes keywords such as "Limits:" bold and removes the indentation of the lines below them.

    With the indentation, Sphinx would read the first line as a term and the others as its definition.
    """
    inside = False
    for k, line in enumerate(lines):
        found = PARAGRAPH.match(line)
        if found:
            lines[k] = f"**{found[1]}:** {line[found.end() :]}"
        inside = bool(found) or (inside and line.strip() != "")
        if inside and not found:
            lines[k] = line.strip()


def _outputs(app: Any) -> None:
    """Puts pictures of notebooks into the folder of intermediate files, not beside the site."""
    config = getattr(app.env, "mystnb_config", None)
    if config is not None:
        app.env.mystnb_config = config.copy(output_folder=str(pathlib.Path(app.doctreedir) / "outputs"))


def _formulas_as_text(app: Any, tree: Any) -> None:
    """Warns of dollar signs in text: a formula that is printed as it was written, for a block ``$$`` within
    a paragraph is none.
    """
    from docutils import nodes
    from sphinx.util import logging

    code = (
        nodes.literal,
        nodes.literal_block,
        nodes.math,
        nodes.math_block,
        nodes.raw,
        nodes.FixedTextElement,
    )
    for text in tree.findall(nodes.Text):
        if "$" in text and not isinstance(text.parent, code):
            said = " ".join(text.split())[:60]
            logging.getLogger(__name__).warning(
                "%r holds a formula that is printed as text; put blank lines around $$", said,
                location=text.parent,
            )  # fmt: skip


def _front(app: Any, error: Exception | None) -> None:
    """Writes ``index.html``, which redirects to the front page in the folder of its source."""
    if error is None and app.builder.name == "html":
        target = pathlib.Path(app.outdir) / "index.html"
        target.write_text(FRONT.format(address=f"{app.config.root_doc}.html"), encoding="utf-8")
