"""Steppers: the steps of the time loop one by one, as a pure function, for controllers and policies."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact.contact_set import check_run
from nsjax.core import checks
from nsjax.core.arguments import check_is, name_list, numbers
from nsjax.core.errors import InputError, check_choice, check_whole
from nsjax.core.guards import check_maps
from nsjax.core.inputs import (
    DrivenParams,
    Inputs,
    check_constants,
    input_places,
    shape_of,
    value_of,
    with_inputs,
)
from nsjax.core.operators import refreshed
from nsjax.core.scheme import ROWS, RowQuantities, Scheme
from nsjax.core.signals import KINDS, Segment
from nsjax.core.system import Problem, State
from nsjax.jaxtools.control_flow import StepBlocks, map_lanes
from nsjax.jaxtools.owned import compiled_for
from nsjax.loop import (
    LoopProgram,
    RunSetup,
    RunState,
    begin_run,
    begin_with_inputs,
    guards_for,
    prepare_run,
    run_row,
)
from nsjax.sensors import needed_rows, read, row_output
from nsjax.types import Array, PyTree, being_compiled, is_traced, record


@dataclasses.dataclass(frozen=True, eq=False)
class StepBatch:
    """Pure functions `reset`, `step` and `observe` of ``lanes`` lanes, see `nsjax.Stepper.batch`."""

    stepper: Any
    lanes: int

    def reset(self, params: PyTree = None, state: State | None = None) -> StepperCarry:
        """The carries of all lanes at their starts, lanes first.

        Args:
            params, state: see `nsjax.Stepper.reset`; a leaf with one axis more than the problem's own, of
                ``lanes`` entries, has a value for each lane, any other leaf is common to all. None: those
                of the problem.

        Raises:
            InputError: for a leaf with another number of lanes, and as `nsjax.Stepper.reset`.
        """
        problem = self.stepper.problem
        given = {"params": params, "state": state}
        own = {
            "params": None if params is None else problem.params,
            "state": None if state is None else problem.state,
        }
        leaves, tree = jax.tree.flatten(given)
        known = jax.tree.leaves(own)
        if not jax.tree.structure(own) == tree:  # type: ignore[operator]
            raise InputError(
                "reset: params or state of a batch have another structure than those of the problem; put "
                "other numbers into problem.params and problem.state"
            )
        leaves = [jnp.asarray(x) for x in leaves]
        varied = [x.ndim == jnp.ndim(y) + 1 for x, y in zip(leaves, known, strict=True)]
        self._check("reset: a leaf", [x for x, v in zip(leaves, varied, strict=True) if v])

        def one(k: jax.Array) -> StepperCarry:
            found = [x[k] if v else x for x, v in zip(leaves, varied, strict=True)]
            return self.stepper.reset(**jax.tree.unflatten(tree, found))

        if any(varied):
            return map_lanes(one, jnp.arange(self.lanes))
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (self.lanes, *jnp.shape(x))), one(jnp.asarray(0)))

    def step(self, carry: StepperCarry, u: Any = None) -> tuple[StepperCarry, StepRow]:
        """One step of every lane.

        Args:
            carry: result of `reset` or of the step before.
            u: inputs as in `nsjax.Stepper.step`, lanes first: (lanes, input_size), (lanes,) for one input,
                or a mapping of such arrays.

        Returns:
            The next carries and rows, lanes first.

        Raises:
            InputError: for another number of lanes, and as `nsjax.Stepper.step`.
        """
        u = jax.tree.map(jnp.asarray, u)
        self._check("step: u", jax.tree.leaves(u))
        return self._mapped(lambda own, x: self.stepper.step(own, x), carry, u)

    def observe(self, carry: StepperCarry) -> StepRow:
        """The rows of the last step of every lane, see `nsjax.Stepper.observe`."""
        return self._mapped(lambda own, _: (own, self.stepper.observe(own)), carry, None)[1]

    def _mapped(
        self, one: Callable[[StepperCarry, Any], tuple[StepperCarry, StepRow]], carry: StepperCarry, u: Any
    ) -> tuple[StepperCarry, StepRow]:
        """Carries and rows of ``one`` in every lane; params of lanes are not written again."""

        def lane(both: tuple[StepperCarry, Any]) -> tuple[StepperCarry, StepRow]:
            after, row = one(*both)
            return dataclasses.replace(after, own=None), row

        self._check("carry.state.t", [carry.state.t])
        after, rows = map_lanes(lane, (carry, u))
        return dataclasses.replace(after, own=carry.own), rows

    def _check(self, what: str, leaves: list[Any]) -> None:
        for x in leaves:
            if jnp.ndim(x) < 1 or jnp.shape(x)[0] != self.lanes:
                raise InputError(
                    f"{what} has shape {jnp.shape(x)}, and the batch {self.lanes} lanes; give one entry a "
                    "lane on its first axis"
                )


@record()
class StepperCarry:
    """State of a stepper between two steps.

    Args:
        run: state of the time loop.
        last: inputs (m,) at the end of the step before, from which linear inputs continue.
        own: params and constants, if `Stepper.reset` was given other params than those of the problem.
    """

    run: RunState
    last: Array
    own: PyTree = None

    @property
    def state(self) -> State:
        """Time, position and velocity."""
        return self.run.next.carry.state

    @property
    def stopped(self) -> Array | None:
        """() bool, whether the stop was met; None: there is none."""
        return self.run.stopped

    @property
    def status(self) -> Array:
        """Bits of `nsjax.status` of all steps; 0: all went well."""
        return self.run.status


@record()
class StepRow(RowQuantities):
    """Results of a step.

    Args:
        t, q (nq,), v (nv,): time, position and velocity at its end.
        outputs: values by the names in ``outputs`` of `nsjax.stepper`.
        status: bits of `nsjax.status` of all steps so far.

    Row quantities are those of `nsjax.Trajectory` that ``save`` of `nsjax.stepper` names.
    """

    t: Array
    q: Array
    v: Array
    outputs: dict[str, Array]
    status: Array


@dataclasses.dataclass(frozen=True, eq=False)
class Stepper:
    """Pure functions `reset` and `step` of a problem, see `nsjax.stepper`.

    Args:
        problem: the problem as it was given, before it reads inputs.
        scheme: the scheme of the steps.
        dt: step size of the scheme [s].
        inputs: places of the inputs.
        sizes: shapes of the inputs.
        hold: ``"held"`` or ``"linear"``.
        outputs: names of the outputs, or sensors.
        substeps: steps of the scheme in one step.
        program: static part of the loop.
        ready: prepared params and constants for the numbers of the problem.
    """

    problem: Problem
    scheme: Scheme
    dt: Array
    inputs: Inputs
    sizes: tuple[tuple[int, ...], ...]
    hold: str
    outputs: tuple[Any, ...]
    substeps: int
    program: LoopProgram
    ready: tuple[PyTree, PyTree]

    def __repr__(self) -> str:
        given = ", ".join(self.names) or "none"
        seen = ", ".join(map(str, self.outputs)) or "none"
        return (
            f"Stepper({self.problem.system.name or 'without a name'}, {self.scheme.name}, inputs: {given}, "
            f"outputs: {seen}, substeps: {self.substeps})"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the inputs, in the order of ``u``."""
        return tuple(name for name, _ in self.inputs.keys)

    @property
    def input_size(self) -> int:
        """Number of entries of ``u``."""
        return sum(int(np.prod(x)) for x in self.sizes)

    def reset(self, params: PyTree = None, state: State | None = None) -> StepperCarry:
        """The carry at a start.

        Args:
            params: ``problem.params`` with other numbers, which are kept in the carry, so that batches may
                have different ones and derivatives reach them; None: those of the problem.
            state: start; None: that of the problem.

        Raises:
            InputError: for params or a state of another form, and for numbers that `nsjax.simulate`
                refuses; inside transformations these give status bits, and a start that is not a number.
        """
        given = params is not None or state is not None
        checks.check_state(self.problem.state if state is None else state)
        state = checks.canonical(self.problem.state if state is None else state, "state")
        own, (full, _) = None, self.ready
        if params is not None:
            full = self._params(params)
            own = _prepared(self.program, self.scheme, full, self.dt)
        checks.check_shapes(self.program.system, full, state)
        raw = dataclasses.replace(full, ready=None, now=None, moving=()) if self.names else full
        traced, bits = is_traced((raw, state, self.scheme, self.dt)), None
        if given or traced:  # other numbers were looked at when the stepper was made
            by = self.scheme, self.dt, traced or being_compiled()
            state, bits = checks.examined_start(self.program.system, raw, state, *by)
        run = begin_run(self.program, self.scheme, raw, state, self.dt, None)
        return StepperCarry(run=run.refused(bits), last=self._first(full), own=own)

    def step(self, carry: StepperCarry, u: Any = None) -> tuple[StepperCarry, StepRow]:
        """One step of the size ``dt`` (``substeps`` steps of the scheme).

        Args:
            carry: result of `reset` or of the step before.
            u: inputs, an array (input_size,) in the order of ``names``, one number for one input, or a
                mapping by name. Held inputs count over the step; linear inputs are reached at its end, from
                those of the step before.

        Returns:
            The next carry, and a `StepRow`.
        """
        check_carry("step", carry)
        (params, constants), last = self.ready if carry.own is None else carry.own, carry.last
        if self.names:
            last = self._vector(u)
            params = dataclasses.replace(params, signals=self._segments(carry, last))
        elif u is not None and np.size(u):
            raise InputError("step: u is given, but the stepper has no inputs; name them in inputs=")
        setup, run = self._setup(params, constants), carry.run
        if self._begins_anew:
            run = begin_with_inputs(setup, run)
        blocks = StepBlocks(self.substeps, self.scheme.traits.stores_solutions)
        run, row = run_row(setup, run, self.substeps, blocks)
        return StepperCarry(run=run, last=last, own=carry.own), self._row(params, run, row)

    def observe(self, carry: StepperCarry) -> StepRow:
        """The row of the last step, without forces, for instance the outputs of a start for a policy."""
        check_carry("observe", carry)
        params, constants = self.ready if carry.own is None else carry.own
        if self.names:
            still = segments(jnp.asarray(carry.state.t), self._values(carry.last), self.hold)
            params = dataclasses.replace(params, signals=still)
        run, row = run_row(self._setup(params, constants), carry.run, 0)
        return self._row(params, run, row)

    def batch(self, lanes: int) -> StepBatch:
        """Batch of this stepper: the same functions with ``lanes`` values first in all arguments and
        results, for policies that answer all lanes together.

        On a CPU a step takes the lanes one after the other in one kernel: a lane costs as much as a single
        step, and has its bits. (With `jax.vmap` every lane pays for contacts and searches if one lane has
        them.) On a GPU they run side by side. Derivatives pass, forward and in reverse.

        Args:
            lanes: number of lanes.

        Raises:
            InputError: for a number that is not whole or below one.

        Example:
            >>> import jax, jax.numpy as jnp, nsjax
            >>> from nsjax import models, schemes
            >>> crank = nsjax.stepper(
            ...     models.slider_crank(), schemes.moreau(), 1e-4, inputs=["torque"], outputs=["theta1"]
            ... )
            >>> many = crank.batch(3)
            >>> u = jnp.array([[0.0], [0.05], [0.1]]) * jnp.ones((100, 1, 1))  # steps, lanes, inputs
            >>> carry, steps = jax.lax.scan(many.step, many.reset(), u)
            >>> steps.outputs["theta1"].shape
            (100, 3)
        """
        check_whole("batch: lanes", lanes, 1)
        return StepBatch(self, lanes)

    @property
    def _begins_anew(self) -> bool:
        """Whether the first step starts from an acceleration, by inputs that `reset` did not know."""
        carried = self.scheme.traits.accelerations
        return (
            bool(self.names) and self.hold == "held" and carried is not None and carried.carries != "none"
        )

    def _setup(self, params: PyTree, constants: PyTree) -> RunSetup:
        return RunSetup(
            program=self.program, scheme=self.scheme, params=params, constants=constants, dt=self.dt
        )

    def _row(self, params: PyTree, run: RunState, row: dict[str, Any]) -> StepRow:
        system, (t, q, v) = self.program.system, (row.pop(x) for x in ("t", "q", "v"))
        found: dict[str, Array] = {}
        if self.outputs:
            p = refreshed(system, t, q, params)
            output = row_output(row)
            found = {str(x): read(system, x, t, q, v, output, p) for x in self.outputs}
        return StepRow(t=t, q=q, v=v, outputs=found, status=run.status, **row)

    def _params(self, params: PyTree) -> PyTree:
        """Checked params, with the inputs at the values that these params have."""
        params = checks.canonical(params, "params")
        if type(params) is not type(self.problem.params) and not isinstance(params, DrivenParams):
            raise InputError(
                f"reset: params = {params!r}; give problem.params, of which some numbers may differ"
            )
        if not self.names:
            return params
        if isinstance(params, DrivenParams):
            raise InputError("reset: params are those of a problem with inputs; give problem.params")
        given = Problem(system=self.problem.system, params=params, state=self.problem.state)
        signals = own_segments(given, self.inputs, self.hold)
        values = {name: x.value for name, x in signals.items()}
        return DrivenParams(model=self.inputs.model(params, values), signals=signals)

    def _first(self, params: PyTree) -> Array:
        if not self.names:
            return jnp.zeros(0)
        flat = [jnp.ravel(jnp.asarray(params.signals[name].value)) for name in self.names]
        return jnp.concatenate(flat)

    def _vector(self, u: Any) -> Array:
        if isinstance(u, Mapping):
            unknown = next((x for x in u if x not in self.names), None)
            missing = next((x for x in self.names if x not in u), None)
            if unknown is not None or missing is not None:
                what = f"unknown input {unknown!r}" if unknown is not None else f"{missing!r} is missing"
                raise InputError(f"step: {what}; the inputs are {', '.join(self.names)}")
            u = jnp.concatenate(
                [jnp.ravel(jnp.asarray(numbers("step", name, u[name]))) for name in self.names]
            )
        u = u if u is None else numbers("step", "u", u)
        if u is None or jnp.size(u) != self.input_size or jnp.ndim(u) > 1:
            shape = None if u is None else jnp.shape(u)
            raise InputError(
                f"step: u has shape {shape}; give ({self.input_size},), of the inputs "
                f"{', '.join(self.names)}"
            )
        return jnp.asarray(u, float).reshape(-1)

    def _values(self, u: Array) -> dict[str, Array]:
        found, first = {}, 0
        for name, shape in zip(self.names, self.sizes, strict=True):
            count = int(np.prod(shape))
            found[name] = u[first : first + count].reshape(shape)
            first += count
        return found

    def _segments(self, carry: StepperCarry, u: Array) -> dict[str, Any]:
        follow = carry.run.next
        t = follow.origin + follow.index * self.dt
        if self.hold == "held":
            return segments(t, self._values(u), self.hold)
        slopes = self._values((u - carry.last) / (self.substeps * self.dt))
        return segments(t, self._values(carry.last), self.hold, slopes)


