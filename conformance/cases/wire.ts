import { expect } from 'vitest';
import { bytesField, tag, varintField, wireType } from '../client/raw-message.ts';
import { Code, refusalOf } from '../client/refusal.ts';
import { bytes } from './bytes.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';

const put = '/etcdserverpb.KV/Put';
const txn = '/etcdserverpb.KV/Txn';

/** Field numbers of the messages that are encoded by hand here. */
const field = { putKey: 1, putValue: 2, putLease: 3, txnSuccess: 2, opRange: 1, opPut: 2, opTxn: 4 } as const;

async function rawRefusal(
  t: CaseContext,
  path: string,
  message: Uint8Array,
): Promise<{ code: number; details: string }> {
  const outcome = await t.client.unaryRaw(path, message);
  if (outcome.ok) throw new Error('the call succeeded, though it had to be refused');
  return { code: outcome.code, details: outcome.details };
}

const malformed: readonly (readonly [string, (key: Uint8Array) => Uint8Array])[] = [
  ['a field that is longer than the message', (key) => bytesField(field.putKey, key).subarray(0, -1)],
  [
    'a tag without a field',
    (key) => Buffer.concat([bytesField(field.putKey, key), tag(field.putValue, wireType.bytes)]),
  ],
  ['a varint without an end', (key) => Buffer.concat([bytesField(field.putKey, key), bytes('\x18\xff\xff')])],
  [
    'a varint of more than ten bytes',
    (key) => Buffer.concat([bytesField(field.putKey, key), bytes(`\x18${'\xff'.repeat(11)}\x01`)]),
  ],
  ['field number 0', (key) => Buffer.concat([bytesField(field.putKey, key), tag(0, wireType.varint), bytes('\x01')])],
  ['a wire type that does not exist', (key) => Buffer.concat([bytesField(field.putKey, key), tag(99, 7)])],
  [
    'the end of a group that did not begin',
    (key) => Buffer.concat([bytesField(field.putKey, key), tag(99, wireType.endGroup)]),
  ],
  ['noise', () => bytes('\xde\xad\xbe\xef\xff\xff\xff\xff\x0f')],
];

const decoding: Case[] = [
  ...malformed.map(([what, make]): Case => ({
    name: `refuses a message with ${what}, and changes nothing`,
    run: async (t) => {
      const before = await t.maintenance.hashKV({});
      expect((await rawRefusal(t, put, make(t.key('a')))).code).toBe(Code.internal);
      expect((await t.maintenance.hashKV({})).hash).toBe(before.hash);
    },
  })),
  {
    name: 'refuses a known field of another wire type',
    run: async (t) => {
      const message = Buffer.concat([bytesField(field.putKey, t.key('a')), varintField(field.putValue, 5n)]);
      expect((await rawRefusal(t, put, message)).code).toBe(Code.internal);
      expect(await t.get('a')).toBeUndefined();
    },
  },
  {
    name: 'treats an empty message as one of defaults',
    run: async (t) => {
      expect(await rawRefusal(t, put, new Uint8Array())).toEqual(refused.emptyKey);
    },
  },
  {
    name: 'passes over fields that it does not know',
    run: async (t) => {
      const message = Buffer.concat([
        varintField(200, 7n),
        bytesField(field.putKey, t.key('a')),
        bytesField(201, bytes('\xff\xfe')),
        tag(202, wireType.fixed64),
        bytes('12345678'),
        tag(203, wireType.fixed32),
        bytes('1234'),
        bytesField(field.putValue, bytes('1')),
      ]);
      expect((await t.client.unaryRaw(put, message)).ok).toBe(true);
      expect(t.pairs((await t.kv.range({ key: t.key('a') })).kvs)).toEqual(['a=1']);
    },
  },
  {
    name: 'uses the last value of a repeated singular field',
    run: async (t) => {
      const message = Buffer.concat([
        bytesField(field.putKey, t.key('first')),
        bytesField(field.putValue, bytes('1')),
        bytesField(field.putKey, t.key('last')),
      ]);
      expect((await t.client.unaryRaw(put, message)).ok).toBe(true);
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['last=1']);
    },
  },
  {
    name: 'uses the last operation of a request with two',
    run: async (t) => {
      const write = bytesField(field.opPut, bytesField(field.putKey, t.key('a')));
      const read = bytesField(field.opRange, bytesField(field.putKey, t.key('a')));
      const twice = Buffer.concat([write, read]);
      expect((await t.client.unaryRaw(txn, bytesField(field.txnSuccess, twice))).ok).toBe(true);
      expect(await t.get('a')).toBeUndefined();
      const other = Buffer.concat([read, write]);
      expect((await t.client.unaryRaw(txn, bytesField(field.txnSuccess, other))).ok).toBe(true);
      expect(await t.get('a')).toBeDefined();
    },
  },
  {
    name: 'accepts a negative lease id in ten bytes',
    run: async (t) => {
      const lease = await t.grant(60n, -77n);
      const message = Buffer.concat([bytesField(field.putKey, t.key('a')), varintField(field.putLease, -77n)]);
      expect((await t.client.unaryRaw(put, message)).ok).toBe(true);
      expect(await t.get('a')).toMatchObject({ lease });
    },
  },
];

