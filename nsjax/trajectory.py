"""What a run returns: saved rows, the impact list, the first failure, and what continues it."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import status as status_bits
from nsjax.core.called import observed
from nsjax.core.checks import is_traced
from nsjax.core.errors import InputError, nearest
from nsjax.core.operators import kinetic_energy, potential_energy, prepared, refreshed
from nsjax.core.scheme import Carry, Event, Output
from nsjax.core.system import System
from nsjax.types import Array, PyTree, record
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
        dt: step size of these steps; another one starts a new count at the present time.
        scheme: name of the scheme; "" of files that did not say it.
        impulses: where its impulses act, see `nsjax.core.Scheme`; "" likewise.
    """

    carry: Carry
    origin: Array
    index: Array
    dt: Array
    scheme: str = ""
    impulses: str = ""


@record()
class FirstFailure:
    """The first step that reported a failure; ``step`` is -1 if none did.

    Args:
        step: number of the step, counted from 1 at the start of the run.
        time: end of that step [s].
        status: its bits.
        contact: the contact that fulfilled its law worst, or whose gap was not finite; -1 if none.
    """

    step: Array
    time: Array
    status: Array
    contact: Array


@record()
class Impacts:
    """The first impacts of a run, in the order of time (``events=K`` of `simulate`).

    Args:
        count: number of impacts seen, which may exceed the K kept.
        time (K,), contact (K,): end of the step [s], with the derivative of the time of the impact;
            contact -1 marks an unused place, whose numbers are NaN.
        rate_before, rate_after (K,): normal gap rates around the impact [m/s].
        impulse_normal (K,), impulse_tangential (K, nt): over the step [N s].
    """

    count: Array
    time: Array
    contact: Array
    rate_before: Array
    rate_after: Array
    impulse_normal: Array
    impulse_tangential: Array


ROWS = (
    "gap", "force_normal", "force_tangential", "constraint_force", "impulse_normal",
    "impulse_tangential", "constraint_impulse", "impacts", "gap_min", "closed_time",
    "iterations", "residual", "notes", "margin", "drag_force", "drag_impulse",
)  # fmt: skip
"""Row quantities that `simulate` saves beside ``t, q, v``."""

DERIVED = {"kinetic": "J", "potential": "J", "energy": "J"}


