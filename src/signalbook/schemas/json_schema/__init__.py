"""JSON Schema draft-07, 2019-09 and 2020-12."""
