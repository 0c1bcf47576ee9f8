"""Which sentences of the package a test asks for: ``python -m tests.messages`` lists those that none does.

A sentence is the text of a ``raise``, or of `nsjax.core.errors.check_known`, with holes where values stand.
Asked for it is by a text of `tests/sentences/table.txt`, or by a string of a test file that looks at errors
(``pytest.raises``, stderr of the command line). A string counts for the sentence that holds most of its
pairs of neighbouring words, and few others, if those are at least half of the string, or all of the
sentence. Nothing is run, so this is an estimate: too low where the words of a test are single ones or
values for the most part, too high where two sentences say the same.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import itertools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]

SHARE = 0.5
"""Of the pairs of neighbouring words in a test's string that the sentence holds; the rest are values."""

TIES = 2
"""Sentences that may hold the same pairs: more of them, and the string tells none apart."""

WHOLE = 2
"""Pairs of a sentence which a string may hold among many values."""

SPECIAL = re.compile(r"\.[*+]\??|\(\?[a-z]\)|[|^$]")
WORD = re.compile(r"[A-Za-z_]+|[=:;]")


def pairs(text: str) -> set[tuple[str, str]]:
    """Neighbouring words of a text without numbers; the signs of "name = value; remedy" are words, too."""
    return set(itertools.pairwise(WORD.findall(text)))


@dataclasses.dataclass(frozen=True)
class Sentence:
    """One message.

    Args:
        place: file and line.
        kind: of the exception.
        pieces: its text without the values.
    """

    place: str
    kind: str
    pieces: tuple[str, ...]

    @functools.cached_property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """Neighbouring words of its pieces."""
        return frozenset(x for piece in self.pieces for x in pairs(piece))


def pieces(node: ast.expr | None) -> list[str]:
    """Literal parts of a text; conditional ones are all taken."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return [x for part in node.values for x in pieces(part)]
    if isinstance(node, ast.FormattedValue):
        return pieces(node.value)
    if isinstance(node, ast.BinOp):
        return pieces(node.left) + pieces(node.right)
    if isinstance(node, ast.IfExp):
        return pieces(node.body) + pieces(node.orelse)
    return []


@functools.cache
def sentences() -> tuple[Sentence, ...]:
    """Of all `raise` of the package that make an exception from a text."""
    found = []
    for file in sorted([*(ROOT / "nsjax").rglob("*.py"), *(ROOT / "docs").glob("*.py")]):
        for node in ast.walk(ast.parse(file.read_text())):
            made = node.exc if isinstance(node, ast.Raise) else node
            func = getattr(made, "func", None)
            kind = getattr(func, "id", getattr(func, "attr", ""))
            if isinstance(made, ast.Call) and made.args and (made is not node or kind == "check_known"):
                text = tuple(x for x in pieces(made.args[0]) if len(x.strip()) > 2)
                place = f"{file.relative_to(ROOT)}:{node.lineno}"
                found.append(Sentence(place, kind, text))
    return tuple(x for x in found if x.pieces)


@functools.cache
def asked() -> frozenset[frozenset[tuple[str, str]]]:
    """Pairs of words of the table of sentences, and of all strings in test files that look at errors."""
    table = re.sub(r"\n +", " ", (ROOT / "tests" / "sentences" / "table.txt").read_text())
    texts = re.findall(r" => (.*)", table)
    found = {frozenset(x for run in text.split("...") for x in pairs(run)) for text in texts}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        text = file.read_text()
        if "raises(" not in text and "capsys" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                runs = SPECIAL.split(node.value.replace("\\", ""))
                found.add(frozenset(x for run in runs for x in pairs(run)))
    return frozenset(x for x in found if x)


@functools.cache
def unasked() -> tuple[Sentence, ...]:
    """Sentences that no test asks for."""
    known: set[Sentence] = set()
    holders: dict[tuple[str, str], list[int]] = {}
    for k, x in enumerate(sentences()):
        for pair in x.pairs:
            holders.setdefault(pair, []).append(k)
    for wanted in asked():
        held = collections.Counter(k for pair in wanted for k in holders.get(pair, ()))
        best = max(held.values(), default=0)
        first = [sentences()[k] for k, n in held.items() if n == best]
        if len(first) > TIES:
            shortest = min(len(x.pairs) for x in first)
            first = [x for x in first if len(x.pairs) == shortest]
        whole = [x for x in first if best == len(x.pairs) >= WHOLE]
        if best and best >= SHARE * len(wanted) and len({x.pairs for x in first}) <= TIES:
            known |= set(first)
        elif len({x.pairs for x in whole}) == 1:
            known |= set(whole)
    return tuple(x for x in sentences() if x not in known)


FEW = "`tests/sentences` asks for it; its own words are too few to be told from values"

REASONS = {
    ("nsjax/part_rows.py", "trajectory has no "): FEW,
    ("nsjax/cli/inputs.py", "unknown scheme "): FEW,
    ("nsjax/cli/sweep.py", "--quantity "): FEW,
    ("nsjax/core/checks.py", "state."): FEW,
    ("nsjax/core/keys.py", " has no "): FEW,
    ("nsjax/contact/contact_set.py", "gradient: "): FEW,
    ("nsjax/core/system.py", "System: "): FEW,
    ("nsjax/schemes/common.py", "; it must "): FEW,
    ("nsjax/sweep/reductions.py", "reduce: "): FEW,
    (
        "nsjax/multibody/files/readers.py",
        "read_urdf",
    ): "words of mujoco alone, for roots that it does not free",
    ("nsjax/cli/identify.py", "identify: no success: "): "a whole search, compiled, that ends badly",
    (
        "nsjax/sweep/program.py",
        "sweep: the first lane does not fit the model: ",
    ): "functions of models say it before",
}
"""Sentences without a test that counts, by file and first words, and why."""


def unexplained() -> list[str]:
    """Sentences that no test asks for and that `REASONS` does not name."""
    return [
        f"{x.place}: {' ... '.join(x.pieces)}" for x in unasked()
        if (x.place.partition(":")[0], x.pieces[0]) not in REASONS
    ]  # fmt: skip


if __name__ == "__main__":
    for left in unasked():
        print(left.place, left.kind, " ... ".join(left.pieces))
    print(f"{len(sentences()) - len(unasked())} of {len(sentences())} sentences are asked for by a test")
