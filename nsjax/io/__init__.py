"""Saved runs: one file holds the problem, the scheme, the rows, and the data to continue the run."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.io.archive import Saved, header, load, save
    from nsjax.io.driver import PERIOD, Stopped, resume, simulate_to_file
    from nsjax.io.files import READABLE, SCHEMA, check_writable, replacing
    from nsjax.io.paraview import check_paraview, to_paraview
    from nsjax.io.program import Program, export_program, load_program

__all__ = [
    "PERIOD", "READABLE", "SCHEMA", "Program", "Saved", "Stopped", "check_paraview", "check_writable",
    "export_program", "header", "load", "load_program", "replacing", "resume", "save", "simulate_to_file",
    "to_paraview",
]  # fmt: skip

lazily(__name__)
