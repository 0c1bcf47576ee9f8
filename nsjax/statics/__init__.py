"""Positions of rest: equilibria of problems, and the motion that settles in one."""
