"""The compiled time loop of a run, to be looked at."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import Problem
from nsjax.loop import LoopProgram, begin_run
from nsjax.simulate import _advance, _chunk_rows
from nsjax.trajectory import ROWS

BLOCKERS = re.compile(r"custom_call_target|\b(?:scatter|sort|dot)\(")
"""What the compiler does not put into one kernel: LAPACK, scatters, sorts, library products."""


def loop_text(problem: Problem, scheme: Any, dt: float) -> str:
    """Text of the compiled loop, of the program that a run would take."""
    scheme, problem = jax.tree.map(lambda x: jnp.asarray(x, float), (scheme, problem))
    program = LoopProgram(system=problem.system, keep=ROWS, events=4)
    step = jnp.asarray(dt, float)
    start = begin_run(program, scheme, problem.params, problem.state, step, None)
    counts = np.zeros(_chunk_rows(problem.system), int)  # as in a run: compiled already
    return str(_advance.lower(program, scheme, problem.params, start, step, counts).compile().as_text())


def is_one_kernel(text: str) -> bool:
    """Whether the loop is called as a whole."""
    return 'xla_cpu_small_call="true"' in text and " while(" not in text[text.index("ENTRY") :]
