"""Beams as parts, with their sections, curves and elements, and their nodes as bodies."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.core.errors import check_choice, check_whole
from nsjax.multibody.contacts.curves import curve_of, is_closed
from nsjax.multibody.elements import KINDS
from nsjax.multibody.loads import KINDS as LOADS
from nsjax.multibody.numbers import Beam, Section
from nsjax.multibody.parts import NEEDED, ONE, POSITIVE, Part, made, number, record_of
from nsjax.multibody.topology import places_along
from nsjax.types import is_traced

# Sections of beams, given by stiffness and inertia, or by shape and material.


def section(
    *, EA: Any, GA: Any, EI: Any, GJ: Any, line_mass: Any = None, line_inertia: Any = None
) -> Section:  # fmt: skip
    """A section by its stiffness and inertia.

    Args:
        EA: stiffness of extension [N].
        GA: stiffness of shear, shear factors included [N]: a number, or two along ``d1`` and ``d2``.
        EI: stiffness of bending [N m^2]: a number, or two about ``d1`` and ``d2``.
        GJ: stiffness of twist [N m^2].
        line_mass: mass per length [kg/m]; None: none, for static analysis.
        line_inertia: rotary inertia per length about ``d1`` and ``d2`` [kg m]: a number, or two; about the
            axis of the beam it is their sum.

    Raises:
        InputError: for a stiffness that is not positive, and for an inertia below zero.

    Example:
        >>> from nsjax.multibody import section
        >>> section(EA=1e4, GA=5e3, EI=100.0, GJ=100.0).EI
        100.0
    """
    given = {"EA": EA, "GA": GA, "EI": EI, "GJ": GJ, "line_mass": line_mass, "line_inertia": line_inertia}
    return record_of(Section, "section", "of a beam", **given)


def _positive(who: str, **given: Any) -> None:
    for name, value in given.items():
        number(who, "of a beam", name, value, form=POSITIVE)


def circular(radius: Any, *, E: Any, nu: Any = 0.3, rho: Any = None, inner: Any = 0.0) -> Section:
    """A circular section or, with an inner radius, a tube.

    Args:
        radius, inner: [m].
        E, nu: Young's modulus [Pa] and Poisson's ratio.
        rho: density [kg/m^3].

    The shear factor of a full circle is ``6 (1 + nu) / (7 + 6 nu)``, after Cowper. For every ``inner`` that
    is not zero it is 0.5, the factor of a thin tube.

    Example:
        >>> from nsjax.multibody import circular
        >>> round(circular(0.005, E=2.1e11, rho=7850.0).EI, 4)
        103.0835
    """
    _positive("circular", radius=radius, E=E)
    given = (("inner", inner, NEEDED), ("nu", nu, NEEDED), ("rho", rho, ONE))
    inner, nu, rho = (number("circular", "of a beam", k, x, form=form) for k, x, form in given)
    _positive("circular", **{"1 + nu": 1.0 + nu})
    area = math.pi * (radius**2 - inner**2)
    second = 0.25 * math.pi * (radius**4 - inner**4)
    tube = not is_traced(inner) and inner != 0.0
    factor = 0.5 if tube else 6.0 * (1.0 + nu) / (7.0 + 6.0 * nu)
    G = E / (2.0 * (1.0 + nu))
    mass = {} if rho is None else {"line_mass": rho * area, "line_inertia": rho * second}
    return section(EA=E * area, GA=factor * G * area, EI=E * second, GJ=2.0 * G * second, **mass)


def rectangular(width: Any, height: Any, *, E: Any, nu: Any = 0.3, rho: Any = None) -> Section:
    """A rectangle: ``width`` along the first section axis ``d1``, ``height`` along ``d2``.

    The shear factor is 5/6; the torsional stiffness is the series of Saint-Venant.

    Args:
        width, height: edges [m].
        E, nu, rho: see `circular`.

    Raises:
        InputError: for edges or a modulus that are not positive.

    Example:
        >>> from nsjax.multibody import rectangular
        >>> flat = rectangular(0.02, 0.01, E=2.1e11, rho=7850.0)
        >>> [round(float(x), 3) for x in flat.EI]
        [350.0, 1400.0]
    """
    _positive("rectangular", width=width, height=height, E=E)
    nu = number("rectangular", "of a beam", "nu", nu, form=NEEDED)
    rho = number("rectangular", "of a beam", "rho", rho, form=ONE)
    _positive("rectangular", **{"1 + nu": 1.0 + nu})
    area, G = width * height, E / (2.0 * (1.0 + nu))
    first, second = width * height**3 / 12.0, height * width**3 / 12.0
    xp = jnp if is_traced((width, height)) else np
    a, b = xp.maximum(width, height), xp.minimum(width, height)
    # terms of the series of the torsion of a rectangle: the next term is below 1e-6 of the first
    torsion_terms = 7
    odd = np.arange(1, 2 * torsion_terms, 2)
    series = xp.sum(xp.tanh(odd * math.pi * a / (2.0 * b)) / odd**5)
    torsion = a * b**3 * (1.0 / 3.0 - 64.0 / math.pi**5 * b / a * series)
    inertia = (
        {} if rho is None else {"line_mass": rho * area, "line_inertia": rho * xp.stack([first, second])}
    )
    return section(
        EA=E * area, GA=5.0 / 6.0 * G * area, EI=E * xp.stack([first, second]), GJ=G * torsion, **inertia
    )


# Beams as parts, with their curves and elements, and their nodes as bodies.


MASSES = ("consistent", "lumped")
"""Kinds of translational mass matrices of beams."""


def beam(
    name: str, start: Any, end: Any = None, *, section: Section, elements: int | None = None,
    first_axis: Any = None, curvature: Any = None, damping: Any = None, mass: str = "consistent",
    stations: Mapping[str, float] | None = None, element: str = "objective", element_nodes: int = 2,
) -> Part:  # fmt: skip
    """A flexible beam. Its nodes are bodies ``"arm.0"``, ``"arm.1"`` and so on, the first also
    ``"arm.start"``, the last ``"arm.end"``; joints, springs, loads and contacts act on them as on any body.

    The beam is geometrically exact: stretch, shear, bending and twist, with any displacement and rotation.
    It is drawn without strain in the axes of the ground. The axes of all nodes then are those of the
    ground, in which joint axes and points on nodes are given.

    There are two formulations. ``"objective"`` (`nsjax.fem.spatial_beams`): strains follow from the poses
    of both nodes, independent of the path to these poses. ``"incremental"`` (`nsjax.fem.spatial_beams`,
    [GN]): nodes turn by Rodrigues vectors, which are interpolated. Every Gauss point stores its axes and
    curvature as seven entries of ``q``, after the poses of all bodies; every increment of the position
    updates them. Results then depend slightly on the steps, see Limits.

    Args:
        name: of the beam.
        start, end: ends (3,) of a straight beam [m]; or ``start`` alone, all nodes of any curve (n + 1, 3),
            including the middle nodes of elements of three nodes.
        section: see `section`, `circular`, `rectangular`.
        elements: number of elements of equal length of a straight beam.
        first_axis: direction (3,) whose component perpendicular to an element is the section axis ``d1``;
            ``d3`` is along the element and ``d2 = d3 x d1``. None: the axis of the ground that is most
            nearly perpendicular to the beam.
        curvature: (3,) in section axes, of the beam without moments, relative to the drawn shape [1/m].
        damping: time [s] in stresses ``stiffness (strain + damping d strain/dt)``.
        mass: translational mass: ``"consistent"`` with linear shapes, or ``"lumped"`` at the nodes. Rotary
            inertia is always lumped.
        stations: ``{name: arc length}`` [m], points of the beam where joints or loads act. Each is a node,
            which is added if there is none: ``{"mid": 0.7}`` names ``"arm.mid"``.
        element: a key of `nsjax.multibody.elements.KINDS`, ``"objective"`` or ``"incremental"``.
        element_nodes: 2 (linear shapes, one Gauss point); or 3 of incremental elements (quadratic shapes,
            two Gauss points).

    Raises:
        InputError: for elements without length, a first axis along the beam, an invalid number of elements,
            and nodes that do not fit into elements of three.

    Limits: neighbouring nodes turn less than half a turn relative to each other. No element locks; under a
    load at the tip, ``n`` elements of two nodes deflect by ``1 - 1 / (4 n^2)`` of the exact value. For
    incremental elements, nodes turn less than half a turn in a step. Their strains at a position depend on
    the path to it, by an error that vanishes with the elements and the steps, so that a periodic motion may
    drift. A scheme that moves the position more than once in a step (stages, half steps, corrections)
    updates the history each time. Derivatives by events of a step, and perturbations of a state, move only
    the nodes, and the history follows.

    Example:
        >>> from nsjax.multibody import beam, circular
        >>> arm = beam("arm", (0, 0, 0), (2, 0, 0), elements=8, section=circular(0.005, E=2.1e11, rho=7850))
        >>> arm.numbers.points.shape
        (9, 3)
    """
    _check_element(name, element, element_nodes)
    if not isinstance(stations, Mapping | None):
        raise InputError(f"beam {name!r}: stations = {stations!r}; give a dict of arc lengths [m]")
    points = _points(name, start, end, elements, element_nodes - 1)
    points, table = _with_stations(name, points, stations or {})
    check_choice(f"beam {name!r}: mass", mass, MASSES)
    if not isinstance(section, Section):
        raise InputError(
            f"beam {name!r}: section = {section!r}; use section(...), circular(...) or rectangular(...)"
        )
    numbers = record_of(
        Beam, "beam", name, points=points, section=section, curvature=curvature, damping=damping,
        first_axis=_first_axis(name, points, first_axis),
    )  # fmt: skip
    if element_nodes == 3:
        _check_thirds(name, points)
    return made(
        "beam", name, (), numbers, nodes=int(points.shape[0]), mass=mass, stations=table, element=element,
        per=element_nodes,
    )  # fmt: skip


def _check_element(name: str, element: str, nodes: int) -> None:
    """Refuse unknown kinds of elements, and numbers of nodes that a kind does not have."""
    check_choice(f"beam {name!r}: element", element, KINDS)
    known = KINDS[element].nodes
    if nodes not in known:
        others = [f"{max(x.nodes)} of {x.name} ones" for x in KINDS.values() if max(x.nodes) > 2]
        more = "" if len(known) > 1 else f", or {', '.join(others)}"
        raise InputError(
            f"beam {name!r}: element_nodes = {nodes!r} of {element} elements; give "
            f"{', or '.join(map(str, known))}{more}"
        )


def _check_thirds(name: str, points: Any) -> None:
    """Refuse nodes that do not make elements of three nodes, the second near the middle."""
    if len(points) % 2 == 0:
        raise InputError(
            f"beam {name!r}: {len(points)} nodes in elements of three; give an odd number, and stations "
            "where there are nodes"
        )
    if is_traced(points):
        return
    chords = np.linalg.norm(np.diff(points, axis=0), axis=1).reshape(-1, 2)
    share = chords[:, 0] / np.sum(chords, axis=1)
    worst = int(np.argmax(np.abs(share - 0.5)))
    if not abs(share[worst] - 0.5) < 0.25:
        raise InputError(
            f"beam {name!r}: the middle node {2 * worst + 1} lies at {share[worst]:.3g} of its element; "
            "place it between 0.25 and 0.75"
        )


def _with_stations(
    name: str, points: Any, stations: Mapping[str, float]
) -> tuple[Any, tuple[tuple[str, int], ...]]:
    """Nodes including those of the stations, and the name and node number of each station."""
    if not stations:
        return points, ()
    if is_traced((points, dict(stations))):
        raise InputError(f"beam {name!r}: stations with traced nodes; give all nodes, and name them")
    # distance between a station and a node, relative to the length of the beam, below which they are one
    near_node = 1e-9
    for s in sorted(stations.values()):
        arc = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
        if not 0.0 <= s <= arc[-1] * (1.0 + near_node):
            raise InputError(f"beam {name!r}: a station at {s:g} m; give arc lengths from 0 to {arc[-1]:g}")
        if np.min(np.abs(arc - s)) > near_node * arc[-1]:
            k = int(np.searchsorted(arc, s))
            part = (s - arc[k - 1]) / (arc[k] - arc[k - 1])
            points = np.insert(points, k, points[k - 1] + part * (points[k] - points[k - 1]), axis=0)
    arc = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    return points, tuple((x, int(np.argmin(np.abs(arc - s)))) for x, s in stations.items())


def _points(name: str, start: Any, end: Any, elements: int | None, pairs: int) -> Any:
    """Nodes (n + 1, 3), checked; a straight beam has ``pairs`` pairs of nodes in each element."""
    start, end = (number("beam", name, k, v) for k, v in (("start", start), ("end", end)))
    if end is None:
        if np.ndim(start) != 2 or np.shape(start)[0] < 2 or np.shape(start)[1] != 3:
            raise InputError(
                f"beam {name!r}: start has shape {np.shape(start)} and there is no end; give both ends "
                "(3,), or all nodes (n + 1, 3)"
            )
        if elements is not None:
            raise InputError(f"beam {name!r}: elements = {elements} beside all nodes; leave elements out")
        points = start
    else:
        elements = check_whole(f"beam {name!r}: elements", elements, 1)
        if np.shape(start) != (3,) or np.shape(end) != (3,):
            raise InputError(f"beam {name!r}: ends of shapes {np.shape(start)}, {np.shape(end)}; give (3,)")
        points = start + np.linspace(0.0, 1.0, pairs * elements + 1)[:, None] * (end - start)
    if not is_traced(points):
        lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
        short = int(np.argmin(lengths))
        if not lengths[short] > 1e-12 * max(1.0, float(np.max(np.abs(points)))):
            raise InputError(
                f"beam {name!r}: element {short} has length {lengths[short]:g}; its nodes {short} and "
                f"{short + 1} must stand apart"
            )
    return points


def _first_axis(name: str, points: Any, given: Any) -> Any:
    given = number("beam", name, "first_axis", given)
    if is_traced((points, given)):
        if given is None:
            raise InputError(f"beam {name!r}: give first_axis where the nodes are traced")
        return given
    gone = np.diff(points, axis=0)
    along = gone / np.linalg.norm(gone, axis=1)[:, None]
    if given is None:
        return np.eye(3)[int(np.argmin(np.max(np.abs(along), axis=0)))]
    if np.shape(given) != (3,) or not np.linalg.norm(given) > 0.0:
        raise InputError(f"beam {name!r}: first_axis = {np.asarray(given).tolist()}; give a direction (3,)")
    sines = np.linalg.norm(np.cross(along, given / np.linalg.norm(given)), axis=1)
    worst = int(np.argmin(sines))
    # sine of the angle between an element and ``first_axis`` below which the section axes are undefined:
    # the error of parallel directions with printed digits
    crossed = 1e-6
    if sines[worst] < crossed:
        raise InputError(
            f"beam {name!r}: first_axis = {np.asarray(given).tolist()} lies along element {worst}, so that "
            "its section axes are not defined; give a direction across the beam"
        )
    return given


def nodes_of(part: Part) -> tuple[str, ...]:
    """Names of the nodes of a beam."""
    return tuple(f"{part.name}.{k}" for k in range(part.option("nodes")))


def with_nodes(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Parts with every beam followed by its nodes as parts, and with node numbers in place of the names of
    ends and stations. Raises `InputError` for contacts that a whole beam cannot have.
    """
    beams = {x.name: x for x in parts if isinstance(x, Part) and x.kind == "beam"}
    if not beams:
        return tuple(parts)
    ends = {x: node for part in beams.values() for x, node in places_along(part).items()}
    found: list[Part] = []
    for part in parts:
        if not isinstance(part, Part):
            found.append(part)
            continue
        part = dataclasses.replace(part, bodies=tuple(ends.get(x, x) for x in part.bodies))
        whole = LOADS[part.kind].of_beam if part.kind in LOADS else None
        whole = _of_all_nodes if part.kind == "contact" else whole
        found.append(whole(part, beams) if whole else part)
        if part.kind == "beam":
            found += [Part("node", name) for name in nodes_of(part)]
    return tuple(found)


