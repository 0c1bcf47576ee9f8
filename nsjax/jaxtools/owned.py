"""Compiled programs and derived records of a system, which live as long as the system does.

`jax.jit` and `functools.cache` keep their static arguments, and the programs made for them, until the
process ends: every mechanism with a law of its own would stay in memory. Here each system, or mechanism,
has a store of its own. Equal systems share one store, so that a system built twice compiles once, and the
stores of the latest `RECENT` systems outlive them.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import hashlib
import inspect
import operator
import weakref
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from nsjax.jaxtools.internals import forget_structures
from nsjax.jaxtools.precision import least_tolerance

RECENT = 16
"""Number of systems whose programs stay after the last of their equals is gone, for new equal ones."""

HOLDERS = ("system", "mechanism", "tree")
"""Fields of static arguments that are a system or a mechanism."""

_NONE = object()

P = ParamSpec("P")
T = TypeVar("T")

STORE = "_owned"
"""Attribute of a system that holds its store; it is no field. Systems inside programs hold it weakly, since
JAX keeps a trace, and the system in it, as long as the function lives.
"""


class _Store(dict[Any, Any]):
    """What belongs to a system; copies of the system in another process begin with an empty one."""

    def __reduce__(self) -> Any:
        return _Store, ()


_known: weakref.WeakKeyDictionary[Any, weakref.ref[_Store]] = weakref.WeakKeyDictionary()
_recent: collections.OrderedDict[int, _Store] = collections.OrderedDict()
_made: dict[Any, weakref.WeakSet[Any]] = {}


def _holder(thing: Any) -> str | None:
    """The field of a record that is its system or mechanism; None for these themselves."""
    fields = getattr(type(thing), "__dataclass_fields__", {})
    return next((name for name in HOLDERS if name in fields), None)


def owned(thing: Any) -> _Store:
    """The store of a system or mechanism, or of that of a record that has one, see `HOLDERS`."""
    inside = _holder(thing)
    thing = thing if inside is None else getattr(thing, inside)
    held = vars(thing).get(STORE)
    found: _Store | None = held() if isinstance(held, weakref.ref) else held
    if found is None:
        same = _known.get(thing)
        found = None if same is None else same()
        if found is None:
            found = _Store(of=thing)  # keeps it, so that equal systems find the store by it
            _known[thing] = weakref.ref(found)
        object.__setattr__(thing, STORE, found)
    _recent[id(found)] = found
    _recent.move_to_end(id(found))
    while len(_recent) > RECENT:
        _recent.popitem(last=False)
        forget_structures()
    return found


def kept(function: Callable[P, T]) -> Callable[P, T]:
    """`functools.cache` of a function of a system, its first argument, and of further hashable arguments. A
    result that is another system shares the store.

    Example:
        >>> import dataclasses
        >>> from nsjax.jaxtools.owned import kept
        >>> @dataclasses.dataclass(frozen=True)
        ... class Model:
        ...     size: int
        >>> @kept
        ... def doubled(model):
        ...     return Model(2 * model.size)
        >>> doubled(Model(3)) is doubled(Model(3))
        True
    """

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        store = owned(arguments[0])
        key = function, arguments, tuple(named.items())
        made: Any = store.get(key, _NONE)
        if made is _NONE:
            made = store[key] = function(*arguments, **named)
            if type(made) is type(arguments[0]) and made is not arguments[0]:
                object.__setattr__(made, STORE, weakref.ref(store))
        return made

    return call


def latest(function: Callable[P, T]) -> Callable[P, T]:
    """A pure function of a system, or of a record that has one, and of trees of numbers, whose latest
    four results are held: a call with numbers that are equal bit for bit, also of new arrays, finds its
    result. Errors are not held.

    Example:
        >>> import dataclasses
        >>> import numpy as np
        >>> from nsjax.jaxtools.owned import latest
        >>> @dataclasses.dataclass(frozen=True)
        ... class Model:
        ...     size: int
        >>> @latest
        ... def scaled(model, x):
        ...     print("computed")
        ...     return model.size * float(x)
        >>> model, x = Model(3), np.array(2.0)
        >>> scaled(model, x), scaled(model, np.array(2.0))
        computed
        (6.0, 6.0)
        >>> x[...] = 4.0
        >>> scaled(model, x)
        computed
        12.0
    """

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        store = owned(arguments[0])
        held, known = (store.setdefault((x, function), {}) for x in (latest, by_value))
        rest = (*arguments[1:], *named.values())
        key = arguments[0], *named, *(by_value(x, known.setdefault(k, {})) for k, x in enumerate(rest))
        made: Any = held.get(key, _NONE)
        if made is _NONE:
            made = function(*arguments, **named)
            if len(held) >= 4:
                held.pop(next(iter(held)), None)
            held[key] = made
        return made

    return call


def by_value(tree: Any, known: dict[str, Any] | None = None) -> tuple[Any, ...]:
    """Key of a tree of numbers, with a digest of them: equal for an equal structure and equal bits.
    ``known`` holds the last tree of arrays that nobody can change, and its key.
    """
    leaves, structure = jax.tree.flatten(tree)
    last = None if known is None else known.get("last")
    if last is not None and last[1][0] == structure and all(map(operator.is_, last[0], leaves)):
        return last[1]
    arrays = [np.asarray(x) for x in leaves]
    digest = hashlib.blake2b(b"".join([x.tobytes() for x in arrays])).digest()
    key = structure, tuple((x.shape, x.dtype) for x in arrays), digest
    if known is not None and all(isinstance(x, jax.Array) for x in leaves):
        known["last"] = leaves, key
    return key


@dataclasses.dataclass(frozen=True)
class Uncompiled:
    """A function in place of a compiled one, in `compiled_for`."""

    function: Callable[..., Any]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Its result."""
        return self.function(*arguments, **named)

    def _cache_size(self) -> int:
        return 0


