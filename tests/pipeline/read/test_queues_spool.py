from pathlib import Path

import pytest

from signalbook.pipeline.files import PipelineError
from signalbook.pipeline.read.inputs import list_files, parse_source
from signalbook.pipeline.read.queues import Spool
from signalbook.protocols import Message

MESSAGES = [Message("NATS", {"subject": f"s{number}"}, b"%d" % number) for number in range(3)]


def lines(folder: Path) -> list[bytes]:
    """What a landing would read."""
    files = list_files(parse_source(f"spool:{folder}"))
    return [line for file in files for line in Path(file.path).read_bytes().splitlines()]


def test_messages_are_named_when_a_file_is_full(tmp_path: Path) -> None:
    """A file that is being written is hidden; full, or closed, it is there."""
    with Spool(str(tmp_path)), pytest.raises(PipelineError, match="another process"):
        Spool(str(tmp_path))
    with Spool(str(tmp_path), roll_bytes=1, roll_seconds=999) as full:
        full.append(MESSAGES[:1])
        assert [MESSAGES[0].to_bytes()] == lines(tmp_path)
    with Spool(str(tmp_path), roll_seconds=999) as slow:
        slow.append(MESSAGES[1:])
        assert 1 == len(lines(tmp_path))
    assert {message.to_bytes() for message in MESSAGES} == set(lines(tmp_path))


def test_an_old_file_is_named(tmp_path: Path) -> None:
    """A file does not wait for more messages for ever."""
    with Spool(str(tmp_path), roll_seconds=0) as spool:
        spool.append(MESSAGES[:1])
        spool.roll_if_due()
        assert 1 == len(lines(tmp_path))


def test_what_a_killed_spooler_left(tmp_path: Path) -> None:
    """Whole lines are kept; one that was begun was never acknowledged, and goes."""
    whole = MESSAGES[0].to_bytes()
    (tmp_path / ".20260101T000000-0000.jsonl.open").write_bytes(whole + b"\n" + whole[:9])
    (tmp_path / ".20260101T000001-0000.jsonl.open").write_bytes(whole[:9])
    with Spool(str(tmp_path)):
        assert [whole] == lines(tmp_path)
