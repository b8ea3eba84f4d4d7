"""Registry documents without a registry: names, value types, the model, and the attributes of one entity."""
