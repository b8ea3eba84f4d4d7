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
