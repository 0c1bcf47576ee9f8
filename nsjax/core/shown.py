"""Problems and runs as a notebook shows them: a table of numbers, and a picture."""

from __future__ import annotations

import base64
import html
import importlib
from typing import Any

import jax
import numpy as np

from nsjax.core.errors import InputError
from nsjax.core.keys import child, dotted
from nsjax.short import as_html, short

PICTURES = "nsjax.plot"
"""Package of the drawing functions, which stands above this module and is imported at the first picture."""


def problem_html(problem: Any) -> str:
    """A problem as a table of its numbers by their names, beside a picture of its start."""
    if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves((problem.params, problem.state))):
        return as_html(problem)
    rows = [("", repr(problem.system))]
    for root, node in (("", problem.params), ("state.", problem.state)):
        for name in dotted(node):
            value = node
            for word in name.split("."):
                value = child(value, word)
            rows.append((root + name, short(np.asarray(value))))
    cells = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in rows)
    return beside(f"<table>{cells}</table>", problem)


def beside(shown: str, problem: Any) -> str:
    """HTML beside a picture of the state of a problem, where the system has shapes that can be drawn."""
    tall = 260  # height of a table beside its picture [px]; longer ones are scrolled
    box = f'<div style="max-height:{tall}px;overflow:auto">{shown}</div>'
    if problem.system.shapes is None:
        return box
    try:
        drawn = importlib.import_module(PICTURES).still(problem)
    except InputError:  # a package is missing, or the state is not finite
        return box
    source = base64.b64encode(drawn).decode()
    picture = f'<img style="height:{tall}px" src="data:image/png;base64,{source}"/>'
    return f'<div style="display:flex;gap:1em">{box}{picture}</div>'
