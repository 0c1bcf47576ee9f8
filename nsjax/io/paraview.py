"""Runs as files for ParaView: temporal VTKHDF."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from nsjax.core import InputError, Problem
from nsjax.core.arguments import file_path
from nsjax.core.errors import optional
from nsjax.io.files import PathLike, check_writable, replacing
from nsjax.motion import Motion, MovedShape, motion
from nsjax.trajectory import Trajectory

VERTEX, POLY_LINE, TRIANGLE, POLYGON = 1, 4, 5, 7
"""VTK's numbers of cell types."""

CONTACTS = "contacts"
"""Name of the part with the contact points."""


def check_paraview(path: PathLike) -> None:
    """Refuses a file that could not be written; call it before the run that it is for.

    Args:
        path: path of the file, with the suffix ``.vtkhdf``.

    Raises:
        InputError: if h5py is missing, for another suffix, or a path that cannot be written.

    Example:
        >>> from nsjax.io import check_paraview
        >>> check_paraview("run.vtkhdf")
    """
    optional("to_paraview needs", "vtk", "h5py")
    if file_path(path).suffix != ".vtkhdf":
        raise InputError(f"{os.fspath(path)}: ParaView reads it as *.vtkhdf; end the name so")
    check_writable(path)


def to_paraview(problem: Problem, traj: Trajectory, path: PathLike, *, frames: int = 1000) -> None:
    """Writes the shapes of `nsjax.animate` as one unstructured grid over time, for ParaView 5.12 and later.

    The cell data ``part`` number the parts (the attribute ``names`` of this data set has their names). The
    point data ``force`` [N] are the contact forces, means over the time since the previous row; ParaView's
    filter *Glyph* draws them as arrows. The values that colour solids, ``equivalent stress`` [N/m^2], are
    point data as well. Points are in metres; those of plane models have ``z = 0``.

    Args:
        problem: problem of the run.
        traj: one run of it (not a batch).
        path: path of the file, ``*.vtkhdf``; it is written whole or not at all.
        frames: largest number of rows that are written, at even distances.

    Raises:
        InputError: if h5py is missing, for another suffix, a path that cannot be written, a system
            without shapes, a batch, or the run of another system.

    Limits: one quantity colours all meshes, zero elsewhere; the whole file is made in memory.

    Example:
        >>> import tempfile
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> ball = models.bouncing_ball()
        >>> traj = nsjax.simulate(ball, schemes.moreau(), dt=1e-3, steps=500)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     nsjax.to_paraview(ball, traj, f"{folder}/ball.vtkhdf")
    """
    check_paraview(path)
    import h5py

    seen = motion(problem, traj, frames=frames, who="to_paraview")
    grid = _Grid(seen)
    made = io.BytesIO()
    with h5py.File(made, "w") as file:
        _write(file.create_group("VTKHDF"), grid, seen.t)
    with replacing(path) as target:
        target.write(made.getvalue())


