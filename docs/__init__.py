"""The site of the documentation: settings of Sphinx, what the reference shows, and the builder."""

from docs.pages import Entry, entries, module_names, reached
from docs.site import build

__all__ = ["Entry", "build", "entries", "module_names", "reached"]
