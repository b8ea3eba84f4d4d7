"""XML Schema 1.0."""
