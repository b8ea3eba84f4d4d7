"""Whether a store could be written now."""

from __future__ import annotations

from pathlib import Path

from signalbook.registry.store.store import Store, open_store, why_unwritable


def test_a_store_that_takes_writes(store_url: str) -> None:
    """Any fresh store can be written, and finding that out leaves nothing behind."""
    with open_store(store_url) as store:
        assert "" == why_unwritable(store)


def test_nothing_is_left_beside_a_file(tmp_path: Path) -> None:
    """The probe is gone when the answer is there; a file that has gone cannot be written."""
    with open_store(str(tmp_path / "a.db")) as store:
        before = sorted(path.name for path in tmp_path.iterdir())
        assert "" == why_unwritable(store)
        assert before == sorted(path.name for path in tmp_path.iterdir())
        (tmp_path / "a.db").unlink()
        assert "is not there, or may not be written" in why_unwritable(store)


class Standby:
    """A store on a PostgreSQL server that says these two things of itself."""

    url = "postgresql://x"

    def __init__(self, *said: object) -> None:
        self._said = said

    def reader(self) -> Standby:
        """Itself."""
        return self

    def one(self, statement: str) -> tuple[object, ...]:
        """What it says."""
        assert "pg_is_in_recovery()" in statement
        return self._said


def test_a_standby() -> None:
    """A server in recovery, or one whose transactions are read-only, is not written."""

    def why(*said: object) -> str:
        standby: object = Standby(*said)
        assert not isinstance(standby, Store)
        return why_unwritable(standby)  # type: ignore[arg-type]

    assert ("", True, True) == (why(False, "off"), "in recovery" in why(True, "on"), "read-only" in why(False, "on"))
