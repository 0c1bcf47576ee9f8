"""The site of the documentation: guide, reference, settings of Sphinx, and its builder."""

from nsjax.documentation.pages import Entry, entries, module_names, reached
from nsjax.documentation.site import build

__all__ = ["Entry", "build", "entries", "module_names", "reached"]
