"""Calls of the functions that users give to parts: laws, potentials and motions."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.flatten_util import ravel_pytree
from jax.interpreters import partial_eval

from nsjax.core import InputError
from nsjax.core.user_functions import call
from nsjax.multibody.parts import Part
from nsjax.types import Array, Fn


def user_value(
    part: Part, what: str, takes: str, *arguments: Any, shapes: tuple[tuple[int, ...], ...]
) -> Array:
    """Value of a function of the user.

    Args:
        part: the part with this function.
        what: name of the option, ``"law"``.
        takes: names of the documented arguments, ``"t, scene, own"``.
        arguments: their values in this order.
        shapes: shapes that the value may have.

    Raises:
        InputError: for a wrong number of arguments, for an exception of the function, with its line, and
            for a value of another shape.

    Example:
        >>> from nsjax.multibody import actuator
        >>> from nsjax.multibody.user_laws import user_value
        >>> motor = actuator("motor", "pin", law=lambda t, x, rate, own: None)
        >>> user_value(motor, "law", "t, coordinate, rate, own", 0.0, 0.0, 0.0, None, shapes=((),))
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: law of actuator 'motor' returns None, and must return one number
    """
    name = f"{what} of {part.kind} {part.name!r}"
    found = call(name, part.option(what), *arguments, takes=takes)
    try:
        made = None if found is None else jnp.asarray(found, float)
    except (TypeError, ValueError):
        made = None
    if made is None or np.shape(made) not in shapes:
        what = repr(found) if made is None else f"shape {np.shape(made)}"
        wanted = " or ".join(f"an array of shape {x}" if x else "one number" for x in shapes)
        raise InputError(f"{name} returns {what}, and must return {wanted}")
    return made


def lacks_acceleration(motion: Fn) -> bool:
    """Whether the rate of a motion ``(t) -> numbers`` changes in time while its derivative is zero by
    construction: a table between whose points it is straight, or a ramp with a kink. Velocities then jump,
    and the force of that is known to the scheme alone.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.multibody.user_laws import lacks_acceleration
        >>> table = lambda t: jnp.interp(t, jnp.arange(3.0), jnp.array([0.0, 1.0, 4.0]))
        >>> lacks_acceleration(table), lacks_acceleration(jnp.sin), lacks_acceleration(lambda t: 2.0 * t)
        (True, False, False)
    """
    at, moves = jnp.zeros(()), []

    def rate(t: Array) -> Array:
        return jax.jvp(lambda t: ravel_pytree(motion(t))[0], (t,), (jnp.ones(()),))[1]

    @jax.custom_jvp
    def seen(x: Array) -> Array:
        return x

    def noted(primals: Any, tangents: Any) -> Any:
        moves.append(not isinstance(tangents[0], SymbolicZero))
        return primals[0], jnp.zeros_like(primals[0])

    seen.defjvp(noted, symbolic_zeros=True)
    jax.eval_shape(lambda t: jax.jvp(lambda t: seen(rate(t)), (t,), (jnp.ones(()),)), at)
    _, used = partial_eval.dce_jaxpr(jax.make_jaxpr(rate)(at).jaxpr, [True])
    return used[0] and not any(moves)


def with_surfaces(part: Part, found: list[Array]) -> Part:
    """``part`` with a law that appends the values (k,) of its surfaces to ``found`` wherever it is called.

    Args:
        part: a part with the options ``law`` and ``switch``, functions of the same arguments.
        found: a list.

    Raises:
        InputError: in a call of the law, for surfaces that are no numbers.
    """
    law, name = part.option("law"), f"switch of {part.kind} {part.name!r}"

    def seen(*given: Any) -> Any:
        value = call(name, part.option("switch"), *given, takes="the arguments of its law")
        try:
            made = None if value is None else jnp.asarray(value, float)
        except (TypeError, ValueError):
            made = None
        if made is None or made.ndim > 1:
            raise InputError(f"{name} gives {value!r}; its values are one number or several, (k,)")
        found.append(jnp.ravel(made))
        return law(*given)

    return dataclasses.replace(part, options=tuple((dict(part.options) | {"law": seen}).items()))
