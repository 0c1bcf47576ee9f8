"""Animations of runs: one HTML file with controls, or a film."""

from __future__ import annotations

import base64
import dataclasses
import html
import os
import zlib

import jax
import numpy as np

from nsjax import io
from nsjax.analysis import Modes
from nsjax.core import InputError, Problem
from nsjax.core.arguments import check_is, file_path
from nsjax.core.memory import Progress
from nsjax.figures import require_matplotlib
from nsjax.motion import FRAMES, Motion, motion, moved
from nsjax.plot import film
from nsjax.plot.scene import ARROW, PACE, DrawnRun, reference_force, scene
from nsjax.trajectory import Trajectory
from nsjax.types import scale

NUMBERS = 1_500_000
"""Largest count of numbers in a page, which limits its frames: two bytes each."""

UNPACKER = """<!doctype html><meta charset="utf-8"><script>
const packed = Uint8Array.from(atob("$page"), c => c.charCodeAt(0));
const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
new Response(stream).text().then(page => {
  document.open(); document.write(page); document.close();
});
</script>"""
"""Page that replaces itself by a packed one."""


@dataclasses.dataclass(frozen=True, repr=False)
class Animation:
    """Animation of a run for a browser or notebook, a self-contained page of some 20 kB and more.

    It plays at any speed, turns, moves and zooms by the mouse, and shows names, contact forces and, after a
    click, the trace of a point.

    Args:
        scene: what is drawn, in all frames.
    """

    scene: DrawnRun

    @property
    def title(self) -> str:
        """Title of the page."""
        return self.scene.title

    def __repr__(self) -> str:
        return f"Animation({self.title!r}, {len(self.scene.times)} frames)"

    def to_html(self) -> str:
        """The whole page, which loads no other files."""
        return self.scene.page()

    def _repr_html_(self) -> str:
        # packed as a whole, the player too: half of the page, and every cell plays without the others
        packed = base64.b64encode(zlib.compress(self.to_html().encode(), 9)).decode()
        inline = 640  # height of an animation in a notebook [px]
        page = html.escape(UNPACKER.replace("$page", packed), quote=True)
        return f'<iframe srcdoc="{page}" width="100%" height="{inline}" style="border:0"></iframe>'

    def save(self, path: str | os.PathLike[str], *, progress: Progress = False) -> None:
        """Writes the page to ``*.html``, or a film to ``*.gif`` or ``*.mp4``, whole or not at all.

        Films have the same frames, drawn by matplotlib; MP4 needs ffmpeg, or the extra ``film``. Limits: in
        space faces are sorted by the depth of their centres, so that large faces may hide nearer parts.

        Args:
            path: of the file.
            progress: of a film: True shows a bar (extra ``progress``), a function is called with the frames
                done and all frames.

        Raises:
            InputError: for another suffix, a path that cannot be written, and without the needed library.
        """
        check_animation(path)
        if file_path(path).suffix.lower() in film.WRITERS:
            film.write(self.scene, path, progress)
            return
        with io.replacing(path) as file:
            file.write(self.to_html().encode())


def check_animation(path: str | os.PathLike[str]) -> None:
    """Refuses an animation that could not be written; call it before the run that it is for.

    Args:
        path: path of a page, ``*.html``, or of a film, ``*.gif`` or ``*.mp4``.

    Raises:
        InputError: for another suffix; if matplotlib is missing for films, or ffmpeg for MP4.

    Example:
        >>> from nsjax import plot
        >>> plot.check_animation("run.html")
    """
    suffix = file_path(path).suffix.lower()
    if suffix in film.WRITERS:
        film.require_writer(path)
    elif suffix not in (".html", ".htm"):
        raise InputError(f"{path}: animations are pages or films; end the name in .html, .gif or .mp4")


def animate(problem: Problem, traj: Trajectory, *, frames: int = FRAMES) -> Animation:
    """Animation of a run with buttons and a slider, on one self-contained page.

    It shows the shapes of `nsjax.System.shapes`: models of the package define them, mechanisms of
    `nsjax.multibody.assemble` have those of their parts. Arrows that end at contacts are the forces on the
    bodies, means over the time since the previous frame (impacts included), with proportional lengths.
    Solids of elements are coloured by the equivalent stress at their nodes, on one scale for the whole run.

    Args:
        problem: problem of the run.
        traj: one run of it (not a batch); arrows need ``impulse_normal`` and ``impulse_tangential`` saved.
        frames: largest number of rows drawn, at even distances; fewer where the page would become too
            large.

    Returns:
        An `Animation`: notebooks show it, ``.save("run.html")`` writes it, ``.save("run.gif")`` a film.

    Raises:
        InputError: for a system without shapes, a batch, or the run of another system.

    Limits: a page redraws all shapes for each frame, those of space sorted by depth: meshes of more than
    some thousand triangles play slowly, and large faces may hide nearer parts. For a solid, each frame
    computes the stress of all elements, in 0.1 s for 14,000 elements.
    Rows that are not finite are left out.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> ball = models.bouncing_ball()
        >>> traj = nsjax.simulate(ball, schemes.moreau(), dt=1e-3, steps=500)
        >>> nsjax.animate(ball, traj, frames=50)
        Animation('bouncing ball: moreau, dt = 0.001 s, t = 0 to 0.5 s', 50 frames)
    """
    seen = motion(problem, traj, frames=frames)
    fewer = _affordable(seen)
    if fewer < len(seen.t):
        seen = motion(problem, traj, frames=fewer)
    scheme = traj.carry.scheme.replace("_", " ") or "unknown scheme"
    run = f"{scheme}, dt = {float(traj.carry.dt):.4g} s"
    title = f"{_name(problem)}: {run}, t = {seen.t[0]:.4g} to {seen.t[-1]:.4g} s"
    return Animation(scene(seen, title, _words(seen, traj)))


