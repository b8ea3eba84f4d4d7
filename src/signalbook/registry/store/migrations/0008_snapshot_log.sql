-- Snapshots are appended, each to the end of the table; only the small entry of the index goes to its place in between.
-- In SQLite a table clustered by its key moved the neighbours of every snapshot, four to ten pages for each write.
CREATE TABLE snapshot_rows (
  key {text_key} NOT NULL,
  number BIGINT NOT NULL,
  at TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (key, number)
);
INSERT INTO snapshot_rows (key, number, at, doc) SELECT key, number, at, doc FROM snapshots;
DROP TABLE snapshots;
ALTER TABLE snapshot_rows RENAME TO snapshots;
