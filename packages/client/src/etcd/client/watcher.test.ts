import { Duplex } from 'node:stream';
import { create, toBinary } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import { describe, expect, test } from 'vitest';
import { ProcessRef } from '../../time/process-ref.ts';
import type { EtcdConnection } from '../connection/etcd-connection.ts';
import { watchRange } from './watcher.ts';

const created = toBinary(
  etcdserverpb.WatchResponseSchema,
  create(etcdserverpb.WatchResponseSchema, { created: true, header: { revision: 7n } }),
);

/** Like a call of the gRPC client, it ends with an error when it is cancelled. */
class Call extends Duplex {
  constructor(answer: Uint8Array) {
    super({ objectMode: true, read: () => undefined, write: (_chunk, _encoding, done) => done() });
    this.push(answer);
  }

  cancel(): void {
    this.destroy(new Error('Cancelled on client'));
  }
}

const maxStreams = 20;

/** Each stream is answered by the next of the answers, the last of which goes on. */
function connected(answers: readonly Uint8Array[] = [created]): {
  connection: EtcdConnection;
  calls: Call[];
  abandoned: () => number;
} {
  const calls: Call[] = [];
  let abandoned = 0;
  const connection = {
    processRef: new ProcessRef({ unref: true }),
    isClosed: false,
    stream: async () => {
      if (calls.length === maxStreams) throw new Error('the watch is tried again and again');
      const call = new Call(answers[calls.length] ?? answers.at(-1)!);
      calls.push(call);
      return { call, endpoint: 'here', abandon: () => abandoned++ };
    },
    pause: async () => undefined,
  };
  return { connection: connection as unknown as EtcdConnection, calls, abandoned: () => abandoned };
}

describe('a watch over a connection', () => {
  test('reports a server as failed when it failed, and not when the watch was ended by the client', async () => {
    const { connection, calls, abandoned } = connected();
    const stop = new AbortController();
    let batches = 0;
    for await (const { revision } of watchRange(connection, 'key', { signal: stop.signal })) {
      expect(revision).toBe(7n);
      batches++;
      if (batches === 1) calls[0]!.destroy(new Error('the server went'));
      else stop.abort();
    }
    expect([batches, calls.length, abandoned()]).toEqual([2, 2, 1]);
    expect(calls.every(({ destroyed }) => destroyed)).toBe(true);
  });

  test.each([
    ['rpc error: code = PermissionDenied desc = etcdserver: permission denied', 3, 'etcdserver: permission denied'],
    ['rpc error: code = Unauthenticated desc = etcdserver: invalid auth token', 3, 'etcdserver: invalid auth token'],
  ])('is denied for good by %s, %i times in a row', async (cancelReason, times, details) => {
    const { WatchResponseSchema } = etcdserverpb;
    const refusal = toBinary(
      WatchResponseSchema,
      create(WatchResponseSchema, { created: true, canceled: true, watchId: -1n, cancelReason }),
    );
    // The third stream is established before it is refused, and the count begins again.
    const { connection, calls } = connected([refusal, refusal, created, refusal]);
    const seen: bigint[] = [];
    const watching = (async () => {
      for await (const { revision } of watchRange(connection, 'key', {})) {
        seen.push(revision);
        calls.at(-1)!.push(refusal);
      }
    })();
    await expect(watching).rejects.toMatchObject({ etcdCode: 'denied', details });
    expect([seen, calls.length]).toEqual([[7n], 2 + times]);
  });

  test('nor when the loop over the watch was left', async () => {
    const { connection, calls, abandoned } = connected();
    for await (const _ of watchRange(connection, 'key', {})) break;
    expect([calls.length, calls[0]!.destroyed, abandoned()]).toEqual([1, true, 0]);
  });

  test.each([[[]], [[created]]])('ends with `invalid` when its range is empty', async (before) => {
    const { WatchResponseSchema } = etcdserverpb;
    const fields = { created: true, canceled: true, watchId: -1n, cancelReason: 'mvcc: watcher range is empty' };
    const { connection, calls } = connected([
      ...before,
      toBinary(WatchResponseSchema, create(WatchResponseSchema, fields)),
    ]);
    const watching = (async () => {
      for await (const _ of watchRange(connection, { key: 'b', end: 'a' }, {}))
        calls.at(-1)!.destroy(new Error('broken'));
    })();
    const details = 'mvcc: watcher range is empty';
    await expect(watching).rejects.toMatchObject({ etcdCode: 'invalid', details });
    expect(calls.length).toBe(before.length + 1);
  });
});
