-- Entities, the inverted index of their attributes, the outbox of changes, and settings.
-- A statement ends with a semicolon at the end of a line. Words in braces are a row of `migrate.WORDS`.

-- One row for each entity. `key` is a letter for the level and the lower-cased xid, so that the children of a
-- collection are one range of keys: 'a/', 'b/dirs/d1', 'c/dirs/d1/files/f1', 'd/dirs/d1/files/f1/versions/v1'.
--   type      'registry', 'dirs', 'dirs/files', 'dirs/files/versions'
--   ancestor  versions only: the versionid of the ancestor
--   link      resources only: the key of the default version
--   xref      resources only: the xid of the resource it shows
--   size      resources only: how many versions it has
--   sticky    resources only: 1 where a client chose the default version
--   nextid    resources only: the number of the next versionid that the server makes
--   form      versions only: 'string' where the document came as a JSON string
--   counts    registry, groups: the sizes of their collections, as JSON
--   doc       the attributes a user controls, as JSON
--   content   versions only: the exact bytes of the document
CREATE TABLE entities (
  key {text_key} NOT NULL PRIMARY KEY,
  xid TEXT NOT NULL,
  type TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  createdat TEXT NOT NULL,
  modifiedat TEXT NOT NULL,
  ancestor TEXT,
  link TEXT,
  xref TEXT,
  size BIGINT NOT NULL,
  sticky BIGINT NOT NULL,
  nextid BIGINT NOT NULL,
  form TEXT,
  counts TEXT NOT NULL,
  doc TEXT NOT NULL,
  content {blob}
);
CREATE INDEX entities_xref ON entities(xref, key) WHERE xref IS NOT NULL;
CREATE INDEX entities_xrefs ON entities(key) WHERE xref IS NOT NULL;

-- `term` is a 64-bit hash of (type, path, folded value); `key` is the entity that has it. There is no index on `key`:
-- whoever changes or deletes an entity has its old document, and so its old terms.
CREATE TABLE attrs (
  term BIGINT NOT NULL,
  key {text_key} NOT NULL,
  PRIMARY KEY (term, key)
) {without_rowid};

-- One row for each request that wrote: its events as JSON, [[type, subject, [changed…]], …].
-- Writers are serialised, so `seq` grows in the order of the commits; it may leave gaps.
CREATE TABLE changes (
  seq {sequence},
  at TEXT NOT NULL,
  correlation TEXT NOT NULL,
  events TEXT NOT NULL
);

-- The source of the model, the capabilities, the registry's id.
CREATE TABLE settings (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
);
