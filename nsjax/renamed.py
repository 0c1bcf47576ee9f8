"""Names that changed in version 0.3: the old ones still work and say the new ones."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

OLD_NAMES = {
    "nsjax": {
        "driven": "with_inputs", "filtered": "with_actuator_dynamics", "nonlinear": "jaxtools",
        "notes": "gradient_notes", "run": "simulate_to_file", "startup": "jaxtools", "table": "signal",
    },
    "nsjax.io": {"run": "simulate_to_file"},
}  # fmt: skip
"""By package: names until version 0.3, and those since."""


def new_name(package: str, name: str) -> str | None:
    """The present name of something in a package that is asked for by its old one; None if it has none.

    Warns:
        DeprecationWarning: with the new name.

    Example:
        >>> import warnings
        >>> import nsjax
        >>> with warnings.catch_warnings(record=True, action="always") as said:
        ...     nsjax.table is nsjax.signal, str(said[0].message)
        (True, 'nsjax.table is called nsjax.signal since version 0.3')
    """
    new = OLD_NAMES.get(package, {}).get(name)
    if new is not None:
        _warn(f"{package}.{name}", f"{package}.{new}", 4)
    return new


def renamed_options(**names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorator of a function that takes options by their old names as well.

    Args:
        names: new names by the old ones.

    Warns:
        DeprecationWarning: with the new name, in a call with an old one.

    Example:
        >>> import warnings
        >>> from nsjax.renamed import renamed_options
        >>> @renamed_options(size="length")
        ... def ruler(*, length):
        ...     return length
        >>> with warnings.catch_warnings(record=True, action="always") as said:
        ...     ruler(size=0.3), str(said[0].message)
        (0.3, 'ruler: size is called length since version 0.3')
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*arguments: P.args, **options: P.kwargs) -> T:
            given: dict[str, Any] = options
            for old in names.keys() & given.keys():
                if names[old] not in given:  # else the function refuses the old name
                    _warn(f"{function.__name__}: {old}", names[old], 3)
                    given[names[old]] = given.pop(old)
            return function(*arguments, **options)

        return call

    return decorate


def _warn(old: str, new: str, level: int) -> None:
    warnings.warn(f"{old} is called {new} since version 0.3", DeprecationWarning, stacklevel=level)
