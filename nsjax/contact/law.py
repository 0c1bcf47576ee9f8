"""The parameters of Newton's impact law and Coulomb's friction law, and forces that are given."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.contact.problem import GivenNormals
from nsjax.types import Array, record


@record(static=("follow", "load_tangents"))
class ContactLaw:
    """Coefficients of all contacts, each a scalar or one number per contact (nc,).

    Args:
        restitution: ``e_N`` in [0, 1]: the gap rate after an impact is at least ``-e_N`` times the
            one before it.
        restitution_tangential: ``e_T`` in [0, 1], the same for tangential velocities.
        friction: Coulomb's ``mu >= 0``.
        load: (k,) normal forces [N] of the last k contacts, which are given instead of found: see
            `nsjax.contact.bounded`. None: none is.
        follow: for each of these, the index of the contact whose normal force it shares; -1: the force is
            that of ``load``; (): that of ``load`` for all.
        load_tangents: tangents of each of these contacts that are not empty, the first ones.

    Limits: Newton's restitution relates velocities, not energies. Where friction ends or reverses sliding
    in an oblique impact, it may add kinetic energy (Kane and Levinson 1985). With one restitution ``e`` in
    all directions and contacts it never does: ``(1 + e) dE = P.(u+ + e u-) - (1 - e)/2 P.G P``, and neither
    part is positive.

    Example:
        >>> from nsjax import ContactLaw
        >>> ContactLaw(restitution=0.4, friction=0.01).restitution_tangential
        0.0
    """

    restitution: Array | float = 0.0
    restitution_tangential: Array | float = 0.0
    friction: Array | float = 0.0
    load: Array | None = None
    follow: Any = ()
    load_tangents: int = 1

    @property
    def loads(self) -> int:
        """Contacts whose normal force is given."""
        return 0 if self.load is None else int(self.load.shape[0])

    def given(self, nc: int, duration: Array | float) -> GivenNormals | None:
        """Normal impulses [N s] by ``load`` in a time [s], zero in an impact; None if there is none."""
        if self.load is None or not nc:
            return None
        others = nc - self.loads
        impulses = jnp.concatenate([jnp.zeros(others), self.load * duration])
        leads = (-1,) * others + self.follow if self.follow else ()
        on = np.arange(nc) >= others
        return GivenNormals(on=on, normal=impulses, leads=leads, tangents=self.load_tangents)

    def row_restitution(self, nc: int, nt: int) -> Array:
        """Restitution of every contact row (nc (1 + nt),), contact by contact."""
        normal = jnp.broadcast_to(jnp.asarray(self.restitution, float), (nc,))[:, None]
        tangent = jnp.broadcast_to(jnp.asarray(self.restitution_tangential, float), (nc,))[:, None]
        return jnp.concatenate([normal] + [tangent] * nt, axis=1).reshape(-1)

    def friction_of(self, nc: int) -> Array:
        """Friction coefficient of every contact (nc,)."""
        return jnp.broadcast_to(jnp.asarray(self.friction, float), (nc,))
