"""A model is spelled like the entities it describes."""

import copy
from typing import Any

from signalbook.model.model import read_model, spell_options
from signalbook.spec.builtin import ENDPOINT, MESSAGE, builtin_modelsource
from signalbook.spec.versions import RC2, RC4


def options(model: dict[str, Any], protocol: str) -> dict[str, Any]:
    """The attributes of a message's options for one protocol."""
    attributes = model["groups"]["messagegroups"]["resources"]["messages"]["attributes"]
    found = attributes["protocol"]["ifvalues"][protocol]["siblingattributes"]["protocoloptions"]["attributes"]
    assert isinstance(found, dict)
    return found


def address(model: dict[str, Any], protocol: str) -> dict[str, Any]:
    """The attributes of an endpoint's network address for one protocol."""
    sections = model["groups"]["endpoints"]["attributes"]["protocol"]["ifvalues"]
    found = sections[protocol]["siblingattributes"]["protocoloptions"]["attributes"]["endpoints"]["item"]["attributes"]
    assert isinstance(found, dict)
    return found


def test_options_are_named_as_the_version_names_them() -> None:
    """1.0-rc2 shows the option names of its texts, 1.0-rc4 those of its model files; the argument stays as it is."""
    full = read_model(builtin_modelsource()).full()
    before = copy.deepcopy(full)
    rc2, rc4 = spell_options(full, RC2), spell_options(full, RC4)
    assert before == full
    assert ["subject", "reply-to", "headers"] == list(options(rc2, "NATS"))
    assert options(rc2, "NATS")["reply-to"].get("name", "reply-to") == "reply-to"
    assert ["subject", "reply", "headers"] == list(options(rc4, "NATS"))
    assert "payload_format" in options(rc2, "MQTT/5.0")
    assert "payload_format_indicator" in options(rc4, "MQTT/5.0")
    assert "url" in address(rc2, "AMQP/1.0")
    assert "uri" in address(rc4, "AMQP/1.0")
    assert options(rc2, "KAFKA") == options(full, "KAFKA")


def test_other_models_stay() -> None:
    """A model without these types is the same object, and one that only claims them is taken as it is."""
    other = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}
    assert spell_options(other, RC2) is other
    assert spell_options({}, RC2) == {}
    bare = {"protocol": {"type": "string", "ifvalues": {"NATS": {"siblingattributes": {"other": {"type": "any"}}}}}}
    odd = {
        "groups": {
            "a": {"modelcompatiblewith": ENDPOINT, "attributes": bare},
            "b": {"modelcompatiblewith": ENDPOINT},
            "c": {"resources": {"d": {"modelcompatiblewith": MESSAGE, "attributes": bare}}},
        }
    }
    assert spell_options(odd, RC2) == odd
