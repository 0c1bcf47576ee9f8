"""Parts from which you make a time-stepping scheme of your own; no other module is needed.

Two frameworks do the work that is the same for all schemes. A scheme that fits neither is a `Scheme` made
directly: a record of three pure functions.

*A base scheme between impulses* (`mixed_scheme`): you write a function
``(coef, state, memory, dt, run) -> BaseEnd``. It predicts, describes its implicit stages as affine maps of
the velocity increments (`single`, `Maps`), lets ``run`` solve them, and returns the end of the step. The
framework adds contact and constraint forces, impulses at impacts, accelerations after a change of contacts,
status, and derivatives of the motion. Worked example: ``experiments/examples/rho_infinity_bathe.py``.

*A step whose contact forces are all impulses* (`impulse_scheme`): you write ``(run) -> Stepped``. Its
equations are `FrozenRowEquations` with the scheme's own ``residual`` (momentum balance) and ``rates``
(row velocities in the contact laws); `ImpulseRun.solve` solves them. The framework adds the decision
which contacts take part, the contact solver, events, output and status. Worked example:
``experiments/examples/schatzman_paoli.py``.

A step that is linear in its velocities needs no equations. `forced_jump` solves it, from mass and force
(`Balance`, `StepForces`) and the rows at one `SystemState`, with `SolverSettings`. `velocity_jump` does the
same where rows and responses are `Formed` already. Moreau's rule, the theta-method and both schemes of
Gear, Gupta and Leimkuhler are written in this way.

A `Step` is one value with everything a step depends on: scheme, system, parameters, carry, step size.
`ImpulseRun` is a `Step`, too.

Define the functions of a scheme at module level: compiled programs are kept under them as a key.

Example:
    >>> from nsjax.schemes.building import BaseEnd, Memory, State, Tolerances, mixed_scheme, record, single
    >>> @record()
    ... class Numbers:
    ...     tolerances: Tolerances = Tolerances()
    >>> def implicit_euler(coef, state, memory, dt, run):
    ...     a = memory.a
    ...     stage = single(
    ...         anchor=state.q, xi=dt * (state.v + dt * a), v=state.v + dt * a, a=a, cq=dt, ca=1 / dt,
    ...         t=state.t + dt, dt=dt,
    ...     )
    ...     ((_, q, v, a),), (impulse,) = run(stage)
    ...     return BaseEnd(q=q, v=v, a=a, algorithmic=a, force=impulse / dt, impulse=impulse)
    >>> scheme = mixed_scheme("implicit_euler", implicit_euler, Numbers())
    >>> import nsjax
    >>> int(nsjax.simulate(nsjax.models.bouncing_ball(), scheme, dt=1e-2, time=1.0).impacts.sum())
    1
"""

from nsjax.contact import SolverSettings, StepForces, forced_jump, velocity_jump
from nsjax.contact.events import Criteria
from nsjax.contact.sensitivity import Stepped
from nsjax.core.errors import InputError
from nsjax.core.operators import momentum
from nsjax.core.scheme import Carry, Output, Scheme, Traits
from nsjax.core.step import Balance, Formed, Step, SystemState
from nsjax.core.system import State, System
from nsjax.renamed import old_names
from nsjax.schemes.impulses.impulse_scheme import ImpulseCoefficients, impulse_scheme
from nsjax.schemes.impulses.impulse_step import FrozenRowEquations, ImpulseRun, StepData
from nsjax.schemes.mixed.base_step import BaseEnd, Memory
from nsjax.schemes.mixed.framework import Tolerances, mixed_scheme
from nsjax.schemes.mixed.stages import Maps, single
from nsjax.types import Array, record

__all__ = [
    "Array", "Balance", "BaseEnd", "Carry", "Criteria", "Formed", "FrozenRowEquations",
    "ImpulseCoefficients", "ImpulseRun", "InputError", "Maps", "Memory", "Output", "Scheme",
    "SolverSettings", "State", "Step", "StepData", "StepForces", "Stepped", "System", "SystemState",
    "Tolerances", "Traits", "forced_jump", "impulse_scheme", "mixed_scheme", "momentum", "record", "single",
    "velocity_jump",
]  # fmt: skip

__getattr__ = old_names(globals())
