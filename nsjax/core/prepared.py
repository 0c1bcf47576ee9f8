"""Params with what a run derives from them once, and what a step holds fixed."""

from __future__ import annotations

from typing import Any

from nsjax.types import PyTree, record


@record()
class Prepared:
    """What the functions of a system get as ``p`` where `System.prepare` and `System.refresh` derive it.

    Args:
        params: as the user gave them.
        constants: derived from them once for a run.
        held: derived at the start of a step, and fixed in it; None before.

    Example:
        >>> from nsjax.core.prepared import Prepared
        >>> Prepared(params={"mass": 2.0}, constants=())["mass"]
        2.0
    """

    params: PyTree
    constants: PyTree
    held: PyTree = None

    def __getitem__(self, name: str) -> Any:
        """A number or part of the params."""
        return self.params[name]
