from pathlib import Path

from signalbook.pipeline import delta
from signalbook.pipeline.ddl import statements
from signalbook.pipeline.files import Folder
from signalbook.pipeline.tables import layout_of
from signalbook.pipeline.worker import PackedCatalog
from tests.pipeline.lakes import MOVED, packed

TABLE = """CREATE TABLE IF NOT EXISTS `fleet`.`moved` (
  `specversion` STRING,
  `id` STRING,
  `source` STRING,
  `type` STRING,
  `datacontenttype` STRING,
  `dataschema` STRING,
  `subject` STRING,
  `time` TIMESTAMP,
  `priority` INT,
  `extensions` MAP<STRING, STRING>,
  `context` STRUCT<`vin`: STRING>,
  `transport` STRUCT<`protocol`: STRING, `address`: STRING, `key`: BINARY, `partition`: INT, `offset`: BIGINT, \
`timestamp`: TIMESTAMP, `schemaid`: BIGINT, `fields`: STRING>,
  `data` STRUCT<`km`: BIGINT, `_additional`: STRING>,
  `payload` BINARY,
  `judged` STRUCT<`digest`: STRING, `definition`: STRING, `run`: STRING, `batch`: BIGINT, `origin`: STRING, \
`position`: BIGINT>
) USING DELTA
COMMENT '/messagegroups/fleet/messages/moved'
LOCATION '/lake/fleet/moved';"""


def test_the_tables_of_a_catalog() -> None:
    """Schemas first, then a statement for each message, and the dead letters last."""
    found = list(statements(packed().catalog(), lake=Folder("/lake")))
    assert ["CREATE SCHEMA IF NOT EXISTS `fleet`;", "CREATE SCHEMA IF NOT EXISTS `signalbook`;", TABLE] == found[:3]
    assert found[-1].startswith("CREATE TABLE IF NOT EXISTS `signalbook`.`dead_letters` (\n  `outcome` STRING,")


def test_within_and_strange_names(samples: PackedCatalog, tmp_path: Path) -> None:
    """A scope limits the tables; names are quoted, so that SQL takes any."""
    group = "/messagegroups/com.example.orders"
    found = list(statements(samples.catalog(), (group,), Folder.at(tmp_path)))
    assert {"`com_example_orders`", "`signalbook`"} == {
        one.split()[5].partition(".")[0] for one in found if "TABLE" in one
    }
    dashed = PackedCatalog.of(
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


def moved(folder: Path, catalog: PackedCatalog) -> str:
    """The statement for the table of `moved` in a lake."""
    return next(one for one in statements(catalog.catalog(), lake=Folder.at(folder)) if "`fleet`.`moved`" in one)


def test_a_table_that_is_there(tmp_path: Path) -> None:
    """A table keeps the columns that it has; what the catalog adds comes behind them, as landing would put it."""
    older = layout_of(packed(fuel={"type": "number"}).catalog(), MOVED).schema
    delta.prepare(Folder.at(tmp_path), "fleet/moved", MOVED, older)
    newer = packed(doors={"type": "integer"})
    printed = moved(tmp_path, newer)
    wanted = "`data` STRUCT<`km`: BIGINT, `fuel`: DOUBLE, `_additional`: STRING, `doors`: BIGINT>"
    assert (True, False) == (wanted in printed, "--" in printed)
    delta.prepare(Folder.at(tmp_path), "fleet/moved", MOVED, layout_of(newer.catalog(), MOVED).schema)
    assert printed == moved(tmp_path, newer)


def test_a_table_that_refuses(tmp_path: Path) -> None:
    """A table whose columns would have to change is printed as it is, below the reason."""
    delta.prepare(
        Folder.at(tmp_path), "fleet/moved", MOVED, layout_of(packed(fuel={"type": "string"}).catalog(), MOVED).schema
    )
    remark, statement = moved(tmp_path, packed(fuel={"type": "number"})).split("\n", 1)
    assert remark.startswith(f"-- {MOVED}: the table's column /data/fuel is string, the definition wants double")
    assert "`fuel`: STRING" in statement
