"""Where the parts meet: a store, the registry in it, and the server in front.

Rule: only this module and the command line know all of them.
"""

from __future__ import annotations

import sys

from signalbook.registry.capabilities import Offer
from signalbook.registry.registry import model_source
from signalbook.registry.requests import Requests, spec_version
from signalbook.registry.store import open_store
from signalbook.server import run
from signalbook.server.dispatch import RegistryService
from signalbook.server.flow import Flow
from signalbook.settings import Settings
from signalbook.sources import choose_model, include_loader

__all__ = ["RESERVED", "flow", "serve", "service"]

# the paths that this server has, or will have, besides those of the model
RESERVED = frozenset(
    {"messagecatalog", "messagedefinition", "subscriptions", "changes", "match", "validate", "build", "ui", "metrics"}
    | {"healthz", "capabilities", "capabilitiesoffered", "export", "model", "modelsource"}
)


def service(settings: Settings) -> RegistryService:
    """Return what answers requests by these settings."""
    store = open_store(settings.store)
    try:
        include = include_loader(settings.include_from) if settings.include_from is not None else None
        spec = spec_version(settings.specversion)
        offer = Offer(trust_unknown=settings.trust_unknown)
        requests = Requests(store, spec, offer=offer, load_include=include, reserved=RESERVED)
        requests.create(settings.registryid, model_source(choose_model(settings.model)))
        requests.setup(store.reader())
    except BaseException:
        store.close()
        raise
    return RegistryService(requests, local=not store.url.startswith("postgres"))


def flow(settings: Settings) -> Flow:
    """Return the way to the service, for embedding in another server."""
    return run.flow_for(service(settings), settings)


def serve(settings: Settings) -> None:
    """Serve until a signal says stop; what the workers could not open is refused before there are any."""
    settings = settings.checked()
    if not settings.store.startswith("memory:"):
        with service(settings).store as store:
            held = store.reader().one("SELECT value FROM settings WHERE name = 'registryid'")
        if held is not None and held[0] != settings.registryid:
            print(f"signalbook: the store holds the registry '{held[0]}', which keeps its id", file=sys.stderr)
    run.serve(service, settings)
