"""The version of the package, which can be imported without the rest of it."""

__version__ = "0.2.0"
"""Version of this release."""
