import { gzipSync } from 'node:zlib';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { expect } from 'vitest';
import { etcdserverpb } from '@tenure/protocol';
import { GrpcClient } from '../client/grpc-client.ts';
import { framed, http2Call, type Http2Outcome } from '../client/http2-call.ts';
import { Code, refusalOf } from '../client/refusal.ts';
import { serviceCalls } from '../client/service-calls.ts';
import { bytes } from './bytes.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';

const gzip = 2;
const put = '/etcdserverpb.KV/Put';

const putMessage = (t: CaseContext, name: string, value: string): Uint8Array =>
  toBinary(
    etcdserverpb.PutRequestSchema,
    create(etcdserverpb.PutRequestSchema, { key: t.key(name), value: bytes(value) }),
  );

const compression: Case[] = [
  {
    name: 'accepts requests compressed with gzip',
    tenureOnly: 'etcd has no gzip',
    run: async (t) => {
      const client = new GrpcClient(t.server.address, { 'grpc.default_compression_algorithm': gzip });
      t.cleanUp(() => client.close());
      const kv = serviceCalls(client, etcdserverpb.KV);
      await kv.put({ key: t.key('a'), value: bytes('v'.repeat(10_000)) });
      const { kvs } = await kv.range({ key: t.key('a') });
      expect(kvs[0]?.value).toHaveLength(10_000);
    },
  },
  {
    name: 'refuses an encoding that it does not know',
    run: async (t) => {
      const body = framed(putMessage(t, 'a', '1'), true);
      const { trailers, headers } = await http2Call(t.server.address, put, {
        headers: { 'grpc-encoding': 'no-such-encoding' },
        body,
        halfClose: true,
      });
      expect(trailers['grpc-status'] ?? headers['grpc-status']).toBe(`${Code.unimplemented}`);
      expect(await t.get('a')).toBeUndefined();
    },
  },
  {
    name: 'does not inflate a message beyond the receive limit',
    tenureOnly: 'etcd has no gzip',
    run: async (t) => {
      const bomb = gzipSync(putMessage(t, 'a', 'v'.repeat(16 * 1024 * 1024)));
      const { trailers, headers } = await http2Call(t.server.address, put, {
        headers: { 'grpc-encoding': 'gzip' },
        body: framed(bomb, true),
        halfClose: true,
      });
      expect(trailers['grpc-status'] ?? headers['grpc-status']).toBe(`${Code.resourceExhausted}`);
      expect(await t.get('a')).toBeUndefined();
    },
  },
];

const deadlines: Case[] = [
  {
    name: 'ends a stream when the deadline of the call has passed',
    since: '3.6',
    run: async (t) => {
      for (const path of ['/etcdserverpb.Watch/Watch', '/etcdserverpb.Lease/LeaseKeepAlive']) {
        const call = { headers: { 'grpc-timeout': '300m' }, halfClose: false };
        const { trailers, headers, elapsedMs } = await http2Call(t.server.address, path, call);
        expect(trailers['grpc-status'] ?? headers['grpc-status'], path).toBe(`${Code.deadlineExceeded}`);
        expect(elapsedMs).toBeGreaterThan(250);
      }
    },
  },
  {
    name: 'accepts a call with a distant deadline',
    run: async (t) => {
      for (const timeout of ['99999999H', '10S', '90000m', '1M']) {
        const { trailers, body } = await http2Call(t.server.address, put, {
          headers: { 'grpc-timeout': timeout },
          body: framed(putMessage(t, 'a', '1')),
          halfClose: true,
        });
        expect(trailers['grpc-status'], timeout).toBe('0');
        const reply = fromBinary(etcdserverpb.PutResponseSchema, body.subarray(5));
        expect(reply.header?.revision).toBe(await t.revision());
      }
    },
  },
  {
    name: 'accepts the cancellation of a call',
    run: async (t) => {
      const { code } = await refusalOf(t.kv.range({ key: t.key('a') }, { deadlineMs: -1 }));
      expect(code).toBe(Code.deadlineExceeded);
      expect(await t.put('a')).toBeGreaterThan(0n);
    },
  },
];

const answers: Case[] = [
  {
    name: 'answers as gRPC over HTTP/2: status 200, its content type, the status in the trailers',
    run: async (t) => {
      const { headers, trailers } = await http2Call(t.server.address, put, {
        body: framed(putMessage(t, 'a', '1')),
        halfClose: true,
      });
      expect(headers[':status']).toBe(200);
      expect(headers['content-type']).toMatch(/^application\/grpc/);
      expect(trailers['grpc-status']).toBe('0');
    },
  },
  {
    name: 'escapes the bytes that a status text may not contain',
    run: async (t) => {
      const { trailers, headers } = await http2Call(t.server.address, '/no.such.Sérvice/Method'.normalize(), {
        halfClose: true,
      });
      const message = trailers['grpc-message'] ?? headers['grpc-message'];
      expect(trailers['grpc-status'] ?? headers['grpc-status']).toBe(`${Code.unimplemented}`);
      expect(message).toMatch(/^[ -~]*$/);
    },
  },
  {
    name: 'refuses a unary call without a message',
    run: async (t) => {
      const { trailers, headers } = await http2Call(t.server.address, put, { halfClose: true });
      // The code is not checked: gRPC's own implementations differ.
      expect(Number(trailers['grpc-status'] ?? headers['grpc-status'])).toBeGreaterThan(0);
    },
  },
];

