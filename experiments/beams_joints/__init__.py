"""Mechanisms of geometrically exact beams: benchmarks of beams and joints.

Of the source paper, [GN], abstract and appendices alone were available; its examples were not. Models and
data are those of Simo and Vu-Quoc (1988) and mechanisms of our own with closed forms of their rigid limit.
"""
