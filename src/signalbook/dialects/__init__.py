"""Catalog documents in every dialect since 2022: recognised, read into one form, written out of it."""
