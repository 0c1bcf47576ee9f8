"""Names of the numbers of a problem, ``"params.friction"`` or ``"state.v[1]"``, and their replacement."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.errors import InputError, nearest
from nsjax.forms import form_of
from nsjax.types import Array, PyTree, record


@record()
class Prepared:
    """What the functions of a system get as ``p`` where `System.prepare` and `System.refresh` derive it.

    Args:
        params: as the user gave them.
        constants: derived from them once for a run.
        held: derived at the start of a step, and fixed in it; None before.

    Example:
        >>> from nsjax.core.keys import Prepared
        >>> Prepared(params={"mass": 2.0}, constants=())["mass"]
        2.0
    """

    params: PyTree
    constants: PyTree
    held: PyTree = None

    def __getitem__(self, name: str) -> Any:
        """A number or part of the params."""
        return self.params[name]


# Names of the numbers of a problem: ``"params.friction"``, ``"state.v[1]"``, ``"scheme.rho_inf"``.


ROOTS = ("params", "state", "scheme")
START = {"initial_time": "state.t", "initial_q": "state.q", "initial_v": "state.v"}


@dataclasses.dataclass(frozen=True)
class Key:
    """Place of a varied number: ``params.friction``, ``state.v[1]``, ``scheme.rho_inf`` or ``dt``.

    Args:
        text: as the user wrote it.
        path: root and names of the fields below it.
        index: entry of the array found there, None for all of it.
    """

    text: str
    path: tuple[str, ...]
    index: int | None

    def overlaps(self, other: Key) -> bool:
        """Whether both name the same number, or one a group or an array and the other a part of it."""
        if self.path != other.path:
            whole, part = sorted((self.path, other.path), key=len)
            return part[: len(whole)] == whole
        return self.index == other.index or self.index is None or other.index is None


def parse(text: str, who: str) -> Key:
    """The key of a name; ``who`` is the caller that error sentences name. Raises `InputError` for a name
    that does not start with params, state or scheme and is not dt.

    Example:
        >>> from nsjax.core.keys import parse
        >>> key = parse("state.v[1]", "sweep")
        >>> key.path, key.index
        (('state', 'v'), 1)
    """
    found = re.fullmatch(r"([A-Za-z_]\w*(?:\.\w+)*)(?:\[(\d+)\])?", text) if isinstance(text, str) else None
    if found is None:
        raise InputError(f"{who}: {text!r} is no key; write 'params.friction', 'state.v[1]' or 'dt'")
    path = tuple(found[1].split("."))
    index = None if found[2] is None else int(found[2])
    if path == ("dt",) and index is None:
        return Key(text, path, None)
    if path[0] not in ROOTS or len(path) < 2:
        hints = {
            "params": "params.NAME", "state": "state.q", "scheme": "scheme.NAME", "start": "state.q[0]",
            "initial_q": "state.q", "initial_v": "state.v", "initial_time": "state.t",
        }  # fmt: skip
        hint = hints.get(path[0], f"params.{text}")
        raise InputError(
            f"{who}: {text!r} is no key; did you mean {hint!r}? Known: params.*, state.*, scheme.*, dt"
        )
    return Key(text, path, index)


def parse_parameter(text: str, who: str) -> Key:
    """The key of a name that may leave out ``params.``, and may name a start as in `Problem.replace`:
    ``friction`` is ``params.friction``, ``initial_v[0]`` is ``state.v[0]``. Raises `InputError`, see
    `parse`.

    Example:
        >>> from nsjax.core.keys import parse_parameter
        >>> parse_parameter("initial_v[0]", "identify").path
        ('state', 'v')
    """
    name, *rest = re.split(r"(?=[.\[])", str(text), maxsplit=1)
    root = name if name in ROOTS else START.get(name, f"params.{name}")
    return parse(root + "".join(rest), who)


def refuse_twice(key: Key, seen: list[Key], who: str, remedy: str) -> None:
    """Adds a key to those ``seen``, unless one of them names the same number. Raises `InputError` if one
    does.
    """
    for other in seen:
        if key.overlaps(other):
            raise InputError(f"{who}: {other.text} and {key.text} are the same number; {remedy}")
    seen.append(key)


def is_group(node: PyTree) -> bool:
    """Whether a node is a mapping, a record or a named tuple, and no number, array or plain sequence."""
    record = dataclasses.is_dataclass(node) and not isinstance(node, type)
    return isinstance(node, Mapping) or record or hasattr(node, "_fields")


def is_number(node: PyTree) -> bool:
    """Whether a node is a number or an array."""
    return hasattr(node, "dtype") or isinstance(node, int | float)


def dotted(node: PyTree) -> list[str]:
    """Names of all numbers below a node that are not None, through groups at any depth: ``friction``,
    ``rod.mass``.

    Example:
        >>> from nsjax.core.keys import dotted
        >>> dotted({"rod": {"mass": 1.0, "length": 2.0}, "friction": 0.1})
        ['rod.mass', 'rod.length', 'friction']
    """
    found = []
    for name in names(node) if is_group(node) else []:
        below = child(node, name)
        found += [f"{name}.{rest}" for rest in dotted(below)] or ([] if below is None else [name])
    return found


def names(node: PyTree) -> list[str]:
    """Names below a node of a pytree of records, mappings and sequences; none below a number."""
    if isinstance(node, Mapping):
        return [str(name) for name in node]
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return [f.name for f in dataclasses.fields(node)]
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return list(node._fields)
    return [str(i) for i in range(len(node))] if isinstance(node, list | tuple) else []


def child(node: PyTree, name: str) -> PyTree:
    """Child of a node by its name."""
    if isinstance(node, Mapping):
        return next(value for key, value in node.items() if str(key) == name)
    return (
        node[int(name)]
        if isinstance(node, list | tuple) and not hasattr(node, "_fields")
        else getattr(node, name)
    )


def above(base: Mapping[str, PyTree], key: Key) -> PyTree:
    """The group, record or array of groups that holds what a key names."""
    node: Any = base
    for name in key.path[:-1]:
        node = child(node, name)
    return node


def find(base: Mapping[str, PyTree], key: Key, who: str) -> Any:
    """The number or array that a key names; ``who`` is the caller that error sentences name. Raises
    `InputError` for an unknown name, with the nearest known one.
    """
    node: Any = base
    above: Any = base
    for depth, name in enumerate(key.path):
        known = names(node)
        if name not in known:
            place = ".".join(key.path[:depth])
            known = dotted(node) if is_group(node) else names(node)
            hint = nearest(".".join(key.path[depth:]), known, "problem.keys()")
            raise InputError(f"{who}: {key.text}: {place} has no {name!r}; {hint}")
        above, node = node, child(node, name)
    if node is None:
        given = ", ".join(x for x in names(above) if child(above, x) is not None)
        raise InputError(f"{who}: {key.text} is not set in this problem; what is set beside it: {given}")
    if names(node) or not is_number(node):
        parts = dotted(node) or names(node)
        raise InputError(
            f"{who}: {key.text} is not a number; choose one of {', '.join(parts) or 'its parts'}"
        )
    if key.index is not None:
        shape = np.shape(node)
        if len(shape) != 1 or key.index >= shape[0]:
            raise InputError(
                f"{who}: {key.text}: {'.'.join(key.path)} has shape {shape}; there is no such entry"
            )
    return node


def number_at(base: Mapping[str, PyTree], key: Key, who: str, name: str) -> float:
    """The one number that a key names; the user wrote it as ``name``. Raises `InputError` as `find`, and
    for an array.
    """
    value = np.asarray(find(base, key, who), float)
    if key.index is None and value.ndim:
        raise InputError(f"{who}: {name!r} has shape {value.shape}; name one entry: '{name}[0]'")
    return float(value if key.index is None else value[key.index])


def put(base: dict[str, PyTree], key: Key, value: Array) -> dict[str, PyTree]:
    """The tree ``base`` with the ``value`` at a key."""
    return {**base, key.path[0]: _put(base[key.path[0]], key.path[1:], key.index, value)}


def _put(node: PyTree, path: tuple[str, ...], index: int | None, value: Array) -> PyTree:
    if not path:
        if index is None:
            return value
        # numbers that JAX has not seen keep their precision, whatever it is configured to
        where = jnp.where if any(isinstance(x, jax.Array) for x in (node, value)) else np.where
        return where(np.arange(np.shape(node)[0]) == index, value, node)
    new = _put(child(node, path[0]), path[1:], index, value)
    if isinstance(node, Mapping):
        return {key: new if str(key) == path[0] else part for key, part in node.items()}
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return dataclasses.replace(node, **{path[0]: new})
    if hasattr(node, "_fields"):
        return node._replace(**{path[0]: new})
    return type(node)(new if str(i) == path[0] else part for i, part in enumerate(node))


# Replacement of numbers of a problem, by the names of `nsjax.core.keys`, for `Problem.replace`.


WHO = "replace"


def as_number(value: Any) -> Any:
    """A list or tuple of numbers as one array, and so one parameter; any other value unchanged."""
    if not isinstance(value, list | tuple):
        return value
    traced = any(isinstance(x, jax.core.Tracer) for x in value)
    with contextlib.suppress(TypeError, ValueError):  # words, None, and rows of several lengths
        return jnp.asarray(value) if traced else np.asarray(value, float)
    return value


def all_changes(numbers: Mapping[str, Any] | None, named: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Pairs of name and value from a mapping and from keywords. Raises `InputError` for ``numbers`` that
    are no mapping.
    """
    if not isinstance(numbers, Mapping | None):
        raise InputError(f"{WHO}: {numbers!r} is no mapping; give {{name: value}}, or name=value")
    return [*(numbers or {}).items(), *named.items()]


