"""Schoeder, Ulbrich, Schindler: the Gear-Gupta-Leimkuhler method for impacting systems [S&U&S]."""
