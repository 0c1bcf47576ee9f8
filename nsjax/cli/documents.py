"""``nsjax docs``: the site of the documentation."""

from __future__ import annotations

import argparse
from typing import Any

from nsjax.documentation import build


def add(commands: Any) -> None:
    """Adds the command and its arguments."""
    parser = commands.add_parser(
        "docs", help="build the site of the documentation",
        description="Builds guide, reference and notebooks as pages, in a checkout; every warning of the "
        "generator is an error. Needs the extra docs: pip install 'nsjax[docs]'.",
        epilog="example: nsjax docs --output site, then open site/index.html",
    )  # fmt: skip
    parser.set_defaults(command=_build)
    parser.add_argument("--output", metavar="FOLDER", default="site", help="(default: %(default)s)")


def _build(args: argparse.Namespace) -> int:
    print(f"{build(args.output)} is the front page")
    return 0