def changed(
    base: dict[str, PyTree], changes: Iterable[tuple[str, Any]], *, fixed: bool = False
) -> dict[str, PyTree]:
    """The numbers with some of them replaced, by name.

    Args:
        base: ``params`` and ``state`` of a problem.
        changes: pairs of a name, in which ``params.`` may be left out, and a value; ``params`` or ``state``
            for all of them.
        fixed: whether numbers that are None must stay None, and arrays their lengths, as in mechanisms of
            parts, whose equations belong to them.

    Raises:
        InputError: for an unknown name, a name given twice, a value that is no number in place of a
            number, one of another shape, and one that leaves out some of several numbers.

    Example:
        >>> from nsjax.core.keys import changed
        >>> changed({"params": {"rod": {"mass": 1.0, "length": 2.0}}}, [("rod.mass", 0.05)])
        {'params': {'rod': {'mass': 0.05, 'length': 2.0}}}
    """
    seen: list[Key] = []
    for text, value in changes:
        key = key_of(base, text)
        refuse_twice(key, seen, WHO, "give it once")
        node: Any = base
        for name in key.path:
            if name not in names(node):
                raise InputError(f"{WHO}: unknown parameter {key.text!r}; {_near_names(base, key.text)}")
            node = child(node, name)
        if fixed and value is None and node is not None:
            raise InputError(f"{WHO}: {text} = None; its equations read it: give a number")
        if fixed and node is None and value is not None:
            raise InputError(f"{WHO}: {text} is not set, and nothing reads it; {_beside(base, key)}")
        if key.index is None:
            value = _fitting(node, value, text)
            if fixed:
                _check_shape(base, key, node, value)
            base = put(base, key, value)
        elif np.ndim(node) == 1 and key.index < np.shape(node)[0]:
            base = put(base, key, value)
        else:
            raise InputError(f"{WHO}: {text}: the array has shape {np.shape(node)}; there is no such entry")
    return base


