"""Schemes around another scheme: the time of an impact located inside the step."""
