import { create } from '@bufbuild/protobuf';
import { etcdserverpb, mvccpb } from '@tenure/protocol';
import { expect, test } from 'vitest';
import { jsonText } from './json-text.ts';

test('names as in the .proto files, bytes in base64, every digit of an int64, and no zeros', () => {
  const message = create(etcdserverpb.RangeResponseSchema, {
    header: { clusterId: 2n ** 64n - 1n, revision: 3n },
    kvs: [{ key: Buffer.from('a'), value: Buffer.from([0, 255]), lease: 2n ** 63n - 1n, modRevision: 2n }],
    more: true,
    count: 1n,
  });
  expect(jsonText(etcdserverpb.RangeResponseSchema, message)).toBe(
    '{"header":{"cluster_id":18446744073709551615,"revision":3},' +
      '"kvs":[{"key":"YQ==","mod_revision":2,"value":"AP8=","lease":9223372036854775807}],"more":true,"count":1}',
  );
});

test('enums are numbers, and an empty message is an empty object', () => {
  const event = create(mvccpb.EventSchema, { type: mvccpb.Event_EventType.DELETE });
  expect(jsonText(mvccpb.EventSchema, event)).toBe('{"type":1}');
  expect(jsonText(mvccpb.EventSchema, create(mvccpb.EventSchema))).toBe('{}');
});
