from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbook.errors import RegistryError
from signalbook.registry.urls import Flags, epoch_value, parse_flags
from tests.cases import Case, cases

# Of these errors the specification's reference names the path alone, of the others the path with its query.
PATH_ONLY = {"bad_flag", "bad_request"}


def changed(flags: Flags) -> dict[str, Any]:
    """The flags that are not as in `Flags.EMPTY`."""
    plain = asdict(Flags.EMPTY)
    listed = {name: sorted(value) if name == "ignore" else value for name, value in asdict(flags).items()}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in listed.items()
        if name != "raw" and (value != plain[name] if name != "ignore" else value)
    }


@cases("registry/flags")
def test_cases(case: Case) -> None:
    """A query string is read into flags, or refused by the error of the flag."""
    error = next((name for name in case.expect if name.startswith("bad_")), None)
    if error:
        with pytest.raises(RegistryError) as caught:
            parse_flags(case.given, path="/dirs")
        assert case.expect == {caught.value.name: caught.value.args_}
        assert ("/dirs" if error in PATH_ONLY else f"/dirs?{case.given}") == caught.value.subject
    else:
        flags = parse_flags(case.given, path="/dirs")
        expected = {name: value for name, value in case.expect.items() if value is not False}
        assert (expected, case.given) == (changed(flags), flags.raw)


def test_no_query_costs_nothing() -> None:
    """Requests without a query share one value."""
    assert Flags.EMPTY is parse_flags("")


def test_flags_that_are_off_are_ignored() -> None:
    """Unsupported query parameters are silently ignored, even wrong ones."""
    flags = parse_flags("doc=maybe&inline=*&limit=x&sort=a&sort=b", frozenset({"inline"}))
    assert Flags(inline=("*",), raw=flags.raw) == flags


def test_ignore_is_limited_to_what_the_registry_allows() -> None:
    """`*` means all server supported values, and a value that is switched off is unknown."""
    assert frozenset({"id"}) == parse_flags("ignore", ignores=frozenset({"id"})).ignore
    with pytest.raises(RegistryError) as caught:
        parse_flags("ignore=epoch", ignores=frozenset())
    assert "not one of the allowed values: none" == caught.value.args_["error_detail"]


def test_export() -> None:
    """`/export` is the document view with everything inlined, unless `inline` says what."""
    everything = ("*", "capabilities", "modelsource")
    assert Flags(doc=True, inline=everything) == Flags.EMPTY.as_export(everything)
    assert ("*", "capabilities") == Flags.EMPTY.as_export({"capabilities", "model"}).inline
    assert ("dirs",) == parse_flags("inline=dirs").as_export(everything).inline


def test_epoch_value() -> None:
    """The `epoch` flag is an unsigned integer."""
    assert 12 == epoch_value("12", "/dirs/d3")
    with pytest.raises(RegistryError) as caught:
        epoch_value("2x", "/dirs/d3")
    error = caught.value
    assert ("invalid_attribute", "/dirs/d3") == (error.name, error.subject)
    assert {"name": "epoch", "error_detail": "value (2x) must be a uinteger"} == error.args_


@given(st.text(alphabet="inlefgortdc=&%+*,2 é\\", max_size=40))
def test_any_query_is_read_or_refused(query: str) -> None:
    """Any query is flags or a RegistryError."""
    with suppress(RegistryError):
        assert query == parse_flags(query).raw
