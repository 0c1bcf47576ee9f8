"""Trajectories computed by another program (`data/trajectories`), computed again with nsjax.

The models are written here with the public interface alone, as a user would write them.
"""
