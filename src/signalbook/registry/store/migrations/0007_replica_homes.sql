-- What a copy is called at its owner, when it was read there, and what a replication could not copy.

-- The table of copies is made anew with two more columns:
--   home  the xid at the owner, empty where it is not known
--   at    the owner's clock when it was read there, in milliseconds since 1970; 0 where that is not known
CREATE TABLE replica_rows (
  key {text_key} NOT NULL PRIMARY KEY,
  xid TEXT NOT NULL,
  catalog TEXT NOT NULL,
  authority TEXT NOT NULL,
  revision BIGINT NOT NULL,
  at BIGINT NOT NULL,
  home TEXT NOT NULL,
  link TEXT NOT NULL,
  pass BIGINT NOT NULL,
  mark TEXT NOT NULL,
  digest TEXT NOT NULL,
  gone BIGINT NOT NULL
);
INSERT INTO replica_rows (key, xid, catalog, authority, revision, at, home, link, pass, mark, digest, gone)
SELECT key, xid, catalog, authority, revision, 0, '', link, pass, mark, digest, gone FROM replicas;
DROP TABLE replicas;
ALTER TABLE replica_rows RENAME TO replicas;
CREATE INDEX replicas_link ON replicas(link, pass) WHERE gone = 0;

-- Entities that a replication brought and that were not written: conflicts and refusals, tried again by each run. `xid` is
-- that at the source, `key` is made of it, and `pass` is the comparison that met them last.
CREATE TABLE IF NOT EXISTS replica_problems (
  link TEXT NOT NULL,
  key {text_key} NOT NULL,
  xid TEXT NOT NULL,
  outcome TEXT NOT NULL,
  detail TEXT NOT NULL,
  pass BIGINT NOT NULL,
  PRIMARY KEY (link, key)
) {without_rowid};

-- The id by which other catalogs know this one is part of every backup. Stores without one get theirs now.
INSERT INTO settings (name, value)
SELECT 'catalogid', replace(replace(replace(
  CAST(random() AS TEXT) || CAST(random() AS TEXT) || CAST(random() AS TEXT) || CAST(random() AS TEXT),
  '.', ''), '-', ''), '+', '')
WHERE EXISTS (SELECT 1 FROM settings WHERE name = 'registryid')
AND NOT EXISTS (SELECT 1 FROM settings WHERE name = 'catalogid');
