"""The contact solver beside its alternatives: problems met by other programs, iteration counts."""
