-- The newest change is never forgotten, so the next number is the newest and one; SQLite need not keep it in a table of
-- its own, a page more for each write. Where a restore moved that number on, a change without events keeps it.
CREATE TABLE change_rows (
  seq {counter},
  at TEXT NOT NULL,
  correlation TEXT NOT NULL,
  events TEXT NOT NULL
);
INSERT INTO change_rows (seq, at, correlation, events) SELECT seq, at, correlation, events FROM changes;
INSERT INTO change_rows (seq, at, correlation, events)
  SELECT seq, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), lower(hex(randomblob(8))), '[]' FROM sqlite_sequence
  WHERE name = 'changes' AND seq > (SELECT COALESCE(MAX(seq), 0) FROM changes);
DROP TABLE changes;
ALTER TABLE change_rows RENAME TO changes;
