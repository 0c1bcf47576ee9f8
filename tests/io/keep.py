"""Writes the files that tests of later versions read: ``python -m tests.io.keep``, once, for a release."""

from __future__ import annotations

import pathlib

import numpy as np

import nsjax
from nsjax import io, models, schemes
from nsjax.multibody import assemble, body, contact, hinge, joint_spring, plane, sphere

FOLDER = pathlib.Path(__file__).parent / "files"
LENGTHS = {"dt": 1e-3, "steps": 100, "every": 20}


def mechanism() -> nsjax.Problem:
    """A pendulum with a spring over a floor: records of parts, joints and shapes."""
    return assemble(
        body("rod", mass=1.0, inertia=0.1, com=0.5),
        hinge("pin", "ground", "rod", limits=(-2.0, 1.0)),
        joint_spring("coil", "pin", stiffness=2.0, damping=0.1),
        contact("floor", sphere("rod", 0.05, at=1.0), plane(at=(0.0, -0.5)), restitution=0.5, friction=0.3),
        gravity=9.81,
    )


RUNS = {
    "moreau": (models.bouncing_ball, schemes.moreau()),
    "generalized_alpha": (models.bouncing_ball, schemes.generalized_alpha()),
    "nsga_decoupled": (models.bouncing_ball, schemes.nsga_decoupled()),
    "mechanism": (mechanism, schemes.moreau()),
}
"""Problem and scheme of every file of a version."""


def main() -> None:
    """Writes the files of this version, each with the end of the run that continues it."""
    nsjax.configure()
    version = "_".join(nsjax.__version__.split(".")[:2])
    for name, (made, scheme) in RUNS.items():
        problem = made()
        traj = nsjax.simulate(*problem, scheme, **LENGTHS, notes=True)
        rest = nsjax.simulate(*problem, scheme, **LENGTHS, carry=traj.carry)
        ends = {"then_q": np.asarray(rest.q[-1]), "then_v": np.asarray(rest.v[-1])}
        path = FOLDER / f"version_{version}_{name}.npz"
        io.save(path, problem, traj, scheme=scheme, **ends)
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
