"""Worked examples of extending the package."""
