"""Digest of everything that a program depends on, the same in every process."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import hashlib
import importlib
import marshal
import pathlib
import platform
import sys
import sysconfig
import threading
import types
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import jax
import numpy as np

from nsjax.jaxtools.owned import STORE
from nsjax.lazy import LazyPackage

PACKAGE = __name__.partition(".")[0]
ROOT = pathlib.Path(__file__).resolve().parents[1]

APART = (
    "analysis", "check_gradient", "cli", "experiments", "identify", "io", "jaxtools.cache",
    "jaxtools.compilation", "jaxtools.fingerprint", "jaxtools.owned", "lazy", "motion", "plot", "sweep",
)  # fmt: skip
"""Parts of the package outside the program of a run: they call the time loop, or do not use it."""

CONFIG: Any = jax.config
"""JAX's settings, as `Any` because JAX does not declare their names."""

STANDARD = sysconfig.get_path("stdlib")

LIBRARIES = ("jax", "jaxlib", "numpy")

SETTINGS = ("jax_compilation_cache", "jax_persistent_cache", "jax_log", "jax_debug_log", "jax_logging")
"""Prefixes of the names of JAX's settings that change no program."""


_PLAIN = (bool, int, float, complex, str, bytes)
_METHODS = property | classmethod | staticmethod


class UnknownValueError(Exception):
    """Error for a value of which it is unknown whether another process has the same."""


def fingerprint(*values: Any) -> str:
    """Digest of values and of what they use of the package; equal digests mean equal programs.

    The digest covers numbers, strings, arrays, containers, and records and functions of the package (with
    their closures) by value; traced arrays by shape and type; JAX, numpy and Python by their releases, JAX
    also by its settings. Of the package it covers the modules of these records and functions, those whose
    functions, classes or objects stand in them, and so on: the code of their functions and their constants
    as loaded, also where they differ from the files. It does not depend on what else is loaded.

    Raises:
        UnknownValueError: for functions and objects from outside the package. The data that they read when
            they are traced (globals, files, the time) are unknown.

    Example:
        >>> from nsjax.jaxtools.fingerprint import fingerprint
        >>> fingerprint(1.0) == fingerprint(1.0), fingerprint(1.0) == fingerprint(1)
        (True, False)
    """
    digest = _Digest()
    releases = [f"{name} {metadata.version(name)}" for name in LIBRARIES]
    releases += [platform.python_implementation(), sys.version, jax.default_backend()]
    for part in (tuple(releases), _settings(), *values):
        digest.add(part)
    digest.say(*_modules(digest.modules))
    return digest.made()


_stored = threading.local()


@contextlib.contextmanager
def package_held() -> Iterator[None]:
    """Context in which this thread computes the digest of a module once: it does not change in a call.

    Example:
        >>> from nsjax.jaxtools.fingerprint import fingerprint, package_held
        >>> with package_held():
        ...     inside = fingerprint(1)
        >>> inside == fingerprint(1)
        True
    """
    outer = getattr(_stored, "digests", None)
    _stored.digests = {} if outer is None else outer
    try:
        yield
    finally:
        _stored.digests = outer


def _modules(first: set[str]) -> Iterator[str]:
    """Names and digests of modules of the package, and of those that they use."""
    held: dict[str, _Digest] | None = getattr(_stored, "digests", None)
    known = {} if held is None else held
    waiting, done = set(first), dict[str, str]()
    while waiting:
        name = waiting.pop()
        if name not in known:
            new = _Digest()
            new.add_module(name)  # a module with code from outside raises, whenever it is met
            known[name] = new
        done[name] = known[name].made()
        waiting |= known[name].modules - done.keys()
    for name in sorted(done):
        yield from (name, done[name])


def _settings() -> dict[str, str]:
    """Current settings of JAX, with those of a surrounding `with`."""
    names = [name for name in CONFIG.values if not name.startswith(SETTINGS)]
    return {name: repr(getattr(CONFIG, name, CONFIG.values[name])) for name in sorted(names)}


def _ours(module: str | None) -> bool:
    """Whether a module belongs to the package."""
    parts = (module or "").split(".")
    return parts[0] == PACKAGE and not {".".join(parts[1:k]) for k in (2, 3)} & {*APART}


class ForeignCodeError(UnknownValueError):
    """Error for a function or class from outside the package and its libraries."""


