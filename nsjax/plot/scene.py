"""What a page and a film show: traces with colours and points at all frames, of one `Motion`."""

from __future__ import annotations

import base64
import dataclasses
import html
import json
import pathlib
import zlib
from typing import Any

import numpy as np

from nsjax.motion import Motion, MovedShape, placed
from nsjax.types import scale

# Okabe and Ito's colours without vermilion, which is the colour of forces only.
BODIES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
FORCE = "#D55E00"
ROLES = {"ground": "#8C8C8C", "spring": "#5A5A5A", "joint": "#222222"}
WIDTHS = {"body": 4.0, "ground": 2.0, "spring": 1.5, "joint": 1.5}

ARROW = 6
"""Number of points of an arrow: tail, tip, both sides of its head, and a break."""

PACE = 40
"""Duration of a frame [ms]."""

VIRIDIS = "#440154 #472D7B #3B528B #2C728E #21918C #28AE80 #5EC962 #ADDC30 #FDE725"
LOOK: dict[str, Any] = {
    "side": -0.9, "up": 0.35, "distance": 2.5, "light": (0.36, -0.48, 0.8), "ambient": 0.55,
    "area": 0.35, "ground": 0.25, "colours": VIRIDIS.split(),
}  # fmt: skip
"""What pages and films have in common. Direction from which a spatial scene is seen first: angles about z
and above the floor [rad]; distance of the eye [diagonals]. Unit vector towards the lamp; brightness of a
face parallel to its light, relative to its full colour. Opacity of areas and of the ground. Colours of
values.
"""


