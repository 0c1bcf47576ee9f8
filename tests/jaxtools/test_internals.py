"""What the package uses of JAX beyond its public interface stands in one file."""

from __future__ import annotations

import ast
import pathlib

import jax

import nsjax
from nsjax.jaxtools import internals, value_with_derivative_of

ROOT = pathlib.Path(nsjax.__file__).parent
HIDDEN = ("jax._src", "jax.interpreters", "jax.extend", "jax.experimental", "jaxlib.")


def hidden(tree: ast.AST) -> list[str]:
    """Names beyond JAX's public interface that a file imports, or reads of tracers."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [x.name for x in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{x.name}" for x in node.names]
        elif isinstance(node, ast.Attribute):
            base = node.value
            while isinstance(base, ast.Attribute):
                base = base.value
            found += [ast.unparse(node)] if isinstance(base, ast.Name) and base.id == "jax" else []
            found += ["jax._src of a tracer"] if node.attr in ("_trace", "axis_data") else []
        elif isinstance(node, ast.Constant) and node.value in ("_trace", "axis_data"):
            found.append("jax._src of a tracer")
    return [x for x in found if x.startswith(HIDDEN)]


def test_one_file_knows_what_is_inside_jax() -> None:
    found = {f.relative_to(ROOT).as_posix(): hidden(ast.parse(f.read_text())) for f in ROOT.rglob("*.py")}
    assert [name for name, names in found.items() if names] == ["jaxtools/internals.py"]


def test_what_is_hidden_is_found() -> None:
    text = "import jax._src.core\nfrom jax.extend import core\njax.interpreters.ad\ngetattr(x, '_trace')"
    assert len(hidden(ast.parse(text))) == 5
    assert hidden(ast.parse("import jax\nfrom jax import lax\njax.core.Tracer")) == []


def test_jax_has_no_entry_for_its_own_operations() -> None:
    assert float(jax.grad(value_with_derivative_of(jax.numpy.sin, jax.numpy.sin))(0.0)) == 1.0
    assert internals.stop_gradient_p not in internals.ad.primitive_transposes
