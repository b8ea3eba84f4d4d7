"""Random writes to registries of two models, and the paths of what they may write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

__all__ = ["BUILTIN", "FLAGS", "PLAIN", "World", "Write", "each_write", "writes"]

TIME = "2030-01-01T00:00:00Z"
XREFS = ["/dirs/d1/files/f2", "/dirs/d2/files/f1", "/dirs/d1/files/nope"]


@dataclass(frozen=True, slots=True)
class World:
    """A model, and the ids that are written under it; each resource has versions v1, v2 and 1."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    documents: tuple[str, ...]
    model: str = "empty"
    sources: tuple[dict[str, Any], ...] = ()
    own: dict[str, Any] = field(default_factory=dict)  # attributes of resources without a document

    @property
    def paths(self) -> list[str]:
        """Every path that may hold an entity, with and without `$details`, and some spellings that hold none."""
        found = ["/", *self.groups, f"{self.groups[0]}/", self.groups[0].upper()]
        for resource in (*self.resources, *self.documents):
            found += [f"{resource}/meta", resource.replace("/d", "/D").replace("/g", "/G")]
            for entity in (resource, *(f"{resource}/versions/{vid}" for vid in ("v1", "v2", "1", "V1"))):
                found += [entity, f"{entity}$details"]
        return found


_OPEN = {"*": {"type": "any"}}
_DIRS = {
    "singular": "dir",
    "attributes": _OPEN,
    "resources": {
        "files": {"singular": "file", "hasdocument": False, "attributes": _OPEN, "metaattributes": _OPEN},
        "docs": {"singular": "doc", "hasdocument": True, "maxversions": 2, "attributes": _OPEN},
    },
}
_FEWER = {**_DIRS, "attributes": {"color": {"type": "string"}, "name": {"type": "string"}}}
PLAIN = World(
    groups=("/dirs/d1", "/dirs/d2"),
    resources=("/dirs/d1/files/f1", "/dirs/d1/files/f2", "/dirs/d2/files/f1"),
    documents=("/dirs/d1/docs/x",),
    sources=({"groups": {"dirs": _DIRS}}, {"groups": {"dirs": _FEWER}}),
    own={"color": st.sampled_from(["red", "grün", ""]), "anything": st.sampled_from([1, 2.5, [1, {"a": None}], {}])},
)
BUILTIN = World(
    groups=("/messagegroups/g", "/schemagroups/s", "/endpoints/e"),
    resources=("/messagegroups/g/messages/m", "/endpoints/e/messages/m"),
    documents=("/schemagroups/s/schemas/x",),
    model="builtin",
    own={
        "envelope": st.just("CloudEvents/1.0"),
        "envelopemetadata": st.sampled_from([{"type": {"value": "a.b"}}, {"source": {"type": "uritemplate"}}]),
        "protocol": st.sampled_from(["KAFKA", "HTTP/1.1"]),
        "basemessage": st.just("/messagegroups/g/messages/base"),
        "basemessageuri": st.just("/messagegroups/g/messages/base"),
        "dataschemauri": st.just("#/schemagroups/s/schemas/x"),
    },
)

_COMMON = {
    "name": st.sampled_from(["one", "zwei", "三つの名前"]),
    "description": st.just('"quoted" \\ and\nmore'),
    "labels": st.sampled_from([{}, {"stage": "dev"}, {"a": ""}, None]),
    "createdat": st.just(TIME),
    "modifiedat": st.sampled_from([TIME, None]),
    "icon": st.just("http://example.com/i.png"),
    "deprecated": st.sampled_from([{}, {"documentation": "http://a.b"}, {"docs": "http://a.b"}, {"effective": TIME}]),
}
_META = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.just({"in": "meta"}),
        "defaultversionid": st.sampled_from(["v1", "v2", "1", None]),
        "defaultversionsticky": st.booleans(),
        "compatibility": st.sampled_from(["backward", "none", None]),
        "deprecated": st.just({"alternative": "http://a.b"}),
        "xref": st.sampled_from([*XREFS, None, None]),
    },
)
_SHAPES = ["?inline=*", "?specversion=1.0-rc2", "?specversion=1.0-rc4", "?inline=meta", "?inline=versions", "?doc"]
_SETS = ["?setdefaultversionid=v1", "?setdefaultversionid=null", "?setdefaultversionid=request", "?ignore=epoch"]
_ENDINGS = ["", "", "", *_SHAPES]
FLAGS = ["", *_SHAPES, "?binary", "?collections", "?filter=name=nobody", "?sort=name", *_SETS]
_VERSIONS = ["v1", "v2", "1"]


@dataclass(frozen=True, slots=True)
class Write:
    """One request; `query` is the part of it that shapes the answer too."""

    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    query: str = ""

    @property
    def collection(self) -> bool:
        """Whether a collection is addressed."""
        return self.path.count("/") % 2 == 1 and not self.path.endswith(("/", "/meta", "/modelsource", "/capabilities"))


