"""Writing to a registry: operations, the work of a request, resources, versions, checks, commit."""
