"""Saved runs: one file holds the problem, the rows, and what continues the run."""

from nsjax.io.archive import SCHEMA, header, load, save
from nsjax.io.files import check_writable, replacing

__all__ = ["SCHEMA", "check_writable", "header", "load", "replacing", "save"]