def check_carry(who: str, carry: Any) -> None:
    """Refuses a value that is no `StepperCarry`."""
    if not isinstance(carry, StepperCarry):
        raise InputError(f"{who}: carry = {carry!r}; give what reset() or the step before returned")


def own_segments(problem: Problem, places: Inputs, hold: str) -> dict[str, Segment]:
    """Inputs with the values that a problem has."""
    values = {name: jnp.asarray(value_of(problem, key), float) for name, key in places.keys}
    return segments(jnp.zeros(()), values, hold)


def segments(
    t: Array, values: dict[str, Array], hold: str, slopes: dict[str, Array] | None = None
) -> dict[str, Segment]:
    """Inputs of a step that begins at ``t`` with the given values and, if linear, ``slopes``."""
    if hold == "held":
        return {name: Segment(start=t, value=x) for name, x in values.items()}
    rates = {name: jnp.zeros_like(x) for name, x in values.items()} if slopes is None else slopes
    return {name: Segment(start=t, value=x, slope=rates[name]) for name, x in values.items()}


@compiled_for("program")
def _prepared(program: LoopProgram, scheme: Scheme, params: PyTree, dt: Array) -> tuple[PyTree, PyTree]:
    setup = prepare_run(program, scheme, params, dt)
    return setup.params, setup.constants


