"""Readers of model files, `read_mjcf` and `read_urdf`, their result, and what they leave out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nsjax.core import InputError, Problem, nearest
from nsjax.core.arguments import check_switches
from nsjax.core.errors import listed
from nsjax.multibody.assemble import EQUILIBRIUM, assembled
from nsjax.multibody.couplings import KINDS as COUPLINGS
from nsjax.multibody.files.actuators import Activations, acting_on, activations, actuators, thrusts
from nsjax.multibody.files.geometries import contacts, meshes, of_urdf, pairs, uneven
from nsjax.multibody.files.model_source import (
    Masses,
    add_floor,
    checked_density,
    compiled,
    library,
    made_as_given,
    opened,
    strange_elements,
)
from nsjax.multibody.files.source import SWITCHES, Source, gathered, listening
from nsjax.multibody.files.starts import key_names, moved_far, sensors, start, starts
from nsjax.multibody.files.tendons import tendons
from nsjax.multibody.files.texts import robot, sentence
from nsjax.multibody.files.tree import BALL, FREE, bodies, equalities
from nsjax.multibody.parts import Part
from nsjax.multibody.sensors import Sensor
from nsjax.multibody.start import StartArguments, at_rest

# Elements of a model file without an equivalent here, each as a sentence.


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


# Readers of model files, `read_mjcf` and `read_urdf`, and their result.


Path = str | os.PathLike[str]


class LeftOutWarning(UserWarning):
    """An element of a model file has no equivalent here and is left out."""


class ModelFile(list[Part]):
    """Parts of a model file, with its gravity, starts, controls and sensors.

    Args:
        parts: parts of the mechanism.
        gravity: (3,) [m/s^2].
        start: positions of the reference position that are not zero, for `assemble`, within joint limits.
        starts: start of every key frame by its name, with velocities where the key frame has some.
        controls: controls of the actuators in every key frame, for ``problem.replace``.
        names: identifiers by ``(kind, name in the file)``.
        left_out: a sentence about each element that was left out.
        title: the file.
        sensors: sensors with an equivalent, by name, for `Trajectory.sensor` and `nsjax.stepper`.
        activations: filters and integrators of the controls of actuators.

    Example:
        >>> from nsjax.multibody import read_mjcf
        >>> text = "<mujoco><worldbody><body name='a'><geom size='0.1'/></body></worldbody></mujoco>"
        >>> [part.kind for part in read_mjcf(text) if part.name == "a"]
        ['body']
    """

    def __init__(
        self, parts: Sequence[Part], *, gravity: Any, start: dict[str, Any],
        starts: dict[str, dict[str, Any]], controls: dict[str, dict[str, float]],
        names: dict[tuple[str, str], str], left_out: tuple[str, ...], title: str,
        sensors: dict[str, Sensor], activations: Activations | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parts)
        self.gravity, self.names = gravity, names
        self.start, self.starts, self.controls = start, starts, controls
        self.left_out, self.title, self.sensors = left_out, title, sensors
        self.activations = activations or Activations()

    def __str__(self) -> str:
        kinds = dict.fromkeys(part.kind for part in self)
        lines = [(kind, [part.name for part in self if part.kind == kind]) for kind in kinds]
        lines += [("key frame", list(self.starts)), ("sensor", list(self.sensors))]
        wide = max(len(kind) for kind, _ in lines)
        shown = [f"{kind:<{wide}}  {', '.join(map(str, names))}" for kind, names in lines if names]
        return "\n".join([self.title, *shown, *(f"left out: {said}" for said in self.left_out)])

    def problem(
        self, start: str | Mapping[str, Any] | None = None, coordinates: str = "joint"
    ) -> Problem:  # fmt: skip
        """The mechanism of the file, with its gravity; actuators with an activation have the delay of
        `nsjax.with_actuator_dynamics`.

        Args:
            start: name of a key frame, used with its controls; None: the file's reference position;
                ``"equilibrium"``: rest near the reference position, see `assemble`; or positions and
                velocities in the form of `assemble`, in place of those of the reference position, which in
                a file with loops or couplings then is the ``guess``. In such a file, the reference position
                or key frame is moved to the nearest position and velocity that keep them, with a warning
                where that is far.
            coordinates: see `assemble`.

        Raises:
            InputError: for an unknown key frame, with the nearest known one, and as `assemble`.
        """
        bound = any(part.option("loop") or part.kind in COUPLINGS for part in self)
        if isinstance(start, Mapping):
            whole = StartArguments(start, self.start) if bound else StartArguments({**self.start, **start})
            made = assembled(tuple(self), self.gravity, coordinates, whole)
            return self.activations.added(made, None)
        resting = start == EQUILIBRIUM and start not in self.starts
        start = None if resting else start
        if start is not None and start not in self.starts:
            raise InputError(
                f"{self.title}: no key frame {start!r}; {nearest(start, list(self.starts))}"
                if self.starts
                else f"{self.title}: start = {start!r}, and the file has no key frames; leave it out"
            )
        given = self.start if start is None else self.starts[start]
        begin = StartArguments(near=given) if bound else StartArguments(start=given)
        found = assembled(tuple(self), self.gravity, coordinates, begin)
        which = "the reference position" if start is None else f"key frame {start!r}"
        said = moved_far(found.system.parts, found.state.q, given, which) if bound else ""
        if said:
            warnings.warn(f"{self.title}: {said}", LeftOutWarning, stacklevel=2)
        found = self.activations.added(at_rest(found) if resting else found, start)
        return found if start is None else found.replace(self.controls[start])


def read_mjcf(
    path_or_text: Path, *, restitution: Any = 0.0, friction: Any = None, contact: bool = True,
    self_contact: bool = True, capacity: int | None = None, concavity: float | None = None,
) -> ModelFile:  # fmt: skip
    """Parts of a mechanism in MuJoCo's format MJCF.

    The parts of a file are:

    * bodies with their inertias; hinges, slides, balls and free bodies with limits, damping, armature, dry
      friction and springs; several joints of one body with bodies without mass, ``body_joint``, between;
    * equality constraints: connect and weld as a `ball` and a `fixed` joint that close loops; those of
      joints (``<mimic>`` of a URDF) and of tendons as a `coupling`; those that are not active at the start
      with ``active=False``, to be switched on by ``resets`` of `nsjax.simulate`, see `hinge`;
    * tendons: fixed ones as a `joint_tendon`, those through sites, about geometries and over pulleys as a
      `tendon`;
    * motors, position and velocity servos and muscles in hinges, slides and tendons, whose control is
      ``params["name"].own.control``;
    * the medium (density, viscosity, wind) as a `fluid_drag` on every body, ``"body_medium"``,
      or as an `ellipsoid_drag` on every geometry with such a ``fluidshape``;
    * geometries as contacts, for the pairs that `contact` knows; meshes as their convex hulls, or, with
      ``concavity``, those that are not convex as `convex_pieces`.

    Where `assemble` puts the parts together, controls of filtered or integrated actuators act directly. The
    method ``problem`` adds their activations by `nsjax.with_actuator_dynamics`; their control then is
    ``params.commands["name"]``. Names become words of letters, digits and _; if two elements have the same
    name, the kind of the second is appended to its name. Coordinates are those of the file, except for
    balls, whose quaternion is the rotation of the body relative to its parent.

    ``start`` is the file's reference position and ``starts["home"]`` the key frame of this name, with
    velocities where it has some (``key0``, ``key1``, ... without a name). ``controls["home"]`` are the
    controls of the key frame, for ``model.problem().replace(model.controls["home"])``. Coordinates outside
    the limits of a hinge or slide are moved to the nearest limit, with a warning. Key frames give all
    coordinates. In a file with loops or couplings, which they close only to printed digits, give them as
    ``guess`` of `assemble`.

    Flags of the file that switch off contact, limits, equality constraints, dry friction, springs, dampers,
    gravity, actuators or the bounds of controls are obeyed.

    Elements without an equivalent are named in a `LeftOutWarning` and in ``left_out``. Contacts, limits and
    equality constraints are soft in MuJoCo, and rigid here, with the given restitution and friction.

    The integrators of files take dampers of joints implicitly, ``implicitfast`` and ``implicit`` also gains
    of servos, ``RK4`` nothing. ``schemes.moreau(joint_damping="implicit")`` does as the second, and takes
    the steps of such files where `nsjax.simulate` warns of the explicit one.

    Args:
        path_or_text: path of a file, or its text.
        restitution: of contacts and limits, in [0, 1].
        friction: of all contacts, see `contact`; None: that of the file (1 where it gives none), with
            torsional friction for ``condim="4"``, and also rolling friction for ``condim="6"``.
        contact: whether geometries become contacts.
        self_contact: whether bodies of one tree, the links of a robot, may touch each other; pairs that the
            file names always may. Without these contacts programs of robots are many times smaller.
        capacity: candidate pairs of a step, see `contact_group`.
        concavity: divides meshes that are not convex, see `convex_pieces`; None: they touch as their hulls.

    Returns:
        A list of parts with the attributes ``gravity``, ``start``, ``starts``, ``controls``, ``names``,
        ``left_out``, ``title``, ``sensors``, and the method ``problem``.

    Raises:
        InputError: naming file, element and remedy.
        ImportError: without the package `mujoco`, naming the extra.

    Limits: with ``coordinates="absolute"``, `assemble` refuses bodies without mass. Every pair of
    geometries that may meet is a contact; of more than 60 a step evaluates those that are near, see
    ``capacity``. Files of textures, and of shapes that give no inertia, may be missing. Pictures show
    the geometries that MuJoCo's viewer shows (groups 0 to 2), with at most some 12,000 triangles, and no
    colours of the file.

    Example:
        >>> from nsjax.multibody import assemble, read_mjcf
        >>> text = '''<mujoco><worldbody><body name="bob" pos="0 0 1"><joint name="pin" axis="0 1 0"/>
        ... <inertial pos="0 0 -0.5" mass="2" diaginertia="0.1 0.1 0.01"/></body></worldbody></mujoco>'''
        >>> model = read_mjcf(text)
        >>> [part.name for part in model]
        ['bob', 'pin']
        >>> assemble(*model, gravity=model.gravity, start=model.start).system.labels.q
        ('pin.angle [rad]',)
    """
    check_switches("read_mjcf", contact=contact, self_contact=self_contact)
    with listening(library()) as heard:
        spec, title, _ = opened(path_or_text, "read_mjcf")
        model, said = compiled(spec, title, "read_mjcf")
    source = Source(
        library(), model, title, restitution, friction, capacity=capacity, self_contact=self_contact,
        concavity=concavity,
    )  # fmt: skip
    return _made(source, contact, [*heard, *said])


def read_urdf(
    path_or_text: Path, free: bool = False, *, floor: float | None = None, restitution: Any = 0.0,
    friction: Any = None, contact: bool = True, self_contact: bool | None = None,
    capacity: int | None = None, density: float | None = None, concavity: float | None = None,
) -> ModelFile:  # fmt: skip
    """Parts of a mechanism in the format URDF, read like `read_mjcf`.

    Args:
        path_or_text: path of a file, or its text.
        free: whether the root link moves freely; else it is fixed to the ground.
        floor: height of a level floor, named ``floor``, that all collision geometries may touch [m]; None:
            there is no floor.
        restitution: of contacts and limits.
        friction: of all contacts; None: frictionless, since a URDF gives no friction.
        contact: whether collision geometries become contacts.
        self_contact: whether links may touch each other, except those that a joint connects; None: they may
            not, and a sentence of ``left_out`` says so. Collision geometries of robots often penetrate each
            other at the start, and programs with these contacts are many times larger.
        capacity: candidate pairs of a step, see `contact_group`.
        concavity: divides meshes that are not convex, see `convex_pieces`; None: they touch as their hulls.
        density: of the collision shapes of links without an inertial, or with one without mass or moments,
            which then have the inertia of these shapes, scaled to the mass where the inertial has one
            [kg/m^3]; None: incomplete inertials are refused, and links without have 1000. A sentence of
            ``left_out`` names them.

    Raises:
        InputError: naming file, element and remedy.
        ImportError: without the package `mujoco`, naming the extra.

    A floating joint carries no force: its link is a free body, wherever it hangs in the file, and starts
    where the coordinates above it place it. A joint that mimics another one starts where that one has it.
    Links with impossible moments of inertia (one exceeds the sum of the others) get the nearest possible
    moments; links without moments are point masses. A warning names both.

    Limits: a URDF has no ground: give a ``floor``, or add ``contact(...)`` between shapes of your own and a
    `plane` of the ground. Meshes as collision geometry are read as their convex hulls.
    Pictures show visual geometries, of meshes in STL, OBJ and MSH; else those for collisions.

    Example:
        >>> from nsjax.multibody import read_urdf
        >>> text = '''<robot name="r"><link name="a"><inertial><mass value="1"/>
        ... <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'''
        >>> read_urdf(text, free=True).start
        {}
    """
    check_switches("read_urdf", free=free, contact=contact, self_contact=self_contact or False)
    given = checked_density(density)
    masses = Masses()
    with listening(library()):  # elements that it ignores are named below
        spec, title, bare = opened(path_or_text, "read_urdf", None if given is None else masses)
        floats = library().mjtJoint.mjJNT_FREE
        roots = [x for x in spec.worldbody.bodies if all(k.type != floats for k in x.joints)]
        for root in roots if free else []:
            try:
                root.add_freejoint()
            except (ValueError, RuntimeError) as error:
                raise sentence("read_urdf", title, error) from None
        names = [root.name for root in roots] if free else []
        if floor is not None:
            add_floor(spec, floor)
        model, said = compiled(spec, title, "read_urdf", names)
    if given is None:
        masses |= {x.name: None for x in spec.bodies if not x.explicitinertial}
    said += made_as_given(model, masses, given)
    followers = int(np.sum(model.eq_type == library().mjtEq.mjEQ_JOINT))
    said += strange_elements(bare, followers)
    source = Source(
        library(), model, title, restitution, friction, own_friction=False, capacity=capacity,
        self_contact=self_contact, held_roots=True, concavity=concavity,
        visuals=of_urdf(library(), robot(bare), title),
    )  # fmt: skip
    whole = float(np.sum(model.body_mass))
    dummy = 1e-6  # part of the mass of a file below which a free root is told: a root that stands for none
    for root in roots:
        mass = float(model.body(root.name).mass[0])
        if free and 0.0 < mass < dummy * whole:
            said.append(f"root link {root.name!r} moves freely with {mass:.3g} of {whole:.3g} kg")
        if free or not mass > 0.0 or model.body(root.name).jntnum[0]:
            continue
        said.append(
            f"root link {root.name!r} is held by the ground, and its inertia without effect; free=True "
            "lets it move"
        )
    return _made(source, contact, said)


def _made(source: Source, contact: bool, said: list[str]) -> ModelFile:
    """The model of a file, with a warning about elements left out."""
    pulled, untied = tendons(source)
    lines = {part.name for part in pulled}
    closed, more = equalities(source, lines)
    driven, still_more = actuators(source, lines)
    met, unknown = contacts(source) if contact else ([], [])
    measured, unmeasured = sensors(source, {part.name for part in driven}, lines)
    at, moved = start(source)
    motors = {part.name for part in driven}
    delayed = activations(source, motors, key_names(source))
    keys, controls, also = starts(source, motors, delayed.key)
    said = [*said, *left_out(source, contact), *more, *untied, *still_more, *unknown, *unmeasured]
    said += [*moved, *also]
    if said:
        warnings.warn(f"{source.title}: {'; '.join(said)}", LeftOutWarning, stacklevel=3)
    gravity = np.array(source.model.opt.gravity, float) * (not source.off("gravity"))
    names = {
        (kind, own): word for (kind, k), word in source.names.items() if (own := source.own_name(kind, k))
    }
    return ModelFile(
        [*bodies(source, meshes(source)), *closed, *pulled, *driven, *met], gravity=gravity,
        start=at, starts=keys, controls=controls, names=names, left_out=tuple(said), title=source.title,
        sensors=measured, activations=delayed,
    )  # fmt: skip
