"""Keeping catalogs equal: what one has authority over is copied to others, once or as it changes."""
