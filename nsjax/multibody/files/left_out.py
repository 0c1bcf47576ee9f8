"""What of a model file has no equal here, in a sentence each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nsjax.multibody.files.shapes import listed, pairs
from nsjax.multibody.files.source import Source
from nsjax.multibody.files.tree import BALL, FREE

COUNTS = (
    ("ntendon", "tendons: they neither pull nor bind"), ("nsensor", "sensors: ask the trajectory by name"),
    ("nflex", "flexible bodies (flex)"), ("nplugin", "plugins"), ("nkey", "key frames: give start"),
    ("nmocap", "bodies moved by mocap: they stand still"),
)  # fmt: skip
"""Elements of which there is no part, by the sizes of the model."""

RIGID_DOFS = (("dof_armature", "armature"), ("dof_frictionloss", "dry friction"))
"""Of hinges and slides alone."""


def left_out(source: Source) -> list[str]:
    """Sentences."""
    model = source.model
    said = [f"{getattr(model, n)} {what} are left out" for n, what in COUNTS if getattr(model, n, 0)]
    said += list(_of_joints(source))
    said += list(_of_bodies(source))
    said += list(_of_contacts(source))
    option = model.opt
    if option.density or option.viscosity:
        said.append("the medium (density, viscosity, wind) does not act on the bodies")
    off = int(option.disableflags) & ~int(source.mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
    if off:
        bits = [x.name.removeprefix("mjDSBL_").lower() for x in source.mujoco.mjtDisableBit if off & int(x)]
        said.append(f"flags that switch off {', '.join(bits)} are not looked at")
    return said


def _of_joints(source: Source) -> Iterator[str]:
    model = source.model
    for k in range(model.njnt):
        kind, dof, who = int(model.jnt_type[k]), int(model.jnt_dofadr[k]), source.said("joint", k)
        if kind in (FREE, BALL):
            for field, what in RIGID_DOFS:
                if getattr(model, field)[dof]:
                    yield f"{who} is a ball or free joint: its {what} is left out"
            if np.any(model.jnt_stiffness[k]) and kind == FREE:
                yield f"{who} is a free joint: its stiffness is left out"
            if model.jnt_limited[k]:
                yield f"{who} is a ball: its limit (a cone) is left out"
        poly = getattr(model, "dof_dampingpoly", None)
        curved = getattr(model, "jnt_stiffnesspoly", None)
        if (poly is not None and np.any(poly[dof])) or (curved is not None and np.any(curved[k])):
            yield f"{who} has stiffness or damping of higher order: it is left out"
        if model.jnt_actgravcomp[k]:
            yield f"{who}: gravity compensation by its actuator is left out"
        if model.jnt_actfrclimited[k] and np.any(model.actuator_trnid[:, 0] == k):
            yield f"{who}: the bound of the sum of its actuators is left out"


def _of_bodies(source: Source) -> Iterator[str]:
    model = source.model
    for b in range(1, model.nbody):
        if model.body_gravcomp[b]:
            yield f"{source.said('body', b)}: its gravity compensation is left out"
        if source.merged(b) and source.own_name("body", b):
            home = source.place(b).body
            yield f"{source.said('body', b)} has no mass and no joint: its shapes are those of {home!r}"


def _of_contacts(source: Source) -> Iterator[str]:
    model, met = source.model, list(pairs(source))
    if not met:
        return
    used = sorted({g for one, other, _ in met for g in (one, other)})
    softened = [
        source.names["geom", g]
        for g in used
        if not np.allclose(model.geom_solref[g], (0.02, 1.0))
        or not np.allclose(model.geom_solimp[g], (0.9, 0.95, 0.001, 0.5, 2.0))
        or model.geom_margin[g]
        or model.geom_gap[g]
    ]
    if softened:
        yield (
            f"softness of contact (solref, solimp, margin) of {listed(softened)} is replaced by rigid "
            f"contact with restitution {source.restitution}"
        )
    twisting = [source.names["geom", g] for g in used if model.geom_condim[g] > 3]
    if twisting:
        yield f"friction against spinning and rolling of {listed(twisting)} is left out"
