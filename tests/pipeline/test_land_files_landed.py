from pathlib import Path

import pytest

from signalbook.pipeline.files import PipelineError
from signalbook.pipeline.lake import Lake
from signalbook.pipeline.land_files import Landed, LandedMeanwhile
from signalbook.pipeline.manifest import Manifest
from signalbook.pipeline.read.inputs import Listed, parse_source

SOURCE = parse_source("events:/in")


def put(lake: Lake, number: int, *files: Listed) -> None:
    """A batch that landed these files."""
    inputs = tuple(one.to_json() for one in files)
    lake.write(Manifest("stream-0000000000000000", number, "d", "events:/in", "2026-01-01T00:00:00Z", {}, {}, inputs))


def test_what_was_landed_is_left_out(tmp_path: Path) -> None:
    """A file is known by path, size and time; one that changed is refused, with the way out for it alone."""
    lake = Lake.open(str(tmp_path))
    landed, files = Landed(lake), [Listed("/in/a", 1, 5), Listed("/in/b", 2, 6)]
    assert files == landed.unlanded(SOURCE, files)
    put(lake, 0, files[0])
    assert files[1:] == landed.unlanded(SOURCE, files)
    with pytest.raises(PipelineError, match=r"'/in/a' has changed .* --from events:/in/a --again"):
        landed.unlanded(SOURCE, [Listed("/in/a", 1, 7)])


def test_a_file_that_was_landed_again(tmp_path: Path) -> None:
    """A changed file that was landed once more is known as it is now, whichever run has the later name."""
    lake = Lake.open(str(tmp_path))
    put(lake, 0, Listed("/in/a", 2, 6))
    put(lake, 1, Listed("/in/a", 1, 5))
    assert [] == Landed(lake).unlanded(SOURCE, [Listed("/in/a", 2, 6)])


def test_landed_meanwhile(tmp_path: Path) -> None:
    """What another run lands after one has looked is noticed when that one looks again."""
    lake, file = Lake.open(str(tmp_path)), Listed("/in/a", 1, 5)
    landed = Landed(lake)
    landed.check(SOURCE, [file])
    put(lake, 0, file)
    with pytest.raises(LandedMeanwhile, match="landed 1 of these"):
        landed.check(SOURCE, [file])


def test_a_landed_file_by_another_way(tmp_path: Path) -> None:
    """What was landed through a link is known by the folder's own name."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    lake = Lake.open(str(tmp_path / "lake"))
    put(lake, 0, Listed(f"{tmp_path}/link/a", 1, 5))
    assert [] == Landed(lake).unlanded(SOURCE, [Listed(f"{tmp_path}/real/a", 1, 5)])


def test_a_look(tmp_path: Path) -> None:
    """A file of the source that grew after it was landed is found."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a").write_bytes(b"1")
    source, lake = parse_source(f"events:{tmp_path}/in"), Lake.open(str(tmp_path / "lake"))
    landed = Landed(lake)
    landed.look(source)
    place = tmp_path / "in/a"
    put(lake, 0, Listed(str(place), 1, place.stat().st_mtime_ns))
    landed.look(source)
    place.write_bytes(b"12")
    with pytest.raises(PipelineError, match="has changed since it was landed"):
        landed.look(source)
