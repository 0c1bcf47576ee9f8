"""One colour a scheme in all figures of the paper."""

from __future__ import annotations

COLOURS = {
    "Moreau": "0.25", "reference": "#1d7a4a", "unified": "#1f4e9c", "decoupled": "#c8501e",
    "gen-alpha 0.8": "#8a2f8f", "gen-alpha 0": "#c9a0cc", "gen-alpha 1": "#a8577e", "Bathe": "#7a8b2b",
    "Runge-Kutta 4": "#1f4e9c", "ED-alpha 0": "#6f9bd8", "HETS": "#d0a020",
}  # fmt: skip