function statusOf({ headers, trailers }: Http2Outcome): { code: string | undefined; message: string } {
  const all = { ...headers, ...trailers };
  return { code: String(all['grpc-status']), message: decodeURIComponent(String(all['grpc-message'] ?? '')) };
}

const cardinality = 'cardinality violation: received multiple request messages for non-client-streaming RPC';

const messages: Case[] = [
  {
    name: 'reads the first message of a unary call, and ignores any data after it',
    since: '3.6',
    run: async (t) => {
      const first = framed(putMessage(t, 'a', '1'));
      const behind = [framed(putMessage(t, 'b', '1')), framed(bytes('\xff\xff')), Buffer.from([0, 0, 0])];
      for (const more of behind) {
        const body = Buffer.concat([first, more]);
        expect(statusOf(await http2Call(t.server.address, put, { body, halfClose: true })).code).toBe('0');
      }
      expect((await t.get('a'))?.version).toBe(BigInt(behind.length));
      expect(await t.get('b')).toBeUndefined();
    },
  },
  {
    name: 'refuses two messages for a server-streaming call',
    since: '3.6',
    run: async (t) => {
      const body = Buffer.concat([framed(new Uint8Array()), framed(new Uint8Array())]);
      for (const path of ['/etcdserverpb.Maintenance/Snapshot', '/grpc.health.v1.Health/Watch']) {
        const outcome = await http2Call(t.server.address, path, { body, halfClose: true });
        expect(statusOf(outcome)).toEqual({ code: `${Code.internal}`, message: cardinality });
      }
    },
  },
  {
    name: 'reports that a unary call without a complete message has ended too early',
    since: '3.6',
    run: async (t) => {
      const whole = framed(putMessage(t, 'a', '1'));
      const parts: readonly (readonly [number, string])[] = [
        [0, 'EOF'],
        [3, 'EOF'],
        [7, 'unexpected EOF'],
      ];
      for (const [length, message] of parts) {
        const outcome = await http2Call(t.server.address, put, { body: whole.subarray(0, length), halfClose: true });
        expect(statusOf(outcome)).toEqual({ code: `${Code.unknown}`, message });
      }
      expect(await t.get('a')).toBeUndefined();
    },
  },
];

const metadata: Case[] = [
  {
    name: 'refuses binary metadata that is not base64, and names the offset',
    since: '3.6',
    run: async (t) => {
      const bad: readonly (readonly [string, number])[] = [
        ['!!!!', 0],
        ['YQ=', 2],
        ['Y', 0],
        ['YWJjY', 4],
        ['YQ=a', 2],
        ['YQ==YQ==', 4],
        ['YWI=YQ==', 4],
        ['Y===', 1],
        ['YQ==,YQ==', 2],
        ['a b', 1],
        ['-_-_', 0],
      ];
      const body = framed(putMessage(t, 'a', '1'));
      for (const [value, at] of bad) {
        for (const path of [put, '/etcdserverpb.Watch/Watch', '/no.such.Service/Method']) {
          const outcome = await http2Call(t.server.address, path, {
            headers: { 'x-a-bin': value },
            body,
            halfClose: true,
          });
          const reason = `illegal base64 data at input byte ${at}`;
          const message = `malformed binary metadata "${value}" in header "x-a-bin": ${reason}`;
          expect(statusOf(outcome)).toEqual({ code: `${Code.internal}`, message });
          expect(outcome.headers[':status']).toBe(400);
        }
      }
      expect(await t.get('a')).toBeUndefined();
    },
  },
  {
    name: 'accepts binary metadata in base64, padded or not, once and twice',
    run: async (t) => {
      const body = framed(putMessage(t, 'a', '1'));
      for (const value of ['', 'YQ', 'YQ==', 'YWI', 'YWI=', 'YWJj', 'YR', ['YQ', 'YWI='], ['YQ==', 'YQ==']]) {
        const headers = { 'x-a-bin': value, 'grpc-trace-bin': 'AAAA' };
        expect(statusOf(await http2Call(t.server.address, put, { headers, body, halfClose: true })).code).toBe('0');
      }
    },
  },
];

export const calls: CaseGroup = {
  name: 'calls',
  cases: [...compression, ...deadlines, ...answers, ...messages, ...metadata],
};
