"""What the contacts of a mechanism say at a state, as one program."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.operators import prepared


class Contacts:
    """Gaps, rates along a velocity, second derivatives, slips, rates of the points that meet, and where
    these are on the first bodies.
    """

    def __init__(self, problem: Any) -> None:
        self.params = problem.params
        self.system = system = problem.system
        self.mechanism = mechanism = system.gap.__self__
        zero = jnp.zeros(())
        p = prepared(system, jax.tree.map(lambda x: jnp.asarray(x, float), problem.params))

        def run(q: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
            fresh = system.refresh(zero, q, p)
            gap = lambda xi: system.gap(zero, system.retract(q, xi), fresh)  # noqa: E731
            rest = jnp.zeros(system.nv)
            value, rate = jax.jvp(gap, (rest,), (v,))
            second = jax.jvp(lambda xi: jax.jvp(gap, (xi,), (v,))[1], (rest,), (v,))[1]
            scene, toward = mechanism.scene(zero, q, v, fresh), []
            meetings = mechanism.named.meetings(scene, fresh)

            a = scene.algebra

            def moved(own: Any, name: str, x: jax.Array) -> Any:
                """Velocity of a point of a body, or what a beam says of its own."""
                return scene.motion(name, a.subtract(x, scene.frame(name).origin)) if own is None else own

            for meeting in meetings:
                one = moved(meeting.moving, meeting.first, meeting.here)
                other = moved(meeting.carried, meeting.second, meeting.there)
                toward.append(jnp.reshape(a.dot(meeting.normal, a.subtract(one, other)), -1))
            here = [jnp.stack([jnp.ravel(c) for c in x.here]) for x in meetings]
            places = jnp.concatenate(here, axis=1)
            return value, rate, second, system.slip(zero, q, v, fresh), jnp.concatenate(toward), places

        self.run = jax.jit(run)
        names = [x.split(".")[0] for x in system.labels.contacts]
        self.rows = {name: np.array([x == name for x in names]) for name in dict.fromkeys(names)}
