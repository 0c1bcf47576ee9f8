"""Progress of a sweep, reported between compiled calls, since a callback inside would split the kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from nsjax.core.errors import InputError


@contextlib.contextmanager
def meter(progress: bool | Callable[[int, int], None], total: int) -> Iterator[Callable[[int], None]]:
    """Context with a function that the caller calls with the number of finished lanes.

    Args:
        progress: False: silent; True: a bar; a function: called with lanes done and all lanes.
        total: number of lanes.

    Raises:
        InputError: for ``progress=True`` without tqdm.
    """
    if progress is False:
        yield lambda done: None
        return
    if progress is not True:
        yield lambda done: progress(done, total)
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise InputError("sweep: progress=True needs tqdm: pip install 'nsjax[progress]'") from None
    with tqdm(total=total, unit="lane") as bar:
        yield lambda done: bar.update(done - bar.n) and None
