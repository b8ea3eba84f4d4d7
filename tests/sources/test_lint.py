"""What lint finds in documents of every dialect."""

from __future__ import annotations

import json
from pathlib import Path

from signalbook.sources.documents import Raw, UnreadableDocument
from signalbook.sources.lint import lint
from tests.cases import Case, cases


@cases("sources/lint")
def test_documents_of_any_dialect(case: Case, tmp_path: Path) -> None:
    """A document of any dialect is checked as a load would write it; findings name its file and the entity."""
    for name, document in case.given["documents"].items():
        (tmp_path / name).write_text(json.dumps(document))
    seen: list[Raw | UnreadableDocument] = []
    found = lint([str(tmp_path)], case.given.get("model", "builtin"), seen.append, group=case.given.get("group", ""))
    shown = [[Path(one.source).name, one.severity, one.code, one.xid] for one in found]
    assert case.expect == shown
    assert [str(tmp_path / name) for name in sorted(case.given["documents"])] == [one.source for one in seen]
