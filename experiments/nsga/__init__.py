"""Cosimo, Galvez, Cavalieri, Cardona, Bruels 2020: block and bar of the nonsmooth generalized-alpha."""