def animate_mode(problem: Problem, modes: Modes, number: int = 0) -> Animation:
    """Animation of a period of a small motion about an equilibrium, enlarged until its widest displacement
    is a tenth of the picture; decay and growth are left out.

    Args:
        problem: the problem in equilibrium.
        modes: `nsjax.analysis.modes` of it.
        number: of the mode, from zero.

    Raises:
        InputError: for a number that the modes do not have, and for a system without shapes.

    Example:
        >>> from nsjax import analysis, models, plot
        >>> chain = models.mass_spring_chain(gravity=0.0, support="constraint", stiffness=10.0)
        >>> plot.animate_mode(chain, analysis.modes(chain), 1)
        Animation('mass spring chain: mode 2, 0.8717 Hz', 48 frames)
    """
    check_is("animate_mode", "problem", problem, Problem)
    check_is("animate_mode", "modes", modes, Modes)
    if not 0 <= number < len(modes.values):
        raise InputError(f"animate_mode: number = {number!r} of {len(modes.values)} modes, from zero")
    count = 48  # frames of a period
    phase = np.arange(count) / count
    frequency = float(modes.frequencies[number])
    t = phase / frequency if frequency else phase
    motions = np.real(np.exp(2j * np.pi * phase)[:, None] * modes.shapes[number])
    q, system = np.asarray(problem.state.q), problem.system

    def seen(size: float) -> Motion:
        rows = jax.vmap(lambda x: system.retract(q, x))(size * motions)
        return moved(system, problem.params, t, np.asarray(rows))

    small, rest = 1e-6, seen(0.0)  # share of the shape at which displacements are proportional to it
    ways = [np.abs(x.world - y.world) for x, y in zip(seen(small).shapes, rest.shapes, strict=True)]
    widest = max(float(np.nanmax(x)) for x in ways) / small
    enlarged = 0.1 * rest.size / widest if widest > 0.0 else 1.0
    title = f"{_name(problem)}: mode {number + 1}, {frequency:.4g} Hz"
    words = f"damping ratio {float(modes.damping_ratios[number]) + 0.0:.3g}; displacements enlarged"
    return Animation(scene(seen(enlarged), title, words))


def still(problem: Problem) -> bytes:
    """Picture of a problem at its state, for notebooks.

    Args:
        problem: a problem whose system has shapes.

    Returns:
        A file in the format PNG.

    Raises:
        InputError: if matplotlib is missing, for a system without shapes, and a state that is not
            finite.

    Example:
        >>> from nsjax import models, plot
        >>> plot.still(models.bouncing_ball())[1:4]
        b'PNG'
    """
    require_matplotlib()
    t, q = (np.asarray(x)[None] for x in (problem.state.t, problem.state.q))
    seen = moved(problem.system, problem.params, t, q)
    return film.png(scene(seen, _name(problem), ""))


def _name(problem: Problem) -> str:
    return problem.system.name.replace("_", " ") or "system without a name"


def _affordable(seen: Motion) -> int:
    """Number of frames within `NUMBERS`."""
    moving = [x for x in seen.shapes if not x.still]
    each = sum((x.points if x.pose is None else x.pose)[0].size for x in moving)
    each += sum(0 if x.values is None else x.values[0].size for x in moving)
    each += 0 if seen.forces is None else ARROW * seen.forces[0].size
    least = 24  # least number of frames, however large they are
    return max(least, NUMBERS // max(1, each))


def _words(seen: Motion, traj: Trajectory) -> str:
    """Second line of the title: rows, speed, scale of the arrows."""
    said = [f"{len(seen.t)} of {len(traj.t)} rows"]
    spent = float(seen.t[-1] - seen.t[0])
    shown = 1e-3 * PACE * (len(seen.t) - 1)
    if spent > 0.0 and shown > 0.0:
        ratio = shown / spent
        if 0.8 < ratio < 1.25:
            said.append("about in real time")
        else:
            said.append(f"{ratio:.3g} times slower" if ratio > 1.0 else f"{1.0 / ratio:.3g} times faster")
    longest = reference_force(seen)
    if longest:
        factor, unit = scale([longest], "N")
        said.append(f"arrows: mean contact forces, {longest * factor:.3g} {unit} an eighth of the scene")
    if seen.magnified != 1.0:
        said.append(f"{seen.note} {seen.magnified:.3g} times as large")
    return "; ".join(said)
