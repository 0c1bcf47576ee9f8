"""Schindler, Rezaei, Kursawe, Acary: the half-explicit timestepping scheme [SRKA], its examples.

The paper was available as abstract and introduction only. Models and data are
a bouncing ball (our choice), an impacting elastic bar and a slider-crank (public examples by
authors of the paper), and a rubbing rotor (known by name only: our own stand-in).
"""
