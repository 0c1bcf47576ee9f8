"""Readers of model files in MJCF and URDF, which return the parts of a mechanism."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.multibody.files.readers import LeftOutWarning, ModelFile, read_mjcf, read_urdf

__all__ = ["LeftOutWarning", "ModelFile", "read_mjcf", "read_urdf"]

lazily(__name__)
