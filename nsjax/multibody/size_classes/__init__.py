"""Mechanisms as data: programs that belong to sizes and kinds of parts, not to one mechanism."""
