"""Actuators, couplings and tendons of files, against the library that reads them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, read_mjcf
from tests.multibody.files.oracle import compared, mujoco, quiet

# Activations of actuators, bounds of joints, and equalities of tendons, of model files.
SLEDGE = """<mujoco><option gravity="0 0 -9.81"/><worldbody>{}<body name="a" pos="0 0 0.3">
<joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
<geom type="box" size="0.1 0.1 0.1" mass="2"/></body></worldbody><actuator>
<general name="slow" joint="x" dyntype="filterexact" dynprm="0.05" ctrlrange="-1 1" gainprm="3"/>
<general name="sum" joint="x" dyntype="integrator" gainprm="0.5"/><motor name="m" joint="z"/></actuator>
<keyframe><key name="k" qpos="0.1 0" qvel="0.3 0" act="0.4 -0.2" ctrl="2 0.7 0.6"/></keyframe></mujoco>"""


def test_activations_of_a_key_frame() -> None:
    """``a = u + (a0 - u) exp(-t / T)`` with the control at its bound, ``a0 + u t``, and what they push."""
    file = quiet(read_mjcf, SLEDGE.format(""))
    problem = file.problem("k")
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=1e-3, steps=200)
    t, T = np.asarray(traj.t), 0.05
    slow, total = traj["slow.activation"], traj["sum.activation"]
    np.testing.assert_allclose(slow, 1.0 - 0.6 * np.exp(-t / T), rtol=0, atol=1e-4)  # order 2
    np.testing.assert_allclose(total, -0.2 + 0.7 * t, rtol=0, atol=1e-12)
    push = 3.0 * t + 3.0 * 0.6 * T * (np.exp(-t / T) - 1.0) - 0.1 * t + 0.175 * t**2
    np.testing.assert_allclose(traj.joint("x").rate, 0.3 + push / 2.0, rtol=0, atol=1e-4)
    again = file.problem().replace(file.controls["k"])
    assert float(again.params.commands["slow"]) == 2.0
    assert float(again.params.model["m"].own.control) == 0.6
    assert not np.any(again.state.v)


BOUNDED = """<mujoco><worldbody><body name="a"><joint name="x" type="slide" axis="1 0 0"
 actuatorfrcrange="-2 3"/><geom size="0.1" mass="2"/><body name="b"><joint name="y" type="slide"/>
