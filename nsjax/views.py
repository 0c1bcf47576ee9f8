"""Views of a `Trajectory`: in words, as a figure, as tables of other packages."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from nsjax.core.checks import is_traced
from nsjax.core.errors import InputError
from nsjax.core.quantities import QUANTITIES
from nsjax.core.system import Problem, State
from nsjax.report import report
from nsjax.short import as_html, record_repr

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIMENSIONS = {"nc": "contact", "nt": "tangent", "nb": "constraint", "nd": "drag"}
"""Names of the axes of row quantities, by their sizes in `System`."""

PICTURES = "nsjax.plot"
"""Package of the drawing functions, which stands above this module and is imported at the first figure."""


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

    def _repr_html_(self) -> str:
        return as_html(self)

    def plot(self: Any, *names: str) -> Figure:
        """Figure of the quantities ``traj[name]`` over time, with one panel for each unit and vectors by
        their components (``"pin.force"``); without names the overview of `nsjax.plot.overview`.

        Raises:
            InputError: if matplotlib is missing, or for a batch.
            KeyError: for an unknown name.

        Example:
            >>> import nsjax
            >>> from nsjax import models, schemes
            >>> traj = nsjax.simulate(*models.bouncing_ball(), schemes.moreau(), dt=1e-3, steps=500)
            >>> [axes.get_ylabel() for axes in traj.plot("y", "energy").axes]
            ['$y$ (m)', 'energy (J)']
        """
        pictures = importlib.import_module(PICTURES)
        if names:
            figure: Figure = pictures.named(self, names)
            return figure
        state = State(t=self.t[..., 0], q=self.q[..., 0, :], v=self.v[..., 0, :])
        whole: Figure = pictures.overview(
            Problem(system=self.system, params=self.params, state=state), self
        )
        return whole

    def to_xarray(self: Any) -> Any:
        """The run as an `xarray.Dataset` over ``time``: every column by its label, with its unit, energies,
        observables, and the row quantities that were saved over ``contact``, ``tangent``, ``constraint``,
        ``drag``. Columns without labels are ``q`` and ``v`` over ``coordinate`` and ``velocity``.

        Raises:
            InputError: if xarray is missing, or for a batch.
        """
        try:
            import xarray
        except ImportError:
            raise InputError("to_xarray needs xarray; install it with: pip install 'nsjax[data]'") from None
        data = {}
        for name, (dims, values, unit) in columns(self).items():
            data[name] = (dims, values, {"units": unit} if unit else {})
        labels = self.system.labels
        coords: dict[str, Any] = {"time": ("time", np.asarray(self.t), {"units": "s"})}
        coords |= {"contact": list(labels.contacts)} if labels.contacts else {}
        coords |= {"constraint": list(labels.constraints)} if labels.constraints else {}
        attributes = {"model": self.system.name, "scheme": self.carry.scheme, "status": int(self.status)}
        return xarray.Dataset(data, coords=coords, attrs=attributes)

    def to_pandas(self: Any) -> Any:
        """The run as a `pandas.DataFrame` with the index ``time``: the columns of `to_xarray`, those over
        contacts as ``"gap[ball on table]"``.

        Raises:
            InputError: if pandas is missing, or for a batch.
        """
        try:
            import pandas  # type: ignore[import-untyped]
        except ImportError:
            raise InputError("to_pandas needs pandas; install it with: pip install 'nsjax[data]'") from None
        labels = self.system.labels
        names = {"contact": labels.contacts, "constraint": labels.constraints, "drag": labels.drags}
        table: dict[str, np.ndarray] = {}
        for name, (dims, values, _) in columns(self).items():
            for place in np.ndindex(values.shape[1:]):
                words = [
                    names[dim][k] if names.get(dim) else str(k)
                    for dim, k in zip(dims[1:], place, strict=True)
                ]
                table[f"{name}[{', '.join(words)}]" if words else name] = values[(slice(None), *place)]
        return pandas.DataFrame(table, index=pandas.Index(np.asarray(self.t), name="time"))


def columns(traj: Any) -> dict[str, tuple[tuple[str, ...], np.ndarray, str]]:
    """Dimensions, values and unit of every column by name, rows first.

    Raises:
        InputError: for a batch.
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
    return found
