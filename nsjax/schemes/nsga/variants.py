"""Nonsmooth generalized-alpha: smooth motion, position correction and velocity jump in every step."""

from __future__ import annotations

from typing import Any

from nsjax.contact.events import Criteria
from nsjax.core.errors import InputError
from nsjax.core.scheme import Accelerations, Scheme, Traits
from nsjax.renamed import renamed_options
from nsjax.schemes.common import checked_criteria, choose, within
from nsjax.schemes.nsga.solve import SMOOTH, NsgaOptions
from nsjax.schemes.nsga.step import (
    NsgaCoefficients,
    nsga_init,
    nsga_one_step,
    nsga_prepare,
    nsga_step,
)
from nsjax.types import Array

ITERATIONS = ("block", "monolithic")
"""Iterations of the coupled scheme."""


def _scheme(name: str, options: NsgaOptions, criteria: Criteria | None, **given: Any) -> Scheme:
    """Scheme with the ``given`` numbers; variants differ in ``exchange``, ``iteration`` and ``smooth``."""
    numbers = NsgaCoefficients(**given)
    choose(name, "smooth", options.smooth, SMOOTH)
    choose(name, "tangent", options.tangent, ("auto", "full", "kept"))
    within(name, "rho_inf", numbers.rho_inf, 0.0, 1.0)
    within(name, "max_iterations", options.max_iterations, 1)
    return Scheme(
        name=name, coef=numbers, options=options, prepare=nsga_prepare, init=nsga_init, step=nsga_step,
        gradient="saltation", criteria=checked_criteria(name, criteria),
        traits=Traits(
            impulses="contacts",
            accelerations=Accelerations("algorithmic", true="acceleration", algorithmic="a"),
            one_step=nsga_one_step,
            singular_mass=options.smooth != "free",
            node_contacts=options.iteration is None,
        ),
    )  # fmt: skip


