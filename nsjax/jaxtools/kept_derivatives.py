"""Derivatives by lowered programs that outlive the process.

A function inside `jax.jit` becomes one operation. `jax.grad` makes two programs of it: one that also
returns what the derivative needs, and that of the transposed derivative for the results that are used. Both
are kept beside the compiled programs (`nsjax.jaxtools.cache`), so that a later process neither traces the
function nor its derivative. Forward mode takes them, too, where steps are by kinds. The function itself is
a program, and a batch of each is. Forward mode of other runs and second derivatives trace the function.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.jaxtools.cache import (
    conditions,
    file_of,
    filled,
    note_of,
    operations_digest,
    outline,
    program_of,
)
from nsjax.jaxtools.choices import CHOICE, first_maps_in_loops, turned, with_inputs
from nsjax.jaxtools.compilation import compiled_once
from nsjax.jaxtools.control_flow import tree_shapes
from nsjax.jaxtools.internals import (
    ClosedJaxpr,
    Primitive,
    ad,
    batch_jaxpr,
    batching,
    jaxpr_as_fun,
    mlir,
    reverse_mode_alone,
    reverse_rules,
)
from nsjax.jaxtools.owned import owned
from nsjax.jaxtools.precision import least_tolerance
from nsjax.jaxtools.programs import holds
from nsjax.types import Array, being_compiled

FLOAT0 = jax.dtypes.float0
Mask = tuple[bool, ...]


def kept_run(function: Callable[..., Any], static: tuple[Any, ...], *arguments: Any) -> Any:
    """``function(static, *arguments)`` inside `jax.jit`, with kept programs of its reverse derivative.

    It is traced as usual where nothing is kept, see `nsjax.jaxtools.cache.kept_call`, which also says what
    the function may return, and for programs of single precision.

    Args:
        function: function of the package, of arguments that determine its result.
        static: its first argument, not traced: hashable values, of which the first one is a system or has
            one (`nsjax.jaxtools.owned`).
        arguments: further arguments, traced pytrees.

    Example:
        >>> import dataclasses
        >>> import jax
        >>> from nsjax.jaxtools.kept_derivatives import kept_run
        >>> @dataclasses.dataclass(frozen=True)
        ... class Model:
        ...     power: int
        >>> square = jax.jit(lambda x: kept_run(lambda given, x: x ** given[0].power, (Model(2),), x))
        >>> float(jax.grad(square)(3.0))
        6.0
    """
    run = _Run.of(function, static, arguments)
    return function(static, *arguments) if run is None else run.applied(arguments)


def kept_soon(
    calls: int, function: Callable[..., Any], static: tuple[Any, ...], *arguments: Any
) -> Any:  # fmt: skip
    """`kept_run` outside `jax.jit` for first reverse derivatives, whose programs are compiled without
    optimisation; None for other transformations, where nothing is kept, and after so many calls.

    Args:
        calls: number of calls of this function with arguments of these types.
        function, static, arguments: as in `kept_run`.
    """
    if reverse_rules() is None or being_compiled() or not reverse_mode_alone(jax.tree.leaves(arguments)):
        return None
    known, key = owned(static[0]), (kept_soon, function, static, tree_shapes(arguments), conditions())
    if key not in known:
        made: list[_Run | None] = []  # the name of its file is that of shapes: all numbers are traced
        jax.eval_shape(lambda *x: made.append(_Run.of(function, static, x)), *arguments)
        known[key] = made[0], itertools.count(1)
    run, count = known[key]
    return None if run is None or next(count) > calls else run.applied(arguments)


@dataclasses.dataclass(frozen=True, eq=False)
class _Run:
    """A function of flat arguments, and the parts of its derivatives.

    Args:
        function, static: as in `kept_run`.
        tree: structure of the arguments.
        types: of their leaves.
        file: where the structure of the result is kept; its name begins those of the programs.
    """

    function: Callable[..., Any]
    static: Any
    tree: Any
    types: tuple[Any, ...]
    file: pathlib.Path

    @classmethod
    def of(cls, function: Callable[..., Any], static: Any, arguments: tuple[Any, ...]) -> _Run | None:
        """The function of arguments of these types; None if nothing of it is kept."""
        if reverse_rules() is None or least_tolerance():
            return None
        leaves, tree = jax.tree.flatten(arguments)
        types = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in leaves)
        file = file_of(function, static, *arguments)
        if file is None:
            return None
        run: _Run = owned(static[0]).setdefault((cls, file), cls(function, static, tree, types, file))
        try:
            return run if run.outcome else None
        except TypeError:  # the result has a structure that no file holds
            return None

    @functools.cached_property
    def outcome(self) -> tuple[Any, tuple[Any, ...]]:
        """Structure of the result, see `nsjax.jaxtools.cache.filled`, and the types of its leaves."""
        form, results = note_of(self.file, self.note)
        return form, tuple(jax.core.ShapedArray(tuple(shape), jnp.dtype(kind)) for shape, kind in results)

    def applied(self, arguments: tuple[Any, ...]) -> Any:
        """Its result, by one operation of JAX."""
        form, results = self.outcome
        found = _run.bind(*jax.tree.leaves(arguments), run=self, results=results)
        return filled(form, arguments, iter(found))

    @functools.cached_property
    def _traced(self) -> tuple[ClosedJaxpr, Any]:
        flat = lambda *leaves: self.function(self.static, *self.tree.unflatten(leaves))  # noqa: E731
        return jax.make_jaxpr(flat, return_shape=True)(*self.types)

    @property
    def made(self) -> ClosedJaxpr:
        """The traced function."""
        return self._traced[0]

    def note(self) -> Any:
        """Structure of the result, and shapes and types of its leaves."""
        made, shapes = self._traced
        results = [[list(x.shape), str(x.dtype)] for x in made.out_avals]
        return [outline(shapes, self.tree.unflatten(self.types)), results]

    @functools.cached_property
    def _held(self) -> dict[Any, Any]:
        return {}

    def _once(self, part: str, masks: Any, make: Callable[[], Any]) -> Any:
        """What was made of a part before, or is made now."""
        if (part, masks) not in self._held:
            self._held[part, masks] = make()
        return self._held[part, masks]

    def linear(self, moving: Mask) -> tuple[ClosedJaxpr, ClosedJaxpr, int]:
        """For derivatives by some arguments: the function that also returns the data of the derivative, the
        linear map ``data, changes of these -> changes of the floats``, and the number of the data.
        """
        return self._once("linear", moving, lambda: self._linear(moving))

    def _linear(self, moving: Mask) -> tuple[ClosedJaxpr, ClosedJaxpr, int]:
        lines = []

        def with_data(*leaves: Array) -> list[Array]:
            of = lambda *some: jaxpr_as_fun(self.made)(*_with(leaves, moving, some))  # noqa: E731
            some = [x for x, yes in zip(leaves, moving, strict=True) if yes]
            ends, along = jax.linearize(of, *some)
            # as a function of its own: JAX would print all operations of `along` for its name
            line = jax.make_jaxpr(lambda *moves: along(*moves))(*some)
            data = [x for x in line.consts if isinstance(x, jax.core.Tracer)]
            lines.append((line, len(data), [isinstance(x, jax.core.Tracer) for x in line.consts]))
            return [*ends, *data]

        made = jax.make_jaxpr(with_data)(*self.types)
        line, count, data = lines[0]
        body, consts = line.jaxpr, zip(line.jaxpr.constvars, line.consts, data, strict=True)
        fixed = {x: value for x, value, yes in consts if not yes}
        given = [x for x in body.constvars if x not in fixed]
        body = body.replace(
            constvars=[*fixed], invars=[*given, *body.invars],
            debug_info=body.debug_info.with_unknown_names(),
        )  # fmt: skip
        line = ClosedJaxpr(body, [*fixed.values()])
        floats = [x.dtype != FLOAT0 for x in line.out_avals]
        return made, with_inputs(line, [True] * len(line.in_avals), floats), count

    @property
    def plain(self) -> _Program:
        """Program of the function."""
        return self._kept("plain", (), lambda: self.made)

    def ahead(self, moving: Mask) -> _Program:
        """Program of the function that also returns the data of its derivative."""
        return self._kept("ahead", moving, lambda: self.linear(moving)[0], lambda: self._digest(moving))

    def along(self, moving: Mask) -> _Program:
        """Program ``data, changes of the arguments -> changes of the floats``."""
        return self._kept("along", moving, lambda: self._line(moving)[0])

    def back(self, moving: Mask, read: Mask) -> _Program:
        """Program ``data, changes of results that are read -> changes of the arguments``."""
        return self._kept("back", (moving, read), lambda: turned(*self._line(moving), read))

    def _line(self, moving: Mask) -> tuple[ClosedJaxpr, int]:
        """The linear map and the number of its data, which are those of the program that was kept."""
        _, line, count = self.linear(moving)
        kept = self.ahead(moving).digest
        if kept not in ("", self._digest(moving)):  # its data would be taken for others
            raise RuntimeError(
                f"cache {str(self.file.parent)!r}: this process traces {self.function.__name__} in "
                "another order than the one that kept it; remove the folder"
            )
        return line, count

    def by_kinds(self, moving: Mask) -> bool:
        """Whether the derivative is by kinds of steps."""
        note = note_of(_file(self.file, "kinds", moving), lambda: holds(self.forward(moving), (CHOICE,)))
        return bool(note)

    def forward(self, moving: Mask) -> ClosedJaxpr:
        """For derivatives by some arguments: the traced function ``arguments, changes of these -> results,
        changes of the floats among them``.
        """
        zero = ad.Zero(jax.core.ShapedArray((), FLOAT0))

        def both(leaves: Sequence[Array], some: Sequence[Array]) -> list[Array]:
            moves = iter(some)
            found, ends = _moved(self.made, leaves, [next(moves) if yes else zero for yes in moving])
            return [*found, *(x for x in ends if not isinstance(x, ad.Zero))]

        types = [x for x, yes in zip(self.types, moving, strict=True) if yes]
        return self._once("forward", moving, lambda: jax.make_jaxpr(both)(self.types, types))

    def moving(self, nonzeros: Iterable[bool]) -> Mask:
        """Which arguments are differentiated: floats whose changes are not known to be zero."""
        floats = [bool(jnp.issubdtype(x.dtype, jnp.floating)) for x in self.types]
        return tuple(x and y for x, y in zip(floats, nonzeros, strict=True))

    def _digest(self, moving: Mask) -> str:
        """Digest of the function that returns the data, which takes a second for a robot."""
        return self._once("digest", moving, lambda: operations_digest(self.linear(moving)[0]))

    def _kept(
        self, part: str, masks: Any, traced: Callable[[], ClosedJaxpr], digest: Callable[[], str] = str
    ) -> _Program:
        """A program that was made before, or comes from its file, or is made and saved."""
        return self._once(part, masks, lambda: _Program.of(_file(self.file, part, masks), traced, digest))


def _file(beside: pathlib.Path, *part: Any) -> pathlib.Path:
    """Where something is kept that belongs to another file."""
    name = hashlib.sha256(" ".join(map(str, (beside.name, *part))).encode()).hexdigest()
    return beside.with_name(name)


@dataclasses.dataclass(frozen=True, eq=False)
class _Program:
    """A traced function of flat arrays, and its lowered program.

    Args:
        results: types of its results.
        lowered: the program; None: it cannot be kept.
        digest: of the text of the function that was kept; empty: none was.
        traced: returns the traced function.
        file: where the program is kept.
    """

    results: tuple[Any, ...]
    lowered: Any
    digest: str
    traced: Callable[[], ClosedJaxpr]
    file: pathlib.Path

    @classmethod
    def of(
        cls, file: pathlib.Path, traced: Callable[[], ClosedJaxpr], digest: Callable[[], str] = str
    ) -> _Program:  # fmt: skip
        """The program of a file, or that of a traced function, which is saved there."""
        found = program_of(file, lambda: first_maps_in_loops(traced()), digest)
        lowered, said = (None, "") if found is None else found
        results = tuple((traced() if lowered is None else lowered).out_avals)
        return cls(results, lowered, said, traced, file)

    def flat(self, *leaves: Array) -> list[Array]:
        """Its results."""
        lowered = self.lowered
        return list((jaxpr_as_fun(self.traced()) if lowered is None else lowered.call)(*leaves))

    @functools.cached_property
    def soon(self) -> Callable[..., list[Array]]:
        """The function, compiled for few steps."""
        return compiled_once(self.flat)

    def lanes(self, axis: Any, batched: Mask) -> tuple[_Program, list[bool]]:
        """Program of a batch, by the arguments that have lanes, and which of its results have lanes."""
        if (axis.size, batched) not in self._lanes:
            made = functools.cache(lambda: batch_jaxpr(self.traced(), axis, [*batched], False))
            file = _file(self.file, axis.size, batched)
            program = _Program.of(file, lambda: made()[0])
            self._lanes[axis.size, batched] = program, note_of(_file(file, "lanes"), lambda: made()[1])
        return self._lanes[axis.size, batched]

    @functools.cached_property
    def _lanes(self) -> dict[Any, tuple[_Program, list[bool]]]:
        return {}


def _with(leaves: Sequence[Array], moving: Sequence[bool], some: Iterable[Array]) -> list[Array]:
    """The leaves with others in place of those that move."""
    new = iter(some)
    return [next(new) if yes else x for x, yes in zip(leaves, moving, strict=True)]


# Operations: the function, a kept program, and the linear map of a derivative, whose transpose is one.


def _moved(made: ClosedJaxpr, leaves: Any, changes: Any) -> Any:
    """Values and changes of a traced function."""
    moving = [not isinstance(x, ad.Zero) for x in changes]

    of = lambda some: list(jaxpr_as_fun(made)(*_with(leaves, moving, some)))  # noqa: E731
    some = [x for x, yes in zip(leaves, moving, strict=True) if yes]
    found, moves = jax.jvp(of, (some,), ([x for x in changes if not isinstance(x, ad.Zero)],))
    kinds = [x.to_tangent_aval() for x in made.out_avals]
    return found, [ad.Zero(x) if x.dtype == FLOAT0 else y for x, y in zip(kinds, moves, strict=True)]


def _operation(name: str, program: Callable[..., _Program]) -> Primitive:
    """An operation with the results of a program, which is compiled for few steps outside `jax.jit`."""
    made = Primitive(f"nsjax_kept_{name}")
    made.multiple_results = True

    def in_lanes(axis: Any, operands: Any, axes: Any, **given: Any) -> Any:
        operands = [x if k is None else jnp.moveaxis(x, k, 0) for x, k in zip(operands, axes, strict=True)]
        of, lanes = program(**given).lanes(axis, tuple(x is not None for x in axes))
        return _program.bind(*operands, program=of), [0 if x else None for x in lanes]

    made.def_impl(lambda *x, **given: program(**given).soon(*x))
    mlir.register_lowering(
        made, mlir.lower_fun(lambda *x, **given: program(**given).flat(*x), multiple_results=True)
    )
    ad.primitive_jvps[made] = lambda x, changes, **given: _moved(program(**given).traced(), x, changes)
    batching.fancy_primitive_batchers[made] = in_lanes
    return made


def _reverse(_: bool, nonzeros: Any, *leaves: Any, run: _Run, results: Any) -> Any:
    """Rule of reverse mode, see `nsjax.jaxtools.internals.reverse_rules`."""
    moving = run.moving(nonzeros)
    found = _program.bind(*leaves, program=run.ahead(moving))
    types = tuple(x.to_tangent_aval() for x in results)
    data = found[len(types) :]

    def along(data: Any, *changes: Any) -> list[Any]:
        some = [ad.instantiate_zeros(x) for x, yes in zip(changes, moving, strict=True) if yes]
        moves = iter(_line.bind(*data, *some, run=run, moving=moving, count=len(data), types=types))
        return [ad.Zero(x) if x.dtype == FLOAT0 else next(moves) for x in types]

    return found[: len(types)], [x.dtype != FLOAT0 for x in types], data, along


def _forward(leaves: Any, changes: Any, run: _Run, results: Any) -> Any:
    """Rule of forward mode. A derivative by kinds of steps takes the programs of reverse mode: its steps
    without an event go through a loop of their own, which begins when all values are known.
    """
    nonzeros = [not isinstance(x, ad.Zero) for x in changes]
    moving = run.moving(nonzeros)
    if run.by_kinds(moving):
        found, _, data, along = _reverse(False, nonzeros, *leaves, run=run, results=results)
        return found, along(data, *changes)
    some = [ad.instantiate_zeros(x) for x, yes in zip(changes, moving, strict=True) if yes]
    # operation by operation, so that a derivative of a scan or checkpoint finds values without the changes
    found = jaxpr_as_fun(run.forward(moving))(*leaves, *some)
    moves = iter(found[len(results) :])
    types = [x.to_tangent_aval() for x in results]
    return found[: len(results)], [ad.Zero(x) if x.dtype == FLOAT0 else next(moves) for x in types]


def _map_moves(operands: Any, changes: Any, **given: Any) -> Any:
    """The linear map and its derivative, which is the same map where the data do not move."""
    count = given["count"]
    if all(isinstance(x, ad.Zero) for x in changes[:count]):
        moves = map(ad.instantiate_zeros, changes[count:])
        return _line.bind(*operands, **given), _line.bind(*operands[:count], *moves, **given)
    return _moved(given["run"].linear(given["moving"])[1], operands, changes)


def _transposed(back: Any, *operands: Any, run: _Run, moving: Mask, count: int, types: Any) -> list[Any]:
    """Changes of the arguments from those of the results, by a kept program."""
    read = tuple(not isinstance(x, ad.Zero) for x in back)
    if not any(read):
        return [None] * len(operands)
    given = [x for x in back if not isinstance(x, ad.Zero)]
    return [None] * count + _program.bind(*operands[:count], *given, program=run.back(moving, read))


_run = _operation("run", lambda run, results: run.plain)
_run.def_abstract_eval(lambda *_, run, results: results)
_program = _operation("program", lambda program: program)
_program.def_abstract_eval(lambda *_, program: program.results)
_line = _operation("derivative", lambda run, moving, **_: run.along(moving))
_line.def_abstract_eval(lambda *_, types, **__: [x for x in types if x.dtype != FLOAT0])
ad.primitive_jvps[_line] = _map_moves
ad.primitive_transposes[_line] = _transposed
_rules = reverse_rules()
if _rules is not None:
    _rules[_run] = _reverse
    ad.primitive_jvps[_run] = _forward
