"""A catalog that speaks the 0.1 API alone, written from its text (seed 004), sharing nothing with the product.

Common attributes belong to a definition and are shown with each of its versions; a group's document has them once, with
an array of versions, and takes such arrays (2.1, 2.2). What is posted must be what section 3 allows. Listings hold
documents, or ids and numbers where `style` is "ids". Changes are told as CloudEvents to the sinks of subscriptions.
"""

from __future__ import annotations

import http.client
import json
import queue
import re
import threading
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.patience import LONG

Json = dict[str, Any]
Answer = tuple[int, Any, dict[str, str]]
ROOT = "/messagecatalog"
_COMMON = ("id", "specversion", "authority", "format", "description", "tags", "documentation")
_COMMON += ("relatedto", "relatedvia", "relation")
_SEGMENT = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})+")  # RFC 3986, 3.3: segment-nz-nc
_AMQP = ("header", "deliveryannotations", "messageannotations", "properties", "applicationproperties")
# Section 3: the sections that a definition of a format may have; one of another format may have any.
_SECTIONS = {
    "CloudEvents": {"attributes"},
    "AMQP": {*_AMQP, "applicationdata", "footer"},
    "MQTT": {"publish", "userproperty", "payload"},
    "NATS": {"pub", "payload"},
}
_MEMBERS = {"value", "required", "description", "schematype", "schema"}  # 3.1.1 and 3.1.2


class Refused(Exception):
    """An answer that is not the one asked for."""

    def __init__(self, status: int, words: str = "") -> None:
        super().__init__(words)
        self.status = status


