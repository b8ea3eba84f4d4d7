from pathlib import Path

import pytest

from signalbook.errors import UsageError
from signalbook.settings import Settings, is_loopback


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True), ("localhost", True), ("0.0.0.0", False),
     ("::", False), ("192.168.0.1", False), ("example.com", False), ("", False)],
)  # fmt: skip
def test_what_only_this_machine_reaches(host: str, expected: bool) -> None:
    """Loopback addresses are safe, every other one is open."""
    assert expected is is_loopback(host)


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(host="0.0.0.0", open=True),
        Settings(host="0.0.0.0", read_token="r", write_token="w"),
        Settings(host="0.0.0.0", read_token="r", read_only=True),
        Settings(specversion="1.0-RC4"),
        Settings(base_url="https://catalog.example.com/registry"),
        Settings(keep_changes=0, allow_sinks=("10.0.0.0/8", "127.0.0.1", "::1")),
    ],
)
def test_settings_that_work(settings: Settings) -> None:
    """Settings that can work come back as they are."""
    assert settings is settings.checked()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(host="0.0.0.0"), "anyone could read the catalog; set --read-token"),
        (Settings(host="0.0.0.0", read_token="r"), "could write; set --write-token or --read-only"),
        (Settings(specversion="2.0"), r"'2\.0' is not one of 1\.0-rc2, 1\.0-rc4"),
        (Settings(workers=0), "at least one worker"),
        (Settings(workers=2, store="memory:"), "cannot be shared by several workers"),
        (Settings(max_body=0), "must be above 0"),
        (Settings(cert=Path("c.pem")), "belong together"),
        (Settings(cert=Path("no-c.pem"), key=Path("no-k.pem")), "--cert names 'no-c.pem', which is not a file"),
        (Settings(base_url="catalog"), "must begin with http"),
        (Settings(keep_changes=-1), "--keep-changes is the days"),
        (Settings(allow_sinks=("localhost",)), "write it as 10.0.0.0/8"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_the_remedy(settings: Settings, words: str) -> None:
    """What cannot work is refused before anything is opened, and the words say what to do."""
    with pytest.raises(UsageError, match=words):
        settings.checked()


def test_tokens_are_not_printed() -> None:
    """The text of settings holds no token."""
    assert "secret" not in repr(Settings(read_token="secret", write_token="secret"))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(), "http://127.0.0.1:8080"),
        (Settings(host="::1", cert=Path("c")), "https://[::1]:8080"),
        (Settings(base_url="https://x/reg/"), "https://x/reg"),
    ],
)
def test_the_address(settings: Settings, expected: str) -> None:
    """The address is a URL without a slash at the end."""
    assert expected == settings.address
