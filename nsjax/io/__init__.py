"""Saved runs: one file holds the problem, the scheme, the rows, and what continues the run."""

from nsjax.io.archive import READABLE, SCHEMA, Saved, header, load, save
from nsjax.io.files import check_writable, replacing

__all__ = ["READABLE", "SCHEMA", "Saved", "check_writable", "header", "load", "replacing", "save"]
