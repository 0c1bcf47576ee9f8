"""What inputs, filters, steps, couplings and linear motions refuse, and the remedy that they name."""

from __future__ import annotations

import types
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, models, schemes
from nsjax.contact.few_contacts import widths
from nsjax.core.inputs import check_constants
from nsjax.multibody import assemble, body, contact, coupling, force, hinge, plane, sphere, spheres
from nsjax.multibody.coordinates.absolute import _unmeasured
from tests.control.mechanisms import hopper


def sledge(**more: Any) -> nsjax.Problem:
    return assemble(
        body("sledge", mass=1.0, inertia=0.1),
        contact("foot", sphere("sledge", 0.1), plane(), friction=0.3),
        force("push", "sledge", (0.0, 0.0)), gravity=9.81, start={"sledge": (0.0, 0.1, 0.0)}, **more,
    )  # fmt: skip


def islands() -> nsjax.Problem:
    return assemble(
        *(y for x in ("left", "right") for y in (
            body(x, mass=1.0, inertia=0.1), contact(f"{x}_foot", sphere(x, 0.1), plane()),
        )),
        force("push", "left", (0.0, 0.0)), gravity=9.81, coordinates="absolute",
    )  # fmt: skip


def prescribed() -> nsjax.Problem:
    return assemble(
        body("a", mass=1.0, inertia=0.1), hinge("A", "ground", "a", motion=lambda t: t),
        coupling("held", "A", polynomial=(0.0,)),
    )  # fmt: skip


def balls() -> nsjax.Problem:
    places = np.array([[0.0, 0.0, 0.2], [0.0, 0.0, 0.5]])
    return spheres(0.1, 1.0, places)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nsjax.analysis.linearise(sledge().replace(initial_v=[1.0, 0.0, 0.0]), contacts=["foot"]),
         "linearise: contact 'foot' slides with friction 0.3; sliding contacts must have none: give a "
         "state in which it rests, set its friction to zero, or leave it out of contacts"),
        (lambda: nsjax.filtered(sledge(), {"push.value": 0.1}),
         r"filtered: 'push.value' has the shape \(2,\); name an entry"),
        (lambda: nsjax.filtered(islands(), {"push.value[0]": 0.1}),
         "filtered: first-order actuators do not work with islands of bodies; assemble with coordinates="
         '"joint", or filter the command with nsjax.table or in the policy instead'),
        (lambda: nsjax.filtered(hopper(), {"motor": 0.1}, ranges={"drive": (0.0, 1.0)}),
         "filtered: ranges has 'drive', which has no time constant; give it one"),
        (lambda: nsjax.filtered(hopper(), {"motor": 0.1}, ranges={"motor": (1.0, 0.0)}),
         r"filtered: range \(1.0, 0.0\) of 'motor'; give a pair of the least and the largest command"),
        (lambda: nsjax.stepper(hopper(), schemes.moreau(), 1e-3, inputs=["motor"]).reset(
            nsjax.driven(hopper(), {"motor": 0.5}).params),
         "reset: params are those of a problem with inputs; give problem.params"),
        (prescribed, "has a prescribed motion; leave one out"),
        (lambda: widths(jnp.zeros((2, 3)), jnp.zeros((4, 5)),
                        types.SimpleNamespace(system=types.SimpleNamespace(nc=2), followers=(0, 0)), 4),
         "it has a capacity, and the memory of the scheme cannot be divided by contacts; leave capacity "
         "out, or take another scheme"),
        (lambda: nsjax.driven(balls(), {"gravity": 1.0}),
         "inputs do not work with a contact_group that has a capacity; leave the capacity out"),
        (lambda: nsjax.driven(models.elastic_bar(), {"young": 1.0}),
         "promises to be constant over a run; drop constant=True of it"),
        (lambda: check_constants(
            nsjax.driven(models.bouncing_ball(), {"gravity": 9.0}).params,
            lambda p: 2.0 * p.signals["gravity"].value),
         r"enters what the scheme computes once for a run \(the mass, for instance\); keep it constant, or "
         "take another scheme"),
    ],
)  # fmt: skip
def test_refusals(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_a_joint_without_a_coordinate_is_not_measured() -> None:
    with pytest.raises(TypeError, match="ball has no coordinate"):
        _unmeasured(None, types.SimpleNamespace(kind="ball"), None)
