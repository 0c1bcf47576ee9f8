"""The files computed by the other program."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="session")
def recorded(reference_data):
    """``recorded(name)``: rows of a file of ``data/trajectories``; column 0 is the time."""
    folder = reference_data / "trajectories"
    if not folder.is_dir():
        pytest.skip(f"no trajectories in {reference_data}; set NSJAX_DATA to the folder above them")

    def load(name: str) -> np.ndarray:
        with np.load(folder / f"{name}.npz") as file:
            return file["data"]

    return load