def stepper(
    problem: Problem, scheme: Scheme, dt: Array | float, *, inputs: Sequence[str] = (),
    outputs: Sequence[Any] = (), hold: str = "held", substeps: int = 1, save: Sequence[str] = (),
    gradient: str | None = None, stop: Any = None, resets: Sequence[tuple[Any, Any]] = (),
) -> Stepper:  # fmt: skip
    """A stepper of a problem, for feedback, policies and learning: pure functions for `jax.lax.scan`,
    `jax.vmap`, `jax.lax.map`, `jax.jit` and derivatives. Its steps are those of `nsjax.simulate`.

    Args:
        problem: a problem, whose numbers may be traced.
        scheme: the scheme of the steps.
        dt: time of one step [s], between two inputs.
        inputs: names of the numbers that every step is given, as in `nsjax.with_inputs`: ``"motor"``,
            ``"push.value[1]"``.
        outputs: quantities that every step returns in ``step.outputs``: names as in `Trajectory.sensor`
            (``"cart.x"``, ``"rod.velocity"``, ``"foot.force"``), or sensors of `nsjax.multibody.sensor`.
        hold: ``"held"``: an input counts over its step. ``"linear"``: it is reached at the end of its step,
            from that of the step before; at a start from the number of the problem.
        substeps: steps of the scheme in every step.
        save: names of row quantities that every step returns in addition, see `Trajectory`.
        gradient: as in `nsjax.simulate`; None: that of the scheme.
        stop, resets: as in `nsjax.simulate`, with maps of the state. After the stop
            (``carry.stopped``) steps change nothing.

    Returns:
        A `Stepper` with ``reset(params=None, state=None) -> carry`` and ``step(carry, u) -> (carry,
        StepRow)``.

    Raises:
        InputError: for an unknown input, output or quantity, before any work.

    Limits: steps have derivatives in any case; these cost nothing if they are not used. For inputs the
    limits of `nsjax.with_inputs` hold, also that of held inputs that jump. Accelerations and joint forces
    as outputs of mechanisms with constraints call a library in every step, which is then no longer one
    kernel.

    Example:
        >>> import jax, jax.numpy as jnp, nsjax
        >>> from nsjax import models, schemes
        >>> crank = nsjax.stepper(
        ...     models.slider_crank(), schemes.moreau(), 1e-4, inputs=["torque"], outputs=["theta1"]
        ... )
        >>> carry, steps = jax.lax.scan(crank.step, crank.reset(), 0.05 * jnp.ones((100, 1)))
        >>> steps.outputs["theta1"].shape, round(float(carry.state.t), 9)
        ((100,), 0.01)
    """
    check_is("stepper", "problem", problem, Problem)
    system = problem.system
    checks.check_kind(system, scheme)
    checks.check_precision()
    check_choice("stepper: hold", hold, KINDS)
    check_whole("stepper: substeps", substeps, 1)
    inputs, outputs = name_list("stepper", "inputs", inputs), name_list("stepper", "outputs", outputs)
    checks.check_lengths(dt, 1, None, 1, 0)
    checks.check_gradient(scheme, gradient)
    scheme = dataclasses.replace(checks.canonical_scheme(scheme), gradient=gradient or scheme.gradient)
    wanted = {*checks.check_save(tuple(save), ROWS), *needed_rows(system, outputs)}
    keep = tuple(name for name in ROWS if name in wanted)
    places = input_places(problem, tuple(inputs)) if inputs else Inputs(system, ())
    sizes = tuple(shape_of(problem, key) for _, key in places.keys)
    made = problem if not inputs else with_inputs(problem, own_segments(problem, places, hold))
    step = checks.canonical(dt, "dt") / substeps
    check_maps(resets)
    guards = guards_for(made.system, stop, resets)
    program = LoopProgram(system=made.system, keep=keep, events=0, guards=guards)
    check_run(made.system, scheme, 0, gradient)
    params = checks.canonical(made.params, "params")
    state = checks.canonical(problem.state, "state")
    checks.check_state(state)
    checks.check_shapes(made.system, params, state)
    if not is_traced((params, state, scheme, step)) and not being_compiled():
        checks.check_values(made.system, params, state, scheme, step)
    check_constants(params, lambda p: prepare_run(program, scheme, p, step).constants)
    ready = _prepared(program, scheme, params, step)
    return Stepper(problem, scheme, step, places, sizes, hold, tuple(outputs), substeps, program, ready)
