"""Signalbook: a message and event catalog that serves the xRegistry API.

Rule: this module only lists the public names; nothing is defined here but the version.
"""

from typing import TYPE_CHECKING, Any

from signalbook.errors import Problem, RegistryError, SignalbookError, StoreError, UsageError

if TYPE_CHECKING:
    from signalbook.messages import Answer, Catalog, CatalogError, Dispatcher, SchemaPolicy
    from signalbook.registry.registry import Registry
    from signalbook.sources import open_source

__all__ = [
    "Answer",
    "Catalog",
    "CatalogError",
    "Dispatcher",
    "Problem",
    "Registry",
    "RegistryError",
    "SchemaPolicy",
    "SignalbookError",
    "StoreError",
    "UsageError",
    "__version__",
    "open_source",
]

__version__ = "0.1.0"


# Imported when first asked for: a command that talks to a server starts in half the time without them.
_LATE = {
    "Answer": "signalbook.messages",
    "Catalog": "signalbook.messages",
    "CatalogError": "signalbook.messages",
    "Dispatcher": "signalbook.messages",
    "Registry": "signalbook.registry.registry",
    "SchemaPolicy": "signalbook.messages",
    "open_source": "signalbook.sources",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        from importlib import import_module

        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module 'signalbook' has no attribute '{name}'")
