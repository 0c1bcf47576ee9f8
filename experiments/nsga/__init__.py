"""Cosimo, Galvez, Cavalieri, Cardona, Bruels 2020: the examples of the nonsmooth generalized-alpha."""