class _Digest:
    """Digest of a sequence of values; containers mark their ends. It collects in ``modules`` the names of
    the modules of the package whose functions, classes and objects it met.
    """

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.inside: list[int] = []
        self.modules: set[str] = set()

    def meet(self, *modules: str | None) -> None:
        self.modules.update(name for name in modules if name and _ours(name))

    def alone(self, x: Any) -> str:
        """Digest of a value without those before it."""
        digest = _Digest()
        digest.modules = self.modules
        digest.add(x)
        return digest.made()

    def made(self) -> str:
        return self.hash.hexdigest()

    def say(self, *words: Any) -> None:
        for word in words:
            data = word if isinstance(word, bytes) else str(word).encode()
            self.hash.update(len(data).to_bytes(8, "little") + data)

    def add(self, x: Any) -> None:
        if id(x) in self.inside:
            raise UnknownValueError(f"a {type(x).__name__} that holds itself")
        self.inside.append(id(x))
        try:
            self._add(x)
        finally:
            self.inside.pop()

    def _add(self, x: Any) -> None:
        kind = type(x)
        if isinstance(x, jax.core.Tracer):
            self.say("traced", x.shape, x.dtype, getattr(x, "weak_type", False))
        elif x is None or x is Ellipsis or kind in _PLAIN:
            self.say(kind.__name__, x if kind is bytes else repr(x))
        elif isinstance(x, enum.Enum) and _ours(kind.__module__):
            self.meet(kind.__module__)
            self.say("enum", kind.__qualname__, x.name)
        elif isinstance(x, np.ndarray | np.generic | jax.Array) and x.dtype != object:
            self.say("array", kind.__name__, x.dtype, x.shape, np.asarray(x).tobytes())
            self.say(getattr(x, "weak_type", False))
        elif isinstance(x, np.dtype):
            self.say("dtype", x)
        elif kind is jax.tree_util.PyTreeDef:
            self.say("structure")
            self.add(jax.tree.unflatten(x, range(x.num_leaves)))
        elif kind in (tuple, list):
            self.say(kind.__name__, len(x))
            for part in x:
                self.add(part)
        elif kind in (dict, types.MappingProxyType):
            self.say(kind.__name__, len(x))
            for name, part in x.items():
                self.add(name)
                self.add(part)
        elif kind in (set, frozenset):
            self.say(kind.__name__, len(x), *sorted(self.alone(part) for part in x))
        else:
            self._add_object(x)

    def _add_object(self, x: Any) -> None:
        """Adds classes, functions, and records of the package."""
        if isinstance(x, type):
            self._add_class(x)
        elif isinstance(x, types.FunctionType):
            self.add_function(x)
        elif isinstance(x, types.MethodType):
            self.say("method")
            self.add(x.__func__)
            self.add(x.__self__)
        elif type(x) is functools.partial:
            self.say("partial")
            self.add((x.func, x.args, x.keywords))
        elif self._add_named(x):
            return
        elif (inner := _wrapped(x)) is not None:
            self.say("wrapped", type(x).__qualname__)
            self.add(inner)
        elif dataclasses.is_dataclass(x) and _ours(type(x).__module__):
            self._add_record(x)
        else:
            raise _refused(type(x).__module__)(f"an object of {type(x).__module__}.{type(x).__qualname__}")

    def _add_record(self, x: Any) -> None:
        self._add_class(type(x))
        names = [field.name for field in dataclasses.fields(x)]
        for name in getattr(x, "__dict__", {}).keys() - {*names, STORE}:
            if not isinstance(getattr(type(x), name, None), functools.cached_property):
                raise UnknownValueError(f"{name} of a {type(x).__qualname__}, which is no field of it")
        for name in names:
            self.say(name)
            self.add(getattr(x, name))

    def _add_class(self, x: type) -> None:
        self.meet(x.__module__)
        known = _ours(x.__module__) or _named(x.__module__)
        if known and _named_object(x.__module__, x.__qualname__) is x:
            self.say("class", x.__module__, x.__qualname__)
        else:
            raise _refused(x.__module__)(f"the class {x.__qualname__} of {x.__module__}")

    def _add_named(self, x: Any) -> bool:
        """Adds an object of a library by its name; returns whether it is such an object."""
        name, module = getattr(x, "__name__", ""), getattr(x, "__module__", None) or ""
        for home in (module, "jax.numpy", "numpy") if name and _named(module) else ():
            if _named_object(home, name) is x:
                self.say("library", home, name)
                return True
        return False

    def add_function(self, f: types.FunctionType) -> None:
        """Adds a function of the package: its code and its closure."""
        if self._add_named(f):
            return
        home = f.__globals__.get("__name__", "")  # of a decorator's function; its __module__ is another's
        own = _ours(f.__module__) and f.__code__.co_filename.startswith(str(ROOT))
        if not (own and _ours(home) and f.__globals__ is vars(sys.modules[home])):
            inside = f.__code__.co_filename.startswith(str(ROOT))
            raise _refused(f.__module__ if inside else None)(
                f"the function {f.__qualname__} of {f.__module__}"
            )
        self.meet(f.__module__, home)
        self.say("function", f.__module__, f.__qualname__, _code(f.__code__))
        for cell in f.__closure__ or ():
            self.add(cell.cell_contents)
        self.add((f.__defaults__, f.__kwdefaults__))

    def add_module(self, name: str) -> None:
        """Adds a module of the package as it is loaded, of a lazy package all names, which this loads.
        Modules inside a package are attributes of it as soon as anybody imports them: they do not count.
        """
        self.say("module", name)
        module = importlib.import_module(name)
        for key in dir(module):
            x = None if key.startswith("__") else getattr(module, key)
            inside = isinstance(x, types.ModuleType) and x.__name__ == f"{name}.{key}"
            if not key.startswith("__") and (isinstance(module, LazyPackage) or not inside):
                self.say(key)
                self._add_member(name, x)

    def _add_member(self, module: str, x: Any) -> None:
        """Adds a member of a module or a class: functions and classes defined there by their code, others
        by name, constants by value, and all other objects by their type.
        """
        if isinstance(x, types.FunctionType):
            self.meet(x.__module__, x.__globals__.get("__name__"))
            self.say("function", x.__module__, x.__qualname__)
            self._refuse_foreign(x)
            if x.__module__ == module:
                self.say(_code(x.__code__))
                self._add_constant((x.__defaults__, x.__kwdefaults__))
            if (inner := getattr(x, "__wrapped__", None)) is not None:
                self._add_member(module, inner)
        elif isinstance(inner := _wrapped(x) or getattr(x, "__func__", None), types.FunctionType):
            self.say(type(x).__qualname__)
            self._add_member(module, inner)
        elif isinstance(x, property):
            self._add_member(module, x.fget)
        elif isinstance(x, type):
            self.meet(x.__module__)
            self.say("class", x.__module__, x.__qualname__)
            for key, part in sorted(vars(x).items()) if x.__module__ == module else ():
                if key != "__repr__" and (callable(part) or isinstance(part, _METHODS)):
                    self.say(key)
                    self._add_member(module, part)
        elif isinstance(x, types.ModuleType):
            self.meet(x.__name__)
            self.say("module", x.__name__)
        else:
            self._add_constant(x)

    def _refuse_foreign(self, f: types.FunctionType) -> None:
        """Refuses functions of others inside the package; those generated by dataclasses have no file."""
        file = f.__code__.co_filename
        standard = file == "<string>" or (file.startswith(STANDARD) and "-packages" not in file)
        own = (f.__module__ or "").partition(".")[0] == PACKAGE and file.startswith(str(ROOT))
        if not (_named(f.__module__) or standard or own):
            raise ForeignCodeError(f"the function {f.__qualname__} of {f.__module__}, put into the package")

    def _add_constant(self, x: Any) -> None:
        """Adds a constant, part by part, by value; parts without a known value by their type."""
        if type(x) in _PLAIN:
            self.add(x)
            return
        if type(x) in (dict, types.MappingProxyType):
            x = tuple(x.items())
        elif dataclasses.is_dataclass(x) and not isinstance(x, type):
            x = (type(x), *(getattr(x, field.name) for field in dataclasses.fields(x)))
        if type(x) in (tuple, list):
            self.say(type(x).__name__, len(x))
            for part in x:
                self._add_constant(part)
            return
        try:
            self.say(self.alone(x))
        except ForeignCodeError:
            raise
        except UnknownValueError:
            self.meet(type(x).__module__)
            self.say("kind", type(x).__module__, type(x).__qualname__)


def _refused(module: str | None) -> type[UnknownValueError]:
    """`UnknownValueError` for objects of the package and its libraries, else `ForeignCodeError`."""
    return (
        UnknownValueError
        if (module or "").partition(".")[0] == PACKAGE or _named(module)
        else ForeignCodeError
    )


def _named(module: str | None) -> bool:
    """Whether a module is one of the libraries, or of Python's own."""
    library = (module or "").partition(".")[0]
    return library in LIBRARIES or library in sys.stdlib_module_names


def _wrapped(x: Any) -> Any:
    """The function inside a wrapper of jax.jit, jax.custom_jvp or functools.cache; None otherwise."""
    if type(x).__module__.partition(".")[0] not in (*LIBRARIES, "functools"):
        return None
    inner = getattr(x, "__wrapped__", None) or getattr(x, "func", None)
    return inner if callable(inner) else None


def _code(code: types.CodeType) -> bytes:
    """Code as bytes that do not depend on how it was loaded: version 2 of the format has no references,
    which vary between loads.
    """
    return marshal.dumps(code, 2)


def _named_object(module: str, name: str) -> Any:
    """Object of a name in a module; None if there is none."""
    if module not in sys.modules:
        try:
            importlib.import_module(module)
        except ImportError:
            return None
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