<geom size="0.1"/></body></body></worldbody>
<tendon><fixed name="t"><joint joint="y" coef="1"/></fixed></tendon>
<actuator>{}</actuator><sensor><jointactuatorfrc name="s" joint="x"/></sensor></mujoco>"""


@pytest.mark.parametrize("control", [-5.0, 0.4, 5.0])
def test_the_bound_of_a_joint(control: float) -> None:
    """Of one actuator it acts behind its gear, as in mujoco; the sum of several is told."""
    file = quiet(read_mjcf, BOUNDED.format('<motor name="m" joint="x" gear="2"/>'), contact=False)
    assert not any("bound of the sum" in x for x in file.left_out)
    motor = next(x for x in file if x.name == "m")
    effort = motor.option("law")(0.0, jnp.zeros(()), jnp.zeros(()), _with(motor.numbers.own, control))
    assert float(effort) == min(max(2.0 * control, -2.0), 3.0)
    assert file.sensors["s"].of == ("m",)


def _with(own: Any, control: float) -> Any:
    return own.__class__(**{**vars(own), "control": control})


def test_which_bounds_are_told() -> None:
    """By the joints on which actuators act, whatever their numbers are."""
    in_tendon = quiet(read_mjcf, BOUNDED.format('<motor name="m" tendon="t"/>'), contact=False)
    assert not any("bound of the sum" in x for x in in_tendon.left_out)  # tendon 0 is not joint 0
    both = '<motor name="m" joint="x"/><position name="n" joint="x" kp="2"/>'
    several = quiet(read_mjcf, BOUNDED.format(both), contact=False)
    assert "joints whose bound of the sum of all actuators is left out: 'x'" in several.left_out
    assert next(x for x in several if x.name == "m").numbers.own.joint_range is None
    stop = (
        '<intvelocity name="m" joint="y" kp="1" actrange="-1 1"/>'
        '<motor name="n" joint="y" delay="0.1" nsample="5"/>'
    )
    told = quiet(read_mjcf, BOUNDED.format(stop), contact=False).left_out
    assert any("actuators whose stop of its activation (it goes on beyond actrange" in x for x in told)
    assert any("actuators whose delay is left out: 'n'" in x for x in told)


MUSCLES = (
    "<mujoco><option gravity='0 0 -9.81'/><worldbody><site name='w' pos='-0.2 0 0.3'/><body name='a'>"
    "<joint name='j' axis='0 1 0'/><geom type='capsule' size='0.03' fromto='0 0 0 0.4 0 0' mass='1'/>"
    "<geom name='drum' type='cylinder' size='0.08 0.1' pos='0 0 0.1' zaxis='0 1 0' mass='0.1'/>"
    "<site name='s' pos='0.3 0 0.05'/><body pos='0.4 0 0'><joint name='k' axis='0 1 0'/>"
    "<geom type='capsule' size='0.03' fromto='0 0 0 0.3 0 0' mass='0.5'/><site name='t' pos='0.2 0 0.1'/>"
    "</body></body></worldbody><tendon><spatial name='one'><site site='w'/><geom geom='drum'/>"
    "<site site='s'/></spatial><spatial name='two'><site site='s'/><site site='t'/></spatial></tendon>"
    "<actuator><muscle name='m' tendon='one' lengthrange='0.3 0.7' force='40' ctrlrange='0 1'/>"
    "<muscle name='n' tendon='two' lengthrange='0.1 0.4' range='0.8 1.1' scale='20' lmin='0.6' lmax='1.5'"
    " vmax='2' fpmax='1.1' fvmax='1.4' timeconst='0.02 0.06' tausmooth='0.3' gear='1.3'/>"
    "<general name='p' joint='k' gaintype='muscle' dyntype='filter' dynprm='0.05' gear='0.2'"
    " gainprm='0.75 1.05 30 200 0.5 1.6 1.5 1.3 1.2' lengthrange='-0.3 0.4' forcerange='-8 5'/>"
    "</actuator><sensor><actuatorfrc name='fm' actuator='m'/><actuatorfrc name='fn' actuator='n'/>"
    "<actuatorfrc name='fp' actuator='p'/></sensor></mujoco>"
)  # fmt: skip


@pytest.mark.parametrize("wound", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_muscles(wound: bool) -> None:
    """Forces, rates of activations and accelerations of the library, at random states and controls."""
    worst = compared(MUSCLES if wound else MUSCLES.replace("<geom geom='drum'/>", ""), states=40, wide=1.2)
    assert max(worst[x] for x in ("actuatorfrc", "activations", "accelerations")) < 1e-12
    assert not [x for x in quiet(read_mjcf, MUSCLES, contact=False).left_out if "actuator" in x]


@pytest.mark.slow
def test_a_muscle_that_is_excited() -> None:
    """The activation rises by ``a' = (1 - a) / (T (1 + 3 a) / 2)``, and its derivatives agree."""
    file = quiet(read_mjcf, MUSCLES, contact=False)
    problem = file.problem().replace({file.activations.key("m"): 1.0})

    def at_the_end(rising: Any) -> Any:
        made = problem.replace({"time_constants.m.rising": rising})
        run = nsjax.simulate(*made, schemes.generalized_alpha(), dt=1e-3, steps=30)
        return run["m.activation"][-1]

    value, slope = jax.jit(lambda x: jax.jvp(at_the_end, (x,), (1.0,)))(0.01)

    def exact(T: float) -> float:
        return solve_ivp(lambda t, a: (1.0 - a) / (T * (0.5 + 1.5 * a)), (0.0, 0.03), [0.0], rtol=1e-10,
                         atol=1e-12).y[0, -1]  # fmt: skip

    assert abs(float(value) - exact(0.01)) < 1e-3
    wide = (exact(0.0101) - exact(0.0099)) / 2e-4
    assert abs(float(slope) - wide) < 5e-3 * abs(wide)
    assert abs(float(jax.jit(jax.grad(at_the_end))(0.01) - slope)) < 1e-9 * abs(wide)


