from __future__ import annotations

import pytest

from signalbook.cli.failures import Exit, Unreachable, report
from signalbook.cloudevents import CloudEventError
from signalbook.errors import Problem, RegistryError, SignalbookError, StoreError, UsageError
from signalbook.wire import WireError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CloudEventError(Problem("/id", "R8", "id must not be empty")), Exit.REFUSED),
        (WireError(Problem("/topic", "value", "is missing")), Exit.REFUSED),
        (RegistryError("bad_request", error_detail="x"), Exit.REFUSED),
        (RegistryError("not_found", "/x"), Exit.ABSENT),
        (UsageError("no"), Exit.USAGE),
        (StoreError("no"), Exit.ABSENT),
        (Unreachable("no"), Exit.ABSENT),
        (SignalbookError("no"), Exit.ABSENT),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exit_codes(error: Exception, code: Exit, capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind of failure has its exit code, and one line on standard error."""
    assert code is report(error)
    said = capsys.readouterr().err
    assert said.startswith("signalbook: ")
    assert 1 == said.count("\n")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            RegistryError("format_violation", "/v", detail="/type: no.", format="Avro"),
            'signalbook: The request would cause Version "/v" to be non-compliant with its "format" (Avro): /type: no '
            "[format_violation]\n",
        ),
        (RegistryError("elsewhere", detail="Their words: more."), "signalbook: Their words: more [elsewhere]\n"),
        (RegistryError("elsewhere"), "signalbook: elsewhere [elsewhere]\n"),
    ],
)
def test_a_refusal_says_why(error: RegistryError, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence has the error's title and its detail; for an error of another server, what that said."""
    report(error)
    assert expected == capsys.readouterr().err
