"""The law that a catalog matches the same read from a file and read back from a registry that loaded it."""

from typing import Any

import pytest

from signalbook import Registry, RegistryError
from signalbook.app import catalog_of as catalog_of_registry
from signalbook.messages import Catalog
from tests.cases import Case, read_cases
from tests.messages.test_match import FILES, catalog_of, message_of

LAW = "a catalog matches the same read from a file and read back from a server"
NAMED = [(f"{name}: {case.name}", case) for name in FILES for case in read_cases(f"messages/{name}")]
# A registry a case takes minutes for all of them; `make integration` runs those that are left out here. Those that are
# about this law name it, and are always run.
CASES = [
    pytest.param(case, id=name, marks=() if place % 24 == 0 or LAW in case.spec else pytest.mark.slow)
    for place, (name, case) in enumerate(NAMED)
]
# What a registry keeps otherwise than a file does, each with the reason.
_NULL = "null in a document takes an attribute away when it is written, so nothing is left that could remove"
_VERSION = "a message of the built-in model keeps one version"
_URL = "a registry says itself what its URLs are"
_ADDRESS = "a store does not know which addresses are its own; its server does, and has tests of its own for them"
KEPT_OTHERWISE = {
    "a base by its own address": _ADDRESS,
    "a reference into this catalog that leads nowhere": _ADDRESS,
    "a schema by its own address": _ADDRESS,
    "a schema whose document is at this catalog's own address": _ADDRESS,
    "a derived one without the protocol yields to a base that is bound": _NULL,
    "a base that is a version": _VERSION,
    "a schema by its own URL": _URL,
    "the CloudEvents example": _URL,
    "the CloudEvents example without a time": _URL,
    "null removes an aspect": _NULL,
}
# What a registry does not take at all, each with the attribute that it refuses.
REFUSED = {
    "a scalar replaces a map": "protocoloptions.headers",
    "a name with a hyphen in a uritemplate is never satisfied": "envelopemetadata.subject.value",
    "a constant boolean without a type is not a string": "envelopemetadata.ext.value",
    "an HTTP status that is not a number": "protocoloptions.status",
    "a foreign address beside an xid that leads nowhere": "dataschemauri",
    "a draft that is not supported": "dataschemaformat",
    "the message's own protocol comes before its group's": "protocol",
    "the base's own protocol comes before the group's": "protocol",
    "a broken definition stops nobody": "basemessage",
    "a loop is an error": "basemessage",
    "an AMQP property as a plain value": "protocoloptions.properties.group-id",
    "a number of an option as a text": "protocoloptions.qos",
    "a type that the property cannot have": "protocoloptions.properties.group-sequence.type",
    "a type that is not a text": "protocoloptions.headers.h.type",
    "a required that is not true or false": "protocoloptions.headers.h.required",
    "headers that are a text": "protocoloptions.headers",
    "options that are a text": "protocoloptions",
    "a content type that is empty": "datacontenttype",
    "a mode that is none of an event": "envelopeoptions.mode",
    "an inline schema without a format": "dataschemaformat",
    "an integer is not a template": "envelopemetadata.subject.value",
    "an option as a property definition": "protocoloptions.partition",
    "an option that the protocol has not": "protocoloptions.qos",
    "an AMQP address with a blank is never what a definition says": "protocoloptions.properties.to.value",
    "a format that no structured event has": "envelopeoptions.format",
    "MQTT correlation data as a constant that is not Base64": "protocoloptions.correlation_data",
    "two keys, which exclude each other": "protocoloptions.key_base64",
    "a status and a method, which exclude each other: a request": "protocoloptions.status",
    "a status and a method, which exclude each other: a response": "protocoloptions.status",
    "AMQP: two application properties of one name": "protocoloptions.application-properties.b",
    "HTTP query of the type integer": "protocoloptions.query[0]",
    "HTTP query of the type any": "protocoloptions.query[0]",
}


def load(registry: Registry, given: dict[str, Any]) -> None:
    """Write the documents of a case."""
    with registry.transaction() as tx:
        for name, schema in given.get("schemas", {}).items():
            tx.put(f"/schemagroups/s/schemas/{name}$details", schema)
        for name, group in {"g": {"messages": given["messages"]}, **given.get("groups", {})}.items():
            tx.put(f"/messagegroups/{name}", group)
        for name, endpoint in given.get("endpoints", {}).items():
            tx.put(f"/endpoints/{name}", {"usage": ["producer"], **endpoint})


def in_order(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer with its problems by their paths: a registry may keep the members of a definition in another order."""
    for one in (answer, *answer["candidates"]):
        one["problems"].sort(key=lambda problem: problem["path"])
    return answer


def meanings(catalog: Catalog) -> dict[str, Any]:
    """What each definition comes to: what it merges, what it derives from, what it is an alias of, what is wrong."""
    return {
        xid: (one.document, one.derives_from, one.target, one.notes, one.problems)
        for xid, one in catalog.definitions.items()
    }


@pytest.mark.parametrize("case", CASES)
def test_read_back(case: Case) -> None:
    """A registry's catalog answers as the document does that was written to it, unless it refuses the document."""
    if case.name in KEPT_OTHERWISE:
        pytest.skip(KEPT_OTHERWISE[case.name])
    with Registry.open("memory:") as registry:
        if case.name in REFUSED:
            with pytest.raises(RegistryError) as caught:
                load(registry, case.given)
            assert REFUSED[case.name] == caught.value.args_["name"]
            return
        load(registry, case.given)
        served = catalog_of_registry(registry)
    within = case.given.get("within", ())
    message = message_of(case.given)
    written = catalog_of(case.given)
    expected, actual = (catalog.match_all(message, within) for catalog in (written, served))
    assert [in_order(one.to_json()) for one in expected] == [in_order(one.to_json()) for one in actual]
    assert meanings(written) == meanings(served)
