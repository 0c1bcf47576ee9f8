"""Views of a `Trajectory`: in words, as a figure, as tables of other packages."""

from __future__ import annotations

import csv
import importlib
import io
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from nsjax.core.errors import InputError, optional
from nsjax.core.scheme import QUANTITIES
from nsjax.core.system import Problem, State, System
from nsjax.core.system_parts import PICTURES, beside
from nsjax.part_rows import contact_groups
from nsjax.report import report
from nsjax.sensors import NamedQuantity, find, part_and_singular
from nsjax.types import as_html, is_traced, record_repr

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIMENSIONS = {"nc": "contact", "nt": "tangent", "nb": "constraint", "nd": "dry_friction"}
"""Names of the axes of row quantities, by their sizes in `System`."""

ENTRIES = {"axis": ("x", "y", "z"), "way": ("n", "t1", "t2")}
"""Names of the components of vectors, and of the forces of contacts: normal, and along the tangents."""

PART = "contact of "
"""Begins the name of the axis of all contacts of a part."""

FILES = "nsjax.io"
"""Package of files, which stands above this module and is imported where it is needed."""


class Views:
    """The methods of `Trajectory` that show it."""

    def __repr__(self: Any) -> str:
        if is_traced((self.t, self.q)) or not hasattr(self.t, "shape"):
            return record_repr(self)
        name, rows = self.system.name or "without a name", self.t.shape[-1] if self.t.shape else 0
        if self.t.ndim != 1:
            return f"Trajectory({name}, batch {self.t.shape[:-1]}, {rows} rows each)"
        ends = f"t = {self.t[0]:g} to {self.t[-1]:g} s" if rows else "none"
        return f"Trajectory({name}, {rows} rows, {ends}, status {int(self.status)})"

    def __str__(self: Any) -> str:
        if is_traced((self.t, self.q)) or np.ndim(self.t) != 1 or not len(self.t):
            return repr(self)
        return report(self)

    def _repr_html_(self: Any) -> str:
        if is_traced((self.t, self.q)) or np.ndim(self.t) != 1 or not len(self.t):
            return as_html(self)
        finite = np.flatnonzero(np.all(np.isfinite(self.q), axis=1))
        last = int(finite[-1]) if len(finite) else 0
        state = State(t=self.t[last], q=self.q[last], v=self.v[last])
        names = escape(", ".join(self.columns))
        listed = f"<details><summary>{len(self.columns)} columns</summary>{names}</details>"
        return beside(as_html(self) + listed, Problem(system=self.system, params=self.params, state=state))

    def plot(self: Any, *names: str, x: str | None = None) -> Figure:
        """Figure of the quantities ``traj[name]`` over time, with one panel for each unit and vectors by
        their components (``"pin.force"``); without names the overview of `nsjax.plot.overview`.

        Args:
            names: of the quantities.
            x: quantity of the horizontal axis: ``traj.plot("vy", x="y")`` is a phase portrait,
                ``traj.plot("pin.force", x="crank.angle")`` a force over the angle of a crank; None: time.

        Raises:
            InputError: if matplotlib is missing, for a batch, and for an x without names.
            KeyError: for an unknown name.

        Example:
            >>> import nsjax
            >>> from nsjax import models, schemes
            >>> traj = nsjax.simulate(models.bouncing_ball(), schemes.moreau(), dt=1e-3, steps=500)
            >>> [axes.get_ylabel() for axes in traj.plot("y", "energy").axes]
            ['$y$ (m)', 'energy (J)']
        """
        pictures = importlib.import_module(PICTURES)
        if names:
            return pictures.named(self, names, x)
        if x is not None:
            raise InputError(
                f"plot: x = {x!r} without quantities over it; name them: plot('energy', x=...)"
            )
        state = State(t=self.t[..., 0], q=self.q[..., 0, :], v=self.v[..., 0, :])
        return pictures.overview(Problem(system=self.system, params=self.params, state=state), self)

    def to_xarray(self: Any, *more: Any) -> Any:
        """The run as an `xarray.Dataset` over ``time``: every column by its label, with its unit, energies,
        observables, forces, torques, powers and coordinates of joints and loads (``"pin.force"`` over
        ``axis``), and the row quantities that were saved over ``contact``, ``tangent``, ``constraint``,
        ``dry_friction``. Columns without labels are ``q`` and ``v`` over ``coordinate`` and ``velocity``.

        Args:
            more: further quantities of ``traj[name]``, and sensors (`nsjax.multibody.sensor`). Forces of
                contacts have the axis ``way`` (n, t1, t2), those of a part (``"guide.forces"``) the axis
                ``contact of guide`` before it.

        Raises:
            InputError: if xarray is missing, or for a batch.
            KeyError: for an unknown name.
        """
        xarray = optional("to_xarray needs", "data", "xarray")
        data = {}
        coords: dict[str, Any] = {"time": ("time", np.asarray(self.t), {"units": "s"})}
        for name, (dims, values, unit) in columns(self, more).items():
            data[name] = (dims, values, {"units": unit} if unit else {})
            for dim, size in zip(dims[1:], values.shape[1:], strict=True):
                if entries := _entries(self.system, dim):
                    coords[dim] = list(entries[:size])
        attributes = {"model": self.system.name, "scheme": self.carry.scheme, "status": int(self.status)}
        return xarray.Dataset(data, coords=coords, attrs=attributes)

    def to_pandas(self: Any, *more: Any) -> Any:
        """The run as a `pandas.DataFrame` with the index ``time``: the columns of `to_xarray`, those over
        contacts as ``"gap[ball on table]"``, components as ``"pin.force[x]"``. Their units are
        ``table.attrs["units"]``.

        Raises:
            InputError: if pandas is missing, or for a batch.
            KeyError: for an unknown name.
        """
        pandas = optional("to_pandas needs", "data", "pandas")
        table, units = _flat(self, more)
        made = pandas.DataFrame(table, index=pandas.Index(np.asarray(self.t), name="time"))
        made.attrs["units"] = units
        return made

    def to_csv(self: Any, path: Any, *more: Any) -> None:
        """Writes the columns of `to_pandas` as a CSV file, whole or not at all; its first line has the
        names with their units, ``time [s]``, ``pin.force[x] [N]``.

        Raises:
            InputError: for a path that cannot be written, and for a batch.
            KeyError: for an unknown name.
        """
        table, units = _flat(self, more)
        heads = ["time [s]", *(f"{k} [{units[k]}]" if units[k] else k for k in table)]
        text = io.StringIO(newline="")
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(heads)
        numbers = [x.tolist() for x in (np.asarray(self.t), *table.values())]
        rows.writerows(zip(*numbers, strict=True))
        with importlib.import_module(FILES).replacing(path) as file:
            file.write(text.getvalue().encode())


