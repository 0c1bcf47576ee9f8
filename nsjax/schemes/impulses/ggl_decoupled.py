"""Moreau's velocity step with positions projected onto contacts and constraints."""

from __future__ import annotations

from nsjax.contact.criteria import Criteria
from nsjax.core.scheme import Scheme
from nsjax.schemes.choices import within
from nsjax.schemes.impulses.moreau import Coefficients, MoreauOptions, moreau_family
from nsjax.types import Array


def ggl_decoupled(
    *,
    force_velocity: str = "auto",
    metric: str = "auto",
    joint_damping: str = "explicit",
    tolerance: float = 1e-11,
    stage_tolerance: float = 1e-12,
    gap_tolerance: float = 1e-12,
    penetration_tolerance: Array | float = 0.0,
    max_iterations: int = 50,
    criteria: Criteria | None = None,
) -> Scheme:
    """Moreau's velocity step, then a projection of the position: no penetration, no drift.

    With ``q_tilde`` the position after Moreau's step, for all contacts and constraints::

        q_{i+1} = q_tilde + D_M Psi,     0 <= g_N(q_{i+1})  _|_  Psi_N >= 0,     g_B(q_{i+1}) = 0

    Args:
        force_velocity: see `moreau`.
        metric: metric of the projection. ``"euclidean"``: ``D_M = W_M``, the nearest point in the
            coordinates, as published. ``"kinetic"``: ``D_M = M_M^-1 W_M``, the nearest point by kinetic
            energy, independent of units. ``"auto"``: kinetic for models with rotations, else Euclidean.
        joint_damping: see `moreau`.
        tolerance: bound on the relative natural-map residual of each contact problem.
        stage_tolerance: bound on the estimated next update of the projection, divided by dt and relative to
            ``1 + |v|``.
        gap_tolerance: contacts with ``g_N(q_M)`` up to this value take part in the velocity step [m]. It is
            above zero because projected gaps are zero to rounding only.
        penetration_tolerance: depth up to which the projection leaves a penetration [m]: its law has
            ``g_N + penetration_tolerance`` in place of ``g_N``. Studer's remedy for the change of energy by
            the projection.
        max_iterations: largest number of plain Newton steps per contact problem.
        criteria: thresholds that classify events; None: `nsjax.Criteria` with its defaults.

    Returns:
        A `Scheme`.

    Order: 1 in position and velocity.

    Limits: the projection does work, so the energy is not controlled: single steps raise it, the more the
    larger dt is. Explicit forces bound dt as in `moreau`. Forces at the start velocity also lose energy, in
    proportion to dt. Coulomb friction acts on velocity level; the paper does not treat friction.

    Source: [S&U&S (29)-(35)]; with rotations the correction is an increment of `System.retract`.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> traj = nsjax.simulate(*models.bouncing_ball(), schemes.ggl_decoupled(), dt=1e-2, time=1.0)
        >>> bool(traj.gap.min() >= 0)
        True
    """
    coef = Coefficients(
        tolerance=tolerance, stage_tolerance=stage_tolerance, gap_tolerance=gap_tolerance,
        penetration_tolerance=within("ggl_decoupled", "penetration_tolerance", penetration_tolerance, 0.0),
    )  # fmt: skip
    options = MoreauOptions(
        force_velocity=force_velocity,
        max_iterations=max_iterations,
        project_contacts=True,
        metric=metric,
        joint_damping=joint_damping,
    )
    return moreau_family("ggl_decoupled", coef, options, criteria)
