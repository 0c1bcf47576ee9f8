"""Files for ParaView: as the format wants them, and as VTK itself reads them."""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import pytest

import nsjax
from nsjax import InputError, models
from nsjax.motion import motion
from tests.plot.coasting import coasting, stretched

h5py = pytest.importorskip("h5py", reason="files for ParaView need h5py (extra vtk)")

CRANK = models.slider_crank()


@pytest.fixture(scope="module")
def crank():
    return coasting(CRANK, rows=5, step=1e-3, push=2e-3)


@pytest.fixture(scope="module")
def written(crank, tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("paraview") / "run.vtkhdf"
    nsjax.to_paraview(CRANK, crank, path)
    return path


def test_data_sets_fit_each_other(written: pathlib.Path, crank) -> None:
    with h5py.File(written) as file:
        root = file["VTKHDF"]
        assert root.attrs["Type"] == b"UnstructuredGrid"
        n = int(root["NumberOfPoints"][0])
        assert root["Points"].shape == (5 * n, 3)
        assert root["Connectivity"][:].max() == n - 1
        assert root["Offsets"][-1] == root["NumberOfConnectivityIds"][0]
        assert len(root["Types"]) == len(root["CellData/part"]) == root["NumberOfCells"][0]
        np.testing.assert_array_equal(root["Steps/Values"], crank.t)
        names = root["CellData/part"].attrs["names"].split("; ")
    assert names == ["lower wall", "upper wall", "crank", "rod", "slider", "joints", "contacts"]


def test_vtk_reads_the_motion(written: pathlib.Path, crank) -> None:
    """The pin, forces and times, by VTK's own reader."""
    vtk = pytest.importorskip("vtk", reason="vtk is 140 MB and in no extra; run by hand")
    from vtk.util.numpy_support import vtk_to_numpy

    reader = vtk.vtkHDFReader()
    reader.SetFileName(str(written))
    reader.UpdateInformation()
    found = reader.GetOutputInformation(0).Get(vtk.vtkStreamingDemandDrivenPipeline.TIME_STEPS())
    np.testing.assert_allclose(found, crank.t, rtol=1e-12)
    seen = motion(CRANK, crank)
    for row, t in enumerate(crank.t):
        reader.UpdateTimeStep(float(t))
        grid = reader.GetOutput()
        points = vtk_to_numpy(grid.GetPoints().GetData())
        part = vtk_to_numpy(grid.GetCellData().GetArray("part"))
        crank_cell = grid.GetCell(int(np.flatnonzero(part == 2)[0]))
        assert crank_cell.GetCellType() == vtk.VTK_POLY_LINE
        pin = points[crank_cell.GetPointId(1)]
        angle = crank.q[row, 0]
        np.testing.assert_allclose(pin, 0.153 * np.array([np.cos(angle), np.sin(angle), 0.0]), atol=1e-12)
        force = vtk_to_numpy(grid.GetPointData().GetArray("force"))[-4:]
        np.testing.assert_allclose(force[:, :2], seen.forces[row], atol=1e-12)


def test_broken_lines_meshes_and_limits_are_written(tmp_path: pathlib.Path) -> None:
    cube = models.flexible_cube(elements=2)
    path = tmp_path / "cube.vtkhdf"
    nsjax.to_paraview(cube, coasting(stretched(cube, 50.0), rows=3), path, frames=2)
    with h5py.File(path) as file:
        root = file["VTKHDF"]
        kinds = np.bincount(root["Types"][:], minlength=8)
        assert root["Steps"].attrs["NSteps"] == 2
        assert np.isfinite(root["Points"][:]).all()
        stress = root["PointData/equivalent stress"][:].reshape(2, -1)
        offsets = root["Steps/PointDataOffsets/equivalent stress"][:]
    assert offsets.tolist() == [0, stress.shape[1]]
    # four points of the plane, then 26 of the surface; a tenth longer, 9.04 N/m^2 (test_animation.py)
    np.testing.assert_allclose(stress[1, 4:30], 9.037, atol=0.001)
    assert not np.delete(stress[1], np.arange(4, 30)).any()
    # nine contacts; edges of four faces, four lines each; 48 triangles of the surface and 2 of the plane
    assert (kinds[1], kinds[4], kinds[5]) == (9, 16, 50)


def test_what_cannot_be_written_is_refused(crank, tmp_path: pathlib.Path, monkeypatch) -> None:
    with pytest.raises(InputError, match=r"reads it as \*\.vtkhdf"):
        nsjax.to_paraview(CRANK, crank, tmp_path / "run.vtk")
    with pytest.raises(InputError, match="create it first"):
        nsjax.to_paraview(CRANK, crank, tmp_path / "none" / "run.vtkhdf")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match="pip install"):
        nsjax.to_paraview(CRANK, crank, tmp_path / "run.vtkhdf")
