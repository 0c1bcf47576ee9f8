"""What ends and stations of beams are called, wherever a body is named; contacts of groups."""

from __future__ import annotations

from nsjax.multibody import assemble, beam, force, section

SOFT = section(EA=100.0, GA=100.0, EI=1.0, GJ=1.0, line_mass=1.0, line_inertia=0.01)


def _pull(t, scene, own):
    return -own * scene.position("b.end")


def pulled(name: str, **start):
    return assemble(
        beam("b", (0, 0, 0), (1, 0, 0), elements=2, section=SOFT, stations={"mid": 0.5}),
        force("F", "b.end", law=_pull, own=0.5),
        start={name: ((0.5, 0.0, 0.0), (0.0, 1.0, 0.0)), **start},
    )  # fmt: skip