class _Packed(dict[bytes, int]):
    """Places of the arrays of a page among numbers of 16 bits one after the other, each array once: shapes
    of a body have the same poses.
    """

    def _added(self, array: np.ndarray) -> int:
        """Place of the first number."""
        return self.setdefault(array.tobytes(), sum(map(len, self)) // 2)

    def shares(self, values: np.ndarray) -> list[Any]:
        """Place, size and ends of values (rows, n, k), each of the k between its own ends. They are stored
        one after the other as changes over the rows, which are similar numbers that pack well.
        """
        flat = values.reshape(-1, values.shape[-1])
        known = np.where(np.isfinite(flat), flat, np.nan)
        some = np.isfinite(flat).any(axis=0)
        low, high = (f(np.where(some, known, 0.0), axis=0) for f in (np.nanmin, np.nanmax))
        span = np.where(high > low, high - low, 1.0)
        shares = np.round(65534.0 * (known - low) / span) - 32767.0
        # what is not a number, among coordinates of 16 bits
        whole = np.where(np.isfinite(shares), shares, -32768).astype("<i2").reshape(len(values), -1)
        changes = np.diff(whole, axis=0, prepend=np.zeros_like(whole[:1]))  # modulo 2^16
        return [self._added(np.ascontiguousarray(changes.T)), *values.shape, low.tolist(), high.tolist()]

    def whole(self, numbers: np.ndarray) -> list[int]:
        """Place and shape of whole numbers, of 32 bits."""
        return [self._added(numbers.astype("<i4")), *numbers.shape]


@dataclasses.dataclass(frozen=True)
class DrawnShape:
    """One thing that is drawn.

    Args:
        name, kind, role: of its shape; the forces are of kind ``"force"``.
        colour: ``"#rrggbb"``.
        width: of its lines, or diameter of its dots [pixels].
        fill: colour inside of dots.
        points: (rows, n, d) in the unit of the axes; one row for what stands still, or has poses.
        faces: (m, 3) triangles of a mesh.
        values: (rows, n) that give its colours; None: its own colour.
        title: of the values, with their unit.
        pose: (rows, d, d + 1) rotations and places of the axes of the points; None: those of the picture.
    """

    name: str
    kind: str
    role: str
    colour: str
    fill: str
    width: float
    points: np.ndarray
    faces: np.ndarray
    values: np.ndarray | None = None
    title: str = ""
    pose: np.ndarray | None = None

    def at(self, row: int) -> np.ndarray:
        """Points (n, d) of a frame."""
        shown: np.ndarray = self.points[row % len(self.points)]
        return shown if self.pose is None else placed(shown, self.pose[row % len(self.pose)])

    def as_page_data(self, packed: _Packed) -> dict[str, Any]:
        """What the page reads of it; its numbers go to ``packed``."""
        same = ("name", "kind", "role", "colour", "fill", "width")
        found: dict[str, Any] = {x: getattr(self, x) for x in same}
        found["points"] = packed.shares(self.points)
        if len(self.faces):
            found["faces"] = packed.whole(self.faces)
        if self.pose is not None:
            found["pose"] = packed.shares(self.pose.reshape(*self.pose.shape[:1], 1, -1))
        if self.values is not None:
            found |= {
                "values": packed.shares(self.values[..., None]),
                "ends": self.ends,
                "title": self.title,
            }
        return found

    @property
    def width_in_film(self) -> float:
        """Width of lines, or diameter of dots, in films [points]."""
        ratio = 0.65  # to that of the page [points / pixel]
        return ratio * self.width

    @property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest value of the whole run."""
        assert self.values is not None
        finite = self.values[np.isfinite(self.values)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        return low, high if high > low else low + 1.0


@dataclasses.dataclass(frozen=True)
class DrawnRun:
    """A run as pages and films show it.

    Args:
        title, words: first and second line above the picture.
        times: one label for each frame.
        axes: names of the axes with their unit.
        low, high: (d,) ends of the axes.
        traces: what is drawn, in this order.
    """

    title: str
    words: str
    times: tuple[str, ...]
    axes: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray
    traces: tuple[DrawnShape, ...]

    def page(self) -> str:
        """A page in HTML that draws the scene and needs nothing else."""
        packed = _Packed()
        traces = [x.as_page_data(packed) for x in self.traces]
        head = {
            "title": self.title,
            "words": self.words,
            "times": self.times,
            "axes": self.axes,
            "pace": PACE,
        }
        head |= {"low": self.low.tolist(), "high": self.high.tolist(), "traces": traces, **LOOK}
        words = json.dumps(head, allow_nan=False).encode()
        words += b" " * (len(words) % 2)  # numbers of 16 bits begin at an even place
        raw = len(words).to_bytes(4, "little") + words + b"".join(packed)
        data = base64.b64encode(zlib.compress(raw)).decode()
        page = pathlib.Path(__file__).with_name("viewer.html").read_text(encoding="utf-8")
        return page.replace("$title", html.escape(self.title)).replace("$data", data)


def scene(seen: Motion, title: str, words: str) -> DrawnRun:
    """The traces of a motion, fixed shapes first and forces last, with equally scaled axes."""
    factor, unit = scale([seen.size], "m")
    bodies = list(dict.fromkeys(x.name for x in seen.shapes if x.role == "body"))
    colours = {name: BODIES[k % len(BODIES)] for k, name in enumerate(bodies)}
    order = sorted(seen.shapes, key=lambda x: (x.role == "joint", x.role != "ground"))
    traces = [_trace(x, colours.get(x.name, ROLES.get(x.role, "")), factor, seen.dimension) for x in order]
    low, high, given = seen.low, seen.high, arrows(seen)
    if given is not None:
        width, none = 2.0 if seen.dimension == 2 else 3.0, np.zeros((0, 3), int)
        red = "contact forces", "force", "force", FORCE, FORCE
        traces.append(DrawnShape(*red, width, factor * given, none))
        low = np.minimum(low, np.nanmin(given, axis=(0, 1)))
        high = np.maximum(high, np.nanmax(given, axis=(0, 1)))
    margin = 0.08  # empty space around the scene, as a share of its diagonal
    spent, second = scale(seen.t, "s")
    return DrawnRun(
        title=title, words=words, times=tuple(f"{t * spent:.4g} {second}" for t in seen.t),
        axes=tuple(f"{name} ({unit})" for name in seen.axes[: seen.dimension]),
        low=factor * (low - margin * seen.size), high=factor * (high + margin * seen.size),
        traces=tuple(traces),
    )  # fmt: skip


def _trace(x: MovedShape, colour: str, factor: float, dimension: int) -> DrawnShape:
    """DrawnShape of a shape."""
    rows = slice(0, 1) if x.still else slice(None)
    values, title = x.values, ""
    if values is not None:
        name, _, unit = x.quantity.partition(" [")
        times, unit = scale(values, unit.rstrip("]"))
        values, title = times * values[rows], f"{name} ({unit})" if unit not in ("", "-") else name
    wide = WIDTHS[x.role] if dimension == 2 or x.role != "body" else 0.75 * WIDTHS[x.role]
    dot = 8.0 if dimension == 2 else 5.0  # diameter [pixels]
    wide = 1.5 if x.kind == "area" else dot if x.kind == "dots" else wide
    grey = "#B0B0B0" if x.role == "ground" and x.kind == "mesh" else colour
    faces = np.array(x.faces, int).reshape(-1, 3)
    points, pose = x.points[:1] if x.still or x.pose is not None else x.points, x.pose
    if pose is not None:
        pose = np.concatenate([pose[rows, :, :-1], factor * pose[rows, :, -1:]], axis=2)
    fill = "#FFFFFF" if x.kind == "dots" and x.role == "joint" and dimension == 2 else grey
    words = x.name, x.kind, x.role, grey, fill
    return DrawnShape(*words, wide, factor * points, faces, values, title, pose)


def reference_force(seen: Motion) -> float:
    """Force [N] of an arrow of the usual length; zero without forces."""
    if seen.forces is None or seen.places is None:
        return 0.0
    sizes = np.linalg.norm(seen.forces, axis=-1)
    sizes = sizes[sizes > 0.0]
    # percentile of the forces that is the reference, so that single impacts do not hide all other forces
    usual = 90.0
    return float(np.percentile(sizes, usual)) if sizes.size else 0.0


def arrows(seen: Motion) -> np.ndarray | None:
    """Polylines (rows, 6 nc, d) of the force arrows, which end at the contacts: tail, tip, one side of the
    head, tip, the other side, a break. None without forces.
    """
    reference = reference_force(seen)
    if not reference:
        return None
    assert seen.forces is not None
    assert seen.places is not None
    sizes = np.linalg.norm(seen.forces, axis=-1, keepdims=True)
    acts = sizes > 1e-3 * reference
    unit = seen.forces / np.where(acts, sizes, 1.0)
    usual, longest = 0.125, 0.2  # lengths of arrows as shares of the scene's diagonal
    length = seen.size * np.minimum(usual * sizes / reference, longest)
    tip = np.where(acts, seen.places, np.nan)
    if seen.dimension == 2:
        side = np.stack([-unit[..., 1], unit[..., 0]], axis=-1)
    else:
        side = np.cross(unit, np.where(np.abs(unit[..., 2:]) < 0.9, [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]))
        side /= np.where(acts, np.linalg.norm(side, axis=-1, keepdims=True), 1.0)
    head_share = 0.25  # length of the head of an arrow over its whole length
    head = np.minimum(head_share * length, 0.03 * seen.size)
    back = tip - head * unit
    parts = [tip - length * unit, tip, back + 0.5 * head * side, tip, back - 0.5 * head * side]
    found = np.stack([*parts, np.full(tip.shape, np.nan)], axis=2)
    return found.reshape(len(seen.t), -1, seen.dimension)
