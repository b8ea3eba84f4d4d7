"""Where the parts meet: a store, the registry in it, and the server in front.

Rule 1: only this module and the command line know all of them.
Rule 2: what only a server needs is imported when one is made: a command on a store starts without it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from signalbook.client import Call, Client, RegistryReply
from signalbook.errors import RegistryError, UsageError, one_line
from signalbook.messages.catalog import Catalog
from signalbook.messages.schema_library import SchemaPolicy
from signalbook.registry import schema_ids
from signalbook.registry.capabilities import Offer
from signalbook.registry.read.reads import Limits
from signalbook.registry.registry import Registry, model_source
from signalbook.registry.requests import Requests, spec_version
from signalbook.registry.store import open_store
from signalbook.server import problems
from signalbook.server.catalog import RegistryCatalog
from signalbook.server.dispatch import Face, RegistryService, joined
from signalbook.server.http import Request
from signalbook.settings import Settings
from signalbook.sources import choose_model, include_loader
from signalbook.spec import versions

if TYPE_CHECKING:
    from signalbook.server.flow import Flow

__all__ = [
    "GIVE_WAY",
    "RESERVED",
    "RegistryCatalog",
    "StoreTransport",
    "catalog_of",
    "flow",
    "peer_client",
    "peer_transport",
    "serve",
    "service",
    "store_client",
]

# the paths that this server has, or will have, besides those of the model
RESERVED = frozenset(
    {"messagecatalog", "messagedefinition", "subscriptions", "changes", "match", "validate", "build", "ui", "metrics"}
    | {"replicas", "openapi.json", "healthz", "capabilities", "capabilitiesoffered", "export", "model", "modelsource"}
    | {"confluent"}
)
# Of these, the paths that came after stores were made: each gives way where a store's model has its name.
GIVE_WAY = frozenset({"confluent", "access", "audit", "check", "ui"})

_log = logging.getLogger("signalbook.server")


def service(settings: Settings, *, owner: bool = False) -> RegistryService:
    """Return what answers requests by these settings."""
    from signalbook.server.access import access_by
    from signalbook.server.catalog01.routes import MessageCatalog
    from signalbook.server.events.changes import ChangeFeed
    from signalbook.server.events.delivery import Courier
    from signalbook.server.events.sinks import Sinks, parse_networks
    from signalbook.server.events.subscriptions import Subscriptions
    from signalbook.server.messages import Judgements, message_paths
    from signalbook.server.openapi import OpenApi
    from signalbook.server.replicas import Replicas

    store = open_store(settings.store, connections=settings.store_connections)
    try:
        include = include_loader(settings.include_from) if settings.include_from is not None else None
        spec = spec_version(settings.specversion)
        offer = Offer(trust_unknown=settings.trust_unknown)
        reserved = RESERVED - settings.without
        requests = Requests(
            store, spec, offer=offer, load_include=include, reserved=reserved, read_only=not settings.takes_writes
        )
        requests.create(settings.registryid, model_source(choose_model(settings.model)))
        groups = requests.setup(store.reader()).model.groups
        off = _given_way(reserved, groups)
        if off:
            reserved -= off
            requests.release(off)
        taken = sorted(reserved & groups.keys())
        if taken:
            raise UsageError(
                f"the model in this store has the group type '{taken[0]}', which is a path of this server itself; "
                f"rename it, or leave the path out with --without {taken[0]} where that can be"
            )
    except BaseException:
        store.close()
        raise
    settings = replace(settings, without=settings.without | off)
    faces = _confluent(requests, settings, owner) if "confluent" not in settings.without else {}
    judgements = Judgements()
    policy = SchemaPolicy(required=settings.schemas == "required")
    extensions = message_paths(RegistryCatalog(store, policy, _own_addresses(settings)).asked, judgements)
    changes = ChangeFeed(store)
    catalog = MessageCatalog(requests, may_write=access_by(settings).may_write)
    sinks = Sinks(parse_networks(settings.allow_sinks))
    subscriptions = Subscriptions(store, sinks, access_by(settings).may_write)
    branches = {
        "changes": changes.answer,
        "replicas": Replicas(requests, settings.base_url, owner=owner).answer,
        "subscriptions": subscriptions.answer,
        "messagecatalog": catalog.answer,
        "messagedefinition": catalog.resolve,
        "openapi.json": OpenApi(requests).answer,
    }
    return RegistryService(
        requests,
        branches={path: answer for path, answer in branches.items() if path not in settings.without},
        waiting={
            "/changes": changes.wait,
            "POST /subscriptions": subscriptions.wait,
            "PUT /subscriptions": subscriptions.wait,
        },
        described=frozenset({"/messagecatalog"} if "messagecatalog" not in settings.without else ()),
        courier=Courier(store, sinks, settings.keep_changes) if settings.deliver else None,
        judgements=judgements,
        local=not store.url.startswith("postgres"),
        extensions={path: answer for path, answer in extensions.items() if path[1:] not in settings.without},
        faces=faces,
    )


def _given_way(reserved: Collection[str], groups: Collection[str]) -> frozenset[str]:
    """The paths of the server that are off, because the model of the store has a group type of the name."""
    off = frozenset(GIVE_WAY & set(reserved) & set(groups))
    for name in sorted(off):
        _log.warning(
            "/%s is off: the model in this store has a group type of that name, which goes before; "
            "rename the group type to have both",
            one_line(name),
        )
    return off


def _confluent(requests: Requests, settings: Settings, owner: bool) -> dict[str, Face]:
    """The API of Confluent's registry by the first part of its paths; a model without schemas has none.

    A server says which groups are contexts; a command on its store leaves that as it is.
    """
    from signalbook.server.confluent.routes import ROOT_NAMES, Confluent

    group_type = requests.setup(requests.store.reader()).model.groups.get(schema_ids.GROUPS)
    if group_type is None or schema_ids.SCHEMAS not in group_type.resources:
        return {}
    said = schema_ids.Contexts(settings.confluent_group, settings.confluent_contexts == "all")
    requests.enter_contexts(schema_ids.contexts_of(requests.store.reader()) if owner else said)
    face = Confluent(requests, catalog=settings.confluent_associations == "catalog")
    return {"confluent": face, **(dict.fromkeys(ROOT_NAMES, face) if settings.confluent_root else {})}


# What the owner of a store asks for may be as large as this machine allows, unlike what a server builds for a client.
_OWNER = Limits(page=1 << 62, size=1 << 62, filtering=1 << 62)


class StoreTransport:
    """Calls of a `Client` answered in this process, without a socket; the service is opened with the first of them."""

    address = ""

    def __init__(self, name: str, open_service: Callable[[], RegistryService]) -> None:
        self.name = name
        self._open = open_service

    @cached_property
    def _service(self) -> RegistryService:
        return self._open()

    def answer(self, call: Call) -> RegistryReply:
        """The reply of the registry in the store."""
        path, _, query = call.path.partition("?")
        path = unquote(path, errors="replace")
        request = Request(call.method, path, query, joined(call.headers.items()), call.content or b"", "")
        try:
            response = self._service.answer(request)
        except RegistryError as error:
            response = problems.respond(error, path)
        return RegistryReply(self.name, response.status, joined(response.headers), response.body)

    def close(self) -> None:
        """Give the store back, where it was opened."""
        if "_service" in self.__dict__:
            self._service.close()


def store_client(store: str, model: Mapping[str, Any] | str = "builtin") -> Client:
    """Return the client of the registry in a store, made with this model where there is none.

    A call has the rights of its owner; the paths are those of the specification alone.
    """

    def open_service() -> RegistryService:
        opened = open_store(store)
        try:
            requests = Requests(opened, versions.DEFAULT, limits=_OWNER)
            requests.create("signalbook", model_source(choose_model(model) if isinstance(model, str) else model))
        except BaseException:
            opened.close()
            raise
        return RegistryService(requests, owner=True)

    return Client(StoreTransport(store, open_service))


def peer_client(store: str) -> Client:
    """Return the client of a store that replicates: with every path that a server has, and its limits."""
    return Client(peer_transport(store))


def peer_transport(store: str) -> StoreTransport:
    """Return what brings calls to a store with every path that a server has, Confluent's API too."""
    return StoreTransport(store, lambda: service(Settings(store=store, deliver=False), owner=True))


def _own_addresses(settings: Settings) -> tuple[str, ...]:
    """The addresses that a server knows to be its own: the one that its operator fixed, and where it listens."""
    listening = replace(settings, base_url="").address if settings.port else ""
    return tuple(one for one in (settings.base_url, listening) if one)


def catalog_of(registry: Registry) -> Catalog:
    """The catalog that a registry holds now; it goes on when the registry is closed."""
    return RegistryCatalog(registry.store, asks_store=False).current()


def flow(settings: Settings) -> Flow:
    """Return the way to the service, for embedding in another server."""
    from signalbook.server import run

    # Another server listens, and where it does is not known here.
    return run.flow_for(service(replace(settings, port=0)), settings)


def serve(settings: Settings) -> None:
    """Serve until a signal says stop; what the workers could not open is refused before there are any."""
    from signalbook.server import run

    settings = settings.checked()
    if not settings.store.startswith("memory:"):
        with service(settings).store as store:
            held = store.reader().one("SELECT value FROM settings WHERE name = 'registryid'")
        if held is not None and held[0] != settings.registryid:
            print(
                f"signalbook: the store holds the registry '{one_line(held[0])}', which keeps its id", file=sys.stderr
            )
    run.serve(service, settings)
