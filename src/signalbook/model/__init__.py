"""What entities of a registry may hold: names, types, attributes, the model language, constraints and named rules."""
