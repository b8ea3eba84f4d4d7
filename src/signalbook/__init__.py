"""Signalbook: a message and event catalog that serves the xRegistry API.

Rule: this module only lists the public names; nothing is defined here but the version.
"""

from signalbook.errors import Problem, RegistryError, SignalbookError, StoreError, UsageError

__all__ = ["Problem", "RegistryError", "SignalbookError", "StoreError", "UsageError", "__version__"]

__version__ = "0.1.0"