def _flat(traj: Any, more: tuple[Any, ...]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Every number of every column by name, and its unit."""
    table: dict[str, np.ndarray] = {}
    units: dict[str, str] = {}
    for name, (dims, values, unit) in columns(traj, more).items():
        for place in np.ndindex(values.shape[1:]):
            pairs = zip(dims[1:], place, strict=True)
            words = [(_entries(traj.system, dim) or range(k + 1))[k] for dim, k in pairs]
            key = f"{name}[{', '.join(map(str, words))}]" if words else name
            table[key], units[key] = values[(slice(None), *place)], unit
    return table, units


def columns(traj: Any, more: tuple[Any, ...] = ()) -> dict[str, tuple[tuple[str, ...], np.ndarray, str]]:
    """Dimensions, values and unit of every column by name, rows first; with those of ``more`` names and
    sensors. Raises `InputError` for a batch.
    """
    if np.ndim(traj.t) != 1:
        raise InputError(
            f"t has shape {np.shape(traj.t)}; take one run of the batch, jax.tree.map(lambda x: x[k], traj)"
        )
    labels = traj.system.labels
    found: dict[str, tuple[tuple[str, ...], np.ndarray, str]] = {}
    for entries, values, whole, dim in (
        (labels.q, traj.q, "q", "coordinate"), (labels.v, traj.v, "v", "velocity"),
    ):  # fmt: skip
        if not entries:
            found[whole] = ("time", dim), np.asarray(values), ""
        for k, name in enumerate(entry.split(" [")[0] for entry in entries):
            found[name] = ("time",), np.asarray(values)[:, k], traj.unit(name)
    for name, made in traj._derived().items():
        inner = (f"{name}.{i}" for i in range(np.ndim(made) - 1))
        found[name] = ("time", *inner), np.asarray(made), traj.unit(name)
    for name, known in QUANTITIES.items():
        row = getattr(traj, name)
        if row is not None:
            dims = ("time", *(DIMENSIONS[axis] for axis in known.axes))
            found[name] = dims, np.asarray(row), known.unit
    asked = {str(x): np.asarray(traj.sensor(x)) for x in more}
    units = {str(x): traj.unit(x) for x in more}
    for name, values in {**traj._of_parts(), **asked}.items():
        dims = "time", *_inner(find(traj.system, name), name, values)
        found[name] = dims, values, units.get(name) or traj.unit(name)
    return found


def _entries(system: System, dim: str) -> tuple[str, ...]:
    """Names of the entries along an axis of a column; none: they are numbered."""
    known, labels = ENTRIES | {"dry_friction": system.labels.dry_frictions}, system.labels.contacts
    known |= {"contact": labels, "constraint": system.labels.constraints}
    if dim.startswith(PART):
        return tuple(labels[k] for k in contact_groups(labels)[dim.removeprefix(PART)])
    return known.get(dim, ())


def _inner(known: NamedQuantity | None, name: str, values: np.ndarray) -> tuple[str, ...]:
    """Names of the axes of a quantity after the time."""
    if known is not None and known.kind == "contact":
        part = (PART + part_and_singular(name)[0],) if known.contacts else ()
        return (*part, *("way" for _ in known.axes[: values.ndim - 1 - len(part)]))
    numbered = tuple(f"{name}.{i}" for i in range(values.ndim - 1))
    return ("axis",) if values.shape[1:] in ((2,), (3,)) else numbered
