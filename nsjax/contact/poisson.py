"""Poisson's law of restitution: impacts of two phases, compression and expansion.

Compression is a plastic impact with the velocities ``u^-`` before, and impulses ``x^C``. In the expansion
each contact gives back at least ``e x_N^C``, with friction of its own, and everything else of the step
acts::

    u^C = u^- + G x^C,             0 <= u_N^C  _|_  x_N^C >= 0,              x_T^C in the disc of mu x_N^C
    u^+ = u^C + W' drift + G x^E,  0 <= u_N^+  _|_  x_N^E - e x_N^C >= 0,    x_T^E in the disc of mu x_N^E

In the expansion ``x_N^E = e x_N^C + z``. Its disc is the sum of two that slide in one direction: that of
the contact, of radius ``mu z``, and that of a bounded force, with the given normal impulse ``e x_N^C``,
along the same tangents. So both phases are contact problems of the usual laws, each with its certificate.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import jax.numpy as jnp

from nsjax.contact.problem import ContactLaw, ContactProblem, DelassusFactors
from nsjax.core.errors import InputError
from nsjax.core.row_groups import Bounded, GivenForces, RowGroup, RowGroups
from nsjax.linalg import Blocks, Paired
from nsjax.types import Array, record

if TYPE_CHECKING:
    from nsjax.contact.solvers import ContactSolution, SolverSettings


@record()
class PoissonLaw(ContactLaw):
    """Restitution of impulses (Poisson's law): the impulse of expansion is ``e`` times that of compression.

    Contacts without friction that stay closed in compression rebound as by Newton's law, a single one with
    ``u_N^+ = -e u_N^-``. With friction the laws differ: sliding that ends or turns gives other impulses,
    and a contact that does not approach, but is pressed by another impact, rebounds.

    Args:
        restitution: ``e`` in [0, 1], of impulses.
        friction: Coulomb's ``mu >= 0``, in both phases.

    Order: in steps of Moreau's rule the other forces of a step act in the phase of expansion, so that
    single rebounds differ from Newton's by ``dt`` times an acceleration.

    Cost: a second contact problem in every step with closed contacts; systems with another law have none.

    Limits: for schemes with impacts of their own or one linear step, `moreau`, `ggl_decoupled`,
    `half_explicit`, `generalized_alpha`, `hht`, `newmark`, `bathe`, `ed_alpha`, and `localized` around
    them; the others refuse it. Not beside dry friction and parts that come and go, nor in heaps and
    islands. ``restitution_tangential`` has no meaning. Where sticking contacts leave the impulses of
    compression open (two corners of a rigid block), so is the expansion. Poisson's law may add energy where
    sliding reverses, less often than Newton's does.

    Source: F. Pfeiffer, C. Glocker: Multibody Dynamics with Unilateral Contacts, Wiley 1996, chapter 8,
    without its restitution of tangential impulses.

    Example:
        >>> from nsjax.contact import PoissonLaw
        >>> PoissonLaw(restitution=0.5, friction=0.3).friction_of(2).tolist()
        [0.3, 0.3]
    """

    def rebound(self, rows: RowGroups, before: Array, settling: Array | None = None) -> Array:
        """Poisson's law has no rebound of velocities.

        Raises:
            InputError: where a scheme asks for one.
        """
        raise InputError(
            "the contacts have Poisson's law, whose impacts are two contact problems, and this scheme "
            "solves one; take schemes.moreau() or schemes.generalized_alpha(), without dry friction, "
            "or Newton's law (ContactLaw)"
        )


def solve_in_phases(
    law: PoissonLaw, settings: SolverSettings, problem: ContactProblem, before: Array,
    settling: Array | None,
) -> ContactSolution:  # fmt: skip
    """Impulses of both phases, with the larger residual and all iterations.

    Args:
        law: of the contacts.
        settings: of the contact solver.
        problem: that of the step without restitution.
        before: (rows,) velocities of the rows before the step.
        settling: (nc,) bool, contacts that do not rebound; None: none.

    Raises:
        InputError: for rows in blocks, those of heaps and islands.
    """
    rows, factors = problem.rows, problem.delassus
    if not isinstance(factors, DelassusFactors) or isinstance(factors.wt, Blocks | Paired):
        raise InputError(
            "Poisson's law does not work with contacts in islands or between changing bodies; take "
            "Newton's law (ContactLaw) there"
        )
    compression = settings.solve(dataclasses.replace(problem, free=before))
    e = jnp.broadcast_to(jnp.asarray(law.restitution, float), (rows.nc,))
    pressed = rows.contacts(compression.x)[:, 0]
    back = e * jnp.where(pressed > 0.0, pressed, 0.0)
    if settling is not None:
        back = jnp.where(settling, 0.0, back)
    given = jnp.concatenate([back[:, None], jnp.zeros((rows.nc, rows.nt))], axis=1)
    known = compression.x + rows.stack(given, jnp.zeros(rows.nb))
    moved = dataclasses.replace(problem, free=problem.velocity(known))
    expansion = settings.solve(_expansion(moved, back))
    extra, last = rows.rough * rows.nt, rows.ends[1]
    more = expansion.x[:last]
    if extra:
        own = expansion.x[last : last + extra].reshape(rows.rough, rows.nt)
        own = jnp.pad(own, [(0, rows.nc - rows.rough), (1, 0)])
        more = more + rows.without_forces().stack(own)
    x = known + jnp.concatenate([more, expansion.x[last + extra :]])
    return dataclasses.replace(
        expansion, x=x, iterations=compression.iterations + expansion.iterations,
        residual=jnp.maximum(compression.residual, expansion.residual),
    )  # fmt: skip


def _expansion(problem: ContactProblem, back: Array) -> ContactProblem:
    """The problem with a bounded force along the tangents, of normal impulses ``back`` (nc,)."""
    rows, last = problem.rows, problem.rows.ends[1]
    rough, wt, response = rows.rough, problem.delassus.wt, problem.delassus.response
    if not rough or not rows.nt:
        return problem
    count = rough * rows.nt

    def extended(a: Array) -> Array:
        own = rows.tangential(a)[:rough].reshape(count, *a.shape[1:])
        return jnp.concatenate([a[:last], own, a[last:]])

    friction = problem.friction
    made = RowGroups.of(
        rows.nc, rows.nt, rows.nb, rows.frictionless, RowGroup(Bounded(rows.nt), rough)
    )  # fmt: skip
    return ContactProblem(
        rows=made,
        delassus=DelassusFactors(wt=extended(wt), response=extended(response.T).T),
        free=extended(problem.free),
        friction=jnp.concatenate([friction, friction[:rough]]),
        mask=jnp.concatenate([problem.mask, jnp.ones(rough, bool)]),
        given=GivenForces(normal=jnp.concatenate([jnp.zeros(rows.nc), back[:rough]])),
    )
