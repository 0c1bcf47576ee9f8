"""Contacts of mechanisms: shapes, pairs of shapes that meet, and the rows of their gaps and slips."""
