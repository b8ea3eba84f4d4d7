from pathlib import Path

from signalbook.pipeline.book import Book
from signalbook.pipeline.ddl import statements
from signalbook.pipeline.files import Folder
from tests.pipeline.lakes import book

MOVED = """CREATE TABLE IF NOT EXISTS fleet.moved (
  specversion STRING,
  id STRING,
  source STRING,
  type STRING,
  datacontenttype STRING,
  dataschema STRING,
  subject STRING,
  time TIMESTAMP,
  priority INT,
  extensions MAP<STRING, STRING>,
  context STRUCT<vin: STRING>,
  transport STRUCT<protocol: STRING, address: STRING, key: BINARY, partition: INT, offset: BIGINT, \
timestamp: TIMESTAMP, schemaid: BIGINT, fields: STRING>,
  data STRUCT<km: BIGINT, _additional: STRING>,
  payload BINARY,
  judged STRUCT<digest: STRING, definition: STRING, run: STRING, batch: BIGINT, origin: STRING, position: BIGINT>
) USING DELTA
COMMENT '/messagegroups/fleet/messages/moved'
LOCATION '/lake/fleet/moved';"""


def test_the_tables_of_a_catalog() -> None:
    """Schemas first, then a statement for each message, and the dead letters last."""
    found = list(statements(book().catalog(), lake=Folder("/lake")))
    assert ["CREATE SCHEMA IF NOT EXISTS fleet;", "CREATE SCHEMA IF NOT EXISTS signalbook;", MOVED] == found[:3]
    assert found[-1].startswith("CREATE TABLE IF NOT EXISTS signalbook.dead_letters (\n  outcome STRING,")


def test_within_and_strange_names(samples: Book, tmp_path: Path) -> None:
    """A scope limits the tables; names that SQL does not take plainly are quoted."""
    group = "/messagegroups/com.example.orders"
    found = list(statements(samples.catalog(), (group,), Folder.at(tmp_path)))
    assert {"com_example_orders", "signalbook"} == {one.split()[5].partition(".")[0] for one in found if "TABLE" in one}
    dashed = Book.of(
        {
            "messagegroups": {
                "g": {
                    "messages": {
                        "m": {
                            "envelope": "CloudEvents/1.0",
                            "envelopemetadata": {"type": {"value": "t"}, "1st": {"type": "string"}},
                        }
                    }
                }
            }
        }
    )
    assert "\n  `1st` STRING," in "\n".join(statements(dashed.catalog()))
