"""JSON Structure, the draft-04 of its core."""
