"""The table of protocols: its rows agree with themselves."""

import pytest

from signalbook.protocols import PROTOCOLS, find_protocol
from signalbook.protocols.table import ALIASES
from signalbook.protocols.values import Place, Section


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_a_definition_states_is_in_a_message(name: str) -> None:
    """Every option is a field of the message, or says which one it is read from and written to."""
    row = PROTOCOLS[name]
    fields = {one.field for one in row.fields.values()}
    assert {row.special[option].field if option in row.special else option for option in row.options} <= fields
    assert row.special.keys() <= row.options.keys()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_a_row_names_is_there(name: str) -> None:
    """Keys, addresses, tests and the binding of a protocol name fields and options that it has."""
    row = PROTOCOLS[name]
    fields = {one.field for one in row.fields.values()}
    for option, member in row.keys:
        assert isinstance(row.options[option], Section if member else Place)
    assert {*row.beside_key, *row.needed} <= row.options.keys()
    assert {*row.texts, *row.pairs, *row.of_connection, *row.of_payload, *row.whole_pairs} <= fields
    assert {row.address, row.binding.attributes_in} - {None, ""} <= fields
    assert row.binding.protocol == row.name == name


def test_a_name_means_one_protocol() -> None:
    """No two protocols have an alias in common, and each is found by all of its names in any case."""
    names = [alias for name, row in PROTOCOLS.items() for alias in (name.lower(), *row.aliases)]
    assert sorted(ALIASES) == sorted(names)
    for name, row in PROTOCOLS.items():
        assert {name} == {find_protocol(alias.upper()) for alias in (name, *row.aliases)}
        assert (name if row.any_version else None) == find_protocol(f"{name}/9.9")
