"""Reading a registry: what a path addresses, flags, filters, and entities as JSON text."""