SEVERAL = (
    '<dcmotor name="d" joint="x" motorconst="1" resistance="1" input="pos vel" controller="1 0 5"/>'
    '<position name="p" joint="y" kp="2" ctrlrange="-1 0.5" gear="3"/>'
)


def test_an_actuator_behind_one_with_several_controls() -> None:
    """Bounds, gear and key frame are those of its own control."""
    key = '<keyframe><key name="k" ctrl="0.1 0.2 0.3"/></keyframe><sensor>'
    text = BOUNDED.format(SEVERAL).replace("<sensor>", key)
    try:
        mujoco.MjModel.from_xml_string(text)
    except ValueError:
        pytest.skip("this version of mujoco has one control an actuator")
    file = quiet(read_mjcf, text, contact=False)
    own = next(x for x in file if x.name == "p").numbers.own
    assert (tuple(own.control_range), own.gear) == ((-1.0, 0.5), 3.0)
    assert file.controls["k"] == {"p.own.control": 0.3}
    assert any("are left out: 'd'" in x for x in file.left_out)


def test_a_start_of_ones_own() -> None:
    """Kept by ``problem``, as its activations are; numbers of parts stand in ``model`` then."""
    file = quiet(read_mjcf, SLEDGE.format(""), contact=False)
    problem = file.problem({"x": (0.2, 0.5)})
    assert tuple(problem.state.q) == (0.2, 0.0)
    assert tuple(problem.state.v) == (0.5, 0.0, 0.0, 0.0)
    given = {"slow.own.control": 0.3, "m.own.control": 0.4, "a.mass": 3.0, "gravity": np.zeros(3)}
    params = problem.replace({file.activations.place(k): x for k, x in given.items()}).params
    assert (params.commands["slow"], params.model["m"].own.control, params.model["a"].mass) == (
        0.3,
        0.4,
        3.0,
    )
    assert file.activations.place("initial_v") == "initial_v"


# Couplings of model files: accelerations with equalities held rigidly, against the package `mujoco`.

MASS = "<inertial pos='0.1 0.05 -0.1' mass='{}' diaginertia='0.2 0.3 0.25'/>"
ARM = (
    "<mujoco><compiler angle='radian'/><worldbody><body name='a' pos='0 0 1'>"
    "<joint name='j1' axis='0 1 0' ref='0.3' stiffness='3' damping='0.2'/>" + MASS.format(1.5)
    + "<body name='b' pos='0.4 0 0' euler='0.2 0.1 0'>"
    "<joint name='j2' axis='1 0 0.5' damping='0.1'/>" + MASS.format(0.8)
    + "<body name='c' pos='0.3 0.1 0'><joint name='j3' type='slide' axis='0 0.6 0.8' ref='0.05'/>"
    + MASS.format(0.5) + "</body></body>"
    "<body name='d' pos='-0.3 0 0'><joint name='j4' axis='0 0 1'/>" + MASS.format(0.7) + "</body></body>"
    "</worldbody><equality>{}</equality></mujoco>"
)  # fmt: skip


def test_what_does_not_couple_yet_is_there_to_be_switched() -> None:
    text = ARM.format("<joint joint1='j1' joint2='j2' active='false'/>")
    file = quiet(read_mjcf, text)
    assert not file.left_out
    assert next(x for x in file if x.kind == "coupling").numbers.active == 0.0


def test_a_weld_that_leaves_turns_free() -> None:
    """``torquescale='0'`` holds points alone: it is a ball, as the library's rows of it are."""
    weld = "<weld name='w' body1='c' body2='d' anchor='0.1 0 0' torquescale='{}'/>"
    files = [quiet(read_mjcf, ARM.format(weld.format(scale))) for scale in (0, 1)]
    kinds = [next(x.kind for x in file if x.name == "w") for file in files]
    assert kinds == ["ball", "fixed"]


