-- How the schemas of a registry find each other. `name` is a name that others may use, the format's family before it
-- ('avro com.x.Address', 'jsonschema https://x.example/address'), `key` the resource whose default version has it.
CREATE TABLE schema_names (
  name {text_key} NOT NULL,
  key {text_key} NOT NULL,
  PRIMARY KEY (name, key)
) {without_rowid};
CREATE INDEX schema_names_key ON schema_names(key);

-- What the document of a version (`key`) refers to: a name as above, or the key of a resource.
CREATE TABLE schema_uses (
  name {text_key} NOT NULL,
  key {text_key} NOT NULL,
  PRIMARY KEY (name, key)
) {without_rowid};
CREATE INDEX schema_uses_key ON schema_uses(key);
