"""What the specification says, as data: versions, errors, and the built-in model."""
