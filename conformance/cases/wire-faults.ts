import type { DescMessage, DescMethod } from '@bufbuild/protobuf';
import { expect } from 'vitest';
import { etcdserverpb, firstExtensionNumber, healthpb, v3electionpb, v3lockpb } from '@tenure/protocol';
import { bytesField, tag, varintField, wireType } from '../client/raw-message.ts';
import { Code } from '../client/refusal.ts';
import { bytes } from './bytes.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';

const { Auth, Cluster, KV, Lease, Maintenance, Watch } = etcdserverpb;
const services = [KV, Lease, Watch, Cluster, Maintenance, Auth, v3lockpb.Lock, v3electionpb.Election];
/** Bytes that are not a message are refused before any effect, so none of these has one. */
const methods: readonly DescMethod[] = services.flatMap((service) => service.methods);
const healthMethods: readonly DescMethod[] = healthpb.Health.methods;

const unknownField = 200;
const overlongVarint = bytes(`${'\xff'.repeat(10)}\x01`);

interface Fault {
  readonly what: string;
  /** Undefined for a message without a field that could have the fault. */
  readonly message: (schema: DescMessage) => Uint8Array | undefined;
  readonly text: (schema: DescMessage) => string | RegExp;
}

/** The number of the first known field of this wire type. */
function fieldOf(schema: DescMessage, isNumber: boolean): number | undefined {
  return schema.fields.find((field) => {
    const isDelimited = field.message !== undefined || field.scalar === 9 || field.scalar === 12;
    return field.number < firstExtensionNumber && field.fieldKind !== 'list' && isDelimited !== isNumber;
  })?.number;
}

const withNumber =
  (make: (field: number) => Uint8Array) =>
  (schema: DescMessage): Uint8Array | undefined => {
    const field = fieldOf(schema, true);
    return field === undefined ? undefined : make(field);
  };
const withBytes =
  (make: (field: number) => Uint8Array) =>
  (schema: DescMessage): Uint8Array | undefined => {
    const field = fieldOf(schema, false);
    return field === undefined ? undefined : make(field);
  };
const always =
  (...parts: Uint8Array[]) =>
  (): Uint8Array =>
    Buffer.concat(parts);
const texts = {
  overflow: () => 'proto: integer overflow',
  eof: () => 'unexpected EOF',
  negative: () => 'proto: negative length found during unmarshaling',
  wrongType: (type: number) => () => new RegExp(`proto: wrong wireType = ${type} for field [A-Z][A-Za-z]*$`),
};

const faults: readonly Fault[] = [
  {
    what: 'bytes where a number belongs',
    message: withNumber((field) => bytesField(field, bytes('a'))),
    text: texts.wrongType(wireType.bytes),
  },
  {
    what: 'a fixed number where another belongs',
    message: withNumber((field) => Buffer.concat([tag(field, wireType.fixed64), bytes('12345678')])),
    text: texts.wrongType(wireType.fixed64),
  },
  {
    what: 'a number where bytes belong',
    message: withBytes((field) => varintField(field, 5n)),
    text: texts.wrongType(wireType.varint),
  },
  {
    what: 'a group where a number belongs',
    message: withNumber((field) => Buffer.concat([tag(field, wireType.startGroup), tag(field, wireType.endGroup)])),
    text: texts.wrongType(wireType.startGroup),
  },
  {
    what: 'a number of more than ten bytes',
    message: withNumber((field) => Buffer.concat([tag(field, wireType.varint), overlongVarint])),
    text: texts.overflow,
  },
  {
    what: 'a varint of more than ten bytes in an unknown field',
    message: always(tag(unknownField, wireType.varint), overlongVarint),
    text: texts.overflow,
  },
  { what: 'a tag of more than ten bytes', message: always(overlongVarint), text: texts.overflow },
  {
    what: 'a number without an end',
    message: withNumber((field) => Buffer.concat([tag(field, wireType.varint), bytes('\xff')])),
    text: texts.eof,
  },
  {
    what: 'bytes that are cut off',
    message: withBytes((field) => Buffer.concat([tag(field, wireType.bytes), bytes('\x05a')])),
    text: texts.eof,
  },
  {
    what: 'truncated bytes in an unknown field',
    message: always(tag(unknownField, wireType.bytes), bytes('\x05a')),
    text: texts.eof,
  },
  { what: 'a group without an end', message: always(tag(unknownField, wireType.startGroup)), text: texts.eof },
  {
    what: 'bytes of a negative length',
    message: withBytes((field) => varintField(field, -1n).with(0, (field << 3) | wireType.bytes)),
    text: texts.negative,
  },
  {
    what: 'the end of a group that did not begin',
    message: always(tag(unknownField, wireType.endGroup)),
    text: ({ name }) => `proto: ${name}: wiretype end group for non-group`,
  },
  {
    what: 'field number 0',
    message: always(tag(0, wireType.varint), bytes('\x01')),
    text: ({ name }) => `proto: ${name}: illegal tag 0 (wire type 0)`,
  },
  { what: 'wire type 6', message: always(tag(unknownField, 6)), text: () => 'proto: illegal wireType 6' },
  { what: 'wire type 7', message: always(tag(unknownField, 7)), text: () => 'proto: illegal wireType 7' },
];

