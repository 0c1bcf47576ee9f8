"""Size of the programs of a run: how many operations they have, and which source they come from.

The slider-crank of Table 1 of [R&S], 1000 steps, parameters traced; counted are the operations of the
lowered program before XLA sees it. The number is exact and repeatable, and what compile time grows with.
Four programs per scheme: the run itself as it is compiled when called with plain numbers (``plain``),
inside a transformation that may differentiate it and does not (``jitted``), its derivative in forward and
its gradient in reverse mode. Robots beside their mechanics: ``python -m experiments.performance sizes``.

    python -m experiments.performance.program_size [--quick]
    python -m experiments.performance.program_size --scheme NAME [--mode MODE] [--by file|line|function]
        [--robot FILE]

The second form prints where the operations of one program come from: the innermost source line of the
package, and all lines on the call stack. Operations of a derivative of a solver count for its call.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nsjax
from nsjax import Problem, models, schemes

from ..common import Numbers

SCHEMES = ("moreau", "generalized_alpha", "bathe")
MODES = ("plain", "jitted", "forward", "reverse")
PACKAGE = Path(nsjax.__file__).parent


def crank() -> Problem:
    """The slider-crank with parameters that can be traced."""
    import jax

    problem = models.slider_crank()
    return dataclasses.replace(problem, params=jax.tree.map(jax.numpy.asarray, problem.params))


def robot(file: Path) -> Problem:
    """A mechanism of a model file."""
    from nsjax.multibody import assemble, read_mjcf

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about elements that nsjax does not have
        model = read_mjcf(file)
    return assemble(*model, gravity=model.gravity, start=model.start)


def program(
    problem: Problem, scheme: str, mode: str, dt: float = 1e-5, steps: int = 1000
) -> Callable[[Any], Any]:
    """The counted program, a function of the parameters."""
    import jax
    import jax.numpy as jnp

    system, _, state = problem
    made = schemes.REGISTRY[scheme].factory()
    gradient = "discrete" if mode == "plain" else None

    def end(params: Any) -> Any:
        return nsjax.simulate(
            system, params, state, made, dt=dt, steps=steps, every=steps, gradient=gradient
        ).q[-1]

    if mode == "forward":
        return lambda params: jax.jvp(end, (params,), (jax.tree.map(jnp.ones_like, params),))
    return jax.grad(lambda params: end(params)[1]) if mode == "reverse" else end


def lowered(scheme: str, mode: str, problem: Problem | None = None, dt: float = 1e-5) -> Any:
    """`program` lowered for traced scalars, of the slider-crank unless another problem is given."""
    import jax

    problem = problem or crank()
    return jax.jit(program(problem, scheme, mode, dt)).lower(problem.params)


def operations(program: Any) -> int:
    """The number of operations of a lowered program."""
    return len(re.findall(r"^\s+%", program.as_text(), re.M))


def count(scheme: str, mode: str, problem: Problem | None = None, dt: float = 1e-5) -> int:
    """Operations of a program."""
    return operations(lowered(scheme, mode, problem, dt))


def mechanics(problem: Problem) -> int:
    """Operations of the mechanics that every step needs, evaluated once: mass, force, gaps, slips, and the
    rows of contacts and constraints.
    """
    import jax

    from nsjax.core.operators import all_rows, prepared

    system, params, state = problem

    def once(t: Any, q: Any, v: Any, p: Any) -> Any:
        found = [system.force(t, q, v, p), all_rows(system, t, q, p)]
        found += [f(t, q, p) for f in (system.gap, system.constraint) if f is not None]
        found += [f(t, q, v, p) for f in (system.slip, system.dry_friction) if f is not None]
        return [*found, system.mass(q, p)] if system.mass is not None else found

    ready = prepared(system, params)
    return operations(jax.jit(once).lower(float(state.t), state.q, state.v, ready))


_DEFINED = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.M)
_FILE = re.compile(r'^"(.*)":(\d+):\d+')
_CALL = re.compile(r"^callsite\((#loc\d*) at (#loc\d*)\)$")
_NAMED = re.compile(r'^"((?:[^"\\]|\\.)*)"(?:\((#loc\d*)\))?$')


class _Places:
    """Call stacks of operations: innermost first, ``(file, line, function)`` of the package alone."""

    def __init__(self, text: str) -> None:
        self.defined = dict(_DEFINED.findall(text))
        self.known: dict[str, tuple[tuple[str, int, str], ...]] = {}

    def of(self, name: str) -> tuple[tuple[str, int, str], ...]:
        if name not in self.known:
            self.known[name] = self._look(self.defined.get(name, ""), "")
        return self.known[name]

    def _look(self, text: str, function: str) -> tuple[tuple[str, int, str], ...]:
        if found := _CALL.match(text):
            inner, outer = (self._look(self.defined[x], function) for x in found.groups())
            return inner + outer
        if found := _FILE.match(text):
            path = Path(found[1])
            if not path.is_relative_to(PACKAGE):
                return ()
            return ((str(path.relative_to(PACKAGE)), int(found[2]), function),)
        if (found := _NAMED.match(text)) and found[2]:
            return self._look(self.defined[found[2]], found[1])
        return ()


def sources(
    scheme: str, mode: str, by: str = "line", problem: Problem | None = None
) -> tuple[Counter[str], Counter[str]]:
    """Operations by their own source, and by every source on their call stack.

    Args:
        scheme, mode: scheme and mode of the program.
        by: ``"file"``, ``"line"`` or ``"function"``.
        problem: problem of the program; None: the slider-crank.
    """
    text = lowered(scheme, mode, problem).as_text(debug_info=True)
    places = _Places(text)
    own: Counter[str] = Counter()
    all_of: Counter[str] = Counter()

    def name(place: tuple[str, int, str]) -> str:
        file, line, function = place
        return {"file": file, "line": f"{file}:{line}", "function": f"{file} {function}"}[by]

    for row in re.findall(r"^\s+%.*$", text, re.M):
        found = re.search(r"loc\((#loc\d*)\)\s*$", row)
        stack = places.of(found[1]) if found else ()
        names = [name(x) for x in stack] or ["(elsewhere)"]
        own[names[0]] += 1
        all_of.update(set(names))
    return own, all_of


def main(quick: bool = False) -> Numbers:
    """Counts all programs; ``quick`` those of the first scheme."""
    nsjax.configure()
    numbers: Numbers = {}
    print(f"{'operations':20}" + "".join(f"{mode:>10}" for mode in MODES))
    for scheme in SCHEMES[:1] if quick else SCHEMES:
        found = {mode: count(scheme, mode) for mode in MODES}
        numbers |= {f"{scheme}_{mode}": float(x) for mode, x in found.items()}
        print(f"{scheme:20}" + "".join(f"{x:>10}" for x in found.values()))
    return numbers


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="size of the programs of a run")
    parser.add_argument("--quick", action="store_true", help="one scheme only")
    parser.add_argument("--scheme", help="where the operations of this scheme come from")
    parser.add_argument("--mode", choices=MODES, default="plain")
    parser.add_argument("--by", choices=("file", "line", "function"), default="line")
    parser.add_argument("--robot", type=Path, help="a model file in MJCF")
    arguments = parser.parse_args()
    if arguments.scheme is None:
        main(quick=arguments.quick)
    else:
        nsjax.configure()
        model = None if arguments.robot is None else robot(arguments.robot)
        tables = sources(arguments.scheme, arguments.mode, arguments.by, model)
        for title, table in zip(("own", "on the call stack"), tables, strict=True):
            print(f"{title}:")
            for place, number in table.most_common(45):
                print(f"{number:8} {place}")
