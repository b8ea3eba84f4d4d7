"""Signalbook: a message and event catalog that serves the xRegistry API.

Rule: this module only lists the public names; nothing is defined here but the version.
"""

from typing import TYPE_CHECKING, Any

from signalbook.errors import Problem, RegistryError, SignalbookError, StoreError, UsageError

if TYPE_CHECKING:
    from signalbook.registry.registry import Registry

__all__ = ["Problem", "Registry", "RegistryError", "SignalbookError", "StoreError", "UsageError", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Imported when first asked for: a command that talks to a server starts in half the time without it.
    if name == "Registry":
        from signalbook.registry.registry import Registry

        return Registry
    raise AttributeError(f"module 'signalbook' has no attribute '{name}'")
