"""Contacts of mechanisms: shapes, pairs of them that meet, and the rows of their gaps and slips."""
