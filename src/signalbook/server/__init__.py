"""The server: a registry over HTTP, and what stands around it."""
