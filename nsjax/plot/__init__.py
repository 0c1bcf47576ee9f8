"""Figures of runs; matplotlib is imported when one is drawn."""

from nsjax.plot.identification import identification
from nsjax.plot.overview import named, overview
from nsjax.plot.style import check_format
from nsjax.views import PAINTERS

PAINTERS.update(overview=overview, named=named)

__all__ = ["check_format", "identification", "named", "overview"]
