"""The site of the documentation: which name stands where, its sources, and the command that builds it."""

from nsjax.documentation.pages import PAGES, Entry, Page, entries, module_names
from nsjax.documentation.project import write_project
from nsjax.documentation.site import build

__all__ = ["PAGES", "Entry", "Page", "build", "entries", "module_names", "write_project"]
