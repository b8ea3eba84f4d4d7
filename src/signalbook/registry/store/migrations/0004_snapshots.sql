-- What the default version of a message definition has said, change by change: the versions of the 0.1 catalog.
-- A row never changes. `key` is that of `entities`. Where a definition is deleted, its last row stays with an empty
-- `doc`, so that its number is not given again.
CREATE TABLE snapshots (
  key {text_key} NOT NULL,
  number BIGINT NOT NULL,
  at TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (key, number)
) {without_rowid};

-- What is there already has been so once.
INSERT INTO snapshots (key, number, at, doc)
SELECT r.key, 1, v.modifiedat, v.doc FROM entities r JOIN entities v ON v.key = r.link
WHERE r.type IN ('messagegroups/messages', 'endpoints/messages');