def _check_shape(base: Mapping[str, PyTree], key: Key, node: Any, value: Any) -> None:
    """Refuses an array in place of one number, and an array of another length.

    A point may be one number or a vector, an inertia a vector or a matrix: the model's functions see these.
    """
    if is_number(node) and isinstance(value, list | tuple):
        raise InputError(
            f"{WHO}: {key.text} = {value!r}; give a number, or an array with rows of one length"
        )
    if not (is_number(node) and is_number(value)):
        return
    old, new = np.shape(node), np.shape(value)
    if form_of(type(above(base, key)), key.path[-1]).shape == "one" and new and not old:
        raise InputError(f"{WHO}: {key.text} has shape {new}; give one number; nsjax.sweep takes several")
    if old and len(old) == len(new) and old != new and "own" not in key.path:
        raise InputError(f"{WHO}: {key.text} has shape {new}; give an array of the shape {old} that it has")


def key_of(base: Mapping[str, PyTree], text: str) -> Key:
    """The key of a name. A parameter with exactly this name comes first, even if the name looks like a
    path; ``params`` and ``state`` mean all of their numbers.
    """
    if text in names(base["params"]):
        return Key(text, ("params", text), None)
    if text in base:
        return Key(text, (text,), None)
    key = parse_parameter(text, WHO)
    if key.path[0] == "scheme":
        raise InputError(f"{WHO}: {text}: numbers of the scheme are given where the scheme is made")
    return dataclasses.replace(key, text=text)


