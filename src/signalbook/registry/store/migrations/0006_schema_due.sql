-- Versions with a format that were there before `schema_names` and `schema_uses`, or came to a store without them. The
-- first request that writes about schemas enters what they declare and refer to, and empties this table.
CREATE TABLE schema_due (
  key {text_key} NOT NULL PRIMARY KEY
) {without_rowid};
INSERT INTO schema_due (key)
SELECT key FROM entities WHERE key > 'd/' AND key < 'd0' AND replace(doc, '"format":', '') <> doc;

-- A store made before there were formats says that its registry checks none. Nobody chose that: there was no other choice.
-- In a store that has `schema_names` already it was chosen.
UPDATE settings SET value = replace(replace(value,
  '"formats":[]', '"formats":["avro/*","jsonschema","jsonschema/draft-07","jsonschema/draft/2019-09",'
  || '"jsonschema/draft/2020-12","jsonstructure/draft-04","protobuf/2","protobuf/3","xsd/1.0"]'),
  '"compatibilities":{{}}', replace('"compatibilities":{{"avro/*":[],"jsonschema":[],"jsonschema/draft-07":[],'
  || '"jsonschema/draft/2019-09":[],"jsonschema/draft/2020-12":[],"jsonstructure/draft-04":[],"protobuf/2":[],'
  || '"protobuf/3":[],"xsd/1.0":[]}}',
  '[]', '["backward","backward_transitive","forward","forward_transitive","full","full_transitive"]'))
WHERE name = 'capabilities' AND replace(value, '"formats":[]', '') <> value
AND (SELECT version FROM schema_version) < 5;
UPDATE settings SET value = value || '.6' WHERE name = 'generation';