async function detailsOf(t: CaseContext, { parent, name }: DescMethod, message: Uint8Array): Promise<string> {
  const outcome = await t.client.unaryRaw(`/${parent.typeName}/${name}`, message);
  expect(outcome, `${parent.typeName}/${name}`).toMatchObject({ ok: false, code: Code.internal });
  return outcome.ok ? '' : outcome.details;
}

/** Escaped for a pattern. */
const literally = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** The prefix of the reason in Go's server. */
function prefixOf({ methodKind }: DescMethod): string {
  const isUnary = methodKind === 'unary';
  return isUnary ? 'grpc: error unmarshalling request: ' : 'grpc: failed to unmarshal the received message: ';
}

const everyMethod: Case[] = faults.map(({ what, message, text }) => ({
  name: `refuses ${what}, in every method that may have it`,
  // etcd 3.4 has not all of these methods and fields.
  since: '3.6',
  run: async (t) => {
    const before = await t.maintenance.hashKV({});
    let asked = 0;
    for (const method of methods) {
      const sent = message(method.input);
      if (sent === undefined) continue;
      asked += 1;
      const expected = text(method.input);
      const pattern = typeof expected === 'string' ? `${literally(expected)}$` : expected.source;
      expect(await detailsOf(t, method, sent)).toMatch(new RegExp(`^${prefixOf(method)}${pattern}`));
    }
    expect(asked).toBeGreaterThan(10);
    expect((await t.maintenance.hashKV({})).hash).toBe(before.hash);
  },
}));

const names: Case[] = [
  {
    name: 'names the field and the message as Go does',
    since: '3.6',
    run: async (t) => {
      const wrong = (field: number): Uint8Array => varintField(field, 1n);
      const reasons: readonly (readonly [DescMethod, Uint8Array, string])[] = [
        [KV.method.put, wrong(1), 'wrong wireType = 0 for field Key'],
        [KV.method.range, wrong(2), 'wrong wireType = 0 for field RangeEnd'],
        [KV.method.txn, bytesField(2, wrong(2)), 'wrong wireType = 0 for field RequestPut'],
        [KV.method.txn, bytesField(2, bytesField(2, wrong(2))), 'wrong wireType = 0 for field Value'],
        [KV.method.txn, bytesField(1, bytesField(1, bytes('a'))), 'wrong wireType = 2 for field Result'],
        [KV.method.txn, bytesField(1, varintField(0, 1n)), 'Compare: illegal tag 0 (wire type 0)'],
        [Lease.method.leaseGrant, bytesField(1, bytes('a')), 'wrong wireType = 2 for field TTL'],
        [Lease.method.leaseTimeToLive, bytesField(2, bytes('a')), 'wrong wireType = 2 for field Keys'],
        [Lease.method.leaseKeepAlive, bytesField(1, bytes('a')), 'wrong wireType = 2 for field ID'],
        [Watch.method.watch, bytesField(1, wrong(1)), 'wrong wireType = 0 for field Key'],
        [Watch.method.watch, wrong(1), 'wrong wireType = 0 for field CreateRequest'],
        [Cluster.method.memberAdd, wrong(1), 'wrong wireType = 0 for field PeerURLs'],
        [Auth.method.userAdd, wrong(3), 'wrong wireType = 0 for field Options'],
        [Auth.method.roleGrantPermission, bytesField(2, wrong(2)), 'wrong wireType = 0 for field Key'],
      ];
      for (const [method, message, reason] of reasons) {
        expect(await detailsOf(t, method, message)).toMatch(new RegExp(`: proto: ${literally(reason)}$`));
      }
    },
  },
];

