"""Values that fusion would compute once for each element that reads them."""

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.jaxtools.storing import once

X = np.array([0.5, -0.0, -np.inf, np.nan, 3.0])


def test_it_is_the_same_array_bit_for_bit() -> None:
    for f in (once, jax.jit(once), jax.jit(jax.vmap(once))):
        np.testing.assert_array_equal(np.asarray(f(X)).view(np.int64), X.view(np.int64))


def test_derivatives_pass_through() -> None:
    f = jax.jit(lambda x: jnp.sum(once(x * x)[None, :] * np.arange(1.0, 4.0)[:, None]))
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(jax.grad(f)(x), 12.0 * x)
    np.testing.assert_array_equal(jax.jacfwd(f)(x), 12.0 * x)
    np.testing.assert_array_equal(jax.hessian(f)(x), 12.0 * np.eye(2))


def test_a_product_reads_it_from_memory() -> None:
    """The compiled program multiplies ``x`` with itself for each of its entries, not of the product's."""

    def text(keep) -> str:
        product = lambda a, x: jnp.sum(a * keep(x * x * x + x)[None, :], axis=1)  # noqa: E731
        return jax.jit(product).lower(np.ones((20, 30)), np.ones(30)).compile().as_text()

    for keep, copied in ((lambda x: x, True), (once, False)):
        fused = [part for part in text(keep).split("\n\n") if "reduce(" in part and "fused" in part]
        assert len(fused) == 1
        assert (fused[0].count(" multiply(") > 1) == copied
