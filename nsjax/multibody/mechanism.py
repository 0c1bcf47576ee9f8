"""Mechanism: the functions of the system of a topology, with params by the names of the parts."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.contact import ContactLaw, PoissonLaw, SpeedLaw
from nsjax.core import Labels, System, add, subtract
from nsjax.core.errors import InputError
from nsjax.core.keys import Prepared
from nsjax.core.signals import ready
from nsjax.math import taken
from nsjax.multibody import pictures, topology
from nsjax.multibody.contacts import gap_functions, named_contacts, turning_friction
from nsjax.multibody.contacts.heaps import Contacts
from nsjax.multibody.contacts.named_contacts import Lines, NamedContacts
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.absolute import Bodies
from nsjax.multibody.coordinates.frames import (
    MechanismConstants,
    Scene,
    downwards,
    holding,
    still_frames,
)
from nsjax.multibody.coordinates.planar import Dynamics, PlanarTree
from nsjax.multibody.coordinates.spatial import SpatialTree
from nsjax.multibody.couplings import kind_of as coupling_kind
from nsjax.multibody.joint_forces import JointDamping, OwnJoints
from nsjax.multibody.joints import kind_of
from nsjax.multibody.joints.friction_laws import Held, JointLaws
from nsjax.multibody.joints.joint_kind import axis_of
from nsjax.multibody.loads import has_line, length_of, line_of, potential, pushes, surfaces, wrenches
from nsjax.multibody.loads import kind_of as load_kind
from nsjax.multibody.numbers import CONSTANT, LAW
from nsjax.multibody.parts import Part, prescribed, user_laws
from nsjax.multibody.presence import ConstraintRows, Presence, Selection
from nsjax.multibody.reactions import Instant, joint_row, row_loads, switched_rates
from nsjax.multibody.sensors import (
    Sensor,
    body_row,
    coordinate_labels,
    input_name,
    load_row,
    observed,
    part_unit,
    sensed,
    titled,
    units_of_gaps,
    weigh,
)
from nsjax.multibody.topology import BODIES, Topology
from nsjax.types import Array, PyTree


@dataclasses.dataclass(frozen=True)
class Mechanism:
    """A topology and the features that its numbers have; its methods are the functions of the system.

    Args:
        topology: bodies, joints and loads, with their coordinates.
        presence: contacts, limits, motions and couplings that the parts have.
        few: whether it has only the contacts that a step has chosen, see
            `nsjax.multibody.presence.Selection`.
        kept: what its start keeps when numbers change, a `nsjax.multibody.kept_start.KeptStart`, or None.
    """

    topology: Topology
    presence: Presence
    few: bool = False
    kept: Any = None

    @property
    def dimension(self) -> int:
        """2 or 3."""
        return self.topology.dimension

    @functools.cached_property
    def tree(self) -> Any:
        """Kinematics and dynamics in the chosen coordinates."""
        if self.topology.coordinates == "absolute":
            return Bodies(self.topology)
        return PlanarTree(self.topology) if self.dimension == 2 else SpatialTree(self.topology)

    @functools.cached_property
    def contacts(self) -> Contacts | None:
        """Contacts of free bodies with groups of candidate pairs; None without such groups."""
        presence = self.presence
        if not presence.found:
            return None
        return Contacts(self.tree, presence.named, presence.found, presence.tangents)

    def gravity(self, p: PyTree) -> Any:
        """Gravity as a vector; a number acts downwards, along -y in the plane, along -z in space."""
        return downwards(p["gravity"], self.dimension)

    def prepare(self, p: PyTree) -> PyTree:
        """Params with the derived constants of joints and bodies, and with stacked numbers."""
        p = ready(p)
        absolute = self.topology.coordinates == "absolute"
        made = MechanismConstants(
            tree=self.tree.folded(p) if self.dimension == 3 or absolute else None,
            joints=self.own.stacked(p) if self.own.links else None,
            contacts=self.named.stacked(p) if self.named.many else None,
        )  # fmt: skip
        return Prepared(params=p, constants=made)

    @functools.cached_property
    def own(self) -> OwnJoints:
        """Loads, limits and dry friction of spatial joints whose coordinates are entries of ``q``."""
        return OwnJoints(self.topology, self.presence.limits, self.presence.dry_frictions)

    def scene(self, t: Array, q: Array, v: Array | None, p: PyTree) -> Scene:
        """All bodies and joints at an instant."""
        return self.scene_of(t, q, v, p, self.tree.frames(q, v, p))

    def scene_of(self, t: Array, q: Array, v: Array | None, p: PyTree, frames: Any) -> Scene:
        """All bodies, with given frames, and joints at an instant."""
        return Scene(self.dimension, t, frames, functools.partial(self._coordinate, q, v, p))

    def _coordinate(self, q: Array, v: Array | None, p: PyTree, scene: Scene, name: str) -> tuple[Any, Any]:
        part, link = self.topology.measured(name), self.topology.link_of_joint.get(name)
        if has_line(part):
            return length_of(scene, self.topology, part, p, v is not None)
        kind = kind_of(part)
        if link is not None and kind.has_coordinate(self.dimension):
            return q[link.q], None if v is None else v[link.v]
        measure: Any = kind.measure
        if v is None:
            still = dataclasses.replace(scene, frames=still_frames(scene))
            return self._whole(part, scene, q, p, measure(still, part, p[name])[0]), None
        x, rate = measure(scene, part, p[name])
        return self._whole(part, scene, q, p, x), rate

    def _whole(self, part: Part, scene: Scene, q: Array, p: PyTree, x: Any) -> Any:
        """A measured coordinate, with the full turns of an angle in space where these are known."""
        if self.dimension == 2 or not kind_of(part).winds:
            return x
        if part.option("motion") is not None:
            return topology.whole(x, prescribed(part, "motion", p[part.name], scene.time))
        if part.name not in self.topology.counted:
            return x
        gone = self.tree.turned(q)[self.topology.counted.index(part.name)]
        return topology.whole(x, jnp.sum(gone * axis_of(p[part.name], 3)))

    def mass(self, q: Array, p: PyTree) -> Array:
        """Mass matrix (nv, nv)."""
        return Dynamics(self.tree, q, p).mass() if self.dimension == 2 else self.tree.mass(q, p)

    def force(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """Generalised forces (nv,)."""
        loads = {}
        if self.own.others:
            scene = self.scene(t, q, v, p)
            loads = wrenches(scene, pushes(scene, self.topology, p, self.own.others))
        if self.topology.coordinates == "absolute" or self.dimension == 3:
            made: Array = self.tree.force(q, v, self.gravity(p), p, loads)
            if self.own.loads:
                made = made + self.own.efforts(t, q, v, p)
            for part in self.topology.line_loads:
                along: Any = load_kind(part).along
                made = made + along(self.topology, self.tree, part, t, q, p).reshape(-1)
            return made
        return Dynamics(self.tree, q, p).force(v, self.gravity(p), loads)

    def damping(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """Damping of the joints of a tree, (nv,) in space and (nv, nv) in the plane."""
        of = JointDamping(self.topology, self.own)
        if self.dimension == 3:
            return of.of_space(t, q, v, p)
        return of.of_plane(self.scene(t, q, v, p), self.tree.turns, self.tree.group, p)

    def switch(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """Surfaces (ns,) on which the laws of loads jump."""
        return jnp.concatenate(surfaces(self.scene(t, q, v, p), self.topology, p))

    @property
    def own_laws(self) -> bool:
        """Whether loads have laws of a user, which may jump; those of the package do not."""
        return user_laws((*self.topology.loads, *self.topology.line_loads))

    def inertia(self, q: Array, w: Array, p: PyTree) -> Array:
        """Product ``M w`` (nv,) of the mass matrix in absolute coordinates."""
        return self.tree.inertia(w, p)

    def potential(self, t: Array, q: Array, p: PyTree) -> Array:
        """Potential energy of gravity and springs [J]."""
        scene, gravity = self.scene(t, q, None, p), self.gravity(p)
        springs = potential(scene, self.topology, p)
        if self.topology.coordinates == "absolute":
            heights: Array = self.tree.weigh(q, p, gravity)
            return springs + heights
        return springs + weigh(scene, self.topology, p, gravity)

    def contact_rows(self, t: Array, q: Array, p: PyTree) -> tuple[Array, Array]:
        """Rows of the contacts (nc, 1 + nt, nv), and their rates at zero velocity (nc, 1 + nt)."""
        frames, spins, velocities = self.tree.frames_and_screws(q, None, p)
        scene = self.scene_of(t, q, None, p, frames)
        lines = Lines(self.named, scene, self.presence.tangents, p)
        wt = named_contacts.rows(self.tree, lines, (spins, velocities))
        offset = jnp.zeros(wt.shape[:2])
        if not self.presence.limits:
            return wt, offset
        place = lambda t, q: self.scene(t, q, None, p)  # noqa: E731
        limits = self.own.rows(place, self.tree.retract, (t, q), p, wt.shape[1])
        return jnp.concatenate([wt, limits[0]]), jnp.concatenate([offset, limits[1]])

    @property
    def knows_rows(self) -> bool:
        """Whether rows of contacts follow from the screws of all velocities: of rigid bodies in space."""
        some = self.named.pieces or self.presence.limits
        known = self.contacts is None and self.named.rigid and not self.presence.capstans
        return bool(some) and self.dimension == 3 and known

    @functools.cached_property
    def capstans(self) -> tuple[Part, ...]:
        """Ropes with capstan friction, whose stops are the first limits."""
        return tuple(self.topology.of[x] for x, _ in self.presence.limits[: self.presence.capstans])

    @functools.cached_property
    def named(self) -> NamedContacts:
        """Named contacts: all, or those of a step."""
        return self.presence.named.of_step if self.few else self.presence.named

    def refresh(self, t: Array, q: Array, p: PyTree) -> PyTree:
        """Params with the pairs that a step evaluates, and the points and features that it holds."""
        scene = self.scene(t, q, None, p)
        if self.chooses:
            p = holding(p, chosen=self.named.choose(scene, p))
        return holding(p, features=self.named.of_step.hold(scene, p))

    @property
    def chooses(self) -> bool:
        """Whether this mechanism has all contacts, of which a step evaluates only near ones."""
        return bool(self.presence.named.chosen) and not self.few

    def gap(self, t: Array, q: Array, p: PyTree) -> Array:
        """Gaps (nc,) of the contacts, then of the limits."""
        scene = self.scene(t, q, None, p)
        return gap_functions.flat([*self.named.gaps(scene, p), *self.own.gaps(scene, q, p)])

    def slip(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """Slip velocities (nc, nt) of the contacts, then of the limits: of ropes on drums, and zeros."""
        scene, nt = self.scene(t, q, v, p), self.presence.tangents
        limits, slips = len(self.presence.limits), self.named.slips(scene, p)
        rubs = [line_of(scene, self.topology, x, p).slip for x in self.capstans]
        own = [jnp.pad(jnp.stack(rubs)[:, None], [(0, 0), (0, nt - 1)])] if rubs else []
        still = [] if limits == len(rubs) else [jnp.zeros((limits - len(rubs), nt))]
        found = [*([] if slips is None else [slips]), *own, *still]
        return found[0] if len(found) == 1 else jnp.concatenate(found)

    def law(self, p: PyTree) -> ContactLaw:
        """The law of all contacts."""
        numbers: dict[str, Any] = self.named.law(p)
        limits = [name for name, _ in self.presence.limits]
        if limits:
            own = [jnp.broadcast_to(p[name].restitution, (1,)) for name in limits]
            none = jnp.zeros(len(limits))
            more = {key: [none] for key in numbers} | {"restitution": own}
            more["friction"] = [*(jnp.reshape(p[x.name].capstan_friction, (1,)) for x in self.capstans)]
            more["friction"] += [jnp.zeros(len(limits) - len(self.capstans))]
            more |= {key: [jnp.full(len(limits), x)] for key, x in CONSTANT.items() if key in numbers}
            numbers = {key: jnp.concatenate([x, *more[key]]) for key, x in numbers.items()}
        if len(numbers) > len(LAW):
            return SpeedLaw(**numbers)
        return PoissonLaw(**numbers) if self.presence.poisson else ContactLaw(**numbers)

    def constraint(self, t: Array, q: Array, p: PyTree) -> Array:
        """Residuals (nb - nh,) of joints that close loops, then of prescribed motions and couplings."""
        scene, found = self.scene(t, q, None, p), []
        batched = self.topology.coordinates == "absolute"
        for name in () if batched else self.topology.closures:
            part = self.topology.of[name]
            found += kind_of(part).constraint(scene, part, p[name])
        for name in self.presence.motions:
            part, (x, _) = self.topology.of[name], scene.coordinates(name)
            found.append(plane.plus(x, -prescribed(part, "motion", p[name], t)))
        for name in self.presence.couplings:
            part = self.topology.of[name]
            places = [scene.coordinates(joint)[0] for joint in part.option("joints")]
            found.append(coupling_kind(part).residual(p[name], places))
        if batched:
            own = self.tree.rows(t, q, p)
            rows = jnp.concatenate([own, gap_functions.flat(found)]) if found else own
            return taken(rows, np.array(self.rows.kept_numbers[0])) if self.rows.dropped else rows
        return gap_functions.flat([found[k] for k in self.rows.kept_numbers[0]])

    def velocity_constraint(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """Residuals (nh,) of the rows on velocities alone."""
        scene, of = self.scene(t, q, v, p), self.topology.of
        parts = [of[name] for name in self.topology.closures if kind_of(of[name]).rates is not None]
        found = [x for part in parts for x in kind_of(part).rates(scene, part, p[part.name])]  # type: ignore[misc]
        return gap_functions.flat([found[k] for k in self.rows.kept_numbers[1]])

    @functools.cached_property
    def rows(self) -> ConstraintRows:
        """Names of all constraint rows, and the rows that are left out."""
        return ConstraintRows(self.topology, self.presence)

    def dry_friction(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """Rates (nd,) of dry friction in joints, of rows that come and go, of friction against turning."""
        turning, switched = self.presence.turning, self.presence.switched
        if self.own.hold_dry_frictions and not turning and not switched:
            return self.own.rates(v)
        scene = self.scene(t, q, v, p)
        found: list[Any] = [scene.coordinates(name)[1] for name in self.presence.dry_frictions]
        found += [x for name, _ in switched for x in switched_rates(scene, self.topology.of[name], p[name])]
        if turning:
            found.append(turning_friction.rates(scene, self.named, p))
        return gap_functions.flat(found)

    @functools.cached_property
    def dry_friction_law(self) -> JointLaws | None:
        """Laws of the friction in joints and of rows that come and go, if any is not that of a bound."""
        names = self.presence.dry_frictions
        laws = tuple(self.topology.of[name].option("friction_law") for name in names)
        own = [name for name, law in zip(names, laws, strict=True) if law is not None]
        own += [name for name, _ in self.presence.switched]
        laws += tuple(Held("active") for _, rows in self.presence.switched for _ in rows)
        if own and self.presence.turning:
            what = "active" if own[0] not in names else "friction_law"
            what = "locked" if isinstance(laws[0], Held) and own[0] in names else what
            raise InputError(
                f"joint {own[0]!r}: {what} does not work beside torsional and rolling friction "
                f"({self.presence.turning[0]!r}); leave one of them out"
            )
        return JointLaws(laws) if own else None

    def dry_friction_bound(self, p: PyTree) -> Any:
        """Bounds (nd,) of dry friction, then of friction against turning; or numbers of the law."""
        if self.dry_friction_law is not None:
            rows = [name for name, own in self.presence.switched for _ in own]
            return tuple(p[name] for name in (*self.presence.dry_frictions, *rows))
        own = [jnp.asarray(p[name].friction, float) for name in self.presence.dry_frictions]
        if not self.presence.turning:
            return jnp.stack(own)
        turning = turning_friction.bounds(self.named, p)
        return jnp.concatenate([jnp.stack(own), turning]) if own else turning

    def observe(self, t: Array, q: Array, v: Array, output: Any, p: PyTree) -> dict[str, Array]:
        """Positions of the bodies by name."""
        return observed(self.scene(t, q, v, p), self.topology)

    def places(self, t: Array, q: Array, p: PyTree) -> Any:
        """Frames of all bodies that hang on one another, as a tree of arrays; None: of free bodies."""
        if self.topology.coordinates == "absolute":
            return None
        found = self.tree.frames(q, None, p)
        return found if self.dimension == 2 else found.every()

    def picture(self, places: Any, t: Array, q: Array, p: PyTree) -> shapes.Picture:
        """The picture of all parts, with bodies at ``places``."""
        frames = self.tree.frames(q, None, p) if places is None else places
        if places is not None and self.dimension == 3:
            frames = self.tree.named(places)
        scene, limits = self.scene_of(t, q, None, p, frames), len(self.presence.limits)
        meetings = self.named.meetings(scene, p)
        return pictures.picture(
            scene, self.topology, p, self.named, meetings, limits, self.presence.tangents
        )

    @property
    def unstored(self) -> tuple[str, ...]:
        """Names of springs whose law has no potential: the energy of a run leaves them out."""
        loads = [x for x in self.topology.loads if load_kind(x).energy is not None]
        return tuple(x.name for x in loads if x.option("law") and not x.option("potential"))

    @property
    def other_names(self) -> dict[str, str]:
        """Names of nodes of beams by the names of ends and stations."""
        return self.topology.other_names

    def part_names(self, kind: str) -> tuple[str, ...]:
        """Names of the bodies, of the joints, of the springs, motors and loads, or of the tendons."""
        topology = self.topology
        found = {"body": topology.all_of(*BODIES), "joint": topology.joints, "line": topology.lines}
        parts = {"load": topology.loads, **found}[kind]
        more = tuple(self.other_names) if kind == "body" else ()
        return tuple(part.name for part in parts) + more

    def part_row(
        self, kind: str, name: str, t: Array, q: Array, v: Array, output: Any, p: PyTree
    ) -> dict[str, Array]:
        """Quantities of a body, joint or load at a row, see `nsjax.core.System.parts`."""
        if kind == "body":
            name = self.other_names.get(name, name)
            node = self.topology.of[name].kind == "node"
            own = None if node else (p[name].mass, p[name].inertia, p[name].com)
            weight = own or self.tree.weight_of(name, p)
            return body_row(self.scene(t, q, v, p), name, self.gravity(p), weight)
        if kind in ("sensor", "acceleration"):
            what: Any = Sensor(name, "acceleration", (name,)) if kind == "acceleration" else name
            return {"value": sensed(self, what, t, q, v, output, p)}
        if kind == "load":
            return load_row(self.scene(t, q, v, p), self.topology, name, p)
        forces, impulses = row_loads(output)
        return joint_row(Instant(self, t, q, v, p, forces), name, impulses)

    def part_unit(self, name: str, field: str) -> str:
        """Unit of a quantity of a joint or load that depends on its kind."""
        return part_unit(self.topology, name, field)

    def input_name(self, name: str, params: PyTree) -> str:
        """Path, in params, of the input of a motor, force or torque, see `nsjax.with_inputs`."""
        return input_name(name, params) if name in self.part_names("load") else name

    def labels(self) -> Labels:
        """Names and units."""
        q, v, observables = coordinate_labels(self.topology)
        rows = self.rows.present
        shapes, limits = self.presence.contacts, tuple(".".join(x) for x in self.presence.limits)
        return Labels(
            q=q, v=v, contacts=shapes + limits, constraints=rows, dry_frictions=self.presence.bounded,
            observables=observables, gaps=units_of_gaps(len(shapes), self.presence.limits, self.topology),
        )  # fmt: skip

    @property
    def translations(self) -> tuple[tuple[int, ...], ...]:
        """Groups of velocities, each of which moves bodies without turning them or bending a joint."""
        return self.topology.translations

    def system(self) -> System:
        """The system of this mechanism."""
        (nq, nv), names, frictionless = self.topology.sizes, self.labels(), self.presence.frictionless
        nc, nb, nd = (len(x) for x in (names.contacts, names.constraints, names.dry_frictions))
        followed, discs = turning_friction.followed(self.named, nd - len(self.presence.turning))
        if self.few:
            limits, rubs = len(self.presence.limits), self.presence.capstans
            nc = sum(self.named.rows) + limits
            frictionless = limits - rubs + (0 if rubs else self.named.frictionless)
            nd = len(followed) or nd
            names = dataclasses.replace(names, contacts=(), gaps=(), dry_frictions=())
        nt, nh = self.presence.tangents if nc else 0, len(self.rows.kept_numbers[1])
        absolute, spatial = self.topology.coordinates == "absolute", self.dimension == 3
        given: dict[str, Any] = {"mass": self.mass}
        if absolute:
            joined = bool(self.presence.turning) or self.presence.poisson
            given = self.tree.structure(self, self.presence.touching, joined)
        if self.knows_rows:
            given["rows"] = self.contact_rows
        given |= Selection(self).promises()
        contacts: Any = self.contacts or self
        if self.contacts is not None:
            given = {"inertia": self.inertia} | self.contacts.promises()
        refreshed = self.named.searched or self.contacts is not None or self.chooses
        flat = not spatial or (not absolute and self.tree.flat)
        beams = self.topology.all_of("beam")  # the tangent needs the stiffness of beams
        # number of velocities up to which a planar mechanism iterates with its full tangent, with more with
        # that of the mass, which is then faster for hinged chains
        planar_full = 5
        hint = "kept" if beams else "mass" if spatial or nv > planar_full else "full"
        springs = any(load_kind(x).energy is not None for x in self.topology.loads)
        stiff = bool(beams) or (springs and hint == "full")
        return System(
            name=titled(self.topology), nq=nq, nv=nv, nc=nc, nt=nt, nb=nb, nd=nd, nh=nh,
            frictionless=frictionless,
            force=self.force, potential=self.potential,
            gap=contacts.gap if nc else None, slip=contacts.slip if nc and nt else None,
            law=contacts.law if nc else None, constraint=self.constraint if nb > nh else None,
            velocity_constraint=self.velocity_constraint if nh else None,
            dry_friction=self.dry_friction if nd else None,
            dry_friction_bound=self.dry_friction_bound if nd else None,
            dry_friction_law=self.dry_friction_law, dry_friction_contact=followed, dry_friction_discs=discs,
            damping=None if absolute else self.damping,
            switch=self.switch if any(x.option("switch") for x in self.topology.loads) else None,
            retract=add if flat else self.tree.retract,
            difference=subtract if flat else self.tree.difference,
            prepare=self.prepare if spatial or absolute or self.named.many else None,
            refresh=contacts.refresh if refreshed else None,
            observe=self.observe if names.observables else None,
            shapes=shapes.PlacedPicture(self.places, self.picture),
            labels=names, parts=self, tangent_hint=hint, stiff=stiff, **given,
        )  # fmt: skip
