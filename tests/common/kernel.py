"""The compiled time loop of a run, to be looked at."""

import re
from typing import Any

import numpy as np

from nsjax import Problem
from nsjax.jaxtools.compilation import EMITTERS, unoptimised
from nsjax.simulate import _advance, _chunk_rows, checked

BLOCKERS = re.compile(r"custom_call_target|__ynn_fusion|\b(?:scatter|sort|dot)\(")
"""What the compiler does not put into one kernel: LAPACK, scatters, sorts, library products and sums."""

USERS = dict.fromkeys({EMITTERS} & unoptimised().keys(), True)
"""Option of the programs of users that quick tests leave out; what becomes a kernel depends on it."""


def loop_text(problem: Problem, scheme: Any, dt: float) -> str:
    """Text of the compiled loop of a run, with the kernels that users' programs have."""
    call = checked(
        *problem, scheme, dt=dt, steps=1, time=None, every=1, save=None, gradient=scheme.gradient, events=4,
        notes=False, carry=None, progress=None,
    )  # fmt: skip
    counts = np.zeros(_chunk_rows(problem.system), int)
    made = _advance.lower(call.program, call.scheme, call.params, call.run, call.dt, counts)
    return str(made.compile(compiler_options=USERS).as_text())


def is_one_kernel(text: str) -> bool:
    """Whether the loop is called as a whole."""
    return 'xla_cpu_small_call="true"' in text and " while(" not in text[text.index("ENTRY") :]