def compiled_for(
    *static: str, of: str = "", make: Callable[..., Any] = jax.jit
) -> Callable[[Callable[..., Any]], Any]:
    """`jax.jit` of a function of a system, whose programs live in the store of the system.

    Args:
        static: names of the static arguments.
        of: name of the argument that is, or has, the system; empty: the first static one.
        make: compiles a function of the other arguments.

    Example:
        >>> import dataclasses
        >>> from nsjax.jaxtools.owned import compiled_for
        >>> @dataclasses.dataclass(frozen=True)
        ... class Model:
        ...     size: int
        >>> @compiled_for("model")
        ... def scaled(model, x):
        ...     return model.size * x
        >>> int(scaled(Model(3), 2))
        6
    """

    def decorate(function: Callable[..., Any]) -> Any:
        names = tuple(inspect.signature(function).parameters)
        owner = of or static[0]
        _made[function, make] = weakref.WeakSet()

        def chosen(arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, list[Any], Any]:
            """The compiled function, and what it takes."""
            given = dict(zip(names, arguments, strict=False)) | named
            fixed = tuple((name, given[name]) for name in static)
            rest = [x for name, x in zip(names, arguments, strict=False) if name not in static]
            named = {name: x for name, x in named.items() if name not in static}
            store, key = owned(given[owner]), (function, make, fixed, least_tolerance())
            compiled = store.get(key)
            if compiled is None:
                inside = tuple((name, _twin(x, store) if name == owner else x) for name, x in fixed)
                compiled = store[key] = make(_rest_of(function, names, inside))
                _made[function, make].add(compiled)
            return compiled, rest, named

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            compiled, rest, named = chosen(arguments, named)
            return compiled(*rest, **named)

        def lower(*arguments: Any, **named: Any) -> Any:
            compiled, rest, named = chosen(arguments, named)
            return compiled.lower(*rest, **named)

        made: Any = call
        made.lower = lower
        made._cache_size = lambda: sum(x._cache_size() for x in _made[function, make])
        return made

    return decorate


def _twin(thing: Any, store: _Store) -> Any:
    """An equal system, or static argument with one, for the inside of programs."""
    inside, made = _holder(thing), copy.copy(thing)
    if inside is None:
        object.__setattr__(made, STORE, weakref.ref(store))
    else:
        object.__setattr__(made, inside, _twin(getattr(thing, inside), store))
    return made


def _rest_of(
    function: Callable[..., Any], names: tuple[str, ...], fixed: tuple[tuple[str, Any], ...]
) -> Callable[..., Any]:
    """The function of the arguments that are not fixed, under the same name."""
    static = dict(fixed)
    others = tuple(name for name in names if name not in static)

    def whole(*rest: Any, **named: Any) -> Any:
        return function(**static, **dict(zip(others, rest, strict=False)), **named)

    whole.__name__, whole.__qualname__ = function.__name__, function.__qualname__
    return whole
