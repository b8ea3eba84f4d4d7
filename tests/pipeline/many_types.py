"""A process that lands messages of many types in one task, and says what that took: `many_types FOLDER TYPES MESSAGES`.

It is a process of its own so that its memory is that of one task, and nothing else's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from signalbook.pipeline.files import Folder
from signalbook.pipeline.read.records import Record
from signalbook.pipeline.worker import PackedCatalog, run
from tests.pipeline.lakes import event, job

FIELDS = {f"number{at}": {"type": "number"} for at in range(4)} | {f"text{at}": {"type": "string"} for at in range(4)}
TEXT = "x" * 40


def catalog(types: int) -> PackedCatalog:
    """So many messages, each with a type and a schema of its own."""
    messages = {
        f"m{number}": {
            "envelope": "CloudEvents/1.0",
            "envelopemetadata": {"type": {"value": f"t{number}"}, "source": {"value": "/cars/{vin}"}},
            "dataschemaformat": "JsonSchema/draft-07",
            "dataschema": {"type": "object", "properties": {**FIELDS, f"own{number}": {"type": "integer"}}},
        }
        for number in range(types)
    }
    return PackedCatalog.of({"messagegroups": {"g": {"messages": messages}}})


def records(types: int, messages: int) -> Iterator[Record]:
    """Messages of all types in turn, so that no table is ever done with; of each hundred, one is good for none."""
    for number in range(messages):
        data = dict.fromkeys(FIELDS, TEXT) | {name: number / 2 for name in FIELDS if name.startswith("number")}
        data[f"own{number % types}"] = number
        kind = "unheard" if number % 100 == 99 else f"t{number % types}"
        yield Record(event(number, type=kind, data=data), "given", number)


def open_files(folder: str) -> int:
    """How many files below a folder this process has open."""
    found = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found += str(entry.readlink()).startswith(f"{folder}/")
        except OSError:
            continue
    return found


def main(folder: str, types: int, messages: int) -> dict[str, Any]:
    """Land them; what was counted, the most files open at any moment, and the most memory, in bytes."""
    made, most = Folder.create, 0

    def create(where: Folder, path: str) -> Any:
        nonlocal most
        file = made(where, path)
        most = max(most, open_files(folder))
        return file

    Folder.create = create  # type: ignore[method-assign]
    report = json.loads(run(job(Path(folder), catalog(types)), records(types, messages)))
    memory = _most_memory()
    counted = {name: report[name] for name in ("input", "landed", "dead")}
    return {**counted, "tables": len({file["table"] for file in report["files"]}), "open": most, "memory": memory}


def _most_memory() -> int:
    """The most that this program held; `getrusage` would count whoever started it as well."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1024


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