@record(static=("system",))
class Trajectory(Views):
    """Rows of a run; row 0 is the start.

    Args:
        t (rows,), q (rows, nq), v (rows, nv): time, position, velocity.
        gap (rows, nc): at the row's state [m].
        force_normal (rows, nc), force_tangential (rows, nc, nt), constraint_force (rows, nb): of the
            last step before the row [N]. Schemes that know impulses alone give these over the step: a
            contact that stays closed on a curved motion is loaded in few steps and by much, see the means.
        impulse_normal (rows, nc), impulse_tangential (rows, nc, nt), constraint_impulse (rows, nb):
            since the previous row [N s]: time integrals of the forces with the scheme's own weights, and
            impulses of impacts, so that momentum balances in every step.
        impacts (rows, nc): number of impacts since the previous row.
        gap_min (rows, nc): least gap that the scheme tested since the previous row [m].
        closed_time (rows, nc): time with the contact taking part since the previous row [s], a number of
            steps, those included in which a penetrated contact opens without load. Its derivative is that
            of the time at rest under load, from landing to release, to first order in the step; after an
            accumulation of bounces to the part by which the last of them are known. Schemes that remember
            nothing of rest have that of the count, zero but for the step size.
        iterations (rows,): of the contact solver, summed since the previous row.
        residual (rows,): largest contact residual (certificate) since the previous row.
        notes (rows, nc): bits on what the events of each contact since the previous row mean for
            derivatives (`nsjax.notes`): harmless, one-sided (grazing, a kink), undefined (impacts that
            move each other, an accumulation, friction above the jamming limit).
        margin (rows, nc): how near a contact has come to grazing since the previous row, in steps: the
            rate with which it closed, or would have had to come to close, over what its acceleration
            changes in a step. Infinite if it did not come near. An impact is lost or won by changes
            of the data that move its rate by so much, and its derivative is known to about 1 / margin.
        drag_force, drag_impulse (rows, nd): of bounded rows, like those of the constraints [N], [N s].
        status: union of the status bits of all steps; 0 means that all went well.
        first_failure: when and where the first of them was set.
        events: impact list, None unless ``events=K`` was asked for.
        carry: continues the run.
        params: the model's parameters, for derived quantities.

    ``traj.mean_force_normal`` (rows, nc), ``mean_force_tangential`` (rows, nc, nt),
    ``mean_constraint_force`` (rows, nb) and ``mean_drag_force`` (rows, nd) are these impulses over the time
    since the previous row [N], impacts included, and zero in row 0: what a plot of contact forces should
    show, with rows some steps apart.

    ``traj[name]`` is a column by its label (``traj["theta1"]``), an observable of the model, or
    ``"kinetic"``, ``"potential"``, ``"energy"``.
    """

    system: System
    params: PyTree
    t: Array
    q: Array
    v: Array
    gap: Array | None
    force_normal: Array | None
    force_tangential: Array | None
    constraint_force: Array | None
    impulse_normal: Array | None
    impulse_tangential: Array | None
    constraint_impulse: Array | None
    impacts: Array | None
    gap_min: Array | None
    closed_time: Array | None
    iterations: Array | None
    residual: Array | None
    notes: Array | None
    margin: Array | None
    status: Array
    first_failure: FirstFailure
    events: Impacts | None
    carry: Continuation
    drag_force: Array | None = None
    drag_impulse: Array | None = None

    @property
    def mean_force_normal(self) -> Array:
        """Mean normal forces since the previous row (rows, nc) [N]."""
        return self._mean("impulse_normal")

    @property
    def mean_force_tangential(self) -> Array:
        """Mean tangential forces since the previous row (rows, nc, nt) [N]."""
        return self._mean("impulse_tangential")

    @property
    def mean_constraint_force(self) -> Array:
        """Mean forces of the bilateral constraints since the previous row (rows, nb) [N]."""
        return self._mean("constraint_impulse")

    @property
    def mean_drag_force(self) -> Array:
        """Mean forces of the bounded rows since the previous row (rows, nd) [N]."""
        return self._mean("drag_impulse")

    def _mean(self, name: str) -> Array:
        """Impulses since the previous row over the time since then; zero in row 0."""
        impulse = getattr(self, name)
        if impulse is None:
            raise InputError(f"mean forces need {name}, which is not saved; run simulate with save=None")
        t, impulse = jnp.asarray(self.t), jnp.asarray(impulse)
        rows = t.ndim - 1  # batches have lanes in front of them
        since = jnp.diff(t, axis=rows)
        since = since.reshape(*since.shape, *[1] * (impulse.ndim - t.ndim))
        first = jnp.zeros_like(lax.slice_in_dim(impulse, 0, 1, axis=rows))
        mean = lax.slice_in_dim(impulse, 1, None, axis=rows) / since
        found = jnp.concatenate([first, mean], axis=rows)
        result: Any = found if is_traced(found) else np.asarray(found)
        return result

    def __getitem__(self, name: str) -> Array:
        if not isinstance(name, str):
            raise TypeError(
                f"traj[{name!r}]: quantities have names, traj['energy'] for instance; row k is traj.q[k], "
                "run k of a batch is jax.tree.map(lambda x: x[k], traj)"
            )
        labels = self.system.labels
        for values, entries in ((self.q, labels.q), (self.v, labels.v)):
            for i, entry in enumerate(entries):
                if label_name(entry) == name:
                    return values[..., i]
        if name in DERIVED or (self.system.observe is not None and name in self._observed()):
            return self._derived()[name]
        known = [label_name(e) for e in (*labels.q, *labels.v)] + [*self._observed(), *DERIVED]
        raise KeyError(f"trajectory has no quantity {name!r}; {nearest(name, known)}")

    def _observed(self) -> list[str]:
        return [label_name(entry) for entry in self.system.labels.observables]

    def _derived(self) -> dict[str, Any]:
        if self.t.ndim != 1:
            raise InputError("derived quantities need a single run; index the batch first")
        found = _derive(self.system, self.params, self.t, self.q, self.v, self._outputs())
        return found if is_traced(found) else {k: np.asarray(x) for k, x in found.items()}

    def _outputs(self) -> Output | None:
        """Saved rows in the shape of scheme outputs, for `System.observe`; None if some are not
        saved.
        """
        kept = {name: getattr(self, name) for name in ROWS}
        if any(value is None for value in kept.values()):
            return None
        fields = {f.name for f in dataclasses.fields(Output)}
        return Output(
            **{n: x for n, x in kept.items() if n in fields},
            event=Event(
                gap=kept["gap_min"],
                active=kept["closed_time"] > 0,
                impact=kept["impacts"] > 0,
                rate_before=jnp.zeros_like(kept["gap_min"]),
                rate_after=jnp.zeros_like(kept["gap_min"]),
                shift=jnp.zeros_like(kept["gap_min"]),
                timed=kept["impacts"] > 0,
            ),
            status=jnp.zeros(self.t.shape, int),
            contact=jnp.full(self.t.shape, -1),
        )

    def unit(self, name: str) -> str:
        """Unit of a quantity of ``traj[name]``, empty if the model gives none."""
        return quantity_unit(self.system, name)

    def raise_for_status(self) -> None:
        """Raises `RunError` if a step failed: lane, step, time, contact and remedy.

        Does nothing after a run in which every step went well.
        """
        status = np.asarray(self.status)
        if not status.any():
            return
        lane = int(np.flatnonzero(status.reshape(-1))[0])
        first = jax.tree.map(lambda x: np.asarray(x).reshape(-1)[lane], self.first_failure)
        raise RunError(failure_sentence(self.system, first, lane if status.ndim else None))


@functools.partial(jax.jit, static_argnames=("system",))
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


def label_name(entry: str) -> str:
    """``"theta1"`` of the label ``"theta1 [rad]"``."""
    return entry.split(" [")[0]


def label_unit(entry: str) -> str:
    """``"rad"`` of the label ``"theta1 [rad]"``."""
    return entry.split(" [")[1].rstrip("]") if " [" in entry else ""


def quantity_unit(system: System, name: str) -> str:
    """Unit of a label or of an energy, empty if the model gives none."""
    labels = system.labels
    for entry in (*labels.q, *labels.v, *labels.observables):
        if label_name(entry) == name:
            return label_unit(entry)
    return DERIVED.get(name, "")


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