/** A transaction in a transaction in a transaction ..., with one put of `key` in the innermost. */
function nested(levels: number, key: Uint8Array): Uint8Array {
  let message = bytesField(field.txnSuccess, bytesField(field.opPut, bytesField(field.putKey, key)));
  for (let level = 1; level < levels; level += 1) {
    message = bytesField(field.txnSuccess, bytesField(field.opTxn, message));
  }
  return message;
}

const depth: Case[] = [
  {
    name: 'accepts transactions nested up to the number of operations',
    run: async (t) => {
      expect((await t.client.unaryRaw(txn, nested(128, t.key('a')))).ok).toBe(true);
      expect(await t.get('a')).toMatchObject({ version: 1n });
    },
  },
  {
    name: 'refuses transactions that are nested deeper',
    run: async (t) => {
      for (const levels of [129, 1_000, 10_000]) {
        expect(await rawRefusal(t, txn, nested(levels, t.key('a'))), `${levels} levels`).toEqual(refused.tooManyOps);
      }
      expect(await t.get('a')).toBeUndefined();
    },
  },
];

const streams: Case[] = [
  {
    name: 'ends a watch stream for a message that it cannot read',
    run: async (t) => {
      const watch = t.watchStream();
      await watch.create({ key: t.key('a') });
      watch.sendRaw(bytes('\xff\xff\xff'));
      expect((await watch.ended).code).toBe(Code.internal);
    },
  },
  {
    name: 'ends a keep-alive stream for a message that it cannot read',
    run: async (t) => {
      const stream = t.keepAliveStream();
      await stream.renew(0x7fffffffn);
      stream.sendRaw(bytes('\xff\xff\xff'));
      expect((await stream.ended).code).toBe(Code.internal);
    },
  },
];

const extensions: Case[] = [
  {
    name: 'refuses a text that is not UTF-8',
    tenureOnly: 'label is an extension field; no other request for leases or keys holds text',
    run: async (t) => {
      const labelField = 1003;
      const message = Buffer.concat([varintField(1, 60n), bytesField(labelField, bytes('\xff\xfe\xfd'))]);
      const before = (await t.lease.leaseLeases({})).leases.length;
      const { code } = await rawRefusal(t, '/etcdserverpb.Lease/LeaseGrant', message);
      expect([Code.internal, Code.invalidArgument]).toContain(code);
      expect((await t.lease.leaseLeases({})).leases).toHaveLength(before);
    },
  },
];

const calls: Case[] = [
  {
    name: 'does not know a method or a service that does not exist',
    run: async (t) => {
      expect(await rawRefusal(t, '/etcdserverpb.KV/NoSuch', new Uint8Array())).toEqual({
        code: Code.unimplemented,
        details: 'unknown method NoSuch for service etcdserverpb.KV',
      });
      expect(await rawRefusal(t, '/no.such.Service/Method', new Uint8Array())).toEqual({
        code: Code.unimplemented,
        details: 'unknown service no.such.Service',
      });
    },
  },
  {
    name: "accepts the metadata of etcd's clients, and ignores any other",
    run: async (t) => {
      const metadata = { hasleader: 'true', 'client-api-version': '3.5.0', 'x-unknown': '1' };
      const reply = await t.kv.put({ key: t.key('a') }, { metadata });
      expect(reply.header?.revision).toBe(await t.revision());
    },
  },
  {
    name: 'ignores a token while authentication is disabled',
    since: '3.5',
    run: async (t) => {
      const reply = await t.kv.put({ key: t.key('a') }, { metadata: { token: 'none' } });
      expect(reply.header?.revision).toBe(await t.revision());
    },
  },
  {
    name: 'refuses to be asked without a key, however often',
    run: async (t) => {
      for (let round = 0; round < 50; round += 1) {
        expect(await refusalOf(t.kv.put({}))).toEqual(refused.emptyKey);
      }
    },
  },
];

export const wire: CaseGroup = {
  name: 'the wire',
  cases: [...decoding, ...depth, ...streams, ...extensions, ...calls],
};
