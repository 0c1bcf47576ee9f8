"""Linear algebra that stays inside one compiled kernel for small systems, and structure for large ones."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.linalg.block_structures import (
        Arrow,
        BlockDiagonal,
        Interleaved,
        Interleaving,
        Lattice,
        block_jacobian,
        bordered,
        interleaving,
    )
    from nsjax.linalg.blocks import (
        Blocks,
        Local,
        Paired,
        at_nodes,
        every,
        local_jacobian,
        magnitude,
        onto_nodes,
        product_diagonal,
        summed,
    )
    from nsjax.linalg.dense import (
        INLINE_LIMIT,
        LOOP_LIMIT,
        ROW_LIMIT,
        matmul,
        matvec,
        solve,
        solve_positive,
        solve_rows,
        solve_some_rows,
    )
    from nsjax.linalg.elimination import Pattern
    from nsjax.linalg.iterative import ConjugateGradients, NodeBlocks, Separable, box_colours, coloured
    from nsjax.linalg.structure import (
        BlockTridiagonal,
        Dense,
        Elimination,
        Sparse,
        Structure,
        eliminated,
    )

__all__ = [
    "INLINE_LIMIT", "LOOP_LIMIT", "ROW_LIMIT", "Arrow", "BlockDiagonal",
    "BlockTridiagonal", "Blocks", "ConjugateGradients", "Dense", "Elimination", "Interleaved",
    "Interleaving", "Lattice", "Local", "NodeBlocks", "Paired", "Pattern", "Separable", "Sparse",
    "Structure", "at_nodes", "block_jacobian", "bordered", "box_colours", "coloured", "eliminated", "every",
    "interleaving", "local_jacobian", "magnitude", "matmul", "matvec", "onto_nodes", "product_diagonal",
    "solve", "solve_positive", "solve_rows", "solve_some_rows", "summed",
]  # fmt: skip

lazily(__name__)
