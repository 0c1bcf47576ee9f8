"""Elements of a model file without an equivalent here, each as a sentence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nsjax.multibody.files.actuators import acting_on
from nsjax.multibody.files.geometries import pairs, uneven
from nsjax.multibody.files.source import SWITCHES, Source, gathered, listed
from nsjax.multibody.files.thrusters import thrusts
from nsjax.multibody.files.tree import BALL, FREE

COUNTS = (
    ("nflex", "flexible bodies (flex) are left out"), ("nplugin", "plugins are left out"),
    ("nmocap", "bodies moved by mocap stand still"),
)  # fmt: skip
"""Elements without an equivalent part, by the names of their counts in the model."""

SILENT = {
    "warmstart", "filterparent", "refsafe", "sensor", "midphase", "eulerdamp", "autoreset", "nativeccd",
    "island", "multiccd", "override", "energy", "fwdinv", "invdiscrete", "sleep", "diagexact",
}  # fmt: skip
"""Flags that concern only the solver and outputs of MuJoCo, or that are obeyed without a sentence."""


def left_out(source: Source, contact: bool) -> list[str]:
    """Sentences about elements left out; those about contacts only if contacts are read."""
    model = source.model
    said = [f"{getattr(model, n)} {what}" for n, what in COUNTS if getattr(model, n, 0)]
    said += gathered([*_of_joints(source), *_of_bodies(source)])
    said += list(_of_contacts(source)) if contact else []
    return said + _of_flags(source)


def _of_flags(source: Source) -> list[str]:
    """Sentences about mechanics that the file switches off, and about unknown flags."""
    mujoco, option, said = source.mujoco, source.model.opt, []
    off = [what for what in SWITCHES if source.off(what) and what != "filterparent"]
    if off:
        said.append(f"the file switches off {', '.join(off)}: so it is here")
    known = {flag for flags in SWITCHES.values() for flag in flags} | {x.upper() for x in SILENT}
    strange = []
    for bits, prefix, given in (
        (mujoco.mjtDisableBit, "mjDSBL_", option.disableflags),
        (mujoco.mjtEnableBit, "mjENBL_", option.enableflags),
    ):
        named = {
            int(x): n.removeprefix(prefix) for n, x in bits.__members__.items() if n.startswith(prefix)
        }
        ones = [1 << k for k in range(31) if int(given) >> k & 1]
        strange += [
            named.get(one, f"of value {one}").lower() for one in ones if named.get(one) not in known
        ]
    if strange:
        said.append(f"flags that are not looked at: {listed(strange)}")
    return said


def _of_joints(source: Source) -> Iterator[tuple[str, str]]:
    model = source.model
    for k in range(model.njnt):
        kind, dof, who = int(model.jnt_type[k]), int(model.jnt_dofadr[k]), source.called("joint", k)
        if kind in (FREE, BALL):
            if model.dof_frictionloss[dof]:
                yield "balls and free joints whose dry friction is left out", who
            if np.any(model.jnt_stiffness[k]) and kind == FREE:
                yield "free joints whose stiffness is left out", who
            if model.jnt_limited[k]:
                yield "balls whose limit (a cone) is left out", who
        poly = getattr(model, "dof_dampingpoly", None)
        curved = getattr(model, "jnt_stiffnesspoly", None)
        if (poly is not None and np.any(poly[dof])) or (curved is not None and np.any(curved[k])):
            yield "joints whose stiffness or damping of higher order is left out", who
        still = source.off("actuation") or not source.actuators
        if model.jnt_actgravcomp[k] and (model.jnt_actfrclimited[k] or still):
            yield "joints whose gravity compensation acts without their actuators and their bound", who
        acting = acting_on(source, k) if model.jnt_actfrclimited[k] else []
        if len(acting) > 1 or any(thrusts(source, x) for x in acting):
            yield "joints whose bound of the sum of all actuators is left out", who


def _of_bodies(source: Source) -> Iterator[tuple[str, str]]:
    model = source.model
    for b in range(1, model.nbody):
        if source.merged(b) and source.own_name("body", b):
            home = source.place(b).body
            yield (
                f"bodies without mass and joint, which are part of {home!r} here",
                source.called("body", b),
            )


def _of_contacts(source: Source) -> Iterator[str]:
    model, met = source.model, list(pairs(source))
    if not met:
        return
    yield from gathered(uneven(source))
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
