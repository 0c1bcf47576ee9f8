"""Progress of runs and sweeps, told between compiled calls: a callback inside would split the kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from nsjax.core.errors import optional

Progress = bool | Callable[[int, int], None] | None


@contextlib.contextmanager
def meter(progress: Progress, total: int, unit: str = "lane") -> Iterator[Callable[[int], None]]:
    """Context with a function that the caller calls with the number of finished lanes or steps.

    Args:
        progress: False or None: silent; True: a bar; a function: called with those done and all.
        total: number of all.
        unit: ``"lane"`` or ``"step"``.

    Raises:
        InputError: for ``progress=True`` without tqdm.
    """
    if progress is False or progress is None:
        yield lambda done: None
        return
    if progress is not True:
        yield lambda done: progress(done, total)
        return
    tqdm = optional("progress=True needs", "progress", "tqdm.auto").tqdm
    with tqdm(total=total, unit=unit, unit_scale=unit == "step") as bar:
        yield lambda done: bar.update(done - bar.n) and None
