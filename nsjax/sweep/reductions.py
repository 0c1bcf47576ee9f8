"""Reductions of the runs of a sweep to their results: folds over rows, or any function of a trajectory.

A fold receives the saved rows one by one inside the time loop, so the rows are never stored: a lane
needs the same memory for a million rows as for ten. A function of the `Trajectory` gets all rows of its
lane; on a CPU they exist for one lane at a time on each device.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.core.errors import InputError
from nsjax.core.scheme import ROWS
from nsjax.renamed import new_field
from nsjax.trajectory import Trajectory
from nsjax.types import Array, PyTree

COLUMNS = ("t", "q", "v", *ROWS)


class Fold:
    """A reduction row by row; derive a frozen dataclass from it.

    ``start``, then ``update`` with every saved row (the start of the run included), then ``finish``. Rows
    come as a `Trajectory` of one row. Called with a whole trajectory, a fold gives the same value.

    Equal folds must compare equal (frozen dataclasses do), else every sweep compiles again.

    Example:
        >>> import dataclasses
        >>> import jax.numpy as jnp
        >>> from nsjax import reductions
        >>> @dataclasses.dataclass(frozen=True)
        ... class Longest(reductions.Fold):  # longest run of rows without an impact
        ...     def start(self, row):
        ...         return jnp.asarray(0), jnp.asarray(0)
        ...
        ...     def update(self, kept, row):
        ...         now = jnp.where(row.impacts.any(), 0, kept[0] + 1)
        ...         return now, jnp.where(now > kept[1], now, kept[1])
        ...
        ...     def finish(self, kept):
        ...         return kept[1]
    """

    def start(self, row: Trajectory) -> PyTree:
        """The accumulator before any row; ``row`` holds zeros and serves for its shapes only."""
        raise NotImplementedError

    def update(self, kept: PyTree, row: Trajectory) -> PyTree:
        """The accumulator after one more row."""
        raise NotImplementedError

    def finish(self, kept: PyTree) -> PyTree:
        """The result of the lane from the last accumulator."""
        return kept

    def __call__(self, traj: Trajectory) -> PyTree:
        """The fold over the saved rows of a trajectory."""
        columns: dict[str, Any] = {name: getattr(traj, name) for name in COLUMNS}
        first: dict[str, Any] = jax.tree.map(lambda x: jnp.zeros_like(x[:1]), columns)

        def step(kept: PyTree, row: dict[str, Any]) -> tuple[PyTree, None]:
            one: dict[str, Any] = jax.tree.map(lambda x: x[None], row)
            return self.update(kept, dataclasses.replace(traj, **one)), None

        kept, _ = lax.scan(step, self.start(dataclasses.replace(traj, **first)), columns)
        return self.finish(kept)


def quantity(traj: Trajectory, name: str) -> Array:
    """A column (rows, ...) of a trajectory by its name, in the unit of the quantity: a row quantity
    (``"q"``, ``"impacts"``), a label (``"theta1"``), an observable of the model or an energy.

    Args:
        traj: rows of a run.
        name: name of the quantity.

    Raises:
        InputError: for an unknown name, with the nearest known one.

    Example:
        >>> from nsjax import reductions
        >>> ends = lambda traj: reductions.quantity(traj, "energy")[[0, -1]]  # for ``sweep(reduce=ends)``
    """
    name = new_field("RowQuantities", name)
    if name in COLUMNS:
        found = getattr(traj, name)
        if found is None:
            raise InputError(f"reduce: {name} is not saved; run simulate with save=None")
        return jnp.asarray(found)
    try:
        return jnp.asarray(traj[name])
    except KeyError as error:
        raise InputError(f"reduce: {error.args[0]}, {', '.join(COLUMNS)}") from None


@dataclasses.dataclass(frozen=True)
class _Named(Fold):
    """A fold of one quantity."""

    name: str

    def now(self, row: Trajectory) -> Array:
        return quantity(row, self.name)[0]


@dataclasses.dataclass(frozen=True)
class _Maximum(_Named):
    sign: float = 1.0

    def start(self, row: Trajectory) -> Array:
        return jnp.full_like(jnp.asarray(self.now(row), float), -self.sign * jnp.inf)

    def update(self, kept: Array, row: Trajectory) -> Array:
        now = self.now(row)
        # once nan, the accumulator stays nan
        return jnp.where(jnp.isnan(kept) | (self.sign * kept >= self.sign * now), kept, now)


@dataclasses.dataclass(frozen=True)
class _Total(_Named):
    def start(self, row: Trajectory) -> Array:
        return jnp.zeros_like(self.now(row))

    def update(self, kept: Array, row: Trajectory) -> Array:
        return kept + self.now(row)


@dataclasses.dataclass(frozen=True)
class _Mean(_Named):
    def start(self, row: Trajectory) -> tuple[Array, Array]:
        return jnp.zeros_like(jnp.asarray(self.now(row), float)), jnp.zeros(())

    def update(self, kept: tuple[Array, Array], row: Trajectory) -> tuple[Array, Array]:
        return kept[0] + self.now(row), kept[1] + 1.0

    def finish(self, kept: tuple[Array, Array]) -> Array:
        return kept[0] / kept[1]


@dataclasses.dataclass(frozen=True)
class _Final(_Named):
    def start(self, row: Trajectory) -> Array:
        return jnp.zeros_like(self.now(row))

    def update(self, kept: Array, row: Trajectory) -> Array:
        return self.now(row)


@dataclasses.dataclass(frozen=True)
class _Initial(_Named):
    def start(self, row: Trajectory) -> tuple[Array, Array]:
        return jnp.zeros_like(self.now(row)), jnp.asarray(True)

    def update(self, kept: tuple[Array, Array], row: Trajectory) -> tuple[Array, Array]:
        return jnp.where(kept[1], self.now(row), kept[0]), jnp.asarray(False)

    def finish(self, kept: tuple[Array, Array]) -> Array:
        return kept[0]


@dataclasses.dataclass(frozen=True)
class _FoldGroup(Fold):
    """Folds side by side, one named value each."""

    parts: tuple[tuple[str, Fold], ...]

    def start(self, row: Trajectory) -> PyTree:
        return {name: part.start(row) for name, part in self.parts}

    def update(self, kept: PyTree, row: Trajectory) -> PyTree:
        return {name: part.update(kept[name], row) for name, part in self.parts}

    def finish(self, kept: PyTree) -> PyTree:
        return {name: part.finish(kept[name]) for name, part in self.parts}


@dataclasses.dataclass(frozen=True)
class _Functions:
    """Functions of the trajectory side by side, folds among them."""

    parts: tuple[tuple[str, Callable[[Trajectory], PyTree]], ...]

    def __call__(self, traj: Trajectory) -> PyTree:
        return {name: part(traj) for name, part in self.parts}


@dataclasses.dataclass(frozen=True)
class _Samples:
    """Saved rows of a quantity from row ``first`` on."""

    name: str
    first: int

    def __call__(self, traj: Trajectory) -> Array:
        return quantity(traj, self.name)[self.first :]


def final(name: str) -> Fold:
    """The quantity ``name`` (see `quantity`) at the end of the run.

    Example:
        >>> from nsjax import reductions
        >>> reduce = {"end": reductions.final("q"), "start": reductions.initial("q")}
    """
    return _Final(name)


def initial(name: str) -> Fold:
    """The quantity ``name`` (see `quantity`) at the start of the run.

    Example:
        >>> from nsjax import reductions
        >>> reductions.initial("energy").name
        'energy'
    """
    return _Initial(name)


def maximum(name: str) -> Fold:
    """Largest value among the saved rows, for each entry of the quantity ``name`` (see `quantity`).

    Example:
        >>> from nsjax import reductions
        >>> reductions.maximum("force_normal").name
        'force_normal'
    """
    return _Maximum(name)


def minimum(name: str) -> Fold:
    """Least value among the saved rows, for each entry of the quantity ``name`` (see `quantity`);
    ``"gap_min"`` covers the smallest gap of every step, however few rows are saved.

    Example:
        >>> from nsjax import reductions
        >>> reductions.minimum("gap_min").name
        'gap_min'
    """
    return _Maximum(name, sign=-1.0)


def mean(name: str) -> Fold:
    """Mean of the quantity ``name`` (see `quantity`) over the saved rows, the start included.

    Example:
        >>> from nsjax import reductions
        >>> reductions.mean("kinetic").name
        'kinetic'
    """
    return _Mean(name)


def total(name: str) -> Fold:
    """Sum of the quantity ``name`` (see `quantity`) over the saved rows, of ``"impacts"`` their number.

    Example:
        >>> from nsjax import reductions
        >>> reductions.total("impacts").name
        'impacts'
    """
    return _Total(name)


def samples(name: str, first: int = 0) -> Callable[[Trajectory], Array]:
    """The quantity ``name`` (see `quantity`) in the saved rows from ``first`` on (-60: the last sixty).

    Example:
        >>> from nsjax import reductions
        >>> reductions.samples("x", -60).first
        -60
    """
    return _Samples(name, first)


last: Fold = _FoldGroup(tuple((name, final(name)) for name in ("t", "q", "v")))
"""Time, position and velocity at the end of the run: ``{"t", "q", "v"}``."""

Reduction = Fold | Callable[[Trajectory], PyTree]


def freeze(reduce: Any) -> Reduction:
    """The given reduction in a form that can be hashed.

    Args:
        reduce: a fold, a function of the trajectory, or a mapping of names to these.

    Raises:
        InputError: for anything else, and for functions that cannot be hashed.

    Example:
        >>> from nsjax import reductions
        >>> kept = reductions.freeze({"end": reductions.last, "hits": reductions.total("impacts")})
        >>> isinstance(kept, reductions.Fold)
        True
    """
    if isinstance(reduce, Mapping) and reduce:
        parts = tuple((str(name), freeze(part)) for name, part in reduce.items())
        folds = tuple((name, part) for name, part in parts if isinstance(part, Fold))
        return _FoldGroup(folds) if len(folds) == len(parts) else _Functions(parts)
    if not callable(reduce) or isinstance(reduce, type):
        raise InputError(
            f"sweep: reduce = {reduce!r}; give a fold such as nsjax.reductions.last, a function of the "
            "trajectory, or a mapping of names to them"
        )
    try:
        hash(reduce)
    except TypeError:
        raise InputError(
            f"sweep: reduce = {reduce!r} cannot be hashed; derive a frozen dataclass"
        ) from None
    return reduce
