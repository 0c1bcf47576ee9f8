"""Values and derivatives of a run by one program, in which the run stands once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax


def with_slopes(run: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """Compiled ``(x, ...) -> (value, derivative by x)``, forward: compiling is most of a test's time."""

    def twice(*given: Any) -> tuple[Any, Any]:
        value = run(*given)
        return value, value

    slopes = jax.jit(jax.jacfwd(twice, has_aux=True))
    return lambda *given: slopes(*given)[::-1]
