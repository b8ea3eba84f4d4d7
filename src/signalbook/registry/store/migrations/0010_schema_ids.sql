-- Schemas by number, as Confluent's registry gives them to payloads.
--
-- An id stands for one content in its context, for ever: rows are added and never changed or taken away. `beside` is JSON:
-- references, metadata and rules. One content may have several ids where it came with them from elsewhere; it is
-- given the lowest.
CREATE TABLE IF NOT EXISTS schema_ids (
  context {text_key} NOT NULL,
  id BIGINT NOT NULL,
  guid {text_key} NOT NULL,
  type TEXT NOT NULL,
  document TEXT NOT NULL,
  beside TEXT NOT NULL,
  createdat TEXT NOT NULL,
  PRIMARY KEY (context, id)
);
CREATE INDEX IF NOT EXISTS schema_ids_guid ON schema_ids(guid, context);

-- The schema groups that are contexts, and their schemas, which are subjects. `last` is the highest number that a version
-- of the subject ever had, `gone` the numbers of those that went, as a list in JSON.
CREATE TABLE IF NOT EXISTS schema_contexts (
  context {text_key} NOT NULL PRIMARY KEY,
  xid {text_key} NOT NULL
) {without_rowid};
CREATE TABLE IF NOT EXISTS schema_subjects (
  context {text_key} NOT NULL,
  subject {text_key} NOT NULL,
  xid {text_key} NOT NULL,
  last BIGINT NOT NULL,
  gone TEXT NOT NULL,
  PRIMARY KEY (context, subject)
) {without_rowid};
CREATE UNIQUE INDEX IF NOT EXISTS schema_subjects_xid ON schema_subjects(xid);

-- Their versions by number; `key` is that of `entities`, `deleted` is 1 where the version is hidden from Confluent's API.
CREATE TABLE IF NOT EXISTS schema_versions (
  context {text_key} NOT NULL,
  subject {text_key} NOT NULL,
  number BIGINT NOT NULL,
  key {text_key} NOT NULL,
  id BIGINT NOT NULL,
  deleted BIGINT NOT NULL,
  PRIMARY KEY (context, subject, number)
) {without_rowid};
CREATE UNIQUE INDEX IF NOT EXISTS schema_versions_key ON schema_versions(key);
CREATE INDEX IF NOT EXISTS schema_versions_id ON schema_versions(context, id);

-- Which version (`key`) refers to which version of a subject.
CREATE TABLE IF NOT EXISTS schema_referrers (
  context {text_key} NOT NULL,
  subject {text_key} NOT NULL,
  number BIGINT NOT NULL,
  key {text_key} NOT NULL,
  PRIMARY KEY (context, subject, number, key)
) {without_rowid};
CREATE INDEX IF NOT EXISTS schema_referrers_key ON schema_referrers(key);

-- What is set for a subject, for a context (an empty subject) or for all of them (an empty context): `config` is JSON, `mode`
-- is empty where none is set.
CREATE TABLE IF NOT EXISTS schema_scopes (
  context {text_key} NOT NULL,
  subject {text_key} NOT NULL,
  config TEXT NOT NULL,
  mode TEXT NOT NULL,
  PRIMARY KEY (context, subject)
) {without_rowid};

-- Which subject the keys or the values of a topic belong to, where a client said so.
CREATE TABLE IF NOT EXISTS schema_associations (
  resource {text_key} NOT NULL,
  kind {text_key} NOT NULL,
  association {text_key} NOT NULL,
  name {text_key} NOT NULL,
  namespace {text_key} NOT NULL,
  context {text_key} NOT NULL,
  subject {text_key} NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (resource, kind, association)
) {without_rowid};
CREATE INDEX IF NOT EXISTS schema_associations_name ON schema_associations(name);
CREATE INDEX IF NOT EXISTS schema_associations_subject ON schema_associations(context, subject);
