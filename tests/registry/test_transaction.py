"""Several writes as one, from Python."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from signalbook import Registry, RegistryError, StoreError, UsageError

GROUP = "/messagegroups/g"


@pytest.fixture
def registry(store_url: str) -> Iterator[Registry]:
    """A new registry."""
    with Registry.open(store_url) as opened:
        yield opened


def missing(registry: Registry, path: str) -> bool:
    """Tell whether there is nothing at a path."""
    try:
        registry.get(path)
    except RegistryError as error:
        return error.name == "not_found"
    return False


def test_others_see_all_or_nothing(registry: Registry) -> None:
    """What a block writes is seen within it at once and elsewhere when it has ended."""
    with registry.transaction() as tx:
        tx.put(GROUP, {"name": "A"})
        assert "A" == tx.get(GROUP)["name"]
        assert missing(registry, GROUP)
    assert "A" == registry.get(GROUP)["name"]


def test_an_error_undoes_the_block(registry: Registry) -> None:
    """Where a block raises, none of its writes is left."""

    def block() -> None:
        with registry.transaction() as tx:
            tx.put(GROUP, {})
            tx.put(f"{GROUP}/messages/m", {"envelope": "CloudEvents"})

    with pytest.raises(RegistryError, match="invalid_attribute"):
        block()
    assert missing(registry, GROUP)


@pytest.mark.parametrize("refused", ["m?inline=nope", "m?filter=a.", "m?setdefaultversionid=9"])
def test_a_refused_write_leaves_nothing_in_the_block(registry: Registry, refused: str) -> None:
    """A caller may catch a refusal and go on; the refused write is not there, also where the answer was refused."""
    with registry.transaction() as tx:
        tx.put(GROUP, {})
        with pytest.raises(RegistryError):
            tx.put(f"{GROUP}/messages/{refused}", {"name": "refused"})
        tx.put(f"{GROUP}/messages/n", {})
    assert ["n"] == list(registry.get(f"{GROUP}/messages"))


def test_a_write_beside_the_transaction_is_refused(registry: Registry) -> None:
    """A block that writes through the registry itself is told so instead of waiting for itself."""
    with pytest.raises(StoreError, match="a write inside a write"), registry.transaction():
        registry.put(GROUP, {})


def test_nothing_is_written_after_the_block(registry: Registry) -> None:
    """A transaction that has ended, well or not, neither writes nor reads."""
    with registry.transaction() as tx:
        pass
    with pytest.raises(UsageError, match="has ended"):
        tx.put(GROUP, {})
    with pytest.raises(UsageError, match="has ended"):
        tx.get("/")
    assert missing(registry, GROUP)
