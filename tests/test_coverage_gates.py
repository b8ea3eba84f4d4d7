import pytest

from scripts.coverage_gates import parts, spans


def file(lines: int, missing: list[int], branches: int = 0, half: list[list[int]] | None = None) -> dict[str, object]:
    """A file in a report of coverage."""
    found = {"num_statements": lines, "covered_lines": lines - len(missing), "num_branches": branches}
    found["covered_branches"] = branches - len(half or [])
    return {"summary": found, "missing_lines": missing, "missing_branches": half or []}


def test_a_package_is_the_sum_of_its_files() -> None:
    """Lines and branches of all files of a package count; a module at the top counts for itself."""
    found = parts(
        {
            "src/signalbook/cli/a.py": file(60, [1, 2]),
            "src/signalbook/cli/deeper/b.py": file(30, list(range(10, 18)), 10, [[3, 4]]),
            "src/signalbook/errors.py": file(10, []),
        }
    )
    assert {"cli": (89.0, 1), "errors": (100.0, 0)} == {name: (one.percent, one.lacking) for name, one in found.items()}
    assert {"cli/a.py": [1, 2], "cli/deeper/b.py": [3, *range(10, 18)]} == found["cli"].missing


@pytest.mark.parametrize(("lines", "words"), [([], ""), ([3], "3"), ([3, 4, 5, 9, 11, 12], "3-5, 9, 11-12")])
def test_lines_in_a_row_are_one_span(lines: list[int], words: str) -> None:
    """Numbers of lines are short to read."""
    assert words == spans(lines)
