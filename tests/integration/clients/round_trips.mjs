// Confluent's JavaScript client against a registry: Avro, JSON Schema and Protobuf, written and read.
//   CLIENT_MODULES=FOLDER node round_trips.mjs http://127.0.0.1:8080/confluent
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.CLIENT_MODULES}/x.js`);
const sr = require('@confluentinc/schemaregistry');
const pb = require('@bufbuild/protobuf');
const wkt = require('@bufbuild/protobuf/wkt');

const client = () => new sr.SchemaRegistryClient({ baseURLs: [process.argv[2]], maxRetries: 0 });
const value = sr.SerdeType.VALUE;
const topic = (name) => `${name}-${randomUUID()}`;

async function avro() {
  const name = topic('berths');
  const older = { type: 'record', name: 'Berth', fields: [{ name: 'quay', type: 'string' }] };
  const newer = { ...older, fields: [...older.fields, { name: 'depth', type: 'int', default: 9 }] };
  await client().register(`${name}-value`, { schemaType: 'AVRO', schema: JSON.stringify(older) });
  const sent = await new sr.AvroSerializer(client(), value, { useLatestVersion: true }).serialize(name, { quay: 'east' });
  await client().register(`${name}-value`, { schemaType: 'AVRO', schema: JSON.stringify(newer) });
  const read = await new sr.AvroDeserializer(client(), value, { useLatestVersion: true }).deserialize(name, sent);
  assert.deepEqual({ ...read }, { quay: 'east', depth: 9 });
}

async function json() {
  const name = topic('berths');
  const schema = { title: 'Berth', type: 'object', properties: { quay: { type: 'string' } }, required: ['quay'] };
  await client().register(`${name}-value`, { schemaType: 'JSON', schema: JSON.stringify(schema) });
  const conf = { useLatestVersion: true, validate: true };
  const sent = await new sr.JsonSerializer(client(), value, conf).serialize(name, { quay: 'east' });
  assert.deepEqual(await new sr.JsonDeserializer(client(), value, { validate: true }).deserialize(name, sent), { quay: 'east' });
  await assert.rejects(new sr.JsonSerializer(client(), value, conf).serialize(name, { quay: 1 }));
}

async function protobuf() {
  const name = topic('berths');
  const field = pb.create(wkt.FieldDescriptorProtoSchema, { name: 'quay', number: 1, type: 9, label: 1 });
  const file = pb.create(wkt.FileDescriptorProtoSchema, {
    name: `${name}.proto`,
    package: 'harbour',
    syntax: 'proto3',
    messageType: [pb.create(wkt.DescriptorProtoSchema, { name: 'Berth', field: [field] })],
  });
  const Berth = pb.createFileRegistry(pb.create(wkt.FileDescriptorSetSchema, { file: [file] })).getMessage('harbour.Berth');
  const conf = { registry: pb.createMutableRegistry(Berth), autoRegisterSchemas: true };
  const sent = await new sr.ProtobufSerializer(client(), value, conf).serialize(name, pb.create(Berth, { quay: 'east' }));
  const read = await new sr.ProtobufDeserializer(client(), value, {}).deserialize(name, sent);
  assert.equal(read.quay, 'east');
}

for (const check of [avro, json, protobuf]) await check();
console.log('3 passed, 0 failed');
process.exit(0);
