"""The release, for whoever must not import the whole package."""

__version__ = "0.2.0"
"""Of this release."""