class CatalogServer:
    """One catalog at a port of this machine; `spoil` may answer a request in another way, to be a bad peer."""

    def __init__(
        self, *, style: str = "documents", page: int = 0, update: bool = True, events: bool = True, times: bool = True,
        token: str = "", canonical: str = "", deletes_versions: bool = True, mode: str = "structured",
    ) -> None:  # fmt: skip
        self.style, self.page, self.update, self.events, self.times = style, page, update, events, times
        self.token, self.canonical, self.deletes_versions, self.mode = token, canonical, deletes_versions, mode
        self.groups: dict[str, Json] = {}
        self.definitions: dict[str, dict[str, Json]] = {}
        self.subscriptions: dict[str, Json] = {}
        self.spoil: Callable[[str, str], Any] = lambda method, path: None
        self.asked: list[str] = []
        self.posted: list[Json] = []
        self._clock = 0
        self._lock = threading.RLock()
        self._told: queue.Queue[tuple[str, Json] | None] = queue.Queue()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._threads = [
            threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True),
            threading.Thread(target=self._deliver, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End it."""
        self._told.put(None)
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join(LONG)

    # ---- the operations of section 4

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Answer:
        """The answer to one request."""
        parts = [unquote(part) for part in path.split("/") if part]
        with self._lock:
            if parts[:1] == ["subscriptions"] and self.events:
                return self._subscription(method, parts[1:], body)
            if parts == ["messagedefinition"] and method == "GET":
                if "uri" not in query:
                    raise Refused(400, "the parameter uri is missing")
                return 200, self._by_uri(query["uri"][0]), {}
            if parts[:1] != ["messagecatalog"]:
                raise Refused(404)
            if method not in ("GET", "OPTIONS") and not self.update:
                raise Refused(405, "this catalog is read-only")
            return self._catalog(method, path, parts[1:], query, body)

    def _catalog(  # noqa: C901  # one case for each operation
        self, method: str, path: str, parts: list[str], query: dict[str, list[str]], body: Any
    ) -> Answer:
        if method == "OPTIONS" and not parts:
            features = {"filterattributes": ["id"], "pagination": bool(self.page), "update": self.update}
            return 200, {name: value for name, value in features.items() if value}, {}
        match (method, *parts):
            case ("GET",):
                return self._listed(path, query, sorted(self.groups), lambda one: self.groups[one])
            case ("GET", group):
                return 200, self._group(group), {}
            case ("PUT", group):
                return self._put_group(group, body)
            case ("DELETE", group):
                self._of(group)
                del self.groups[group], self.definitions[group]
                self._tell("deleted", f"{ROOT}/{quote(group)}")
                return 204, None, {}
            case ("GET", group, "messagedefinitions"):
                return self._listed(path, query, sorted(self._of(group)), lambda one: self._latest(group, one))
            case ("POST", group, "messagedefinitions"):
                return self._post(group, body)
            case ("DELETE", group, "messagedefinitions"):
                for id_ in sorted(self._of(group)):
                    self._delete(group, id_)
                return 204, None, {}
            case ("GET", group, "messagedefinitions", id_):
                shown = self._latest(group, id_)
                return 200, shown, self._link(group, id_, shown["version"])
            case ("DELETE", group, "messagedefinitions", id_):
                self._delete(group, id_)
                return 204, None, {}
            case ("GET", group, "messagedefinitions", id_, "versions"):
                numbers = sorted(self._definition(group, id_)["versions"])
                return self._listed(path, query, numbers, lambda one: self._version(group, id_, one))
            case ("GET", group, "messagedefinitions", id_, "versions" | "version", number) if number.isdigit():
                return 200, self._version(group, id_, int(number)), self._link(group, id_, int(number))
            case ("DELETE", group, "messagedefinitions", id_, "versions", number) if (
                self.deletes_versions and number.isdigit()
            ):
                self._version(group, id_, int(number))
                if len(self._definition(group, id_)["versions"]) == 1:  # 2.2: a definition has at least one version
                    self._delete(group, id_)
                    return 204, None, {}
                del self._definition(group, id_)["versions"][int(number)]
                self._tell("deleted", f"{ROOT}/{quote(group)}/messagedefinitions/{quote(id_)}/version/{number}")
                return 204, None, {}
        raise Refused(405 if method != "GET" and parts[:1] and parts[0] in self.groups else 404)

    def _listed(
        self, path: str, query: dict[str, list[str]], names: list[Any], document: Callable[[Any], Json]
    ) -> Answer:
        if "id" in query:  # 4.2.1: every implementation filters by id
            names = [one for one in names if one in query["id"]]
        start = int(query.get("start", ["0"])[0])
        some = names[start : start + self.page] if self.page else names
        more = start + len(some) < len(names)
        headers = {"Link": f'<{path}?start={start + len(some)}>; count={len(names)}; rel="next"'} if more else {}
        return 200, some if self.style == "ids" else [document(one) for one in some], headers

    def _put_group(self, group: str, body: Json) -> Answer:
        if body.get("specversion") != "0.1" or not body.get("format"):
            raise Refused(400, "a group needs specversion 0.1 and a format")
        if body.get("id", group) != group or not _SEGMENT.fullmatch(quote(group)):
            raise Refused(400, "the id of a group is that of its path, a segment of one")
        known = self.groups.get(group)
        if known is not None and known["format"] != body["format"] and self.definitions[group]:
            raise Refused(409, "the format cannot change")
        at = self._now()
        kept = {name: value for name, value in body.items() if name != "definitions"}
        times = {"createdtimeutc": known["createdtimeutc"] if known else at, "updatedtimeutc": at}
        self.groups[group] = {**kept, "id": group, **times}
        self.definitions.setdefault(group, {})
        self._tell("updated", f"{ROOT}/{quote(group)}", at)
        beside = {one.get("id") for one in body.get("definitions", [])}
        for one in body.get("definitions", []):
            self._post(group, {"specversion": "0.1", **one}, beside)
        return 200 if known else 201, self._group(group), {}

    def _group(self, group: str) -> Json:
        """A group with its definitions: each with what its versions share, and without a specversion (2.2.4)."""
        definitions = [
            {name: value for name, value in one["common"].items() if name != "specversion"}
            | {"versions": [one["versions"][number] for number in sorted(one["versions"])]}
            for _, one in sorted(self._of(group).items())
        ]
        return {**self.groups[group], "definitions": definitions}

    def _delete(self, group: str, id_: str) -> None:
        self._definition(group, id_)
        del self.definitions[group][id_]
        self._tell("deleted", f"{ROOT}/{quote(group)}/messagedefinitions/{quote(id_)}")

    def _post(self, group: str, body: Json, beside: Collection[Any] = ()) -> Answer:
        """Add the version that a document is, or each one of its array of versions (2.2)."""
        if "versions" not in body:
            return self._add(group, body, beside)
        if not body["versions"]:
            raise Refused(400, "a definition has at least one version")
        common = {name: value for name, value in body.items() if name != "versions"}
        return [self._add(group, {**common, **one}, beside) for one in body["versions"]][-1]

    def _add(self, group: str, body: Json, beside: Collection[Any]) -> Answer:
        definitions = self._of(group)
        id_, form = body.get("id"), self.groups[group]["format"]
        if not id_ or not isinstance(body.get("definition"), dict) or body.get("format", form) != form:
            raise Refused(400, "a version needs id and definition, and the format of its group")
        if body.get("specversion") != "0.1":
            raise Refused(400, "specversion is missing")
        if not _SEGMENT.fullmatch(id_):
            raise Refused(400, "the id is not a segment of a path")
        _check(body["definition"], form)
        if form == "CloudEvents" and body["definition"].get("attributes", {}).get("type", {}).get("value") != id_:
            raise Refused(400, "the id must be the type")
        if body.get("relatedto") and body["relatedto"] not in {*definitions, *beside, id_}:
            raise Refused(400, "relatedto names no definition of the group")
        known = definitions.setdefault(id_, {"common": {}, "versions": {}, "last": 0})
        if known["versions"] and known["common"].get("authority") != body.get("authority"):
            raise Refused(409, "the authority cannot change")
        self.posted.append(body)
        known["common"] = {name: body[name] for name in _COMMON if name in body} | {"format": form}
        number = known["last"] = known["last"] + 1
        at = self._now()
        more = {name: value for name, value in body.items() if name not in {*_COMMON, "version", "createdtimeutc"}}
        known["versions"][number] = {"version": number, **({"createdtimeutc": at} if self.times else {}), **more}
        self._tell("updated", f"{ROOT}/{quote(group)}/messagedefinitions/{quote(id_)}/version/{number}", at)
        return 201, self._version(group, id_, number), self._link(group, id_, number)

    def _of(self, group: str) -> dict[str, Json]:
        if group not in self.groups:
            raise Refused(404, "no such group")
        return self.definitions[group]

    def _definition(self, group: str, id_: str) -> Json:
        found = self._of(group).get(id_)
        if found is None:
            raise Refused(404, "no such definition")
        return found

    def _version(self, group: str, id_: str, number: int) -> Json:
        definition = self._definition(group, id_)
        if number not in definition["versions"]:
            raise Refused(404, "no such version")
        return {**definition["common"], **definition["versions"][number]}

    def _latest(self, group: str, id_: str) -> Json:
        return self._version(group, id_, max(self._definition(group, id_)["versions"]))

    def _link(self, group: str, id_: str, number: int) -> dict[str, str]:
        if not self.canonical:
            return {}
        path = f"{quote(group)}/messagedefinitions/{quote(id_)}/versions/{number}"
        return {"Link": f"<{self.canonical}/{path}>;rel=canonical"}

    def _by_uri(self, uri: str) -> Json:
        for group, definitions in self.definitions.items():
            for id_, definition in definitions.items():
                base = str(definition["common"].get("authority") or self.address + ROOT).rstrip("/")
                for number in definition["versions"]:
                    path = f"{base}/{group}/messagedefinitions/{id_}/versions/{number}"
                    if uri == (f"{base}:{group}:{id_}:{number}" if base.startswith("urn:") else path):
                        return self._version(group, id_, number)
        raise Refused(404)

    def _now(self) -> str:
        """An instant that is later than the one before; how long anything takes does not matter."""
        self._clock += 1
        return datetime.fromtimestamp(1_600_000_000 + self._clock, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    # ---- section 5.5

    def _subscription(self, method: str, parts: list[str], body: Any) -> Answer:
        if method == "POST" and not parts:
            if body.get("source") != self.address or body.get("protocol") not in ("HTTP", "HTTPS"):
                raise Refused(400, "the source must be the root of the catalog")
            id_ = f"s{len(self.subscriptions) + 1}"
            self.subscriptions[id_] = {"id": id_, **body}
            return 201, self.subscriptions[id_], {}
        if method == "GET" and not parts:
            return 200, list(self.subscriptions.values()), {}
        if len(parts) == 1 and parts[0] in self.subscriptions and method in ("GET", "DELETE"):
            found = self.subscriptions[parts[0]]
            if method == "DELETE":
                del self.subscriptions[parts[0]]
            return 200, found, {}
        raise Refused(404)

    def _tell(self, what: str, subject: str, at: str = "") -> None:
        type_ = f"io.cloudevents.messagecatalog.{what}.v1"
        event = {
            "specversion": "1.0", "type": type_, "source": self.address, "subject": subject, "id": str(self._clock),
            "time": at or self._now(),
        }  # fmt: skip
        for one in self.subscriptions.values():
            prefix = one.get("filter", {}).get("prefix", {}).get("subject", "")
            if subject.startswith(prefix):
                self._told.put((one["sink"], event))

    def _deliver(self) -> None:
        while (told := self._told.get()) is not None:
            sink, event = told
            place = urlsplit(sink)
            if self.mode == "binary":
                headers, content = {f"ce-{name}": value for name, value in event.items()}, b""
            else:
                headers, content = {"content-type": "application/cloudevents+json"}, json.dumps(event).encode()
            connection = http.client.HTTPConnection(place.netloc, timeout=LONG)
            try:
                connection.request("POST", f"{place.path}?{place.query}".rstrip("?"), content, headers)
                connection.getresponse().read()
            except OSError:
                pass  # nobody is there
            finally:
                connection.close()


def _check(definition: Json, form: str) -> None:
    """Refuse what the metaschema of a format does not allow: other sections, and fields that are not templates."""
    if form not in _SECTIONS:
        return
    for name, section in definition.items():
        if name not in _SECTIONS[form] or not isinstance(section, dict):
            raise Refused(400, f"{form} has no section {name}")
        for field, value in section.items():
            if isinstance(value, dict) and not value.keys() <= _MEMBERS:
                raise Refused(400, f"{name}.{field} is not a template")


def _handler(catalog: CatalogServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            place = urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("content-length") or 0))
            catalog.asked.append(f"{self.command} {self.path}")
            method = "GET" if self.command == "HEAD" else self.command
            try:
                if catalog.token and self.headers.get("authorization") != f"Bearer {catalog.token}":
                    raise Refused(401)
                spoilt = catalog.spoil(method, place.path)
                if spoilt is not None:
                    status, value, headers = spoilt
                else:
                    body = json.loads(content) if content else None
                    status, value, headers = catalog.answer(method, place.path, parse_qs(place.query), body)
            except Refused as error:
                status, value, headers = error.status, {"error": str(error)}, {}
            text = value if isinstance(value, bytes) else b"" if value is None else json.dumps(value).encode()
            self.send_response(status)
            for name, header in headers.items():
                self.send_header(name, header)
            if status != 204:
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if status != 204 and self.command != "HEAD":
                self.wfile.write(text)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_OPTIONS = _answer

        def log_message(self, *_: object) -> None:
            """Nothing is told of each request."""

    return Handler
