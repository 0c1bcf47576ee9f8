"""Ready-made mechanical systems, one file per model, and their registry."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.models.block import SPINNING_BLOCK, block
    from nsjax.models.bouncing_ball import bouncing_ball
    from nsjax.models.elastic_bar import STEEL_BAR, elastic_bar
    from nsjax.models.flexible_cube import flexible_cube
    from nsjax.models.flexible_pendulum import flexible_pendulum
    from nsjax.models.flexible_solid import flexible_solid
    from nsjax.models.mass_spring_chain import mass_spring_chain
    from nsjax.models.registry import REGISTRY, ModelEntry
    from nsjax.models.rubbing_rotor import rubbing_rotor
    from nsjax.models.slider_crank import TABLE_2, slider_crank, slider_crank_bilateral
    from nsjax.models.slider_crank_flexible import slider_crank_flexible
    from nsjax.models.solid import Fields, solid_of

__all__ = [
    "REGISTRY", "SPINNING_BLOCK", "STEEL_BAR", "TABLE_2", "Fields", "ModelEntry", "block", "bouncing_ball",
    "elastic_bar", "flexible_cube", "flexible_pendulum", "flexible_solid", "mass_spring_chain",
    "rubbing_rotor", "slider_crank", "slider_crank_bilateral", "slider_crank_flexible", "solid_of",
]  # fmt: skip

lazily(__name__)
