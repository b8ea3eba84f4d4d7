-- Subscriptions with their deliveries, and what replication knows of entities that came from other catalogs.

-- `body` is what a client is shown, `secret` what it never is; `seq`, `done` and `name` are the place in the changes
-- that was delivered up to. `state` is 'active' or 'parked'; times are seconds since 1970.
CREATE TABLE subscriptions (
  id TEXT NOT NULL PRIMARY KEY,
  base TEXT NOT NULL,
  body TEXT NOT NULL,
  secret TEXT NOT NULL,
  rate BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  done BIGINT NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  delivered BIGINT NOT NULL,
  failures BIGINT NOT NULL,
  failingsince BIGINT NOT NULL,
  nextattempt BIGINT NOT NULL,
  error TEXT NOT NULL
);

-- One row for each group or resource that came from elsewhere, also after it was deleted there (`gone` is 1), so that an
-- older copy of it does not come back; 2 is a deleted group that still holds resources. `key` is that of `entities`.
--   catalog    the id of the catalog that has authority over it
--   authority  that catalog's address
--   revision   that catalog's change number when it was read there, or an earlier one
--   link, pass the replication that brought it last, and in which comparison
--   mark       the epochs that the source showed, where it has no change feed
--   digest     groups only: the attributes as they were written here
CREATE TABLE replicas (
  key {text_key} NOT NULL PRIMARY KEY,
  xid TEXT NOT NULL,
  catalog TEXT NOT NULL,
  authority TEXT NOT NULL,
  revision BIGINT NOT NULL,
  link TEXT NOT NULL,
  pass BIGINT NOT NULL,
  mark TEXT NOT NULL,
  digest TEXT NOT NULL,
  gone BIGINT NOT NULL
);
CREATE INDEX replicas_link ON replicas(link, pass) WHERE gone = 0;

-- How far each replication has come: its cursor at the source, empty where the source has none.
CREATE TABLE replica_links (
  link TEXT NOT NULL PRIMARY KEY,
  cursor TEXT NOT NULL,
  pass BIGINT NOT NULL
);
