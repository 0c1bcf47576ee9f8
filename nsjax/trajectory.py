"""Records that a run returns: saved rows, impact list, first failure, and its continuation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import status as status_bits
from nsjax.core.errors import InputError, nearest, observed
from nsjax.core.guards import GuardMemory
from nsjax.core.operators import kinetic_energy, potential_energy, prepared, refreshed
from nsjax.core.scheme import QUANTITIES, ROWS, Carry, Output, RowQuantities
from nsjax.core.system import System
from nsjax.jaxtools.owned import compiled_for
from nsjax.part_rows import ByName
from nsjax.renamed import renamed_fields
from nsjax.report import failed_loads
from nsjax.sensors import find, label_name, quantity, read_rows, row_output, table
from nsjax.types import Array, PyTree, is_traced, record
from nsjax.views import Views


class RunError(RuntimeError):
    """A run that did not end well; raised by `Trajectory.raise_for_status`."""


@record(static=("scheme", "impulses"))
class Continuation:
    """Everything that continues a run bit-identically: ``simulate(..., carry=traj.carry)``.

    Args:
        carry: state and memory of the scheme.
        origin: time at which the step counter was zero [s].
        index: steps taken since then; ``t = origin + index dt``, never accumulated.
        dt: step size of these steps [s]; another step size starts a new count at the present time.
        scheme: name of the scheme; "" for files without it.
        impulses: where its impulses act, see `nsjax.core.Scheme`; "" for files without it.
        guards: memory of functions at whose zeros the run stops or its state is reset; None: it has none.
    """

    carry: Carry
    origin: Array
    index: Array
    dt: Array
    scheme: str = ""
    impulses: str = ""
    guards: GuardMemory | None = None


@record()
class FirstFailure:
    """The first step that reported a failure; ``step`` is -1 if none did.

    Args:
        step: number of the step, counted from 1 at the start of the run; 0: the run was refused.
        time: end of that step [s].
        status: its bits.
        contact: the contact that fulfilled its law worst, or whose gap was not finite; -1 if none.
    """

    step: Array
    time: Array
    status: Array
    contact: Array

    def at_start(self, bits: Array, time: Array) -> FirstFailure:
        """The failure of a run that is refused with status ``bits``; without bits this one."""
        now = FirstFailure(step=jnp.asarray(0), time=time, status=bits, contact=self.contact)
        return jax.tree.map(lambda a, b: jnp.where(bits == 0, a, b), self, now)


@record()
class Impacts:
    """The first impacts of a run in the order of steps, and of time in each (``events=K`` of `simulate`).

    A contact that touches at the start of a run has no impact there: it was never open.

    Args:
        count: number of impacts of the run, which may exceed the K that are kept.
        time (K,), contact (K,): instant at which the gap closes [s], as `nsjax.schemes.localized` found it,
            else from the gap's rate inside the step (`nsjax.recording.crossings`), with the derivative of
            the time of the impact; contact -1 marks an unused place, whose numbers are NaN.
        rate_before, rate_after (K,): normal gap rates before and after the impact [m/s].
        impulse_normal (K,), impulse_tangential (K, nt): impulses over the step [N s].
    """

    count: Array
    time: Array
    contact: Array
    rate_before: Array
    rate_after: Array
    impulse_normal: Array
    impulse_tangential: Array


def _mean_force(name: str) -> property:
    """Property that divides the impulses ``name`` by the time since the previous row; zero in row 0."""

    def mean(traj: Trajectory) -> Any:
        impulse = getattr(traj, name)
        if impulse is None:
            raise InputError(f"mean forces need {name}, which is not saved; run simulate with save=None")
        t, impulse = jnp.asarray(traj.t), jnp.asarray(impulse)
        rows = t.ndim - 1  # batches have lanes in front of them
        since = jnp.diff(t, axis=rows)
        since = since.reshape(*since.shape, *[1] * (impulse.ndim - t.ndim))
        first = jnp.zeros_like(lax.slice_in_dim(impulse, 0, 1, axis=rows))
        # no time passes between the rows after a stop
        forces = lax.slice_in_dim(impulse, 1, None, axis=rows) / jnp.where(since > 0.0, since, 1.0)
        found = jnp.concatenate([first, forces], axis=rows)
        return found if is_traced(found) else np.asarray(found)

    return property(mean, doc=f"Mean forces since the previous row [N]: ``{name}`` over the time.")


@renamed_fields
@record(static=("system",))
class Trajectory(Views, ByName, RowQuantities):
    """Rows of a run; row 0 is the start.

    Row quantities have the rows as first axis: forces are those of the last step before the row, others are
    accumulated since the previous row; None where not saved. `nsjax.core.scheme.RowQuantities` lists
    them.

    Args:
        t (rows,), q (rows, nq), v (rows, nv): time, position, velocity.
        status: (), union of the status bits of all steps; 0 means that all went well.
        first_failure: step and contact of the first of them.
        events: impact list, None unless ``events=K`` was given.
        carry: continuation of the run.
        system, params: the model and its parameters, for derived quantities.
        stopped: () bool, whether ``stop`` of `nsjax.simulate` has ended the run, at ``traj.t[-1]``; None:
            it had none.

    ``traj.mean_force_normal`` (rows, nc), ``mean_force_tangential`` (rows, nc, nt),
    ``mean_constraint_force`` (rows, nb) and ``mean_dry_friction_force`` (rows, nd) are the impulses divided
    by the time since the previous row [N], impacts included, and zero in row 0: plots of contact forces
    should show them, with rows some steps apart.

    ``traj[name]`` is a column by its label (``traj["theta1"]``), an observable of the model,
    ``"kinetic"``, ``"potential"``, ``"energy"``, or a quantity of a part as in `sensor`
    (``traj["pin.force"]``), or a component of one (``"pin.force.x"``; of a contact ``"foot.force.n"``,
    ``"foot.force.t1"``). Names of all contacts of a part are in the plural: ``traj["guide.forces"]`` is
    (rows, contacts, 1 + nt), also where the part has only one. ``traj.body("rod")``, ``traj.joint("pin")``,
    ``traj.load("coil")``, ``traj.contact("foot")`` and ``traj.contacts("guide")`` show the parts of a
    mechanism by name.
    """

    system: System
    params: PyTree
    t: Array
    q: Array
    v: Array
    status: Array
    first_failure: FirstFailure
    events: Impacts | Any
    carry: Continuation
    stopped: Any = None

    mean_force_normal = _mean_force("impulse_normal")
    mean_force_tangential = _mean_force("impulse_tangential")
    mean_constraint_force = _mean_force("constraint_impulse")
    mean_dry_friction_force = _mean_force("dry_friction_impulse")

    def __getitem__(self, name: str) -> Array:
        if not isinstance(name, str):
            raise TypeError(
                f"traj[{name!r}]: quantities have names, traj['energy'] for instance; row k is traj.q[k], "
                "run k of a batch is jax.tree.map(lambda x: x[k], traj)"
            )
        found = find(self.system, name)
        if found is None:
            raise KeyError(
                f"trajectory has no quantity {name!r}; {nearest(name, table(self.system), 'traj.keys()')}"
            )
        if found.kind in ("q", "v"):
            return found.read(self.t, self.q, self.v)
        return self._derived()[name] if found.kind in ("observable", "energy") else self.sensor(name)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all quantities that ``traj[name]`` and ``traj.plot(name)`` take."""
        return tuple(table(self.system))

    def keys(self) -> tuple[str, ...]:
        """The names of `columns`, as those of a dict."""
        return self.columns

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and find(self.system, name) is not None

    def _ipython_key_completions_(self) -> list[str]:
        """Names that a notebook offers after ``traj["``."""
        return list(self.columns)

    def _derived(self) -> dict[str, Any]:
        if self.t.ndim != 1:
            raise InputError(
                "derived quantities need a single run; take one, jax.tree.map(lambda x: x[k], traj)"
            )
        found = _derive(self.system, self.params, self.t, self.q, self.v, self._outputs())
        return found if is_traced(found) else {k: np.asarray(x) for k, x in found.items()}

    def _outputs(self) -> Output | None:
        """Saved rows as an `Output` of a scheme, for `System.observe`; None if some are not saved."""
        return row_output({name: getattr(self, name) for name in ROWS})

    def sensor(self, name: Any) -> Array:
        """A quantity in all rows (rows, ...) by its name.

        Args:
            name: a label, an observable or an energy as in ``traj[name]``; ``part.quantity`` for the
                quantities of `body`, `joint`, `load` and `contact` (``"rod.velocity"``, ``"pin.torque"``,
                ``"coil.power"``, ``"foot.force"``), in the plural those of `contacts` (``"guide.gaps"``,
                ``forces``, ``impulses``, ``impact_counts``), and ``"rod.acceleration"``, that of the origin
                of a body's axes; or a `nsjax.multibody.sensor`.

        Raises:
            InputError: for an unknown name, forces that are not saved, and a batch.

        Example:
            >>> import nsjax
            >>> from nsjax import models, schemes
            >>> traj = nsjax.simulate(models.bouncing_ball(), schemes.moreau(), dt=1e-3, steps=10)
            >>> traj.sensor("energy").shape
            (11,)
        """
        if self.t.ndim != 1:
            raise InputError(f"sensor {name} of a batch; take one run, jax.tree.map(lambda x: x[k], traj)")
        rows: Any = read_rows(self.system, name, self.params, (self.t, self.q, self.v, self._outputs()))
        found: Array = rows
        return found if is_traced(rows) else np.asarray(rows)  # type: ignore[return-value]

    def unit(self, name: Any) -> str:
        """Unit of a quantity of ``traj[name]`` or of a sensor, empty if the model gives none."""
        of = quantity_unit if isinstance(name, str) else lambda system, x: quantity(system, x).unit
        return of(self.system, name)

    def raise_for_status(self) -> None:
        """Raises `RunError` if a step failed: lane, step, time, contact, remedy, and the loads of a
        mechanism that are not finite there.

        Does nothing after a run in which every step went well.
        """
        status = np.asarray(self.status)
        if not status.any():
            return
        lane = int(np.flatnonzero(status.reshape(-1))[0])
        first = jax.tree.map(lambda x: np.asarray(x).reshape(-1)[lane], self.first_failure)
        more = ""
        counted = self.system.contact_set is not None
        if int(first.status) & status_bits.CANDIDATES_LOST and counted and not status.ndim:
            near = _most_near(self.system, self.params, self.t, self.q)
            named = (f"capacity = {int(n)} of {name!r}" for name, n in near.items())
            more = f" Of the pairs near at the rows saved, {' and '.join(named)} would have held all."
        if not status.ndim and (loads := failed_loads(self)):
            more += f" Not finite there: {', '.join(loads)}."
        raise RunError(failure_sentence(self.system, first, lane if status.ndim else None) + more)


