"""`read_mjcf` and `read_urdf`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nsjax.core import InputError, Problem, nearest
from nsjax.multibody.assemble import EQUILIBRIUM, assembled
from nsjax.multibody.body_sensors import Sensor
from nsjax.multibody.couplings import KINDS as COUPLINGS
from nsjax.multibody.files.absent import listening
from nsjax.multibody.files.actuators import Activations, activations, actuators
from nsjax.multibody.files.equalities import equalities
from nsjax.multibody.files.geometries import contacts
from nsjax.multibody.files.left_out import left_out
from nsjax.multibody.files.model_source import compiled, library, opened, strange_elements
from nsjax.multibody.files.refusals import sentence
from nsjax.multibody.files.sensors import sensors
from nsjax.multibody.files.source import Source
from nsjax.multibody.files.starts import key_names, start, starts
from nsjax.multibody.files.tendons import tendons
from nsjax.multibody.files.tree import bodies
from nsjax.multibody.parts import Part
from nsjax.multibody.start import Begin, at_rest

Path = str | os.PathLike[str]


class LeftOutWarning(UserWarning):
    """Something of a model file has no equal here."""


class ModelFile(list[Part]):
    """Parts that were read from a model file, and what stands beside them in it.

    Args:
        parts: of it.
        gravity: (3,) [m/s^2].
        start: positions of the file that are not zero, for `assemble`; inside the limits of joints.
        starts: the same of every key frame by its name, with velocities where it has some.
        controls: of the actuators in every key frame, for ``problem.replace``.
        names: identifiers by ``(kind, name in the file)``.
        left_out: what was not taken over, a sentence each.
        title: the file.
        sensors: that have an equal, by name, for `Trajectory.sensor` and `nsjax.stepper`.
        activations: of actuators that answer with a delay, or integrate their control.

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
        """The mechanism of the file, with its gravity; actuators with an activation are `nsjax.filtered`.

        Args:
            start: name of a key frame, with its controls; None: the file's reference position;
                ``"equilibrium"``: at rest near it, as of `assemble`. In a file with loops or couplings it
                is the nearest position, and velocity, that keep them. Or positions and velocities as of
                `assemble`, kept beside the reference position.
            coordinates: as of `assemble`.

        Raises:
            InputError: for an unknown key frame, with the nearest known one, and as `assemble`.
        """
        bound = any(part.option("loop") or part.kind in COUPLINGS for part in self)
        if isinstance(start, Mapping):
            whole = Begin(start, self.start) if bound else Begin({**self.start, **start})
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
        near = bound and (start is not None or any(part.kind in COUPLINGS for part in self))
        begin = Begin(near=given) if near else Begin(start=given)
        found = assembled(tuple(self), self.gravity, coordinates, begin)
        found = self.activations.added(at_rest(found) if resting else found, start)
        return found if start is None else found.replace(self.controls[start])


