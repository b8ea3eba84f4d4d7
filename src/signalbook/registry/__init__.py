"""The registry: where entities are kept, how they are written, found and shown."""