const taken: Case[] = [
  {
    name: 'passes over fields that it does not know where nothing is asked for',
    run: async (t) => {
      const group = [tag(7, wireType.startGroup), varintField(1, 1n), tag(7, wireType.endGroup)];
      const unknown = Buffer.concat([varintField(unknownField, 5n), bytesField(201, bytes('\xff')), ...group]);
      for (const { name, parent } of [Maintenance.method.status, Maintenance.method.hash, Cluster.method.memberList]) {
        expect(await t.client.unaryRaw(`/${parent.typeName}/${name}`, unknown)).toMatchObject({ ok: true });
      }
    },
  },
  {
    name: 'accepts filters of a watch one by one and packed',
    run: async (t) => {
      const filters = 5;
      for (const sent of [varintField(filters, 1n), bytesField(filters, bytes('\x01\x01'))]) {
        const watch = t.watchStream();
        const create = Buffer.concat([bytesField(1, t.key('a')), sent]);
        watch.sendRaw(bytesField(1, create));
        expect(await watch.next(0n)).toMatchObject({ created: true });
        const base = await t.put('a', '1');
        await t.delete('a');
        await t.put('a', '2');
        expect(t.events(await watch.events(0n, 2), base)).toEqual(['PUT a=1 +0', 'PUT a=2 +2']);
      }
    },
  },
  {
    name: 'accepts any text in fields of etcd, and refuses one that is invalid there',
    stricter: 'names of users and roles are UTF-8, decision 031',
    run: async (t) => {
      const outcome = await t.client.unaryRaw('/etcdserverpb.Auth/RoleGet', bytesField(1, bytes('\xff\xfe')));
      expect(outcome).toMatchObject({ ok: false });
      expect(outcome.ok ? '' : outcome.details).not.toContain('unmarshal');
    },
  },
  {
    name: 'refuses a group that ends as another field',
    tenureOnly: 'etcd accepts it; a put is logged as received, and earlier versions have to read it',
    run: async (t) => {
      const mismatched = [tag(unknownField, wireType.startGroup), tag(201, wireType.endGroup)];
      const message = Buffer.concat([bytesField(1, t.key('a')), ...mismatched]);
      expect(await detailsOf(t, KV.method.put, message)).toContain('proto: unexpected end of group');
      expect(await t.get('a')).toBeUndefined();
    },
  },
];

const health: Case[] = [
  {
    name: 'refuses bytes that are no message in a health check, in the words of the other decoder',
    since: '3.6',
    run: async (t) => {
      const kinds = new Set(['a varint of more than ten bytes in an unknown field', 'field number 0']);
      const nonsense = [
        ...faults.filter(({ what }) => kinds.has(what)).map(({ message }) => message(healthMethods[0]!.input)!),
        Buffer.concat([tag(1, wireType.bytes), bytes('\x05a')]),
        tag(unknownField, wireType.endGroup),
        Buffer.concat([tag(unknownField, wireType.startGroup), tag(201, wireType.endGroup)]),
      ];
      for (const method of healthMethods) {
        for (const message of nonsense) {
          // Go's decoder varies the space after the colon by build, so that clients do not depend on the text.
          expect(await detailsOf(t, method, message)).toMatch(/: proto:\s(?:cannot parse invalid wire-format data)$/u);
        }
        const text = await detailsOf(t, method, bytesField(1, bytes('\xff\xfe')));
        expect(text).toMatch(/: string field contains invalid UTF-8$/);
      }
    },
  },
  {
    name: 'passes over a service that is no text, in a health check',
    since: '3.6',
    run: async (t) => {
      const outcome = await t.client.unaryRaw('/grpc.health.v1.Health/Check', varintField(1, 5n));
      expect(outcome).toMatchObject({ ok: true });
    },
  },
];

export const wireFaults: CaseGroup = {
  name: 'bytes that are no message',
  cases: [...everyMethod, ...names, ...taken, ...health],
};