def _beside(base: Mapping[str, PyTree], key: Key) -> str:
    """End of a sentence about a number that is not set; it lists the other numbers of its group."""
    whole = ".".join(key.path[1:-1])
    given = [f"{whole}.{x}".lstrip(".") for x in dotted(above(base, key))]
    return f"give it where the part is made, or change one of {', '.join(given) or 'its other numbers'}"


def _near_names(base: Mapping[str, PyTree], text: str) -> str:
    if text.startswith("state."):
        return nearest(text, [f"state.{name}" for name in names(base["state"])])
    return nearest(text.removeprefix("params."), [*dotted(base["params"]), *START], "problem.keys()")


def _fitting(node: Any, value: Any, place: str) -> Any:
    """``value`` in the form of the ``node`` that it replaces: a group needs exactly the same names."""
    if not is_group(node):
        if is_group(value) and is_number(node):
            raise InputError(f"{WHO}: {place} = {value!r}; it is one number or array, give another one")
        return as_number(value)
    if not isinstance(value, Mapping) and type(value) is type(node):
        return value
    if not is_group(value) or set(names(value)) != set(names(node)):
        given = [name for name in names(value) if name in names(node)] if is_group(value) else []
        wanted = " or ".join(f"{place}.{name}" for name in given or dotted(node))
        raise InputError(f"{WHO}: {place} = {value!r} leaves out some of its numbers; give {wanted}")
    for name in names(node):
        part = _fitting(child(node, name), child(value, name), f"{place}.{name}")
        node = put({"": node}, Key(place, ("", name), None), part)[""]
    return node


# Start of a problem after its numbers have changed: numbers that enter constraints move it.


def _beyond(key: Key, nv: int) -> bool:
    """Whether a key names a velocity (or an increment) after the first ``nv``."""
    return key.path[1] in ("v", "xi") and key.index is not None and key.index >= nv


def replaced(problem: Any, numbers: Any, named: Mapping[str, Any]) -> dict[str, PyTree]:
    """``params`` and ``state`` of a problem with other numbers, for `Problem.replace`."""
    base, given = {"params": problem.params, "state": problem.state}, all_changes(numbers, named)
    after = changed(base, given, fixed=problem.system.parts is not None)
    return restarted(problem.system, base, after, [key_of(base, name) for name, _ in given])


def restarted(
    system: Any, before: dict[str, PyTree], after: dict[str, PyTree], keys: Iterable[Key]
) -> dict[str, PyTree]:
    """``params`` and ``state`` whose start fulfils the constraints again after a change of numbers, as the
    parts of the system close it: a record ``System.parts.kept`` with the method ``restarted(parts, before,
    after, keys) -> State``. Other systems, and other numbers, keep their start.

    This is the one place where a changed number moves the start: for `Problem.replace`, sweeps,
    identification and checks of derivatives, with derivatives in forward and reverse mode.

    Args:
        system: an `nsjax.System`.
        before, after: ``params`` and ``state`` before and after the change; more entries stay.
        keys: of the changed numbers.
    """
    parts = system.parts
    kept, inputs = getattr(parts, "kept", None), getattr(parts, "inputs", None)
    if kept is not None:
        return {**after, "state": kept.restarted(parts, before, after, tuple(keys))}
    if inputs is None:
        return after
    # numbers that are given over time, or that follow commands, belong to a model inside
    nv, state = inputs.system.nv, after["state"]

    def inside(base: dict[str, PyTree]) -> dict[str, PyTree]:
        return {
            "params": base["params"].model,
            "state": dataclasses.replace(base["state"], v=base["state"].v[:nv]),
        }

    own = [
        dataclasses.replace(x, path=("params", *x.path[2:])) if x.path[:2] == ("params", "model") else x
        for x in keys
        if x.path[1:2] in ((), ("model",)) or (x.path[0] == "state" and not _beyond(x, nv))
    ]
    found = restarted(inputs.system, inside(before), inside(after), own)["state"]
    if found.q is state.q:
        return after
    xp: Any = np if isinstance(found.v, np.ndarray) and isinstance(state.v, np.ndarray) else jnp
    return {**after, "state": dataclasses.replace(found, v=xp.concatenate([found.v, state.v[nv:]]))}