class _Grid:
    """Points (rows, n, 3), forces at the points, and cells, which are the same in all rows."""

    def __init__(self, seen: Motion) -> None:
        self.names: list[str] = []
        self.cells: list[tuple[int, list[int]]] = []
        self.part: list[int] = []
        self.points: list[np.ndarray] = []
        self.forces: list[np.ndarray] = []
        self.values: list[np.ndarray] = []
        self.quantity = next((x.quantity for x in seen.shapes if x.values is not None), "")
        self.count = 0
        for shape in seen.shapes:
            self._add_shape(shape)
        if seen.places is not None:
            there = np.isfinite(seen.places[0]).all(axis=1)
            cells = [(VERTEX, [k]) for k in range(int(there.sum()))]
            forces = None if seen.forces is None else seen.forces[:, there]
            self._add(CONTACTS, cells, seen.places[:, there], forces)
        wide = [np.pad(x, ((0, 0), (0, 0), (0, 3 - x.shape[2]))) for x in self.points]
        push = [np.pad(x, ((0, 0), (0, 0), (0, 3 - x.shape[2]))) for x in self.forces]
        self.whole, self.force = np.concatenate(wide, axis=1), np.concatenate(push, axis=1)
        self.value = np.concatenate(self.values, axis=1)

    def _add(
        self, name: str, cells: list[tuple[int, list[int]]], points: np.ndarray, forces: Any = None,
        values: Any = None,
    ) -> None:  # fmt: skip
        self.names.append(name)
        self.cells += [(kind, [self.count + k for k in corners]) for kind, corners in cells]
        self.part += [len(self.names) - 1] * len(cells)
        self.points.append(np.nan_to_num(points))
        self.forces.append(np.zeros(points.shape) if forces is None else forces)
        self.values.append(np.zeros(points.shape[:2]) if values is None else values)
        self.count += points.shape[1]

    def _add_shape(self, shape: MovedShape) -> None:
        name, kind, points = shape.name, shape.kind, shape.world
        there = np.isfinite(points[0]).all(axis=1)
        places = np.cumsum(there) - 1
        if kind == "mesh":
            cells = [(TRIANGLE, list(face)) for face in shape.faces]
            self._add(name, cells, points, values=shape.values if shape.quantity == self.quantity else None)
            return
        if kind == "dots":
            cells = [(VERTEX, [int(k)]) for k in places[there]]
        elif kind == "area":
            closed = np.array_equal(points[0, 0], points[0, -1])
            cells = [(POLYGON, places[there].tolist()[: -1 if closed else None])]
        else:  # a line, broken where a point is not a number
            runs = np.split(np.arange(len(there)), np.flatnonzero(~there))
            kept = [places[run[there[run]]].tolist() for run in runs]
            cells = [(POLY_LINE, run) for run in kept if len(run) > 1]
        self._add(name, cells, points[:, there])


def _plain(quantity: str) -> str:
    """Name of a quantity without its unit, because a slash in a name would make a group in the file."""
    return quantity.partition(" [")[0]


def _write(root: Any, grid: _Grid, t: np.ndarray) -> None:
    """Writes the data sets of the format."""
    rows, n = len(t), grid.count
    connectivity = np.concatenate([np.array(corners, np.int64) for _, corners in grid.cells])
    ends = np.cumsum([len(corners) for _, corners in grid.cells])
    # version of VTKHDF; later versions can read it
    root.attrs["Version"] = np.array((2, 0), np.int64)
    root.attrs.create("Type", np.bytes_("UnstructuredGrid"))
    root["NumberOfPoints"] = np.array([n], np.int64)
    root["NumberOfCells"] = np.array([len(grid.cells)], np.int64)
    root["NumberOfConnectivityIds"] = np.array([len(connectivity)], np.int64)
    root["Points"] = grid.whole.reshape(-1, 3)
    root["Connectivity"] = connectivity
    root["Offsets"] = np.concatenate([[0], ends]).astype(np.int64)
    root["Types"] = np.array([kind for kind, _ in grid.cells], np.uint8)
    root["PointData/force"] = grid.force.reshape(-1, 3)
    if grid.quantity:
        root[f"PointData/{_plain(grid.quantity)}"] = grid.value.reshape(-1)
    root["CellData/part"] = np.array(grid.part, np.int64)
    root["CellData/part"].attrs["names"] = "; ".join(grid.names)
    steps, none = root.create_group("Steps"), np.zeros(rows, np.int64)
    steps.attrs["NSteps"] = np.int64(rows)
    steps["Values"] = np.asarray(t, float)
    steps["PointOffsets"] = n * np.arange(rows, dtype=np.int64)
    steps["PointDataOffsets/force"] = n * np.arange(rows, dtype=np.int64)
    if grid.quantity:
        steps[f"PointDataOffsets/{_plain(grid.quantity)}"] = n * np.arange(rows, dtype=np.int64)
    steps["CellDataOffsets/part"] = none
    steps["NumberOfParts"] = none + 1
    steps["PartOffsets"] = none
    for name in ("CellOffsets", "ConnectivityIdOffsets"):  # the cells of the first row serve all
        steps[name] = none[:, None]