def _on_surface(part: Part, which: str, points: Any) -> Part:
    """A contact whose ``first`` or ``second`` shape is the surface of a beam through nodes (n + 1, 3)."""
    tube = dataclasses.replace(getattr(part.numbers, which), curve=curve_of(points))
    closed, more = is_closed(points), []
    if which == "first":  # one contact around each node
        more = [("first_closed", closed), ("nodes", int(np.shape(points)[0]) - closed)]
    kept = dataclasses.replace(part.numbers, **{which: tube})
    options = (*part.options, *(more or [("closed", closed)]))
    return dataclasses.replace(part, numbers=kept, options=options)


def _of_all_nodes(part: Part, beams: dict[str, Part]) -> Part:
    """A contact completed for the surface, or for all nodes, of a beam; other contacts are unchanged."""
    (first, second), surfaces = part.bodies, part.option("shapes")
    on_first, on_second = (
        kind == "tube" and name in beams for kind, name in zip(surfaces, part.bodies, strict=True)
    )
    if on_second and (on_first or first not in beams):
        part = _on_surface(part, "second", beams[second].numbers.points)
    if on_first and (on_second or second not in beams):
        return _on_surface(part, "first", beams[first].numbers.points)
    if on_second and first not in beams:
        return part
    if second in beams:
        raise InputError(
            f"contact {part.name!r}: the beam {second!r} must be first; exchange the two shapes"
        )
    if first not in beams:
        return part
    shape = part.option("shapes")[0]
    if shape != "sphere" or part.numbers.first.at is not None:
        raise InputError(
            f"contact {part.name!r}: {shape} of the beam {first!r}; give sphere({first!r}, radius) or "
            f"point({first!r}) for all of its nodes, or name a node"
        )
    nodes = beams[first].option("nodes")
    return dataclasses.replace(part, options=(*part.options, ("nodes", nodes)))