# Tendons of model files: lengths, accelerations and forces of actuators, against the package `mujoco`.

TENDONS = (
    "<mujoco><compiler angle='radian'/><worldbody><site name='w' pos='0.5 0.2 1.6'/>"
    "<site name='w2' pos='-0.6 0.1 1.2'/><body name='a' pos='0 0 1'>"
    "<joint name='j1' axis='0 1 0' ref='0.3' stiffness='3' damping='0.2'/>" + MASS.format(1.5)
    + "<site name='sa' pos='0.1 0.2 0.1'/><site name='sa2' pos='-0.2 0.1 0.15'/>"
    "<body name='b' pos='0.4 0 0' euler='0.2 0.1 0'>"
    "<joint name='j2' axis='1 0 0.5' damping='0.1'/>" + MASS.format(0.8)
    + "<site name='sb' pos='0.2 -0.1 0.3'/>"
    "<body name='c' pos='0.3 0.1 0'><joint name='j3' type='slide' axis='0 0.6 0.8' ref='0.05'/>"
    + MASS.format(0.5) + "<site name='sc' pos='0.1 0.1 0.1'/></body></body>"
    "<body name='d' pos='-0.3 0 0'><joint name='j4' axis='0 0 1'/>" + MASS.format(0.7)
    + "<site name='sd' pos='-0.1 0.2 -0.1'/>"
    "<body name='e'><site name='se' pos='-0.2 0.1 0.4'/></body></body></body>"
    "<body name='f' pos='1 1 1'><freejoint/>" + MASS.format(0.6)
    + "<site name='sf' pos='0 0.1 0.1'/></body>"
    "</worldbody><tendon>{}</tendon><actuator>{}</actuator><sensor>{}</sensor></mujoco>"
)  # fmt: skip


FIXED = "<joint joint='j1' coef='0.4'/><joint joint='j3' coef='-1.2'/><joint joint='j4' coef='0.3'/>"


def test_numbers_of_a_file() -> None:
    text = TENDONS.format(
        f"<fixed name='t' limited='true' range='-0.1 0.3' frictionloss='0.7'>{FIXED}</fixed>", "", ""
    )
    problem = assemble(*(file := quiet(read_mjcf, text)), gravity=file.gravity)
    assert problem.system.labels.contacts[-2:] == ("t.lower", "t.upper")
    assert problem.system.labels.dry_frictions == ("t",)
    t = problem.params["t"]
    assert (t.lower, t.upper, t.friction, t.restitution) == (-0.1, 0.3, 0.7, 0.0)


def test_tendons_that_are_left_out_are_told() -> None:
    """Of one whose side site lies within its geometry in some positions only; with its actuators."""
    text = TENDONS.format(
        "<spatial name='t'><site site='w'/><geom geom='ball' sidesite='sa'/><site site='sd'/></spatial>"
        f"<fixed name='u' armature='0.1'>{FIXED}</fixed>",
        "<motor name='m' tendon='t'/>", "",
    ).replace("<site name='sf'", "<geom name='ball' size='0.9' mass='0'/><site name='sf'")  # fmt: skip
    file = quiet(read_mjcf, text)
    assert any("their side site lies in some positions are left out" in x for x in file.left_out)
    assert any("act on a tendon that is left out" in x for x in file.left_out)
    assert any("tendons whose armature is left out" in x for x in file.left_out)
    assert [x.name for x in file if x.kind in ("tendon", "joint_tendon")] == ["u"]


def test_a_tendon_over_a_ball_is_told() -> None:
    text = (
        "<mujoco><worldbody><body><joint name='b' type='ball'/><geom size='0.1'/><body><joint name='h'/>"
        "<geom size='0.1'/></body></body></worldbody><tendon><fixed name='t'><joint joint='h' coef='1'/>"
        "<joint joint='b' coef='2'/></fixed></tendon></mujoco>"
    )
    file = quiet(read_mjcf, text)
    assert any("tendons that run over a ball or free joint are left out" in x for x in file.left_out)
    file.problem()
