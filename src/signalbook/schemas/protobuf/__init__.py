"""Protobuf 2 and 3."""