@renamed_options(tolerance="relative_tolerance")
def nsga_decoupled(
    rho_inf: Array | float = 0.8, *, smooth: str = "constrained", relative_tolerance: Array | float = 1e-11,
    force_tolerance: Array | float = 1e-5, mass_scale: Array | float | None = None,
    creep_correction: bool = True, tangent: str = "auto", max_iterations: int = 30,
    criteria: Criteria | None = None,
) -> Scheme:  # fmt: skip
    """Nonsmooth generalized-alpha, decoupled: three small problems one after the other in every step.

    With the smooth motion ``(q~, v~)`` of the generalized-alpha method, in which impacts and contacts do
    not exist, a position correction ``U`` and a velocity jump ``W``::

        M(q~) dv~/dt = f(q~, v~) + G_b(q~)' lambda,                    G_b v~ = 0
        q = q~ + U:  M(q~) U = h^2 f^p + G(q)' nu,                     g_b = 0,   0 <= g _|_ nu >= 0
        v = v~ + W:  M(q) W = h f^* + G(q)' Lambda,                    G_b v = 0,
                     0 <= G v + e G(q_n) v_n  _|_  Lambda >= 0   on contacts with nu >= g = 0

    ``f^p = f(q, v~) - f(q~, v~) + (G_b(q) - G_b(q~))' lambda`` and ``f^* = f(q, v) - f(q~, v~) + ... -
    (M(q) - M(q~)) dv~/dt`` are the forces by which the corrections act on the motion.

    Args:
        rho_inf: spectral radius at infinite frequency in [0, 1]; traced.
        smooth: forces of the smooth motion; the others act in ``U`` and ``W``. ``"constrained"``: as above.
            ``"free"``: ``lambda = 0``, constraints act in ``U`` and ``W`` alone; of first order with
            constraints, without them the same scheme. ``"zero"``: ``dv~/dt = 0``, so that ``f^p = f(q,
            v_n)`` and ``f^* = f(q, v)``: Euler's implicit rule, except that the forces of the position
            depend on the velocity ``v_n`` of the step before.
        relative_tolerance: ``tol_r`` of the criterion ``|r| < tol_r (sum_k |r_k| + tol_f)`` with the terms
            ``r_k`` of the dynamics; the paper's figures are computed with 1e-5.
        force_tolerance: ``tol_f`` [N].
        mass_scale: characteristic mass of the augmented multipliers [kg]; the solution does not depend on
            it, the number of solves does. None: the mass per velocity of all of them moving together. Where
            that is 1e5 times what a contact on a curved surface moves, contacts may open and close in turn
            until a step fails: give a smaller one.
        creep_correction: let half the last tangential impulse act on the position correction, up to
            Coulomb's bound there, impulses of impacts excepted. Without it (as published) a body that
            sticks on a slope creeps by ``h/2 g sin(slope)`` per second.
        tangent: tangent of the corrections. ``"full"``: linearised anew in each one, as published.
            ``"kept"``: that of an earlier step, which is remembered, and a new one if updates shrink by
            less than ten: more solves, of which few linearise (stiff beams). ``"auto"``: ``"kept"`` if the
            hint of the model (`System.tangent_hint`) says so, else ``"full"``. Constant structures are
            linearised once a run.
        max_iterations: linear solves of each subproblem before a step counts as failed. Jumps with friction
            are contact problems on the linearised dynamics (`nsjax.contact.solve`), others solve laws and
            dynamics together.
        criteria: thresholds that classify events; None: `nsjax.Criteria` with its defaults.

    Raises:
        InputError: for an unknown smooth motion, and for ``"full"``.

    Returns:
        A `Scheme`. ``traj.iterations`` counts linear solves, as the paper does; the largest numbers per
        step of the three problems are ``traj.carry.carry.memory.solves``.

    Order: 2 in position, velocity and constraint force on smooth motion, also with constraints; 1 at
    impacts, and in contact forces, which act over whole steps.

    Limits: the law of impact refers to the gap rate at the start of the step and the impulse acts at its
    end, so that even an elastic impact changes the energy, by O(h). Coulomb friction acts on velocity
    level, after [G20]. Derivatives through impacts need a regular mass matrix; the motion needs one only
    on the constraints. Where friction, dry joints and limits hold one motion together, their single forces
    are not unique, and by the creep correction positions depend on how the forces share the load, by up to
    ``dt^2 lambda / (2 m)``, and their derivatives by this part of those of ``lambda``.

    Source: [C (25), (33)-(51), Algorithm 1].

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> traj = nsjax.simulate(models.bouncing_ball(), schemes.nsga_decoupled(), dt=1e-2, time=1.0)
        >>> bool(traj.gap.min() >= -1e-12), int(traj.iterations.max())
        (True, 3)
    """
    if smooth == "full":
        raise InputError(
            "nsga_decoupled: smooth = 'full' needs the contacts that the later problems of the step find; "
            "use nsga_coupled(smooth='full')"
        )
    options = NsgaOptions(
        creep_correction=creep_correction, max_iterations=max_iterations, exchange=True, iteration=None,
        smooth=smooth, tangent=tangent,
    )  # fmt: skip
    return _scheme(
        "nsga_decoupled", options, criteria, rho_inf=rho_inf, relative_tolerance=relative_tolerance,
        force_tolerance=force_tolerance, mass_scale=mass_scale,
    )  # fmt: skip


