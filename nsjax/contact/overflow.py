"""Runs in which active contacts find places, whose programs hold no solver for more.

A step gathers its active contacts in a few places (`nsjax.contact.compact`). Where they are more, all rows
are solved together: with a library's factorisation from some sixty rows on, which is called in few steps or
in none, and whose presence alone takes a time loop out of its one kernel. Microseconds a step by Moreau's
rule, with it and without, on one loaded core: a planar hopper of seven bodies with 47 contacts 130 and 53,
one in flight 140 and 9, a cheetah with 85 contacts 140 and 63.

A run outside transformations therefore begins with a program without that solver. Where a step fails in it,
the rows since the last call are computed again, as all further ones, by the whole program, which is
compiled then.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

from nsjax.contact.compact import crowded, overflows
from nsjax.core.scheme import Scheme
from nsjax.core.system import System

OVERFLOWED: set[Any] = set()
"""Programs, with choices of their schemes, of which this process has seen more active contacts than places:
they begin with the whole program.
"""


def without_overflow(system: System, scheme: Scheme, closed: Any) -> Scheme | None:
    """The scheme that solves as many active contacts as there are places; None where it would not be
    faster, or would fail at once.

    Args:
        system: of the run.
        scheme: of the run.
        closed: contacts (nc,) bool that touch at its start.
    """
    if getattr(scheme.options, "few", None) is not False or jax.default_backend() != "cpu":
        return None
    step = system if system.chosen is None else system.chosen.system
    rough = step.nc - step.smooth
    if step.pairs is not None or step.islands or not overflows(rough, step.smooth, step.nt):
        return None
    if crowded(np.shape(closed)[0] - system.smooth, closed):
        return None
    return dataclasses.replace(scheme, options=dataclasses.replace(scheme.options, few=True))