@compiled_for("system")
def _most_near(system: System, params: PyTree, t: Array, q: Array) -> dict[str, Array]:
    """Largest number of near pairs of each group in any row."""
    ready = prepared(system, params)

    def at(row: tuple[Array, Array]) -> dict[str, Array]:
        own: Any = system.contact_set
        return own.near_counts(row[1], refreshed(system, *row, ready))

    return {name: jnp.max(x) for name, x in lax.map(at, (t, q)).items()}


@compiled_for("system")
def _derive(
    system: System, params: PyTree, t: Array, q: Array, v: Array, output: Output | None
) -> dict[str, Array]:
    """Energies and observables of all rows."""
    ready = prepared(system, params)

    def at(t: Array, q: Array, v: Array, output: Output | None) -> dict[str, Array]:
        p = refreshed(system, t, q, ready)
        kinetic = kinetic_energy(system, q, v, p)
        potential = potential_energy(system, t, q, p)
        found = {} if system.observe is None else observed(system.observe, t, q, v, output, p)
        return {**found, "kinetic": kinetic, "potential": potential, "energy": kinetic + potential}

    return jax.vmap(at)(t, q, v, output)


def label_names(system: System) -> list[str]:
    """Names of all positions, velocities and observables that have a label."""
    labels = system.labels
    return [label_name(entry) for entry in (*labels.q, *labels.v, *labels.observables)]


def quantity_unit(system: System, name: str) -> str:
    """Unit of a quantity of `Trajectory.columns` or of a row quantity, empty if the model gives none."""
    known = find(system, name) or QUANTITIES.get(name)
    return known.unit if known is not None else ""


def failure_sentence(system: System, first: FirstFailure, lane: int | None = None) -> str:
    """The sentence of `Trajectory.raise_for_status` for the first failure of one run."""
    causes = status_bits.describe(int(first.status))
    where = "" if lane is None else f"lane {lane}, "
    contact = int(first.contact)
    who = ""
    if contact >= 0:
        names = system.labels.contacts
        who = f" (contact {contact}{': ' + names[contact] if names else ''})"
    what = "; then ".join(cause for cause, _ in causes)
    return (
        f"{where}step {int(first.step)}, t = {float(first.time):.9g} s: {what}{who}. "
        f"Remedy: {causes[0][1]}."
    )
