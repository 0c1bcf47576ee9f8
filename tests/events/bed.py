"""Runs the test bed or a part of it and prints its statistic.

``python -m tests.events.bed --schemes moreau,generalized_alpha --motions 40 --output out.jsonl``
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time

import nsjax
from tests.events import draws, measure, statistics
from tests.events.truth import cached


def parser() -> argparse.ArgumentParser:
    """Options."""
    p = argparse.ArgumentParser(prog="python -m tests.events.bed", description=__doc__)
    p.add_argument("--schemes", default=",".join(measure.SCHEMES), help="names, by commas")
    p.add_argument("--names", default=",".join(draws.COUNTS), help="mechanisms, by commas")
    p.add_argument("--keys", default="", help="single motions such as box2/17, by commas")
    p.add_argument("--motions", type=int, default=300, help="the first of them, mechanisms in turn")
    p.add_argument("--jammed", type=int, default=0, help="motions drawn to jam, beside the others")
    p.add_argument("--counts", type=int, default=len(measure.STEPS), help="step counts out of all")
    p.add_argument("--part", default="1/1", help="k/n: the k-th of n parts of the programs")
    p.add_argument("--output", type=pathlib.Path, help="JSON lines, added to what is there")
    p.add_argument("--references", type=pathlib.Path, help="JSON lines in which references are kept")
    p.add_argument("--report", type=pathlib.Path, nargs="*", help="only print the statistic of these files")
    return p


def motions(options: argparse.Namespace) -> list[draws.Motion]:
    """Those asked for."""
    names = tuple(options.names.split(","))
    found = draws.everything(names)[: options.motions]
    for k in range(options.jammed):
        found.append(draws.jam("box2" if k % 2 else "box4", k))
    wanted = [k for k in options.keys.split(",") if k]
    return [m for m in draws.everything() if m.key in wanted] if wanted else found


def main(arguments: list[str]) -> int:
    """The command."""
    options = parser().parse_args(arguments)
    if options.report:
        lines = [x for f in options.report for x in f.read_text().splitlines()]
        print(statistics.table([measure.restored(x) for x in lines]))
        return 0
    nsjax.configure()
    every = motions(options)
    names = [n for n in draws.COUNTS if any(m.name == n for m in every)]
    pairs = [(n, s) for s in options.schemes.split(",") for n in names]
    k, n = map(int, options.part.split("/"))
    stride = max(1, len(measure.STEPS) // options.counts)
    steps = measure.STEPS[stride // 2 :: stride][: options.counts]
    records = []
    for name, scheme in pairs[k - 1 :: n]:
        start = time.process_time()
        for m in [m for m in every if m.name == name]:
            records.append(measure.compare(m, cached(m, options.references), scheme, steps))
            if options.output:
                with options.output.open("a") as out:
                    out.write(records[-1].line() + "\n")
        print(f"{name} {scheme}: {time.process_time() - start:.1f} s", file=sys.stderr, flush=True)
    print(statistics.table(records))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
