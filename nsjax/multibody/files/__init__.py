"""Mechanisms that others wrote: model files in MJCF and URDF, read into parts."""

from nsjax.multibody.files.readers import LeftOutWarning, ModelFile, read_mjcf, read_urdf

__all__ = ["LeftOutWarning", "ModelFile", "read_mjcf", "read_urdf"]
