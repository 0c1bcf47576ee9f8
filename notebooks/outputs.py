"""Executes notebooks and keeps small outputs in them, so that a reader on the web sees the figures.

``python notebooks/outputs.py [NAME ...]``, all without names, in the full size, which is what a reader gets.
Figures are drawn with `DPI` dots per inch; what changes from run to run without meaning (execution times,
progress bars, warnings) is not kept.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import nbclient
import nbformat

HERE = pathlib.Path(__file__).resolve().parent
DPI = 80
LARGEST = 500_000
"""Bytes of a notebook with its outputs."""
LONGEST = 250_000
"""Characters of a text or page; longer ones are left out."""

BEFORE = "from matplotlib_inline.backend_inline import set_matplotlib_formats as _drawn\n"
BEFORE += f"_drawn('png', dpi={DPI})\n"


def small(output: Any) -> Any | None:
    """An output without what is large or volatile; None if nothing is left."""
    if output.output_type == "stream":
        return output if output.name == "stdout" else None
    if output.output_type == "error":
        raise RuntimeError(f"{output.ename}: {output.evalue}")
    data = output.data
    if "image/png" in data:
        data.pop("text/html", None)
    for kind in list(data):
        if kind != "image/png" and (kind not in ("text/plain", "text/html") or len(data[kind]) > LONGEST):
            data.pop(kind)
    output.metadata = {}
    return output if data else None


def execute(path: pathlib.Path) -> int:
    """Executes a notebook, writes it with its outputs; returns its size in bytes."""
    book = nbformat.read(path, as_version=4)
    first = next(cell for cell in book.cells if cell.cell_type == "code")
    source = first.source
    first.source = source + "\n" + BEFORE
    place = {"metadata": {"path": HERE}}
    client = nbclient.NotebookClient(book, timeout=3000, kernel_name="python3", resources=place)
    client.execute()
    first.source = source
    for cell in book.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [kept for x in cell.outputs if (kept := small(x)) is not None]
    book.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    text = nbformat.writes(book)
    if len(text) > LARGEST:
        raise RuntimeError(f"{path.name} has {len(text)} bytes with its outputs; {LARGEST} are allowed")
    path.write_text(text + "\n", encoding="utf-8")
    return len(text)


def main(names: list[str]) -> None:
    """Executes the notebooks whose names begin so."""
    for path in sorted(HERE.glob("*.ipynb")):
        if not names or any(path.name.startswith(name) for name in names):
            print(path.name, execute(path), "bytes", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