def _groups(world: World) -> st.SearchStrategy[Write]:
    bodies = st.fixed_dictionaries({}, optional=_COMMON)
    path = st.sampled_from(["/", *world.groups])
    alone = st.builds(Write, st.sampled_from(["PUT", "PATCH"]), path, bodies, query=st.sampled_from(_ENDINGS))

    def many(group: str) -> st.SearchStrategy[Write]:
        _, plural, gid = group.split("/")
        some = bodies.map(lambda body: {gid: body, "other": {}})
        query = st.sampled_from(_ENDINGS)
        return st.one_of(
            st.builds(Write, st.sampled_from(["POST", "PATCH"]), st.just(f"/{plural}"), some, query=query),
            st.builds(Write, st.just("POST"), st.just("/"), some.map(lambda body: {plural: body})),
        )

    return st.one_of(alone, st.sampled_from(world.groups).flatmap(many))


def _resources(world: World) -> st.SearchStrategy[Write]:
    own = st.fixed_dictionaries({}, optional={**_COMMON, **world.own})
    query = st.sampled_from([*_ENDINGS, *_SETS])

    def of(resource: str) -> st.SearchStrategy[Write]:
        vid = st.sampled_from(_VERSIONS)
        details = "$details" if resource in world.documents else ""
        with_meta = st.builds(lambda body, meta: {**body, "meta": meta}, own, _META)
        entity = own | with_meta
        changing = st.sampled_from(["PUT", "PATCH"])
        version = vid.map(lambda one: f"{resource}/versions/{one}{details}")
        group, plural, rid = "/".join(resource.split("/")[:3]), *resource.split("/")[3:]
        some = st.dictionaries(vid, own, min_size=1)
        adding = st.sampled_from(["POST", "PATCH"])
        alone = entity.map(lambda body: {rid: body})
        return st.one_of(
            st.builds(Write, changing, st.just(resource + details), entity, query=query),
            st.builds(Write, changing, version, own, query=query),
            st.builds(Write, changing, st.just(f"{resource}/meta"), _META, query=query),
            st.builds(Write, st.just("POST"), st.just(resource + details), own, query=query),
            st.builds(Write, adding, st.just(f"{resource}/versions"), some, query=query),
            st.builds(Write, st.just("POST"), st.just(group), alone.map(lambda body: {plural: body})),
            st.builds(Write, adding, st.just(f"{group}/{plural}"), alone),
        )

    return st.sampled_from([*world.resources, *world.documents]).flatmap(of)


def _documents(world: World) -> st.SearchStrategy[Write]:
    contents = st.sampled_from([b"", b"text", b'{"type": "object"}', b"\xff\x00"])
    headers = st.fixed_dictionaries(
        {},
        optional={
            "content-type": st.sampled_from(["text/plain", "application/json"]),
            "xregistry-name": st.just("in%20a header"),
            "xregistry-labels-stage": st.sampled_from(["dev", "null"]),
            "xregistry-versionid": st.sampled_from(_VERSIONS),
        },
    )
    places = [place for path in world.documents for place in (path, f"{path}/versions/v1", f"{path}/versions/v2")]
    method = st.sampled_from(["PUT", "PUT", "POST"])
    return st.builds(Write, method, st.sampled_from(places), contents, headers, query=st.sampled_from(["", *_SETS]))


def _others(world: World) -> st.SearchStrategy[Write]:
    entities = [*world.groups, *world.resources, *world.documents]
    gone = [*entities, *(f"{one}/versions/v1" for one in (*world.resources, *world.documents))]
    shortself = st.booleans().map(lambda on: {"shortself": on})
    found = [
        st.builds(Write, st.just("DELETE"), st.sampled_from(gone)),
        st.builds(Write, st.just("PATCH"), st.just("/capabilities"), shortself),
    ]
    if world.sources:
        found.append(st.builds(Write, st.just("PUT"), st.just("/modelsource"), st.sampled_from(world.sources)))
    return st.one_of(found)


def each_write(world: World) -> Iterator[Write]:
    """A write of each kind to each kind of entity and collection; a resource has got a version more each time."""
    new, meta = {"name": "new", "labels": {"a": "b"}}, {"labels": {"in": "meta"}}
    for method in ("PUT", "PATCH"):
        yield Write(method, "/", new)
        yield Write(method, world.groups[0], new)
    for resource in (world.resources[0], world.documents[0]):
        details = "$details" if resource in world.documents else ""
        _, plural, gid, name, rid = resource.split("/")
        some = {rid: new}
        yield Write("POST", "/", {plural: {gid: {**new, name: some}}})
        yield Write("POST", f"/{plural}", {gid: {**new, name: some}, "other": {}})
        yield Write("POST", f"/{plural}/{gid}", {name: some})
        yield Write("POST", f"/{plural}/{gid}/{name}", some)
        for method in ("PUT", "PATCH"):
            yield Write(method, resource + details, new)
            yield Write(method, resource + details, {"meta": meta})
            yield Write(method, f"{resource}/versions/v1{details}", new)
            yield Write(method, f"{resource}/meta", meta)
        yield Write("POST", resource + details, new)
        yield Write("POST", f"{resource}/versions", {"v1": new, "v2": new})
        yield Write("PATCH", f"{resource}/versions", {"v1": new})
        if details:
            headers = {"content-type": "text/plain", "xregistry-name": "in a header"}
            yield Write("PUT", resource, b"text", headers)
            yield Write("PUT", f"{resource}/versions/v1", b"text", headers)
            yield Write("POST", resource, b"text", headers)


def writes(world: World) -> st.SearchStrategy[Write]:
    """Any write; most are taken, some are refused."""
    return st.one_of(_groups(world), _resources(world), _resources(world), _documents(world), _others(world))