def read_mjcf(
    path_or_text: Path, *, restitution: Any = 0.0, friction: Any = None, contact: bool = True,
    capacity: int | None = None,
) -> ModelFile:  # fmt: skip
    """Parts of a mechanism in MuJoCo's format MJCF.

    Bodies with their inertias, hinges, slides, balls and free bodies with limits, damping, armature, dry
    friction and springs, several on one body (by bodies without mass between them, named
    ``body_joint``); equality constraints connect and weld as a `ball` and a `fixed` joint that close
    loops, those of joints (``<mimic>`` of a URDF) and of tendons as a `coupling`; tendons, fixed ones as a
    `joint_tendon`, those through sites and pulleys as a `tendon`; motors and servos (position, velocity)
    in hinges, slides and tendons, whose control is ``params["name"].own.control``; the medium (density,
    viscosity, wind) as a `fluid_drag` on every body, ``"body_medium"``; geometries as contacts, as far as
    `contact` knows their pairs. Actuators that filter or integrate their control act
    at once where `assemble` puts the parts together: the method ``problem`` adds their activations by
    `nsjax.filtered`, and their control is ``params.commands["name"]`` then. Names become words of letters,
    digits and _; a name that two elements have gets the kind of the second. Coordinates are those of the
    file, but for balls: their quaternion turns the axes of the body against those of its parent.

    ``start`` is the file's reference position, ``starts["home"]`` its key frame of that name, with
    velocities where it has some (``key0``, ``key1``, ... without a name), and ``controls["home"]`` what its
    actuators then get in ``model.problem()``: ``problem.replace(model.controls["home"])``. Coordinates
    outside the limits of a hinge or slide are read at the nearest end, and told. Key frames give all
    coordinates: in a file with loops or couplings, which they close to their printed digits only, give them
    as ``guess`` of `assemble`.

    Flags of the file that switch off contact, limits, equality constraints, dry friction, springs,
    dampers, gravity, actuators or their bounds do so here.

    The integrators of files take dampers of joints implicitly, ``implicitfast`` and ``implicit`` gains of
    servos, too, ``RK4`` nothing: ``schemes.moreau(joint_damping="implicit")`` does as the second, and takes
    the steps of such files where `nsjax.simulate` warns of the explicit one.

    What has no equal here is told in a `LeftOutWarning`, and stands in ``left_out``. MuJoCo's contacts,
    limits and equality constraints are soft; here they are rigid, with the restitution and friction
    given.

    Args:
        path_or_text: a file, or what stands in one.
        restitution: of contacts and limits, in [0, 1].
        friction: of all contacts, see `contact`; None: that of the file (1 where it says nothing), with
            torsional friction of ``condim="4"`` and rolling friction, too, of ``condim="6"``.
        contact: whether geometries become contacts.
        capacity: pairs that a step looks at, as of `contact_group`, without torsional and rolling friction.

    Returns:
        A list of parts with the attributes ``gravity``, ``start``, ``starts``, ``controls``, ``names``,
        ``left_out``, ``title``, ``sensors``, and the method ``problem``.

    Raises:
        InputError: naming file, element and remedy.
        ImportError: without the package `mujoco`, naming the extra.

    Limits: coordinates="absolute" of `assemble` refuses nothing, but bodies without mass have no
    acceleration there. A pair of geometries is a contact whether they ever meet or not; of more than 60
    a step looks at those that are near, see ``capacity``. Meshes, and
    geometries for the eye alone, are not kept, and files of pictures, and of shapes from which no inertia
    comes, may be missing: pictures show shapes of contacts, lines between joints, and boxes of inertia.

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
    with listening(library()) as heard:
        spec, title, _ = opened(path_or_text, "read_mjcf")
        model, said = compiled(spec, title, "read_mjcf")
    source = Source(library(), model, title, restitution, friction, capacity=capacity)
    return _made(source, contact, [*heard, *said])


def read_urdf(
    path_or_text: Path, free: bool = False, *, restitution: Any = 0.0, friction: Any = None,
    contact: bool = True, capacity: int | None = None,
) -> ModelFile:  # fmt: skip
    """Parts of a mechanism in the format URDF; as `read_mjcf`.

    Args:
        path_or_text: a file, or what stands in one.
        free: whether the root link moves freely; else the ground holds it.
        restitution: of contacts and limits.
        friction: of all contacts; None: none, a URDF has no friction.
        contact: whether collision geometries become contacts.
        capacity: pairs that a step looks at, as of `contact_group`.

    Raises:
        InputError: naming file, element and remedy.
        ImportError: without the package `mujoco`, naming the extra.

    Links whose moments of inertia are no body's (one exceeds the sum of the others) get the nearest that
    are, links without moments are point masses; both are told.

    Limits: there is no ground in a URDF: add ``contact(...)`` against a `plane` of the ground, with
    shapes of your own. Meshes as collision geometry are not known, and none are drawn.

    Example:
        >>> from nsjax.multibody import read_urdf
        >>> text = '''<robot name="r"><link name="a"><inertial><mass value="1"/>
        ... <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'''
        >>> read_urdf(text, free=True).start
        {}
    """
    with listening(library()):  # what it ignores is told below
        spec, title, text = opened(path_or_text, "read_urdf")
        roots = list(spec.worldbody.bodies)
        for root in roots if free else []:
            try:
                root.add_freejoint()
            except (ValueError, RuntimeError) as error:
                raise sentence("read_urdf", title, error) from None
        names = [root.name for root in roots] if free else []
        model, said = compiled(spec, title, "read_urdf", names)
    followers = int(np.sum(model.eq_type == library().mjtEq.mjEQ_JOINT))
    said += strange_elements(text, followers)
    source = Source(library(), model, title, restitution, friction, own_friction=False, capacity=capacity)
    for root in roots if not free else []:
        if not model.body(root.name).mass > 0.0:
            continue
        said.append(
            f"root link {root.name!r} is held by the ground, and its inertia without effect; free=True "
            "lets it move"
        )
    return _made(source, contact, said)


def _made(source: Source, contact: bool, said: list[str]) -> ModelFile:
    """All parts; what is left out as a warning."""
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
        [*bodies(source), *closed, *pulled, *driven, *met], gravity=gravity,
        start=at, starts=keys, controls=controls, names=names, left_out=tuple(said), title=source.title,
        sensors=measured, activations=delayed,
    )  # fmt: skip