@renamed_options(tolerance="relative_tolerance")
def nsga_neglected(
    rho_inf: Array | float = 0.8, *, relative_tolerance: Array | float = 1e-11,
    force_tolerance: Array | float = 1e-5, mass_scale: Array | float | None = None,
    creep_correction: bool = True, tangent: str = "auto", max_iterations: int = 30,
    criteria: Criteria | None = None,
) -> Scheme:  # fmt: skip
    """`nsga_decoupled` with ``f^p = f^* = 0``: cheaper corrections, wrong for stiff bodies at large steps.

    Args:
        rho_inf, relative_tolerance, force_tolerance, mass_scale, creep_correction, tangent,
            max_iterations, criteria: see `nsga_decoupled`.

    Order: as `nsga_decoupled`.

    Limits: an elastic body does not rebound in time, or not at all, where ``f^p`` matters: with steps
    that do not resolve its waves.

    Source: [C (31)].

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> nsjax.simulate(models.bouncing_ball(), schemes.nsga_neglected(), dt=1e-2, time=1.0).q.shape
        (101, 1)
    """
    options = NsgaOptions(
        creep_correction=creep_correction, max_iterations=max_iterations, exchange=False, iteration=None,
        tangent=tangent,
    )  # fmt: skip
    return _scheme(
        "nsga_neglected", options, criteria, rho_inf=rho_inf, relative_tolerance=relative_tolerance,
        force_tolerance=force_tolerance, mass_scale=mass_scale,
    )  # fmt: skip


@renamed_options(tolerance="relative_tolerance")
def nsga_coupled(
    rho_inf: Array | float = 0.8, *, smooth: str = "constrained", iteration: str = "block",
    relative_tolerance: Array | float = 1e-11, force_tolerance: Array | float = 1e-5,
    mass_scale: Array | float | None = None, creep_correction: bool = True, tangent: str = "auto",
    max_iterations: int = 100, criteria: Criteria | None = None,
) -> Scheme:  # fmt: skip
    """The original nonsmooth generalized-alpha scheme: all operators at the total state ``(q, v)``.

    The three problems of `nsga_decoupled` without ``f^p`` and ``f^*``, but with ``M``, ``f`` and ``G`` of
    the smooth motion, too, taken at ``q = q~ + U`` and ``v = v~ + W``: they depend on each other.

    Args:
        smooth: forces of the smooth motion. ``"constrained"``, ``"free"``, ``"zero"``: as in
            `nsga_decoupled`; the last is Euler's implicit rule to the letter, ``q = q_n + h v`` in flight.
            ``"full"``: constraints and resting contacts on acceleration level as well::

                M dv~/dt = f + G' lambda,    G_b dv~/dt + dG_b/dt v = 0
                0 <= G dv~/dt + dG/dt v  _|_  lambda >= 0     on contacts with an impulse and at rest

            The laws on position and velocity then hold for whole impulses, including those of ``lambda``:
            an open contact takes back the part of its force that the accelerations remember.
        iteration: ``"block"``: one correction of each problem in turn, as published; contracts slowly, or
            not in ``max_iterations``, if a correction changes stiff forces. ``"monolithic"``: Newton on
            all rows at once, which has no such trouble, with matrices of three times the size.
        rho_inf, relative_tolerance, force_tolerance, mass_scale, creep_correction, tangent, criteria: see
            `nsga_decoupled`; ``"block"`` linearises anew whatever the tangent.
        max_iterations: rounds of ``"block"`` (three linear solves each) or steps of ``"monolithic"``
            before a step counts as failed. Those of ``"monolithic"`` may cycle between sticking and
            sliding: then the jump becomes a contact problem once, and as many steps follow.

    Raises:
        InputError: for an unknown iteration or smooth motion, and at the start of a run for ``"full"`` with
            friction.

    Order: as `nsga_decoupled`; ``"full"``: 2 also in the motion of contacts
    that stay closed; ``"free"`` with constraints and ``"zero"``: 1.

    Source: [B14]; [C section 3.1].

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> nsjax.simulate(models.bouncing_ball(), schemes.nsga_coupled(), dt=1e-2, time=1.0).q.shape
        (101, 1)
    """
    choose("nsga_coupled", "iteration", iteration, ITERATIONS)
    options = NsgaOptions(
        creep_correction=creep_correction, max_iterations=max_iterations, exchange=False,
        iteration=iteration, smooth=smooth, tangent=tangent,
    )  # fmt: skip
    return _scheme(
        "nsga_coupled", options, criteria, rho_inf=rho_inf, relative_tolerance=relative_tolerance,
        force_tolerance=force_tolerance, mass_scale=mass_scale,
    )  # fmt: skip
